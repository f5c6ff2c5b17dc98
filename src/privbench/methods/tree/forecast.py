"""What will be signal and what noise, before anything is spent: the plan of each table, and what follows from it.

A function of public numbers and guesses, so that it may be printed. All thresholds at which a fit counts as mostly
noise, or is refused, stand here.
"""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from math import ceil, pi, sqrt
from statistics import median, median_high

from privbench.errors import BudgetError
from privbench.methods.forecast import ColumnForecast, Forecast, Outlook, PairForecast, PlanInput, TableForecast
from privbench.methods.tree.entities import COUNT_SHARE
from privbench.methods.tree.hub import (
    beside_references,
    fanouts_first,
    hub_place,
    hub_share,
    is_reference,
    is_referenced,
    without_hub,
)
from privbench.methods.tree.plan import (
    PlannedTable,
    TablePlan,
    divided,
    per_choice,
    plan_database,
)
from privbench.methods.tree.settings import TreeSettings
from privbench.methods.tree.single import column_parts
from privbench.methods.tree.structure import MOST_CELLS
from privbench.methods.tree.weighed import features_noise
from privbench.privacy.calibrate import Noise, choice_noise
from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.features import Feature
from privbench.spn.feature_names import shown

START = 0.6
"""CPU-seconds of a fit for all that does not grow, loading libraries included: the fit of rows8-1e3 in bench/scale.py,
which measures the other costs, too."""
ROW = 80e-9
"""CPU-seconds for each row: its key is read, and it is put into its part. From the fits of rows8-1e7 and rows8-1e6."""
READ = 8e-9
"""CPU-seconds for each value that is read from Parquet and coded; other formats take longer. The same, and wide."""
COUNT = 1.5e-9
"""CPU-seconds for each row of a pair of columns that is counted. From the fit of wide."""
OWNED = 0.12e-6
"""CPU-seconds for each row that has an owner, which is looked up, and counted with it. From the fit of job."""
FIT = 0.06e-6
"""CPU-seconds for each combination of the bins of a column and its parents. From the fits of adult and wide."""
CLEAR = 4.0
"""A count stands out if it is this many standard deviations of its noise."""
FEWEST_CODES = 2
"""A column of which fewer codes can stand out is noise."""
MOST_NOISE = 0.5
"""A table of which more columns than this share are noise is mostly noise."""
LARGEST_NOISE = 2**14
"""Noise above this, in entities, could not be drawn for the smallest of a table's queries."""
LEAST_RATIO = 0.1
"""With fewer entities per unit of noise in the entity table, nothing can be learnt: a fit is refused."""
SURE_CHOICE = 3.0
"""A pair is chosen nearly always if its score is this many noise scales of the choice above that of no pair."""

Rows = Callable[[str], int]
"""The rows of a table by its name."""


def seconds(plans: Iterable[PlannedTable], entity: str, rows: Rows) -> float:
    """CPU-seconds of a fit."""
    return START + sum(rows(plan.table) * _row_seconds(plan, entity) + FIT * cells_fitted(plan) for plan in plans)


def _row_seconds(plan: PlannedTable, entity: str) -> float:
    """CPU-seconds for each row of a table."""
    return ROW + READ * len(plan.own) + COUNT * pairs_counted(plan) + (OWNED if plan.table != entity else 0.0)


def pairs_counted(plan: PlannedTable) -> int:
    """How many pairs of columns may be chosen, if any; else those that the spec names."""
    own, given = len(plan.own), len(plan.given)
    return own * (own - 1) // 2 + own * given + len(plan.firsts) if plan.settings.pairs else plan.settings.hinted


def cells_fitted(plan: PlannedTable) -> float:
    """How many combinations of bins all columns with their parents have, if any has a parent."""
    typical = median(min(feature.size, plan.settings.bins) for feature in plan.own)
    each = min(typical ** (plan.settings.parents + 1), MOST_CELLS)
    with_parents = len(plan.own) if plan.settings.pairs else min(plan.settings.hinted, len(plan.own))
    return with_parents * float(each)


def forecast(plan_input: PlanInput, settings: TreeSettings) -> Forecast:
    """Forecast a fit of a database of about the rows of the plan input."""
    facts, entities = plan_input.facts, plan_input.entities
    counted = facts.tables[facts.entity].rows is None
    budget = plan_input.budget * (1 - COUNT_SHARE) if counted else plan_input.budget
    plans = plan_database(facts, entities=float(entities), budget=budget, measure=plan_input.measure, settings=settings)
    tables = tuple(_table(plan, plan_input) for plan in plans.values())
    return Forecast(
        tables=tables,
        seconds=seconds(plans.values(), facts.entity, plan_input.rows_of),
        refusal=refusal(plans, facts.entity, entities),
    )


def refusal(plans: Mapping[str, PlannedTable], entity: str, entities: float) -> str | None:
    """Say why nothing could be learnt of the entities, if so; an empty database has nothing to be learnt."""
    plan = plans.get(entity)
    drowned = [name for name, other in plans.items() if other.noise.scale > LARGEST_NOISE]
    if drowned:
        return (
            f"too little budget: each count of {drowned[0]} would have noise of more than {LARGEST_NOISE:,} entities. "
            "Raise epsilon, or model fewer tables and columns (`drop: true`)."
        )
    if plan is None or entities < 1 or entities / plan.noise.scale >= LEAST_RATIO:
        return None
    enough = FEWEST_CODES * CLEAR * sqrt(plan.noise.variance)
    return (
        f"too little budget: the noise of every count of {entity} would be about {plan.noise.scale:,.0f}, and there "
        f"are {entities:,.0f} entities, so that nothing at all could be learnt. Even single columns take about "
        f"{enough:,.0f} entities, or an epsilon {enough / entities:,.0f} times as large; fewer tables and columns "
        "(`drop: true`) help too. `privbench fit --dry-run` shows what a budget buys."
    )


