"""Which columns depend on which: a k-tree, grown pair by pair, every choice private and free to stay independent.

Prim's algorithm first gives each column a first parent among the columns placed before it and the given ones; then
each column may get further parents, always such that its own parents form a clique of what is there already, which
keeps inference exact. The score of a pair is how far its table is from independence, less what sampling and noise
alone would make of it (both public). A choice of "none" ends a round. Pairs that the spec names have their place
before any choice.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from privbench.methods.tree.weighed import WeighedTable
from privbench.methods.tree.zeros import NO_ZEROS, Zeros, coarser, summed
from privbench.privacy.features import Axis, NullKey, Own, OwnKey
from privbench.privacy.queries import ENTITY_WEIGHT, Pair, sensitivity_factor

Floats = NDArray[np.float64]

MOST_CELLS = 200_000
"""A column and its parents have at most this many combinations of bins."""
MOST_FURTHER = 20_000
"""The same of further parents that are chosen: each gains little, and a conditional of many cells takes long to fit."""
MOST_RULED = 2**20
"""The same with parents that follow from rules."""
MOST_FORESEEN = 32
"""Own columns whose pairs are all counted at once, before choices come to them one by one."""
ENOUGH_NONES = 2
"""So many choices of "none" in a row end the choice of further parents."""

Expected = Callable[[int, int], Floats | None]
"""What is known of two columns by their places, before their table is measured; None if nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Alone:
    """A given column as a parent of one column alone, and what to expect of both if that were all there is."""

    column: int
    expected: Floats  # (bins of the column, bins of the given one)
    error: float
    """About how far that is from the truth."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """The columns of a table to choose among: own ones first, then given ones, in bins, with their masses."""

    axes: tuple[Axis, ...]
    masses: tuple[Floats, ...]
    own: int
    strata: int
    """How many times as many cells a conditional has for strata."""
    deviation: float
    """Standard deviation of the noise of a cell of a pair."""
    noise_weight: float = 1.0
    """How much of what noise alone makes of a table counts against a pair."""
    entity_weight: float = 1.0
    """What a typical entity weighs."""
    only: Mapping[int, Alone] = field(default_factory=dict)
    """Given columns, the last of them, that may be a parent of one column alone."""
    hub: int | None = None
    """The column that is placed first, if there is one; those linked to it have it as their only parent."""
    linked: tuple[int, ...] = ()
    zeros: Zeros = NO_ZEROS
    """The columns that rules compare."""
    hinted: tuple[tuple[int, int], ...] = ()
    """Columns that the spec says depend on each other: they need no choice."""

    def bins(self, place: int) -> int:
        """How many bins a column has in a conditional: the hub and what is linked to it have one for each code."""
        if place == self.hub or place in self.linked:
            return self.axes[place].feature.size
        return self.zeros.axes.get(place, self.axes[place]).size

    def cells(self, places: Iterable[int]) -> int:
        """How many combinations of bins some columns have in a conditional."""
        return self.strata * prod(self.bins(place) for place in set(places))

    def bases(self, column: int) -> list[int]:
        """The given columns that rules compare a column with."""
        pairs = (pair for pair in self.zeros.shares if pair not in self.zeros.through)
        return [base for base, ruled in pairs if ruled == column and base >= self.own]

    @property
    def given(self) -> range:
        """The places of the given columns that may be a parent of any column."""
        return range(self.own, len(self.axes) - len(self.only))


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """Own columns in the order of placement, and the parents of those that have any; how many choices were made."""

    order: tuple[int, ...]
    parents: Mapping[int, tuple[int, ...]]
    choices: int
    free: frozenset[tuple[int, int]] = frozenset()
    """Parents with their columns that follow from a rule: they were neither chosen nor are they measured."""

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Every parent with its column."""
        return tuple((parent, column) for column in self.order for parent in self.parents.get(column, ()))

    @property
    def firsts(self) -> frozenset[tuple[int, int]]:
        """Every column with its first parent, as pairs."""
        return frozenset((parents[0], column) for column, parents in self.parents.items())

    def sequence(self, own: int) -> tuple[int, ...]:
        """All own columns, those that were not placed last."""
        return (*self.order, *(column for column in range(own) if column not in self.order))


