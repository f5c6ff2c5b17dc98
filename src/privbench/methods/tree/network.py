"""Fitted columns to a network: one clique tree for those that depend on others, a leaf for each of the rest.

One column given its parents is a factor per parent, whose product is the most even conditional that fits all pairs: by
iterative proportional fitting over the configurations of parents that occur. Their masses are exact, from the tables of
the cliques before, if all parents are own columns; else those in the sample of synthetic rows. What is kept are the
factors, so that any configuration has a distribution, also one that did not occur.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privbench.methods.tree.structure import Candidates
from privbench.methods.tree.surroundings import Surroundings
from privbench.privacy.features import Axis
from privbench.spn.clique import CliqueTree, Conditional, Given, conditionals
from privbench.spn.nodes import Leaf, Node, Product
from privbench.spn.sample import draw_bins, draw_codes

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ROUNDS = 8
ENOUGH = 1e-3
"""Stop when no margin is farther from its table than this part of the mass."""
STRETCH = 1e3
"""The most that one round changes a factor by: tables that contradict each other do not run away."""
RAREST = 1e-12
"""Bins with a smaller share count as having this one: a pair that says otherwise does not make a factor run away."""
LIGHTEST = 1e-7
"""Configurations with less than this share of the mass do not count in a fit."""
MOST_CONTEXTS = 256
"""Rows of the sample that a network keeps for inference without the given columns."""
FITS = 2
"""How often a column is fitted to first rows, which it says what they are like."""
SEED = 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Configurations:
    """Combinations of the parents' bins, an array per parent, and the mass of each combination."""

    bins: tuple[Integers, ...]
    masses: Floats


def fit_factors(
    masses: Floats, configurations: Configurations, tables: Sequence[Floats], *, free: Sequence[bool] = ()
) -> tuple[Floats, ...]:
    """A factor per parent, (parent's bins, bins). `masses` are the column's own, `tables` those of the pairs.

    Of tables that are `free`, in which nothing was measured, only the column's margin is met.
    """
    own = masses / masses.sum()
    shares = [table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300) for table in tables]
    factors = [share / np.maximum(own, RAREST) for share in shares]
    factors[0] = shares[0].copy()
    if len(tables) > 1:
        _fit(factors, shares, configurations, free or [False] * len(tables))
    return tuple(factor / np.maximum(factor.max(axis=1, keepdims=True), 1e-300) for factor in factors)


def conditional(factors: Sequence[Floats], bins: Sequence[Integers]) -> Floats:
    """The distribution of the column for each configuration: (configurations, bins)."""
    product = factors[0][bins[0]]
    for factor, at in zip(factors[1:], bins[1:], strict=True):
        product = product * factor[at]
    product = np.maximum(product, 1e-300)
    shares: Floats = product / product.sum(axis=1, keepdims=True)
    return shares


def _fit(factors: list[Floats], shares: Sequence[Floats], configurations: Configurations, free: Sequence[bool]) -> None:
    sums = [
        _indicator(at, len(share), configurations.masses) for at, share in zip(configurations.bins, shares, strict=True)
    ]
    wanted = [(share * indicator.sum(axis=1)[:, None]) for share, indicator in zip(shares, sums, strict=True)]
    wanted = [_pooled(w) if is_free else w for w, is_free in zip(wanted, free, strict=True)]
    current = conditional(factors, configurations.bins)
    total = configurations.masses.sum()
    for _ in range(ROUNDS):
        worst = 0.0
        for place, at in enumerate(configurations.bins):
            margin = _pooled(sums[place] @ current) if free[place] else sums[place] @ current
            worst = max(worst, float(np.abs(margin - wanted[place]).sum()))
            change = np.clip(wanted[place] / np.maximum(margin, RAREST), 1 / STRETCH, STRETCH)
            factors[place] *= change
            current *= change if free[place] else change[at]
            current /= np.maximum(current.sum(axis=1, keepdims=True), 1e-300)
        if worst < ENOUGH * total:
            break


def _pooled(table: Floats) -> Floats:
    """The margin of the columns of a table, as a row."""
    pooled: Floats = table.sum(axis=0, keepdims=True)
    return pooled