def check_plans(plans: Mapping[str, PlannedTable], entity: str, entities: float) -> None:
    """Refuse to spend anything where nothing could be learnt."""
    reason = refusal(plans, entity, entities)
    if reason is not None:
        raise BudgetError(reason)


def _table(plan: PlannedTable, plan_input: PlanInput) -> TableForecast:
    own, settings = plan.own, plan.settings
    entities = min(plan_input.entities, plan_input.rows_of(plan.table))
    ones = plan.amount * Fraction(settings.single_share)
    columns = _columns(plan, ones, plan_input.measure, entities, paired=settings.pairs > 0)
    all_single = _columns(plan, plan.amount, plan_input.measure, entities, paired=False)
    return TableForecast(
        table=plan.table,
        amount=plan.amount + plan.unowned + plan.total,
        entities=entities,
        given=tuple(shown(feature.name) for feature in (*plan.given, *plan.firsts)),
        ratio=entities / plan.noise.scale,
        settings={
            "parents": settings.parents,
            "bins": settings.bins,
            "pairs": settings.pairs,
            "hinted": settings.hinted,
            "single_share": settings.single_share,
            "choice_share": settings.choice_share,
        },
        columns=columns,
        pairs=_pairs(plan, plan_input.measure, entities) if settings.pairs or settings.hinted else None,
        outlook=_outlook(columns, settings),
        singles_from=ceil(FEWEST_CODES * median_high(column.stands_out for column in all_single)),
        pairs_from=ceil(per_choice(gaussian=plan.noise.gaussian) * plan.noise.scale * max(len(own) - 1, 1)),
    )


def _columns(
    plan: PlannedTable, amount: Fraction, measure: PrivacyMeasure, entities: float, *, paired: bool
) -> tuple[ColumnForecast, ...]:
    """All columns, if that amount is for them alone; `paired` if there is more, for pairs."""
    parts = _parts(plan, amount, paired=paired)
    return tuple(_column(feature, features_noise(measure, [feature], part), entities) for feature, part in parts)


def _parts(plan: PlannedTable, amount: Fraction, *, paired: bool) -> list[tuple[Feature, Fraction]]:
    """What each column gets of an amount for single columns: with a hub, if that is sure to pay, else without."""
    if not is_referenced(plan.own) or hub_place(plan.own) is None:
        own = without_hub(plan.own)
        return list(zip(own, divided(amount, column_parts(own, paired=paired)), strict=True))
    fanouts, spent = fanouts_first(plan.own, amount, paired=paired)
    rest = tuple(feature for feature in beside_references(plan.own) if feature not in fanouts)
    references = [feature for feature in plan.own if is_reference(feature)]
    share = hub_share(
        beside_references(plan.own), references, measured=len(rest), single_share=plan.settings.single_share
    )
    left = (plan.amount - spent) * (1 - share) * (amount / plan.amount)
    parts = [*divided(spent, column_parts(fanouts, paired=paired)), *divided(left, column_parts(rest, paired=paired))]
    return list(zip((*fanouts, *rest), parts, strict=True))


def _column(feature: Feature, noise: Noise, entities: float) -> ColumnForecast:
    deviation = sqrt(noise.variance)
    return ColumnForecast(
        column=shown(feature.name),
        codes=feature.size,
        noise=deviation,
        stands_out=CLEAR * deviation,
        visible=min(feature.size, int(entities / (CLEAR * deviation))),
    )


def _pairs(plan: PlannedTable, measure: PrivacyMeasure, entities: float) -> PairForecast:
    """Of two columns with a typical number of bins each, all bins alike."""
    settings = plan.settings
    ones, choosing = plan.amount * Fraction(settings.single_share), plan.amount * Fraction(settings.choice_share)
    most = settings.pairs + settings.hinted
    noise = features_noise(measure, plan.own[:1], (plan.amount - ones - choosing) / most)
    deviation = sqrt(noise.variance)
    finest = max(2, min(settings.bins, int(entities / (settings.lightest_bin * deviation))))
    bins = max(2, round(median(min(feature.size, finest) for feature in plan.own)))
    choice = SURE_CHOICE * choice_noise(measure, choosing / settings.pairs) if settings.pairs else 0.0
    return PairForecast(
        most=most,
        cells=bins**2,
        noise=deviation,
        dependence=_seen(bins**2, settings.noise_weight * deviation, choice, entities),
        least_dependence=_seen(4, settings.noise_weight * deviation, choice, entities),
    )


def _seen(cells: int, deviation: float, choice: float, entities: float) -> float:
    """The distance from independence at which a pair wins over no pair: above what noise makes of its cells."""
    noise = min(cells * sqrt(2 / pi) * deviation, entities)
    return min(1.0, (noise + choice) / (2 * max(entities, 1.0)))


def _outlook(columns: tuple[ColumnForecast, ...], settings: TablePlan) -> Outlook:
    noise = sum(column.visible < min(FEWEST_CODES, column.codes) for column in columns)
    if noise > MOST_NOISE * len(columns):
        return Outlook.NOISE
    if not settings.pairs:
        return Outlook.NAMED if settings.hinted else Outlook.SINGLES
    return Outlook.PAIRS if settings.pairs >= len(columns) - 1 else Outlook.STRONGEST
