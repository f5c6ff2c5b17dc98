"""Settings of one table, worked out from public numbers: how many noise units its entities are worth.

`r` is the number of entities over the noise that each column would have if the budget were split evenly. Little of it:
few parents, few bins, more for single columns. Much: more parents, finer bins, more for pairs.
"""

from dataclasses import dataclass
from math import floor, log2

PLENTY = 2500
"""About the r at which half of a table's budget goes to single columns."""
CHOICES = 0.05
"""Share of the budget for choosing pairs."""
LEAST_FOR_PAIRS = 0.1
"""Share of the budget that tables of pairs have at least, if there are any."""
PER_CHOICE = 40.0
"""So many noise units are needed for each choice of a pair: with few, few pairs are looked for,"""
MOST_NOISE = 3000.0
"""With more noise than this, in entities, the smallest parts of a budget for pairs could not be drawn,"""
FEWEST_CHOICES = 5
"""and none if that would be fewer than this: all of the budget then serves single columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """How one table is learnt."""

    parents: int
    """The most parents of a column."""
    bins: int
    """About the most bins of a column in a table of pairs."""
    pairs: int
    """The most pairs that are chosen; with none, columns are independent."""
    single_share: float
    """Share of the budget for histograms of single columns,"""
    choice_share: float
    """and for the choice of pairs; the rest is for tables of pairs."""


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
) -> TablePlan:
    """Settings for a table of so many own and given columns, with that noise per column; 0 means automatic.

    >>> plan = plan_table(48_842, 8.75, columns=14, given=0)
    >>> plan.parents, plan.bins, plan.pairs, round(plan.single_share, 2)
    (4, 41, 46, 0.42)
    >>> plan_table(1000, 100, columns=14, given=0).pairs
    0
    """
    r = max(entities / noise, 1e-3)
    doublings = log2(PLENTY / r)
    choice_share = choice_share or CHOICES
    most_single = 1 - LEAST_FOR_PAIRS - choice_share
    single_share = single_share or _clip(0.45 + (0.09 if doublings > 0 else 0.03) * doublings, 0.3, most_single)
    affordable = int(r / PER_CHOICE) if noise <= MOST_NOISE else 0
    pairs = min(most_choices(columns, given, parents or _parents(r)), affordable) if affordable >= FEWEST_CHOICES else 0
    if not pairs or single_share == 1:
        pairs, single_share = 0, 1.0
    return TablePlan(
        parents=parents or _parents(r),
        bins=bins or int(_clip(round(40 * (r / 5000) ** (1 / 3)), 12, 96)),
        pairs=pairs,
        single_share=single_share,
        choice_share=choice_share if pairs else 0.0,
    )


def most_choices(columns: int, given: int, parents: int) -> int:
    """The most choices that a structure takes: as many as it can have pairs.

    >>> most_choices(4, 0, 2), most_choices(4, 3, 2)
    (5, 8)
    """
    return columns * parents if given else sum(min(place, parents) for place in range(1, columns))


def _parents(r: float) -> int:
    return int(_clip(1 + floor(log2(r / 600)), 1, 4))


def _clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