def _indicator(bins: Integers, size: int, masses: Floats) -> Floats:
    """Which configurations have which bin of a parent, by their masses: (bins, configurations)."""
    table = np.zeros((size, len(bins)))
    table[bins, np.arange(len(bins))] = masses
    return table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parent:
    """A parent of a column by its place, and the masses of the two: (parent's bins, bins)."""

    place: int
    masses: Floats
    free: bool = False
    """Whether nothing was measured of the two: only the zeros of their table and its margins are to be kept."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """A column with all that was learnt of it."""

    place: int
    axis: Axis
    counts: Floats
    masses: Floats
    parents: Sequence[Parent]
    stratum: Floats | None


def make_network(fitted: Sequence[Fitted], candidates: Candidates, given: Surroundings) -> Node:
    """A network of all columns of a table, in order of placement."""
    builder = _Sampled(candidates, given) if given.features or given.strata else _Exact(candidates)
    used = {p.place for column in fitted for p in column.parents}
    joined = [c for c in fitted if c.parents or c.stratum is not None or c.place in used]
    alone = [c for c in fitted if c not in joined]
    leaves: list[Node] = [Leaf(column=c.axis.feature.name, counts=c.counts) for c in alone]
    if not joined:
        return Product(children=tuple(leaves))
    for column in joined:
        builder.add(column)
    return Product(children=(builder.tree(), *leaves))


class _Exact:
    """Own columns alone: the table of each clique is known, and with it the masses of any parents."""

    def __init__(self, candidates: Candidates) -> None:
        self._names = [axis.feature.name for axis in candidates.axes]
        self._columns: list[Conditional] = []
        self._cliques: dict[int, tuple[tuple[int, ...], Floats]] = {}
        """By column: the places of its parents and itself, and the mass of their bins."""

    def add(self, column: Fitted) -> None:
        places = tuple(p.place for p in column.parents)
        masses = self._masses(places) if places else np.ones(1)
        bins = np.nonzero(masses > LIGHTEST * masses.sum())
        fitted = _fitted_conditional(column, self._names, Configurations(bins=bins, masses=masses[bins]))
        self._columns.append(fitted)
        grid = np.ix_(*(np.arange(size) for size in masses.shape))
        table = masses[..., None] * conditionals(fitted, list(grid)) if places else column.masses
        self._cliques[column.place] = ((*places, column.place), table / table.sum())

    def tree(self) -> CliqueTree:
        return CliqueTree(columns=tuple(self._columns))

    def _masses(self, places: tuple[int, ...]) -> Floats:
        """The masses of the bins of some columns that are in one clique, an axis for each."""
        axes, table = next(c for c in self._cliques.values() if set(places) <= set(c[0]))
        others = tuple(at for at, place in enumerate(axes) if place not in places)
        left = [place for place in axes if place in places]
        masses: Floats = table.sum(axis=others).transpose([left.index(place) for place in places])
        return masses


class _Sampled:
    """With given columns: configurations and masses are those of a sample, drawn column by column."""

    def __init__(self, candidates: Candidates, given: Surroundings) -> None:
        self._rng = np.random.default_rng(SEED)
        self._names = [axis.feature.name for axis in candidates.axes]
        self._only = candidates.only
        self._given = given
        self._axes = dict(zip(self._names, candidates.axes, strict=True))
        self._columns: list[Conditional] = []
        self._bins: dict[str, NDArray[np.uint16]] = {}
        for feature, codes in zip(given.features, given.codes, strict=True):
            self._bins[feature.name] = self._axes[feature.name].bins.astype(np.uint16)[codes]
        for place in self._only:  # as long as nothing is drawn, all are first rows
            axis = candidates.axes[place]
            self._bins[axis.feature.name] = np.full(len(given.weights), axis.bins[-1], np.uint16)
        if given.strata is not None and given.strata_codes is not None:
            name = given.strata.feature.name
            self._axes[name] = given.strata
            self._bins[name] = given.strata.bins.astype(np.uint16)[given.strata_codes]

    def add(self, column: Fitted) -> None:
        first = next((p.place for p in column.parents if p.place in self._only), None)
        fitted = self._fitted(column) if first is None else self._fitted_to_first(column, first)
        self._columns.append(fitted)
        if first is None:
            self._bins[fitted.column] = self._drawn(fitted, np.arange(len(self._given.weights)))

    def tree(self) -> CliqueTree:
        own = {c.column for c in self._columns}
        needed = {p for c in self._columns for p in c.parents} - own
        names = [name for name in self._axes if name in needed]
        given = tuple(Given(column=name, bins=self._axes[name].bins) for name in names)
        if not given:
            return CliqueTree(columns=tuple(self._columns))
        rows = np.linspace(0, len(self._given.weights) - 1, MOST_CONTEXTS).astype(np.int64)
        contexts = np.stack([self._bins[name][rows] for name in names], axis=1).astype(np.int64)
        unique, counts = np.unique(contexts, axis=0, return_counts=True)
        return CliqueTree(columns=tuple(self._columns), given=given, contexts=unique, weights=counts / counts.sum())

    def _fitted(self, column: Fitted) -> Conditional:
        names = [self._names[p.place] for p in column.parents]
        if column.stratum is not None and self._given.strata is not None:
            names.insert(0, self._given.strata.feature.name)
        return _fitted_conditional(column, self._names, self._configurations(names), stratum=names[:1])

    def _drawn(self, fitted: Conditional, rows: NDArray[np.int64]) -> NDArray[np.uint16]:
        return draw_bins(fitted, [self._bins[name][rows] for name in fitted.parents], len(rows), self._rng)

    def _fitted_to_first(self, column: Fitted, first: int) -> Conditional:
        """Fit a column to its first rows too: without them, then to what each fit makes of them; and draw it."""
        firsts = self._firsts()
        drawn = np.zeros(len(firsts), np.uint16)
        self._tell(self._fitted(replace(column, parents=[p for p in column.parents if p.place != first])), first)
        for _ in range(FITS):
            fitted = self._fitted(column)
            drawn[firsts < 0] = self._tell(fitted, first)
        drawn[firsts >= 0] = self._drawn(fitted, np.flatnonzero(firsts >= 0))
        self._bins[fitted.column] = drawn
        return fitted

    def _tell(self, fitted: Conditional, first: int) -> NDArray[np.uint16]:
        """Draw a column for first rows, and let their siblings know its codes; returns the bins that were drawn."""
        axis, firsts = self._axes[self._names[first]], self._firsts()
        drawn = self._drawn(fitted, np.flatnonzero(firsts < 0))
        codes = np.full(len(firsts) + 1, axis.feature.size - 1)  # the last for those who have no first row
        codes[:-1][firsts < 0] = draw_codes(fitted, drawn, self._rng)
        self._bins[axis.feature.name] = axis.bins.astype(np.uint16)[codes[firsts]]
        return drawn

    def _firsts(self) -> NDArray[np.int64]:
        """Where the first row of each row's owner is."""
        none = np.full(len(self._given.weights), -1)
        return none if self._given.siblings is None else self._given.siblings.firsts

    def _configurations(self, names: Sequence[str]) -> Configurations:
        """The combinations of bins that occur, each with the weight of its rows."""
        if not names:
            return Configurations(bins=(), masses=np.ones(1))
        sizes = [self._axes[name].size for name in names]
        key = np.ravel_multi_index([self._bins[name].astype(np.int64) for name in names], sizes)
        keys, where = np.unique(key, return_inverse=True)
        masses = np.bincount(where, weights=self._given.weights).astype(np.float64)
        return Configurations(bins=tuple(np.unravel_index(keys, sizes)), masses=masses)


def _fitted_conditional(
    column: Fitted, names: Sequence[str], configurations: Configurations, *, stratum: Iterable[str] = ()
) -> Conditional:
    parents = tuple(names[p.place] for p in column.parents)
    tables, free = [p.masses for p in column.parents], [p.free for p in column.parents]
    if column.stratum is not None:
        parents, tables, free = (*stratum, *parents), [column.stratum, *tables], [False, *free]
    factors = fit_factors(column.masses, configurations, tables, free=free) if tables else ()
    axis = column.axis
    return Conditional(column=axis.feature.name, bins=axis.bins, counts=column.counts, parents=parents, factors=factors)
