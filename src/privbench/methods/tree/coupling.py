"""A fanout or in-degree given the activity of the row: one table of both, from a noisy one and a family of laws.

Users with many posts have many badges, too: numbers of rows depend on each other through their tails, where noise hides
nearly all of them. So the dependence is described by a law of three numbers: log2 of a number is normal around a line
in log2 of the activity, and below 1 it is none. Every law is raked to what is known of the two columns; laws are
averaged by how likely they make the noisy table, and by how few rows they take. The average replaces independence as
what is expected of a cell, so that the noisy table corrects it where it stands out of the noise. It has a row and a
column for each single code: inside coarse bins the tails stay coupled. All of it is post-processing.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from privbench.methods.tree.pair_shrinkage import shrink
from privbench.methods.tree.pairs import NoisyTable
from privbench.privacy.features import Activity, Axis, Fanout, Feature, InDegree
from privbench.spn.fanouts import Edges, bin_means

Floats = NDArray[np.float64]

SLOPES = (0.3, 0.5, 0.65, 0.8, 0.9, 1.0, 1.2)
SPREADS = (0.4, 0.8, 1.4, 2.2, 3.2)
LEVELS = (-7.0, -5.0, -3.5, -2.5, -1.5, -0.8, 0.0)
LAWS: Floats = np.array(list(product(SLOPES, SPREADS, LEVELS)))
"""log2 of a number is level + slope * log2 activity + spread * normal. A law of independence comes beside these."""
BEYOND = 1e-3
"""Numbers above the activity that contains them keep this part of what a law gives them: laws are rough."""
LAW_ERROR = 0.3
"""A law is off by about this share of each cell."""
ROWS_WEIGHT = 0.5
"""A law counts by its mean number to the power of minus this: tails that noise could have made are short."""
INSIDE = 2.0
"""Exponent of the density inside a bin."""
LEAST_WEIGHT = 1e-3
"""Laws that weigh less than this part of the best are left out of the average."""
FROM = 4
"""Laws are judged by rows of at least this activity: below, a number is most of the activity or none of it."""
LAW_ROUNDS = 6
ROUNDS = 30
TINY = 1e-12


def edges_of(feature: Feature) -> Edges:
    """The edges of the bins of a feature that is a number of rows."""
    source = feature.source
    if not isinstance(source, Fanout | InDegree | Activity):
        raise ValueError(f"{feature.name}: has no numbers of rows")
    return source.edges


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Numbers:
    """A column of numbers in bins: estimated counts, of which the first `clear` stand out of the noise."""

    edges: Edges
    counts: Floats
    clear: int
    noisy: Floats
    scale: float
    """Noise scale of the noisy counts."""
    within: bool = True
    """Whether the activity contains the number."""

    @property
    def groups(self) -> NDArray[np.int64]:
        """Where the clear codes begin, each alone, and the hidden ones, all together."""
        return np.arange(min(max(self.clear, 2), len(self.counts) - 1) + 1)


def couple(activity: Numbers, numbers: Numbers, axes: tuple[Axis, Axis], table: NoisyTable) -> Floats:
    """The masses of all single codes: (activity, numbers). Those of hidden codes follow from the activity."""
    total = numbers.counts.sum()
    margin = np.maximum(activity.counts * (total / activity.counts.sum()), TINY)
    expected = _expected(activity, numbers, margin, axes, table)
    mean = np.maximum(_grouped(expected, axes), 1e-9)
    variance = np.full(mean.shape, table.variance)
    kept = shrink(table.cells, variance, mean, ordered=(True, True))
    masses = expected * (kept / mean)[np.ix_(axes[0].bins, axes[1].bins)]
    raked: Floats = _raked(masses[None], margin, numbers, ROUNDS)[0]
    return raked


def met(masses: Floats, rows: Floats, columns: Floats) -> Floats:
    """Masses with these margins, as far as both can be met."""
    for _ in range(ROUNDS):
        masses = masses * (columns / np.maximum(masses.sum(axis=0), TINY))
        masses = masses * (rows / np.maximum(masses.sum(axis=1), TINY))[:, None]
    floored: Floats = np.maximum(masses, 0.0)
    return floored


def _expected(
    activity: Numbers, numbers: Numbers, margin: Floats, axes: tuple[Axis, Axis], table: NoisyTable
) -> Floats:
    """The average of all laws."""
    laws = _raked(_laws(activity, numbers) * margin[:, None], margin, numbers, LAW_ROUNDS)
    scores = _scores(laws, numbers, axes, table)
    weights = np.exp(scores - scores.max())
    weights[weights < LEAST_WEIGHT] = 0.0
    mean: Floats = np.tensordot(weights / weights.sum(), laws, axes=1)
    expected: Floats = _raked(mean[None], margin, numbers, ROUNDS)[0]
    return expected


def _laws(activity: Numbers, numbers: Numbers) -> Floats:
    """The share of each number given each activity, by law: (laws, activity, numbers). The first is independence."""
    cuts = np.log2(np.maximum(numbers.edges[1:-1], 1))
    slopes, spreads, levels = LAWS.T[:, :, None, None]
    above = normal((levels + slopes * middles(activity.edges)[:, None] - cuts) / spreads)
    ends = np.ones((*above.shape[:2], 1))
    shares = np.maximum(-np.diff(np.concatenate([ends, above, 0 * ends], axis=2), axis=2), TINY)
    alone = np.broadcast_to(numbers.counts / numbers.counts.sum(), shares.shape[1:])[None]
    both: Floats = np.concatenate([alone, shares])
    if not numbers.within:
        return both
    possible = numbers.edges[:-1] <= (activity.edges[1:] - 1)[:, None]
    return np.where(possible, both, BEYOND * both + TINY)


def _scores(laws: Floats, numbers: Numbers, axes: tuple[Axis, Axis], table: NoisyTable) -> Floats:
    """How well each law agrees with the noisy table and the noisy hidden codes; the more rows, the less."""
    means = _grouped(laws, axes)
    wide = table.variance + means + (LAW_ERROR * means) ** 2
    heavy = np.array([bin_low >= FROM for bin_low in _lows(axes[0])])
    scores = -((table.cells - means) ** 2 / (2 * wide) + np.log(wide) / 2)[:, heavy].sum(axis=(1, 2))
    margins = laws.sum(axis=1)
    mean_number = margins @ bin_means(numbers.edges, INSIDE) / numbers.counts.sum()
    scores -= ROWS_WEIGHT * np.log(np.maximum(mean_number, 1e-9))
    hidden = numbers.groups[-1]
    scores -= np.abs(numbers.noisy - margins)[:, hidden:].sum(axis=1) / numbers.scale
    found: Floats = scores
    return found


def _lows(axis: Axis) -> Floats:
    """The smallest number of each bin."""
    return np.array([edges_of(axis.feature)[np.flatnonzero(axis.bins == place)[0]] for place in range(axis.size)])


def _raked(masses: Floats, rows: Floats, numbers: Numbers, rounds: int) -> Floats:
    """Tables, (tables, activity, numbers), with these masses of activity, and of numbers as far as they are clear."""
    groups = numbers.groups
    wanted = np.add.reduceat(numbers.counts, groups)
    sizes = np.diff(np.append(groups, masses.shape[2]))
    for _ in range(rounds):
        sums = np.add.reduceat(masses.sum(axis=1), groups, axis=1)
        masses = masses * np.repeat(wanted / np.maximum(sums, 1e-300), sizes, axis=1)[:, None, :]
        masses = masses * (rows / np.maximum(masses.sum(axis=2), 1e-300))[:, :, None]
    return np.maximum(masses, TINY)


def _grouped(masses: Floats, axes: tuple[Axis, Axis]) -> Floats:
    """Masses by the bins of two axes, of one table or several."""
    rows, columns = (np.eye(axis.size)[axis.bins] for axis in axes)
    grouped: Floats = rows.T @ masses @ columns
    return grouped


def middles(edges: Edges) -> Floats:
    """log2 of a number in the middle of each bin; of none, -1."""
    low, high = np.maximum(edges[:-1], 0.5), np.maximum(edges[1:] - 1, 0.5)
    logs: Floats = np.log2(np.sqrt(low * high))
    return logs


def normal(x: Floats) -> Floats:
    """The normal distribution function, to three digits (Page's approximation)."""
    return 1 / (1 + np.exp(-np.clip(x * (1.5976 + 0.070566 * x * x), -60, 60)))
