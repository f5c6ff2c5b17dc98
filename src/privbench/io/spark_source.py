"""Sources that Spark reads: folders of Parquet wherever Spark reaches, and tables of its catalogues.

A path or `s3a://bucket/shop` is a folder with one Parquet file, or one folder of such files, per table; `spark:shop`
are the tables of a database, `spark:pg.public` those of a catalogue that the settings of Spark name, such as one of
JDBC. Rows stay where Spark has them: `frame` gives them to workers, `read` brings those of small tables here.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from privbench.errors import SourceError
from privbench.io.base import BATCH_ROWS, Source, SourceKind
from privbench.io.cast import cast_batch
from privbench.io.files import FolderSource, arrow_column
from privbench.io.names import Names, table_name
from privbench.io.staging import is_laid_out, private_folder
from privbench.io.urls import shown
from privbench.schema.tables import Schema, Table
from privbench.schema.types import Kind, SqlType
from privbench.spark.jobs import spark_job
from privbench.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CATALOGUE = "spark:"
_PARQUET = ".parquet"
_GLOB = re.compile(r"([\\*?\[\]{}])")
_UUID_BYTES = 16
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark notes that a column of texts is declared as CHAR or VARCHAR."""


class SparkSource(Source):
    """Tables that Spark reads, as frames or as batches."""

    def __init__(self, location: str, *, session: "SparkSession | None" = None) -> None:
        self.location = shown(location)
        self._place = location
        self._session = session
        self._open = ExitStack()

    @property
    def session(self) -> "SparkSession":
        """The session that reads; started when it is first needed, if none was given."""
        if self._session is None:
            self._session = self._open.enter_context(spark_session(None, self._open.enter_context(private_folder())))
        return self._session

    def schema(self) -> Schema:
        """Tables and types; keys only where a `schema.sql` declares them."""
        if self._here is not None:
            return self._here.schema()
        with spark_job(self.session, f"looking at {self.location}"):
            return Schema(tables=tuple(self._table(name) for name in self._tables))

    def read(self, table: Table) -> Iterator[pa.RecordBatch]:
        """Give the columns of a table here, batch by batch: for tables that are not large."""
        if self._here is not None:
            yield from self._here.read(table)
            return
        with spark_job(self.session, f"reading {table.name}"):
            rows = self.frame(table).toArrow()
        for batch in rows.to_batches(BATCH_ROWS):
            yield cast_rows(batch, table)

    def frame(self, table: Table) -> "DataFrame":
        """The columns of a table in its order, named c0, c1 .., in the types in which Spark has them."""
        from pyspark.sql import functions as f  # noqa: PLC0415  heavy and optional

        spelled = Names(self._tables).find(table.name)
        if spelled is None:
            raise SourceError(f"{self.location}: has no table {table.name}. Tables there: {', '.join(self._tables)}.")
        with spark_job(self.session, f"looking at {table.name}"):
            stored = self._tables[spelled]()
            names = Names(stored.columns)
            found = {column.name: names.find(column.name) for column in table.columns}
            for column, name in found.items():
                if name is None:
                    raise SourceError(f"{table.name}.{column}: {self.location} has no such column.")
            padded = _padded(stored)
            columns = {name or "": f.col(_quoted(name or "")) for name in found.values()}
            plain = (f.rtrim(column) if name in padded else column for name, column in columns.items())
            return stored.select(*(column.alias(f"c{i}") for i, column in enumerate(plain)))

    def look_for(self, tables: Iterable[str]) -> None:
        """Open tables by name that a catalogue has and does not list: of JDBC these are views and divided tables."""
        if not self._place.startswith(CATALOGUE):
            return
        with spark_job(self.session, f"looking at {self.location}"):
            for name in tables:
                place = f"{_database(self.session, self._place)}.{_quoted(name)}"
                if Names(self._tables).find(name) is None and self.session.catalog.tableExists(place):
                    self._tables[name] = _CatalogueTable(self.session, place)

    def add(self, name: str, made: Callable[[], "DataFrame"]) -> None:
        """Have another table, which is made of others when it is opened."""
        self._tables[name] = made

    def rows(self, name: str) -> int:
        """Count the rows of a table."""
        with spark_job(self.session, f"counting {name}"):
            return self._tables[Names(self._tables).find(name) or name]().count()

    def close(self) -> None:
        """Stop Spark, if it was started for this source."""
        self._open.close()

    @cached_property
    def _here(self) -> FolderSource | None:
        """The same folder as one machine reads it, where that is possible: it may have a `schema.sql`."""
        folder = Path(self._place)
        if self._place.startswith(CATALOGUE) or not folder.is_dir():
            return None
        data = folder / "data" if is_laid_out(folder) else folder
        if any(path.is_dir() for path in data.iterdir()):
            return None
        source = FolderSource(folder, data=data)
        source.schema()
        return source

    @cached_property
    def _tables(self) -> dict[str, Callable[[], "DataFrame"]]:
        """How each table is opened, by its name."""
        if self._place.startswith(CATALOGUE):
            return _catalogue_tables(self.session, self._place)
        folder = Path(self._place)
        return _folder_tables(self.session, str(folder / "data") if is_laid_out(folder) else self._place)

    def _table(self, name: str) -> Table:
        from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415  heavy and optional

        fields = to_arrow_schema(self._tables[name]().schema, timezone="UTC")
        return Table(name=name, columns=tuple(arrow_column(field.name, field.type) for field in fields))


