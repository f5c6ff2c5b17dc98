"""How far dates and times are from others, and how close together. Exact, for the engine alone.

The base of a row is a value of the row itself or of a row that it belongs to, so that a difference is a function of
the rows of the row's own entity (docs/proofs/tree.md). Days are floats: what matters is that the same rows always give
the same days, and that no value makes this fail.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.grid import one_array
from privbench.privacy.agreement import AGREES, DIFFERS, IDLE
from privbench.privacy.exact import Integers
from privbench.privacy.windows import DATES, NEAR, RATIO, STEP

Days = NDArray[np.float64]
"""Days since 1970, or between two dates; NaN where there is none."""
_PER_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}


def days_of(values: pa.Array) -> Days:
    """Dates or times in days.

    >>> days_of(pa.array([0, 43_200, None], pa.timestamp("s"))).tolist()
    [0.0, 0.5, nan]
    """
    there = one_array(values.is_valid()).to_numpy(zero_copy_only=False)
    whole, per_day = (pa.int32(), 1) if pa.types.is_date32(values.type) else (pa.int64(), _PER_DAY[values.type.unit])
    numbers = one_array(values).view(whole).fill_null(0).to_numpy(zero_copy_only=False)
    return np.where(there, numbers / per_day, np.nan)


def within(differences: Days, days: int) -> NDArray[np.uint8]:
    """Whether differences are below so many days; those that are missing are idle.

    >>> within(np.array([0.5, -8.0, np.nan]), 8).tolist()
    [0, 1, 2]
    """
    codes = np.where(np.isnan(differences), IDLE, np.where(np.abs(differences) < days, AGREES, DIFFERS))
    return codes.astype(np.uint8)


def near_cells(differences: Days) -> Integers:
    """The first of NEAR that differences are below, len(NEAR) for none; -1 for those that are missing.

    >>> near_cells(np.array([0.5, -8.0, 1e9, np.nan])).tolist()
    [0, 1, 11, -1]
    """
    cells: Integers = np.where(np.isnan(differences), -1, np.searchsorted(NEAR, np.abs(differences), side="right"))
    return cells


def near(cells: Integers, days: int) -> int:
    """The weight of differences below so many days, from that by `near_cells`."""
    return int(cells[: NEAR.index(days) + 1].sum())


def date_cells(dates: Days) -> Integers:
    """Cells of STEP days that dates lie in; -1 for those that lie in none.

    >>> date_cells(np.array([-25567.0, -25551.0, 1e6, np.nan])).tolist()
    [0, 1, -1, -1]
    """
    known = (dates >= DATES[0]) & (dates < DATES[1])
    cells: Integers = np.where(known, (np.where(known, dates, 0) - DATES[0]) // STEP, -1).astype(np.int64)
    return cells


DATE_CELLS = -(-(DATES[1] - DATES[0]) // STEP)
"""How many cells of dates there are."""


def most_in_a_window(cells: Integers, days: int) -> int:
    """The largest weight of dates in a window of RATIO times so many days, from that by `date_cells`.

    Each window has the sum of its cells. If an entity adds at most its weight to the sum of all cells, it adds at most
    that to every window, hence to the largest, and lowers none.

    >>> cells = np.array([5, 0, 7, 1])
    >>> most_in_a_window(cells, 8), most_in_a_window(cells, 16)
    (8, 13)
    """
    many, begins = RATIO * days // STEP, RATIO * days // (2 * STEP)
    sums = np.concatenate([[0], np.cumsum(cells)])
    starts = np.arange(0, len(cells), begins)
    return int((sums[np.minimum(starts + many, len(cells))] - sums[starts]).max())
