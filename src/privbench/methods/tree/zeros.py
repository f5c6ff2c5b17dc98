"""Rules as zeros: what is expected of two columns that a rule compares, before anything is measured of both.

A rule such as `owner.date <= date` leaves no mass in the cells in which no pair of values keeps it. What is expected of
such a pair is not independence but what comes closest to it: the outer product of both margins without these cells,
raked to both. That is a function of rules, domains and released numbers, so it costs nothing, and the base can be a
parent of the column for free. Both have finer bins for it than tables of pairs are measured in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.methods.tree.coarse import bin_masses, coarse_axis
from privbench.methods.tree.pair_shrinkage import rake
from privbench.privacy.facts import PossiblePairs
from privbench.privacy.features import Axis, Feature, OfOwner, Own

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Places = tuple[int, int]

FINE_BINS = 64
"""About the most bins of a column that a rule compares with another, where pairs have fewer."""
TOLERANCE = 1e-6
"""How exactly a model keeps to what a rule alone says."""
LIGHTEST = 1e-9
"""No bin has less mass: where none is expected a value may still come up."""
ROUNDS = 300
"""Raking takes longer where there are zeros."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Zeros:
    """The pairs of columns that rules compare, by places, and these columns in fine bins.

    Of a pair of own columns either may be the parent of the other; a given one comes first.
    """

    axes: Mapping[int, Axis]
    masses: Mapping[int, Floats]
    shares: Mapping[Places, Floats]
    """By fine bins of both: which part of the mass that independent columns would have there is possible."""
    through: Mapping[Places, int]
    """Of pairs that no rule compares, but rules that both have with a third column: that column."""

    def between(self, first: int, second: int) -> Floats | None:
        """The possible part of each pair of fine bins; None if no rule compares the two."""
        if (first, second) in self.shares:
            return self.shares[first, second]
        turned = self.shares.get((second, first))
        return None if turned is None else turned.T

    def expected(self, first: int, second: int, margins: tuple[Floats, Floats]) -> Floats | None:
        """What to expect of a pair with these margins, all in fine bins; None if no rule compares the two."""
        shares = self.between(first, second)
        if shares is None:
            return None
        rows, columns = (np.maximum(margin, LIGHTEST) for margin in margins)
        return rake(np.outer(rows, columns) / columns.sum() * shares, rows, columns, least=0.0, rounds=ROUNDS)


NO_ZEROS = Zeros(axes={}, masses={}, shares={}, through={})


def find_zeros(
    features: Sequence[Feature], axes: Sequence[Axis], counts: Sequence[Floats], pairs: Sequence[PossiblePairs]
) -> Zeros:
    """The zeros among these features, own and given ones; of each the bins for pairs and the counts of codes."""
    possible, through = possible_places(features, pairs)
    ruled = sorted({place for places in possible for place in places})
    fine = _cut({place: _fine_axis(axes[place], counts[place]) for place in ruled}, possible)
    masses = {place: np.maximum(bin_masses(fine[place], counts[place]), LIGHTEST) for place in ruled}
    shares = {(a, b): _shares(codes, (fine[a], fine[b]), (counts[a], counts[b])) for (a, b), codes in possible.items()}
    return Zeros(axes=fine, masses=masses, shares=shares, through=through)


def possible_places(
    features: Sequence[Feature], pairs: Sequence[PossiblePairs]
) -> tuple[dict[Places, Bools], dict[Places, int]]:
    """Which codes of two features go together, by their places; and what pairs of them follow from two others through.

    If an owner's date is before a row's date and that before another, so is the owner's before the other.
    """
    possible = {places: _of_features(pair) for pair in pairs if (places := _places(features, pair)) is not None}
    through: dict[Places, int] = {}
    waiting = [places for places in possible if isinstance(features[places[0]].source, OfOwner)]
    both_ways = possible | {places[::-1]: codes.T for places, codes in possible.items()}
    while waiting:
        base, middle = waiting.pop(0)
        own = [b for a, b in both_ways if a == middle and isinstance(features[b].source, Own)]
        for column in (c for c in own if (base, c) not in possible):
            follows = (possible[base, middle].astype(np.float32) @ both_ways[middle, column].astype(np.float32)) > 0
            if not follows.all():
                possible[base, column], through[base, column] = follows, middle
                waiting.append((base, column))
    return possible, through


