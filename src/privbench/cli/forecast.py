"""What `fit` and `generate` say before they start, if that will take a while: roughly how long, and how much room.

Rows of private tables are counted for it, so what is shown depends on them: it is for the publisher's screen, rounded,
and `--json` has none of it.
"""

from contextlib import suppress
from math import floor, log10
from pathlib import Path
from typing import TYPE_CHECKING

import click

from privbench.cli.output import warn

if TYPE_CHECKING:
    from privbench.model.model import Model

LONG = 10.0
"""Processor-seconds of a step from which on it says beforehand how long it takes."""
MANY_VALUES = 10**7
"""Of a database with fewer values the time of a fit is not worth working out."""


def tell_fit(
    spec: Path, source: str | None, *, epsilon: str, delta: str, method: str | None, memory: str | None
) -> None:
    """Say what a fit will take. What is wrong with the spec or the source is for the fit to tell."""
    import privbench
    from privbench.errors import PrivBenchError
    from privbench.fitting.memory import allowed_memory, parse_memory
    from privbench.io.given import with_options
    from privbench.io.open import open_source
    from privbench.model.arguments import find_source

    with suppress(PrivBenchError):
        read = privbench.read_spec(spec)
        place = source or (read.source and find_source(read.source, spec.parent))
        if place is None:
            return
        tables, made_up = read.protection().schema.tables, read.protection().made_up
        with open_source(with_options(place, read.csv)) as opened:
            rows = {t.name: made_up.get(t.name) or opened.rows(t.name) for t in tables if not t.list_of}
        if sum(rows.get(table.name, 0) * len(table.columns) for table in tables) < MANY_VALUES:
            return
        private = {name: count for name, count in rows.items() if name in read.protection().order}
        plan = privbench.plan(read, epsilon=epsilon, delta=delta, method=method, rows=private)
        megabytes = min(plan.megabytes, allowed_memory(parse_memory(memory)) / 1e6)
        _tell(plan.seconds, f"{_rough(megabytes)} MB of memory")


def tell_generate(model: "Model", out: Path, *, scale: float, form: str, quiet: bool) -> None:
    """Say what generating will take; and, also to programs, that the disk is too small for it."""
    from privbench.generation.forecast import forecast_generation, lacking_room

    forecast = forecast_generation(model, scale=scale, form=form)
    if not quiet:
        _tell(forecast.seconds, f"{_rough(forecast.megabytes)} MB on disk")
    if (problem := lacking_room(out, forecast.megabytes)) is not None:
        warn([problem])


def _tell(seconds: float, room: str) -> None:
    if seconds >= LONG:
        click.echo(f"This will take roughly {_rough(seconds)} seconds of processor time and {room}.", err=True)


def _rough(number: float) -> str:
    """A number that nobody knows exactly.

    >>> _rough(1234.5), _rough(87), _rough(0.2)
    ('1,200', '87', '1')
    """
    digits = max(floor(log10(max(number, 1))) - 1, 0)
    return f"{max(round(number / 10**digits), 1) * 10**digits:,}"
