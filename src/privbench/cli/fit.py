"""`privbench draft`, `fit` and `synth`: from a database to a spec, a model, a bundle; and what they print.

What `fit --dry-run` prints is in `planned`.
"""

# ruff: noqa: D301  (click reads the \b in docstrings as a character, which a raw string has not)

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import privbench
from privbench.cli.budget import budget_limit_flag, source_budget
from privbench.cli.flags import (
    SOURCE_HELP,
    delta_flag,
    draft_choices,
    draft_flags,
    dry_run_flag,
    engine_flags,
    epsilon_flag,
    force_flag,
    guessed_rows,
    json_flag,
    memory_flag,
    method_flag,
    original_flags,
    out_flag,
    rehearsal_flag,
    rows_flag,
    scale_flag,
    seed_flag,
    to_flag,
)
from privbench.cli.model import show_bundle, show_literals, show_model
from privbench.cli.output import (
    echo,
    listed,
    print_json,
    program,
    shell,
    warn,
)
from privbench.errors import PrivBenchError
from privbench.io.staging import check_target

if TYPE_CHECKING:
    from privbench.schema.domain import Origin
    from privbench.schema.spec import Spec


@click.command(epilog=SOURCE_HELP)
@click.argument("source")
@draft_flags
@out_flag("Where to write the spec, such as spec.yaml.")
@force_flag
@json_flag
def draft(source: str, unit: str | None, domains: str, out: Path, force: bool, as_json: bool, **flags: Any) -> None:
    """Draft a spec of SOURCE for you to review.

    \b
    Example: privbench draft shop/ --unit customer --public product -o spec.yaml
    CSV:     privbench draft export/ --unit customer --null NA --delimiter ';' -o spec.yaml
    """
    from privbench.cli.progress import progress_line

    check_target(out, force=force, is_file=True)
    choices = draft_choices(source, **flags)
    notes: dict[tuple[str, str], str] = {}
    with progress_line(quiet=as_json) as progress:
        spec = privbench.draft(source, unit=unit, domains=domains, tell=notes.__setitem__, progress=progress, **choices)
    privbench.write_spec(spec, out, force=force, notes=notes)
    _show_draft(spec, source, out, as_json=as_json)


