"""Rules as zeros: what is expected of a pair, which parents follow from a rule, and how a factor tells no more."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from privbench.methods.tree.network import Configurations, conditional, fit_factors
from privbench.methods.tree.pairs import NoisyTable, pair_masses, ruled_masses
from privbench.methods.tree.structure import Candidates, Growth, dependence_pair, independent, with_bases
from privbench.methods.tree.weighed import WeighedTable
from privbench.methods.tree.zeros import (
    FINE_BINS,
    Zeros,
    coarser,
    find_zeros,
    possible_places,
    says_only_zeros,
    summed,
)
from privbench.privacy.facts import ColumnFacts, LinkFacts, PossiblePairs
from privbench.privacy.features import Axis, Feature, of_owner, own, whole_axis
from privbench.privacy.queries import ENTITY_WEIGHT
from privbench.schema.unit import LinkKind

from .test_structure import Whims, as_tree

Floats = NDArray[np.float64]

OWNER = LinkFacts(
    name="t.o", table="t", columns=("o",), target="o", kind=LinkKind.OWNER, slots=None, nullable=True, unique=False
)


def column(name: str, size: int, *, null: bool = False) -> Feature:
    return own(name, ColumnFacts(size=size, ordered=True, null=null))


def pair(name: str, base: str, possible: NDArray[np.bool_], *, of_owner: bool = False) -> PossiblePairs:
    return PossiblePairs(table="t", column=name, base=base, of_owner=of_owner, possible=possible)


def upper(rows: int, columns: int) -> NDArray[np.bool_]:
    """The base is not above the column."""
    return np.arange(rows)[:, None] * columns <= (np.arange(columns) + 1) * rows - 1


def axis(feature: Feature, bins: int) -> Axis:
    return Axis(feature, np.arange(feature.size) * bins // feature.size)


def increasing(size: int) -> Floats:
    return 1000 * np.arange(1, size + 1) / (size * (size + 1) / 2)


def zeros_of(size: int = 100, bins: int = 5) -> tuple[Zeros, list[Axis], list[Floats]]:
    """A column that is not below one of its owner, in few bins."""
    features = [column("x", size), of_owner(column("b", size), OWNER)]
    axes = [axis(features[0], bins), axis(features[1], bins)]
    counts = [increasing(size), np.append(increasing(size)[::-1], 1e-6)]
    return find_zeros(features, axes, counts, [pair("x", "b", upper(size, size), of_owner=True)]), axes, counts


def test_fine_bins_are_parts_of_those_for_pairs() -> None:
    zeros, axes, counts = zeros_of()
    for place, of in enumerate(axes):
        fine = zeros.axes[place]
        assert of.size < FINE_BINS / 2 < fine.size <= FINE_BINS + of.size
        assert np.array_equal(coarser(fine, of)[fine.bins], of.bins)
        assert np.isclose(zeros.masses[place].sum(), counts[place].sum())
    whole = [whole_axis(of.feature) for of in axes]
    assert find_zeros(
        [of.feature for of in axes], whole, counts, [pair("x", "b", upper(100, 100), of_owner=True)]
    ).axes == {
        0: whole[0],
        1: whole[1],
    }


def test_shares_are_those_of_the_mass_that_is_possible() -> None:
    zeros, _, counts = zeros_of()
    shares = zeros.between(1, 0)
    assert shares is not None
    possible = np.append(upper(100, 100), np.ones((1, 100), bool), axis=0)
    for first in range(zeros.axes[1].size):
        for second in range(zeros.axes[0].size):
            rows, columns = zeros.axes[1].bins == first, zeros.axes[0].bins == second
            mass = np.outer(counts[1][rows], counts[0][columns])
            assert np.isclose(shares[first, second], mass[possible[np.ix_(rows, columns)]].sum() / mass.sum())
    assert np.allclose(shares[-1], 1)  # without an owner any value goes
    turned = zeros.between(0, 1)
    assert turned is not None
    assert np.array_equal(turned, shares.T)
    assert zeros.between(0, 0) is None


def test_what_is_expected_has_the_margins_and_the_zeros() -> None:
    zeros, _, _ = zeros_of()
    margins = zeros.masses[1], zeros.masses[0]
    expected, shares = zeros.expected(1, 0, margins), zeros.between(1, 0)
    assert expected is not None
    assert shares is not None
    assert np.array_equal(expected == 0, shares == 0)
    assert np.allclose(expected.sum(axis=1), margins[0], rtol=1e-3)
    assert np.allclose(expected.sum(axis=0), margins[1], rtol=1e-3)


def test_a_pair_that_only_keeps_the_rule_has_no_score() -> None:
    """What the rule alone makes of two columns is no reason to measure them."""
    zeros, axes, counts = zeros_of()
    masses = tuple(np.bincount(of.bins, weights=c) for of, c in zip(axes, counts, strict=True))
    found = Candidates(axes=tuple(axes), masses=masses, own=1, strata=1, deviation=1.0, zeros=zeros)
    expected = dependence_pair(found, 0, 1).expected / ENTITY_WEIGHT
    assert np.allclose(expected.sum(axis=1), masses[0], rtol=1e-3)
    assert (expected[0, 1:-1] == 0).all()
    plain = dependence_pair(replace(found, zeros=NO), 0, 1).expected / ENTITY_WEIGHT
    assert np.allclose(plain, np.outer(*masses) / 1000, atol=1e-3)


NO = find_zeros([], [], [], [])


def test_measured_tables_keep_the_zeros() -> None:
    zeros, axes, _ = zeros_of()
    fine = zeros.masses[1], zeros.masses[0]
    expected = zeros.expected(1, 0, fine)
    assert expected is not None
    bins = coarser(zeros.axes[1], axes[1]), coarser(zeros.axes[0], axes[0])
    coarse = summed(expected, *bins)
    margins = coarse.sum(axis=1), coarse.sum(axis=0)
    rng = np.random.default_rng(1)
    noisy = NoisyTable(cells=coarse + rng.normal(0, 20, coarse.shape), variance=400.0)
    masses = pair_masses(axes[1], axes[0], margins, noisy, expected=coarse)
    assert np.array_equal(masses == 0, coarse == 0)
    made = ruled_masses(expected, masses, bins, fine)
    assert np.array_equal(made == 0, expected == 0)
    assert np.allclose(made.sum(axis=0), fine[1], rtol=1e-6)


def test_what_follows_from_two_rules() -> None:
    """An owner's date before a row's, and that before another; what may be NULL is between nothing."""
    features = [column("x", 6), column("y", 6), column("z", 7, null=True), of_owner(column("b", 6), OWNER)]
    null = np.append(upper(6, 6), np.ones((6, 1), bool), axis=1)
    rules = [pair("x", "b", upper(6, 6), of_owner=True), pair("y", "x", upper(6, 6)), pair("z", "y", null)]
    possible, through = possible_places(features, rules)
    assert set(possible) == {(3, 0), (0, 1), (1, 2), (3, 1), (3, 2)}
    assert through == {(3, 1): 0, (3, 2): 1}
    assert np.array_equal(possible[3, 1][:-1], upper(6, 6))
    assert possible[3, 1][-1].all()
    assert np.array_equal(possible[3, 2][:-1], null)
    beyond = [*rules[:1], pair("z", "x", null), pair("y", "z", null.T)]
    assert set(possible_places(features, beyond)[0]) == {(3, 0), (0, 2), (2, 1), (3, 2)}


def test_rules_about_columns_that_are_not_there_say_nothing() -> None:
    features = [column("x", 6), of_owner(column("b", 6), OWNER)]
    rules = [pair("x", "c", upper(6, 6)), pair("x", "x2", upper(6, 6), of_owner=True), pair("x", "b", upper(6, 6))]
    assert possible_places(features, rules) == ({}, {})


# -- which parents follow from a rule ------------------------------------------------------------------------------


def ruled(sizes: Sequence[int], own_columns: int, pairs: Sequence[tuple[int, int]]) -> Candidates:
    """Columns of which some are compared: the first ones of pairs may be given."""
    features = [
        column(f"c{at}", size) if at < own_columns else of_owner(column(f"c{at}", size - 1), OWNER)
        for at, size in enumerate(sizes)
    ]
    axes = tuple(map(whole_axis, features))
    masses = tuple(np.full(size, 100.0 / size) for size in sizes)
    shares = {(a, b): np.ones((sizes[a], sizes[b])) for a, b in pairs}
    zeros = Zeros(axes=dict(enumerate(axes)), masses=dict(enumerate(masses)), shares=shares, through={})
    return Candidates(axes=axes, masses=masses, own=own_columns, strata=1, deviation=1.0, zeros=zeros)


@st.composite
def shapes(draw: st.DrawFn) -> Candidates:
    sizes = draw(st.lists(st.integers(2, 30), min_size=2, max_size=8))
    own_columns = draw(st.integers(1, len(sizes)))
    places = st.tuples(st.integers(0, len(sizes) - 1), st.integers(0, own_columns - 1)).filter(lambda p: p[0] != p[1])
    pairs = draw(st.lists(places, max_size=6, unique_by=frozenset)) if len(sizes) > 1 else []
    return ruled(sizes, own_columns, pairs)


@settings(max_examples=150)
@given(shapes(), st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([0.0, 0.3, 1.0]))
def test_every_structure_with_bases_is_chordal(found: Candidates, seed: int, parents: int, none: float) -> None:
    table = cast(WeighedTable, Whims(seed, none))
    growth = Growth(table, found, parents=parents, choices=30, amount=Fraction(1))
    growth.place_first()
    growth.extend()
    chosen = growth.structure()
    for before in (chosen, independent(found)):
        structure = with_bases(found, before)
        as_tree(found, structure)  # raises if it is not
        assert sorted(structure.sequence(found.own)) == list(range(found.own))
        assert set(structure.pairs) == {*before.pairs, *structure.free}
        assert not structure.free & {*before.pairs}
        rules = {frozenset(places) for places in found.zeros.shares}
        assert {frozenset(places) for places in structure.free} <= rules
        assert structure.choices == before.choices
        given_bases = {places for places in found.zeros.shares if places[0] >= found.own}
        if len(given_bases) <= 1:
            assert given_bases <= {*structure.pairs}


def test_of_two_own_columns_the_later_one_depends_on_the_other() -> None:
    found = ruled([4, 4, 4], 3, [(0, 1)])
    alone = with_bases(found, independent(found))
    assert (alone.order, alone.parents, alone.free) == ((0, 1), {1: (0,)}, {(0, 1)})
    placed = replace(independent(found), order=(2, 1), parents={1: (2,)})
    assert with_bases(found, placed).free == {(1, 0)}  # 0 is not placed: it comes last
    apart = replace(independent(found), order=(2, 1, 0), parents={1: (2,), 0: (2,)})
    assert with_bases(found, apart).parents[0] == (2, 1)  # both are parents of 0, and joined


def test_what_follows_through_a_parent_needs_no_parent_of_its_own() -> None:
    found = ruled([4, 4, 5], 2, [(2, 0), (0, 1), (2, 1)])
    found = replace(found, zeros=replace(found.zeros, through={(2, 1): 0}))
    assert with_bases(found, independent(found)).parents == {0: (2,), 1: (0,)}
    first = replace(independent(found), order=(1,), parents={})
    assert with_bases(found, first).parents == {0: (2, 1), 1: (2,)}


# -- factors -------------------------------------------------------------------------------------------------------


def test_a_factor_of_a_rule_keeps_the_margin_beside_other_parents() -> None:
    rng = np.random.default_rng(3)
    zeros, _, _ = zeros_of(30, 5)
    free = zeros.expected(1, 0, (zeros.masses[1], zeros.masses[0]))
    assert free is not None
    masses = zeros.masses[0]
    other = rng.random((3, len(masses))) * masses
    other *= masses / other.sum(axis=0)
    both = np.outer(free.sum(axis=1), other.sum(axis=1))
    at = np.indices(both.shape).reshape(2, -1)
    configurations = Configurations(bins=(at[1], at[0]), masses=both.ravel())
    factors = fit_factors(masses, configurations, [other, free], free=[False, True])
    made = configurations.masses @ conditional(factors, configurations.bins)
    assert np.allclose(made / made.sum(), masses / masses.sum(), atol=2e-3)
    possible = np.append(upper(30, 30), np.ones((1, 30), bool), axis=0)
    bins = zeros.axes[1].bins, zeros.axes[0].bins
    assert says_only_zeros(factors[1], possible, *bins)
    assert not says_only_zeros(fit_factors(masses, configurations, [other, free])[1], possible, *bins)


@pytest.mark.parametrize(("rows", "columns"), [(7, 7), (12, 5), (4, 9)])
def test_a_factor_says_only_zeros_or_more(rows: int, columns: int) -> None:
    rng = np.random.default_rng(1)
    possible = upper(rows, columns)
    factor = np.outer(rng.random(rows) + 0.1, rng.random(columns) + 0.1) * possible
    bins = np.arange(rows), np.arange(columns)
    assert says_only_zeros(factor, possible, *bins)
    assert says_only_zeros(factor * (rng.random(rows) + 0.5)[:, None], possible, *bins)
    assert not says_only_zeros(factor[:, :-1], possible, *bins)
    assert not says_only_zeros(factor, possible[:, :-1], *bins)
    for cell in np.argwhere(possible.sum(axis=0)[None, :] * possible.sum(axis=1)[:, None] > 1):
        more = factor.copy()
        more[tuple(cell)] += 0.01
        corner = (possible[cell[0]].sum() == 1 and possible[cell[0], cell[1]]) or (
            possible[:, cell[1]].sum() == 1 and possible[cell[0], cell[1]]
        )
        assert says_only_zeros(more, possible, *bins) == corner  # the only cell of a row or column says nothing


def test_bins_of_which_some_codes_go_together_have_at_most_their_mass() -> None:
    possible, bins = upper(8, 8), np.arange(8) // 2
    factor = summed(possible.astype(float), bins, bins)
    assert says_only_zeros(factor, possible, bins, bins)
    assert says_only_zeros(factor * np.where(np.eye(4) > 0, 0.5, 1), possible, bins, bins)
    assert not says_only_zeros(factor * np.where(np.eye(4) > 0, 3.0, 1), possible, bins, bins)


@pytest.mark.parametrize(
    ("bins", "factor"),
    [
        (np.arange(8) % 2, np.array([[0.9, 0.01], [1e-9, 77.0]])),
        (np.arange(8) % 4, np.random.default_rng(0).random((4, 4))),
        (np.zeros(8, np.int64), np.array([[0.3, 0.7]])),
    ],
    ids=["odd and even", "every fourth", "another shape"],
)
def test_bins_that_leave_a_factor_free_are_refused(bins: NDArray[np.int64], factor: NDArray[np.float64]) -> None:
    """Leaks built in: in bins of which only some codes go together a rule would excuse any table."""
    assert not says_only_zeros(factor, np.tri(8, dtype=bool).T, bins, bins)


def test_a_factor_without_a_cell_that_tells_its_norm_is_refused() -> None:
    possible = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]], bool)
    bins = np.array([0, 0, 1, 1])
    assert not says_only_zeros(np.array([[0.1, 0.9], [0.8, 0.2]]), possible, bins, bins)
