"""`privbench compare`: methods side by side on one database, as a table, compare.json, compare.csv and compare.html."""

# ruff: noqa: D301  (click reads the \b in docstrings as a character, which a raw string has not)

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from privbench.cli.budget import budget_limit_flag
from privbench.cli.flags import (
    METHODS,
    SOURCE_HELP,
    delta_flag,
    draft_choices,
    draft_flags,
    force_flag,
    json_flag,
    out_flag,
)

if TYPE_CHECKING:
    from privbench.evaluation.compare import Comparison, Figure, Figures


@click.command(epilog=SOURCE_HELP)
@click.argument("source")
@click.option("--methods", default=",".join(METHODS), show_default=True, metavar="M[,M..]", help="What to compare.")
@click.option("--epsilon", "epsilons", required=True, metavar="E[,E..]", help="Budgets, such as 0.4,3.2.")
@delta_flag
@click.option("--runs", type=int, default=3, show_default=True, help="Runs of each method at each budget.")
@click.option("--workload", type=click.Path(path_type=Path), help="Queries to compare cardinalities on.")
@click.option("--seed", type=int, default=0, show_default=True, help="For sampling and the floor; noise has none.")
@draft_flags
@budget_limit_flag
@out_flag("A folder for compare.json, compare.csv and compare.html.")
@force_flag
@json_flag
def compare(source: str, methods: str, epsilons: str, out: Path, force: bool, as_json: bool, **flags: Any) -> None:
    """Compare methods on SOURCE. The figures are exact facts of the data, and every run spends its own epsilon.

    \b
    Example: privbench compare shop/ --unit customer --epsilon 0.4,3.2 --runs 3 -o compare
    """
    from privbench.cli.progress import progress_line
    from privbench.evaluation.compare import compare as compare_methods
    from privbench.io.staging import check_target
    from privbench.report.write import write_comparison

    check_target(out, force=force)
    taken = ("unit", "domains", "delta", "runs", "workload", "seed", "budget_limit")
    options = {name: flags.pop(name) for name in taken}
    names, budgets = _listed(methods), _listed(epsilons)
    if not names or not budgets:
        raise click.UsageError("--methods and --epsilon each need at least one.")
    choices = draft_choices(source, **flags)
    with progress_line(quiet=as_json) as progress:
        comparison = compare_methods(source, methods=names, epsilons=budgets, progress=progress, **options, **choices)
    write_comparison(comparison, out, force=force)
    _show(comparison, out, as_json=as_json)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _show(comparison: "Comparison", folder: Path, *, as_json: bool) -> None:
    from privbench.cli.output import echo, print_json, print_table
    from privbench.evaluation.compare import SPENDING, WARNING, comparison_json

    if as_json:
        print_json(comparison_json(comparison))
        return
    settings = comparison.settings()
    echo(f"Wrote {folder / 'compare.json'}, compare.csv and compare.html. {WARNING} {SPENDING}")
    rows = [("floor", "", comparison.floor), *((s.method, s.epsilon, s.figures) for s in settings)]
    groups: dict[str, list[Figure]] = {}
    for figure in comparison.shown():
        groups.setdefault(figure.group, []).append(figure)
    for figures in groups.values():
        print_table(
            ("method", "epsilon", *(figure.head for figure in figures)),
            [(method, epsilon, *(_cell(of, figure) for figure in figures)) for method, epsilon, of in rows],
        )
    for setting in settings:
        for error in setting.errors:
            echo(f"failed: {setting.method}, epsilon {setting.epsilon}: {error}")


def _cell(figures: "Figures", figure: "Figure") -> str:
    value = figures.get(figure.name)
    return "-" if value is None else f"{value / figure.scale:.3g}"