def _places(features: Sequence[Feature], pair: PossiblePairs) -> Places | None:
    """Where the base and the column of a pair are among features; None if one is not there."""
    own = {f.source.column: at for at, f in enumerate(features) if isinstance(f.source, Own)}
    above = {
        f.source.feature.source.column: at
        for at, f in enumerate(features)
        if isinstance(f.source, OfOwner) and isinstance(f.source.feature.source, Own)
    }
    base, column = (above if pair.of_owner else own).get(pair.base), own.get(pair.column)
    return None if base is None or column is None else (base, column)


def _of_features(pair: PossiblePairs) -> Bools:
    """Which codes of the features go together: a row without owner has one more, which keeps any rule."""
    if not pair.of_owner:
        return pair.possible
    return np.append(pair.possible, np.ones((1, pair.possible.shape[1]), bool), axis=0)


def _fine_axis(axis: Axis, counts: Floats) -> Axis:
    """Bins that those for pairs are made of, of about the same mass."""
    if axis.size >= FINE_BINS:
        return axis
    finer = coarse_axis(axis.feature, counts, most=FINE_BINS, least=0.0)
    _, bins = np.unique(axis.bins * finer.size + finer.bins, return_inverse=True)
    return Axis(axis.feature, bins)


def _cut(axes: Mapping[int, Axis], possible: Mapping[Places, Bools]) -> dict[int, Axis]:
    """The axes with bins cut where a rule would leave a factor free, which `says_only_zeros` refuses.

    Dates of orders in bins [1, 10], [11, 20] and of their shipping in [1, 8], [9, 20]: the last bin goes together
    wholly with no bin of the first column, and partly with two. Cut below 10, one part of it goes with the first bin
    alone, the other wholly.
    """
    cut = dict(axes)
    both_ways = [*possible.items(), *((places[::-1], codes.T) for places, codes in possible.items())]
    while any(_cut_second(cut, places, codes) for places, codes in both_ways):
        pass
    return cut


def _cut_second(axes: dict[int, Axis], places: Places, possible: Bools) -> bool:
    """Cut the bins of the second column that leave a factor free; whether there were any."""
    first, second = (axes[place].bins for place in places)
    cells = _Cells.of(possible, first, second)
    free = cells.free & ~cells.whole.any(axis=0)
    for at in np.flatnonzero(free.any(axis=0)):
        codes = np.flatnonzero(second == at)
        nearest = first == np.argmax(np.where(free[:, at], cells.shares[:, at] / np.bincount(first), 0.0))
        together = possible[np.ix_(nearest, codes)].all(axis=0)
        if len(codes) > 1:
            axes[places[1]] = _parted(axes[places[1]], codes, together if together.any() else np.arange(len(codes)))
        else:
            axes[places[0]] = _parted(axes[places[0]], np.flatnonzero(nearest), np.arange(nearest.sum()))
    return bool(free.any())


def _parted(axis: Axis, codes: NDArray[np.int64], parts: NDArray[np.generic]) -> Axis:
    """An axis with one of its bins, that of these codes, cut into parts; bins are runs of codes."""
    part_of = np.zeros(len(axis.bins), np.int64)
    part_of[codes] = parts
    return Axis(axis.feature, np.append(0, np.cumsum((np.diff(axis.bins) != 0) | (np.diff(part_of) != 0))))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cells:
    """Pairs of bins: how many pairs of codes go together, whether all do, and which a factor could use freely."""

    shares: Floats
    whole: Bools
    free: Bools
    """Some codes go together, no row and column of whole cells tells what to expect, and others are beside it."""

    @classmethod
    def of(cls, possible: Bools, first: NDArray[np.int64], second: NDArray[np.int64]) -> "_Cells":
        shares = summed(possible.astype(np.float64), first, second)
        whole = shares == np.outer(np.bincount(first), np.bincount(second))
        there = shares > 0
        known = whole.any(axis=1, keepdims=True) & whole.any(axis=0, keepdims=True)
        alone = (there.sum(axis=1, keepdims=True) == 1) | (there.sum(axis=0, keepdims=True) == 1)
        return cls(shares=shares, whole=whole, free=there & ~known & ~alone)


