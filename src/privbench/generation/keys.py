"""Key values of synthetic rows by row number, whatever kind of key it is, and values that rows below ask for.

Numbered keys are computed, public keys are looked up in the public table, and keys made of drawn values are
spooled to disk when their table is made and looked up there, so that memory does not grow with the scale. So are
columns that rows below are made from, and whose rows these are.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.keys import rows_named
from privbench.encode.serial import check_room, numbered, row_numbers
from privbench.generation.above import keeps_owners, kept_columns
from privbench.generation.computed import copied_columns
from privbench.model.model import Model
from privbench.model.order import colliding_keys, is_numbered, key_text
from privbench.schema.tables import Table
from privbench.schema.unit import Link, Role


def keeps_entity_keys(model: Model, scale: float) -> bool:
    """Whether the entity table keeps its ids, which public tables reference: at scale 1, if no row can be left out."""
    entity = model.protection.schema.table(model.protection.entity)
    return scale == 1 and model.entity_keys is not None and not colliding_keys(model.spec, entity)


OWNER_ROWS = "\0owner"
"""The column of the row number of each row's owner, where rows are kept; no column of a table has this name."""
FURTHER_UP = -1
"""Owners below this stand for rows of a table further up: the first for row 0, and so on."""


def rows_further_up(owners: NDArray[np.int64], further_up: NDArray[np.int64]) -> NDArray[np.int64]:
    """Owners, and where there is none the row of a table further up, if there is one.

    >>> rows_further_up(np.array([7, -1, -1]), np.array([-1, 3, -1])).tolist()
    [7, -5, -1]
    """
    return np.where((owners < 0) & (further_up >= 0), FURTHER_UP - 1 - further_up, owners)


