"""`privbench generate`, `show` and `verify`: what is made of a model and what it holds; and what they print."""

# ruff: noqa: D301  (click reads the \b in docstrings as a character, which a raw string has not)

import sys
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import privbench
from privbench.cli.budget import source_budget
from privbench.cli.flags import (
    engine_flags,
    force_flag,
    json_flag,
    original_flags,
    out_flag,
    scale_flag,
    seed_flag,
    to_server_flag,
)
from privbench.cli.output import (
    REPLACING,
    decimal,
    echo,
    listed,
    print_json,
    print_table,
    program,
    shell,
    shortened,
    warn,
)
from privbench.io.staging import check_target

if TYPE_CHECKING:
    from privbench.generation.generate import LoadedDatabase
    from privbench.model.model import Model
    from privbench.schema.spec import Spec
    from privbench_verify.receipt import Verdict

NODES = ("sums", "leaves", "in_cliques")
"""What a line of the table tells of a network."""


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@out_flag("The bundle's folder. With `--to URL` it holds no data, and can be left out.", required=False)
@scale_flag
@seed_flag
@to_server_flag
@click.option(
    "--replace", is_flag=True, help="With `--to URL`: drop the tables, views and types of the same names first."
)
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    metavar="N",
    help="Write each table as a folder of N files, each the same wherever it is made.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="P",
    help="Make only these partitions, numbered from 0, such as 3,7-9. May be repeated. A later run with `--resume` "
    "completes the bundle.",
)
@click.option("--resume", is_flag=True, help="Go on with the partitions that are there, and complete the bundle.")
@original_flags
@engine_flags
@force_flag
@json_flag
def generate(
    model: Path,
    out: Path | None,
    scale: float,
    seed: int | None,
    format_: str,
    replace: bool,
    partitions: int | None,
    only: tuple[str, ...],
    resume: bool,
    no_original: bool,
    original_code: bool,
    engine: str,
    master: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write a synthetic database from MODEL; costs no privacy.

    With a URL it is loaded into a server in one transaction, with keys, indexes, views and what else the source has.
    How much of the source's own DDL will run is told first. A model may come from anyone: what is code in it is left
    out, unless you ask for it.

    \b
    Example: privbench generate shop.model -o bundle --scale 10 --seed 7 --to duckdb
    Example: privbench generate shop.model --to postgresql://ann@localhost/shop --replace
    Example: privbench generate shop.model -o large --scale 1000 --seed 7 --partitions 64 --only 0-15
    """
    from privbench.cli.forecast import tell_generate
    from privbench.cli.progress import progress_line
    from privbench.generation.generate import check_request
    from privbench.generation.generate import generate as write_bundle  # `privbench.generate` loads all of fitting, too
    from privbench.io.urls import scheme_of

    numbers = partition_numbers(only)
    if out is not None and partitions is None:
        check_target(out, force=force)
    loaded = privbench.load_model(model)
    own = {"original": not no_original, "original_code": original_code}
    definitions = _tell_original(loaded, **own, quiet=as_json)
    if scheme_of(format_) is not None:
        if partitions is not None or engine != "local":
            raise click.UsageError("`--partitions` and `--engine` are for files, not for databases on a server.")
        from privbench.generation.generate import load_database

        with progress_line(quiet=as_json) as progress:
            database = load_database(
                loaded, format_, out, scale=scale, seed=seed, force=force, replace=replace, progress=progress, **own
            )
        _show_database(
            database, loaded, scale=scale, model_path=model, out=out, definitions=definitions, as_json=as_json
        )
        return
    if out is None or replace:
        raise click.UsageError(
            "`--replace` is for databases on a server." if replace else "`-o PATH` is missing: where the bundle goes."
        )
    check_request(scale, seed)
    tell_generate(loaded, out, scale=scale, form=format_, quiet=as_json)
    with progress_line(quiet=as_json) as progress:
        rows = write_bundle(
            loaded,
            out,
            scale=scale,
            seed=seed,
            format=format_,
            force=force,
            partitions=partitions,
            only=numbers,
            resume=resume,
            engine=engine,
            master=master,
            progress=progress,
            **own,
        )
    if partitions is not None and numbers is not None:
        _show_partitions(out, loaded, numbers, scale=scale, count=partitions, as_json=as_json)
        return
    show_bundle(out, loaded, rows or {}, scale=scale, definitions=definitions, as_json=as_json)


def _tell_original(model: "Model", *, original: bool, original_code: bool, quiet: bool) -> dict[str, dict[str, int]]:
    """Say what of the source's own DDL will run, before it does; returns the counts."""
    from privbench.generation.bundle import published_schema
    from privbench.generation.generate import original_use
    from privbench.io.load_scripts import definition_counts, own_ddl

    schema = published_schema(model, original_use(original=original, original_code=original_code))
    own = own_ddl(schema)
    if not quiet and (own.runs or own.held):
        echo(f"{listed([own.line()])}.")
        if own.runs:
            echo("`--no-original` leaves it out.")
        if own.held:
            echo(
                "`--original-code` runs the code too: only if you trust whoever made the model as you trust a program."
            )
    return definition_counts(schema)


def partition_numbers(texts: Sequence[str]) -> list[int] | None:
    """The values of `--only`; None if there are none.

    >>> partition_numbers(["3,7-9", "1"])
    [1, 3, 7, 8, 9]
    """
    from privbench.generation.partitions import MOST_PARTITIONS

    numbers: set[int] = set()
    for text in (part.strip() for value in texts for part in value.split(",")):
        first, dash, last = text.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()) or not text.isascii():
            raise click.UsageError(f"--only {text}: write numbers and ranges of partitions, such as 3,7-9.")
        if int(last or first) >= MOST_PARTITIONS:  # before such a range is counted out
            raise click.UsageError(f"--only {text}: there are at most {MOST_PARTITIONS:,} partitions.")
        if not (named := range(int(first), int(last or first) + 1)):
            raise click.UsageError(f"--only {text}: a range goes from the smaller number to the larger one.")
        numbers |= set(named)
    return sorted(numbers) if texts else None