def independent(candidates: Candidates) -> Structure:
    """No column depends on another, but those linked to a hub."""
    if candidates.hub is None:
        return Structure(order=(), parents={}, choices=0)
    parents = dict.fromkeys(candidates.linked, (candidates.hub,))
    return Structure(order=(candidates.hub, *candidates.linked), parents=parents, choices=0)


def with_bases(candidates: Candidates, structure: Structure) -> Structure:
    """The structure, and one parent more for each pair of columns that a rule compares and that is not there.

    A given base may be a parent of any column; of two own columns the one that is placed later depends on the other,
    if its parents still form a clique.
    """
    order, parents = list(structure.order), dict(structure.parents)
    free = set()
    for pair in candidates.zeros.shares:
        if {pair, pair[::-1]} & {*structure.pairs} or candidates.zeros.through.get(pair) in parents.get(pair[1], ()):
            continue
        for parent, column in (pair, pair[::-1]):
            if _may_join(candidates, order, parents, parent, column):
                parents[column] = (*parents.get(column, ()), parent)
                order += [c for c in (parent, column) if c not in order and c < candidates.own]
                free.add((parent, column))
                break
    return replace(structure, order=tuple(order), parents=parents, free=frozenset(free))


def _may_join(
    candidates: Candidates, order: Sequence[int], parents: Mapping[int, tuple[int, ...]], parent: int, column: int
) -> bool:
    """Whether a column may have one parent more that needs no choice."""
    if column >= candidates.own:
        return False
    joined = (*parents.get(column, ()), parent)
    if candidates.cells((*joined, column)) > MOST_RULED:
        return False
    if parent < candidates.own and column in order and parent not in order[: order.index(column)]:
        return False
    own = {p for p in joined if p < candidates.own}
    return len(own) < 2 or any(own <= {c, *parents.get(c, ())} for c in own)


