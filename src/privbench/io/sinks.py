"""All formats that tables can be written in.

To add one, write a module with a `SinkKind` and name it in `SINKS`. The folder of a sink is one that
`staging.staged` gave, so a sink need not undo anything: when it fails the whole folder goes.
"""

from pathlib import Path

from privbench.errors import SpecError
from privbench.io.base import Sink, SinkKind
from privbench.io.duckdb_file import DUCKDB_SINK
from privbench.io.files import CSV_SINK, PARQUET_SINK
from privbench.io.sqlite_file import SQLITE_SINK
from privbench.io.staging import target_error
from privbench.schema.choices import closest
from privbench.schema.tables import Schema

SINKS: list[SinkKind] = [
    PARQUET_SINK,
    CSV_SINK,
    DUCKDB_SINK,
    SQLITE_SINK,
]


def sink_kind(name: str) -> SinkKind:
    """Find a format by its name.

    >>> sink_kind("duckdb").name
    'duckdb'
    """
    for kind in SINKS:
        if kind.name == name:
            return kind
    raise SpecError(f"format {name!r}: there is no such format. {closest(name, [kind.name for kind in SINKS])}")


def open_sink(folder: Path, *, schema: Schema, format: str) -> Sink:  # noqa: A002
    """Open a sink for the tables of a schema; the folder is made if it is not there."""
    kind = sink_kind(format)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise target_error(folder.name, error) from error
    return kind.open(folder, schema)
