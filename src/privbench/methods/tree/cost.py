"""About how long a fit takes and how much memory it needs, from numbers of rows and columns. Rough.

Time goes into reading, into counting tables of pairs (every pair that may be chosen is counted once), and into fitting
each column to its parents, which depends on the pairs chosen. The constants were set by hand to one run on each of
six made databases of 200,000 to 1.2 million rows: time came within a factor of 2 there, memory within 20 %. They were
not checked on others.
"""

from collections.abc import Callable, Iterable
from statistics import median

from privbench.methods.tree.plan import PlannedTable
from privbench.methods.tree.structure import MOST_CELLS

START = 0.1
"""Seconds for everything that does not grow."""
READ = 60e-9
"""Seconds for each value that is read from Parquet and coded; other formats take longer."""
COUNT = 8e-9
"""Seconds for each row of a pair of columns that is counted."""
FIT = 0.6e-6
"""Seconds for each combination of the bins of a column and its parents."""
BASE = 200.0
"""Megabytes of an empty fit."""
PER_VALUE = 7.0
"""Bytes for each value: its code, its bin, and what reading holds at once."""
PER_ROW = 100.0
"""Bytes for the keys of each row, its entity and its weight."""

Rows = Callable[[str], int]
"""The rows of a table by its name."""


def seconds(plans: Iterable[PlannedTable], rows: Rows) -> float:
    """CPU-seconds of a fit."""
    return START + sum(
        rows(plan.table) * (READ * len(plan.own) + COUNT * pairs_counted(plan)) + FIT * cells_fitted(plan)
        for plan in plans
    )


def megabytes(plans: Iterable[PlannedTable], rows: Rows) -> float:
    """Memory at its highest."""
    return (
        BASE
        + sum(rows(p.table) * (PER_ROW + PER_VALUE * (len(p.own) + len(p.given) + len(p.firsts))) for p in plans) / 1e6
    )


def pairs_counted(plan: PlannedTable) -> int:
    """How many pairs of columns may be chosen, if any."""
    own, given = len(plan.own), len(plan.given)
    return own * (own - 1) // 2 + own * given + len(plan.firsts) if plan.settings.pairs else 0


def cells_fitted(plan: PlannedTable) -> float:
    """How many combinations of bins all columns with their parents have, if any has a parent."""
    typical = median(min(feature.size, plan.settings.bins) for feature in plan.own)
    each = min(typical ** (plan.settings.parents + 1), MOST_CELLS)
    return len(plan.own) * float(each) if plan.settings.pairs else 0.0
