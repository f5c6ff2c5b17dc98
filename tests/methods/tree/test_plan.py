"""Who gets how much: parts never exceed the whole, and more entities or budget never buy less."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.methods.tree.columns import given_features, own_features
from privbench.methods.tree.plan import STEPS, divided, plan_database, plan_table
from privbench.methods.tree.settings import TreeSettings
from privbench.privacy.calibrate import drawable
from privbench.privacy.events import PrivacyMeasure
from privbench.schema.unit import Neighbours

from .schemas import OWNER, REFERENCE, SCHEMAS, Schema

AMOUNTS = st.fractions(min_value=Fraction(1, 10**9), max_value=10**4)
WEIGHTS = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40)


@given(AMOUNTS, WEIGHTS)
def test_parts_never_exceed_the_whole_and_nearly_are_it(amount: Fraction, weights: list[float]) -> None:
    parts = divided(amount, weights)
    assert sum(parts) <= amount
    assert sum(parts) >= amount * (1 - Fraction(len(weights), STEPS))
    assert all(part >= 0 for part in parts)


@given(AMOUNTS, WEIGHTS)
def test_a_heavier_part_gets_no_less(amount: Fraction, weights: list[float]) -> None:
    parts = divided(amount, weights)
    ordered = sorted(zip(weights, parts, strict=True))
    assert all(a[1] <= b[1] for a, b in pairwise(ordered))


@given(st.floats(0, 1e9), st.floats(1e-3, 1e9), st.integers(1, 60), st.integers(0, 40))
def test_shares_of_a_plan_add_up_to_no_more_than_all(entities: float, noise: float, columns: int, many: int) -> None:
    plan = plan_table(entities, noise, columns=columns, given=many)
    assert 0 < plan.single_share <= 1
    assert plan.single_share + plan.choice_share <= 1
    assert (plan.pairs == 0) == (plan.single_share == 1) == (plan.choice_share == 0)
    assert plan.parents >= 1
    assert plan.bins >= 2


@pytest.mark.parametrize("given_columns", [0, 12])
def test_more_entities_never_buy_less(given_columns: int) -> None:
    plans = [plan_table(2.0**power, 10.0, columns=14, given=given_columns) for power in range(4, 30)]
    for less, more in pairwise(plans):
        assert less.parents <= more.parents
        assert less.bins <= more.bins
        assert less.pairs <= more.pairs
        assert less.single_share >= more.single_share
    assert plans[0].pairs == 0
    assert plans[-1].parents == 4


@pytest.mark.parametrize("measure", PrivacyMeasure)
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_plan_spends_no_more_than_there_is(name: str, measure: PrivacyMeasure) -> None:
    schema = SCHEMAS[name]()
    neighbours = Neighbours.REPLACE if measure is PrivacyMeasure.RHO_REPLACE else Neighbours.ADD_REMOVE
    facts = schema.facts(neighbours)
    budget = Fraction(17, 10)
    plans = plan_database(facts, entities=1000.0, budget=budget, measure=measure, settings=TreeSettings())
    assert sum(plan.amount + plan.unowned for plan in plans.values()) <= budget
    for table, plan in plans.items():
        link = facts.owner_link(table)
        assert (plan.unowned > 0) == (link is not None and (link.nullable or facts.orphans))
        names = [feature.name for feature in (*plan.own, *plan.given)]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_is_given_of_a_row_is_never_more_than_its_own_entitys(name: str) -> None:
    """Counts of keys of other entities would cost three times as much in every pair with them."""
    facts = SCHEMAS[name]().facts(Neighbours.REPLACE)
    own = {table: own_features(facts, table) for table in facts.tables}
    for table in facts.tables:
        assert all(feature.sensitivity_factor == 1 for feature in given_features(facts, table, own))


def test_rows_without_owner_can_be_counted_among_any_number_of_entities() -> None:
    facts = SCHEMAS["unowned rows"]().facts(Neighbours.REPLACE)
    for entities in (1.0, 1e6, 1e9, 1e12):
        plans = plan_database(
            facts, entities=entities, budget=Fraction(1), measure=PrivacyMeasure.EPSILON, settings=TreeSettings()
        )
        assert drawable(PrivacyMeasure.EPSILON, plans["person"].unowned)


@pytest.mark.parametrize("name", ["#rank", "#size", "#owner kind", "#null person.work"])
def test_a_column_called_as_a_feature_is_shown_is_another_column(name: str) -> None:
    schema = Schema(
        columns={"home": {"kind": 4}, "person": {"age": 3, name: 3}},
        keys={"person": {"home": ("home", OWNER, False, False), "work": ("home", REFERENCE, True, False)}},
        rows={"home": 9, "person": 9},
    )
    plan = plan_database(
        schema.facts(Neighbours.REPLACE),
        entities=9.0,
        budget=Fraction(1),
        measure=PrivacyMeasure.EPSILON,
        settings=TreeSettings(),
    )["person"]
    names = [feature.name for feature in (*plan.own, *plan.given, *plan.firsts)]
    assert name in names
    assert len(set(names)) == len(names)
