"""A SQLite file as a source: the pragmas give the schema, rows stream in batches through the standard library.

SQLite's own rules hold for declared types: INTEGER is 64 bits, REAL is a DOUBLE, NUMERIC without digits too,
and a type it does not know goes by its affinity. The file is opened read-only.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote as percent_encode

import pyarrow as pa

from privbench.errors import DataError, SourceError
from privbench.io.base import BATCH_ROWS, SourceKind, read_head
from privbench.io.catalogue import RawTable, build_schema
from privbench.io.ddl import parse_checks
from privbench.io.names import quote_sql
from privbench.io.sqlite_values import to_arrow
from privbench.schema.domain import implied_by_type
from privbench.schema.tables import Column, ForeignKey, Index, Schema, Table
from privbench.schema.types import Kind, SqlType, any_type, parse_type

_OWN_RULES = {"INTEGER": "BIGINT", "INT": "BIGINT", "REAL": "DOUBLE", "NUMERIC": "DOUBLE", "DECIMAL": "DOUBLE"}
_AFFINITY = {
    "INT": "BIGINT",
    "CHAR": "VARCHAR",
    "CLOB": "VARCHAR",
    "TEXT": "VARCHAR",
    "FLOA": "DOUBLE",
    "DOUB": "DOUBLE",
}


class SQLiteSource:
    """Tables in a SQLite file."""

    def __init__(self, path: Path) -> None:
        self.location = str(path)
        self._schema: Schema | None = None
        _check_whole(path)
        uri = f"file:{percent_encode(str(path.absolute()))}?mode=ro"
        try:
            # DuckDB and Arrow may ask for the next batch on a thread of theirs, one at a time.
            self._connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.Error as error:
            raise SourceError(f"{path}: SQLite cannot open it ({error}).") from error

    def schema(self) -> Schema:
        """Read the catalogue."""
        if self._schema is None:
            self._schema = build_schema(self._tables())
        return self._schema

    def read(self, table: Table) -> Iterator[pa.RecordBatch]:
        """Give the columns of a table in its order and types."""
        names = [c.name for c in table.columns]
        columns = ", ".join(f"t.{quote_sql(n)}" for n in names)  # without `t.` a missing column is read as text
        try:
            cursor = self._connection.execute(f"SELECT {columns} FROM main.{quote_sql(table.name)} AS t")
            while rows := cursor.fetchmany(BATCH_ROWS):
                values = zip(table.columns, zip(*rows, strict=True), strict=True)
                arrays = [to_arrow(column, c.type, f"{table.name}.{c.name}") for c, column in values]
                yield pa.RecordBatch.from_arrays(arrays, names=names)
        except sqlite3.OperationalError as error:
            if "decode to UTF-8" in str(error):
                raise DataError(f"{table.name}: {error}. Correct the value, or declare the column BLOB.") from error
            raise self._unreadable(error) from error
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def rows(self, name: str) -> int:
        """Count the rows."""
        [(count,)] = self._all(f"SELECT count(*) FROM main.{quote_sql(name)}")
        return int(count)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _tables(self) -> list[RawTable]:
        found = self._all(
            "SELECT m.name, m.sql FROM sqlite_master m JOIN pragma_table_list l ON l.name = m.name "
            "WHERE l.schema = 'main' AND l.type = 'table' AND m.type = 'table' AND m.name NOT LIKE 'sqlite\\_%' "
            "ESCAPE '\\' ORDER BY m.rowid"
        )
        if not found:
            raise SourceError(f"{self.location}: has no table.")
        return [self._table(name, sql) for name, sql in found]

    def _table(self, name: str, sql: str) -> RawTable:
        raw = RawTable(name=name, checks=parse_checks(sql, dialect="sqlite"))
        key: list[tuple[int, str]] = []
        query = "SELECT name, type, \"notnull\", pk FROM pragma_table_xinfo(?, 'main') WHERE hidden <> 1 ORDER BY cid"
        for column, declared, required, place in self._all(query, name):
            found = declared_type(declared)
            implied = implied_by_type(found.kind)
            raw.columns.append(Column(name=column, type=found, nullable=not required, implied=implied))
            key += [(place, column)] if place else []
        raw.primary_key = tuple(column for _, column in sorted(key))
        raw.foreign_keys = self._foreign_keys(name)
        self._add_indexes(raw)
        return raw

    def _foreign_keys(self, name: str) -> list[ForeignKey]:
        parts: dict[int, list[tuple[str, str, str | None]]] = {}
        query = 'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?, \'main\') ORDER BY id DESC, seq'
        for number, target, column, reference in self._all(query, name):
            parts.setdefault(number, []).append((target, column, reference))
        return [
            ForeignKey(
                columns=tuple(column for _, column, _ in part),
                table=part[0][0],
                references=tuple(reference for _, _, reference in part if reference is not None),
            )
            for part in parts.values()
        ]

    def _add_indexes(self, raw: RawTable) -> None:
        """Enter UNIQUE constraints and indexes; those on expressions or part of the rows are passed over."""
        query = "SELECT name, \"unique\", origin FROM pragma_index_list(?, 'main') WHERE NOT partial ORDER BY seq DESC"
        for name, unique, origin in self._all(query, raw.name):
            found = self._all("SELECT name FROM pragma_index_info(?, 'main') ORDER BY seqno", name)
            columns = tuple(column for (column,) in found)
            if origin == "u":
                raw.uniques.append(columns)
            elif origin == "c" and None not in columns:
                raw.indexes.append(Index(name=name, columns=columns, unique=bool(unique)))

    def _all(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: sqlite3.Error) -> SourceError:
        return SourceError(f"{self.location}: SQLite cannot read it ({error}).")


def _check_whole(path: Path) -> None:
    """Refuse a file shorter than its header says; SQLite would read the missing part of a page as zeros."""
    with path.open("rb") as file:
        head = file.read(100)
    page_size = int.from_bytes(head[16:18], "big")
    pages = int.from_bytes(head[28:32], "big") if head[24:28] == head[92:96] else 0
    if path.stat().st_size < max(100, pages * (65_536 if page_size == 1 else page_size)):
        raise SourceError(f"{path}: SQLite cannot read it (the file is cut short).")


def declared_type(declared: str) -> SqlType:
    """Read a declared type by SQLite's rules; OTHER for one without a codec.

    >>> declared_type("INTEGER").sql, declared_type("UNSIGNED BIG INT").sql, declared_type("blob").kind.value
    ('BIGINT', 'BIGINT', 'other')
    """
    name = " ".join(declared.upper().split())
    found = any_type(_OWN_RULES.get(name, declared))
    by_affinity = (ours for part, ours in _AFFINITY.items() if part in name and not name.startswith("BLOB"))
    if found.kind is Kind.OTHER and (ours := next(by_affinity, None)) is not None:
        return parse_type(ours)
    return found


SQLITE = SourceKind(
    name="a SQLite file",
    matches=lambda location: read_head(location) == b"SQLite format 3\0",
    open=lambda location: SQLiteSource(Path(location)),
)
