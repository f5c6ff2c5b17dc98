"""Who gets how much: every table's columns, budget and settings, worked out before anything is spent.

A function of public numbers alone, so that it can be shown before a fit and is the same for all neighbours.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from privbench.methods.tree.automatic import TablePlan, plan_table
from privbench.methods.tree.columns import first_features, given_features, own_features
from privbench.methods.tree.settings import TreeSettings
from privbench.methods.tree.shares import divided
from privbench.privacy.events import UNITS, Currency
from privbench.privacy.facts import Facts
from privbench.privacy.features import Feature
from privbench.privacy.price import Noise, noise_of

UNOWNED_SHARE = Fraction(1, 5)
"""The largest part of a table's budget that goes to counting rows without owner."""
UNOWNED_ENOUGH = Fraction(100)
"""Budget times entities that is enough to know their number well."""
UNOWNED_LEAST = Fraction(1, 2**18)
"""Never less than this, however many entities: noise must stay small enough to be drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTable:
    """A table to be learnt: its own and given columns, what it may spend, and how."""

    table: str
    own: tuple[Feature, ...]
    given: tuple[Feature, ...]
    unowned: Fraction
    """To count rows without owner; 0 where there can be none."""
    amount: Fraction
    """For everything else."""
    noise: Noise
    """Of each count, if all columns shared the amount evenly."""
    settings: TablePlan
    strata: bool
    """Whether strata may be used."""
    firsts: tuple[Feature, ...] = ()
    """Columns of the first row of the same owner, each given to the same column alone."""


def plan_database(
    facts: Facts, *, entities: float, budget: Fraction, currency: Currency, settings: TreeSettings
) -> dict[str, PlannedTable]:
    """Plan all tables of a database of about so many entities, in owner order; tables without columns are left out."""
    own = {table: own_features(facts, table) for table in facts.tables}
    amounts = _amounts(facts, own, budget - sum(unowned_alone(facts, entities=entities, budget=budget).values()))
    return {
        table: _planned(facts, table, own, amount, entities=entities, currency=currency, settings=settings)
        for table, amount in amounts.items()
    }


def unowned_alone(facts: Facts, *, entities: float, budget: Fraction) -> dict[str, Fraction]:
    """What counts the rows without owner of tables that have no column to be planned for: keys alone."""
    tables = [t for t in facts.tables if _may_lack_owner(facts, t) and not own_features(facts, t)]
    return {table: min(budget * UNOWNED_SHARE / len(facts.tables), _unowned_enough(entities)) for table in tables}


def _may_lack_owner(facts: Facts, table: str) -> bool:
    link = facts.owner_link(table)
    return link is not None and (link.nullable or facts.strays)


def _unowned_enough(entities: float) -> Fraction:
    return max(UNOWNED_ENOUGH / max(round(entities), 1), UNOWNED_LEAST)


def _amounts(facts: Facts, own: Mapping[str, tuple[Feature, ...]], budget: Fraction) -> dict[str, Fraction]:
    """The budget of each table, by the root of its number of columns and what the spec says of it."""
    tables = [table for table, features in own.items() if features]
    return dict(
        zip(
            tables,
            divided(budget, [sqrt(len(own[table])) * facts.tables[table].weight for table in tables]),
            strict=True,
        )
    )


def _planned(
    facts: Facts,
    table: str,
    own: Mapping[str, tuple[Feature, ...]],
    amount: Fraction,
    *,
    entities: float,
    currency: Currency,
    settings: TreeSettings,
) -> PlannedTable:
    unowned = min(amount * UNOWNED_SHARE, _unowned_enough(entities)) if _may_lack_owner(facts, table) else Fraction(0)
    amount -= unowned
    columns, given = own[table], given_features(facts, table, own)
    firsts = first_features(facts, table, columns) if settings.siblings else ()
    noise = noise_of(currency, amount / len(columns), sensitivity=UNITS, additive=True)
    plan = plan_table(
        entities,
        noise.scale,
        columns=len(columns),
        given=len(given),
        parents=settings.parents,
        bins=settings.bins,
        single_share=float(settings.single_share),
        choice_share=float(settings.choice_share),
    )
    return PlannedTable(
        table=table,
        own=columns,
        given=given,
        unowned=unowned,
        amount=amount,
        noise=noise,
        settings=plan,
        strata=settings.strata,
        firsts=firsts,
    )
