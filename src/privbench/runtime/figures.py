"""From single measurements to figures: every variant beside the first, over the queries that ran on all of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from privbench.runtime.measure import Measured, Measurement, Visit
from privbench.runtime.plan import Node
from privbench.runtime.result import AGAIN, Comparison, Runtime, RuntimeColumn, RuntimeQuery, Spread
from privbench.runtime.session import Clock
from privbench.runtime.statistics import Statistics

Floats = NDArray[np.float64]

NOISY, NOISY_JOINS = 0.03, 0.05
"""Up to so large a mean discrepancy between the real database and itself, times mean something; more with joins."""
_LEAST_TIME = 1e-3
"""Milliseconds: nothing is faster, whatever a clock says."""
_DRAWS = 1000


def find_figures(measurement: Measurement) -> Runtime:
    """Compare all variants with the first."""
    first, *others = measurement.variants
    ran = [query for query in measurement.queries if not query.errors]
    comparisons = {name: _compare(ran, first, name, measurement.pages) for name in others} if ran else {}
    return Runtime(
        system=measurement.system,
        clock=measurement.clock,
        rounds=measurement.rounds,
        load_average=measurement.load_average,
        comparisons=comparisons,
        estimate_errors={name: _estimate_error(ran, name) for name in measurement.variants},
        queries=tuple(_query(query) for query in measurement.queries),
        columns=tuple(_columns(measurement.statistics)),
        notes=(*measurement.notes, *_noise_note(measurement, ran, comparisons)),
    )


def spread(differences: Sequence[float] | Floats) -> Spread:
    """Mean, median, 75th percentile and maximum of at least one figure.

    >>> spread([0.0, 0.5, 1.0])
    Spread(mean=0.5, median=0.5, p75=0.75, max=1.0)
    """
    median, p75 = np.quantile(differences, [0.5, 0.75]).tolist()
    return Spread(mean=float(np.mean(differences)), median=median, p75=p75, max=float(np.max(differences)))


def typical_factor(a: Floats, b: Floats) -> float:
    """By which factor b is typically off from a, either way; 0 counts as what is just measurable.

    >>> round(typical_factor(np.array([1.0, 4.0]), np.array([2.0, 2.0])), 6)
    2.0
    """
    return float(np.exp(np.mean(np.abs(np.log(b) - np.log(a)))))


def _compare(ran: Sequence[Measured], first: str, other: str, pages: Mapping[str, Mapping[str, int]]) -> Comparison:
    times, other_times = (_values(ran, name, lambda visit: max(visit.time, _LEAST_TIME)) for name in (first, other))
    discrepancies = np.abs(other_times - times) / times
    same = np.array([q.visits[first].plan.shape == q.visits[other].plan.shape for q in ran])
    buffers, other_buffers = (_known(ran, name, lambda visit: visit.plan.buffers) for name in (first, other))
    costs, other_costs = (_known(ran, name, lambda visit: visit.plan.cost) for name in (first, other))
    return Comparison(
        same_plans=float(np.mean(same)),
        buffers=None if buffers is None or other_buffers is None else spread(_relative(buffers, other_buffers)),
        total_buffers=None if buffers is None or other_buffers is None else _ratio(buffers, other_buffers),
        discrepancy=spread(discrepancies),
        interval=_interval(discrepancies),
        same_plan_discrepancy=_mean(discrepancies[same]),
        changed_plan_discrepancy=_mean(discrepancies[~same]),
        total_time=_ratio(times, other_times),
        time_factor=typical_factor(times, other_times),
        cost_factor=None if costs is None or other_costs is None else typical_factor(costs, other_costs),
        estimate_factor=_estimate_factor([q for q, equal in zip(ran, same, strict=True) if equal], first, other),
        pages=_page_difference(pages.get(first, {}), pages.get(other, {})),
    )


def _values(ran: Sequence[Measured], name: str, of: Callable[[Visit], float]) -> Floats:
    return np.array([of(query.visits[name]) for query in ran], dtype=np.float64)


def _known(ran: Sequence[Measured], name: str, of: Callable[[Visit], float | None]) -> Floats | None:
    """Figures of all queries, at least 1 each; None if the system does not tell them."""
    values = [of(query.visits[name]) for query in ran]
    known = [max(value, 1.0) for value in values if value is not None]
    return np.array(known, dtype=np.float64) if len(known) == len(values) else None


def _relative(a: Floats, b: Floats) -> Floats:
    return np.abs(b - a) / a


def _ratio(a: Floats, b: Floats) -> float:
    return float(b.sum() / a.sum())


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _interval(values: Floats) -> tuple[float, float]:
    drawn = np.random.default_rng(0).choice(values, (_DRAWS, len(values))).mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
    return low, high


def _page_difference(pages: Mapping[str, int], other: Mapping[str, int]) -> float | None:
    shared = [name for name in pages if name in other]
    if not shared:
        return None
    return float(np.mean([abs(other[name] - pages[name]) / max(pages[name], 1) for name in shared]))


def _estimate_factor(ran: Sequence[Measured], first: str, other: str) -> float | None:
    """How far the planner's expectations are apart, over the steps of the same plans."""
    pairs = [
        (a.estimated, b.estimated)
        for query in ran
        for a, b in _paired(query.visits[first].plan.nodes, query.visits[other].plan.nodes)
    ]
    if not pairs:
        return None
    a, b = np.maximum(np.array(pairs, dtype=np.float64).T, 1.0)
    return typical_factor(a, b)


