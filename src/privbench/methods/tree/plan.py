"""Who gets how much: every table's columns, budget and settings, worked out before anything is spent.

A function of public numbers alone, so that it can be shown before a fit and is the same for all neighbours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, log2, sqrt

from privbench.methods.tree.columns import first_features, given_features, hinted_features, own_features
from privbench.methods.tree.settings import CHOICES, LEAST_FOR_PAIRS, TreeSettings
from privbench.privacy.calibrate import Noise, noise_of
from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.facts import Facts
from privbench.privacy.features import Feature

STEPS = 2**48
PLENTY = 2500
"""About the r at which half of a table's budget goes to single columns."""
PER_CHOICE = 40.0
"""Entities per unit of noise that each choice of a pair needs: with fewer, fewer pairs are looked for."""
GAUSSIAN_PER_CHOICE = 8.0
"""The same with a delta: choices and tables of pairs cost less there, the more of them there are."""
GAUSSIAN_PARENTS = 6
"""The most parents of a column with a delta."""
UNORDERED_BINS = 96
"""Columns without order have up to this many bins: a code that is heavy enough to stand alone should."""
LIGHTEST_BIN = 4.0
"""A bin weighs at least this many standard deviations of the noise of a pair's cell."""
MOST_NOISE = 3000.0
"""With more noise than this, in entities, the smallest queries of pairs could not be drawn, so there are none."""
FEWEST_CHOICES = 5
"""No pairs are looked for if fewer than this are affordable, or than there are further columns: all of the budget then
serves single columns."""
MANY_COLUMNS = 12
"""With fewer columns than this a larger share goes to choices: what each of them needs does not depend on columns. From
this on, noise counts less against pairs."""
MOST_CHOICES = 3.0
"""So many times the usual share at most."""
HINTED_SHARE = 0.3
"""Share of the budget for the pairs that the spec names, where there is too little to choose any."""
TOTALS_SHARE = Fraction(15, 100)
"""The largest part of the budget that goes to counting the rows of all tables."""
TOTAL_SHARE = Fraction(3, 100)
"""The largest part for one table."""
UNOWNED_SHARE = Fraction(1, 5)
"""The largest part of a table's budget that goes to counting rows without owner."""
UNOWNED_ENOUGH = Fraction(100)
"""Budget times entities that is enough to know their number well."""
UNOWNED_LEAST = Fraction(1, 2**18)
"""Never less than this, however many entities: noise must stay small enough to be drawn."""


def divided(amount: Fraction, weights: Sequence[float]) -> list[Fraction]:
    """Parts of an amount in proportion to weights, rounded down.

    >>> [str(part) for part in divided(Fraction(1), [1, 3])]
    ['1/4', '3/4']
    """
    exact = [Fraction(weight) for weight in weights]
    total = sum(exact)
    return [amount * Fraction(floor(weight / total * STEPS), STEPS) for weight in exact]


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """How one table is learnt."""

    parents: int
    """The most parents of a column."""
    bins: int
    """About the most bins of an ordered column in a table of pairs."""
    unordered_bins: int
    """The same of a column without order."""
    pairs: int
    """The most pairs that are chosen; with none, and none hinted, columns are independent."""
    single_share: float
    """Share of the budget for histograms of single columns."""
    choice_share: float
    """Share of the budget for the choice of pairs; what both leave is for tables of pairs."""
    hinted: int = 0
    """Pairs that the spec names and that are measured without a choice, as far as they fit together."""

    staged: bool = False
    """Whether first pairs are measured before further ones are chosen, and these by what the first ones leave open."""
    noise_weight: float = 1.0
    """How much of what noise alone makes of a table counts against a pair when it is chosen."""
    lightest_bin: float = 4.0
    """A bin weighs at least this many standard deviations of the noise of a pair's cell."""

    @property
    def only_hinted(self) -> bool:
        """Whether no pairs are measured but those that the spec names."""
        return self.hinted > 0 and not self.pairs


