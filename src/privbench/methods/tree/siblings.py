"""Siblings, rows of one owner: a column of each may depend on the same column of the first of them.

Before such a pair is chosen, two small histograms say what to expect of it if siblings were independent: what first
rows are like, and what the column is like in first rows and in others. So what counts is how siblings depend on each
other, not that first rows differ from others, which their rank says as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privbench.methods.denoise import denoise
from privbench.methods.tree.coarse import coarse_axis
from privbench.methods.tree.pair_shrinkage import LEAST_SHARE
from privbench.methods.tree.pairs import NoisyTable, pair_masses
from privbench.methods.tree.structure import Alone
from privbench.methods.tree.weighed import WeighedTable
from privbench.privacy.calibrate import Noise
from privbench.privacy.features import Axis, Feature, OfFirst

Floats = NDArray[np.float64]

FIRST_SHARE = Fraction(1, 25)
"""Share of a table's budget for what is expected of siblings; it is taken from that of the pairs."""
LEFT = 0.5
"""About how much of the noise of these histograms is left when they are denoised."""
MOST_BINS = 12
"""About the most bins of a column in first rows: few, for weak dependence to stand out of the noise of the table."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Siblings:
    """Features of first rows, and where in the sample the first row of each row's owner is, -1 for first rows."""

    features: tuple[Feature, ...]
    firsts: NDArray[np.int64]


class Column(NamedTuple):
    """A column in bins, with the masses of these and the counts of its codes."""

    axis: Axis
    masses: Floats
    counts: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class First:
    """A feature of first rows in bins, with their masses, as a parent of one column alone."""

    axis: Axis
    masses: Floats
    alone: Alone


def measure_firsts(
    table: WeighedTable,
    features: Sequence[Feature],
    columns: Sequence[Column],
    *,
    least: float,
    amount: Fraction,
) -> list[First]:
    """What to expect of features of first rows, in bins of at least that mass, all for that amount.

    Columns of a single bin are left out.
    """
    places = {column.axis.feature: place for place, column in enumerate(columns)}
    axes = [
        (_axis(feature, columns[place], least), place)
        for feature in features
        if isinstance(feature.source, OfFirst) and columns[place := places[feature.source.feature]].axis.size > 1
    ]
    wide = [(axis, place) for axis, place in axes if axis.size > 2]
    each = amount / max(2 * len(wide), 1)
    return [_measured(table, axis, place, columns[place], amount=each) for axis, place in wide]


def _axis(feature: Feature, column: Column, least: float) -> Axis:
    bins = coarse_axis(column.axis.feature, column.counts, most=MOST_BINS, least=least).bins
    return Axis(feature, np.append(bins, bins.max() + 1))


def _measured(table: WeighedTable, axis: Axis, place: int, column: Column, *, amount: Fraction) -> First:
    feature, total = axis.feature, float(column.masses.sum())
    is_first = Axis(feature, (np.arange(feature.size) == feature.size - 1).astype(np.int64))
    alone_cells, both_cells = table.measure_all([([axis], amount), ([is_first, column.axis], amount)])
    noise, noisy = both_cells.noise, alone_cells.counts
    share = float(np.clip(noisy[-1] / total, 0, 1))
    told = denoise(noisy[:-1], noise, total * (1 - share), smooth=False)
    margins = np.array([1 - share, share]) * total, column.masses
    split = pair_masses(is_first, column.axis, margins, NoisyTable(cells=both_cells.counts, variance=noise.variance))
    alone = Alone(
        column=place,
        expected=np.column_stack([np.outer(split[0], told / max(told.sum(), 1e-300)), split[1]]),
        error=LEFT * sum(_noise(masses, noise) for masses in (told, split)) + LEAST_SHARE * total,
    )
    return First(axis=axis, masses=np.append(told, total * share), alone=alone)


def _noise(masses: Floats, noise: Noise) -> float:
    """How far cells are from the truth in all, each by no more than it weighs."""
    return float(np.minimum(np.sqrt(noise.variance), masses).sum())
