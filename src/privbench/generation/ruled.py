"""Rows that keep the rules of their table: those that break one are drawn again from the network, as often as helps.

First the columns of broken rules get other values of the same bins, as long as that helps: a network that knows the
rule says in which bins it holds. Then whole rows are drawn again, given what their owners are like: that is the model,
given the rules. Where this does not end, only the columns of the rules that are still broken are, and then they are
copied from a row of the block that keeps these rules: its bins first, and its very values in the end. A row for which
none of it helps is left out.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.errors import SpecError
from privbench.generation.unique import replaced
from privbench.rules.row_rules import RowRules, joined
from privbench.schema.expression import ColumnName, Expression
from privbench.schema.tables import Schema, Table

ROUNDS = 6
"""How often rows are drawn again as a whole, and then only the columns of rules that are broken."""
INSIDE, WORTH_IT = 16, 0.05
"""How often columns get other values of the same bins, as long as that mends this share of the rows that are left."""
COPIES = 4
"""How often columns are copied from another row: a rule over rows above may hold there and not here."""

Places = NDArray[np.int64]
Values = dict[str, pa.Array]
Redraw = Callable[[Places, Collection[str] | None, Values], Values]
"""New values for the rows at these places, given those so far: of some columns, or of all that can be drawn again."""
Copy = Callable[[Places, Places, Collection[str], Values, Values | None], Values]
"""Values of some columns for the rows at the first places, given those so far, taken from the rows at the second.

The last are the values of these, if they are to be taken as they are.
"""


@dataclass(slots=True, kw_only=True)
class RuleCounts:
    """What it took to keep the rules of a table, in rows."""

    drawn_again: int = 0
    copied: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Rules that share columns, by their places, and the columns."""

    rules: list[int]
    columns: frozenset[str]


class KeptRules:
    """Keeps the rules of one table, block by block. It holds a connection until it is closed."""

    def __init__(self, table: Table, schema: Schema, *, rules: Sequence[Expression], drawn: Collection[str]) -> None:
        """`drawn` are the columns whose values can be drawn again."""
        self.counts = RuleCounts()
        self._rules = RowRules.of(table, schema, rules)
        self._groups = [
            _Group(rules=rules, columns=frozenset(names) & frozenset(drawn)) for rules, names in joined(rules)
        ]

    @property
    def columns(self) -> tuple[ColumnName, ...]:
        """The columns that the rules name."""
        return self._rules.columns

    def close(self) -> None:
        """Let go of the connection."""
        self._rules.close()

    def broken(self, values: Values, above: Mapping[ColumnName, pa.Array]) -> NDArray[np.bool_]:
        """Which rows break a rule, as they are."""
        return _Work(self._rules, values, above).rows_broken()

    def repaired(
        self,
        values: Values,
        above: Mapping[ColumnName, pa.Array],
        *,
        within: Redraw,
        redraw: Redraw,
        copy: Copy,
        rng: np.random.Generator,
    ) -> tuple[Values, NDArray[np.bool_]]:
        """Values of which nearly all rows keep all rules, and which rows do not. `above` are columns of rows above.

        `within` draws values of the same bins.
        """
        work = _Work(self._rules, values, above)
        self.counts.drawn_again += len(work.places())
        self._draw_within(work, within)
        self._draw_again(work, redraw)
        for group in self._groups:
            self._copy(work, group, copy, rng)
        return work.values, work.rows_broken()

    def _draw_within(self, work: "_Work", within: Redraw) -> None:
        for group in (g for g in self._groups if g.columns):
            places = work.places(group.rules)
            for _ in range(INSIDE):
                before = len(places)
                if not before:
                    break
                work.replace(places, within(places, group.columns, work.at(places)))
                places = work.places(group.rules)
                if len(places) > (1 - WORTH_IT) * before:
                    break

    def _draw_again(self, work: "_Work", redraw: Redraw) -> None:
        for _ in range(ROUNDS):
            if not len(places := work.places()):
                return
            work.replace(places, redraw(places, None, work.at(places)))
        for group in self._groups:
            for _ in range(ROUNDS if group.columns else 0):
                if not len(places := work.places(group.rules)):
                    break
                work.replace(places, redraw(places, group.columns, work.at(places)))

    def _copy(self, work: "_Work", group: _Group, copy: Copy, rng: np.random.Generator) -> None:
        places = work.places(group.rules)
        kept = np.flatnonzero(~work.broken[group.rules].any(axis=0))
        if not len(places) or not len(kept) or not group.columns:
            return
        self.counts.copied += len(places)
        for attempt in range(COPIES + 1):
            others = rng.choice(kept, len(places))
            taken = work.at(others) if attempt == COPIES else None
            work.replace(places, copy(places, others, group.columns, work.at(places), taken))
            if not len(places := work.places(group.rules)):
                return


def without_broken_keys(
    schema: Schema,
    table: Table,
    rules: Sequence[Expression],
    values: Values,
    *,
    nulled: Sequence[str],
    again: Callable[[Values], Values],
) -> Values:
    """Values in which the columns `nulled` are NULL in rows that would break a rule over row numbers.

    `again` works out anew what follows from them. SpecError where that does not help.
    """
    with RowRules.of(table, schema, rules) as asked:
        broken = asked.broken({name: values[name.column] for name in asked.columns}).any(axis=0)
        if not broken.any():
            return values
        null = {c: pc.if_else(pa.array(broken), pa.scalar(None, values[c].type), values[c]) for c in nulled}
        values = again(values | null) if null else values
        left = asked.broken({name: values[name.column] for name in asked.columns}).any(axis=0)
    if left.any():
        raise SpecError(
            f"{table.name}: {int(left.sum()):,} rows cannot keep {'; '.join(map(str, rules))}: keys are numbered anew "
            "from 1. Use a smaller scale, or fit again without the rule."
        )
    return values


class _Work:
    """The rows of a block, and which of them break which rule."""

    def __init__(self, rules: RowRules, values: Values, above: Mapping[ColumnName, pa.Array]) -> None:
        self._rules = rules
        self._above = above
        self.values = values
        self.broken = rules.broken(self._named(None))  # (rules, rows)

    def places(self, rules: list[int] | None = None) -> Places:
        """The rows that break one of some rules, or any."""
        return np.flatnonzero((self.broken if rules is None else self.broken[rules]).any(axis=0))

    def at(self, places: Places) -> Values:
        """The values of some rows."""
        return {name: array.take(pa.array(places)) for name, array in self.values.items()}

    def rows_broken(self) -> NDArray[np.bool_]:
        """Which rows break a rule."""
        return np.asarray(self.broken.any(axis=0))

    def replace(self, places: Places, new: Values) -> None:
        """Take new values for some rows, and see again which rules they break."""
        self.values = self.values | replaced(self.values, places, new)
        self.broken[:, places] = self._rules.broken(self._named(pa.array(places)))

    def _named(self, places: pa.Array | None) -> dict[ColumnName, pa.Array]:
        arrays = {
            name: self.values[name.column] if name.table is None else self._above[name] for name in self._rules.columns
        }
        return arrays if places is None else {name: array.take(places) for name, array in arrays.items()}
