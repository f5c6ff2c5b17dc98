"""Tables in memory: DataFrames of pandas and Polars, Arrow tables, and whatever else gives an Arrow C stream.

No such library is imported; each table is taken over as Arrow once, when it is first looked at. Of a DataFrame with an
index, levels that have a name are columns and others are left out. Types come from Arrow unless a schema declares them;
those that Arrow has to guess from the values of Python objects count as guessed, as in a CSV file.
"""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from privbench.errors import DataError, SourceError, SpecError, first_line
from privbench.io.base import BATCH_ROWS, Source
from privbench.io.cast import cast_batch
from privbench.io.declared import check_columns
from privbench.io.files import arrow_column, is_all_null
from privbench.io.names import Names
from privbench.io.text import text_of
from privbench.schema.tables import Column, Schema, Table, named_twice

IN_MEMORY = "tables in memory"
"""What messages call such a source."""
_CERTAIN = (pa.types.is_string, pa.types.is_large_string)
"""What Python objects become in Arrow that says nothing of single values."""
_OBJECTS = (pa.types.is_decimal, pa.types.is_date, pa.types.is_time)
"""What categories are of that are Python objects."""


class Tables:
    """Tables by name, and their schema if there is one: as text of CREATE TABLE statements, or a path to it."""

    def __init__(self, tables: Mapping[str, Any], *, schema: str | os.PathLike[str] | None = None) -> None:
        if not tables:
            raise SpecError('no tables: the source is an empty dict. Name each table: {"customer": df}.')
        for name in tables:
            if not isinstance(name, str) or not name:
                raise SpecError(f"table {name!r}: the name of a table is a text that is not empty.")
        self._given = dict(tables)
        self._ddl = None if schema is None else text_of(schema, where="`schema`")
        self._arrow: dict[str, pa.Table] = {}

    def __str__(self) -> str:
        return IN_MEMORY

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._given)

    def arrow(self, name: str) -> pa.Table:
        """One of the tables, taken over when it is first asked for."""
        if name not in self._arrow:
            self._arrow[name] = _arrow_of(name, self._given[name])
        return self._arrow[name]

    def columns(self) -> dict[str, tuple[str, ...]]:
        """The names of the columns of each table."""
        return {name: tuple(self.arrow(name).column_names) for name in self._given}

    def schema(self) -> Schema:
        """The declared schema, checked against the tables; else their types, without keys."""
        if self._ddl is None:
            return Schema(tables=tuple(Table(name=n, columns=tuple(_columns(self.arrow(n)))) for n in self._given))
        from privbench.io.ddl import parse_ddl  # noqa: PLC0415  loads sqlglot

        schema, names = parse_ddl(self._ddl[0], where=self._ddl[1]), Names(self._given)
        for table in schema.tables:
            if names.find(table.name) is None:
                raise SourceError(
                    f"{table.name}: {self._ddl[1]} declares it, but there is no such table. "
                    f"Tables: {', '.join(self._given)}."
                )
        used = {names.find(table.name) for table in schema.tables}
        if unused := [name for name in self._given if name not in used]:
            raise SourceError(
                f"{', '.join(unused)}: no CREATE TABLE in {self._ddl[1]}. Add it, or leave the table out."
            )
        for table in schema.tables:
            stored = self.arrow(names.find(table.name) or table.name).column_names
            check_columns(table, stored, schema=self._ddl[1], place="the table")
        return schema


class MemorySource(Source):
    """Tables in memory, read like any other source."""

    def __init__(self, tables: Tables) -> None:
        self.location = IN_MEMORY
        self._tables = tables
        self._names = Names(tables.names)
        self._schema: Schema | None = None

    def schema(self) -> Schema:
        if self._schema is None:
            self._schema = self._tables.schema()
        return self._schema

    def read(self, table: Table) -> Iterator[pa.RecordBatch]:
        stored = self._find(table.name)
        known = Names(stored.column_names)
        names = [known.find(column.name) for column in table.columns]
        for column, name in zip(table.columns, names, strict=True):
            if name is None:
                raise SourceError(f"{table.name}.{column.name}: the table has no such column.")
        for batch in stored.select(names).to_batches(BATCH_ROWS):
            yield cast_batch(batch, table)

    def rows(self, name: str) -> int:
        return int(self._find(name).num_rows)

    def close(self) -> None:
        """The tables are the caller's."""

    def _find(self, name: str) -> pa.Table:
        spelled = self._names.find(name)
        if spelled is None:
            raise SourceError(f"{IN_MEMORY}: there is no table {name}. Tables: {', '.join(self._tables.names)}.")
        return self._tables.arrow(spelled)


