import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from privbench.privacy.noise import TestEntropy
from privbench.privacy.select import exponential_mechanism, permute_and_flip

from .audit import renyi

ALPHA = 1e-6
CASES = [([0, 0], 2), ([0, -1, -3], 2), ([5, 5, 4, 0], Fraction(5, 3)), ([7], 1), ([-9, 0, -9], 4)]


def flip_law(scores: list[int], scale: Fraction | int) -> NDArray[np.float64]:
    """Go through every order of the candidates; in each, the first to show heads is taken."""
    heads = [math.exp((score - max(scores)) / scale) for score in scores]
    law = np.zeros(len(scores))
    orders = list(permutations(range(len(scores))))
    for order in orders:
        nobody = 1.0
        for candidate in order:
            law[candidate] += nobody * heads[candidate] / len(orders)
            nobody *= 1 - heads[candidate]
    return law


def noisy_max_law(scores: list[int], scale: Fraction | int) -> NDArray[np.float64]:
    """Integrate P(candidate's score + Exponential is the largest)."""

    def density(x: float, at: int) -> float:
        others = [1 - math.exp(-max(0.0, x - s) / scale) for i, s in enumerate(scores) if i != at]
        return math.exp(-(x - scores[at]) / scale) / scale * math.prod(others)

    top = max(scores)
    pieces = [integrate.quad(density, top, top + 60 * scale, args=(i,))[0] for i in range(len(scores))]
    return np.array(pieces)


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("scores", "scale"), CASES, ids=str)
def test_the_choice_follows_the_law(scores: list[int], scale: Fraction | int) -> None:
    law = flip_law(scores, scale)
    assert law.sum() == pytest.approx(1)
    assert law == pytest.approx(noisy_max_law(scores, scale), abs=1e-6)
    entropy, given = TestEntropy(21), np.array(scores)
    chosen = [permute_and_flip(given, scale=Fraction(scale), entropy=entropy) for _ in range(5_000)]
    seen = np.bincount(chosen, minlength=len(scores))
    assert len(scores) == 1 or stats.chisquare(seen, law * len(chosen)).pvalue > ALPHA


def test_the_test_sees_a_wrong_scale() -> None:
    scores, entropy = np.array([5, 4, 0]), TestEntropy(22)
    seen = np.bincount([permute_and_flip(scores, scale=Fraction(2), entropy=entropy) for _ in range(5_000)])
    for wrong in (Fraction(7, 5), Fraction(13, 5)):
        assert stats.chisquare(seen, flip_law(scores.tolist(), wrong) * 5_000).pvalue < ALPHA


def test_the_exact_loss_is_at_most_epsilon_and_reaches_it() -> None:
    epsilon, sensitivity = 1, 1
    scale = Fraction(2 * sensitivity, epsilon)
    worst = 0.0
    for scores in np.ndindex(4, 4, 4):
        for move in np.ndindex(3, 3, 3):
            neighbour = [s + m - 1 for s, m in zip(scores, move, strict=True)]
            ratio = np.log(flip_law(list(scores), scale) / flip_law(neighbour, scale))
            worst = max(worst, float(np.abs(ratio).max()))
    assert worst == pytest.approx(epsilon)


def test_monotone_scores_need_half_the_scale() -> None:
    worst = 0.0
    for scores in np.ndindex(4, 4, 4):
        for move in np.ndindex(2, 2, 2):
            neighbour = [s + m for s, m in zip(scores, move, strict=True)]
            ratio = np.log(flip_law(list(scores), 1) / flip_law(neighbour, 1))
            worst = max(worst, float(np.abs(ratio).max()))
    assert worst == pytest.approx(1)


def exponential_law(scores: Sequence[int], scale: Fraction | int) -> NDArray[np.float64]:
    """The softmax of the scores."""
    weights = np.exp((np.array(scores) - max(scores)) / float(scale))
    return np.asarray(weights / weights.sum())


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("scores", "scale"), CASES, ids=str)
def test_the_exponential_mechanism_follows_its_law(scores: list[int], scale: Fraction | int) -> None:
    entropy, given = TestEntropy(23), np.array(scores)
    chosen = [exponential_mechanism(given, scale=Fraction(scale), entropy=entropy) for _ in range(5_000)]
    seen = np.bincount(chosen, minlength=len(scores))
    law = exponential_law(scores, scale)
    assert len(scores) == 1 or stats.chisquare(seen, law * len(chosen)).pvalue > ALPHA


@pytest.mark.slow
def test_the_test_sees_a_wrong_scale_of_the_exponential_mechanism() -> None:
    scores, entropy = np.array([5, 4, 0]), TestEntropy(24)
    seen = np.bincount([exponential_mechanism(scores, scale=Fraction(2), entropy=entropy) for _ in range(5_000)])
    for wrong in (Fraction(7, 5), Fraction(13, 5)):
        assert stats.chisquare(seen, exponential_law(scores.tolist(), wrong) * 5_000).pvalue < ALPHA


@pytest.mark.parametrize(
    ("moves", "span"),
    [((-1, 0, 1), 2), ((0, 1), 1), ((-2, -1, 0, 1, 2), 4)],
    ids=["added or removed", "monotone", "replaced"],
)
def test_the_exponential_mechanism_loses_an_eighth_of_the_square(moves: tuple[int, ...], span: int) -> None:
    """With scores that move by D the gap between two of them moves by 2 D (D if monotone; 4 D if replaced)."""
    scale, worst = Fraction(2), 0.0
    rho = float(Fraction(span) / scale) ** 2 / 8
    for scores in product(range(3), repeat=3):
        for move in product(moves, repeat=3):
            neighbour = [s + m for s, m in zip(scores, move, strict=True)]
            laws = exponential_law(scores, scale), exponential_law(neighbour, scale)
            worst = max(worst, *(renyi(*laws, order) / order / rho for order in (1.1, 2.0, 8.0)))
    assert 0.8 < worst <= 1


def test_many_candidates_of_which_one_is_good() -> None:
    scores = np.zeros(5_000, np.int64)
    scores[3_210] = 10**9
    assert exponential_mechanism(scores, scale=Fraction(1000), entropy=TestEntropy(25)) == 3_210


@pytest.mark.parametrize("choose", [permute_and_flip, exponential_mechanism])
def test_scores_at_both_ends_of_the_integers(choose: Callable[..., int]) -> None:
    ends = np.array([-(2**63), 2**63 - 1])
    assert choose(ends, scale=Fraction(1, 2**50), entropy=TestEntropy(26)) == 1


@pytest.mark.parametrize(
    "scores",
    [
        np.array([0.5, 1.0]),
        np.array([], dtype=np.int64),
        np.zeros((2, 2), dtype=np.int64),
        np.arange(3, dtype=np.int32),
    ],
)
def test_only_a_row_of_integers_is_taken(scores: NDArray[np.int64]) -> None:
    for choose in (permute_and_flip, exponential_mechanism):
        with pytest.raises(ValueError, match="int64"):
            choose(scores, scale=Fraction(1), entropy=TestEntropy(1))
