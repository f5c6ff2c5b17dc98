"""A noisy histogram of fanouts to shares: falling beyond the mode, with laws where noise hides the end.

Numbers of rows come in bins that grow, so one noisy bin in the tail could invent as many rows as there are. Beyond its
mode the density is made to fall, unless a bin clearly does not; the end that does not stand out of the noise is
replaced by power laws with exponential ends that go on from the last bin that does, averaged by how likely each makes
the noisy counts and their known total, and by how few rows it takes. Where the mean is public, the average is tilted to
meet it. All of it is post-processing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.calibrate import Noise
from privbench.spn.fanouts import Edges, bin_means

Floats = NDArray[np.float64]

SIGNIFICANT = 5.0
"""A stretch of the tail stands out if each of its bins has on average this many noise scales: the widest alone decides
the density of a stretch, and its noise is worth many rows."""
SURELY = 10.0
"""So many noise scales show that a stretch is no noise, though one before it does not stand out."""
ALONE = 12.0
"""The same of a single bin inside a stretch."""
APART = 3.0
"""A clear bin that is farther from a falling density than this many noise scales stays as it is: rows may come in
batches, or owners be of two kinds."""
EXPONENTS = (0.0, 1.0, 2.0, 3.0, 6.0, 20.0)
ENDS = (*(4.0**power for power in range(7)), np.inf)
LAWS: Floats = np.array([law for law in product(EXPONENTS, ENDS) if law[0] >= 2 or law[1] <= 64])
"""A hidden tail may fall by x**-exponent * exp(-x / end): from tails that hold most rows to tails that end sharply.
Laws that hardly fall (exponent below 2) are only used with an early end."""
ROWS_WEIGHT = 1.5
"""A law counts by the rows of all owners to the power of minus this: tails that noise could have made are short."""
ROWS_WEIGHTS = (60.0, -60.0)
"""Between these the weight of rows is sought that gives a public mean."""
LEAST_TAIL = 0.1
"""A hidden tail weighs at least this many noise scales."""
INSIDE = 2.0
"""Exponent of the density inside a bin whose neighbours say nothing."""
SLOPES = (12.0, -4.0)
"""Between these lie exponents inside bins."""
ROUNDS = 24


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FanoutShares:
    """The share of each bin, the exponent of the density inside bins, and how many bins stand out of the noise."""

    shares: Floats
    exponent: float
    clear: int


def fanout_shares(
    noisy: Floats, noise: Noise, edges: Edges, *, total: float, mean: float | None, rows_weight: float = ROWS_WEIGHT
) -> FanoutShares:
    """Shares of bins from noisy counts that should add up to `total`; `mean` is that of all numbers, if public."""
    if len(noisy) == 1:
        return FanoutShares(shares=np.ones(1), exponent=INSIDE, clear=1)
    kept, tail = _falling(noisy, noise, edges)
    laws = _laws(kept, noisy, noise, edges, tail, total)

    def shares(weight_of_rows: float) -> Floats:
        return _shares(kept[:tail], laws.tail(weight_of_rows), total)

    weight_of_rows = (
        rows_weight
        if mean is None
        else _meeting(mean, ROWS_WEIGHTS, lambda weight_of_rows: _mean(shares(weight_of_rows), edges))
    )
    fitted = shares(weight_of_rows)
    wanted = _mean(fitted, edges) if mean is None else mean
    exponent = _meeting(wanted, SLOPES, lambda exponent: float(fitted @ bin_means(edges, exponent)))
    return FanoutShares(shares=fitted, exponent=exponent, clear=tail if mean is None else len(noisy))


def _falling(noisy: Floats, noise: Noise, edges: Edges) -> tuple[Floats, int]:
    """Counts with a density that falls beyond the mode, and where the tail begins that noise hides."""
    widths = np.diff(edges).astype(np.float64)
    kept = noisy.astype(np.float64).copy()
    mode = 1 + int(np.argmax(noisy[1:] / widths[1:]))
    density, pools = _pool_falling(noisy[mode:] / widths[mode:], widths[mode:] ** 2)
    kept[mode:] = density * widths[mode:]
    tail = mode + _hidden_from(kept[mode:], noisy[mode:], pools, noise)
    kept[:mode] = np.maximum(kept[:mode], 0.1 * noise.scale)
    apart = np.abs(noisy - kept) > APART * noise.scale
    apart[tail:] = False
    kept[apart] = np.maximum(noisy[apart], 0.1 * noise.scale)
    return np.maximum(kept, 0.0), 1 if tail == mode else tail


def _hidden_from(kept: Floats, noisy: Floats, pools: NDArray[np.int64], noise: Noise) -> int:
    """The first bin of the first stretch that does not stand out, with no stretch beyond it that surely does.

    A single bin shows that its stretch does, though all others of it are empty: owners may be of two kinds.
    """
    scales = np.bincount(pools, weights=kept) / (noise.scale * np.bincount(pools))
    alone = pools[noisy >= ALONE * noise.scale]
    sure = int(max(np.flatnonzero(scales >= SURELY).max(initial=-1), alone.max(initial=-1)))
    hidden = np.flatnonzero(scales[sure + 1 :] < SIGNIFICANT)
    return int(np.searchsorted(pools, sure + 1 + hidden[0])) if len(hidden) else len(kept)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Laws:
    """What each law makes of the last clear bin and the hidden ones, all rows with it, and how unlikely it is."""

    counts: Floats  # (laws, bins)
    rows: Floats
    badness: Floats
    clear: int

    def tail(self, weight_of_rows: float) -> Floats:
        """The mean of the hidden bins by all laws."""
        badness = self.badness + weight_of_rows * np.log(self.rows)
        weights = np.exp(badness.min() - badness)
        mean: Floats = (weights / weights.sum()) @ self.counts[:, self.clear :]
        return mean


def _laws(kept: Floats, noisy: Floats, noise: Noise, edges: Edges, tail: int, total: float) -> _Laws:
    """All laws, each at the height that is nearest to the last clear bin, the noisy ones and what the total leaves.

    Owners without rows follow no law, and are never the last clear bin.
    """
    first = max(tail - 1, 1)
    seen = np.append(kept[first:tail], noisy[tail:])
    left = total - noisy[0] - kept[1:first].sum()
    numbers, widths = _middles(edges)[first:], np.diff(edges)[first:]
    exponents, ends = LAWS[:, :1], LAWS[:, 1:]
    logs = np.log(widths) - exponents * np.log(numbers) - numbers / ends
    laws = np.exp(logs - logs.max(axis=1, keepdims=True))
    laws /= laws.sum(axis=1, keepdims=True)
    # What the total leaves has the noise of all bins before, so it weighs as much less.
    heights = (laws @ seen + left / first) / ((laws**2).sum(axis=1) + 1 / first)
    heights = np.maximum(heights, LEAST_TAIL * noise.scale)
    counts = laws * heights[:, None]
    distances = np.abs(np.column_stack([counts - seen, (heights - left) / np.sqrt(first)])) / noise.scale
    if noise.gaussian:
        distances = distances**2 / 2
    means = bin_means(edges, INSIDE)
    rows = kept[:first] @ means[:first] + counts @ means[first:]
    return _Laws(counts=counts, rows=rows, badness=distances.sum(axis=1), clear=tail - first)


def _shares(clear: Floats, hidden: Floats, total: float) -> Floats:
    """Shares from counts; what they miss of the total, or have too much, is taken evenly from the clear bins."""
    missing = total - clear.sum() - hidden.sum()
    counts = np.append(np.maximum(clear + missing / len(clear), 0.0), hidden)
    shares: Floats = counts / counts.sum() if counts.sum() > 0 else np.eye(1, len(counts))[0]
    return shares


def _mean(shares: Floats, edges: Edges) -> float:
    """The mean number, if the density inside a bin goes on as between its neighbours (monotone interpolation)."""
    densities = np.log(np.maximum(shares[1:], 1e-300) / np.diff(edges)[1:])
    slopes = np.diff(densities) / np.diff(np.log(_middles(edges)[1:]))
    before, after = slopes[:-1], slopes[1:]
    agree = before * after > 0
    exponents = np.full(len(shares), INSIDE)
    exponents[2:-1] = np.where(agree, -2 * before * after / np.where(agree, before + after, 1.0), 0.0)
    return float(shares @ bin_means(edges, np.clip(exponents, min(SLOPES), max(SLOPES))))


def _middles(edges: Edges) -> Floats:
    """A number in the middle of each bin, on the scale of logarithms."""
    middles: Floats = np.sqrt(np.maximum(edges[:-1], 0.5) * np.maximum(edges[1:] - 1, 0.5))
    return middles


def _meeting(wanted: float, between: tuple[float, float], value: Callable[[float], float]) -> float:
    """Where a function meets a value, by halving; it rises from the first to the second of the ends."""
    low, high = between
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        if value(middle) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _pool_falling(values: Floats, weights: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """The falling sequence nearest to values (pool adjacent violators), and which pool each belongs to."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        pools.append((value, weight, 1))
        while len(pools) > 1 and pools[-2][0] < pools[-1][0]:
            (a, wa, na), (b, wb, nb) = pools[-2:]
            pools[-2:] = [((a * wa + b * wb) / (wa + wb), wa + wb, na + nb)]
    sizes = [n for _, _, n in pools]
    return np.repeat([v for v, _, _ in pools], sizes), np.repeat(np.arange(len(pools)), sizes)
