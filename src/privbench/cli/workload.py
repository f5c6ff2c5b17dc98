"""`privbench workload` and `estimate`: make queries, translate them for publishing, estimate them; what they print."""

# ruff: noqa: D301  (click reads the \b in docstrings as a character, which a raw string has not)

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from privbench.cli.flags import csv_flags, force_flag, json_flag, out_flag
from privbench.cli.output import echo, print_json, print_table, printable, warn

if TYPE_CHECKING:
    from privbench.model.model import Model
    from privbench.workload.estimate import Estimate
    from privbench.workload.literal import QueryDialect
    from privbench.workload.query import Statement, Workload
    from privbench.workload.translate import Change, Translation

MOST_SHOWN = 40
"""Queries of a translation that are shown; `--json` has them all."""
_PRIVATE = "its literals come from real rows: the file is private. Make one from a model or a bundle to publish it."

dialect_flag = click.option(
    "--dialect",
    type=click.Choice(["duckdb", "postgres", "sqlite", "mysql"]),
    default="duckdb",
    show_default=True,
    help="Whose SQL the queries are written in.",
)


@click.group()
def workload() -> None:
    """Make or translate a workload of queries.

    \b
    Example: privbench workload generate shop.model -n 400 -o q.sql
    """


@workload.command(
    "generate",
    epilog="SOURCE is a model file, a bundle, or a private database: a folder, a DuckDB or a SQLite file, or the URL "
    "of a server: postgresql://user@host/database, mysql://user@host/database.",
)
@click.argument("source")
@click.option(
    "-n", "count", type=click.IntRange(1, 1_000_000), default=400, show_default=True, help="How many queries."
)
@click.option(
    "--style",
    type=click.Choice(["sam", "mscn"]),
    default="mscn",
    show_default=True,
    help="sam: one table, literals of one row; mscn: up to 4 joins along foreign keys.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same queries.")
