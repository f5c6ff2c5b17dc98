"""Tables of pairs of columns: measured, made to agree with each other and with the single columns, shrunk, raked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privbench.methods.tree.coarse import bin_masses
from privbench.methods.tree.pair_shrinkage import rake, shrink
from privbench.methods.tree.plan import divided
from privbench.methods.tree.single import Single, Singles
from privbench.methods.tree.structure import Candidates
from privbench.methods.tree.weighed import WeighedTable
from privbench.methods.tree.zeros import summed
from privbench.privacy.features import Activity, Axis, Fanout, InDegree

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

LEAST_PART = 1 / 8
"""No table gets less than this part of what the largest one gets, so that its noise can be drawn."""
LIGHTEST, HEAVIEST = 0.25, 2.5
"""Where first pairs are measured before others are chosen, a table gets between these parts of what others do."""
MOST_FIRST = 0.6
"""The largest part of what there is for pairs that first ones get then."""
LEAST_AGAIN = 0.03
"""No table is measured again for less than this part of what the largest one gets."""
LEAST_KEPT = 0.3
"""A bin keeps at least this part of the mass that the single column gives it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyTable:
    """A measured table of two columns, in entities, and the variance of a cell."""

    cells: Floats
    variance: float


Tables = Mapping[tuple[int, int], NoisyTable]
"""Measured tables by places of parent and column."""


def measure_pairs(
    table: WeighedTable, candidates: Candidates, pairs: Sequence[tuple[int, int]], *, amount: Fraction
) -> Tables:
    """A noisy table of each pair, the amount divided by the root of their cells."""
    roots = np.sqrt([_cells(candidates, pair) for pair in pairs])
    parts = divided(amount, np.maximum(roots, LEAST_PART * roots.max(initial=0.0)).tolist())
    return _measured(table, candidates, dict(zip(pairs, parts, strict=True)))


def _cells(candidates: Candidates, pair: tuple[int, int]) -> int:
    return candidates.axes[pair[0]].size * candidates.axes[pair[1]].size


def _measured(table: WeighedTable, candidates: Candidates, parts: Mapping[tuple[int, int], Fraction]) -> Tables:
    requests = [((candidates.axes[a], candidates.axes[b]), part) for (a, b), part in parts.items()]
    return {
        pair: NoisyTable(cells=measured.counts, variance=measured.noise.variance)
        for pair, measured in zip(parts, table.measure_all(requests), strict=True)
    }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FirstTables:
    """Tables of pairs that were measured before further pairs are chosen, and what was spent on each."""

    tables: Tables
    spent: Mapping[tuple[int, int], Fraction]

    @property
    def total(self) -> Fraction:
        """What was spent on all of them."""
        return sum(self.spent.values(), Fraction(0))


NO_TABLES = FirstTables(tables={}, spent={})


def measure_first(
    table: WeighedTable, candidates: Candidates, pairs: Sequence[tuple[int, int]], *, most: int, amount: Fraction
) -> FirstTables:
    """A noisy table of each pair, for what it gets of the amount if there are going to be `most` pairs like these."""
    weights = _weights(candidates, pairs, pairs)
    share = min(sum(weights) / most, MOST_FIRST) if pairs else 0.0
    parts = divided(amount * Fraction(share), weights) if pairs else []
    spent = dict(zip(pairs, parts, strict=True))
    return FirstTables(tables=_measured(table, candidates, spent), spent=spent)


def measure_again(
    table: WeighedTable,
    candidates: Candidates,
    pairs: Sequence[tuple[int, int]],
    first: FirstTables,
    *,
    amount: Fraction,
) -> Tables:
    """Tables of all pairs: new ones are measured, old ones again where they lack budget, beside the new ones.

    Two measurements with Gaussian noise add up to one for the sum of what they cost.
    """
    weights = np.array(_weights(candidates, pairs, list(first.spent) or pairs))
    old = np.array([float(first.spent.get(pair, 0)) for pair in pairs])
    parts = _filled(weights, old, float(amount))
    parts[parts < LEAST_AGAIN * parts.max(initial=0.0)] = 0.0
    kept = [pair for pair, part in zip(pairs, parts, strict=True) if part > 0]
    spent = dict(zip(kept, divided(amount, parts[parts > 0].tolist()), strict=True))
    new = _measured(table, candidates, spent)
    return {**first.tables, **{pair: _together(first.tables.get(pair), new[pair]) for pair in kept}}


