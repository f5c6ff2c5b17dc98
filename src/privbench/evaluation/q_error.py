"""Q-errors and their summaries: max(real / synthetic, synthetic / real), where a count of 0 counts as 1."""

from collections.abc import Sequence

import numpy as np

from privbench.evaluation.result import QErrors, Quantiles, QueryResult, Summary

CLASSES = ("low", "medium", "high")


def q_error(real: int, other: int) -> float:
    """How many times one cardinality is the other.

    >>> q_error(0, 5), q_error(10, 4)
    (5.0, 2.5)
    """
    real, other = max(real, 1), max(other, 1)
    return max(real / other, other / real)


def quantiles(errors: Sequence[float]) -> Quantiles:
    """Mean, quantiles (interpolated between neighbours) and maximum of at least one Q-error."""
    median, p75, p90, p95, p99 = np.quantile(errors, [0.5, 0.75, 0.9, 0.95, 0.99]).tolist()
    return Quantiles(
        queries=len(errors),
        mean=float(np.mean(errors)),
        median=median,
        p75=p75,
        p90=p90,
        p95=p95,
        p99=p99,
        max=max(errors),
    )


def summarise(queries: Sequence[QueryResult]) -> QErrors:
    """All answered queries, by number of joins, and by thirds of the real cardinality."""
    answered = [q for q in queries if q.q_error is not None]
    joins = sorted({q.joins for q in answered if q.joins is not None})
    ranked = sorted(answered, key=lambda q: (q.real or 0, q.number))
    cuts = [round(len(ranked) * part / 3) for part in range(4)]
    thirds = {name: ranked[a:b] for name, a, b in zip(CLASSES, cuts[:-1], cuts[1:], strict=True)}
    return QErrors(
        all=_summary(answered) if answered else None,
        by_joins={count: _summary([q for q in answered if q.joins == count]) for count in joins},
        by_cardinality={name: _summary(part) for name, part in thirds.items() if part},
        failed=len(queries) - len(answered),
    )


def _summary(queries: Sequence[QueryResult]) -> Summary:
    floors = [q.floor for q in queries if q.floor is not None]
    counts = [q.real or 0 for q in queries]
    return Summary(
        errors=quantiles([q.q_error or 1.0 for q in queries]),
        floor=quantiles(floors) if floors else None,
        cardinalities=(min(counts), max(counts)),
    )
