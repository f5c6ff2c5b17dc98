import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privbench.evaluation import marginals as module
from privbench.evaluation.marginals import Paired, distances
from privbench.evaluation.metrics import distance_metrics

from .slow import slow_distance

QUICK = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def pairs(draw: st.DrawFn) -> list[Paired]:
    rows, others = draw(st.integers(1, 30)), draw(st.integers(1, 30))
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return [
        Paired(
            real=rng.integers(0, size, rows).astype(np.uint8),
            other=rng.integers(0, size, others).astype(np.uint8),
            size=size,
        )
        for size in sizes
    ]


def distance(columns: list[Paired]) -> tuple[float, float]:
    figures = distances(columns, distance_metrics())
    return figures["kld"], figures["tvd"]


def expected(columns: list[Paired]) -> tuple[float, float]:
    rows = [list(zip(*(getattr(c, side).tolist() for c in columns), strict=True)) for side in ("real", "other")]
    return slow_distance(*rows)


@QUICK
@given(columns=pairs())
def test_dense_counts_agree_with_the_definition(columns: list[Paired]) -> None:
    assert distance(columns) == pytest.approx(expected(columns), abs=1e-9)


@QUICK
@given(columns=pairs())
def test_sorted_slices_agree_with_the_definition(columns: list[Paired], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DENSE", 0)
    monkeypatch.setattr(module, "_BLOCK", 4)
    assert distance(columns) == pytest.approx(expected(columns), abs=1e-9)


def test_domains_too_large_for_one_number_are_still_told_apart() -> None:
    rng = np.random.default_rng(1)
    huge = [
        Paired(
            real=rng.integers(0, 2**32, 500, dtype=np.uint32)[codes % 500],
            other=rng.integers(0, 2**32, 500, dtype=np.uint32),
            size=2**32,
        )
        for codes in rng.integers(0, 2000, (3, 700))
    ]
    assert distance(huge) == pytest.approx(expected(huge), abs=1e-9)


def test_equal_tables_have_no_distance_and_disjoint_ones_the_largest() -> None:
    codes = np.array([0, 1, 1], np.uint8)
    same = distance([Paired(real=codes, other=codes, size=4)])
    apart = distance([Paired(real=codes, other=codes + np.uint8(2), size=4)])
    assert same == (0, 0)
    assert apart[1] == 1
    assert apart[0] > 20