def plan_table(
    entities: float,
    noise: float,
    *,
    columns: int,
    given: int,
    parents: int = 0,
    bins: int = 0,
    single_share: float = 0.0,
    choice_share: float = 0.0,
    hinted: int = 0,
    gaussian: bool = False,
) -> TablePlan:
    """Settings for a table with these numbers of own and given columns, and that noise per column; 0 means automatic.

    `hinted` pairs are named by the spec. Where there is too little budget for choices they are measured nevertheless.

    >>> plan = plan_table(48_842, 8.75, columns=14, given=0)
    >>> plan.parents, plan.bins, plan.pairs, round(plan.single_share, 2)
    (4, 41, 46, 0.42)
    >>> plan_table(1000, 100, columns=14, given=0).pairs
    0
    >>> plan = plan_table(1000, 100, columns=14, given=0, hinted=2)
    >>> plan.pairs, plan.hinted, plan.single_share, plan.choice_share
    (0, 2, 0.7, 0.0)
    """
    r = max(entities / noise, 1e-3)
    hinted = hinted if single_share < 1 and noise * max(hinted / columns, 1) <= MOST_NOISE else 0
    beside_hinted = single_share or 1 - HINTED_SHARE
    parents = parents or _parents(r, gaussian=gaussian)
    choice_share = choice_share or CHOICES * _clip(MANY_COLUMNS / columns, 1, MOST_CHOICES)
    single_share = single_share or min(_single_share(r, gaussian=gaussian), 1 - LEAST_FOR_PAIRS - choice_share)
    affordable = int(r / per_choice(gaussian=gaussian)) if noise <= MOST_NOISE else 0
    enough = affordable >= min(FEWEST_CHOICES, max(columns - 1, 1))
    useful = min(most_choices(columns, given, parents), _most_pairs(r, columns, gaussian=gaussian))
    pairs = min(useful, affordable) if enough else 0
    if not pairs or single_share == 1:
        pairs, single_share = 0, beside_hinted if hinted else 1.0
    automatic = int(_clip(round(40 * (r / 5000) ** (1 / 3)), 12, 96))
    return TablePlan(
        parents=parents,
        bins=bins or automatic,
        unordered_bins=bins or max(automatic, UNORDERED_BINS),
        pairs=pairs,
        single_share=single_share,
        choice_share=choice_share if pairs else 0.0,
        hinted=hinted,
        staged=gaussian and pairs > 0,
        noise_weight=_noise_weight(pairs, columns, gaussian=gaussian),
        lightest_bin=LIGHTEST_BIN * (sqrt(min(1.0, 1.5 * columns / max(pairs, columns))) if gaussian else 1.0),
    )


def per_choice(*, gaussian: bool) -> float:
    """Entities per unit of noise that each choice of a pair needs."""
    return GAUSSIAN_PER_CHOICE if gaussian else PER_CHOICE


def _single_share(r: float, *, gaussian: bool) -> float:
    doublings = log2(PLENTY / r)
    if gaussian:
        return _clip(0.30 + (0.08 if doublings > 0 else 0.02) * doublings, 0.2, 0.75)
    return _clip(0.45 + (0.09 if doublings > 0 else 0.03) * doublings, 0.3, 1.0)


def _most_pairs(r: float, columns: int, *, gaussian: bool) -> int:
    """The most pairs that are of use; at smaller budgets the noise of each is not worth more."""
    if gaussian:
        return 4 * columns - 1
    return int(columns - 1 + _clip(log2(r / 1000), 0.5, 3.0) * columns)


def _noise_weight(pairs: int, columns: int, *, gaussian: bool) -> float:
    """Where many columns can be connected, a pair too many costs less than one that is missed."""
    if gaussian:
        return 0.6
    return 0.3 if pairs >= columns - 1 and columns >= MANY_COLUMNS else 1.0


def most_choices(columns: int, given: int, parents: int) -> int:
    """The most choices that a structure takes: as many as it can have pairs.

    >>> most_choices(4, 0, 2), most_choices(4, 3, 2)
    (5, 8)
    """
    return columns * parents if given else sum(min(place, parents) for place in range(1, columns))


def _parents(r: float, *, gaussian: bool) -> int:
    return GAUSSIAN_PARENTS if gaussian else int(_clip(1 + floor(log2(r / 600)), 1, 4))


