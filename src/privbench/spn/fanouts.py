"""Numbers of rows in bins, and drawn again inside their bin: fanouts, in-degrees, ranks, sizes of entities.

The bins are public: small numbers have a bin each, larger ones share bins that grow by the square root of two.
Learner and generator take them from here, so that both mean the same by a code.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.deal import grouped

Numbers = NDArray[np.int64]
Edges = NDArray[np.int64]
"""Edges of bins: code b means edges[b] <= number < edges[b + 1]."""

MANY = 2**40
"""More rows than any owner has."""
SIZE_CAP = 2**16
"""From this many rows on, entities share the last bin of sizes."""
STEEPEST = 64.0
"""The largest exponent of a power law inside a bin, up or down."""
LISTED = 2**14
"""The widest bin whose numbers are weighed one by one; in a wider one the steps of the power law do not matter."""
LISTED_FOR_MEAN = 2**10
"""The same for the mean of a bin, which takes fewer."""

RANK_EDGES: Edges = np.array([1, 2, 3, 4, 5, 7, 9, 17, 33, MANY], np.int64)
"""Bins of a row's rank among the rows of its owner, counted from 1."""
RANK_EDGES.setflags(write=False)


def fanout_edges(cap: int) -> Edges:
    """The edges of bins for the numbers 0 .. cap.

    >>> fanout_edges(3).tolist()
    [0, 1, 2, 3, 4]
    >>> fanout_edges(40).tolist()
    [0, 1, 2, 3, 4, 5, 6, 8, 11, 16, 23, 32, 41]
    """
    edges = list(range(6))
    while edges[-1] <= cap:
        edges.append(round(2 ** (len(edges) / 2 - 0.5)))
    return np.array([edge for edge in edges if edge <= cap] + [cap + 1], np.int64)


def size_edges() -> Edges:
    """The edges of bins for the rows that an entity has in a table, from 1; the last bin is open.

    >>> size_edges()[:9].tolist()
    [1, 2, 3, 4, 5, 6, 8, 11, 16]
    """
    edges = fanout_edges(SIZE_CAP)[1:]
    edges[-1] = MANY
    return edges


def bin_of(numbers: NDArray[np.integer], edges: Edges) -> NDArray[np.uint16]:
    """The bin of each number; one outside all bins goes to the first or last.

    >>> bin_of(np.array([0, 2, 99]), fanout_edges(3)).tolist()
    [0, 2, 3]
    """
    inner = edges[1:-1]
    top = min(int(inner[-1]), int(numbers.max())) if len(inner) and len(numbers) else 0
    if 0 < top < len(numbers) and inner[0] > 0:  # a list of bins is faster than a search for each
        bins = np.searchsorted(inner, np.arange(top + 1), side="right").astype(np.uint16)
        return bins.take(numbers, mode="clip")
    return np.searchsorted(inner, numbers, side="right").astype(np.uint16)


def ranks(fanouts: Numbers) -> Numbers:
    """The ranks, from 1, of the rows of owners with these fanouts, owner after owner.

    >>> ranks(np.array([2, 0, 3])).tolist()
    [1, 2, 1, 2, 3]
    """
    starts = np.cumsum(fanouts) - fanouts
    return np.arange(1, int(fanouts.sum()) + 1) - np.repeat(starts, fanouts)


def rank_codes(fanouts: Numbers) -> NDArray[np.uint16]:
    """The bins of those ranks.

    >>> rank_codes(np.array([6])).tolist()
    [0, 1, 2, 3, 4, 4]
    """
    bins = bin_of(np.arange(1, int(fanouts.max(initial=0)) + 1), RANK_EDGES)  # of all ranks that there are
    return bins.take(ranks(fanouts) - 1)


def bin_means(edges: Edges, exponents: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean number of each bin, with P(x) ~ x**-exponent; the exponent may be another in each bin.

    >>> bin_means(np.array([0, 1, 4]), 0.0).tolist()
    [0.0, 2.0]
    """
    each = np.broadcast_to(exponents, len(edges) - 1).tolist()
    return np.array([_mean(int(low), int(high), e) for (low, high), e in zip(pairwise(edges), each, strict=True)])


def draw_numbers(codes: NDArray[np.integer], edges: Edges, exponent: float, *, rng: np.random.Generator) -> Numbers:
    """A number in the bin of each code, with P(x) ~ x**-exponent; systematic in each bin, for low variance.

    >>> sorted(draw_numbers(np.array([0, 2, 2]), np.array([0, 1, 2, 4]), 0.0, rng=np.random.default_rng(0)).tolist())
    [0, 2, 3]
    """
    numbers: Numbers = edges.take(codes)
    places = np.flatnonzero((np.diff(edges) > 1).take(codes))
    drawn = [np.empty(0, np.int64)]
    groups = grouped(codes[places].astype(np.uint32), rng)
    for code, count in zip(codes[places[groups.first]].tolist(), groups.sizes.tolist(), strict=True):
        at = (np.arange(count) + rng.random()) / count
        drawn.append(_quantiles(at, int(edges[code]), int(edges[code + 1]), exponent))
    numbers[places[groups.order]] = np.concatenate(drawn)
    return numbers


def checked_edges(edges: Edges, exponent: float) -> Edges:
    """Copy the edges of a link's bins; ModelError if they, or the exponent of the power law inside, are impossible."""
    copy = np.array(edges)
    if copy.ndim != 1 or copy.size < 2 or copy.dtype != np.int64:
        raise ModelError(f"a link needs the edges of bins as a list of integers, got shape {copy.shape}.")
    if copy[0] < 0 or copy[-1] > MANY or (np.diff(copy) < 1).any():
        raise ModelError("the edges of a link's bins do not ascend from 0 or more, or are too large.")
    if not abs(exponent) <= STEEPEST:  # written so that NaN fails
        raise ModelError(f"a link has an exponent beyond {STEEPEST:g}.")
    copy.setflags(write=False)
    return copy


def _shares(
    low: int, high: int, exponent: float, listed: int = LISTED
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The numbers of a bin and their shares; of a wide bin, numbers at even steps of their logarithm."""
    wide = high - low > listed
    numbers = np.geomspace(max(low, 1), high - 1, listed) if wide else np.arange(low, high, dtype=np.float64)
    # At even steps of the logarithm, each stands for as many numbers as lie around it, in proportion to itself.
    weights = (wide - exponent) * np.log(np.maximum(numbers, 1))
    shares = np.exp(weights - weights.max())
    return numbers, shares / shares.sum()


def _quantiles(at: NDArray[np.float64], low: int, high: int, exponent: float) -> Numbers:
    numbers, shares = _shares(low, high, exponent)
    places = np.minimum(np.searchsorted(np.cumsum(shares), at, side="right"), len(numbers) - 1)
    return np.clip(numbers[places].astype(np.int64), low, high - 1)


def _mean(low: int, high: int, exponent: float) -> float:
    numbers, shares = _shares(low, high, exponent, LISTED_FOR_MEAN)
    return float(numbers @ shares)
