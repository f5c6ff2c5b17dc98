"""How many rows entities have that noise hides: laws of tails, and how likely each makes all that was released.

Few entities may have many rows each, so that no bin of fanouts that holds them stands out of the noise. Laws of how
many rows such an entity has (log-normal, power laws that end) and numbers of such entities are weighed by the noisy
bins, by what the known total leaves, and by counts of rows that are clipped at two limits. All of it is a function of
released and public numbers, and so is the limit of the second count (docs/proofs/tree.md, 7).
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from privbench.methods.method import DEVIATIONS
from privbench.methods.tree.sizes import Size
from privbench.privacy.calibrate import Noise
from privbench.spn.fanouts import Edges, bin_means, bin_of

Floats = NDArray[np.float64]

FIRST_LIMIT = 16
"""The limit of the first count."""
MOST_LIMIT = 1024
"""The highest limit of the second count."""
STANDS_OUT = 3.0
"""The second count is expected to be so many standard deviations of its noise."""
MOST_ROWS = 2**16
"""The most rows that a law gives an entity."""
STEPS = 400
CENTRES, SPREADS = np.linspace(-1, 7.5, 30), (0.2, 0.35, 0.6, 0.9, 1.3, 1.7, 2.2)
"""Log-normal laws, in logarithms of rows."""
EXPONENTS, ENDS = (1.2, 1.6, 2.0, 2.4, 2.8, 3.5), (8.0, 32.0, 128.0, 512.0, 2048.0, math.inf)
"""Power laws: x**-exponent * exp(-x / end)."""
STARTS = (4, 8, 16, 32, 64, 128, 256)
"""Power laws may also begin at so many rows: who has any has that many."""
NEVER = -1e3
HOLDERS: Floats = np.append(1e-6, np.exp(np.linspace(math.log(0.3), math.log(6e6), 168)))
"""Numbers of entities that have rows, hardly any among them; all are as likely before anything is known."""
FEWEST_HOLDERS = 17
"""So many of these numbers are looked at, however few entities there are: up to about one."""
MORE_HOLDERS = 1.2
"""At most so many times the entities have rows: their number may be noisy."""
BIN_MISFIT, COUNT_MISFIT = 0.1, 0.04
"""How far a bin, and a clipped count, may be from any law, as a share of it."""
HIDDEN_WEIGHT = 1.0
"""Beside bins that stand out a law counts by all rows to the power of minus this: what is hidden is rarely many times
what is seen."""
NEAR = 1.5
"""Laws are taken to give about as many rows as are expected within this factor."""
ROWS_MISFIT = 0.25
"""The same of the logarithm of the rows that a law gives: real ones follow none."""
SEEN_MISFIT = 0.03
"""How far the rows of clear bins may be off beside their noise, as a share of them."""
LEAST_SHARE = 1e-6
"""Laws that give less than this share of entities any of the numbers that are possible are left out."""
WIDE = 1.5
"""A range is wide if its upper end is more than so many times its lower one."""
LOW, HIGH = 0.05, 0.95
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
NODE_WEIGHTS /= NODE_WEIGHTS.sum()
"""A normal law by five numbers, and how much each counts."""
WIDEST = 1e6
"""The ends of a range are told apart up to this factor."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyBins:
    """A noisy histogram of how many rows owners have, from none on."""

    edges: Edges
    counts: Floats
    noise: Noise
    clear: int
    """How many bins stand out of the noise."""

    @property
    def hidden(self) -> bool:
        """Whether none stands out but that of owners without rows."""
        return self.clear <= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedCount:
    """The sum over entities of min(rows, limit), over the limit, with noise."""

    limit: int
    total: float
    noise: Noise
    variance: float = 0.0
    """Beside that of the noise."""


