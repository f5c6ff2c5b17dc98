import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.evaluation.bins import FEW_VALUES, MAX_TEXT, PLOTTED, RANGES, Dictionary, histogram, make_bins
from privbench.evaluation.result import Bin, BinKind
from privbench.schema.domain import Scalar

OTHERS = (Bin(kind=BinKind.NULL), Bin(kind=BinKind.UNKNOWN))


def dictionary(real: list[int], synthetic: list[int], *, ordered: bool, text: bool = False) -> Dictionary:
    """Values are 10 times their code, or such numbers as text."""

    def read(codes: Sequence[int]) -> list[Scalar]:
        return [f"v{code}" if text else 10 * code for code in codes]

    lengths = np.array([len(str(code)) for code in range(len(real) - 1)], np.int64)
    return Dictionary(
        real=np.array(real, np.int64),
        synthetic=np.array(synthetic, np.int64),
        ordered=ordered,
        lengths=lengths if text else None,
        read=read,
    )


COUNTS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=200)


@settings(max_examples=100)
@given(COUNTS, st.booleans(), st.booleans())
def test_every_value_has_a_bin_and_no_row_is_lost(counts: list[tuple[int, int]], ordered: bool, text: bool) -> None:
    real, synthetic = ([pair[side] for pair in counts] for side in (0, 1))
    values = dictionary(real, synthetic, ordered=ordered and not text, text=text)
    bins = make_bins(values)
    assert len(bins.of_code) == len(counts)
    assert bins.of_code.max() < bins.size
    assert bins.of_code[-1] == bins.size - 2  # NULL
    plot = histogram(bins, values)
    assert len(plot.bins) == len(plot.real) == len(plot.synthetic) <= PLOTTED
    assert sum(plot.real) == sum(real)
    assert sum(plot.synthetic) == sum(synthetic)


def test_few_values_are_bins_of_their_own_and_unknown_ones_share_the_last() -> None:
    bins = make_bins(dictionary([3, 0, 2, 0, 1], [1, 1, 1, 1, 1], ordered=True))
    assert bins.of_code.tolist() == [0, 3, 1, 3, 2]
    assert bins.bins == (Bin(kind=BinKind.VALUE, low=0), Bin(kind=BinKind.VALUE, low=20), *OTHERS)
    assert not bins.one_to_one


def test_many_ordered_values_become_ranges_of_about_equal_weight() -> None:
    rng = np.random.default_rng(3)
    real = [*rng.integers(1, 20, 500).tolist(), 0]
    bins = make_bins(dictionary(real, real, ordered=True))
    weights = np.bincount(bins.of_code, weights=real, minlength=bins.size)[:-2]
    assert len(weights) == RANGES
    assert weights.max() < 2 * weights.mean()
    assert (np.diff(bins.of_code[:-1].astype(int)) >= 0).all()
    ranges = bins.bins[:-2]
    assert (ranges[0].low, ranges[-1].high) == (0, 4990)
    assert all(a.high + 10 == b.low for a, b in itertools.pairwise(ranges))


def test_ranges_that_are_plotted_together_keep_their_outer_bounds() -> None:
    values = dictionary([*[1] * 45, 7], [*[1] * 45, 0], ordered=True)
    plot = histogram(make_bins(values), values)
    assert len(plot.bins) == PLOTTED - 1
    assert plot.bins[0] == Bin(kind=BinKind.RANGE, low=0, high=10)
    assert plot.bins[-1] == Bin(kind=BinKind.NULL)
    assert plot.bins[-2] == Bin(kind=BinKind.VALUE, low=440)


def test_mostly_distinct_text_goes_by_length() -> None:
    bins = make_bins(dictionary([*[1] * 150, 0], [0] * 151, ordered=False, text=True))
    assert [(b.kind, b.low, b.high) for b in bins.bins[:3]] == [
        (BinKind.LENGTH, 0, 1),
        (BinKind.LENGTH, 2, 2),
        (BinKind.LENGTH, 3, 3),
    ]
    assert bins.of_code[[5, 50, 120]].tolist() == [0, 1, 2]


@pytest.mark.parametrize("values", [FEW_VALUES, FEW_VALUES + 30])
def test_repeated_text_keeps_its_values_and_plots_the_frequent_ones(values: int) -> None:
    real = [*range(3, values + 3), 0]
    bins = make_bins(table := dictionary(real, real, ordered=False, text=True))
    assert bins.size == values + 2
    plot = histogram(bins, table)
    assert Bin(kind=BinKind.REST, values=values - PLOTTED + 3) in plot.bins
    shown = {b.low for b in plot.bins}
    assert f"v{values - 1}" in shown
    assert "v0" not in shown


def test_of_a_long_string_the_beginning_is_kept() -> None:
    long = "x" * (MAX_TEXT + 1)
    values = replace(dictionary([4, 4, 0], [0, 0, 0], ordered=False, text=True), read=lambda _: [long, long[1:]])
    assert make_bins(values).bins[:2] == (
        Bin(kind=BinKind.PREFIX, low=long[: MAX_TEXT - 1]),
        Bin(kind=BinKind.VALUE, low=long[1:]),
    )