def _show_partitions(
    out: Path, model: "Model", numbers: Sequence[int], *, scale: float, count: int, as_json: bool
) -> None:
    """Print which partitions are there, and how to go on."""
    from privbench.generation.partitions import partitions_there, why_together

    there, together = partitions_there(out), why_together(model, scale=scale, partitions=count)
    if as_json:
        made = {"partitions": count, "made": list(numbers), "there": there, "made_together": together}
        print_json({"bundle": None, "folder": str(out), **made})
        return
    for line in together:
        echo(f"All rows had to be made, to write those of some partitions. {listed([line])}.")
    echo(f"Wrote {len(numbers)} of {count} partitions to {out / 'partitions'}. Still to be made: {count - len(there)}.")
    echo("When all are there, or copied there, the same command with `--resume` instead of `--only` makes the bundle.")


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--ledger", is_flag=True, help="What the budget was spent on.")
@click.option("--tree", metavar="TABLE", help="The network of a table.")
@click.option("--spec", is_flag=True, help="The spec, for another fit: what was found with budget cites this model.")
@json_flag
def show(model: Path, ledger: bool, tree: str | None, spec: bool, as_json: bool) -> None:
    """Show what MODEL holds: its tables, or its ledger, its spec, or one table's network.

    \b
    Example: privbench show shop.model --tree customer
    """
    if ledger + spec + (tree is not None) > 1:
        raise click.UsageError("--ledger, --tree and --spec show different things. Choose one of them.")
    loaded = privbench.load_model(model)
    if spec:
        _show_spec(loaded, as_json=as_json)
    elif tree is not None:
        _show_tree(loaded, tree, as_json=as_json)
    elif ledger:
        _show_ledger(loaded.receipt, as_json=as_json)
    else:
        show_model(loaded, as_json=as_json)


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@json_flag
def verify(path: Path, as_json: bool) -> None:
    """Check that what was spent adds up to what is promised, in a bundle, a model file or a receipt.json.

    The scripts of a bundle are made again and compared. What runs of the source's own DDL, and which of its definitions
    hold literals, is told among the assumptions.

    Exit 0 if it does (`verified`, or `conditional` on the domains it names), 1 if not.

    \b
    Example: privbench verify bundle
    """
    verdict = privbench.verify(path)
    _show_verdict(verdict, as_json=as_json)
    if verdict.status in ("unverified", "failed"):
        sys.exit(1)


