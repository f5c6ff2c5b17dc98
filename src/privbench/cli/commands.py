"""The commands: each reads its flags, calls the function of the same name, and prints the result.

Results go to stdout; progress, warnings and errors to stderr. What a command needs is imported when it runs, so
that `--help` is quick.
"""

# ruff: noqa: D301  (click reads the \b in docstrings as a character, which a raw string has not)

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

import privbench
from privbench.cli.budget import budget, budget_limit_flag
from privbench.cli.compare import compare
from privbench.cli.flags import (
    SOURCE_HELP,
    delta_flag,
    draft_choices,
    draft_flags,
    dry_run_flag,
    epsilon_flag,
    force_flag,
    guessed_rows,
    json_flag,
    method_flag,
    out_flag,
    rows_flag,
    scale_flag,
    seed_flag,
    to_flag,
)
from privbench.cli.workload import estimate, evaluate, workload
from privbench.io.staging import check_target, remove_leftovers


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(privbench.__version__, prog_name="privbench")
def cli() -> None:
    """Publish a private relational database as a DBMS benchmark, under database-level differential privacy.

    \b
    Try:      privbench demo
    Your own: privbench synth FOLDER --unit customer --epsilon 3.2 -o bundle
    """
    remove_leftovers()


@cli.command()
@click.option("-o", "--out", default="privbench-demo", show_default=True, type=click.Path(path_type=Path))
@force_flag
def demo(out: Path, force: bool) -> None:
    """Make a bundle from a real database of baseball players.

    \b
    Example: privbench demo -o privbench-demo
    """
    from privbench.cli.demo import run_demo
    from privbench.cli.progress import progress_line

    with progress_line() as progress:
        text = run_demo(out, force=force, progress=progress)
    click.echo(text)


@cli.command(epilog=SOURCE_HELP)
@click.argument("source")
@draft_flags
@out_flag("Where to write the spec, such as spec.yaml.")
@force_flag
@json_flag
def draft(source: str, unit: str | None, domains: str, out: Path, force: bool, as_json: bool, **flags: Any) -> None:
    """Draft a spec of SOURCE for you to review.

    \b
    Example: privbench draft shop/ --unit customer --public product -o spec.yaml
    """
    from privbench.cli.drafted import show_draft
    from privbench.cli.progress import progress_line

    check_target(out, force=force)
    choices = draft_choices(source, **flags)
    with progress_line(quiet=as_json) as progress:
        spec = privbench.draft(source, unit=unit, domains=domains, progress=progress, **choices)
    privbench.write_spec(spec, out, force=force)
    show_draft(spec, source, out, as_json=as_json)


@cli.command(epilog=SOURCE_HELP)
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--source", help="Read this database instead of the one that the spec names.")
@epsilon_flag
@delta_flag
@method_flag
@budget_limit_flag
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
    check_target(out, force=force)
    with _if_stopped("no model was written, so nothing was released."):
        from privbench.cli.output import echo, program, shell
        from privbench.cli.progress import progress_line
        from privbench.cli.show import show_model

        with progress_line(quiet=as_json) as progress:
            model = privbench.fit(
                spec,
                source=source,
                epsilon=epsilon,
                delta=delta,
                method=method,
                budget_limit=budget_limit,
                out=out,
                progress=progress,
            )
        privbench.save_model(model, out, force=force)
    show_model(model, as_json=as_json)
    if not as_json:
        echo(f"Wrote {out}. Next: {program()} generate {shell(out)} -o bundle")


@cli.command()
@click.argument("model", type=click.Path(path_type=Path))
@out_flag("The bundle's folder.")
@scale_flag
@seed_flag
@to_flag
@force_flag
@json_flag
def generate(model: Path, out: Path, scale: float, seed: int | None, format_: str, force: bool, as_json: bool) -> None:
    """Write a synthetic database from MODEL; costs no privacy.

    \b
    Example: privbench generate shop.model -o bundle --scale 10 --seed 7 --to duckdb
    """
    from privbench.cli.bundle import show_bundle
    from privbench.cli.progress import progress_line

    check_target(out, force=force)
    loaded = privbench.load_model(model)
    with progress_line(quiet=as_json) as progress:
        rows = privbench.generate(loaded, out, scale=scale, seed=seed, format=format_, force=force, progress=progress)
    show_bundle(out, loaded, rows, scale=scale, fitted=False, as_json=as_json)


@cli.command(epilog=SOURCE_HELP)
@click.argument("source")
@draft_flags
@epsilon_flag
@delta_flag
@method_flag
@budget_limit_flag
@out_flag("The bundle's folder.")
@scale_flag
@seed_flag
@to_flag
@force_flag
@json_flag
def synth(source: str, out: Path, epsilon: str, format_: str, force: bool, as_json: bool, **flags: Any) -> None:
    """Draft, fit and generate in one go: SOURCE in, a bundle out.

    \b
    Example: privbench synth shop/ --unit customer --epsilon 3.2 -o bundle
    """
    given = {name: flags.pop(name) for name in ("unit", "domains", "delta", "method", "budget_limit", "scale", "seed")}
    with _if_stopped("no bundle was written, so nothing was released."):
        from privbench.cli.bundle import show_bundle
        from privbench.cli.progress import progress_line

        choices = draft_choices(source, **flags)
        with progress_line(quiet=as_json) as progress:
            model, rows = privbench.synth(
                source, out, epsilon=epsilon, format=format_, force=force, progress=progress, **given, **choices
            )
    show_bundle(out, model, rows, scale=given["scale"], fitted=True, as_json=as_json)


@cli.command()
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
    from privbench.cli.show import show_ledger, show_model, show_spec, show_tree

    if ledger + spec + (tree is not None) > 1:
        raise click.UsageError("--ledger, --tree and --spec show different things. Choose one of them.")
    loaded = privbench.load_model(model)
    if spec:
        show_spec(loaded, as_json=as_json)
    elif tree is not None:
        show_tree(loaded, tree, as_json=as_json)
    elif ledger:
        show_ledger(loaded.receipt, as_json=as_json)
    else:
        show_model(loaded, as_json=as_json)


@cli.command()
@click.argument("path", type=click.Path(path_type=Path))
@json_flag
def verify(path: Path, as_json: bool) -> None:
    """Check that what was spent adds up to what is promised, in a bundle, a model file or a receipt.json.

    Exit 0 if it does (`verified`, or `conditional` on the domains it names), 1 if not.

    \b
    Example: privbench verify bundle
    """
    from privbench.cli.show import show_verdict

    verdict = privbench.verify(path)
    show_verdict(verdict, as_json=as_json)
    if verdict.status in ("unverified", "failed"):
        sys.exit(1)


for _command in (workload, estimate, evaluate, compare, budget):
    cli.add_command(_command)


def run() -> None:
    """Run the command that the arguments name. Wrong use is told with exit 2; other errors are the caller's."""
    try:
        cli.main(standalone_mode=False)
    except click.exceptions.Abort as stopped:
        raise stopped.__cause__ or KeyboardInterrupt from None
    except click.ClickException as error:
        error.show()
        sys.exit(2)


@contextmanager
def _if_stopped(note: str) -> Iterator[None]:
    """Add to whatever ends the block early what that means for the promise."""
    try:
        yield
    except BaseException as stopped:
        stopped.add_note(note)
        raise
