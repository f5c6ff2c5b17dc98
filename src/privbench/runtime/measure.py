"""The protocol: a warm-up that tells plans and buffers, then rounds that visit all variants of a query close in time.

Other work on the machine only adds to a time, so the least of several visits is the best estimate; and since a round
visits queries and variants in random order, no variant gets the quiet minutes. Start reading at `measure`.
"""

import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from privbench.methods.method import Progress
from privbench.runtime.plan import Plan
from privbench.runtime.session import Clock, FailedQueryError, Loaded, Session, System, Variant
from privbench.runtime.statistics import Statistics
from privbench.schema.tables import Schema
from privbench.workload.query import Statement

ROUNDS = 5
"""Visits of each query and variant; fewer leave the noise of single runs, 20 to 25 % on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What one variant did with one query: its plan, and the least milliseconds of all rounds."""

    plan: Plan
    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One query: its visits by variant, or the errors of those that failed."""

    number: int
    sql: str
    visits: Mapping[str, Visit]
    errors: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """All queries on all variants; the first variant is the one that the others are compared with."""

    system: str
    clock: Clock
    rounds: int
    load_average: float
    """Programs that wanted a processor at the same time, on average over the last minute."""
    variants: tuple[str, ...]
    queries: tuple[Measured, ...]
    pages: Mapping[str, Mapping[str, int]]
    statistics: Mapping[str, Statistics]
    notes: tuple[str, ...]


def measure(
    system: System,
    schema: Schema,
    variants: Sequence[Variant],
    statements: Sequence[Statement],
    *,
    timeout: float,
    seed: int,
    progress: Progress,
    rounds: int = ROUNDS,
) -> Measurement:
    """Load all variants and measure the queries of a workload on them; a query may take `timeout` seconds.

    Raises ServerError if the system cannot be used or goes away; a query that fails is part of the result.
    """
    texts = {statement.number: system.translate(statement.sql, schema) for statement in statements}
    with system.load(schema, tuple(variants), timeout=timeout, progress=progress) as loaded:
        plans, errors = _warm_up(loaded.sessions, texts, progress)
        times = _rounds(loaded.sessions, texts, errors, rounds=rounds, seed=seed, progress=progress)
        return Measurement(
            system=loaded.system,
            clock=loaded.clock,
            rounds=rounds,
            load_average=os.getloadavg()[0],
            variants=tuple(loaded.sessions),
            queries=tuple(_measured(s, loaded, plans[s.number], times[s.number], errors[s.number]) for s in statements),
            pages=loaded.pages,
            statistics=loaded.statistics,
            notes=loaded.notes,
        )


def _warm_up(
    sessions: Mapping[str, Session], texts: Mapping[int, str], progress: Progress
) -> tuple[dict[int, dict[str, Plan]], dict[int, dict[str, str]]]:
    """Run each query once on each variant: its pages are in memory afterwards, and its plan is known."""
    plans: dict[int, dict[str, Plan]] = {number: {} for number in texts}
    errors: dict[int, dict[str, str]] = {number: {} for number in texts}
    for at, (number, sql) in enumerate(texts.items()):
        progress("plans of queries", at, len(texts))
        for name, session in sessions.items():
            try:
                plans[number][name] = session.explain(sql)
            except FailedQueryError as error:
                errors[number][name] = str(error)
    return plans, errors


def _rounds(
    sessions: Mapping[str, Session],
    texts: Mapping[int, str],
    errors: dict[int, dict[str, str]],
    *,
    rounds: int,
    seed: int,
    progress: Progress,
) -> dict[int, dict[str, float]]:
    """The least time of each query and variant; a query that fails in one variant is visited no more."""
    drawn = random.Random(seed)  # noqa: S311  an order of visits
    times: dict[int, dict[str, float]] = {number: {} for number in texts}
    order = [number for number in texts if not errors[number]]
    names = list(sessions)
    total, done = rounds * len(order), 0
    for _ in range(rounds):
        drawn.shuffle(order)
        for number in order:
            progress("times of queries", done, total)
            done += 1
            drawn.shuffle(names)
            for name in names if not errors[number] else ():
                try:
                    time = sessions[name].run(texts[number])
                except FailedQueryError as error:
                    errors[number][name] = str(error)
                    break
                times[number][name] = min(time, times[number].get(name, time))
    return times


def _measured(
    statement: Statement,
    loaded: Loaded,
    plans: Mapping[str, Plan],
    times: Mapping[str, float],
    errors: Mapping[str, str],
) -> Measured:
    return Measured(
        number=statement.number,
        sql=statement.sql,
        visits={} if errors else {name: Visit(plan=plans[name], time=times[name]) for name in loaded.sessions},
        errors=dict(errors),
    )
