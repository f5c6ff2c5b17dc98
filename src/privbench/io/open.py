"""Find out what a location is and open it: by what the file holds, not by what it is called."""

from pathlib import Path

from privbench.errors import SourceError
from privbench.io.base import Format, Source
from privbench.io.duckdb_file import DuckDBSource
from privbench.io.files import FolderSource, read_schema
from privbench.io.sqlite_file import SQLiteSource
from privbench.io.staging import is_laid_out

_KINDS = "a folder with one Parquet or CSV file per table, a DuckDB file or a SQLite file"


def open_source(location: str | Path) -> Source:
    """Open a folder, a bundle, a DuckDB file or a SQLite file for reading."""
    path = Path(location)
    if not path.exists():
        raise SourceError(f"{location}: does not exist. A source is {_KINDS}.")
    if path.is_dir():
        return _open_bundle(path) if is_laid_out(path) else FolderSource(path)
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise SourceError(f"{location}: cannot be read ({error.strerror}).") from error
    if head == b"SQLite format 3\0":
        return SQLiteSource(path)
    if head[8:12] == b"DUCK":
        return DuckDBSource(path)
    raise SourceError(f"{location}: is neither a DuckDB nor a SQLite file. A source is {_KINDS}.")


def _open_bundle(folder: Path) -> Source:
    """Open a bundle; its `schema.sql` has every key, also those that the database in it cannot hold."""
    data = folder / "data"
    if (path := data / Format.DUCKDB.database).is_file():
        return DuckDBSource(path, schema=read_schema(folder / "schema.sql"))
    if (path := data / Format.SQLITE.database).is_file():
        return SQLiteSource(path)
    return FolderSource(folder, data=data)
