"""Which rows of a hidden list can have rows of a member: those that keep the rules which they decide alone.

A list has the seasons of all tables that it is a list of; salaries begin later than batting. How many rows of a member
come with a list row is drawn by columns in bins, so some are drawn for seasons that the member does not have: these go
to the next seasons that it has and that have none, so that no row is lost.
"""

from collections.abc import Callable, Mapping
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.rules.row_rules import RowRules
from privbench.schema.lists import rules_on_lists
from privbench.schema.tables import Table
from privbench.schema.unit import Protection

Numbers = NDArray[np.int64]
Above = Callable[[str, str], pa.Array]


class MemberRules:
    """The rules of a list's members that rows of the list decide. A context manager: it holds connections."""

    def __init__(self, protection: Protection, table: Table) -> None:
        rules = {member: rules_on_lists(protection, member) for member in table.list_of}
        self._rules = {member: RowRules.of(table, protection.schema, those) for member, those in rules.items() if those}

    @property
    def columns(self) -> set[str]:
        """The columns of the list that the rules name."""
        return {name.column for rules in self._rules.values() for name in rules.columns if name.table is None}

    def able(self, values: Mapping[str, pa.Array], above: Above) -> dict[str, NDArray[np.bool_]]:
        """By member: which rows of the list can have rows of it. `above` gives a column of the rows above."""
        able = {}
        for member, rules in self._rules.items():
            known = {
                name: values[name.column] if name.table is None else above(name.table, name.column)
                for name in rules.columns
            }
            able[member] = np.logical_not(rules.broken(known).any(axis=0))
        return able

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for rules in self._rules.values():
            rules.close()


def moved_to(able: NDArray[np.bool_], numbers: Numbers) -> Numbers:
    """Numbers of rows with those of owners that can have none moved to the next ones that can and have none.

    Where there are too few of these, the rest is left out: sizes are met by scaling all numbers.

    >>> able = np.array([False, True, True, False, True, True])
    >>> moved_to(able, np.array([2, 1, 0, 3, 0, 0])).tolist()
    [0, 1, 2, 0, 3, 0]
    """
    lost, free = np.flatnonzero(~able & (numbers > 0)), np.flatnonzero(able & (numbers == 0))
    lost = lost[: len(free)]
    order = np.arange(len(lost))
    after = np.maximum.accumulate(np.searchsorted(free, lost) - order) + order if len(lost) else order
    moved = np.where(able, numbers, 0)
    moved[free[np.minimum(after, len(free) - len(lost) + order)]] = numbers[lost]
    return moved
