"""Structures of pairs and factors: always chordal, and the factors fit what a dense fit of all tables finds."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from privbench.methods.tree.network import Configurations, conditional, fit_factors
from privbench.methods.tree.plan import most_choices
from privbench.methods.tree.structure import (
    ENOUGH_NONES,
    MOST_CELLS,
    Candidates,
    Growth,
    Structure,
    dependence_pair,
)
from privbench.methods.tree.weighed import WeighedTable
from privbench.privacy.facts import LinkFacts
from privbench.privacy.features import Axis, Feature, Own, in_degree, null_key, whole_axis
from privbench.privacy.queries import ENTITY_WEIGHT, Pair
from privbench.schema.unit import LinkKind
from privbench.spn.clique import CliqueTree, Conditional, Given
from privbench.spn.fanouts import fanout_edges

Floats = NDArray[np.float64]

# -- which columns depend on which ---------------------------------------------------------------------------------


class Whims:
    """Chooses by a coin instead of by data, sometimes none; remembers what it was asked."""

    def __init__(self, seed: int, none: float) -> None:
        self._rng = np.random.default_rng(seed)
        self._none = none
        self.asked: list[Sequence[Pair]] = []

    def choose(self, pairs: Sequence[Pair], _: Fraction, **_foreseen: object) -> Pair | None:
        self.asked.append(pairs)
        return None if self._rng.random() < self._none else pairs[self._rng.integers(len(pairs))]


def axis(name: str, bins: int) -> Axis:
    return Axis(Feature(name=name, size=bins, ordered=False, source=Own(name)), np.arange(bins))


def candidates(sizes: Sequence[int], own: int, strata: int = 1) -> Candidates:
    axes = tuple(axis(f"c{at}", size) for at, size in enumerate(sizes))
    masses = tuple(np.full(size, 100.0 / size) for size in sizes)
    return Candidates(axes=axes, masses=masses, own=own, strata=strata, deviation=1.0)


def grown(whims: Whims, found: Candidates, parents: int, choices: int) -> Structure:
    growth = Growth(cast(WeighedTable, whims), found, parents=parents, choices=choices, amount=Fraction(1))
    growth.place_first()
    growth.extend()
    return growth.structure()


class First(Whims):
    """Always chooses the first pair."""

    def choose(self, pairs: Sequence[Pair], _: Fraction, **_foreseen: object) -> Pair | None:
        self.asked.append(pairs)
        return pairs[0]


def with_null_keys(*, hub: bool = False) -> Candidates:
    """Two own columns, two NULL keys and perhaps a hub with a fanout; one given column."""
    found = candidates([3, 3, 2, 2, 5, 5, 3], own=6)
    link = LinkFacts(
        name="a.b",
        table="a",
        columns=("b",),
        target="c",
        kind=LinkKind.REFERENCE,
        slots=None,
        nullable=True,
        unique=False,
    )
    nulls = [whole_axis(replace(null_key(link), name=name)) for name in ("null 2", "null 3")]
    axes = (*found.axes[:2], *nulls, *found.axes[4:])
    return replace(found, axes=axes, hub=5 if hub else None, linked=(4,) if hub else ())


@pytest.mark.parametrize("hub", [False, True])
def test_null_keys_choose_a_column_of_their_row_first(hub: bool) -> None:
    found, whims = with_null_keys(hub=hub), First(0, none=0.0)
    structure = grown(whims, found, parents=1, choices=20)
    for asked, null in zip(whims.asked, ("null 2", "null 3"), strict=False):
        pairs = [{pair.first.feature.name, pair.second.feature.name} for pair in asked]
        assert all(null in pair for pair in pairs)
        assert set().union(*pairs) == {"c0", "c1", "c4", "c5", null}
    assert structure.parents[2] == structure.parents[3] == (0,)
    assert as_tree(found, structure)


@pytest.mark.parametrize("hub", [False, True])
def test_the_parent_of_a_null_key_gets_a_parent_too(hub: bool) -> None:
    """Though it was placed before others: what is given, or the hub, comes before it."""
    found = with_null_keys(hub=hub)
    structure = grown(First(0, none=0.0), found, parents=1, choices=20)
    assert structure.parents[0] == (6,)
    assert as_tree(found, structure)


def test_a_null_key_may_depend_on_nothing() -> None:
    structure = grown(Whims(0, none=1.0), with_null_keys(), parents=2, choices=20)
    assert structure.parents == {}


def as_tree(found: Candidates, structure: Structure) -> CliqueTree:
    """A node of this structure; making it checks that all parents form cliques."""
    names = [a.feature.name for a in found.axes]
    columns = tuple(
        Conditional(
            column=names[c],
            bins=found.axes[c].bins,
            counts=np.ones(found.axes[c].size),
            parents=tuple(names[p] for p in structure.parents.get(c, ())),
            factors=tuple(np.ones((found.axes[p].size, found.axes[c].size)) for p in structure.parents.get(c, ())),
        )
        for c in structure.sequence(found.own)
    )
    given_too = tuple(Given(column=names[g], bins=found.axes[g].bins) for g in found.given)
    return CliqueTree(columns=columns, given=given_too, contexts=np.zeros((1, len(given_too)), np.int64))


@settings(max_examples=120)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 30), min_size=1, max_size=9),
    st.integers(1, 9),
    st.integers(1, 8),
    st.integers(0, 40),
    st.sampled_from([0.0, 0.1, 0.5]),
)
def test_every_structure_is_chordal(
    seed: int, sizes: list[int], own: int, parents: int, choices: int, none: float
) -> None:
    whims, found = Whims(seed, none), candidates(sizes, min(own, len(sizes)))
    structure = grown(whims, found, parents, choices)
    as_tree(found, structure)  # raises if it is not
    assert sorted(structure.sequence(found.own)) == list(range(found.own))
    assert structure.choices == len(whims.asked) <= choices
    assert all(len(p) <= parents and len(set(p)) == len(p) for p in structure.parents.values())
    for column, of in structure.parents.items():
        assert np.prod([sizes[p] for p in (*of, column)], dtype=float) <= MOST_CELLS or len(of) == 1
    assert all(sizes[p] > 1 and sizes[c] > 1 for p, c in structure.pairs)


@settings(max_examples=120)
@given(st.integers(0, 10**6), st.integers(2, 7), st.integers(0, 3), st.integers(0, 30), st.sampled_from([0.0, 0.5]))
def test_named_pairs_come_first_and_keep_it_chordal(seed: int, own: int, more: int, choices: int, none: float) -> None:
    rng = np.random.default_rng(seed)
    places = [(a, b) for a in range(own) for b in range(own + more) if a < b]
    hinted = tuple(places[i] for i in rng.permutation(len(places))[: rng.integers(1, 9)])
    whims, found = Whims(seed, none), replace(candidates([3] * (own + more), own), hinted=hinted)
    structure = grown(whims, found, 2, choices)
    as_tree(found, structure)  # raises if it is not
    assert sorted(structure.sequence(own)) == list(range(own))
    assert structure.choices == len(whims.asked) <= choices
    only = grown(Whims(seed, none), found, 2, 0)
    as_tree(found, only)
    named = {frozenset(pair) for pair in hinted}
    assert {frozenset(pair) for pair in only.pairs} <= named
    assert set(only.pairs) <= set(structure.pairs)


def test_named_pairs_that_form_no_circle_all_have_their_place() -> None:
    hinted = ((0, 1), (2, 3), (4, 5), (1, 3), (5, 0), (4, 6), (3, 6))
    found = replace(candidates([3] * 7, 6), hinted=hinted)
    structure = grown(Whims(0, 0.0), found, 1, 0)
    assert {frozenset(pair) for pair in structure.pairs} == {frozenset(pair) for pair in hinted}
    as_tree(found, structure)


def test_a_named_pair_that_would_close_a_circle_or_has_one_bin_is_left_out() -> None:
    found = replace(candidates([3, 3, 3, 3, 1], 5), hinted=((0, 1), (1, 2), (2, 3), (3, 0), (0, 4)))
    assert len(grown(Whims(0, 0.0), found, 4, 0).pairs) == 3
    for chordal in (((0, 1), (1, 2), (2, 0)), ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2))):
        found = replace(candidates([3] * 4, 4), hinted=chordal)
        assert len(grown(Whims(0, 0.0), found, 1, 0).pairs) == len(chordal)


def test_the_first_column_of_named_pairs_may_still_depend_on_others() -> None:
    found = replace(candidates([3] * 5, 4), hinted=((0, 1), (2, 3)))
    structure = grown(Whims(1, 0.0), found, 1, 9)
    assert structure.parents[0] == (4,)
    assert structure.parents[2]


@pytest.mark.parametrize("given_columns", [0, 3])
def test_there_are_never_more_choices_than_were_planned_for(given_columns: int) -> None:
    for seed in range(20):
        found = candidates([3] * (5 + given_columns), 5)
        structure = grown(Whims(seed, 0.0), found, 3, 10**6)
        assert structure.choices <= most_choices(5, given_columns, 3)


OWN = {"c0", "c1", "c2", "c3"}
"""Of six columns the own ones; the others are given."""


def test_none_ends_a_round() -> None:
    whims = Whims(1, 1.0)
    structure = grown(whims, candidates([4] * 6, 4), 3, 30)
    assert structure.pairs == ()
    from_given, among_own = whims.asked  # what is given first, then two own columns; then the round ends
    assert all(len({pair.first.feature.name, pair.second.feature.name} & OWN) == 1 for pair in from_given)
    assert all({pair.first.feature.name, pair.second.feature.name} <= OWN for pair in among_own)


class Taste(Whims):
    """Chooses these pairs whenever they are offered, and no other."""

    def __init__(self, *liked: set[str]) -> None:
        super().__init__(1, 0.0)
        self._liked = liked

    def choose(self, pairs: Sequence[Pair], _: Fraction, **_foreseen: object) -> Pair | None:
        self.asked.append(pairs)
        return next((p for p in pairs if {p.first.feature.name, p.second.feature.name} in self._liked), None)


def test_own_columns_that_depend_on_nothing_else_are_found_though_another_depends_on_what_is_given() -> None:
    structure = grown(Taste({"c4", "c0"}, {"c1", "c2"}), candidates([4] * 6, 4), 3, 30)
    assert set(structure.pairs) == {(4, 0), (1, 2)}


def test_further_parents_are_chosen_among_all_columns_until_two_choices_are_none() -> None:
    whims = Whims(3, 0.0)
    growth = Growth(cast(WeighedTable, whims), candidates([3] * 6, 6), parents=3, choices=40, amount=Fraction(1))
    growth.place_first()
    placed = len(whims.asked)
    growth.extend()
    columns = {pair.second.feature.name for pair in whims.asked[placed]}
    columns |= {pair.first.feature.name for pair in whims.asked[placed]}
    assert len(columns) == 6  # the first choice of a further parent is among all that there can be
    none = Whims(3, 1.0)
    growth = Growth(cast(WeighedTable, none), candidates([3] * 6, 6), parents=3, choices=40, amount=Fraction(1))
    growth._order, growth._parents = [0, 1, 2], {0: [], 1: [0], 2: [1]}
    growth.extend()
    assert len(none.asked) == ENOUGH_NONES


def test_further_parents_are_scored_by_what_is_known_of_them() -> None:
    known = np.full((3, 3), 100 / 9)
    known[0] += [5, -2, -3]
    whims = Whims(3, 0.0)
    growth = Growth(cast(WeighedTable, whims), candidates([3] * 4, 4), parents=2, choices=40, amount=Fraction(1))
    growth.place_first()
    placed = len(whims.asked)
    growth.extend(lambda _a, _b: known)
    before, after = (
        [pair for pairs in part for pair in pairs] for part in (whims.asked[:placed], whims.asked[placed:])
    )
    wanted = np.rint(known * ENTITY_WEIGHT)
    assert after
    assert all((pair.expected == wanted).all() for pair in after)
    assert not any((pair.expected == wanted).all() for pair in before)


def test_each_pair_is_offered_once_and_always_as_the_same_object() -> None:
    """So that its table is counted once, and choices can be told apart by identity."""
    whims = Whims(5, 0.0)
    grown(whims, candidates([3] * 7, 5), 3, 40)
    seen: dict[tuple[str, str], Pair] = {}
    for pairs in whims.asked:
        assert len(set(pairs)) == len(pairs)
        for pair in pairs:
            names = tuple(sorted((pair.first.feature.name, pair.second.feature.name)))
            assert seen.setdefault((names[0], names[1]), pair) is pair


def test_a_pair_of_two_counts_of_keys_is_weighed_by_all_that_moves_it() -> None:
    link = LinkFacts(
        name="a.b",
        table="a",
        columns=("b",),
        target="t",
        kind=LinkKind.REFERENCE,
        slots=None,
        nullable=True,
        unique=False,
    )
    edges = fanout_edges(3)
    counted = [whole_axis(in_degree(replace(link, name=name), edges)) for name in ("a.b", "a.c")]
    own = axis("z", 4)
    found = Candidates(axes=(*counted, own), masses=(np.full(4, 1e4),) * 3, own=3, strata=1, deviation=2.0)
    assert counted[0].feature.sensitivity_factor == 3
    assert dependence_pair(found, 0, 1).sensitivity_factor == 5
    assert dependence_pair(found, 0, 2).sensitivity_factor == 3
    noise = {pair: dependence_pair(found, *pair).penalty for pair in ((0, 1), (0, 2))}
    assert noise[0, 1] - noise[0, 2] == pytest.approx(2 * 0.8 * 2.0 * 16 * ENTITY_WEIGHT)


# -- factors -------------------------------------------------------------------------------------------------------


def dense_fit(shape: tuple[int, ...], tables: dict[int, Floats], base: Floats) -> Floats:
    """Iterative proportional fitting of P(parents) x own to the tables, cell by cell; the last axis is the column."""
    joint = base.copy()
    for _ in range(400):
        for place, table in tables.items():
            others = tuple(a for a in range(len(shape) - 1) if a != place)
            margin = joint.sum(axis=others)
            grow = table / np.maximum(margin, 1e-300)
            joint = joint * np.expand_dims(grow, others)
        parents = joint.sum(axis=-1, keepdims=True)
        joint = joint / np.maximum(parents, 1e-300) * base.sum(axis=-1, keepdims=True)
    return joint


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 5), (2, 3, 2, 4)], ids=str)
def test_factors_fit_what_a_dense_fit_finds(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    true = rng.random(shape) ** 2 + 0.05
    true /= true.sum()
    own = true.sum(axis=tuple(range(len(shape) - 1)))
    parents = true.sum(axis=-1)
    tables = {p: true.sum(axis=tuple(a for a in range(len(shape) - 1) if a != p)) for p in range(len(shape) - 1)}
    bins = tuple(np.nonzero(parents > 0))
    found = Configurations(bins=bins, masses=parents[bins])
    factors = fit_factors(own, found, list(tables.values()))
    fitted = conditional(factors, bins) * parents[bins][:, None]
    dense = dense_fit(shape, tables, parents[..., None] * own)[bins]
    assert np.abs(fitted - dense).sum() < 5e-3
    for place, table in tables.items():
        margin = np.zeros_like(table)
        np.add.at(margin, bins[place], fitted)
        assert np.abs(margin - table).sum() < 2e-3


def test_factors_of_tables_that_contradict_each_other_stay_finite() -> None:
    tables = [np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])]
    both = np.arange(2)
    factors = fit_factors(np.ones(2), Configurations(bins=(both, both), masses=np.ones(2)), tables)
    assert all(np.isfinite(f).all() and (f >= 0).all() for f in factors)
    shares = conditional(factors, [both, both])
    assert shares.sum(axis=1) == pytest.approx(np.ones(2))


def test_factors_are_numbers_where_pairs_contradict_the_column() -> None:
    bins = tuple(np.array(list(itertools.product(range(2), repeat=3))).T)
    pair = np.array([[1.0, 4.0], [4.0, 1.0]])
    found = Configurations(bins=bins, masses=np.full(8, 1 / 8))
    factors = fit_factors(np.array([1.0, 0.0]), found, [pair] * 3)
    assert all(np.isfinite(factor).all() for factor in factors)
    assert np.isfinite(conditional(factors, bins)).all()


def test_one_parent_needs_no_fit() -> None:
    table = np.array([[3.0, 1.0], [0.0, 4.0]])
    (factor,) = fit_factors(np.array([3.0, 5.0]), Configurations(bins=(np.arange(2),), masses=np.ones(2)), [table])
    assert conditional([factor], [np.arange(2)]) == pytest.approx(np.array([[0.75, 0.25], [0.0, 1.0]]))


def test_pairs_that_choices_come_to_are_foreseen_by_the_first() -> None:
    """Else every choice would be a pass over the rows."""
    asked: list[set[frozenset[str]]] = []
    foreseen: list[set[frozenset[str]]] = []

    class Watched(First):
        def choose(self, pairs: Sequence[Pair], amount: Fraction, **more: Any) -> Pair | None:
            asked.append({frozenset((p.first.feature.name, p.second.feature.name)) for p in pairs})
            foreseen.append({frozenset(a.feature.name for a in axes) for axes in more["foreseen"]})
            return super().choose(pairs, amount)

    grown(Watched(1, 0.0), candidates([3, 3, 4, 5, 2], own=4), parents=2, choices=20)
    assert len(asked) > 2
    assert set().union(*asked) <= asked[0] | foreseen[0]
