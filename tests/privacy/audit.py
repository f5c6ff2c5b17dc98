"""Lower bounds on the privacy loss of a mechanism from samples of it, by Clopper and Pearson.

The event is picked on one half of the runs and judged on the other, so that picking costs no confidence. A bound
above the claim, at a small alpha, proves the claim wrong; a bound below it proves nothing, which is why the proofs
come first.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Samples = NDArray[np.int64]
Event = Callable[[Samples], NDArray[np.bool_]]
Pmf = Callable[[Samples, Fraction | float], NDArray[np.float64]]

ALPHA = 1e-4


def loss_bound(left: Samples, right: Samples, *, alpha: float = ALPHA) -> float:
    """A number that the loss between two laws is above with confidence 1 - alpha.

    `left` and `right` are the same statistic of the outputs on two neighbours.
    """
    half = min(left.size, right.size) // 2
    picked = max(
        (
            (_naive(event(a[:half]), event(b[:half])), event, a, b)
            for a, b in ((left, right), (right, left))
            for event in _events(a[:half], b[:half])
        ),
        key=lambda found: found[0],
    )
    _, event, a, b = picked
    return _clopper_pearson(event(a[half:]), event(b[half:]), alpha)


def _events(left: Samples, right: Samples) -> list[Event]:
    """Upper tails, lower tails and points around the middle of the samples."""
    values = np.unique(np.quantile(np.concatenate([left, right]), np.linspace(0.02, 0.98, 25)).astype(np.int64))
    return [partial(compare, value) for value in values for compare in (np.less_equal, np.greater_equal, np.equal)]


def _naive(left: NDArray[np.bool_], right: NDArray[np.bool_]) -> float:
    """The estimated loss less three standard errors: prefers events that will also convince the other half."""
    a, b = int(left.sum()) + 1, int(right.sum()) + 1
    return math.log(a / left.size) - math.log(b / right.size) - 3 * math.sqrt(1 / a + 1 / b)


def _clopper_pearson(left: NDArray[np.bool_], right: NDArray[np.bool_], alpha: float) -> float:
    hits, misses = int(left.sum()), int(right.sum())
    if hits == 0:
        return -math.inf
    low = stats.beta.ppf(alpha / 2, hits, left.size - hits + 1)
    high = 1.0 if misses == right.size else stats.beta.ppf(1 - alpha / 2, misses + 1, right.size - misses)
    return float(math.log(low) - math.log(high))


def laplace_pmf(values: NDArray[np.int64], scale: Fraction | float) -> NDArray[np.float64]:
    """The closed form of the discrete Laplace law."""
    ratio = math.exp(-1 / float(scale))
    law: NDArray[np.float64] = (1 - ratio) / (1 + ratio) * ratio ** np.abs(values)
    return law


def gaussian_pmf(values: NDArray[np.int64], scale: Fraction | float) -> NDArray[np.float64]:
    """The discrete Gaussian law, normalised over all integers that matter."""
    reach = math.ceil(40 * float(scale)) + 2
    whole = np.exp(-((np.arange(-reach, reach + 1) / float(scale)) ** 2) / 2).sum()
    law: NDArray[np.float64] = np.exp(-((values / float(scale)) ** 2) / 2) / whole
    return law


def renyi(left: NDArray[np.float64], right: NDArray[np.float64], order: float) -> float:
    """The Renyi divergence of two laws over the same outputs, from their probabilities."""
    return float(np.log(np.sum(right * (left / right) ** order)) / (order - 1))


def goodness(samples: Samples, scale: Fraction | float, *, pmf: Pmf = laplace_pmf) -> float:
    """The p-value of a chi-square test of samples against a law, about 60 cells and two tails."""
    edge = max(2, math.ceil(4 * float(scale)))
    width = max(1, edge // 30)
    cells = np.arange(-edge, edge + 1)
    groups = (cells + edge) // width
    law = np.bincount(groups, weights=pmf(cells, scale))
    inside = np.abs(samples) <= edge
    seen = np.bincount((samples[inside] + edge) // width, minlength=law.size)
    tail = max(1 - law.sum(), 1e-12) / 2
    expected = np.array([tail, *law, tail]) * samples.size
    observed = np.array([np.sum(samples < -edge), *seen, np.sum(samples > edge)])
    return float(stats.chisquare(observed, expected).pvalue)
