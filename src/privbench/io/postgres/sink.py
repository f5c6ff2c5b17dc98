"""A PostgreSQL server as a sink: types and tables, rows by binary COPY, then keys, indexes, views and the rest.

All of it is one transaction of an ordinary user: whatever ends the run, a full disk, Ctrl-C or the server itself,
leaves the target as it was. Rows go through ADBC as the bytes that PostgreSQL keeps, one COPY for a table. A table with
a column that has no such bytes here goes through a temporary table of text, from which the server casts. Objects of the
source that the synthetic rows break (a partial unique index, a CHECK that no rule knows) are left out and listed; a key
that they break is an error.
Partitioned tables get a default partition while rows are loaded, since a made-up row may fall outside all others.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self

import pyarrow as pa

from privbench.errors import TargetError
from privbench.io.base import Loaded, ServerKind, refuse_full
from privbench.io.cast import CAST_ERRORS
from privbench.io.names import quote_sql, quote_text
from privbench.io.postgres.connection import SCHEMES, RefusedError, TargetConnection
from privbench.io.postgres.ddl import TABLE, DatabaseNames, Step, past_largest, write_script
from privbench.io.postgres.stream import RowStream
from privbench.io.postgres.wire import Convert, plain_type, wire
from privbench.io.script import NAME, name_parts
from privbench.io.urls import without_password
from privbench.schema.original import LeftOut
from privbench.schema.tables import Schema, Table

_logger = logging.getLogger(__name__)
_QUIET = (
    "SET LOCAL idle_in_transaction_session_timeout = 0",
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL check_function_bodies = off",
    "SET LOCAL standard_conforming_strings = on",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO, YMD'",
    "SET LOCAL IntervalStyle = 'postgres'",
)
"""Making rows takes its time between two statements; functions may name what comes later; text has one meaning."""
_DUPLICATES = ("42710", "42P06", "42P07", "42723")
_SHARED = ("schema", "extension")
"""Kinds of objects that a target may have already, and that are never dropped."""
_DROPPED_BEFORE = {"view": "VIEW", "materialized view": "MATERIALIZED VIEW"}
_DROPPED_AFTER = {"sequence": "SEQUENCE", "domain": "DOMAIN", "type": "TYPE", "function": "FUNCTION"}
_CREATED = re.compile(
    rf"CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP\s+|RECURSIVE\s+)?(?:MATERIALIZED\s+VIEW|VIEW|SEQUENCE|DOMAIN|TYPE|FUNCTION)\s+"
    rf"(?:IF\s+NOT\s+EXISTS\s+)?{NAME}",
    re.IGNORECASE,
)
_LONGEST = 500
"""Characters of a reason."""
_OTHERS = "It is not one that `--replace` makes anew, so drop it yourself, or choose another database."
_NOT_OWNED = "Only its owner may replace it: connect as that user, or choose another database."
_NO_RIGHT = "42501"
_COLUMNS = """
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), base.typname::text, (base.typtype = 'e')::text
FROM pg_attribute a, LATERAL (
  WITH RECURSIVE up AS (
    SELECT * FROM pg_type WHERE oid = a.atttypid
    UNION ALL SELECT t.* FROM up JOIN pg_type t ON t.oid = up.typbasetype
  ) SELECT typname, typtype FROM up WHERE typbasetype = 0
) base
WHERE a.attrelid = {table}::regclass AND a.attnum > 0 AND NOT a.attisdropped
"""
_PLACE = """
SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = {table}::regclass
"""
_THERE = """
SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname IN ({schemas}) AND NOT c.relispartition
AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY 1
"""
_OPEN_PARTITIONS = """
SELECT n.nspname::text, c.relname::text FROM pg_partitioned_table p
JOIN pg_class c ON c.oid = p.partrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_partition_tree({table}::regclass) tree ON tree.relid = c.oid
WHERE p.partdefid = 0 AND p.partstrat IN ('r', 'l')
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """Where the rows of a table go: columns and their conversions, and what the server casts, if it must."""

    schema: str
    table: str
    columns: tuple[str, ...]
    """The names in the database of the columns that are loaded."""

    places: tuple[int, ...]
    """Where they stand in a batch."""

    converts: tuple[Convert, ...]
    casts: tuple[tuple[str, str], ...] = ()
    """For a table that is loaded as text: the type in the temporary table and the final one, for each column."""


