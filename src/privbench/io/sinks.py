"""The door to all sinks.

The folder is one that `staging.staged` gave, so a sink need not undo anything: when it fails the whole folder
goes.
"""

from pathlib import Path

from privbench.io.base import Format, Sink
from privbench.io.duckdb_file import DuckDBSink
from privbench.io.files import FileSink
from privbench.io.sqlite_file import SQLiteSink
from privbench.io.staging import target_error
from privbench.schema.tables import Schema


def open_sink(folder: Path, *, schema: Schema, format: Format) -> Sink:  # noqa: A002
    """Open a sink for the tables of a schema; the folder is made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise target_error(folder.name, error) from error
    match format:
        case Format.DUCKDB:
            return DuckDBSink(folder / format.database, schema=schema)
        case Format.SQLITE:
            return SQLiteSink(folder / format.database, schema=schema)
        case _:
            return FileSink(folder, schema=schema, format=format)