def _shares(possible: Bools, axes: tuple[Axis, Axis], counts: tuple[Floats, Floats]) -> Floats:
    """The possible part of the mass of each pair of bins, if both columns were independent."""
    first, second = (np.maximum(c, 1e-12) for c in counts)
    cells = np.zeros((axes[0].size, len(second)))
    np.add.at(cells, axes[0].bins, first[:, None] * possible)
    table = np.zeros((axes[1].size, axes[0].size))
    np.add.at(table, axes[1].bins, (cells * second).T)
    whole = np.outer(bin_masses(axes[0], first), bin_masses(axes[1], second))
    shares: Floats = np.clip(table.T / whole, 0.0, 1.0)
    return shares


def says_only_zeros(factor: Floats, possible: Bools, first: NDArray[np.int64], second: NDArray[np.int64]) -> bool:
    """Whether a factor says no more of two columns than which codes go together; `first` and `second` are their bins.

    Then it is a number by row times one by column in bins of which all codes go together, at most that where some do,
    and 0 where none do. Bins are runs of codes, so that few have cells in which only some go together; a cell alone in
    its row or column may hold any number, which is nothing but its norm.
    """
    if (len(first), len(second)) != possible.shape or (np.diff(first) < 0).any() or (np.diff(second) < 0).any():
        return False
    cells = _Cells.of(possible, first, second)
    shares, whole = cells.shares, cells.whole
    if factor.shape != shares.shape or factor[shares == 0].any():
        return False
    rows, columns = np.full(len(factor), np.nan), np.full(factor.shape[1], np.nan)
    with np.errstate(all="ignore"):  # a file may hold any numbers
        while (left := np.flatnonzero(np.isnan(rows) & whole.any(axis=1))).size:
            if not _spread(factor, whole, rows, columns):
                rows[left[0]] = 1.0
        _spread(factor, whole, rows, columns)
        most = np.outer(rows, columns)
        close = np.isclose(factor, most, rtol=TOLERANCE, atol=0)
    there = shares > 0
    known = ~np.isnan(most) & there
    alone = (there.sum(axis=1, keepdims=True) == 1) | (there.sum(axis=0, keepdims=True) == 1)
    if (there & ~known & ~alone).any():
        return False
    return bool(close[known & whole].all() and (close | (factor < most))[known].all())


def _spread(factor: Floats, whole: Bools, rows: Floats, columns: Floats) -> bool:
    """Work out numbers of columns from those of rows, and the other way round; whether there were any."""
    found = False
    for cells, full, known, wanted in ((factor, whole, rows, columns), (factor.T, whole.T, columns, rows)):
        there = full & ~np.isnan(known)[:, None] & (cells > 0)
        for place in np.flatnonzero(np.isnan(wanted) & there.any(axis=0)):
            at = np.flatnonzero(there[:, place])[0]
            wanted[place] = cells[at, place] / known[at]
            found = True
    return found


def coarser(fine: Axis, axis: Axis) -> NDArray[np.int64]:
    """For each fine bin the bin that it is a part of."""
    bins = np.zeros(fine.size, np.int64)
    bins[fine.bins] = axis.bins
    return bins


def summed(masses: Floats, first: NDArray[np.int64], second: NDArray[np.int64]) -> Floats:
    """A table by larger bins: those that the rows and those that the columns are parts of."""
    rows = np.zeros((int(first.max()) + 1, masses.shape[1]))
    np.add.at(rows, first, masses)
    table = np.zeros((int(second.max()) + 1, len(rows)))
    np.add.at(table, second, rows.T)
    return table.T
