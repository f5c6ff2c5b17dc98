"""The sparse histogram releases what the dense one would: the same sets, the same heights, as often."""

from fractions import Fraction
from itertools import product
from math import exp

import numpy as np
import pytest
from scipy import stats

from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.noise import discrete_laplace
from privbench.privacy.sparse import sparse_histogram

INT64 = np.iinfo(np.int64)
SCALE = Fraction(3, 2)
COUNTS = {-1: 3, 2: 1}
LOW, HIGH, ABOVE = -2, 2, 1


def _release(entropy: FixedEntropy) -> np.ndarray:
    places = np.array(sorted(COUNTS), np.int64)
    counts = np.array([COUNTS[p] for p in sorted(COUNTS)], np.int64)
    return sparse_histogram(places, counts, low=LOW, high=HIGH, above=ABOVE, scale=SCALE, entropy=entropy)


def _tail(least: int) -> float:
    """The chance that noise is so much or more."""
    a = exp(-1 / SCALE)
    return a**least / (1 + a) if least > 0 else 1 - a ** (1 - least) / (1 + a)


@pytest.mark.slow
def test_sets_come_out_as_often_as_from_the_dense_mechanism() -> None:
    entropy, draws = FixedEntropy(2), 1500
    values = list(range(LOW, HIGH + 1))
    chances = [_tail(ABOVE + 1 - COUNTS.get(v, 0)) for v in values]
    sets = list(product([False, True], repeat=len(values)))
    shares = np.array([np.prod([p if hit else 1 - p for p, hit in zip(chances, s, strict=True)]) for s in sets])
    seen = dict.fromkeys(sets, 0)
    for _ in range(draws):
        found = set(_release(entropy)[:, 0].tolist())
        seen[tuple(v in found for v in values)] += 1
    expected = shares * draws
    observed = np.array([seen[s] for s in sets])
    rare = expected < 5
    folded = np.append(observed[~rare], observed[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    assert stats.chisquare(*folded).pvalue > 1e-3


@pytest.mark.slow
def test_heights_have_the_law_of_the_dense_mechanism() -> None:
    sparse, dense = FixedEntropy(3), FixedEntropy(4)
    found = np.concatenate([_release(sparse) for _ in range(1000)])
    for value in range(LOW, HIGH + 1):
        heights = found[found[:, 0] == value, 1]
        wanted = COUNTS.get(value, 0) + discrete_laplace(20_000, SCALE, dense)
        wanted = wanted[wanted > ABOVE]
        most = int(np.quantile(wanted, 0.95))
        seen = np.bincount(np.minimum(heights, most), minlength=most + 1)[ABOVE + 1 :]
        shares = np.bincount(np.minimum(wanted, most), minlength=most + 1)[ABOVE + 1 :]
        assert stats.chi2_contingency([seen, shares]).pvalue > 1e-3


def test_a_wrong_number_of_zeros_would_be_caught() -> None:
    """The same test as above has the power to see false positives that are missing."""
    entropy, draws = FixedEntropy(5), 600
    zeros = [v for v in range(LOW, HIGH + 1) if v not in COUNTS]
    found = sum(int(np.isin(_release(entropy)[:, 0], zeros).sum()) for _ in range(draws))
    expected = draws * len(zeros) * _tail(ABOVE + 1)
    assert abs(found - expected) < 5 * expected**0.5
    assert expected > 100


def test_the_whole_of_int64_is_a_domain() -> None:
    places = np.array([INT64.min, 0, INT64.max], np.int64)
    counts = np.array([10**6] * 3, np.int64)
    found = sparse_histogram(
        places, counts, low=INT64.min, high=INT64.max, above=4000, scale=Fraction(100), entropy=FixedEntropy(1)
    )
    assert set(places.tolist()) <= set(found[:, 0].tolist())
    assert len(found) > 10  # about 39 of the 2**64 zeros
    assert (np.diff(found[:, 0].astype(object)) > 0).all()
    assert found[:, 1].min() > 4000


@pytest.mark.parametrize("present", [[], [5], [5, 6, 7]])
def test_zeros_are_never_where_something_is(present: list[int]) -> None:
    places = np.array(present, np.int64)
    found = sparse_histogram(
        places, np.full(len(present), -(10**9)), low=5, high=7, above=0, scale=Fraction(5), entropy=FixedEntropy(7)
    )
    assert not set(found[:, 0].tolist()) & set(present)
    assert set(found[:, 0].tolist()) <= {5, 6, 7}
