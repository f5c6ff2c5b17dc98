"""Public tables before a fit: copied as they are, and their keys indexed. They are small, and read on one machine."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from privbench.encode.keys import MISSING, NULL, KeyIndex
from privbench.fitting.key_checks import Key, check_nulls, check_orphans, key_place, referenced_keys
from privbench.fitting.rules import RealRows
from privbench.io.base import Source, arrow_schema
from privbench.schema.tables import Table
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
        self.indexes: dict[tuple[str, Key], KeyIndex] = {}

    @property
    def named(self) -> tuple[Table, ...]:
        """The public tables of the schema."""
        tables = self._protection.schema.tables
        return tuple(table for table in tables if self._protection.roles[table.name] is Role.PUBLIC)

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

    def columns(self, link: Link) -> list[pa.ChunkedArray]:
        """The columns of a key that a public table holds."""
        return [self._keys[link.table][name] for name in link.key.columns]

    def check(self, link: Link, index: KeyIndex, *, orphans_as_null: bool) -> None:
        """Refuse a key of a public table that is NULL or leads nowhere, given the rows that it references."""
        rows = index.find(self.columns(link))
        check_nulls(link, int((rows == NULL).sum()))
        check_orphans(link, int((rows == MISSING).sum()), as_null=orphans_as_null)