@cache
def _laws() -> tuple[NDArray[np.int64], Floats]:
    """Numbers of rows at even steps of their logarithm, and by law the share of entities with about so many."""
    numbers = np.unique(np.round(np.geomspace(1, MOST_ROWS, STEPS)).astype(np.int64))
    widths, logs = np.diff(np.append(numbers, numbers[-1] + 1)), np.log(numbers)
    normal = [-logs - (logs - centre) ** 2 / (2 * spread**2) for centre, spread in product(CENTRES, SPREADS)]
    power = [-exponent * logs - numbers / end for exponent, end in product(EXPONENTS, ENDS)]
    late = [-exponent * logs + np.where(numbers < start, NEVER, 0.0) for exponent, start in product(EXPONENTS, STARTS)]
    densities = np.array([*normal, *power, *late])
    shares = widths * np.exp(densities - densities.max(axis=1, keepdims=True))
    return numbers, shares / shares.sum(axis=1, keepdims=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SizeLaws:
    """How likely numbers of entities whose rows are hidden are, with laws of how many each has, beside those seen."""

    holders: Floats  # (holders,)
    numbers: NDArray[np.int64]  # (numbers,)
    shares: Floats  # (laws, numbers)
    logs: Floats  # (holders, laws)
    seen: Floats  # (clear bins,): entities
    seen_means: Floats  # (clear bins,): their rows
    seen_noise: float = 0.0
    """The standard deviation of entities in a clear bin."""

    @property
    def weights(self) -> Floats:
        """How likely each number with each law is; all add up to one."""
        weights = np.exp(self.logs - self.logs.max())
        return np.asarray(weights / weights.sum(), np.float64)

    def counted(self, limit: int) -> Floats:
        """The clipped count that each number with each law makes likely, over its limit."""
        seen = self.seen @ np.minimum(self.seen_means, limit)
        counts: Floats = (seen + np.outer(self.holders, self.shares @ np.minimum(self.numbers, limit))) / limit
        return counts

    def with_count(self, count: ClippedCount) -> "SizeLaws":
        """The same after a clipped count."""
        expected = self.counted(count.limit)
        seen = (self.seen_noise * np.minimum(self.seen_means, count.limit) / count.limit) ** 2
        known = count.noise.variance + count.variance + float(seen.sum())
        variance = known + expected + (COUNT_MISFIT * expected) ** 2
        return replace(self, logs=self.logs + _log_likelihood(count.total - expected, variance, count.noise))

    def second_limit(self, deviation: float) -> int:
        """The highest power of two at which the count is expected to stand out of noise of that deviation."""
        limits = [2**power for power in range(MOST_LIMIT.bit_length())]
        expected = [float((self.weights * self.counted(limit)).sum()) for limit in limits]
        clear = [limit for limit, count in zip(limits, expected, strict=True) if count >= STANDS_OUT * deviation]
        return max(clear, default=FIRST_LIMIT)

    def size(self) -> Size:
        """The median of the rows, and their range of 90 %.

        So many entities of a law have more or fewer rows than they have on average, the more so the longer its tail.
        """
        means = self.shares @ self.numbers
        squares = (self.shares @ self.numbers.astype(np.float64) ** 2) / means**2 - 1
        spread = np.sqrt(np.log1p(squares / np.maximum(self.holders, 1.0)[:, None]) + ROWS_MISFIT**2)
        hidden = (np.outer(self.holders, means) * np.exp(-(spread**2) / 2))[None] * np.exp(
            spread * NODES[:, None, None]
        )
        rows = (self.seen @ self.seen_means + hidden).ravel()
        order = np.argsort(rows)
        below = np.cumsum((NODE_WEIGHTS[:, None, None] * self.weights).ravel()[order])
        low, middle, high = rows[order][np.minimum(np.searchsorted(below, [LOW, 0.5, HIGH]), len(rows) - 1)].tolist()
        noise = DEVIATIONS * math.hypot(
            self.seen_noise * float(np.linalg.norm(self.seen_means)), SEEN_MISFIT * self.seen @ self.seen_means
        )
        low, high = max(middle - math.hypot(middle - low, noise), 0.0), middle + math.hypot(high - middle, noise)
        return Size(middle, _error(low, high), low, high)

    def bin_shares(self, edges: Edges, rows: float, entities: float) -> Floats:
        """The share of entities in each bin, by the laws that give about so many rows."""
        near = np.where(np.abs(np.log(self.rows / rows)) <= math.log(NEAR), self.weights, 0.0)
        by_number = (near * self.holders[:, None]).sum(axis=0) @ self.shares / max(float(near.sum()), 1e-300)
        shares = np.bincount(bin_of(self.numbers, edges), weights=by_number, minlength=len(edges) - 1) / max(
            entities, 1.0
        )
        shares[0] = max(1 - shares[1:].sum(), 0.0)
        return np.asarray(shares / shares.sum(), np.float64)

    @property
    def rows(self) -> Floats:
        """The rows that each number with each law makes."""
        rows: Floats = self.seen @ self.seen_means + np.outer(self.holders, self.shares @ self.numbers)
        return rows


def all_laws(entities: float, *, least: int = 1, most: int = MOST_ROWS) -> SizeLaws:
    """All laws, as likely as each other, for at most so many entities that have so many rows each."""
    numbers, shares = _laws()
    some = (numbers >= least) & (numbers <= most)
    some[np.searchsorted(numbers, min(least, MOST_ROWS))] = True  # numbers come in steps, which may leave out a range
    kept = shares[:, some].sum(axis=1) > LEAST_SHARE
    shares = shares[kept][:, some]
    holders = HOLDERS[: max(int(np.searchsorted(HOLDERS, MORE_HOLDERS * entities)), FEWEST_HOLDERS)]
    return SizeLaws(
        holders=holders,
        numbers=numbers[some],
        shares=shares / shares.sum(axis=1, keepdims=True),
        logs=np.zeros((len(holders), len(shares))),
        seen=np.empty(0),
        seen_means=np.empty(0),
    )


def laws_of_bins(bins: NoisyBins, entities: float, exponent: float, *, most: int = MOST_ROWS) -> SizeLaws:
    """Laws of the rows beyond the bins that stand out, by the others and by what the total leaves."""
    edges, clear = bins.edges, max(bins.clear, 1)
    laws = all_laws(entities, least=int(edges[clear]), most=most)
    codes = bin_of(laws.numbers, edges)
    by_bin = np.stack([np.bincount(codes, weights=s, minlength=len(edges) - 1)[clear:] for s in laws.shares])
    expected = laws.holders[:, None, None] * by_bin
    variance = bins.noise.variance + expected + (BIN_MISFIT * expected) ** 2
    logs = _log_likelihood(bins.counts[clear:] - expected, variance, bins.noise).sum(axis=-1)
    left = entities - bins.counts[:clear].sum() - laws.holders
    logs += _log_likelihood(left, clear * bins.noise.variance + laws.holders, bins.noise)[:, None]
    laws = replace(
        laws,
        logs=logs,
        seen=np.maximum(bins.counts[1:clear], 0.0),
        seen_means=bin_means(edges, exponent)[1:clear],
        seen_noise=math.sqrt(bins.noise.variance),
    )
    return replace(laws, logs=logs - HIDDEN_WEIGHT * np.log(laws.rows)) if clear > 1 else laws


def is_wide(size: Size) -> bool:
    """Whether what noise hides may change a size by much."""
    return size.high > WIDE * size.low


def within(size: Size, laws: Size) -> Size:
    """A size with what laws say of its range: the range of both, or that of the laws alone if the size is not in it."""
    if not laws.low <= size.rows <= laws.high:
        return laws
    low, high = min(size.low, laws.low), max(size.high, laws.high)
    return Size(size.rows, size.error, low, high)


def _error(low: float, high: float) -> float:
    """The standard deviation of the logarithm of a size with such a range."""
    return math.log(max(high, 1.0) / max(low, high / WIDEST, 1.0)) / (2 * DEVIATIONS)


def _log_likelihood(off: Floats, variance: Floats, noise: Noise) -> Floats:
    """How likely it is to be so far off, as a logarithm: by the law of the noise, with a larger variance."""
    distances = off**2 / (2 * variance) if noise.gaussian else np.abs(off) * np.sqrt(2 / variance)
    return np.asarray(-distances - np.log(variance) / 2, np.float64)
