"""All kinds of sources, and how a location is opened: by what is there, not by what it is called.

To add a source, write a module with a `SourceKind` and name it in `SOURCES`; it is loaded when its turn comes.
"""

import os
from pathlib import Path

from privbench.errors import SourceError
from privbench.io.base import Source, SourceKind, loaded
from privbench.io.files import FOLDER_SOURCE, FolderSource
from privbench.io.given import CsvFolder, Given, source_of
from privbench.io.memory import MemorySource, Tables
from privbench.io.staging import is_laid_out
from privbench.io.urls import shown


def open_source(location: Given) -> Source:
    """Open a database for reading, as the first kind of `SOURCES` that matches; or tables in memory."""
    source = source_of(location)
    if isinstance(source, Tables):
        return MemorySource(source)
    if isinstance(source, CsvFolder):
        return _open_csv(source)
    place = os.fspath(source)
    kind = next((kind for kind in loaded(SOURCES) if kind.matches(place)), None)
    if kind is None:
        kinds = [kind.name for kind in loaded(SOURCES)]
        what = "cannot be read as a source" if Path(place).exists() else "does not exist"
        is_spec = Path(place).suffix in (".yaml", ".yml")
        hint = " A spec is what `privbench fit` reads." if is_spec and Path(place).exists() else ""
        raise SourceError(f"{shown(place)}: {what}. A source is {', '.join(kinds[:-1])} or {kinds[-1]}.{hint}")
    return kind.open(place)


def _open_csv(source: CsvFolder) -> Source:
    if not FOLDER_SOURCE.matches(source.path):
        open_source(source.path).close()  # else it says what is wrong with the place
        raise SourceError(
            f"{source}: is no folder, and `--null`, `--delimiter` and `--ragged` are for folders with CSV files."
        )
    data = Path(source.path, "data") if BUNDLE_SOURCE.matches(source.path) else None
    return FolderSource(Path(source.path), data=data, csv=source.options)


def _open_bundle(location: str) -> Source:
    """Open a bundle: the one database file in it, if a kind of source matches that, else a file per table."""
    folder = Path(location)
    data = folder / "data"
    files = [path for path in data.iterdir() if path.is_file()]
    kind = next((kind for kind in loaded(SOURCES) if kind.matches(str(files[0]))), None) if len(files) == 1 else None
    if kind is None:
        return FolderSource(folder, data=data)
    return kind.open_in_bundle(files[0], folder / "schema.sql") if kind.open_in_bundle else kind.open(str(files[0]))


BUNDLE_SOURCE = SourceKind(name="a bundle", matches=lambda location: is_laid_out(Path(location)), open=_open_bundle)

SOURCES: list[SourceKind | str] = [
    BUNDLE_SOURCE,
    FOLDER_SOURCE,
    "privbench.io.duckdb_file:DUCKDB_SOURCE",
    "privbench.io.sqlite_file:SQLITE_SOURCE",
    "privbench.io.mysql.source:MYSQL_SOURCE",
    "privbench.io.postgres.source:POSTGRES_SOURCE",
    "privbench.io.spark_source:SPARK_SOURCE",
]
"""The first that matches opens: one that matches less stands before one that matches more, as a bundle is a folder."""
