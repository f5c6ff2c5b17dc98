"""Public tables before a fit: copied as they are, or made up, and their keys indexed.

They are small, and read on one machine. Of a made-up table no row is read: its rows follow from the schema, and from
rows of public tables that it references. Keys of public tables into it are given rows of it in the order in which they
come; keys of private rows by a hash of their value (`SpreadIndex`).
"""

import io
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from privbench.encode.hashing import hash_rows
from privbench.encode.keys import MISSING, NULL, AnyIndex, KeyIndex, SpreadIndex, any_null, comparable, repeated
from privbench.encode.made_up import make_up_tables
from privbench.errors import SchemaError, SpecError
from privbench.fitting.key_checks import Key, check_nulls, check_orphans, key_place, referenced_keys
from privbench.fitting.rules import RealRows
from privbench.io.base import BATCH_ROWS, Source, arrow_schema
from privbench.schema.domain import Domain
from privbench.schema.tables import Place, Table
from privbench.schema.unit import Link, Protection, Role


class PublicTables:
    """What is known of the public tables: their bytes, their rows, and where their keys are."""

    def __init__(self, source: Source, protection: Protection) -> None:
        self._source = source
        self._protection = protection
        self._keys: dict[str, dict[str, pa.ChunkedArray]] = {}
        self.tables: dict[str, bytes] = {}
        """As Parquet."""
        self.rows: dict[str, int] = {}
        self.indexes: dict[tuple[str, Key], AnyIndex] = {}

    @property
    def named(self) -> tuple[Table, ...]:
        """The public tables of the schema that are read."""
        tables = self._protection.schema.tables
        public = (table for table in tables if self._protection.roles[table.name] is Role.PUBLIC)
        return tuple(table for table in public if table.name not in self._protection.made_up)

    def read(self, table: Table) -> None:
        """Read a table, check its rules and index its keys."""
        indexed = list(dict.fromkeys([*table.keys, *referenced_keys(self._protection, table)]))
        keys = [*indexed, *(k.columns for k in table.foreign_keys)]
        held: dict[str, list[pa.Array]] = {name: [] for key in keys for name in key}
        rules, buffer = RealRows(self._protection, table, ()), io.BytesIO()
        self.rows[table.name] = 0
        with pq.ParquetWriter(
            buffer, arrow_schema(table), compression="none"
        ) as writer:  # the model file is compressed as a whole
            for batch in self._source.read(table):
                self.rows[table.name] += batch.num_rows
                rules.add(batch)
                writer.write_batch(batch)
                for name, parts in held.items():
                    parts.append(batch.column(name))
        rules.check()
        self.tables[table.name] = buffer.getvalue()
        arrays = {n: pa.chunked_array(parts, table.column(n).type.arrow) for n, parts in held.items()}
        self._keys[table.name] = arrays
        for key in indexed:
            where, nullable = key_place(table.name, key), key != table.primary_key
            self.indexes[table.name, key] = KeyIndex(where, [arrays[n] for n in key], nullable=nullable)

    def make_up(self, domains: Mapping[Place, Domain]) -> None:
        """Make up the tables that are not read, when all others are, and lead keys of public tables to their rows."""
        counts, schema = self._protection.made_up, self._protection.schema
        if not counts:
            return
        known = {name: pa.table(columns) for name, columns in self._keys.items()}
        tables = [schema.table(name) for name in counts]
        made = make_up_tables(tables, counts, domains=domains, known=known)
        for table in tables:
            self.rows[table.name] = counts[table.name]
            self.tables[table.name] = _parquet(made[table.name])
            self._keys[table.name] = {name: made[table.name].column(name) for name in made[table.name].column_names}
            for key in dict.fromkeys([*table.keys, *referenced_keys(self._protection, table)]):
                self.indexes[table.name, key] = SpreadIndex(counts[table.name])
        self._lead_keys(made)

    def _lead_keys(self, made: Mapping[str, pa.Table]) -> None:
        """Give keys of public tables into made-up ones, and keys to what these keys are part of, their new values."""
        changed: dict[str, pa.Table] = dict(made)
        names = {table.name for table in self.named}
        waiting = [link for link in self._protection.links if link.table in names and link.target in made]
        while waiting:
            link = waiting.pop()
            rows = self._led(pq.read_table(io.BytesIO(self.tables[link.table])), link, changed[link.target])
            changed[link.table], self.tables[link.table] = rows, _parquet(rows)
            self._check_led(link, rows)
            moved = {*link.key.columns}
            onwards = (other for other in self._protection.links_to(link.table) if moved & {*other.key.references})
            for other in onwards:
                if other.table in made:
                    raise SchemaError(
                        f"{other.table}: its rows are made up, but its key {other.key} references a key of "
                        f"{other.target} that leads to made-up rows itself. Take one of the two keys out of "
                        "`foreign_keys` in the spec."
                    )
                if other.table in names:
                    waiting.append(other)

    def _led(self, rows: pa.Table, link: Link, target: pa.Table) -> pa.Table:
        """The rows of a public table whose key has the values of a target's rows."""
        index = self.indexes[link.target, link.key.references]
        if isinstance(index, KeyIndex):
            places = index.find(self.columns(link))
        else:
            places = _in_order(self.columns(link), rows=index.rows)
        taken = pa.array(places, mask=places < 0)
        for name, referenced in zip(link.key.columns, link.key.references, strict=True):
            values = target.column(referenced).take(taken).cast(rows.schema.field(name).type)
            rows = rows.set_column(rows.schema.get_field_index(name), name, values)
        return rows

    def _check_led(self, link: Link, rows: pa.Table) -> None:
        for key in self._protection.schema.table(link.table).keys:
            columns = [comparable(rows.column(name)) for name in key]
            known = pa.array(~any_null(columns))
            if {*key} & {*link.key.columns} and repeated([column.filter(known) for column in columns]):
                raise SpecError(
                    f"{link.name}: rows of {link.table} reference more rows of {link.target} than are made up, and "
                    f"must differ in this key. Say a larger `made_up` under {link.target} in the spec."
                )

    def columns(self, link: Link) -> list[pa.ChunkedArray]:
        """The columns of a key that a public table holds."""
        return [self._keys[link.table][name] for name in link.key.columns]

    def check(self, link: Link, index: AnyIndex, *, orphans_as_null: bool) -> None:
        """Refuse a key of a public table that is NULL or leads nowhere, given the rows that it references."""
        rows = index.find(self.columns(link))
        check_nulls(link, int((rows == NULL).sum()))
        check_orphans(link, int((rows == MISSING).sum()), as_null=orphans_as_null)


def _in_order(columns: Sequence[pa.ChunkedArray], *, rows: int) -> NDArray[np.int64]:
    """Number different keys in the order in which they come, and again from 0 when so many rows are used up.

    >>> _in_order([pa.chunked_array([["b", "a", None, "b"]])], rows=5).tolist()
    [0, 1, -1, 0]
    """
    keys = [comparable(column) for column in columns]
    null = any_null(keys)
    _, first, inverse = np.unique(hash_rows(keys)[~null], return_index=True, return_inverse=True)
    places = np.full(len(null), NULL, np.int64)
    places[~null] = np.argsort(np.argsort(first))[inverse] % rows
    return places


def _parquet(rows: pa.Table) -> bytes:
    """Rows as a model keeps them."""
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, compression="none", row_group_size=BATCH_ROWS)
    return buffer.getvalue()
