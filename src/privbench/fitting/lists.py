"""Rows of hidden lists, read as if the source had them: the different keys that rows of their members have.

A list row is made of rows that share its key, which holds the key of the entity: of one entity's rows alone. Which rows
an entity has in a list, with which values and in which order, does not depend on others (docs/proofs/tree.md, 3).
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from privbench.io.base import BATCH_ROWS, Source, read_whole
from privbench.schema.lists import lists_of
from privbench.schema.spec import Spec
from privbench.schema.tables import Schema, Table
from privbench.schema.unit import Neighbours, Protection

LISTS_PAY = 10_000
"""Entities times epsilon from which on lists that were taken from the data are used (decision 0038)."""


def with_lists_that_pay(spec: Spec, *, entities: int, epsilon: Fraction) -> Spec:
    """The spec, without hidden lists that were taken from the data if there are too few entities for the budget.

    It looks at public numbers alone: under add/remove, where that of entities is private, no such list is used.
    """
    pays = spec.neighbours is Neighbours.REPLACE and entities * epsilon >= LISTS_PAY
    return spec if pays else spec.without_lists(spec.drafted_lists())


class SourceWithLists(Source):
    """A source that has the hidden lists, too."""

    def __init__(self, source: Source, protection: Protection) -> None:
        self.location = source.location
        self._source = source
        self._protection = protection
        self._lists = {table.name: table for table in lists_of(protection)}
        self._rows: dict[str, pa.Table] = {}

    def schema(self) -> Schema:
        """Tables of the source, and the lists without their keys."""
        there = [t for t in self._source.schema().tables if t.name not in self._lists]
        return Schema(tables=(*there, *(Table(name=t.name, columns=t.columns) for t in self._lists.values())))

    def read(self, table: Table) -> Iterator[pa.RecordBatch]:
        """Give the columns of a table, or of a list."""
        if table.name not in self._lists:
            return self._source.read(table)
        return iter(self._list(table.name).select([c.name for c in table.columns]).to_batches(BATCH_ROWS))

    def rows(self, name: str) -> int:
        """Count the rows of a table, or of a list."""
        return self._list(name).num_rows if name in self._lists else self._source.rows(name)

    def close(self) -> None:
        """Let go of the lists; the source stays open for who opened it."""
        self._rows.clear()

    def _list(self, name: str) -> pa.Table:
        if name not in self._rows:
            table = self._lists[name]
            rows = pa.concat_tables([self._rows_of_member(table, member) for member in table.list_of])
            self._rows[name] = list_rows(table, rows)
        return self._rows[name]

    def _rows_of_member(self, table: Table, member: str) -> pa.Table:
        """The columns of a list in the rows of one of its members."""
        key, held = self._protection.owners[member], self._protection.schema.table(member)
        columns = dict(zip(key.references, key.columns, strict=True))
        rows = read_whole(self, member, (held.column(columns.get(c.name, c.name)) for c in table.columns))
        return rows.rename_columns([c.name for c in table.columns])


def list_rows(table: Table, rows: pa.Table) -> pa.Table:
    """The rows of a list, sorted by its key; other columns have the smallest value in rows of the same key.

    >>> from privbench.schema.tables import Column
    >>> from privbench.schema.types import parse_type
    >>> columns = tuple(Column(name=name, type=parse_type("BIGINT")) for name in ("player", "year", "team"))
    >>> seasons = Table(name="season", columns=columns, primary_key=("player", "year"))
    >>> rows = pa.table({"player": [2, 1, 2, 1, 1], "year": [7, 8, 7, None, 8], "team": [None, 4, 5, 6, 3]})
    >>> [tuple(row.values()) for row in list_rows(seasons, rows).to_pylist()]
    [(1, 8, 3), (2, 7, 5)]
    """
    others = [c.name for c in table.columns if c.name not in table.primary_key]
    known = reduce(pc.and_, (pc.is_valid(rows.column(name)) for name in table.primary_key))
    known_values = pc.ScalarAggregateOptions(skip_nulls=True)
    found = (
        rows.filter(known)
        .group_by(list(table.primary_key), use_threads=False)
        .aggregate([(name, "min", known_values) for name in others])
        .rename_columns([*table.primary_key, *others])
        .sort_by([(name, "ascending") for name in table.primary_key])
    )
    return found.select([c.name for c in table.columns])
