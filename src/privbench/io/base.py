"""The two doors of the data: a `Source` gives Arrow batches of private tables, a `Sink` takes synthetic ones.

Both sides speak `Column.type.arrow`, so nothing above this package knows which system the rows came from.
Every source and every sink passes the same suite of tests. A new system is one more module that makes a `SourceKind`,
a `SinkKind` or a `ServerKind`, and one more line in `open.SOURCES`, `sinks.SINKS` or `sinks.SERVERS`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Protocol, Self, TypeVar

import pyarrow as pa

from privbench.errors import SourceError, TargetError
from privbench.schema.original import LeftOut
from privbench.schema.tables import Column, Schema, Table

BATCH_ROWS = 65_536
"""No source gives more rows than this at a time, so memory does not grow with the database."""
_SHOWN = 5
"""So many objects of a full target are named."""


class Format(StrEnum):
    """The names of the formats that come with PrivBench; a format can be any name in `sinks.SINKS`."""

    PARQUET = "parquet"
    CSV = "csv"
    DUCKDB = "duckdb"
    SQLITE = "sqlite"

    @property
    def database(self) -> str:
        """The name of the one file that a database format writes."""
        return f"database.{self.value}"


class Source(Protocol):
    """A database that can be read, table by table, as often as wanted."""

    location: str
    """The path, as the user gave it; for messages."""

    def schema(self) -> Schema:
        """Tables, types, keys and indexes, as the system or `schema.sql` declares them."""

    def read(self, table: Table) -> Iterator[pa.RecordBatch]:
        """Give the columns of `table`, in its order, as `column.type.arrow`.

        `table` may have fewer columns than the stored one and other types. A value that its type cannot
        hold is a DataError that names table.column.
        """

    def rows(self, name: str) -> int:
        """Count the rows of a table."""

    def close(self) -> None:
        """Let go of the files; a closed source cannot be read."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Sink(AbstractContextManager["Sink"], Protocol):
    """A place that tables are written to; tables may come in any order and in turns.

    Leaving the `with` block normally completes the files, with an empty table for each that got no batch;
    leaving it by an exception only closes them.
    """

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """Append rows whose columns are those of the table, in its order and its Arrow types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind:
    """One kind of source: how to recognise it, and how to open it."""

    name: str
    """What it is, with its article, for messages: "a DuckDB file"."""

    matches: Callable[[str], bool]
    """Tell whether a location is of this kind; a location need not be a path."""

    open: Callable[[str], Source]

    open_in_bundle: Callable[[Path, Path], Source] | None = None
    """Open a file with the `schema.sql` of its bundle, where the file itself cannot hold every key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkKind:
    """One format that tables can be written in."""

    name: str
    """What `--to` and `format=` take."""

    open: Callable[[Path, Schema], Sink]
    """Open a sink in a folder that exists and is empty."""

    loading: str
    """How to load the tables, for the README of a bundle; `{table}` is the file of one, without suffix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What became of a database on a server: the objects that were dropped for it, and what it goes without."""

    replaced: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


class ServerSink(Sink, Protocol):
    """A sink that loads a database on a server.

    Opening it connects and refuses a target that is not empty; entering the `with` block makes the tables. Leaving the
    block by an exception leaves the target as it was.
    """

    location: str
    """The URL without its password; for messages."""

    def complete(self) -> Loaded:
        """Make keys, indexes and the rest when all rows are written, and say what was done.

        Where the system has transactions that hold this, others see the database only when the `with` block ends well.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKind:
    """One system that tables can be loaded into, by URL."""

    name: str
    """What it is called: "PostgreSQL"."""

    schemes: tuple[str, ...]
    """What a URL of it begins with, in lower case and without `://`; the first is the name of the format."""

    open: Callable[[str, Schema, bool], ServerSink]
    """Open a sink at a URL; True: drop the objects that it makes anew."""


AnyKind = TypeVar("AnyKind", SourceKind, SinkKind, ServerKind)


def loaded(kinds: Iterable[AnyKind | str]) -> Iterator[AnyKind]:
    """The kinds of a registry in order. One that is named, as `module:NAME`, is loaded when its turn comes."""
    for kind in kinds:
        if isinstance(kind, str):
            module, _, name = kind.partition(":")
            yield getattr(import_module(module), name)
        else:
            yield kind


def refuse_full(location: str, names: Sequence[str]) -> None:
    """Refuse a target on a server that has something already: what it has is somebody's."""
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise TargetError(
            f"{location}: is not empty: it has {', '.join(names[:_SHOWN])}{more}. Choose an empty database, or replace "
            "the tables of the same names, and only those, with `--replace`."
        )


def read_head(location: str) -> bytes:
    """Give the first 16 bytes of a file; none if there is no file at the location."""
    if not Path(location).is_file():
        return b""
    try:
        with Path(location).open("rb") as file:
            return file.read(16)
    except OSError as error:
        raise SourceError(f"{location}: cannot be read ({error.strerror}).") from error


def arrow_schema(table: Table) -> pa.Schema:
    """Name the Arrow types that sources give and sinks take for a table."""
    return pa.schema([pa.field(c.name, c.type.arrow) for c in table.columns])


def read_whole(source: Source, name: str, columns: Iterable[Column]) -> pa.Table:
    """Read some columns of a table at once."""
    wanted = Table(name=name, columns=tuple(columns))
    return pa.Table.from_batches(source.read(wanted), schema=arrow_schema(wanted))