def _show_database(
    database: "LoadedDatabase",
    model: "Model",
    *,
    scale: float,
    model_path: Path,
    out: Path | None,
    definitions: Mapping[str, Mapping[str, int]],
    as_json: bool,
) -> None:
    """Print what was loaded into a server, what it goes without, and where its receipt is."""
    from dataclasses import asdict

    from privbench.generation.bundle import redrawn_keys, rule_lines
    from privbench.generation.sizes import lost_rows, planned_rows
    from privbench.schema.original import left_out_lines

    rules = {name: asdict(counts) for name, counts in database.rules.items()}
    lost = {name: counts["left_out"] for name, counts in rules.items()}
    warnings = lost_rows(model, planned_rows(model, scale), database.rows, lost)
    redrawn = redrawn_keys(model, scale)
    left_out = left_out_lines(database.loaded.left_out)
    if as_json:
        print_json(
            {
                "database": database.location,
                "bundle": None if out is None else str(out),
                "rows": database.rows,
                "seed": database.seed,
                "model": database.model,
                "replaced": list(database.loaded.replaced),
                "left_out": left_out,
                "definitions": definitions,
                "public_keys_drawn_again": list(redrawn),
                "rules": rules,
                "warnings": warnings,
            }
        )
        return
    echo(f"Loaded {database.location}" + (f" and wrote {out}" if out is not None else ""))
    print_table(("table", "rows"), database.rows.items())
    for name in database.loaded.replaced:
        echo(f"Replaced: {listed([name])}.")
    for line in left_out:
        echo(f"Left out: {listed([line])}.")
    if redrawn:
        echo(f"Public tables are copied, but for these keys, which are drawn again: {listed(redrawn)}.")
    for line in rule_lines(rules):
        echo(f"Rules of {listed([line])}.")
    warn(warnings)
    if out is None:
        echo(f"Its receipt is in the model (SHA-256 {database.model}): publish {model_path} with it, or give `-o`.")
    echo(f"The same rows again: --seed {database.seed}. Next: {program()} verify {shell(out or model_path)}")


def show_bundle(
    out: Path,
    model: "Model",
    rows: Mapping[str, int],
    *,
    scale: float,
    definitions: Mapping[str, Mapping[str, int]] | None = None,
    model_path: Path | None = None,
    as_json: bool,
) -> None:
    """Print the rows of a new bundle, and warn of rows that were lost.

    `model_path` is where the model was just written, right after the fit: then also conditions, noise, and columns that
    are not as in the source.
    """
    from dataclasses import asdict

    from privbench.generation.bundle import read_rule_counts, redrawn_keys, rule_lines
    from privbench.generation.sizes import lost_rows, planned_rows
    from privbench.model.notes import change_lines, column_changes, published_literals, unkept_checks

    fitted, rules = model_path is not None, read_rule_counts(out)
    left_out = {name: counts["left_out"] for name, counts in rules.items()}
    warnings = [*(_of_fit(model) if fitted else ()), *lost_rows(model, planned_rows(model, scale), rows, left_out)]
    redrawn = redrawn_keys(model, scale)
    if as_json:
        kept: dict[str, Any] = {"model": str(model_path), **source_budget(model.receipt)} if fitted else {}
        kept |= {"literals": [asdict(each) for each in published_literals(model.spec)]} if fitted else {}
        kept |= {"definitions": definitions} if definitions is not None else {}
        changes = {
            "changed": [asdict(change) for change in column_changes(model.spec)],
            "public_keys_drawn_again": list(redrawn),
            "rules": rules,
        }
        print_json({"bundle": str(out), **kept, "rows": rows, **changes, "warnings": warnings})
        return
    echo(f"Wrote {out}" + (f" and the model, {model_path}" if fitted else ""))
    print_table(("table", "rows"), rows.items())
    if redrawn:
        echo(f"Public tables are copied, but for these keys, which are drawn again: {listed(redrawn)}.")
    for line in rule_lines(rules):
        echo(f"Rules of {listed([line])}.")
    if fitted:
        show_literals(model.spec)
        for line in change_lines(model.spec):
            echo(f"Not as in the source: {listed([line])}.")
        for line in unkept_checks(model.spec):
            echo(f"A CHECK of the source that generated rows may break: {listed([line])}.")
        if model.receipt["condition"]:
            echo(shortened(model.receipt["condition"]))
    warn(warnings)
    echo(f"Next: {program()} verify {shell(out)}")


def _of_fit(model: "Model") -> list[str]:
    from privbench.fitting.warnings import fit_warnings

    return fit_warnings(model)


