"""The command line: each command reads its flags, calls the function of the same name, and prints the result.

Results go to stdout, progress and errors to stderr. Exit 0: good; 1: a check failed; 2: wrong use or bad input;
130: interrupted.
"""

# ruff: noqa: D301  (click reads the \b in docstrings as a character, which a raw string has not)

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from privbench import __version__
from privbench.cli.demo import run_demo
from privbench.cli.flags import (
    SOURCE_HELP,
    draft_choices,
    draft_flags,
    epsilon_flag,
    force_flag,
    json_flag,
    method_flag,
    out_flag,
    scale_flag,
    seed_flag,
    to_flag,
)
from privbench.cli.output import echo, print_json, print_table, printable
from privbench.cli.progress import progress_line
from privbench.cli.show import show_ledger, show_model, show_tree
from privbench.errors import PrivBenchError
from privbench.io.base import Format
from privbench.io.staging import check_target
from privbench.pipeline.check import verify as verify_path
from privbench.pipeline.draft import draft as draft_spec
from privbench.pipeline.fit import fit as fit_model
from privbench.pipeline.generate import generate as generate_bundle
from privbench.pipeline.model_file import load_model, save_model
from privbench.pipeline.synth import synth as synth_bundle
from privbench.schema.domain import Origin
from privbench.schema.spec import Spec, read_spec, write_spec


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="privbench")
def cli() -> None:
    """Publish a private relational database as a DBMS benchmark, under database-level differential privacy.

    \b
    Try:      privbench demo
    Your own: privbench synth FOLDER --unit customer --epsilon 3.2 --domains data -o bundle
    """


@cli.command()
@click.option("-o", "--out", default="privbench-demo", show_default=True, type=click.Path(path_type=Path))
@force_flag
def demo(out: Path, force: bool) -> None:
    """Make a bundle from a real database of baseball players.

    \b
    Example: privbench demo -o privbench-demo
    """
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
    Example: privbench draft shop/ --unit customer --domains data --public product -o spec.yaml
    """
    choices = draft_choices(source, **flags)
    with progress_line(quiet=as_json) as progress:
        spec = draft_spec(source, unit=unit, domains=domains, progress=progress, **choices)
    write_spec(spec, out, force=force)
    taken, left_out = _from_data(spec), _left_out(spec)
    if as_json:
        print_json({"spec": str(out), "unit": spec.unit, "domains_from_data": taken, "left_out": left_out})
        return
    echo(f"Wrote {out}: unit {spec.unit}, tables {', '.join(n for n, t in spec.tables.items() if not t.drop)}.")
    if left_out:
        listed = ", ".join(f"{column} ({kind})" for column, kind in left_out.items())
        echo(f"Left out, as `drop: true` in the spec: {listed}.")
    click.echo(f"{len(taken)} domains were taken from the data. By keeping them you declare them public: review them.")
    echo(f"Next: privbench fit {_shell(out)} --epsilon 3.2 -o my.model")


@cli.command(epilog=SOURCE_HELP)
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--source", help="Read this database instead of the one that the spec names.")
@epsilon_flag
@method_flag
@out_flag("Where to write the model file.")
@force_flag
@json_flag
def fit(
    spec: Path, source: str | None, epsilon: str, method: str | None, out: Path, force: bool, as_json: bool
) -> None:
    """Learn a model of the database that SPEC describes, spending epsilon.

    \b
    Example: privbench fit spec.yaml --epsilon 3.2 -o shop.model
    """
    check_target(out, force=force)
    with progress_line(quiet=as_json) as progress:
        model = fit_model(read_spec(spec), source=source, epsilon=epsilon, method=method, progress=progress)
    save_model(model, out, force=force)
    show_model(model, as_json=as_json)
    if not as_json:
        echo(f"Wrote {out}. Next: privbench generate {_shell(out)} -o bundle")


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
    loaded = load_model(model)
    with progress_line(quiet=as_json) as progress:
        rows = generate_bundle(
            loaded, out, scale=scale, seed=seed, format=Format(format_), force=force, progress=progress
        )
    _print_rows(out, rows, as_json=as_json)


@cli.command(epilog=SOURCE_HELP)
@click.argument("source")
@draft_flags
@epsilon_flag
@method_flag
@out_flag("The bundle's folder.")
@scale_flag
@seed_flag
@to_flag
@force_flag
@json_flag
def synth(source: str, out: Path, epsilon: str, format_: str, force: bool, as_json: bool, **flags: Any) -> None:
    """Draft, fit and generate in one go: SOURCE in, a bundle out.

    \b
    Example: privbench synth shop/ --unit customer --epsilon 3.2 --domains data -o bundle
    """
    given = {name: flags.pop(name) for name in ("unit", "domains", "method", "scale", "seed")}
    choices = draft_choices(source, **flags)
    with progress_line(quiet=as_json) as progress:
        _, rows = synth_bundle(
            source, out, epsilon=epsilon, format=Format(format_), force=force, progress=progress, **given, **choices
        )
    _print_rows(out, rows, as_json=as_json)


@cli.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--ledger", is_flag=True, help="What the budget was spent on.")
@click.option("--tree", metavar="TABLE", help="The network of a table.")
@json_flag
def show(model: Path, ledger: bool, tree: str | None, as_json: bool) -> None:
    """Show what MODEL holds.

    \b
    Example: privbench show shop.model --tree customer
    """
    loaded = load_model(model)
    if tree is not None:
        show_tree(loaded, tree)
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
    verdict = verify_path(path)
    if as_json:
        print_json(
            {
                "status": verdict.status,
                "epsilon": None if verdict.epsilon is None else str(verdict.epsilon),
                "spent": None if verdict.spent is None else str(verdict.spent),
                "condition": verdict.condition,
                "problems": list(verdict.problems),
            }
        )
    else:
        _print_verdict(verdict)
    if verdict.status in ("unverified", "failed"):
        sys.exit(1)


def main() -> None:
    """Run the command line; every expected error is one message and exit 2."""
    try:
        cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted: nothing half-written was left behind.", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except PrivBenchError as error:
        click.echo(f"error: {printable(str(error))}", err=True)
        sys.exit(2)


def _from_data(spec: Spec) -> list[str]:
    return [
        f"{table}.{column}"
        for table, said in spec.tables.items()
        for column, words in said.columns.items()
        if words.origin is Origin.DATA
    ]


def _left_out(spec: Spec) -> dict[str, str]:
    """The columns that are left out, with their types."""
    return {
        f"{table}.{column}": words.type
        for table, said in spec.tables.items()
        for column, words in said.columns.items()
        if words.drop
    }


def _print_rows(out: Path, rows: dict[str, int], *, as_json: bool) -> None:
    if as_json:
        print_json({"bundle": str(out), "rows": rows})
        return
    echo(f"Wrote {out}")
    print_table(("table", "rows"), rows.items())
    echo(f"Next: privbench verify {_shell(out)}")


def _shell(path: Path) -> str:
    """A path as one types it in a shell."""
    return shlex.quote(str(path))


def _print_verdict(verdict: Any) -> None:
    click.echo(f"status: {verdict.status}")
    if verdict.epsilon is not None and verdict.spent is not None:
        click.echo(f"epsilon promised {float(verdict.epsilon):g}, spent {float(verdict.spent):.6g}")
    if verdict.condition:
        echo(verdict.condition)
    for problem in verdict.problems:
        echo(f"problem: {problem}")
