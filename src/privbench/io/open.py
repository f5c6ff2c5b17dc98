"""All kinds of sources, and how a location is opened: by what is there, not by what it is called.

To add a source, write a module with a `SourceKind` and name it in `SOURCES`.
"""

from pathlib import Path

from privbench.errors import SourceError
from privbench.io.base import Format, Source, SourceKind
from privbench.io.duckdb_file import DUCKDB_SOURCE, DuckDBSource
from privbench.io.files import FOLDER_SOURCE, FolderSource, read_schema
from privbench.io.sqlite_file import SQLITE_SOURCE, SQLiteSource
from privbench.io.staging import is_laid_out


def open_source(location: str | Path) -> Source:
    """Open a database for reading, as the first kind of `SOURCES` that matches."""
    place = str(location)
    kind = next((kind for kind in SOURCES if kind.matches(place)), None)
    if kind is None:
        kinds = [kind.name for kind in SOURCES]
        what = "cannot be read as a source" if Path(place).exists() else "does not exist"
        raise SourceError(f"{location}: {what}. A source is {', '.join(kinds[:-1])} or {kinds[-1]}.")
    return kind.open(place)


def _open_bundle(location: str) -> Source:
    """Open a bundle; its `schema.sql` has every key, also those that the database in it cannot hold."""
    folder = Path(location)
    data = folder / "data"
    if (path := data / Format.DUCKDB.database).is_file():
        return DuckDBSource(path, schema=read_schema(folder / "schema.sql"))
    if (path := data / Format.SQLITE.database).is_file():
        return SQLiteSource(path)
    return FolderSource(folder, data=data)


BUNDLE_SOURCE = SourceKind(name="a bundle", matches=lambda location: is_laid_out(Path(location)), open=_open_bundle)

SOURCES: list[SourceKind] = [
    BUNDLE_SOURCE,
    FOLDER_SOURCE,
    DUCKDB_SOURCE,
    SQLITE_SOURCE,
]
"""The first that matches opens: one that matches less stands before one that matches more, as a bundle is a folder."""