def show_model(model: "Model", *, spent: Mapping[str, Any] | None = None, as_json: bool) -> None:
    """Print the tables of a model, what it promises, and warnings; right after a fit also the sum of its source."""
    from dataclasses import asdict

    from privbench.fitting.computed import computed_columns
    from privbench.fitting.warnings import fit_warnings
    from privbench.generation.bundle import redrawn_keys
    from privbench.model.notes import found_lists, published_literals
    from privbench.schema.people import people_in

    promise = {key: model.receipt[key] for key in ("epsilon", "delta", "neighbours", "condition", "stamp")}
    tables = [{"table": name, **_summary(model, name)} for name in model.protection.order]
    warnings = fit_warnings(model)
    lists, computed = found_lists(model), computed_columns(model.protection)
    redrawn = redrawn_keys(model, scale=1)
    copied = [name for name in model.public if name not in model.protection.made_up]
    people = people_in(model.protection)
    if as_json:
        words = {"unit": model.protection.entity, "tables": tables, "public": copied, "lists_found": lists}
        words |= {"made_up": dict(model.protection.made_up), "people": people}
        words |= {"computed": list(computed), "public_keys_drawn_again": list(redrawn)}
        words |= {"literals": [asdict(each) for each in published_literals(model.spec)]}
        print_json({**promise, **words, **(spent or {}), "warnings": warnings})
        return
    what = f"{REPLACING[promise['neighbours']]} one entity of {listed([model.protection.entity])}"
    echo(f"{_promised(model.receipt)} for {what}")
    if promise["stamp"]:
        echo(promise["stamp"])
    if promise["condition"]:
        echo(shortened(promise["condition"]))
    click.echo()
    nodes = [kind for kind in NODES if any(table[kind] for table in tables)]
    head = ("table", "role", "rows", "size", "per entity", "columns", "keys", *(n.replace("_", " ") for n in nodes))
    print_table(head, (_cells(table, nodes) for table in tables))
    if copied:
        echo(f"public, copied: {listed(copied)}")
    if people:
        echo(
            f"public, with columns that look like people: {listed(f'{t}.{c}' for t, cs in people.items() for c in cs)}"
        )
    if made_up := model.protection.made_up:
        echo(f"not read, but made up: {listed(f'{name} ({rows} rows)' for name, rows in made_up.items())}")
    if redrawn:
        echo(f"but for these keys of public tables, which are drawn again: {listed(redrawn)}")
    if computed:
        echo(f"computed: {listed(computed)}")
    if lists:
        shown = listed(f"{column} ({count})" for column, count in lists.items())
        echo(f"strings found with budget, published as they are: {shown}")
    show_literals(model.spec)
    warn(warnings)


def show_literals(spec: "Spec") -> None:
    """Print which definitions hold literals, by kind, with the first names."""
    from privbench.model.notes import published_literals
    from privbench.schema.literals import MOST_NAMED, by_kind

    kinds = by_kind(published_literals(spec))
    if not kinds:
        return
    echo("Definitions that hold literals; all of them are published word by word:")
    rows = []
    for kind, holders in kinds.items():
        more = ["..."] if len(holders) > MOST_NAMED else []
        names = listed([*(holder.name for holder in holders[:MOST_NAMED]), *more])
        rows.append((kind, len(holders), sum(holder.literals for holder in holders), names))
    print_table(("kind", "definitions", "literals", "such as"), rows)


def _show_spec(model: "Model", *, as_json: bool) -> None:
    """Print the spec of a model as `fit` takes it."""
    from privbench.schema.spec import spec_text

    spec = model.spec.for_reuse(model.receipt)
    if as_json:
        print_json(spec.model_dump(mode="json", by_alias=True, exclude_none=True))
        return
    click.echo(spec_text(spec), nl=False)


def _show_tree(model: "Model", table: str, *, as_json: bool) -> None:
    """Print the network of a table."""
    from privbench.errors import SpecError
    from privbench.schema.choices import closest, spelled_like
    from privbench.spn.draw import tree_text
    from privbench.spn.feature_names import COMPONENT, shown

    table = spelled_like(table, model.tables, option="--tree")
    if table not in model.tables:
        raise SpecError(f"--tree {table}: the model has no network of it. {closest(table, model.tables)}")
    labels = {column: codec.labels() for column, codec in model.codecs[table].items()}
    text = tree_text(model.tables[table].network, labels=labels)
    if as_json:
        print_json({"table": table, "tree": text.splitlines()})
        return
    for line in text.splitlines():
        echo(line)
    if COMPONENT in model.tables[table].network.sizes:
        echo(f"{shown(COMPONENT)}: which part of the table a row is of. The rows of a part have keys drawn together.")


