"""How often rows are referenced, given their activity: rates from a noisy table of activity and counted keys.

Of each entity one key is counted, so most rows that are referenced show no count, and a count says little of a row. But
counts of all rows together say how the rate at which keys reference a row depends on its activity. log2 of the rate
is taken as normal around a line in log2 of the activity, counts as Poisson draws; such laws, even ones among them, are
averaged by how likely they make the noisy table. For each level of activity the share of rows without a count corrects
the average. Targets are drawn in proportion to rates, so that keys that were not counted follow the same law as those
that were. All of it is post-processing.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from privbench.methods.tree.coupling import middles, normal
from privbench.methods.tree.pairs import NoisyTable
from privbench.privacy.features import Axis
from privbench.spn.fanouts import Edges

Floats = NDArray[np.float64]

SLOPES = (0.0, 0.2, 0.4, 0.55, 0.7, 0.85, 1.0, 1.2)
SPREADS = (0.25, 0.7, 1.2, 1.8, 2.5, 3.2)
LEVELS = np.arange(-10.0, 2.5, 0.5)
LAWS: Floats = np.array(list(product(SLOPES, SPREADS, LEVELS)))
"""log2 of a rate is level + slope * log2 activity + spread * normal."""
SPREAD_WEIGHT = 0.05
"""A law counts by exp(-spread^2 times this): rates that noise could have made uneven are even."""
LAW_ERROR = 0.1
"""A law is off by about this share of each cell."""
LEAST_DOUBT = 0.02
"""The share of rows without a count is off by at least this much."""
LEAST_WEIGHT = 1e-4
"""Laws that weigh less than this part of the best are left out of the average."""
STEP = 0.5
LOWEST, HIGHEST = -12.0, 14.0
"""log2 of the smallest and of the largest rate."""
ONE = 2**14
"""The weight of a row with a rate of one key."""
RATE_EDGES: Edges = np.unique(np.round(ONE * 2.0 ** np.arange(LOWEST, HIGHEST + STEP / 2, STEP))).astype(np.int64)
"""The edges of bins of rates, in whole weights."""
RATE_EDGES.setflags(write=False)
RATE_EXPONENT = 1.0
"""Inside a bin log2 of a rate is even."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanKeys:
    """About how many keys were counted for each row, and the error of that as a share of it."""

    mean: float
    error: float


def rates_given_activity(
    edges: Edges, counts: Floats, axes: tuple[Axis, Axis], table: NoisyTable, in_degrees: Edges, *, keys: MeanKeys
) -> Floats:
    """The masses of activity, of which `counts` are given, and of bins of rates: (activity, rates).

    `in_degrees` are the edges of the counted keys, the second axis of the table.
    """
    seen = _seen(axes[1], in_degrees)  # (rates, bins)
    shares = _laws(tuple(edges.tolist()))  # (laws, activity, rates)
    rows = np.eye(axes[0].size)[axes[0].bins] * counts[:, None]  # (activity, bins)
    cells = rows.T @ shares @ seen
    scores = _scores(cells, table)
    means = counts @ (shares @ _rates()).T / counts.sum()
    scores -= (np.log(means / keys.mean) / keys.error) ** 2 / 2
    weights = np.exp(scores - scores.max())
    weights[weights < LEAST_WEIGHT] = 0.0
    mean = np.tensordot(weights / weights.sum(), shares, axes=1)
    return counts[:, None] * _corrected(mean, counts, axes[0], seen[:, 0], table)


def _rates() -> Floats:
    """The rate in the middle of each bin."""
    return np.sqrt(RATE_EDGES[:-1] * RATE_EDGES[1:].astype(np.float64)) / ONE


@cache
def _laws(edges: tuple[int, ...]) -> Floats:
    """The share of each bin of rates given each activity in bins, by law: (laws, activity, rates)."""
    levels = middles(np.array(edges))
    cuts = np.log2(RATE_EDGES[1:-1] / ONE)
    slopes, spreads, starts = LAWS.T[:, :, None, None]
    above = normal((starts + slopes * levels[:, None] - cuts) / spreads)
    ends = np.ones((*above.shape[:2], 1))
    shares: Floats = -np.diff(np.concatenate([ends, above, 0 * ends], axis=2), axis=2)
    return shares


def _seen(axis: Axis, edges: Edges) -> Floats:
    """The probability of each bin of counted keys, by rate: (rates, bins)."""
    numbers = np.arange(int(edges[-1]))
    logs = np.array([lgamma(n + 1) for n in numbers.tolist()])
    rates = _rates()
    chances = np.exp(np.log(rates)[:, None] * numbers - rates[:, None] - logs)
    bins = axis.bins[np.searchsorted(edges[1:-1], numbers, side="right")]
    seen: Floats = chances @ np.eye(axis.size)[bins]
    seen[:, -1] += np.maximum(1 - seen.sum(axis=1), 0.0)
    return seen


def _scores(cells: Floats, table: NoisyTable) -> Floats:
    """How likely each law makes the noisy table; the more uneven, the less."""
    wide = np.maximum(table.variance + cells + (LAW_ERROR * cells) ** 2, 1e-9)
    scores: Floats = -((table.cells - cells) ** 2 / (2 * wide) + np.log(wide) / 2).sum(axis=(1, 2))
    return scores - SPREAD_WEIGHT * LAWS[:, 1] ** 2


def _corrected(shares: Floats, counts: Floats, axis: Axis, none: Floats, table: NoisyTable) -> Floats:
    """Shares of rates such that about as many rows of each activity have no count as the noisy table says."""
    rows = np.bincount(axis.bins, counts, minlength=axis.size)
    expected = 1 - np.bincount(axis.bins, counts * (shares @ none), minlength=axis.size) / np.maximum(rows, 1e-9)
    seen = table.cells.sum(axis=1) - table.cells[:, 0]
    spread = table.variance * (table.cells.shape[1] - 1) / np.maximum(rows, 1e-9) ** 2
    doubt = np.maximum(LAW_ERROR * expected, LEAST_DOUBT) ** 2
    trust = doubt / (doubt + spread)
    wanted = np.clip(expected + trust * (seen / np.maximum(rows, 1e-9) - expected), 0.2 * expected, 0.98)
    factor = np.log1p(-wanted) / np.log1p(-np.clip(expected, 1e-9, 0.98))
    return _shifted(shares, np.log2(np.maximum(factor, 1e-3))[axis.bins])


def _shifted(shares: Floats, by: Floats) -> Floats:
    """Shares of rates, each row moved by so many doublings."""
    places = np.arange(shares.shape[1])
    summed = np.cumsum(shares, axis=1)
    moved = np.stack([np.interp(places - d / STEP, places, row) for d, row in zip(by.tolist(), summed, strict=True)])
    moved[:, -1] = 1.0
    found: Floats = np.maximum(np.diff(moved, axis=1, prepend=0.0), 0.0)
    return found
