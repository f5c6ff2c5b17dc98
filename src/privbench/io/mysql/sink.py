"""A MySQL or MariaDB database as a sink: tables, rows, then keys, indexes, constraints and views, and statistics.

DDL there is no part of a transaction, so the sink undoes what it did itself. Tables that are replaced stay aside under
another name, without their foreign keys, whose names would clash, until all is done; if anything fails the new tables
go and the old ones come back.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from privbench.errors import TargetError
from privbench.io.base import Loaded, ServerKind, refuse_full
from privbench.io.mysql.address import SCHEMES, Address, read_address
from privbench.io.mysql.connection import connect, explain, failures, fetch, quote_name, run
from privbench.io.mysql.ddl import Script, write_script
from privbench.io.mysql.load import insert_rows, load_file
from privbench.io.mysql.show_create import CreateTable, PartKind, read_table
from privbench.schema.original import LeftOut, Statement
from privbench.schema.tables import Schema

_MODE = "STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION"
_SESSION = "SET foreign_key_checks = 0, unique_checks = 0, sql_notes = 0, lock_wait_timeout = 60"
_ASIDE = "privbench_old_"
_LONGEST_NAME = 64
_LOCAL = ("", "localhost", "127.0.0.1", "::1")
_THERE = "SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"
_USERS = (
    "SELECT TABLE_NAME, REFERENCED_TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS "
    "WHERE UNIQUE_CONSTRAINT_SCHEMA = DATABASE()"
)
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Aside:
    """A table that is replaced: where it waits, and what it was like, as it gets its foreign keys back."""

    name: str
    waits_as: str
    table: CreateTable


class MySQLSink:
    """The tables of one database of a server."""

    def __init__(self, address: Address, schema: Schema, *, replace: bool) -> None:
        self.location = address.shown
        self._address = address
        self._schema = schema
        self._script: Script = write_script(schema)
        self._new = {table.name: table for table in self._script.tables}
        self._made: list[str] = []
        self._asides: list[_Aside] = []
        self._completed = False
        self._local = address.connection.get("host", "") in _LOCAL
        self._connection = self._connect()
        try:
            self._there = dict(self._ask(_THERE))
            self._check_room(replace=replace)
            self._load = load_file if self._takes_files() else insert_rows
        except BaseException:
            self._connection.close()
            raise

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """Append rows."""
        if not batch.num_rows:
            return
        try:
            self._load(self._connection, self._schema.table(table), self._new[table], batch)
            warnings = fetch(self._connection, "SHOW WARNINGS LIMIT 1")
        except failures() as error:
            raise self._refused(error, f"rows of {table}") from None
        for _, _, words in warnings:  # from a file the server takes what it can, and only warns of the rest
            raise TargetError(f"{self.location}: rows of {table} could not be written: {words}.")

    def __enter__(self) -> Self:
        try:
            self._put_aside([name for name in self._new if name in self._there])
            for table in self._script.tables:
                self._made.append(table.name)
                self._do(table.create, f"table {table.name}")
            for statement in self._script.before:
                self._do(statement.sql, statement.title)
        except BaseException:
            self._undo()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is not None:
            self._undo()
            return
        try:
            if not self._completed:
                self.complete()
            self._drop([aside.waits_as for aside in self._asides])
        except BaseException:
            self._undo()
            raise
        self._connection.close()

    def complete(self) -> Loaded:
        """Make keys, indexes and the rest. What was replaced waits until the block ends."""
        self._completed = True
        left_out = list(self._script.left_out)
        for statements in _together(self._script.after):
            self._add(statements, left_out)
        for table in self._new:
            self._ask(f"ANALYZE TABLE {quote_name(table)}")
        views = [s.name for s in self._script.after if s.kind == "view" and self._there.get(s.name) == "VIEW"]
        replaced = (*(f"table {aside.name}" for aside in self._asides), *(f"view {name}" for name in views))
        return Loaded(replaced=replaced, left_out=tuple(left_out))

    def _connect(self) -> Any:
        connection = connect(self._address, failure=TargetError, sql_mode=_MODE, local_infile=self._local)
        run(connection, _SESSION)
        return connection

    def _check_room(self, *, replace: bool) -> None:
        """Refuse a database that holds anything, or, to replace tables, one where something would be lost."""
        if not replace:
            refuse_full(self.location, sorted(self._there))
        if waiting := sorted(name for name in self._there if name.startswith(_ASIDE)):
            raise TargetError(
                f"{self.location}: holds tables that were being replaced when the server died: {', '.join(waiting)}. "
                "They are as they were, but for their foreign keys: rename them back, or drop them, then try again."
            )
        for user, target in self._ask(_USERS):
            if target in self._new and user not in self._new:
                raise TargetError(
                    f"{self.location}: table {user}, which would stay, references {target}, which would be replaced. "
                    "Give another database, or drop that key first."
                )
        for name in self._new:
            if self._there.get(name) == "VIEW":
                raise TargetError(f"{self.location}: {name} is a view there, and a table here. Drop the view first.")

    def _takes_files(self) -> bool:
        """Whether rows may go as files: only on this computer, as a server that may ask for files can ask for any."""
        [(allowed,)] = self._ask("SELECT @@local_infile")
        return self._local and bool(allowed)

    # -- the end, good or bad ------------------------------------------------------------------------------------------

    def _add(self, statements: Sequence[Statement], left_out: list[LeftOut]) -> None:
        """Run what comes after the rows; what the schema does not know of is listed if the server refuses it."""
        [first, *_] = statements
        sql = ", ".join([first.sql, *(s.sql.removeprefix(_altering(s)) for s in statements[1:])])
        if first.kind == "foreign key":
            self._do("SET foreign_key_checks = 1", first.title)  # so that the rows are checked
        if first.kind == "view" and self._there.get(first.name) == "VIEW":
            sql = sql.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1)
        try:
            run(self._connection, sql)
        except failures() as error:
            if first.key or not self._connection.open:
                raise self._refused(error, first.title) from None
            left_out.append(LeftOut(kind=first.kind, name=first.name, reason=explain(error)[:300]))

    def _put_aside(self, names: Iterable[str]) -> None:
        """Rename tables that are replaced, all at once."""
        for number, name in enumerate(names):
            [row] = self._ask(f"SHOW CREATE TABLE {quote_name(name)}")
            waits_as = f"{_ASIDE}{number}_{name}"[:_LONGEST_NAME]
            self._asides.append(_Aside(name=name, waits_as=waits_as, table=read_table(row[1])))
        for aside in self._asides:
            for key in aside.table.of(PartKind.FOREIGN_KEY):
                self._do(f"ALTER TABLE {quote_name(aside.name)} DROP FOREIGN KEY {quote_name(key.name)}", aside.name)
        if self._asides:
            pairs = ", ".join(f"{quote_name(a.name)} TO {quote_name(a.waits_as)}" for a in self._asides)
            self._do(f"RENAME TABLE {pairs}", "tables that are replaced")

    def _undo(self) -> None:
        """Drop what was made and bring back what was replaced, in a new session if the old one ended."""
        caught: tuple[type[Exception], ...] = (TargetError, *failures())
        try:
            if not self._connection.open:
                self._connection = self._connect()
            run(self._connection, "SET foreign_key_checks = 0")
            there = dict(fetch(self._connection, _THERE))
            waiting = [aside for aside in self._asides if aside.waits_as in there]
            made = [name for name in self._made if name in there]
            self._drop(made)
            for aside in waiting:
                run(self._connection, f"RENAME TABLE {quote_name(aside.waits_as)} TO {quote_name(aside.name)}")
            for aside in self._asides:
                self._restore_keys(aside)
        except caught as error:
            elsewhere = ", ".join(f"{aside.name} as {aside.waits_as}" for aside in self._asides)
            _logger.error(
                "%s: could not be cleaned up (%s). Half-made tables may be left: %s.%s",
                self.location,
                explain(error).removesuffix("."),
                ", ".join(self._made) or "none",
                f" Those that they replace wait under other names: {elsewhere}." if elsewhere else "",
            )
        finally:
            self._connection.close()

    def _restore_keys(self, aside: _Aside) -> None:
        [row] = fetch(self._connection, f"SHOW CREATE TABLE {quote_name(aside.name)}")
        there = {part.name for part in read_table(row[1]).of(PartKind.FOREIGN_KEY)}
        lost = [key for key in aside.table.of(PartKind.FOREIGN_KEY) if key.name not in there]
        alter = f"ALTER TABLE {quote_name(aside.name)}"
        for index in aside.table.made_for_keys() if lost else ():  # else the server makes one of another name
            run(self._connection, f"{alter} DROP KEY {quote_name(index.name)}, ADD {index.text}")
        for key in lost:
            run(self._connection, f"{alter} ADD {key.text}")

    def _drop(self, tables: Sequence[str]) -> None:
        if tables:
            run(self._connection, "SET foreign_key_checks = 0")
            run(self._connection, f"DROP TABLE IF EXISTS {', '.join(map(quote_name, tables))}")

    # -- asking --------------------------------------------------------------------------------------------------------

    def _do(self, statement: str, what: str) -> None:
        try:
            run(self._connection, statement)
        except failures() as error:
            raise self._refused(error, what) from None

    def _ask(self, query: str) -> list[tuple[Any, ...]]:
        try:
            return fetch(self._connection, query)
        except failures() as error:
            raise self._refused(error, "the database") from None

    def _refused(self, error: Exception, what: str) -> TargetError:
        return TargetError(f"{self.location}: {what} could not be written: {explain(error)}.")


def _altering(statement: Statement) -> str:
    return f"ALTER TABLE {quote_name(statement.tables[0])} "


def _together(statements: Sequence[Statement]) -> list[list[Statement]]:
    """Put the plain keys and indexes of a table into one statement, which the server does in one go."""
    groups: list[list[Statement]] = []
    joined: dict[str, list[Statement]] = {}
    for statement in statements:
        if statement.key and statement.kind != "foreign key" and statement.sql.startswith(_altering(statement)):
            if statement.tables[0] not in joined:
                groups.append(joined.setdefault(statement.tables[0], []))
            joined[statement.tables[0]].append(statement)
        else:
            groups.append([statement])
    return groups


MYSQL_SERVER = ServerKind(
    name="MySQL or MariaDB",
    schemes=SCHEMES,
    open=lambda url, schema, replace: MySQLSink(read_address(url), schema, replace=replace),
)