class KeyMaker:
    """Looks up key values of any table, and spools those that cannot be computed."""

    def __init__(
        self, model: Model, *, keep_entity_keys: bool, folder: Path, first: Mapping[str, int] | None = None
    ) -> None:
        """`first` are the numbers of the first rows of private tables, if not 0; rows are counted from there."""
        self._model = model
        self._folder = folder
        self._first = first or {}
        self._kept = model.entity_keys if keep_entity_keys else None
        self._looked_up: dict[str, pa.Table] = {}
        self._public_targets: dict[str, NDArray[np.int64]] = {}  # by key of a public table: the rows it references
        self._spools: dict[str, tuple[pa.RecordBatchFileWriter, Path, list[str]]] = {}

    def own_key(self, table: Table, rows: NDArray[np.int64]) -> pa.Array:
        """The numbered key of a private table's rows."""
        return self.key_of_number(table, rows + self._first.get(table.name, 0))

    def key_of_number(self, table: Table, rows: NDArray[np.int64]) -> pa.Array:
        """The numbered key of rows of a private table, of any partition, by their numbers in all of it."""
        name = table.primary_key[0]
        if self._kept is not None and table.name == self._model.protection.entity:
            return _flat(self._kept.column(name).take(pa.array(rows)))
        length, shape = key_text(self._model.spec, table, name)
        return numbered(table.column(name).type, rows, length=length, shape=shape)

    def own_rows(self, table: Table, keys: pa.Array) -> NDArray[np.int64]:
        """The row numbers of numbered keys of a private table, none of them NULL."""
        name = table.primary_key[0]
        type_ = table.column(name).type
        return row_numbers(type_, keys.cast(type_.arrow)) - self._first.get(table.name, 0)

    def check_room(self, table: Table, rows: int, scale: float) -> None:
        """Refuse a scale at which a numbered key runs out of values."""
        if len(table.primary_key) == 1 and is_numbered(table, table.primary_key):
            name = table.primary_key[0]
            length, shape = key_text(self._model.spec, table, name)
            check_room(f"{table.name}.{name}", table.column(name).type, rows, scale, length=length, shape=shape)

    def values(self, name: str, column: str, rows: NDArray[np.int64], *, first: int | None = None) -> pa.Array:
        """The values of a key column of a table, or of one that is kept, at row numbers; NULL where negative.

        Numbered keys may be those of rows of any partition, if the number `first` of row 0 is given.
        """
        table = self._model.protection.schema.table(name)
        if rows.max(initial=-1) < 0:
            return pa.nulls(len(rows), table.column(column).type.arrow)
        if self._model.protection.roles[name] is not Role.PUBLIC and is_numbered(table, (column,)):
            number = self._first.get(name, 0) if first is None else first
            if rows.min() >= 0:
                return self.key_of_number(table, rows + number if number else rows)
            null = rows < 0
            made = self.key_of_number(table, rows[~null] + number)
            return made.take(pa.array(np.cumsum(~null) - 1, mask=null))
        return _taken(self._table(name).column(column), rows)

    def above(
        self, owner: str, rows: NDArray[np.int64], *, table: str, column: str, further_up: str | None = None
    ) -> pa.Array:
        """A column of the rows above some rows, given their owners in the table `owner`; NULL where there is none.

        An owner may be a row further up (`rows_further_up`) of the table that `further_up` names.
        """
        return self.values(table, column, self.rows_above(owner, rows, table=table, further_up=further_up))

    def rows_above(
        self, owner: str, rows: NDArray[np.int64], *, table: str, further_up: str | None
    ) -> NDArray[np.int64]:
        """The row numbers of the rows above in `table`, -1 where there is none."""
        protection = self._model.protection
        waiting = {} if further_up is None else {further_up: rows}
        while True:
            if owner in waiting:
                skipped = waiting.pop(owner)
                rows = np.where(skipped < FURTHER_UP, FURTHER_UP - 1 - skipped, rows)
            if owner == table:
                return np.maximum(rows, -1)
            if (rows >= 0).any():
                above = _taken(self._table(owner).column(OWNER_ROWS), np.maximum(rows, -1))
                rows = np.where(rows >= 0, above.fill_null(-1).to_numpy(zero_copy_only=False), -1)
                if implied := protection.implied_of(owner):
                    before = waiting.get(implied[0].target, np.int64(-1))
                    waiting[implied[0].target] = np.where(rows < FURTHER_UP, rows, before)
            owner = protection.owners[owner].table

    def led_to(self, path: Sequence[Link], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of a public table that keys lead to, given those that the first key references; -1 for none."""
        for link in path[1:]:
            if link.name not in self._public_targets:
                held, target = self._table(link.table), self._table(link.target)
                keys = [held.column(c) for c in link.key.columns]
                self._public_targets[link.name] = rows_named(keys, [target.column(c) for c in link.key.references])
            rows = np.where(rows < 0, -1, self._public_targets[link.name][rows])
        return rows

    def spool(self, table: Table, batch: pa.RecordBatch, owners: NDArray[np.int64] | None = None) -> None:
        """Keep the columns that other tables' keys reference, copy or are made from, if they cannot be computed.

        `owners` are the owners of the rows, for tables whose owners are kept.
        """
        if owners is not None and keeps_owners(self._model.protection, table.name):
            batch = batch.append_column(pa.field(OWNER_ROWS, pa.int64()), pa.array(owners))
        if table.name not in self._spools:
            columns = [c for c in (*self._spooled_columns(table), OWNER_ROWS) if c in batch.schema.names]
            path = self._folder / f"{len(self._spools)}.arrow"
            schema = pa.schema([batch.schema.field(c) for c in columns])
            self._spools[table.name] = (pa.ipc.new_file(str(path), schema), path, columns)
        writer, _, columns = self._spools[table.name]
        if columns:
            writer.write_batch(batch.select(columns))

    def finish(self, name: str) -> None:
        """Make the spooled keys of a table ready to be looked up."""
        if name in self._spools:
            writer, path, columns = self._spools[name]
            writer.close()
            if columns:
                self._looked_up[name] = pa.ipc.open_file(pa.memory_map(str(path))).read_all()

    def _spooled_columns(self, table: Table) -> list[str]:
        """Of a private table, those that are not numbered; of a public one all, since it may have lost rows."""
        public = self._model.protection.roles[table.name] is Role.PUBLIC
        wanted = [
            link.key.references
            for link in self._model.protection.keys
            if link.target == table.name
            if public or not is_numbered(table, link.key.references)
        ]
        schema = self._model.protection.schema
        owned = [schema.table(t) for t, key in self._model.protection.owners.items() if key.table == table.name]
        wanted += [
            (c,)
            for child in owned
            for c in copied_columns(self._model.protection, child.name).values()
            if not is_numbered(table, (c,))
        ]
        wanted += [(c,) for c in sorted(kept_columns(self._model.protection, table.name))]
        return list(dict.fromkeys(c for columns in wanted for c in columns))

    def _table(self, name: str) -> pa.Table:
        if name not in self._looked_up:
            self._looked_up[name] = self._model.public_table(name)
        return self._looked_up[name]


def _taken(column: pa.ChunkedArray, rows: NDArray[np.int64]) -> pa.Array:
    """The values at row numbers, of which some are not negative: NULL for the others."""
    if rows.min() >= 0:
        near, first = _near(column, rows)
        return _flat(near.take(pa.array(rows - first)))
    null = rows < 0
    near, first = _near(column, rows[~null])
    return _flat(near.take(pa.array(np.where(null, 0, rows - first), mask=null)))


def _near(column: pa.ChunkedArray, rows: NDArray[np.int64]) -> tuple[pa.ChunkedArray, int]:
    """The stretch of a column that holds some rows, and its first: only what is looked at is gathered."""
    first = int(rows.min())
    return column.slice(first, int(rows.max()) - first + 1), first


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
