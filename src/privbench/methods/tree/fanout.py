"""A noisy histogram of fanouts to shares: falling beyond the mode, with power laws where noise hides the end.

Numbers of rows come in bins that grow, so one noisy bin in the tail could invent as many rows as there are. Beyond its
mode the density is made to fall; the end that does not stand out of the noise is replaced by power laws that go on
from the last bin that does, averaged by how likely each makes the noisy counts. Where the mean is public, the one law
that meets it is taken. All of it is post-processing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.price import Noise
from privbench.spn.fanouts import Edges, bin_means

Floats = NDArray[np.float64]

SIGNIFICANT = 5.0
"""A stretch of the tail stands out if each of its bins has on average this many noise scales: the widest alone decides
the density of a stretch, and its noise is worth many rows."""
EXPONENTS = 1 + np.geomspace(0.9, 19.0, 24)
"""Of the laws that a hidden tail may follow: from tails that hold most rows to ends as sharp as that of a career."""
MEETING = (1.05, 6.0)
"""Exponents among which the one is sought that meets a public mean."""
INSIDE = 2.0
"""Exponent of the density inside a bin where the mean is private."""
LEAST_TAIL = 0.15
"""A hidden tail weighs at least this many noise scales."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FanoutShares:
    """The share of each bin, and the exponent of the density inside bins."""

    shares: Floats
    exponent: float


def fanout_shares(noisy: Floats, noise: Noise, edges: Edges, *, mean: float | None) -> FanoutShares:
    """Shares of bins from noisy counts; with a public mean, by the exponent that meets it."""
    kept, tail = _falling(noisy, noise, edges)
    if mean is None:
        return FanoutShares(shares=_shares(kept, tail, _likely_tail(kept, noisy, noise, edges, tail)), exponent=INSIDE)

    def shares(exponent: float) -> Floats:
        return _shares(kept, tail, _law(kept, noisy, noise, edges, tail, exponent)[1:])

    low, high = MEETING
    for _ in range(20):
        middle = (low + high) / 2
        if float(shares(middle) @ bin_means(edges, middle)) > mean:
            low = middle
        else:
            high = middle
    return FanoutShares(shares=shares(low), exponent=low)


def _falling(noisy: Floats, noise: Noise, edges: Edges) -> tuple[Floats, int]:
    """Counts with a density that falls beyond the mode, and where the tail begins that noise hides."""
    widths = np.diff(edges).astype(np.float64)
    size = len(noisy)
    kept = noisy.astype(np.float64).copy()
    mode = 1 + int(np.argmax(noisy[1:] / widths[1:])) if size > 1 else 0
    tail = size
    if size - mode > 1:
        density, pools = _pool_falling(noisy[mode:] / widths[mode:], widths[mode:] ** 2)
        kept[mode:] = density * widths[mode:]
        for pool in range(int(pools.max()) + 1):
            places = np.flatnonzero(pools == pool)
            if kept[mode + places].sum() < SIGNIFICANT * noise.scale * len(places):
                tail = mode + int(places[0])
                break
    kept[:mode] = np.maximum(kept[:mode], 0.1 * noise.scale)
    return np.maximum(kept, 0.0), tail


def _likely_tail(kept: Floats, noisy: Floats, noise: Noise, edges: Edges, tail: int) -> Floats:
    """The mean of the tails by all laws, each weighted by how likely it makes the last clear bin and the noisy ones."""
    laws = np.stack([_law(kept, noisy, noise, edges, tail, exponent) for exponent in EXPONENTS])
    distances = np.abs(laws - np.append(kept[tail - 1], noisy[tail:])) / noise.scale
    if noise.gaussian:
        distances = distances**2 / 2
    badness = distances.sum(axis=1)
    weights = np.exp(badness.min() - badness)
    likely: Floats = (weights / weights.sum()) @ laws[:, 1:]
    return likely


def _law(kept: Floats, noisy: Floats, noise: Noise, edges: Edges, tail: int, exponent: float) -> Floats:
    """Counts by a power law in the last clear bin and all after it, at the height that is nearest to what was found."""
    first = np.maximum(edges[tail - 1 : -1] - 0.5, 0.5)
    law = first ** (1 - exponent) - (edges[tail:] - 0.5) ** (1 - exponent)
    law /= max(law.sum(), 1e-300)
    found = np.append(kept[tail - 1], noisy[tail:])
    height = max(float(law @ found) / max(float(law @ law), 1e-300), LEAST_TAIL * noise.scale)
    scaled: Floats = law * height
    return scaled


def _shares(kept: Floats, tail: int, ending: Floats) -> Floats:
    found = np.append(kept[:tail], ending)
    total = float(found.sum())
    return found / total if total > 0 else np.eye(1, len(found))[0]


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
