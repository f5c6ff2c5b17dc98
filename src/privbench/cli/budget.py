"""`privbench budget`, and the flag `--budget-limit` of the commands that spend: what releases add up to."""

# ruff: noqa: D301  (click reads the \b in docstrings as a character, which a raw string has not)

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from privbench.cli.flags import json_flag
from privbench.errors import SpecError

if TYPE_CHECKING:
    from privbench.fitting.budget_record import BudgetRecord, SourceBudget

SHOWN_DIGITS = 8
"""So many digits of a hash are shown: enough to tell sources and receipts apart."""


def _warned(_context: click.Context, _option: click.Parameter, limit: str | None) -> str | None:
    """Tell of lines of the record that cannot be added up, before a limit is relied on."""
    if limit is not None:
        import privbench

        _warn_damaged(privbench.budget())
    return limit


budget_limit_flag = click.option(
    "--budget-limit",
    metavar="E",
    callback=_warned,
    help="Refuse to spend if all recorded releases of this source, and this one, add up to more than E.",
)


@click.command()
@click.argument("source", required=False)
@json_flag
def budget(source: str | None, as_json: bool) -> None:
    """Show what was spent on each source, or on SOURCE, by all fits of this user on this computer.

    Epsilons and deltas of releases add up. Sources are shown by a hash; name one to see its releases.

    \b
    Example: privbench budget shop/
    """
    import privbench
    from privbench.cli.output import echo, print_json, print_table

    record = privbench.budget(source)
    if as_json:
        print_json(_json(record))
        return
    _warn_damaged(record)
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
                "totals": [
                    {
                        "unit": total.unit,
                        "neighbours": total.neighbours.value,
                        "epsilon": _rational(total.epsilon),
                        "delta": _rational(total.delta),
                        "releases": total.releases,
                    }
                    for total in spent.totals()
                ],
                "releases": [entry.model_dump(mode="json") for entry in spent.entries],
            }
            for spent in record.sources
        ],
        "damaged_lines": list(record.damaged),
    }


def _rational(number: Any) -> str:
    return f"{number.numerator}/{number.denominator}"


def _warn_damaged(record: "BudgetRecord") -> None:
    from privbench.cli.output import warn

    if record.damaged:
        lines = ", ".join(map(str, record.damaged))
        warn([f"{record.path}: line {lines} cannot be read, so what it recorded is in no sum. Repair or remove it."])