def _clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTable:
    """A table to be learnt: its own and given columns, what it may spend, and how."""

    table: str
    own: tuple[Feature, ...]
    given: tuple[Feature, ...]
    unowned: Fraction
    """To count rows without owner; 0 where there can be none."""
    total: Fraction
    """To count all rows, where that is worth it; else it is for everything else, too."""
    amount: Fraction
    """For everything else."""
    noise: Noise
    """Of each count, if all columns shared the amount evenly."""
    settings: TablePlan
    strata: bool
    """Whether strata may be used."""
    firsts: tuple[Feature, ...] = ()
    """Columns of the first row of the same owner, each given to the same column alone."""
    hinted: tuple[tuple[str, str], ...] = ()
    """Columns that the spec says depend on each other, by name."""


def plan_database(
    facts: Facts, *, entities: float, budget: Fraction, measure: PrivacyMeasure, settings: TreeSettings
) -> dict[str, PlannedTable]:
    """Plan all tables, in owner order, for about that many entities; tables without columns are left out."""
    own = {table: own_features(facts, table) for table in facts.tables}
    totals = total_amounts(facts, budget=budget)
    alone = unowned_alone(facts, entities=entities, budget=budget)
    amounts = _amounts(facts, own, budget - sum(alone.values()) - sum(totals.values()))
    return {
        table: replace(
            _planned(facts, table, own, amount, entities=entities, measure=measure, settings=settings),
            total=totals.get(table, Fraction(0)),
        )
        for table, amount in amounts.items()
    }


def total_amounts(facts: Facts, *, budget: Fraction) -> dict[str, Fraction]:
    """What may count the rows of each owned table, where that is private and its owners do not tell it anyway.

    Of entities that have at most one row the share that has one tells; of other owners it is that of entities.
    """
    owned = [(t, link) for t in facts.tables if (link := facts.owner_link(t)) and facts.tables[t].rows is None]
    tables = [table for table, link in owned if not link.unique or link.target != facts.entity]
    return {table: budget * min(TOTALS_SHARE / len(tables), TOTAL_SHARE) for table in tables}


def unowned_alone(facts: Facts, *, entities: float, budget: Fraction) -> dict[str, Fraction]:
    """What counts the rows without owner of tables that have no column to be planned for: keys alone."""
    tables = [t for t in facts.tables if may_lack_owner(facts, t) and not own_features(facts, t)]
    return {table: min(budget * UNOWNED_SHARE / len(facts.tables), _unowned_enough(entities)) for table in tables}


def may_lack_owner(facts: Facts, table: str) -> bool:
    """Whether a table may have rows without owner, which are counted then."""
    link = facts.owner_link(table)
    return link is not None and (link.nullable or facts.orphans)


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


def planned_for(plan: PlannedTable, mass: float, settings: TreeSettings) -> PlannedTable:
    """The plan of a table of which so many entities have turned out to count."""
    hinted = len(plan.hinted)
    return replace(plan, settings=_settings(plan.own, plan.given, plan.noise, mass, settings, hinted=hinted))


def _settings(
    own: Sequence[Feature],
    given: Sequence[Feature],
    noise: Noise,
    entities: float,
    settings: TreeSettings,
    *,
    hinted: int,
) -> TablePlan:
    return plan_table(
        entities,
        noise.scale,
        columns=len(own),
        given=len(given),
        parents=settings.parents,
        bins=settings.bins,
        single_share=float(settings.single_share),
        choice_share=float(settings.choice_share),
        hinted=hinted,
        gaussian=noise.gaussian,
    )


def _planned(
    facts: Facts,
    table: str,
    own: Mapping[str, tuple[Feature, ...]],
    amount: Fraction,
    *,
    entities: float,
    measure: PrivacyMeasure,
    settings: TreeSettings,
) -> PlannedTable:
    unowned = min(amount * UNOWNED_SHARE, _unowned_enough(entities)) if may_lack_owner(facts, table) else Fraction(0)
    amount -= unowned
    columns, given = own[table], given_features(facts, table, own)
    firsts = first_features(facts, table, columns) if settings.siblings else ()
    noise = noise_of(measure, amount / len(columns))
    hinted = hinted_features(facts, table, (*columns, *given))
    return PlannedTable(
        table=table,
        own=columns,
        given=given,
        unowned=unowned,
        total=Fraction(0),
        amount=amount,
        noise=noise,
        settings=_settings(columns, given, noise, entities, settings, hinted=len(hinted)),
        strata=settings.strata,
        firsts=firsts,
        hinted=hinted,
    )
