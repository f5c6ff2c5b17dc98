"""`privbench budget`, and the flag `--budget-limit` of the commands that spend: what releases add up to."""

# ruff: noqa: D301  (click reads the \b in docstrings as a character, which a raw string has not)

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from privbench.cli.flags import json_flag
from privbench.errors import SpecError

if TYPE_CHECKING:
    from privbench.fitting.budget_record import BudgetRecord, SourceBudget, Total

SHOWN_DIGITS = 8
"""So many digits of a hash are shown: enough to tell sources and receipts apart."""


budget_limit_flag = click.option(
    "--budget-limit",
    metavar="E",
    help="Refuse to spend if all recorded releases of this source, and this one, add up to more than E; also if the "
    "record has lost some.",
)


@click.command()
@click.argument("source", required=False)
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Go on without lines that cannot be read, or after the record was lost: what they held is in no sum then.",
)
@json_flag
def budget(source: str | None, accept_loss: bool, as_json: bool) -> None:
    """Show what was spent on each source, or on SOURCE, by all fits of this user on this computer.

    Epsilons and deltas of releases add up. Sources are shown by a hash; name one to see its releases.

    \b
    Example: privbench budget shop/
    """
    import privbench
    from privbench.cli.output import echo, print_json, print_table

    if accept_loss:
        from privbench.fitting.budget_record import accept_loss as accepted

        _warn_loss(accepted(), "From now on limits are kept without it")
    record = privbench.budget(source)
    if as_json:
        print_json(_json(record))
        return
    _warn_loss(record.loss, "Put it back as it was, or go on without it: `privbench budget --accept-loss`")
    if not record.sources:
        if source is not None and "://" not in source and not Path(source).exists():
            raise SpecError(f"{source}: there is no such file or folder, and no release of it is recorded.")
        echo(f"No release{' of this source' if source else ''} is recorded in {record.path}.")
        return
    if source is not None:
        print_table(
            ("time", "epsilon", "delta", "neighbours", "unit", "receipt", "written to"),
            (row for spent in record.sources for row in _releases(spent)),
        )
        click.echo()
    print_table(
        ("source", "tables", "unit", "neighbours", "releases", "epsilon", "delta", "last"),
        (row for spent in record.sources for row in _totals(spent)),
    )
    for note in _notes(record):
        echo(note)


def _totals(spent: "SourceBudget") -> Iterator[tuple[object, ...]]:
    last = spent.entries[-1]
    for total in spent.totals():
        names = (spent.source[:SHOWN_DIGITS], last.tables[:SHOWN_DIGITS], total.unit, total.neighbours.value)
        yield (*names, total.releases, float(total.epsilon), float(total.delta), last.time[:10])


def _releases(spent: "SourceBudget") -> Iterator[tuple[object, ...]]:
    from fractions import Fraction

    for entry in spent.entries:
        cost = (float(Fraction(entry.epsilon)), float(Fraction(entry.delta)))
        yield (
            entry.time[:16].replace("T", " "),
            *cost,
            entry.neighbours.value,
            entry.unit,
            entry.receipt[:SHOWN_DIGITS],
            entry.out or "",
        )


def _notes(record: "BudgetRecord") -> Iterator[str]:
    """What the sums do not say."""
    alike: dict[str, list[str]] = {}
    for spent in record.sources:
        for tables in dict.fromkeys(entry.tables for entry in spent.entries):
            alike.setdefault(tables, []).append(spent.source[:SHOWN_DIGITS])
    for sources in alike.values():
        if len(sources) > 1:
            yield f"{', '.join(sources)} have the same tables: if they hold the same data, their sums add up."
    test_noise = sum(not entry.private for spent in record.sources for entry in spent.entries)
    if test_noise:
        yield f"{test_noise} models used test noise: they are not private and are not counted."


def _json(record: "BudgetRecord") -> dict[str, Any]:
    return {
        "record": str(record.path),
        "sources": [
            {
                "source": spent.source,
                "totals": [_total_json(total) for total in spent.totals()],
                "releases": [entry.model_dump(mode="json") for entry in spent.entries],
            }
            for spent in record.sources
        ],
        "damaged_lines": list(record.damaged),
        "missing": record.missing,
    }


def _total_json(total: "Total") -> dict[str, Any]:
    return {
        "unit": total.unit,
        "neighbours": total.neighbours.value,
        "epsilon": _rational(total.epsilon),
        "delta": _rational(total.delta),
        "releases": total.releases,
    }


def _rational(number: Any) -> str:
    return f"{number.numerator}/{number.denominator}"


def _warn_loss(loss: str | None, remedy: str) -> None:
    from privbench.cli.output import warn

    warn([] if loss is None else [f"{loss} {remedy}."])


def source_budget(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """What a release adds up to with others of its source, for programs; nothing where that was test noise."""
    from privbench.fitting.budget_record import total_with

    total = total_with(receipt)
    return {} if total is None else {"source_budget": _total_json(total)}