def _paired(a: tuple[Node, ...], b: tuple[Node, ...]) -> list[tuple[Node, Node]]:
    """The steps of two plans of one shape; none where a step of one of them never ran."""
    return list(zip(a, b, strict=True)) if len(a) == len(b) else []


def _estimate_error(ran: Sequence[Measured], name: str) -> float | None:
    nodes = [(node.estimated, node.actual) for query in ran for node in query.visits[name].plan.nodes]
    if not nodes:
        return None
    estimated, actual = np.maximum(np.array(nodes, dtype=np.float64).T, 1.0)
    return typical_factor(actual, estimated)


def _query(query: Measured) -> RuntimeQuery:
    visits = query.visits
    return RuntimeQuery(
        number=query.number,
        sql=query.sql,
        times={name: visit.time for name, visit in visits.items()},
        buffers={name: visit.plan.buffers for name, visit in visits.items()},
        plans={name: visit.plan.shape for name, visit in visits.items()},
        costs={name: visit.plan.cost for name, visit in visits.items()},
        estimated={name: tuple(n.estimated for n in visit.plan.nodes) for name, visit in visits.items()},
        actual={name: tuple(n.actual for n in visit.plan.nodes) for name, visit in visits.items()},
        errors=query.errors,
    )


def _columns(statistics: Mapping[str, Statistics]) -> Iterator[RuntimeColumn]:
    for table, column in sorted({place for known in statistics.values() for place in known}):
        found = {name: known[table, column] for name, known in statistics.items() if (table, column) in known}
        yield RuntimeColumn(table=table, column=column, statistics=found)


def _noise_note(measurement: Measurement, ran: Sequence[Measured], comparisons: Mapping[str, Comparison]) -> list[str]:
    """Say so where times are too noisy to be read."""
    again = comparisons.get(AGAIN)
    limit = NOISY_JOINS if any(_has_join(q.visits[measurement.variants[0]].plan.shape) for q in ran) else NOISY
    if again is None or again.discrepancy.mean <= limit:
        return []
    clock = "" if measurement.clock is Clock.CPU else " (they are times of the client: the server runs elsewhere)"
    return [
        f"times are noisy{clock}: the real database is off from itself by {100 * again.discrepancy.mean:.2g} % on "
        f"average, more than {100 * limit:.0f} %. Go by plans and buffers, or measure on an idle machine"
    ]


def _has_join(shape: str) -> bool:
    return any(word in shape.casefold() for word in ("join", "nested loop"))
