"""What a receipt of method `tree` charges must be what the plan says of its budget, so that no event can be left out.

Each table with columns spends its part of what there is for tables, to the last step of the grid. How much there is the
first queries tell: the number of entities costs a fixed share of it, or, where that number is public, the first
histograms of the entity table do. Who takes an event out has to change what all others are said to cost.
"""

from collections.abc import Iterator
from fractions import Fraction

from privbench.methods.method import Charges
from privbench.methods.tree.entities import COUNT_SCOPE, COUNT_SHARE
from privbench.methods.tree.hub import fanouts_first, hub_place
from privbench.methods.tree.plan import PlannedTable, divided, plan_database, unowned_alone
from privbench.methods.tree.settings import TreeSettings
from privbench.methods.tree.single import column_parts
from privbench.privacy.facts import Facts
from privbench.privacy.features import whole_axis
from privbench.privacy.queries import Histogram

SOME_ENTITIES = 1e6
"""Stands for a number that is private, where amounts do not depend on it."""


def table_label(table: str) -> str:
    """How the ledger calls the scope in which a table is learnt."""
    return f"table {table}"


def mischarged(facts: Facts, settings: TreeSettings, charges: Charges) -> Iterator[str]:
    """First queries, and tables, that cost something else than the plan gives them."""
    labels = {table_label(table) for table in facts.tables}
    left = charges.budget - sum(charges.total(scope) for scope in charges.scopes if scope not in labels)
    known, counted = facts.tables[facts.entity].rows, charges.total(COUNT_SCOPE)
    entities = SOME_ENTITIES if known is None else float(known)
    plans = plan_database(facts, entities=entities, budget=left, measure=charges.measure, settings=settings)
    if known is None and not charges.agree(counted, (left + counted) * COUNT_SHARE):
        yield f"{facts.entity}: the number of entities costs something else than it does of this budget"
    if known is not None and facts.entity in plans:
        yield from _first_mischarged(plans[facts.entity], charges)
    if known is None and unowned_alone(facts, entities=entities, budget=left):
        return  # what counts the rows of tables of keys alone, and so what is left for others, depends on that number
    for table, plan in plans.items():
        charged, planned = charges.total(table_label(table)), plan.amount + plan.unowned + plan.total
        if not charges.agree(charged, planned, events=len(charges.scopes.get(table_label(table), ()))):
            yield (
                f"{table}: its events cost {float(charged):.9g} in all, but the plan gives it {float(planned):.9g} of "
                "this budget: events are missing, or they are those of another fit"
            )


def _first_mischarged(plan: PlannedTable, charges: Charges) -> Iterator[str]:
    """The histograms of the entity table that come first: of fanouts where there may be a hub, else of all columns."""
    features, paired = plan.own, plan.settings.pairs > 0
    amount = plan.amount * Fraction(plan.settings.single_share)
    if hub_place(plan.own) is not None:
        features, amount = fanouts_first(plan.own, amount, paired=paired)
    events = charges.scopes.get(table_label(plan.table), ())
    for feature, part in zip(features, divided(amount, column_parts(features, paired=paired)), strict=True):
        query = Histogram(table=plan.table, axes=(whole_axis(feature),)).to_json()
        if not any(event.query == query and charges.agree(event.amount, part) for event in events):
            yield f"{plan.table}: no histogram of {feature.name} costs what the first one does of this budget"
