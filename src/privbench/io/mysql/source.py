"""A MySQL or MariaDB database as a source: one snapshot of all tables, rows in batches, no more rights than SELECT.

All tables are read in one session, whose transaction sees the database as it was when it began. A session gives the
rows of one query at a time: where a second read begins before the first is through, the rest of the first is kept in a
temporary file without a name. Tables without transactions (MyISAM) have no snapshot; their rows are counted again after
a read, and one that changed is refused.
"""

import logging
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

import pyarrow as pa

from privbench.errors import SourceError
from privbench.io.base import BATCH_ROWS, Source, SourceKind, arrow_schema
from privbench.io.mysql.address import Address, is_address, read_address
from privbench.io.mysql.catalogue import Catalogue, read_catalogue
from privbench.io.mysql.connection import connect, explain, failures, fetch, quote_name
from privbench.io.mysql.rows import parse_lines, select_lines
from privbench.schema.tables import Schema, Table

_BATCH_BYTES = 32 << 20
"""Long rows come fewer at a time: about so many bytes in a batch."""
_FIRST_ROWS = 256
"""So many rows of a table tell how long its rows are."""
_SNAPSHOT = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
_logger = logging.getLogger(__name__)


class MySQLSource(Source):
    """Tables of one database of a server."""

    def __init__(self, address: Address) -> None:
        self.location = address.shown
        self._connection = connect(address, failure=SourceError)
        self._catalogue: Catalogue | None = None
        self._reading: _Reading | None = None
        self._ask(_SNAPSHOT)

    def schema(self) -> Schema:
        return self._known().schema

    def read(self, table: Table) -> Iterator[pa.RecordBatch]:
        stored = self._known().tables.get(table.name)
        absent = [c.name for c in table.columns if stored is None or c.name not in stored.types]
        if stored is None or absent:
            raise SourceError(f"{self.location}: there is no {'.'.join([table.name, *absent[:1]])}.")
        self._make_room()
        reading = _Reading(self, table, select_lines(table, stored.types))
        self._reading = reading
        try:
            yield from reading.batches()
        finally:
            reading.close()
            if self._reading is reading:
                self._reading = None
        if not stored.snapshot and self.rows(table.name) != reading.rows:
            raise SourceError(
                f"{self.location}: table {table.name} changed while it was read: its storage engine has no snapshots. "
                f"Read it when nobody writes, or convert it: ALTER TABLE {quote_name(table.name)} ENGINE=InnoDB."
            )

    def rows(self, name: str) -> int:
        if name not in self._known().tables:
            raise SourceError(f"{self.location}: there is no table {name}.")
        [(count,)] = self._ask(f"SELECT COUNT(*) FROM {quote_name(name)}", table=name)
        return int(count)

    def close(self) -> None:
        self._connection.close()

    def unreadable(self, error: Exception, table: str | None = None) -> SourceError:
        """Say what went wrong with a table, or with the whole."""
        where = f"table {table} cannot be read: " if table else ""
        return SourceError(f"{self.location}: {where}{explain(error)}.")

    def cursor(self) -> Any:
        """A cursor that gives rows as they come."""
        import pymysql  # noqa: PLC0415  an extra

        return self._connection.cursor(pymysql.cursors.SSCursor)

    def _known(self) -> Catalogue:
        if self._catalogue is None:
            self._make_room()
            try:
                self._catalogue = read_catalogue(self._connection, self.location)
            except failures() as error:
                raise self.unreadable(error) from None
        return self._catalogue

    def _ask(self, query: str, *, table: str | None = None) -> list[tuple[Any, ...]]:
        self._make_room()
        try:
            return fetch(self._connection, query)
        except failures() as error:
            raise self.unreadable(error, table) from None

    def _make_room(self) -> None:
        """Free the session for another query."""
        if self._reading is not None:
            self._reading.put_aside()
            self._reading = None


class _Reading:
    """One read of a table that is under way: from the server, or from a file that holds the rest of it."""

    def __init__(self, source: MySQLSource, table: Table, query: str) -> None:
        self._source = source
        self._table = table
        self._zero_dates: Counter[str] = Counter()
        self._aside: IO[bytes] | None = None
        self._wanted = min(_FIRST_ROWS, BATCH_ROWS)
        self.rows = 0
        self._failures = failures()  # nothing can be imported when Python ends with a read under way
        self._cursor = source.cursor()
        try:
            self._cursor.execute(query)
        except self._failures as error:
            raise source.unreadable(error, table.name) from None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Give the rows; what was put aside comes from there."""
        while self._aside is None and (batch := self._next()) is not None:
            yield batch
        if self._aside is not None:
            self._aside.seek(0)
            with pa.ipc.open_stream(self._aside) as stream:
                yield from stream

    def put_aside(self) -> None:
        """Write what the server has still to give to a file that nobody else can open."""
        file = tempfile.TemporaryFile()  # noqa: SIM115  closed with the reading
        with pa.ipc.new_stream(file, arrow_schema(self._table)) as stream:
            while (batch := self._next()) is not None:
                stream.write_batch(batch)
        self._end()
        self._aside = file

    def close(self) -> None:
        """Let go of the file, or of the rows that nobody asked for."""
        if self._aside is not None:
            self._aside.close()
        self._end()
        for name, count in self._zero_dates.items():
            if count:
                _logger.warning(
                    "%s.%s: %s dates of zeros (0000-00-00) are read as NULL. This number is for you alone; it is not "
                    "published.",
                    self._table.name,
                    name,
                    f"{count:,}",
                )

    def _end(self) -> None:
        """Have the server send what nobody asked for, if the session lasts; PyMySQL would try in any case, and fail."""
        with suppress(*self._failures):
            if self._cursor.connection is not None and self._cursor.connection.open:
                self._cursor.close()
        self._cursor.connection = None
        if self._cursor._result is not None:
            self._cursor._result.unbuffered_active = False

    def _next(self) -> pa.RecordBatch | None:
        try:
            lines = [line for (line,) in self._cursor.fetchmany(min(self._wanted, BATCH_ROWS))]
        except self._failures as error:
            raise self._source.unreadable(error, self._table.name) from None
        if not lines:
            return None
        if None in lines:
            raise SourceError(
                f"{self._source.location}: a row of {self._table.name} is longer than the server's max_allowed_packet. "
                "Raise that on the server, or drop its longest column."
            )
        self.rows += len(lines)
        self._wanted = max(1, _BATCH_BYTES * len(lines) // (sum(map(len, lines)) + 1))
        return parse_lines(lines, self._table, self._zero_dates)


MYSQL_SOURCE = SourceKind(
    name="a MySQL or MariaDB database (mysql://user@host/database)",
    matches=is_address,
    open=lambda location: MySQLSource(read_address(location)),
)