@click.command(epilog=SOURCE_HELP)
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--source", help="Read this database instead of the one that the spec names.")
@epsilon_flag
@delta_flag
@method_flag
@budget_limit_flag
@memory_flag
@rehearsal_flag
@engine_flags
@out_flag("Where to write the model file.", required=False)
@dry_run_flag
@rows_flag
@force_flag
@json_flag
def fit(
    spec: Path,
    source: str | None,
    epsilon: str,
    delta: str,
    method: str | None,
    budget_limit: str | None,
    memory: str | None,
    rehearse: bool,
    engine: str,
    master: str | None,
    out: Path | None,
    dry_run: bool,
    rows: tuple[str, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Learn a model of the database that SPEC describes, spending epsilon.

    \b
    Example: privbench fit spec.yaml --epsilon 3.2 -o shop.model
    First:   privbench fit spec.yaml --epsilon 3.2 --dry-run --rows customer=50000
    Cluster: privbench fit spec.yaml --epsilon 3.2 --engine spark --source s3a://bucket/shop -o shop.model
    """
    if dry_run:
        from privbench.cli.planned import show_plan

        plan = privbench.plan(spec, epsilon=epsilon, delta=delta, method=method, rows=guessed_rows(rows))
        show_plan(plan, as_json=as_json)
        return
    if rows:
        raise click.UsageError("--rows is a guess for --dry-run: a fit counts the rows that it reads.")
    if out is None:
        raise click.UsageError("Missing option '-o' / '--out': where to write the model file (or --dry-run).")
    check_target(out, force=force, is_file=True)
    with _if_stopped("no model was written, so nothing was released."):
        from privbench.cli.forecast import tell_fit
        from privbench.cli.progress import progress_line
        from privbench.synthesis import keep_model

        if not as_json and engine == "local":  # what a cluster takes depends on the cluster
            tell_fit(spec, source, epsilon=epsilon, delta=delta, method=method, memory=memory)
        with progress_line(quiet=as_json) as progress:
            model = privbench.fit(
                spec,
                source=source,
                epsilon=epsilon,
                delta=delta,
                method=method,
                budget_limit=budget_limit,
                memory=memory,
                rehearse=rehearse,
                engine=engine,
                master=master,
                out=out,
                progress=progress,
            )
        keep_model(model, out, force=force)
    show_model(model, spent=source_budget(model.receipt), as_json=as_json)
    if not as_json:
        echo(f"Wrote {out}. Next: {program()} generate {shell(out)} -o bundle")


@click.command(epilog=SOURCE_HELP)
@click.argument("source")
@draft_flags
@epsilon_flag
@delta_flag
@method_flag
@budget_limit_flag
@memory_flag
@rehearsal_flag
@out_flag("The bundle's folder.")
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Where to keep the model, to generate from it again at no cost.  [default: OUT.model, beside the bundle]",
)
@scale_flag
@seed_flag
@to_flag
@original_flags
@force_flag
@json_flag
def synth(
    source: str, out: Path, model: Path | None, epsilon: str, format_: str, force: bool, as_json: bool, **flags: Any
) -> None:
    """Draft, fit and generate in one go: SOURCE in, a bundle out, and the model beside it.

    \b
    Example: privbench synth shop/ --unit customer --epsilon 3.2 -o bundle
    """
    names = ("unit", "domains", "delta", "method", "budget_limit", "memory", "rehearse", "scale", "seed")
    options = {name: flags.pop(name) for name in names}
    options |= {"original": not flags.pop("no_original"), "original_code": flags.pop("original_code")}
    with _if_stopped(_what_is_left(out, model)):
        from privbench.bundle import model_beside
        from privbench.cli.progress import progress_line

        kept = model or model_beside(out)
        choices = draft_choices(source, **flags)
        with progress_line(quiet=as_json) as progress:
            made = privbench.synth(
                source,
                out,
                epsilon=epsilon,
                model=kept,
                format=format_,
                force=force,
                progress=progress,
                **options,
                **choices,
            )
    show_bundle(out, made.model, made.rows, scale=options["scale"], model_path=kept, as_json=as_json)


def _what_is_left(out: Path, model: Path | None) -> str:
    return (
        f"no bundle was written. If the model is in {model or f'{out}.model'}, budget was spent, and "
        "`privbench generate` makes the bundle from it at no cost; else nothing was released."
    )


@contextmanager
def _if_stopped(note: str) -> Iterator[None]:
    """Add to whatever ends the block early, and is no error of our own, what that means for the promise."""
    try:
        yield
    except BaseException as stopped:
        if not isinstance(stopped, PrivBenchError) and not hasattr(stopped, "__notes__"):
            stopped.add_note(note)
        raise


# -- what draft prints -------------------------------------------------------------------------------------------------


def _show_draft(spec: "Spec", source: str, out: Path, *, as_json: bool) -> None:
    """Print what a drafted spec holds, what was left out and why, and what to review."""
    from privbench.model.notes import change_lines, column_changes, published_literals, unkept_checks
    from privbench.schema.domain import Origin
    from privbench.schema.original import UNREADABLE
    from privbench.schema.people import people_warnings

    from_data, left_out, with_tables = _of_origin(spec, Origin.DATA), _left_out(spec), _lost_keys(spec, source)
    to_find, to_declare = _wanted(spec)
    redrawn, unkept = _redrawn(spec), unkept_checks(spec)
    original = spec.original.left_out if spec.original is not None else ()
    unreadable = [str(each) for each in original if each.reason.startswith(UNREADABLE)]
    people = people_warnings(spec.protection())
    if as_json:
        domains = {"domains_from_data": from_data, "domains_to_find": to_find, "domains_to_declare": to_declare}
        columns = {
            "left_out": left_out,
            "left_out_with_dropped_tables": with_tables,
            "changed": [asdict(change) for change in column_changes(spec)],
            "public_keys_drawn_again": redrawn,
            "checks_not_kept": unkept,
            "literals": [asdict(each) for each in published_literals(spec)],
            "original_left_out": unreadable,
            "made_up": {name: table.made_up for name, table in spec.tables.items() if table.made_up},
            "warnings": people,
        }
        print_json({"spec": str(out), "unit": spec.unit, **domains, **columns})
        return
    echo(f"Wrote {out}: unit {listed([spec.unit or ''])}, tables {listed(_kept_tables(spec))}.")
    if left_out:
        shown = listed(f"{column} ({kind})" for column, kind in left_out.items())
        echo(f"Left out, as `drop: true` in the spec: {shown}.")
    if with_tables:
        echo(f"Left out, since their key points at what is dropped: {listed(with_tables)}.")
    for line in change_lines(spec):
        echo(f"Not as in the source: {listed([line])}.")
    for line in unkept:
        echo(f"A CHECK of the source that generated rows may break: {listed([line])}.")
    if made_up := [f"{name} ({table.made_up} rows)" for name, table in spec.tables.items() if table.made_up]:
        echo(f"Not read, but made up from the schema: {listed(made_up)}.")
    for line in unreadable:
        echo(f"Left out of the source's own DDL: {listed([line])}.")
    show_literals(spec)
    warn(people)
    if redrawn:
        echo(f"Public tables are copied, but for these keys, which are drawn again: {listed(redrawn)}.")
    if from_data:
        echo(
            f"{len(from_data)} domains were taken from the data. By keeping them you declare them public: review them."
        )
    if to_find:
        echo(f"{len(to_find)} domains will be found with budget. To declare what is public knowledge costs nothing.")
    if to_declare:
        echo(f"Before you fit: say in {out}, under each of these, `domain: {{values: [..], other: true}}`, `domain:")
        echo(
            f"{{text: [0, 8, 16]}}` or `drop: true`: {listed(to_declare)}. Or fit with `--delta 1e-9`: the strings that"
        )
        echo("many entities have are then found with budget, and published as they are.")
    echo(f"Next: {program()} fit {shell(out)} --epsilon 3.2 -o my.model")


def _kept_tables(spec: "Spec") -> list[str]:
    return [name for name, table in spec.tables.items() if not table.drop]


def _of_origin(spec: "Spec", origin: "Origin") -> list[str]:
    return [
        f"{table}.{column}"
        for table, words in spec.tables.items()
        for column, column_words in words.columns.items()
        if column_words.origin is origin
    ]


def _wanted(spec: "Spec") -> tuple[list[str], list[str]]:
    """The columns whose domain is to be found, and those that need one to be declared: text."""
    from privbench.fitting.domains import wanted_types
    from privbench.schema.types import Kind

    is_text = {f"{t}.{c}": of.kind is Kind.TEXT for (t, c), of in wanted_types(spec, spec.protection()).items()}
    return [name for name in is_text if not is_text[name]], [name for name in is_text if is_text[name]]


def _redrawn(spec: "Spec") -> list[str]:
    """The keys of public tables that are drawn again at scale 1."""
    from privbench.model.order import colliding_keys, redrawn_links

    protection = spec.protection()
    kept = not colliding_keys(spec, protection.schema.table(protection.entity))
    return [link.name for link in redrawn_links(protection, keep_entity_keys=kept)]


def _left_out(spec: "Spec") -> dict[str, str]:
    """The columns that are left out, with their types."""
    return {
        f"{table}.{column}": words.type
        for table, table_words in spec.tables.items()
        for column, words in table_words.columns.items()
        if words.drop
    }


def _lost_keys(spec: "Spec", source: str) -> list[str]:
    """The columns of tables that are kept which the spec does not have."""
    from privbench.io.given import with_options
    from privbench.io.open import open_source

    with open_source(with_options(source, spec.csv)) as opened:
        tables = opened.schema().tables
    return [
        f"{table.name}.{column.name}"
        for table in tables
        if not spec.tables[table.name].drop
        for column in table.columns
        if column.name not in spec.tables[table.name].columns
    ]
