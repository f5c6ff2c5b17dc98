"""All formats that tables can be written in, and all systems that they can be loaded into.

To add one, write a module with a `SinkKind` or a `ServerKind` and name it in `SINKS` or `SERVERS`; it is loaded when it
is asked for. The folder of a sink
is one that `staging.staged` gave, so a sink need not undo anything: when it fails the whole folder goes. The sink of a
server undoes what it did, by a transaction where the system can.
"""

from pathlib import Path

from privbench.errors import SpecError
from privbench.io.base import ServerKind, ServerSink, Sink, SinkKind, loaded
from privbench.io.staging import target_error
from privbench.io.urls import scheme_of
from privbench.schema.choices import closest
from privbench.schema.tables import Schema

SINKS: list[SinkKind | str] = [
    "privbench.io.files:PARQUET_SINK",
    "privbench.io.files:CSV_SINK",
    "privbench.io.duckdb_file:DUCKDB_SINK",
    "privbench.io.sqlite_file:SQLITE_SINK",
]


SERVERS: list[ServerKind | str] = [
    "privbench.io.postgres.sink:POSTGRES_SERVER",
    "privbench.io.mysql.sink:MYSQL_SERVER",
]


def server_kind(to: str) -> ServerKind | None:
    """Find the system of a URL; None for the name of a format. A URL of no system of ours is a SpecError.

    >>> server_kind("parquet") is None
    True
    """
    scheme = scheme_of(to)
    if scheme is None:
        return None
    for kind in loaded(SERVERS):
        if scheme in kind.schemes:
            return kind
    schemes = [f"{scheme}://" for kind in loaded(SERVERS) for scheme in kind.schemes]
    raise SpecError(f"--to {scheme}://..: there is no such system. {closest(scheme, schemes)}")


def server_of(form: str) -> ServerKind | None:
    """Find a system by the name that it has as a format in a manifest.

    >>> server_of("postgresql").name
    'PostgreSQL'
    """
    if any(kind.name == form for kind in loaded(SINKS)):
        return None
    return next((kind for kind in loaded(SERVERS) if kind.schemes[0] == form), None)


def open_server(url: str, *, schema: Schema, replace: bool) -> ServerSink:
    """Open a sink for the tables of a schema on a server; see `ServerSink`."""
    kind = server_kind(url)
    if kind is None:
        raise SpecError(f"--to {url}: is no URL of a database.")
    return kind.open(url, schema, replace)


def sink_kind(name: str) -> SinkKind:
    """Find a format by its name.

    >>> sink_kind("duckdb").name
    'duckdb'
    """
    for kind in loaded(SINKS):
        if kind.name == name:
            return kind
    raise SpecError(f"format {name!r}: there is no such format. {closest(name, [kind.name for kind in loaded(SINKS)])}")


def open_sink(folder: Path, *, schema: Schema, format: str) -> Sink:  # noqa: A002
    """Open a sink for the tables of a schema; the folder is made if it is not there."""
    kind = sink_kind(format)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise target_error(folder.name, error) from error
    return kind.open(folder, schema)