def _show_ledger(receipt: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what the budget was spent on."""
    ledger = receipt["ledger"]
    if as_json:
        print_json(ledger)
        return
    budget = receipt["budget"]
    measure, amount = budget["measure"], Fraction(budget["amount"])
    if measure == "rho":
        click.echo(f"{_promised(receipt)}: follows from rho {float(amount):.6g} (zCDP, {receipt['neighbours']})")
        if thresholds := Fraction(budget["thresholds"]):
            spent = f"{float(Fraction(ledger['delta'])):.3g} of {float(thresholds):.3g}"
            click.echo(f"of delta, thresholds of frequent values spent {spent}; rho implies epsilon with the rest")
    else:
        factor = 2 if receipt["neighbours"] == "replace" else 1
        click.echo(f"{_promised(receipt)} = {factor} x {float(amount):g} (adding or removing an entity)")
    print_table(("spent on", "draws", measure, "share %"), _spending(ledger["nodes"], measure, amount))


def _show_verdict(verdict: "Verdict", *, as_json: bool) -> None:
    """Print what a receipt is worth, problems first, and what it takes for granted."""
    from privbench_verify.receipt import MEANING

    if as_json:
        print_json(
            {
                "status": verdict.status,
                "epsilon": None if verdict.epsilon is None else str(verdict.epsilon),
                "delta": None if verdict.delta is None else str(verdict.delta),
                "spent": None if verdict.spent is None else str(verdict.spent),
                "condition": verdict.condition,
                "problems": list(verdict.problems),
                "assumptions": list(verdict.assumptions),
                "meaning": MEANING,
            }
        )
        return
    click.echo(f"status: {verdict.status}")
    for problem in verdict.problems:
        echo(f"problem: {problem}")
    if verdict.epsilon is not None and verdict.spent is not None:
        chance = f" with delta {float(verdict.delta):g}" if verdict.delta else ""
        click.echo(f"epsilon promised {float(verdict.epsilon):g}{chance}, spent {float(verdict.spent):.6g}")
    if verdict.condition:
        echo(shortened(verdict.condition))
    for assumption in verdict.assumptions:
        echo(f"assumed: {assumption}")
    if verdict.status != "failed":
        echo(MEANING)


def _promised(receipt: Mapping[str, Any]) -> str:
    """Epsilon, and delta where there is one."""
    delta = decimal(receipt["delta"])
    return f"epsilon {decimal(receipt['epsilon']):g}" + (f", delta {delta:g}" if delta else "")


def _spending(nodes: list[dict[str, Any]], measure: str, budget: Fraction) -> Iterator[tuple[str, int, float, float]]:
    """The scopes and queries right below the root, with what each cost and how many draws it took."""
    from privbench.privacy.describe import describe

    draws = [node.get("draws", 0) for node in nodes]
    for at in range(len(nodes) - 1, 0, -1):
        draws[nodes[at]["parent"]] += draws[at]
    for at, node in enumerate(nodes):
        if node["parent"] == 0:
            cost = Fraction(node[measure] if node["kind"] == "event" else node["total"])
            what = describe(node["query"]) if node["kind"] == "event" else node["label"]
            if cost:
                yield what, draws[at], float(cost), float(100 * cost / budget)


def _cells(summary: Mapping[str, Any], nodes: Sequence[str]) -> tuple[object, ...]:
    """A line of the table: how sure its size is, in words, and how many nodes its network has of each kind."""
    from privbench.model.notes import size_words

    limit = "any" if summary["per_entity"] is None else summary["per_entity"]
    start = (
        *(summary[name] for name in ("table", "role", "rows")),
        size_words(summary["rows_error"], summary["rows_low"], summary["rows_high"]),
    )
    return (*start, limit, *(summary[name] for name in ("columns", "keys", *nodes)))


def _rounded(rows: float | None) -> int | None:
    return None if rows is None else round(rows)


def _summary(model: "Model", name: str) -> dict[str, Any]:
    from privbench.spn.clique import CliqueTree
    from privbench.spn.feature_names import COMPONENT
    from privbench.spn.nodes import Leaf, Product, Sum, walk

    nodes = list(walk(model.tables[name].network))
    unit = model.receipt["unit"]["tables"][name]
    return {
        "role": unit["role"],
        "rows": round(model.tables[name].rows),
        "rows_error": model.tables[name].rows_error,
        "rows_low": _rounded(model.tables[name].rows_low),
        "rows_high": _rounded(model.tables[name].rows_high),
        "per_entity": unit["rows_per_entity"],
        "columns": len(model.codecs[name]),
        "sums": sum(isinstance(n, Sum) for n in nodes),
        "products": sum(isinstance(n, Product) for n in nodes),
        "leaves": sum(isinstance(n, Leaf) and n.column != COMPONENT for n in nodes),
        "in_cliques": sum(len(n.columns) for n in nodes if isinstance(n, CliqueTree)),
        "keys": len(model.tables[name].links),
    }