def _weights(candidates: Candidates, pairs: Sequence[tuple[int, int]], usual: Sequence[tuple[int, int]]) -> list[float]:
    """What pairs get in proportion to: the root of their cells over that of usual pairs, within limits."""
    mean = float(np.mean(np.sqrt([_cells(candidates, pair) for pair in usual]))) if usual else 1.0
    return [min(max(float(np.sqrt(_cells(candidates, pair))) / mean, LIGHTEST), HEAVIEST) for pair in pairs]


def _filled(weights: Floats, old: Floats, amount: float) -> Floats:
    """What each gets of an amount, such that all have the same in proportion to weights, old ones counted in.

    >>> _filled(np.array([1.0, 1.0, 2.0]), np.array([3.0, 0.0, 0.0]), 6.0).tolist()
    [0.0, 2.0, 4.0]
    """
    order = np.argsort(old / weights)
    levels = (amount + np.cumsum(old[order])) / np.cumsum(weights[order])
    level = levels.min(initial=np.inf)
    filled: Floats = np.maximum(level * weights - old, 0.0)
    return filled


def _together(first: NoisyTable | None, second: NoisyTable) -> NoisyTable:
    """Two measurements of a table as one, by their precision."""
    if first is None:
        return second
    weight = second.variance / (first.variance + second.variance)
    return NoisyTable(cells=weight * first.cells + (1 - weight) * second.cells, variance=weight * first.variance)


def consolidated(axis: Axis, place: int, single: Single, counts: Floats, tables: Tables) -> Floats:
    """Codes of a column with the masses of their bins pooled from its histogram and the margins of its tables."""
    before = bin_masses(axis, counts)
    if isinstance(axis.feature.source, Fanout | InDegree | Activity):
        return counts
    codes = np.bincount(axis.bins, minlength=axis.size)
    variance = np.maximum(single.pooled_noise.variance * codes, 1e-9)
    pooled, precision = before / variance, 1 / variance
    for (parent, column), table in tables.items():
        for side, end in enumerate((parent, column)):
            if end == place:
                spread = table.cells.shape[1 - side] * table.variance
                pooled = pooled + table.cells.sum(axis=1 - side) / spread
                precision = precision + 1 / spread
    after = np.maximum(pooled / precision, LEAST_KEPT * before + 1e-9)
    after *= counts.sum() / after.sum()
    moved: Floats = counts * (after / np.maximum(before, 1e-9))[axis.bins]
    return moved


def pair_masses(
    first: Axis, second: Axis, margins: tuple[Floats, Floats], table: NoisyTable, *, expected: Floats | None = None
) -> Floats:
    """A table of masses with those margins, from a noisy one; else independence is expected. Where nothing is, 0."""
    if expected is None:
        expected = np.outer(*margins) / margins[1].sum()
    variance = np.full(table.cells.shape, table.variance)
    ordered = (first.feature.ordered, second.feature.ordered)
    return rake(shrink(table.cells, variance, expected, ordered=ordered), *margins, zeros=expected == 0)


def ruled_masses(
    expected: Floats, masses: Floats, bins: tuple[Places, Places], margins: tuple[Floats, Floats]
) -> Floats:
    """What is expected in fine bins with the masses of larger ones, which the fine ones are parts of, and margins."""
    kept = masses / np.maximum(summed(expected, *bins), 1e-300)
    return rake(expected * kept[np.ix_(*bins)], *margins, zeros=expected == 0)


def stratum_masses(axis: Axis, single: Single, strata: Floats, masses: Floats) -> Floats:
    """A table of masses by stratum and bin, from the histogram that was measured by stratum."""
    cells = np.stack([bin_masses(axis, row) for row in single.noisy])
    spread = single.noise.variance * np.bincount(axis.bins, minlength=axis.size)
    variance = np.broadcast_to(spread, cells.shape).copy()
    expected = np.outer(strata, masses) / masses.sum()
    return rake(shrink(cells, variance, expected, ordered=(False, axis.feature.ordered)), strata, masses)


def scaled_to(masses: Sequence[Floats], total: float) -> list[Floats]:
    """Masses with that total each."""
    return [m * (total / max(m.sum(), 1e-300)) for m in masses]


def margins_of(candidates: Candidates, singles: Singles) -> list[Floats]:
    """The masses of bins of own columns from their counts, and of given columns as they are, all of one total.

    Where nothing was counted, as in an empty table with little noise, all bins are alike.
    """
    own = [bin_masses(candidates.axes[place], counts) for place, counts in enumerate(singles.counts)]
    own = [masses if masses.any() else np.ones(masses.shape) for masses in own]
    return scaled_to([*own, *candidates.masses[candidates.own :]], max(singles.total, 1e-9))