def _columns(table: pa.Table) -> Iterator[Column]:
    told = _pandas(table).get("columns", ())
    objects = {c["field_name"] for c in told if c.get("numpy_type") == "object"}
    categories = {c["field_name"] for c in told if c.get("pandas_type") == "categorical"}
    for field in table.schema:
        if field.name in objects | categories and is_all_null(field.type):  # as text is: that all are NULL is private
            yield arrow_column(field.name, pa.string())
            continue
        guessed = field.name in objects and not any(test(field.type) for test in _CERTAIN)
        guessed |= field.name in categories and any(test(field.type.value_type) for test in _OBJECTS)
        column = arrow_column(field.name, field.type)
        yield Column(name=field.name, type=column.type, guessed=True, source_type="object") if guessed else column


def _arrow_of(name: str, given: Any) -> pa.Table:
    _check_kind(name, given)
    _check_names(name, given)
    try:
        table = pa.RecordBatchReader.from_stream(given).read_all()
    except Exception as error:  # whatever the library of the table raises
        raise _unreadable(name, error) from error
    if (twice := named_twice(table.column_names)) is not None:
        raise SourceError(f"{name}.{twice}: the table has two columns of that name.")
    is_pandas = _library(given) == "pandas"  # others may carry what pandas once said of other rows
    table = _with_index(table) if is_pandas else table.replace_schema_metadata(None)
    if not table.column_names:
        raise SourceError(f"{name}: the table has no column.")
    return table


def _library(given: Any) -> str:
    return type(given).__module__.partition(".")[0]


def _check_kind(name: str, given: Any) -> None:
    """Refuse what is no table, and streams: tables are read more than once, and a stream is empty afterwards."""
    kind = f"{_library(given)} {type(given).__name__}".removeprefix("builtins ")
    if not hasattr(given, "__arrow_c_stream__"):
        lazy = " Call `.collect()` on it first." if hasattr(given, "collect") else ""
        raise SourceError(
            f"{name}: is a {kind}, which gives no Arrow C stream. A table is a DataFrame of pandas (2.2 or later) or "
            f"Polars, or an Arrow table.{lazy}"
        )
    if hasattr(given, "__next__") or hasattr(given, "read_all"):
        raise SourceError(
            f"{name}: a {kind} can be read only once, and a source is read several times. Give a table: "
            "`reader.read_all()`."
        )


def _check_names(name: str, given: Any) -> None:
    """Refuse what Arrow would rename, or hand over as addresses in memory."""
    library = _library(given)
    if library == "pandas":
        names = [*getattr(given, "columns", ()), *(n for n in getattr(given.index, "names", ()) if n is not None)]
        if wrong := [column for column in names if not isinstance(column, str)]:
            raise SourceError(
                f"{name}: the name of a column is {wrong[0]!r}, and names are texts. Rename the columns: "
                "`df.columns = [str(c) for c in df.columns]`."
            )
        if (twice := named_twice(names)) is not None:
            raise SourceError(f"{name}.{twice}: the table has two columns of that name.")
    if library == "polars":
        for column, kind in getattr(given, "schema", {}).items():
            if str(kind) == "Object":
                raise SourceError(
                    f"{name}.{column}: holds Python objects (pl.Object). Give it another type, or drop it."
                )


def _unreadable(name: str, error: Exception) -> SourceError | DataError:
    """Name the column that Arrow cannot take over, where it says which: its values are of several types, or of none."""
    words = [str(part) for part in error.args]
    before, between = "Conversion failed for column ", " with type "
    column = next((w.removeprefix(before).rpartition(between)[0] for w in words if w.startswith(before)), None)
    if column is None:
        return SourceError(f"{name}: cannot be read as a table ({first_line(error)}).")
    return DataError(
        f"{name}.{column}: its values are not of one type that Arrow knows ({words[0]}). Give the column one type "
        f'(`df["{column}"].astype("string")` holds any), or drop it.'
    )


def _pandas(table: pa.Table) -> dict[str, Any]:
    """What pandas says of a table that it gave; nothing for any other."""
    try:
        told = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _with_index(table: pa.Table) -> pa.Table:
    """A table in which levels of a pandas index are columns if they have a name, in front, and are not there if not."""
    told = _pandas(table)
    levels = {c["field_name"]: c["name"] for c in told.get("columns", ()) if c["field_name"] in _stored(told)}
    unnamed = [field for field, name in levels.items() if name is None]
    table = table.drop_columns([name for name in unnamed if name in table.column_names])
    named = [name for name in levels if name in table.column_names]
    table = table.select([*named, *(n for n in table.column_names if n not in named)])
    for level in told.get("index_columns", ()):
        if isinstance(level, dict) and level.get("kind") == "range" and level.get("name") is not None:
            numbers = pa.array(range(level["start"], level["stop"], level["step"]), pa.int64())
            table = table.add_column(0, level["name"], numbers)
    return table


def _stored(told: Mapping[str, Any]) -> list[str]:
    """The levels of an index that are stored as columns."""
    return [level for level in told.get("index_columns", ()) if isinstance(level, str)]