class Growth:
    """A k-tree in the making: at most `parents` parents per column, at most `choices` choices, each for that amount.

    Parents of one column alone come on top, with a choice for each. Pairs that the spec names come first, without one.
    """

    def __init__(
        self, table: WeighedTable, candidates: Candidates, *, parents: int, choices: int, amount: Fraction
    ) -> None:
        self._table = table
        self._candidates = candidates
        self._most = parents
        self._most_choices = choices + len(candidates.only)
        self._amount = amount
        self._pairs: dict[tuple[int, int], Pair] = {}
        self._expected: Expected = _independence
        self._bins = [candidates.bins(place) for place in range(len(candidates.axes))]
        start = independent(candidates)
        self._order = list(start.order)
        self._parents = {column: list(start.parents.get(column, ())) for column in range(candidates.own)}
        self._alone: dict[int, int] = {}
        self._choices = 0

    def place_first(self) -> None:
        """Place what the spec names, and give every column a first parent where that is worth it."""
        self._place_hinted()
        self._place_null_keys()
        self._place()
        self._join_siblings()

    def structure(self) -> Structure:
        parents = {column: tuple(parents_of) for column, parents_of in self._parents.items() if parents_of}
        for column, parent in self._alone.items():
            parents[column] = (*parents.get(column, ()), parent)
        return Structure(order=tuple(self._order), parents=parents, choices=self._choices)

    def _place_hinted(self) -> None:
        """Place the pairs that the spec names, as far as they fit: those that touch what is there first.

        So pairs that form no circle all have their place.
        """
        own, axes = self._candidates.own, self._candidates.axes
        left = [pair for pair in self._candidates.hinted if all(axes[place].size > 1 for place in pair)]
        while arcs := [arc for pair in left for arc in (pair, pair[::-1]) if arc[1] < own and self._can_follow(*arc)]:
            parent, column = min(arcs, key=lambda arc: set(arc).isdisjoint(self._order))
            self._parents[column].append(parent)
            self._order += [c for c in (parent, column) if c < own and c not in self._order]
            left = [pair for pair in left if set(pair) != {parent, column}]

    def _can_follow(self, parent: int, column: int) -> bool:
        return self._precedes(parent, column) and self._fits(parent, column)

    def _precedes(self, parent: int, column: int) -> bool:
        """Whether a column is, or can be, placed after another one."""
        if parent >= self._candidates.own or column not in self._order:
            return True
        return parent in self._order[: self._order.index(column)]

    def _place_null_keys(self) -> None:
        """Give columns that say which keys are NULL, or to the row above, a parent in the same row, if one is worth it.

        Joins through the key depend on it, and there are few columns to choose among.
        """
        axes = self._candidates.axes[: self._candidates.own]
        null_keys = [
            c for c, a in enumerate(axes) if isinstance(a.feature.source, NullKey | OwnKey) and c not in self._order
        ]
        columns = [c for c, axis in enumerate(axes) if isinstance(axis.feature.source, Own) and axis.size > 1]
        for null_key in null_keys:
            chosen = self._choose([(column, null_key) for column in columns])
            if chosen is not None:
                self._order += [column for column in chosen if column not in self._order]
                self._parents[null_key].append(chosen[0])

    def _place(self) -> None:
        """Give columns a first parent, until none is worth it; also those that were placed as a parent of others."""
        own = (c for c in range(self._candidates.own) if c not in self._order)
        roots = [c for c in self._order if not self._parents[c] and c != self._candidates.hub]
        left = [*roots, *(c for c in own if self._candidates.axes[c].size > 1)]
        own_pairs = self._own_pairs()
        while left:
            there = [p for p in (*self._candidates.given, *self._order) if self._candidates.axes[p].size > 1]
            chosen = self._choose([(p, c) for c in left for p in there if self._precedes(p, c)], foreseen=own_pairs)
            if chosen is None:  # nothing more depends on what is there: begin anew with two own columns
                new = [c for c in left if c not in self._order]
                chosen = self._choose([(a, b) for a in new for b in new if a < b])
            if chosen is None:
                return
            parent, column = chosen
            self._parents[column].append(parent)
            self._order += [c for c in chosen if c < self._candidates.own and c not in self._order]
            left = [c for c in left if c != column and (c != parent or c in roots)]

    def _own_pairs(self) -> list[tuple[Axis, Axis]]:
        """The pairs of own columns that choices come to one by one; none where they are too many to count them all."""
        axes = [axis for axis in self._candidates.axes[: self._candidates.own] if axis.size > 1]
        return list(combinations(axes, 2)) if len(axes) <= MOST_FORESEEN else []

    def _join_siblings(self) -> None:
        """Give columns the parent that is for them alone, where it is worth it."""
        for parent, alone in self._candidates.only.items():
            if self._choose([(parent, alone.column)]) is not None:
                self._alone[alone.column] = parent
                if alone.column not in self._order:
                    self._order.append(alone.column)

    def extend(self, expected: Expected | None = None) -> None:
        """Give placed columns further parents, the best first, until none is worth it twice in a row.

        Pairs are compared with what is expected of them by what is known so far; else with independence.
        """
        if expected is not None:
            self._expected, self._pairs = expected, {}
        nones = 0
        while nones < ENOUGH_NONES and self._choices < self._most_choices:
            chosen = self._choose(self._extensions())
            nones = nones + 1 if chosen is None else 0
            if chosen is not None:
                self._parents[chosen[1]].append(chosen[0])

    def _extensions(self) -> list[tuple[int, int]]:
        """Placed columns that may have one parent more, with each that it may be."""
        return [
            (parent, column)
            for place, column in enumerate(self._order)
            if column not in self._candidates.linked and 0 < len(self._parents[column]) < self._most
            for parent in self._further(column, place)
        ]

    def _further(self, column: int, place: int) -> list[int]:
        """Columns that may become another parent of a column; the second comes from the other side if that has any."""
        parents_of = self._parents[column]
        pool = [
            p
            for p in (*self._candidates.given, *self._order[:place])
            if p not in parents_of and self._fits(p, column, most=MOST_FURTHER)
        ]
        if len(parents_of) == 1:
            first_given = parents_of[0] in self._candidates.given
            other = [p for p in pool if (p in self._candidates.given) != first_given]
            return other or pool
        return pool

    def _fits(self, parent: int, column: int, *, most: int = MOST_CELLS) -> bool:
        parents_of = self._parents[column]
        if self._candidates.axes[parent].size < 2:
            return False
        joined = (*parents_of, parent, column)
        if self._cells(joined) > most or self._cells((*joined, *self._candidates.bases(column))) > MOST_RULED:
            return False
        own = {p for p in (*parents_of, parent) if p not in self._candidates.given}
        return len(own) < 2 or any(own <= {c, *self._parents[c]} for c in own)

    def _cells(self, places: Iterable[int]) -> int:
        """How many combinations of bins some columns have in a conditional."""
        return self._candidates.strata * prod(self._bins[place] for place in set(places))

    def _choose(
        self, places: Iterable[tuple[int, int]], *, foreseen: Sequence[tuple[Axis, Axis]] = ()
    ) -> tuple[int, int] | None:
        options = list(places)
        if not options or self._choices == self._most_choices:
            return None
        self._choices += 1
        pairs = [self._pair(*option) for option in options]
        chosen = self._table.choose(pairs, self._amount, foreseen=foreseen)
        return next((option for option in options if self._pair(*option) is chosen), None)

    def _pair(self, a: int, b: int) -> Pair:
        key = (min(a, b), max(a, b))
        if key not in self._pairs:
            self._pairs[key] = dependence_pair(self._candidates, *key, known=self._expected(*key))
        return self._pairs[key]


