"""What `workload` and `estimate` print: a line for each query that fits 80 columns, or JSON."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from privbench.cli.output import echo, print_json, printable, warn
from privbench.model.model import Model
from privbench.workload.estimate import Estimate, estimate_statements
from privbench.workload.literal import QueryDialect
from privbench.workload.query import Literals, Statement, Workload
from privbench.workload.statement import table_names
from privbench.workload.translate import Change, Outcome, Translation

MOST_SHOWN = 40
"""Queries of a translation that are shown; `--json` has them all."""
_TABLES_WIDTH = 24
_PRIVATE = "its literals come from real rows: the file is private. Make one from a model or a bundle to publish it."


def show_generated(made: Workload, out: Path, *, as_json: bool) -> None:
    """Print where queries were written, and whether they are private."""
    is_private = made.literals is Literals.REAL
    warnings = [f"{out}: {_PRIVATE}"] if is_private else []
    if as_json:
        literals = None if made.literals is None else made.literals.value
        count = len(made.statements)
        print_json({"queries": str(out), "count": count, "literals": literals, "warnings": warnings})
        return
    whose = "real rows" if is_private else "the model"
    echo(f"Wrote {out}: {len(made.statements)} queries, literals from {whose}.")
    warn(warnings)


def show_translation(
    original: Workload, translation: Translation, model: Model, out: Path, *, dialect: QueryDialect, as_json: bool
) -> None:
    """Print what became of each query: its literals, and its cardinality by the model before and after."""
    counts = translation.counts
    if as_json:
        print_json({"queries": str(out), "counts": counts, "changes": [_change_json(c) for c in translation.changes]})
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
    warn(f"query {c.statement} was left out: it {_one_line(c.reason)}" for c in left_out)
    echo(
        f"literals translated: {counts[Outcome.TRANSLATED.value]}, kept: {counts[Outcome.KEPT.value]}; "
        f"queries left out: {len(left_out)}\nWrote {out}: {len(translation.workload.statements)} queries."
    )


def show_estimates(estimates: Sequence[Estimate], *, dialect: QueryDialect, as_json: bool) -> None:
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
                        "reason": e.reason,
                        "sql": e.statement.sql,
                    }
                    for e in estimates
                ]
            }
        )
        return
    rows = [(e.statement, [e.rows], "" if e.rows is not None else f"cannot tell: {e.reason}") for e in estimates]
    _print_queries(("estimate",), rows, dialect)


def _print_queries(
    figures: Sequence[str], rows: Sequence[tuple[Statement, Sequence[float | None], str]], dialect: QueryDialect
) -> None:
    """Print a line for each query; `real` only if the file states cardinalities."""
    has_real = any(statement.cardinality is not None for statement, _, _ in rows)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("query", justify="right", no_wrap=True)
    table.add_column("tables", overflow="fold", max_width=_TABLES_WIDTH)
    for name in (*(["real"] if has_real else []), *figures):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what happened", overflow="fold")
    for statement, values, outcome in rows:
        numbers = [*([statement.cardinality] if has_real else []), *values]
        names = ", ".join(_tables(statement, dialect))
        cells = [str(statement.number), names, *map(_rows, numbers), outcome]
        table.add_row(*(Text(_one_line(cell)) for cell in cells))
    Console().print(table)


def _outcome(changes: Iterable[Change]) -> str:
    """What became of one query."""
    made = list(changes)
    reason = next((c.reason for c in made if c.outcome is Outcome.LEFT_OUT), None)
    if reason is not None:
        return f"left out: {reason}"
    counted = Counter(c.outcome for c in made)
    parts = [f"{counted[o]} {o.value}" for o in (Outcome.TRANSLATED, Outcome.KEPT) if counted[o]]
    return ", ".join(parts) or "no literals"


def _tables(statement: Statement, dialect: QueryDialect) -> list[str]:
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


def _change_json(change: Change) -> dict[str, Any]:
    return {
        "statement": change.statement,
        "outcome": change.outcome.value,
        "column": change.column,
        "before": change.before,
        "after": change.after,
        "reason": change.reason,
    }
