import itertools
import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.evaluation.cardinality import quantiles, summarise
from privbench.evaluation.metrics import q_error
from privbench.evaluation.result import Measure, QueryResult, QuerySummary

COUNTS = st.integers(0, 1000)


def query(number: int, real: int | None, synthetic: int | None, joins: int | None = 0) -> QueryResult:
    both = real is not None and synthetic is not None
    return QueryResult(
        number=number,
        sql="SELECT 1",
        joins=joins,
        real=real,
        synthetic=synthetic,
        figures={
            "q_error": Measure(value=q_error(real or 0, synthetic or 0), floor=1.5) if both else Measure(value=None)
        },
        error=None if both else "broken",
        real_seconds=0,
        synthetic_seconds=0,
    )


def summary(queries: list[QueryResult]) -> QuerySummary:
    return summarise(queries, "q_error")


@given(COUNTS, COUNTS)
def test_zero_counts_as_one_and_the_sides_are_alike(real: int, other: int) -> None:
    assert q_error(real, other) == q_error(other, real) >= 1
    assert q_error(0, other) == q_error(1, other)
    assert math.isclose(q_error(real, other) * min(max(real, 1), max(other, 1)), max(real, other, 1))


def test_quantiles_are_those_of_the_textbook() -> None:
    errors = [float(v) for v in range(1, 102)]
    found = quantiles(errors)
    assert (found.mean, found.median, found.max) == (statistics.mean(errors), 51, 101)
    assert (found.p75, found.p90, found.p95, found.p99) == pytest.approx((76, 91, 96, 100))


@given(st.lists(st.tuples(COUNTS, COUNTS, st.integers(0, 3)), max_size=30))
def test_every_answered_query_is_in_one_group_of_each_kind(rows: list[tuple[int, int, int]]) -> None:
    found = summary([query(n, real, other, joins) for n, (real, other, joins) in enumerate(rows)])
    if not rows:
        assert found.all is None
        assert not found.by_joins
        return
    assert found.all is not None
    assert found.all.errors.queries == len(rows)
    assert sum(s.errors.queries for s in found.by_joins.values()) == len(rows)
    assert sum(s.errors.queries for s in found.by_cardinality.values()) == len(rows)
    ranges = [found.by_cardinality[c].cardinalities for c in ("low", "medium", "high") if c in found.by_cardinality]
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(ranges))


def test_failures_are_counted_and_left_out() -> None:
    found = summary([query(1, 10, 5), query(2, None, 5), query(3, 4, None), query(4, 1, 3, None)])
    assert found.failed == 2
    assert found.all is not None
    assert found.all.errors.mean == 2.5
    assert found.all.floor is not None
    assert found.all.floor.mean == 1.5
    assert list(found.by_joins) == [0]