@csv_flags
@out_flag("Where to write the queries, such as q.sql.")
@force_flag
@json_flag
def generate(
    source: str,
    count: int,
    style: str,
    seed: int,
    null: tuple[str, ...],
    delimiter: str | None,
    ragged: str,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Make COUNT(*) queries with literals from SOURCE.

    From a model or a bundle no private data are read. From a private database the file is private, too: its first
    line says `literals=real`.

    \b
    Examples: privbench workload generate shop.model -n 400 -o q.sql
              privbench workload generate bundle -n 400 --style sam -o q.sql
    Private:  privbench workload generate shop/ -n 400 -o private.sql
    """
    from privbench.io.staging import check_target
    from privbench.workload.generate import generate_workload
    from privbench.workload.sql import write_workload

    check_target(out, force=force)
    made = generate_workload(source, n=count, seed=seed, style=style, null=null, delimiter=delimiter, ragged=ragged)
    write_workload(made, out, force=force)
    _show_generated(made, out, as_json=as_json)


@workload.command("translate")
@click.argument("queries", type=click.Path(path_type=Path))
@click.option("--model", "model_path", required=True, type=click.Path(path_type=Path), help="The fitted model.")
@click.option(
    "--literals-are-public",
    is_flag=True,
    help="You say that no literal of the file comes from private data: those of declared domains are kept.",
)
@dialect_flag
@out_flag("Where to write the translated queries.")
@force_flag
@json_flag
def translate(
    queries: Path,
    model_path: Path,
    literals_are_public: bool,
    dialect: str,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Put literals drawn from the model in the place of those of QUERIES.

    What cannot be translated is left out and listed. All but the literals is published as it is. A file that says
    `literals=real` is refused. `--json` prints the original literals as well: it is for you alone.

    \b
    Example: privbench workload translate mine.sql --model shop.model -o q.sql
    """
    from privbench.io.staging import check_target
    from privbench.model.file import load_model
    from privbench.workload.literal import QueryDialect
    from privbench.workload.sql import read_workload, write_workload
    from privbench.workload.translate import translate as translate_workload

    check_target(out, force=force)
    spoken = QueryDialect(dialect)
    model = load_model(model_path)
    original = read_workload(queries, dialect=spoken, schema=model.protection.schema)
    translation = translate_workload(original, model, literals_are_public=literals_are_public, dialect=spoken)
    write_workload(translation.workload, out, force=force)
    _show_translation(original, translation, model, out, dialect=spoken, as_json=as_json)


@click.command()
@click.argument("model_path", metavar="MODEL", type=click.Path(path_type=Path))
@click.argument("queries", type=click.Path(path_type=Path))
@dialect_flag
@json_flag
def estimate(model_path: Path, queries: Path, dialect: str, as_json: bool) -> None:
    """Estimate the cardinality of QUERIES straight from MODEL. Exit 2 if it can answer none of them.

    \b
    Example: privbench estimate shop.model q.sql
    """
    from privbench.errors import SpecError
    from privbench.model.file import load_model
    from privbench.workload.estimate import estimate_statements
    from privbench.workload.literal import QueryDialect
    from privbench.workload.sql import read_workload

    spoken = QueryDialect(dialect)
    model = load_model(model_path)
    original = read_workload(queries, dialect=spoken, schema=model.protection.schema)
    estimates = estimate_statements(model, original.statements)
    if all(e.rows is None for e in estimates):
        first = estimates[0]
        raise SpecError(
            f"{queries}: the model can answer none of its {len(estimates)} queries. Query {first.statement.number}: "
            f"{str(first.reason).rstrip('.')}. A model answers SELECT COUNT(*) with joins along foreign keys and "
            "conditions on single columns, joined by AND."
        )
    _show_estimates(estimates, dialect=spoken, as_json=as_json)


# -- what is printed --------------------------------------------------------------------------------------------------


def _show_generated(made: "Workload", out: Path, *, as_json: bool) -> None:
    """Print where queries were written, and whether they are private."""
    from privbench.workload.query import Literals

    is_private = made.literals is Literals.REAL
    warnings = [f"{out}: {_PRIVATE}"] if is_private else []
    if as_json:
        literals = None if made.literals is None else made.literals.value
        count = len(made.statements)
        print_json({"queries": str(out), "count": count, "literals": literals, "warnings": warnings})
        return
    whose = "real rows" if is_private else "the model or its synthetic data"
    echo(f"Wrote {out}: {len(made.statements)} queries, literals from {whose}.")
    warn(warnings)


def _show_translation(
    original: "Workload",
    translation: "Translation",
    model: "Model",
    out: Path,
    *,
    dialect: "QueryDialect",
    as_json: bool,
) -> None:
    """Print what became of each query: its literals, and its cardinality by the model before and after."""
    from privbench.workload.estimate import estimate_statements
    from privbench.workload.translate import Outcome

    counts = translation.counts
    if as_json:
        structure, changes = asdict(translation.structure), [_change_json(c) for c in translation.changes]
        print_json({"queries": str(out), "counts": counts, "published_as_it_is": structure, "changes": changes})
        return
    numbers = set(sorted(s.number for s in original.statements)[:MOST_SHOWN])
    shown = [s for s in original.statements if s.number in numbers]
    pairs = zip(translation.numbers, translation.workload.statements, strict=True)
    after = {number: statement for number, statement in pairs if number in numbers}
    old = {e.statement.number: e.rows for e in estimate_statements(model, shown)}
    new = dict(zip(after, (e.rows for e in estimate_statements(model, after.values())), strict=True))
    rows = [
        (s, [old[s.number], new.get(s.number)], _outcome([c for c in translation.changes if c.statement == s.number]))
        for s in shown
    ]
    _print_queries(("before", "after"), rows, dialect)
    if len(original.statements) > len(shown):
        echo(f"and {len(original.statements) - len(shown)} more, which `--json` lists")
    echo("before, after: rows of the query with the old and the new literals, by the model")
    left_out = [c for c in translation.changes if c.outcome is Outcome.LEFT_OUT]
    warn(f"query {c.statement} was left out: {_one_line(c.reason)}" for c in left_out)
    echo(
        f"literals translated: {counts[Outcome.TRANSLATED.value]}, kept: {counts[Outcome.KEPT.value]}; "
        f"queries left out: {len(left_out)}\n"
        f"as in the original: {translation.structure}\n"
        "tables, columns, operators and about how selective each condition is are\n"
        "published as they are: no epsilon covers them\n"
        f"Wrote {out}: {len(translation.workload.statements)} queries."
    )


def _told(estimate: "Estimate") -> str:
    """How sure an estimate is."""
    if estimate.rows is None:
        return f"cannot tell: {estimate.reason}"
    error = estimate.standard_error
    return "" if error is None else f"from samples of the model, standard error {error:,.1f}"


def _show_estimates(estimates: Sequence["Estimate"], *, dialect: "QueryDialect", as_json: bool) -> None:
    """Print the cardinality of each query, or why the model cannot tell it."""
    if as_json:
        print_json(
            {
                "estimates": [
                    {
                        "query": e.statement.number,
                        "tables": _tables(e.statement, dialect),
                        "real": e.statement.cardinality,
                        "estimate": e.rows,
                        "standard_error": e.standard_error,
                        "reason": e.reason,
                        "sql": e.statement.sql,
                    }
                    for e in estimates
                ]
            }
        )
        return
    rows = [(e.statement, [e.rows], _told(e)) for e in estimates]
    _print_queries(("estimate",), rows, dialect)


def _print_queries(
    figures: Sequence[str], rows: Sequence[tuple["Statement", Sequence[float | None], str]], dialect: "QueryDialect"
) -> None:
    """Print a line for each query; `real` only if the file states cardinalities."""
    has_real = any(statement.cardinality is not None for statement, _, _ in rows)
    counts = [*(["real"] if has_real else []), *figures]
    lines = []
    for statement, values, outcome in rows:
        numbers = [*([statement.cardinality] if has_real else []), *values]
        names = ", ".join(_tables(statement, dialect))
        lines.append((statement.number, _one_line(names), *map(_rows, numbers), _one_line(outcome)))
    print_table(("query", "tables", *counts, "what happened"), lines, right=counts)


def _outcome(changes: Iterable["Change"]) -> str:
    """What became of one query."""
    from privbench.workload.translate import Outcome

    made = list(changes)
    reason = next((c.reason for c in made if c.outcome is Outcome.LEFT_OUT), None)
    if reason is not None:
        return f"left out: {reason}"
    counted = Counter(c.outcome for c in made)
    parts = [f"{counted[o]} {o.value}" for o in (Outcome.TRANSLATED, Outcome.KEPT) if counted[o]]
    return ", ".join(parts) or "no literals"


def _tables(statement: "Statement", dialect: "QueryDialect") -> list[str]:
    from privbench.workload.statement import table_names

    if statement.query is not None:
        return [t.table for t in statement.query.tables]
    return list(table_names(statement.sql, dialect))


def _rows(value: float | None) -> str:
    """A number of rows to read: small ones with a digit after the point."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _one_line(text: str | None) -> str:
    return " ".join(printable(text or "").split("\n"))


def _change_json(change: "Change") -> dict[str, Any]:
    return {
        "statement": change.statement,
        "outcome": change.outcome.value,
        "column": change.column,
        "before": change.before,
        "after": change.after,
        "reason": change.reason,
    }