def cast_rows(batch: pa.RecordBatch, table: Table) -> pa.RecordBatch:
    """Rows of a frame in the types of the table; a value that its type cannot hold is a DataError."""
    columns = [_plain(array, column.type) for array, column in zip(batch.columns, table.columns, strict=True)]
    return cast_batch(pa.RecordBatch.from_arrays(columns, names=[c.name for c in table.columns]), table)


def _plain(array: pa.Array, to: SqlType) -> pa.Array:
    """Values as other sources give them: Spark has UUIDs as bytes, and times to the nanosecond."""
    if to.sql == "UUID" and pa.types.is_binary(array.type):
        return array.cast(pa.binary(_UUID_BYTES))
    return array.cast(to.arrow) if to.kind is Kind.TIME and pa.types.is_time(array.type) else array


# -- kinds of places ---------------------------------------------------------------------------------------------------


def _folder_tables(session: "SparkSession", folder: str) -> dict[str, Callable[[], "DataFrame"]]:
    """One file or folder of Parquet per table, wherever Hadoop's file systems reach."""
    with spark_job(session, f"looking at {folder}"):
        jvm: Any = session._jvm
        path = jvm.org.apache.hadoop.fs.Path(_address(folder))
        files = path.getFileSystem(session._jsc.hadoopConfiguration())
        if not files.exists(path):
            raise SourceError(f"{folder}: does not exist, as far as Spark can see.")
        found = [(s.getPath().getName(), s.getPath().toString(), s.isDirectory()) for s in files.listStatus(path)]
    tables = {
        table_name(name.removesuffix(_PARQUET)): _Opened(session, place)
        for name, place, is_folder in found
        if not name.startswith(("_", ".")) and (is_folder or name.lower().endswith(_PARQUET))
    }
    if not tables:
        raise SourceError(
            f"{folder}: has no Parquet. Spark reads folders with one Parquet file, or folder of such files, per table; "
            "CSV files and database files are read by `--engine local`."
        )
    return dict(tables)


def _catalogue_tables(session: "SparkSession", place: str) -> dict[str, Callable[[], "DataFrame"]]:
    """The tables of a database of the catalogue, such as `spark:shop` or `spark:iceberg.shop`."""
    with spark_job(session, f"looking at {place}"):
        database = _database(session, place)
        listed = session.sql(f"SHOW TABLES IN {database}").collect()
    names = [row["tableName"] for row in listed if not row["isTemporary"]]
    if not names:
        raise SourceError(f"{place}: Spark's catalogue has no tables there.")
    return {name: _CatalogueTable(session, f"{database}.{_quoted(name)}") for name in names}


def _database(session: "SparkSession", place: str) -> str:
    """The name of a database of the catalogue, quoted."""
    name = place.removeprefix(CATALOGUE) or session.catalog.currentDatabase()
    return ".".join(_quoted(part) for part in name.split("."))


def _padded(stored: "DataFrame") -> set[str]:
    """The columns of type CHAR, which some catalogues fill up with spaces that are no part of a value."""
    return {f.name for f in stored.schema if str(f.metadata.get(_DECLARED, "")).startswith("char(")}


@dataclass(frozen=True, slots=True)
class _Opened:
    """A Parquet file or a folder of such."""

    session: "SparkSession"
    path: str

    def __call__(self) -> "DataFrame":
        return self.session.read.parquet(_GLOB.sub(r"\\\1", self.path))


@dataclass(frozen=True, slots=True)
class _CatalogueTable:
    session: "SparkSession"
    name: str

    def __call__(self) -> "DataFrame":
        return self.session.table(self.name)


def _address(folder: str) -> str:
    """A path of this machine as a URI, since a default file system may be another."""
    return folder if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", folder) else Path(folder).absolute().as_uri()


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


SPARK_SOURCE = SourceKind(
    name="a database of Spark (spark:NAME)",
    matches=lambda location: location.startswith(CATALOGUE),
    open=SparkSource,
)