def _independence(_a: int, _b: int) -> Floats | None:
    """Nothing is known of two columns."""
    return None


def dependence_pair(candidates: Candidates, a: int, b: int, *, known: Floats | None = None) -> Pair:
    """Two columns, what is expected of them, and what sampling and noise alone would add to the distance.

    What is `known` of them is expected, else independence.
    """
    first, second = candidates.axes[a], candidates.axes[b]
    expected = known
    if expected is None:
        expected = np.outer(candidates.masses[a], candidates.masses[b]) / candidates.masses[b].sum()
    error = 0.0
    if b in candidates.only:
        expected, error = candidates.only[b].expected, candidates.only[b].error
    elif (ruled := _expected_by_rule(candidates, a, b)) is not None:
        expected = ruled
    factor = sensitivity_factor([first.feature, second.feature])
    entities = expected / candidates.entity_weight
    sampling = np.minimum(2 * entities * np.exp(-entities), np.sqrt(2 * entities / np.pi)).sum()
    sampling *= candidates.entity_weight
    noise = candidates.noise_weight * np.minimum(0.8 * factor * candidates.deviation, expected).sum()
    return Pair(
        first=first,
        second=second,
        expected=np.rint(expected * ENTITY_WEIGHT).astype(np.int64),
        penalty=round(float(sampling + noise + error) * ENTITY_WEIGHT),
    )


def _expected_by_rule(candidates: Candidates, a: int, b: int) -> Floats | None:
    """What to expect of two columns that a rule compares, in the bins of pairs."""
    zeros = candidates.zeros
    if zeros.between(a, b) is None:
        return None
    expected = zeros.expected(a, b, (zeros.masses[a], zeros.masses[b]))
    return None if expected is None else summed(expected, *(coarser(zeros.axes[p], candidates.axes[p]) for p in (a, b)))
