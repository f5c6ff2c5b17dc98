import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privbench.evaluation import marginals as module
from privbench.evaluation.marginals import Aligned, AlignedTable, Columns, distances
from privbench.evaluation.metrics import distance_metrics

from .slow import slow_distance

QUICK = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def tables(draw: st.DrawFn) -> list[Aligned]:
    """Columns of a real table and of two others."""
    rows = [draw(st.integers(1, 30)) for _ in range(3)]
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return [
        Aligned(sides=tuple(rng.integers(0, size, count).astype(np.uint8) for count in rows), size=size)
        for size in sizes
    ]


def distance(columns: list[Aligned], marginal: Columns | None = None) -> list[tuple[float, float]]:
    wanted = marginal or tuple(range(len(columns)))
    [found] = distances(columns, [wanted], distance_metrics())
    return [(figures["kld"], figures["tvd"]) for figures in found]


def expected(columns: list[Aligned], marginal: Columns | None = None) -> list[tuple[float, float]]:
    chosen = columns if marginal is None else [columns[c] for c in marginal]
    real, *others = (
        list(zip(*(c.sides[at].tolist() for c in chosen), strict=True)) for at in range(len(chosen[0].sides))
    )
    return [pytest.approx(slow_distance(real, other), abs=1e-9) for other in others]


@QUICK
@given(columns=tables())
def test_dense_counts_agree_with_the_definition(columns: list[Aligned]) -> None:
    assert distance(columns) == expected(columns)


@QUICK
@given(columns=tables())
def test_sorted_tuples_agree_with_the_definition(columns: list[Aligned], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DENSE", 0)
    monkeypatch.setattr(module, "_BLOCK", 4)
    monkeypatch.setattr(module, "_LONG", 20)
    assert distance(columns) == expected(columns)


@QUICK
@given(columns=tables())
def test_marginals_that_are_counted_together_are_as_if_alone(
    columns: list[Aligned], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ROWS_PER_CELL", 0.01)
    every = [m for ways in (1, 2, 3) for m in itertools.combinations(range(len(columns)), ways)]
    found = distances(columns, every, distance_metrics())
    for marginal, sides in zip(every, found, strict=True):
        assert [(figures["kld"], figures["tvd"]) for figures in sides] == expected(columns, marginal)


def test_few_cells_are_counted_together_and_many_are_not() -> None:
    pairs = [(0, 1), (0, 2), (1, 2)]
    assert module._batches(pairs, [2, 2, 5], most=25) == [[(0, 1)], [(0, 2), (1, 2)]]
    assert module._batches(pairs, [2, 2, 50], most=25) == [[(0, 1)], [(0, 2)], [(1, 2)]]


def test_the_same_object_stays_the_same_when_rows_are_taken() -> None:
    column, binned = (Aligned(sides=(np.arange(3, dtype=np.uint8),) * 2, size=3) for _ in range(2))
    taken = AlignedTable(values=[column, column], bins=[column, binned]).take([np.array([2, 0]), slice(None)])
    assert taken.values[0] is taken.bins[0]
    assert taken.values[1] is not taken.bins[1]
    assert [codes.tolist() for codes in taken.bins[1].sides] == [[2, 0], [0, 1, 2]]


def test_domains_too_large_for_one_number_are_still_told_apart() -> None:
    rng = np.random.default_rng(1)
    huge = [
        Aligned(
            sides=(
                rng.integers(0, 2**32, 500, dtype=np.uint32)[codes % 500],
                rng.integers(0, 2**32, 500, dtype=np.uint32),
            ),
            size=2**32,
        )
        for codes in rng.integers(0, 2000, (3, 700))
    ]
    assert distance(huge) == expected(huge)


def test_equal_tables_have_no_distance_and_disjoint_ones_the_largest() -> None:
    codes = np.array([0, 1, 1], np.uint8)
    [same, apart] = distance([Aligned(sides=(codes, codes, codes + np.uint8(2)), size=4)])
    assert same == (0, 0)
    assert apart[1] == 1
    assert apart[0] > 20
