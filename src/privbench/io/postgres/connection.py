"""A connection to a PostgreSQL server that writes: statements, rows by binary COPY, and errors in plain words.

Every error is a TargetError. None shows a password, wherever the URL has it.
"""

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from privbench.errors import TargetError
from privbench.io.urls import hide_secrets

if TYPE_CHECKING:
    from adbc_driver_manager import dbapi

SCHEMES = ("postgresql", "postgres")
"""What a URL of PostgreSQL begins with."""
_MESSAGE = re.compile(r"(?:ERROR|FATAL|PANIC|Failed to connect): +(.*)")
_DETAIL = re.compile(r"^DETAIL: +(.*)", re.MULTILINE)
_FATAL = ("08", "25", "40", "53", "54", "57", "58", "XX")
"""Classes of errors that no other statement would be spared: the connection, the disk, the server."""


class RefusedError(TargetError):
    """A statement that the server refused."""

    def __init__(self, message: str, state: str) -> None:
        super().__init__(message)
        self.state = state

    @property
    def is_fatal(self) -> bool:
        return not self.state or self.state.startswith(_FATAL)


class TargetConnection:
    """A connection in which transactions are begun and ended by statements, since ADBC's own know no savepoints."""

    def __init__(self, url: str, location: str) -> None:
        try:
            from adbc_driver_manager import Error  # noqa: PLC0415 (an extra)
            from adbc_driver_postgresql import dbapi as postgres  # type: ignore[import-untyped]  # noqa: PLC0415
        except ImportError:
            raise TargetError("PostgreSQL needs a driver: pip install 'privbench[postgres]'.") from None
        self._error = Error
        self._location = location
        self._url = url
        try:
            self._connection: dbapi.Connection = postgres.connect(url, autocommit=True)
        except Error as error:
            raise TargetError(f"{location}: cannot be connected to ({self._message(error)}).") from None

    def run(self, sql: str, *, remedy: str = "") -> None:
        """Run a statement that gives no rows, or whose rows do not matter."""
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(sql)
                if cursor.description:
                    cursor.fetchall()
        except self._error as error:
            raise self._refused(error, remedy) from None

    def attempt(self, sql: str) -> str | None:
        """Run a statement; what the server says if it fails."""
        try:
            self.run(sql)
        except TargetError as error:
            return str(error)
        return None

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(sql)
                return list(cursor.fetchall())
        except self._error as error:
            raise self._refused(error) from None

    def ingest(self, rows: pa.RecordBatch | pa.RecordBatchReader, table: str, *, schema: str | None = None) -> None:
        """Append rows by COPY; without a schema, to a temporary table."""
        place: dict[str, Any] = {"temporary": True} if schema is None else {"db_schema_name": schema}
        try:
            with self._connection.cursor() as cursor:
                cursor.adbc_ingest(table, rows, mode="append", **place)
        except self._error as error:
            raise self._refused(error) from None

    def close(self) -> None:
        """End the connection; what was not committed is gone."""
        try:
            self._connection.close()
        except self._error:
            return

    def _refused(self, error: Exception, remedy: str = "") -> RefusedError:
        state = str(getattr(error, "sqlstate", "") or "")
        message = self._message(error)
        if not state or state.startswith("57"):
            message = f"{self._location}: the connection was lost ({message}). Nothing was left behind"
        elif state.startswith("53"):
            message = f"{self._location}: {message}. Nothing was left behind; free some space or choose another server"
        return RefusedError(f"{message}. {remedy}" if remedy else message, state)

    def _message(self, error: Exception) -> str:
        text = str(error)
        found = _MESSAGE.search(text)
        detail = _DETAIL.search(text)
        message = (found[1] if found else text.splitlines()[0]).strip().rstrip(".")
        if detail:
            message = f"{message}: {detail[1].strip().rstrip('.')}"
        return hide_secrets(message, self._url)
