import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.evaluation.bins import FEW_VALUES, PLOTTED, RANGES, Dictionary, histogram, make_bins


def dictionary(real: list[int], synthetic: list[int], *, ordered: bool, text: bool = False) -> Dictionary:
    lengths = np.array([len(str(code)) for code in range(len(real) - 1)], np.int64)
    return Dictionary(
        real=np.array(real, np.int64),
        synthetic=np.array(synthetic, np.int64),
        ordered=ordered,
        lengths=lengths if text else None,
        texts=lambda codes: [f"v{code}" for code in codes],
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
    assert len(plot.labels) == len(plot.real) == len(plot.synthetic) <= PLOTTED
    assert sum(plot.real) == sum(real)
    assert sum(plot.synthetic) == sum(synthetic)


def test_few_values_are_bins_of_their_own_and_unknown_ones_share_the_last() -> None:
    bins = make_bins(dictionary([3, 0, 2, 0, 1], [1, 1, 1, 1, 1], ordered=True))
    assert bins.of_code.tolist() == [0, 3, 1, 3, 2]
    assert bins.labels == ("v0", "v2", "NULL", "not in the real data")
    assert not bins.one_to_one


def test_many_ordered_values_become_ranges_of_about_equal_weight() -> None:
    rng = np.random.default_rng(3)
    real = [*rng.integers(1, 20, 500).tolist(), 0]
    bins = make_bins(dictionary(real, real, ordered=True))
    weights = np.bincount(bins.of_code, weights=real, minlength=bins.size)[:-2]
    assert len(weights) == RANGES
    assert weights.max() < 2 * weights.mean()
    assert (np.diff(bins.of_code[:-1].astype(int)) >= 0).all()
    assert bins.labels[0].startswith("v0 to v")


def test_mostly_distinct_text_goes_by_length() -> None:
    bins = make_bins(dictionary([*[1] * 150, 0], [0] * 151, ordered=False, text=True))
    assert bins.labels[:3] == ("length 0 to 1", "length 2", "length 3")
    assert bins.of_code[[5, 50, 120]].tolist() == [0, 1, 2]


@pytest.mark.parametrize("values", [FEW_VALUES, FEW_VALUES + 30])
def test_repeated_text_keeps_its_values_and_plots_the_frequent_ones(values: int) -> None:
    real = [*range(3, values + 3), 0]
    bins = make_bins(table := dictionary(real, real, ordered=False, text=True))
    assert bins.size == values + 2
    plot = histogram(bins, table)
    assert f"{values - PLOTTED + 3} other values" in plot.labels
    assert f"v{values - 1}" in plot.labels
    assert "v0" not in plot.labels
