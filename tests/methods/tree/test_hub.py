"""The hub of a table: when it pays, what is measured of it, and masses whose hidden ends follow it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.methods.tree import hub
from privbench.methods.tree.hub import (
    HUB_SHARE,
    KEYS_PART,
    LEAST_CODE,
    NO_HUB,
    HubTable,
    HubTables,
    References,
    expanded,
    fit_hub,
    fit_references,
    hub_place,
    hub_share,
    is_reference,
    linked_places,
    measure_hub,
    pays,
    refined,
)
from privbench.methods.tree.reference_rates import RATE_EDGES, MeanKeys
from privbench.methods.tree.single import Single, Singles, estimate
from privbench.methods.tree.structure import Candidates, independent
from privbench.methods.tree.weighed import WeighedTable, features_noise
from privbench.privacy.calibrate import noise_of
from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.facts import LinkFacts
from privbench.privacy.features import Axis, Feature, Own, in_degree
from privbench.spn.fanouts import bin_means, fanout_edges

from .tails import (
    ACTIVITY,
    FANOUT,
    IN_DEGREE,
    REFERENCE,
    ROWS,
    Floats,
    apart,
    code_of,
    coupled,
    doubling,
    edges,
    noisy_table,
)

AGE = Feature(name="age", size=4, ordered=True, source=Own("age"))
UNIQUE = in_degree(replace(REFERENCE, unique=True), fanout_edges(1))
OWN = (AGE, FANOUT, ACTIVITY)


def single(feature: Feature, counts: Floats, *, epsilon: float, seed: int = 0) -> Single:
    noise = noise_of(PrivacyMeasure.EPSILON, Fraction(epsilon))
    noisy = counts + np.random.default_rng(seed).laplace(0, noise.scale, feature.size)
    return Single(feature=feature, noisy=noisy[None], noise=noise)


def measured(cells: Floats, *, epsilon: float) -> tuple[list[Single], Singles]:
    """What is known of each column of OWN."""
    ages = np.full(4, cells.sum() / 4)
    found = [
        single(feature, counts, epsilon=epsilon, seed=at)
        for at, (feature, counts) in enumerate(zip(OWN, (ages, cells.sum(axis=0), cells.sum(axis=1)), strict=True))
    ]
    return found, estimate(found, entities=float(cells.sum()), means={})


def tables_of(cells: Floats, *, epsilon: float) -> HubTables:
    axes = (doubling(ACTIVITY), doubling(FANOUT))
    table = noisy_table(cells, axes, np.random.default_rng(9), scale=1 / epsilon)
    return HubTables(linked={1: HubTable(axes=axes, table=table)})


# -- whether there is one --------------------------------------------------------------------------------------------


def test_where_the_hub_is_and_what_is_linked_to_it() -> None:
    assert hub_place(OWN) == 2
    assert hub_place((AGE, FANOUT)) is None
    assert linked_places((AGE, FANOUT, IN_DEGREE, ACTIVITY)) == [1, 2]


def test_keys_of_which_a_row_has_at_most_one_are_no_references() -> None:
    assert is_reference(IN_DEGREE)
    assert not is_reference(UNIQUE)
    assert not any(map(is_reference, OWN))


def fanout_known(counts: Floats, *, epsilon: float = 10.0) -> tuple[list[Single], Singles]:
    found = [single(FANOUT, counts, epsilon=epsilon)]
    return found, estimate(found, entities=float(counts.sum()), means={})


def test_a_hub_pays_where_rows_are_referenced_or_few_own_most() -> None:
    uneven = coupled().cells(FANOUT).sum(axis=0)
    even = np.where(np.arange(FANOUT.size) < 5, 1000.0, 0.0)
    assert pays(*fanout_known(uneven), OWN)
    assert not pays(*fanout_known(even), OWN)
    assert pays(*fanout_known(even), (*OWN, IN_DEGREE))


@pytest.mark.parametrize(("owners", "paid"), [(200.0, False), (20_000.0, True)])
def test_a_small_uneven_table_beside_a_large_even_one_pays_no_hub(owners: float, paid: bool) -> None:
    uneven = coupled().cells(FANOUT).sum(axis=0)
    uneven[1:] *= owners / uneven[1:].sum()
    uneven[0] = 80_000 - owners
    even = np.where(np.arange(FANOUT.size) < 8, 10_000.0, 0.0)
    found = [single(FANOUT, uneven, epsilon=10.0), single(replace(FANOUT, name="seasons"), even, epsilon=10.0)]
    assert pays(found, estimate(found, entities=80_000.0, means={}), OWN) is paid


def test_tables_of_the_hub_have_no_less_noise_than_columns() -> None:
    assert hub_share(OWN, (), measured=10, single_share=0.5) == Fraction(1, 2) / (10 + Fraction(1, 2))
    assert hub_share(OWN, (IN_DEGREE,) * 3, measured=2, single_share=1.0) == HUB_SHARE


def test_a_fanout_that_noise_hides_is_not_uneven() -> None:
    """A hundred rows that own any, few of them many: with little noise they count, with much they are noise."""
    counts = coupled().cells(FANOUT).sum(axis=0)
    counts[1:] *= 100 / counts[1:].sum()
    assert pays(*fanout_known(counts, epsilon=10.0), OWN)
    assert not pays(*fanout_known(counts, epsilon=0.1), OWN)


def test_nobody_owns_anything() -> None:
    counts = np.eye(FANOUT.size)[0] * 1000
    assert not pays(*fanout_known(counts), OWN)


# -- what is measured ------------------------------------------------------------------------------------------------


@dataclass
class Asked:
    """A table that answers from cells, and remembers what it was asked and for how much."""

    cells: dict[str, Floats]
    holders: float = 30_000.0
    amounts: list[Fraction] = field(default_factory=list)
    axes: list[tuple[Axis, ...]] = field(default_factory=list)

    def noise(self, features: Sequence[Feature], amount: Fraction) -> Any:
        return features_noise(PrivacyMeasure.EPSILON, features, amount)

    def measure_all(self, requests: Sequence[tuple[Sequence[Axis], Fraction]]) -> list[Any]:
        answers = []
        for axes, amount in requests:
            self.amounts.append(amount)
            self.axes.append((axes[0], axes[1]))
            table = noisy_table(self.cells[axes[1].feature.name], (axes[0], axes[1]), np.random.default_rng(1), scale=0)
            answers.append(Answered(counts=table.cells, noise=self.noise([a.feature for a in axes], amount)))
        return answers

    def entities_with_key(self, _link: LinkFacts, amount: Fraction) -> Any:
        self.amounts.append(amount)
        return Answered(counts=np.array([self.holders]), noise=noise_of(PrivacyMeasure.EPSILON, amount))


@dataclass
class Answered:
    counts: Floats
    noise: Any

    @property
    def total(self) -> float:
        return float(self.counts.sum())


def ask(amount: Fraction, *, epsilon: float = 10.0, references: int = 1) -> tuple[Asked, HubTables]:
    made = coupled()
    cells = {FANOUT.name: made.cells(FANOUT), IN_DEGREE.name: made.cells(IN_DEGREE)}
    asked = Asked(cells=cells)
    _, singles = measured(cells[FANOUT.name], epsilon=epsilon)
    many = References(features=(IN_DEGREE,) * references, rows=float(ROWS), error=0.15)
    return asked, measure_hub(cast(WeighedTable, asked), OWN, many, singles, amount=amount)


def test_many_references_leave_enough_for_their_tables() -> None:
    asked, _ = ask(Fraction(1), references=80)
    assert all(amount > 0 for amount in asked.amounts)
    assert sum(asked.amounts[:80]) == Fraction(1, 4)
    assert 0.999 < sum(asked.amounts) <= 1


@pytest.mark.parametrize("amount", [Fraction(1, 100), Fraction(1), Fraction(1000)])
def test_all_that_is_there_is_spent_and_no_more(amount: Fraction) -> None:
    asked, tables = ask(amount)
    keys, *hubs = asked.amounts
    assert keys == amount * KEYS_PART
    assert 0.999 * amount < sum(asked.amounts) <= amount
    assert set(tables.linked) == {1}
    assert len(tables.references) == len(tables.keys) == 1
    assert hubs[1] == pytest.approx(3 * hubs[0], rel=1e-6), "an entity moves references three times as far"


def test_bins_double_and_the_last_ones_stand_out_of_the_noise() -> None:
    sizes = []
    for amount in (Fraction(1, 100), Fraction(1), Fraction(100)):
        asked, tables = ask(amount)
        hub_axis, fanout_axis = tables.linked[1].axes
        for axis in (hub_axis, fanout_axis):
            low = edges(axis.feature)[:-1]
            starts = [int(low[np.flatnonzero(axis.bins == b)[0]]) for b in range(axis.size)]
            assert starts[:3] == [0, 1, 2]
            assert all(b == 2 * a for a, b in pairwise(starts[1:]))
        rows = asked.cells[FANOUT.name].sum(axis=1)
        last = rows[hub_axis.bins == hub_axis.size - 1].sum()
        deviation = np.sqrt(asked.noise([ACTIVITY, FANOUT], asked.amounts[1]).variance)
        assert last > deviation
        sizes.append(hub_axis.size)
    assert sizes[0] < sizes[1] <= sizes[2]


def test_the_mean_number_of_keys_is_that_of_entities_that_have_one() -> None:
    _, tables = ask(Fraction(1000))
    (keys,) = tables.keys
    assert keys.mean == pytest.approx(0.5)
    assert keys.error == pytest.approx(0.15, rel=0.01)
    _, tables = ask(Fraction(1, 100))
    assert tables.keys[0].error > 0.15


def test_a_feature_that_counts_no_keys_is_no_reference() -> None:
    asked = cast(WeighedTable, Asked(cells={}))
    with pytest.raises(ValueError, match="counts no keys"):
        hub._mean_keys(asked, AGE, References(), Fraction(1))


def test_without_a_hub_nothing_is_asked() -> None:
    asked = Asked(cells={})
    _, singles = measured(coupled().cells(FANOUT), epsilon=1.0)
    assert measure_hub(cast(WeighedTable, asked), (AGE, FANOUT), References(), singles, amount=Fraction(1)) is NO_HUB
    assert asked.amounts == []
    assert fit_hub((AGE, FANOUT), [], singles, NO_HUB) == ({}, singles)
    assert fit_references((AGE, FANOUT), singles, NO_HUB) == []


# -- what is made of it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 100.0])
def test_masses_and_counts_agree(epsilon: float) -> None:
    cells = coupled().cells(FANOUT)
    found, singles = measured(cells, epsilon=epsilon)
    linked, after = fit_hub(OWN, found, singles, tables_of(cells, epsilon=epsilon))
    assert set(linked) == {(2, 1)}
    masses = linked[2, 1]
    assert masses.shape == (ACTIVITY.size, FANOUT.size)
    assert np.isfinite(masses).all()
    assert (masses >= 0).all()
    assert after.counts[1] == pytest.approx(masses.sum(axis=0) * (ROWS / masses.sum()))
    assert masses.sum(axis=1) / masses.sum() == pytest.approx(after.counts[2] / after.counts[2].sum(), abs=2e-3)
    assert after.counts[0] is singles.counts[0]
    assert after.counts[1].sum() == pytest.approx(ROWS)


def test_rows_of_a_hidden_tail_follow_the_hub() -> None:
    """A fanout that is said to end early, as noise hides its tail, has about the rows that the activity says.

    Of what the hub says and what its own counts say the mean is taken.
    """
    cells = coupled().cells(FANOUT)
    found, singles = measured(cells, epsilon=5.0)
    clear, means = 8, bin_means(edges(FANOUT), 2.0)
    falling = 0.5 ** np.arange(FANOUT.size - clear)
    early = np.append(cells.sum(axis=0)[:clear], cells[:, clear:].sum() * falling / falling.sum())

    def counts_after(counts: Floats) -> Floats:
        told = (singles.counts[0], counts, singles.counts[2])
        hidden = replace(singles, counts=told, clear={**singles.clear, FANOUT.name: clear})
        return fit_hub(OWN, found, hidden, tables_of(cells, epsilon=5.0))[1].counts[1]

    after, truth = counts_after(early), cells.sum(axis=0)
    assert early @ means < 0.6 * truth @ means
    assert 1.1 * early @ means < after @ means < 0.95 * counts_after(truth) @ means
    assert after[:clear] == pytest.approx(early[:clear], rel=0.02, abs=5)


def test_ends_of_the_hub_and_of_what_follows_it_are_trimmed() -> None:
    cells = coupled().cells(FANOUT) / 50
    found, singles = measured(cells, epsilon=0.5)
    _, after = fit_hub(OWN, found, singles, tables_of(cells, epsilon=0.5))
    for place, feature in ((1, FANOUT), (2, ACTIVITY)):
        assert singles.clear[feature.name] < feature.size, "some of its codes must be hidden"
        counts = after.counts[place]
        last = np.flatnonzero(counts > 1e-9).max()
        assert counts[last] > 0.5 * LEAST_CODE


def test_a_fanout_apart_from_the_activity_of_others_stays_apart() -> None:
    """Activity that contains it and much else: rows with any are about as active as others."""
    made = apart()
    made = replace(made, activity=made.activity + made.number)
    cells = made.cells(FANOUT)
    found, singles = measured(cells, epsilon=5.0)
    linked, _ = fit_hub(OWN, found, singles, tables_of(cells, epsilon=5.0))
    masses, a, b = linked[2, 1], code_of(ACTIVITY, 64), code_of(FANOUT, 4)
    share, truth = masses[a:, b:].sum() / masses[a:].sum(), cells[a:, b:].sum() / cells[a:].sum()
    assert share == pytest.approx(truth, rel=0.15)


def test_hidden_ends_are_trimmed() -> None:
    counts = np.array([100.0, 20.0, 5.0, 2.0, 0.6, 0.3, 0.05])
    found = hub._trimmed(counts, clear=3)
    assert found == pytest.approx([100, 20, 5, 2, 0.95, 0, 0])
    assert hub._trimmed(counts, clear=7) is counts


@settings(max_examples=100)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=30), st.integers(0, 31))
def test_trimming_moves_only_the_last_rows(values: list[float], clear: int) -> None:
    counts = np.array(values)
    found = hub._trimmed(counts, clear)
    assert found.shape == counts.shape
    assert found.sum() == pytest.approx(counts.sum())
    if clear < len(counts) and counts.sum() >= LEAST_CODE:
        last = np.flatnonzero(found).max()
        assert found[last] >= LEAST_CODE
        assert found[:last].tolist() == counts[:last].tolist()


@pytest.mark.parametrize("epsilon", [0.01, 10.0])
@pytest.mark.parametrize("name", ["nobody owns", "one entity"])
def test_odd_tables_have_masses(name: str, epsilon: float) -> None:
    cells = np.zeros((ACTIVITY.size, FANOUT.size))
    cells[(0, 0) if name == "nobody owns" else (2, 1)] = 500.0 if name == "nobody owns" else 1.0
    found, singles = measured(cells, epsilon=epsilon)
    linked, after = fit_hub(OWN, found, singles, tables_of(cells, epsilon=epsilon))
    assert all(np.isfinite(counts).all() and (counts >= 0).all() for counts in (linked[2, 1], *after.counts))
    assert after.counts[1].sum() == pytest.approx(cells.sum())
    if epsilon > 1 and name == "nobody owns":
        assert after.counts[1][0] > 0.98 * 500


def test_references_are_rates_given_the_hub() -> None:
    made = coupled()
    _, singles = measured(made.cells(FANOUT), epsilon=10.0)
    axes = (doubling(ACTIVITY), doubling(IN_DEGREE))
    table = noisy_table(made.cells(IN_DEGREE), axes, np.random.default_rng(0), scale=0.1)
    keys = MeanKeys(mean=float(made.number.mean()), error=0.05)
    tables = HubTables(linked={}, references=(HubTable(axes=axes, table=table),), keys=(keys,))
    ((axis, masses),) = fit_references(OWN, singles, tables)
    assert (axis.feature.name, axis.size) == (IN_DEGREE.name, len(RATE_EDGES) - 1)
    assert masses.shape == (ACTIVITY.size, axis.size)
    assert masses.sum(axis=1) == pytest.approx(singles.counts[2])


# -- single codes and coarse bins ------------------------------------------------------------------------------------


def with_hub() -> Candidates:
    axes = (Axis(AGE, np.array([0, 0, 1, 1])), doubling(FANOUT), doubling(ACTIVITY))
    masses = tuple(np.ones(axis.size) for axis in axes)
    return Candidates(axes=axes, masses=masses, own=3, strata=1, deviation=1.0, hub=2, linked=(1,))


def test_what_is_linked_comes_in_single_codes_and_the_rest_in_bins() -> None:
    coarse = with_hub()
    fine = refined(coarse)
    assert [axis.size for axis in fine.axes] == [2, FANOUT.size, ACTIVITY.size]
    assert all(axis.whole for axis in fine.axes[1:])
    assert [coarse.bins(place) for place in range(3)] == [2, FANOUT.size, ACTIVITY.size]


def test_a_table_in_bins_is_expanded_to_codes() -> None:
    coarse = with_hub()
    fine = refined(coarse)
    rng = np.random.default_rng(0)
    margins = [rng.random(axis.size) for axis in fine.axes]
    masses = rng.random((coarse.axes[2].size, 2))
    found = expanded(masses, (2, 0), coarse, fine, margins)
    assert found.shape == (ACTIVITY.size, 2)
    grouped = np.zeros_like(masses)
    np.add.at(grouped, coarse.axes[2].bins, found)
    assert grouped == pytest.approx(masses)
    last = coarse.axes[2].bins == coarse.axes[2].size - 1
    shares = margins[2][last] / margins[2][last].sum()
    assert found[last, 0] / found[last, 0].sum() == pytest.approx(shares)


def test_without_choices_only_what_is_linked_depends_on_the_hub() -> None:
    found = independent(with_hub())
    assert (found.order, found.parents, found.choices) == ((2, 1), {1: (2,)}, 0)
    assert independent(replace(with_hub(), hub=None, linked=())).order == ()