class PostgresSink:
    """A database on a PostgreSQL server."""

    def __init__(self, url: str, *, schema: Schema, replace: bool) -> None:
        self.location = without_password(url)
        self._schema = schema
        self._script = write_script(schema)
        self._names = DatabaseNames(schema)
        self._names.check_lengths()
        self._replaced: list[str] = []
        self._left_out = list(self._script.left_out)
        self._defaults: list[str] = []
        self._completed = False
        self._stream: RowStream | None = None
        self._streaming = ""
        self._targets: dict[str, _Target] = {}
        self._session = TargetConnection(url, self.location)
        try:
            self._begin(replace=replace)
        except BaseException:
            self._session.close()
            raise

    def _begin(self, *, replace: bool) -> None:
        for sql in ("BEGIN", *_QUIET):
            self._session.run(sql)
        if replace:
            self._drop()
        else:
            self._check_empty()

    def __enter__(self) -> Self:
        try:
            for step in self._script.before:
                self._make(step)
            for table in self._schema.tables:
                self._add_default_partitions(table.name)
                self._targets[table.name] = self._target(table)
        except BaseException:
            self._session.close()
            raise
        return self

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """Append rows whose columns are those of the table, in its order and its Arrow types."""
        with self._writing(table):
            self._append(table, self._targets[table], batch)

    @contextmanager
    def _writing(self, table: str) -> Iterator[None]:
        """Say of which table the rows are that the server refuses; those of a stream before may be the ones."""
        before = self._streaming
        try:
            yield
        except RefusedError as error:
            if error.is_fatal:
                raise
            names = " or ".join(dict.fromkeys(name for name in (before, table) if name))
            raise TargetError(f"{self.location}: rows of {names} could not be written: {error}.") from None

    def _append(self, table: str, target: _Target, batch: pa.RecordBatch) -> None:
        rows = self._converted(table, target, batch)
        if self._streaming != table:
            self._end_stream()
        if not target.casts:
            self._stream_to(table, target, rows.schema).put(rows)
            return
        temporary = quote_sql(_temporary(self._schema, table))
        self._session.ingest(rows, _temporary(self._schema, table))
        columns = ", ".join(map(quote_sql, target.columns))
        values = ", ".join(f"CAST(c{i} AS {final})" for i, (_, final) in enumerate(target.casts))
        into = f"{quote_sql(target.schema)}.{quote_sql(target.table)} ({columns})"
        self._session.run(f"INSERT INTO {into} OVERRIDING SYSTEM VALUE SELECT {values} FROM pg_temp.{temporary}")
        self._session.run(f"TRUNCATE pg_temp.{temporary}")

    def _stream_to(self, table: str, target: _Target, rows: pa.Schema) -> RowStream:
        if self._stream is None:
            copy = partial(self._session.ingest, table=target.table, schema=target.schema)
            self._stream, self._streaming = RowStream(rows, copy), table
        return self._stream

    def _end_stream(self) -> None:
        """Complete the COPY that runs, so that the connection is free again."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.end()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is None:
                if not self._completed:
                    self.complete()
                self._session.run("COMMIT")
                self._gather_statistics()
        finally:
            if self._stream is not None:
                self._stream.abandon()
            self._session.close()

    def complete(self) -> Loaded:
        """Make keys, indexes and the rest; others see the database when the block ends."""
        self._completed = True
        with self._writing(self._streaming):
            self._end_stream()
        self._drop_default_partitions()
        for step in self._script.after:
            self._make(step)
        for sequence, places in self._names.sequences(self._schema).items():
            self._make(Step(kind="sequence", name=sequence, sql=past_largest(places, sequence), required=False))
        return Loaded(replaced=tuple(self._replaced), left_out=tuple(self._left_out))

    def _gather_statistics(self) -> None:
        """Let the planner know the tables, and which pages all can see. The database is there without that, too."""
        tables = ", ".join(self._names.table(t.name) for t in self._schema.tables)
        if (problem := self._session.attempt(f"VACUUM (ANALYZE) {tables}")) is not None:
            _logger.warning("%s: VACUUM ANALYZE failed: %s. Run it yourself.", self.location, problem)

    # -- what is there -----------------------------------------------------------------------------------------------

    def _check_empty(self) -> None:
        schemas = ", ".join(self._schemas())
        there = [name for (name,) in self._session.rows(_THERE.format(schemas=schemas))]
        refuse_full(self.location, there)

    def _schemas(self) -> Iterator[str]:
        """The schemas that tables go to, as SQL texts."""
        qualified = [name_parts(self._names.table(t.name)) for t in self._schema.tables]
        yield from sorted({quote_text(parts[0]) for parts in qualified if len(parts) > 1})
        if any(len(parts) == 1 for parts in qualified):
            yield "current_schema()"

    def _drop(self) -> None:
        """Drop what will be made anew: views, tables all at once, then what tables are made of."""
        steps = (*self._script.before, *self._script.after)
        tables = [self._names.table(t.name) for t in self._schema.tables]
        for step in reversed(steps):
            self._drop_one(step, _DROPPED_BEFORE, "to_regclass")
        there = [name for name in tables if self._is_there(name, "to_regclass")]
        if there:
            self._run_drop(f"DROP TABLE {', '.join(there)}")
            self._replaced += [f"{TABLE} {name}" for name in there]
        for step in reversed(steps):
            look = {"function": "to_regproc", "sequence": "to_regclass"}.get(step.kind, "to_regtype")
            self._drop_one(step, _DROPPED_AFTER, look)

    def _drop_one(self, step: Step, words: dict[str, str], look: str) -> None:
        created = _CREATED.match(step.sql.strip())
        if step.kind in words and created and self._is_there(created[1], look):
            self._run_drop(f"DROP {words[step.kind]} {created[1]}")
            self._replaced.append(f"{step.kind} {created[1]}")

    def _run_drop(self, sql: str) -> None:
        try:
            self._session.run(sql)
        except RefusedError as error:
            if error.is_fatal:
                raise
            remedy = _NOT_OWNED if error.state == _NO_RIGHT else _OTHERS
            raise TargetError(f"{self.location}: {error}. {remedy}") from None

    def _is_there(self, name: str, look: str) -> bool:
        [(found,)] = self._session.rows(f"SELECT ({look}({quote_text(name)}) IS NOT NULL)::text")
        return bool(found == "true")

    # -- statements --------------------------------------------------------------------------------------------------

    def _make(self, step: Step) -> None:
        """Run a statement. One that is not required may fail alone; what is there already may be somebody's."""
        self._session.run("SAVEPOINT step")
        try:
            self._session.run(step.sql)
        except RefusedError as error:
            if error.is_fatal:
                raise
            twice = error.state in _DUPLICATES
            if step.required or (twice and step.kind not in _SHARED):
                remedy = " Choose an empty database, or replace it with `--replace`." if twice else ""
                message = f"{self.location}: {step.kind} {step.name} could not be made: {error}.{remedy}"
                raise TargetError(message) from None
            self._session.run("ROLLBACK TO SAVEPOINT step")
            if not twice:
                self._left_out.append(LeftOut(kind=step.kind, name=step.name, reason=str(error)[:_LONGEST]))
        self._session.run("RELEASE SAVEPOINT step")

    def _add_default_partitions(self, table: str) -> None:
        for schema, name in self._session.rows(_OPEN_PARTITIONS.format(table=quote_text(self._names.table(table)))):
            parent = f"{quote_sql(schema)}.{quote_sql(name)}"
            default = f"{quote_sql(schema)}.{quote_sql(f'{name[:50]}_default')}"
            self._session.run(f"CREATE TABLE {default} PARTITION OF {parent} DEFAULT")
            self._defaults.append(default)

    def _drop_default_partitions(self) -> None:
        for name in self._defaults:
            [(filled,)] = self._session.rows(f"SELECT EXISTS (SELECT FROM {name})::text")
            if filled == "false":
                self._session.run(f"DROP TABLE {name}")
            else:
                reason = "made-up rows are in no partition of the source, so this one was added and has them"
                self._left_out.append(LeftOut(kind="partition", name=name, reason=reason))

    # -- rows --------------------------------------------------------------------------------------------------------

    def _target(self, table: Table) -> _Target:
        name = quote_text(self._names.table(table.name))
        types = {column: rest for column, *rest in self._session.rows(_COLUMNS.format(table=name))}
        [(schema, relation)] = self._session.rows(_PLACE.format(table=name))
        own = self._names.own.get(table.name)
        loaded = [(i, c) for i, c in enumerate(table.columns) if own is None or c.name not in own.generated]
        columns = [name_parts(self._names.column(table.name, c.name))[0] for _, c in loaded]
        found = [types[column] for column in columns]
        wires = [wire(c.type, f[1], is_enum=f[2] == "true") for (_, c), f in zip(loaded, found, strict=True)]
        places = tuple(i for i, _ in loaded)
        converts = tuple(w for w in wires if w is not None)
        if len(converts) == len(wires):
            return _Target(schema=schema, table=relation, columns=tuple(columns), places=places, converts=converts)
        plain = [plain_type(c.type) for _, c in loaded]
        declared = ", ".join(f"c{i} {kind}" for i, (kind, _) in enumerate(plain))
        self._session.run(f"CREATE TEMP TABLE {_temporary(self._schema, table.name)} ({declared}) ON COMMIT DROP")
        return _Target(
            schema=schema,
            table=relation,
            columns=tuple(columns),
            places=places,
            converts=tuple(convert for _, convert in plain),
            casts=tuple((kind, final[0]) for (kind, _), final in zip(plain, found, strict=True)),
        )

    def _converted(self, table: str, target: _Target, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = []
        for place, convert in zip(target.places, target.converts, strict=True):
            try:
                arrays.append(convert(batch.column(place)))
            except CAST_ERRORS:
                column = self._schema.table(table).columns[place].name
                raise TargetError(f"{self.location}: {table}.{column}: a value does not fit its type there.") from None
        names = [f"c{i}" for i in range(len(arrays))] if target.casts else list(target.columns)
        return pa.RecordBatch.from_arrays(arrays, names=names)


def _temporary(schema: Schema, table: str) -> str:
    """The name of the temporary table for the rows of a table."""
    return f"privbench_load_{[t.name for t in schema.tables].index(table)}"


POSTGRES_SERVER = ServerKind(
    name="PostgreSQL",
    schemes=SCHEMES,
    open=lambda url, schema, replace: PostgresSink(url, schema=schema, replace=replace),
)
