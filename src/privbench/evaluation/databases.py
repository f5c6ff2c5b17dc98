"""Both databases in one DuckDB file, so that every metric is a query or a pass over codes.

Rows stream from any source into tables of the schemas `real` and `synthetic` (and `floor`, a resample of the
real one), each with row numbers 0..n-1. The file lies in a private folder that goes away at the end; DuckDB keeps to
its memory limit and to this file: a statement of a workload reads and writes nothing else.

Of a table with very many rows a uniform sample, drawn by seed, is compared column by column, so that time and memory
no longer grow with the table. Row counts, children per parent and answers of queries are of all rows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.errors import PrivBenchError, first_line
from privbench.evaluation.result import Skip
from privbench.io.base import Source, arrow_schema
from privbench.io.given import Given
from privbench.io.names import find_name, quote_sql
from privbench.io.open import open_source
from privbench.io.staging import private_folder
from privbench.methods.method import Progress
from privbench.schema.tables import Schema, Table
from privbench.schema.types import Kind

MEMORY = "1GB"
"""What DuckDB may hold before it spills to the folder."""

Positions = NDArray[np.signedinteger]
"""Numbers of rows; -1 for none."""


class Side(Enum):
    """Which of the databases; the value is its schema in DuckDB."""

    REAL = "real"
    SYNTHETIC = "synthetic"
    FLOOR = "floor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A table that can be queried, without the columns whose types cannot be compared."""

    table: Table
    rows: int


class Database:
    """The tables of all sides. `tables[side]` has those that could be read, `skips` says why others are not there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tables: dict[Side, dict[str, Loaded]] = {side: {} for side in Side}
        self.schemas: dict[Side, Schema] = {}
        self.skips: list[Skip] = []
        self.connection = duckdb.connect(
            str(folder / "evaluate.duckdb"),
            config={
                "memory_limit": MEMORY,
                "temp_directory": str(folder / "spill"),
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
            },
        )
        self.connection.execute("SET enable_external_access = false")
        for side in Side:
            self.connection.execute(f"CREATE SCHEMA {side.value}")

    def load(self, side: Side, source: Source, progress: Progress) -> None:
        """Read all tables of a source."""
        self.schemas[side] = schema = source.schema()
        for at, table in enumerate(schema.tables):
            progress(f"reading {side.value} {table.name}", at, len(schema.tables))
            self._load(side, source, table)
        self.connection.execute("CHECKPOINT")  # compressed tables are scanned twice as fast
        self.release()

    def release(self) -> None:
        """Give back the memory that reading has left in the allocators."""
        self.connection.execute(f"SET memory_limit = '{MEMORY}'")  # even the same limit makes DuckDB do so
        pa.default_memory_pool().release_unused()

    def skip(self, what: str, reason: str) -> None:
        """Note what is left out of the evaluation."""
        self.skips.append(Skip(what=what, reason=reason))

    def find(self, side: Side, name: str) -> Loaded | None:
        """A table by its name, whose case may differ between the sides as it may in SQL."""
        spelled = find_name(name, self.tables[side])
        return None if spelled is None else self.tables[side][spelled]

    def size(self, side: Side, name: str) -> int:
        """How many rows a table has; 0 if it is not there."""
        loaded = self.find(side, name)
        return 0 if loaded is None else loaded.rows

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Run a query of ours and give its rows."""
        return self.connection.execute(query).fetchall()

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def _load(self, side: Side, source: Source, table: Table) -> None:
        kept = tuple(c for c in table.columns if c.type.kind is not Kind.OTHER)
        for column in table.columns:
            if column.type.kind is Kind.OTHER:
                reason = f"{side.value}: values of type {column.type.sql} are not compared"
                self.skip(f"{table.name}.{column.name}", reason)
        if not kept:
            return
        wanted = replace(table, columns=kept, primary_key=(), foreign_keys=(), uniques=(), indexes=())
        reader = pa.RecordBatchReader.from_batches(arrow_schema(wanted), source.read(wanted))
        name = qualified(side, table.name)
        try:
            self.connection.register("incoming", reader)
            self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")  # noqa: S608
        except (duckdb.Error, pa.ArrowException, PrivBenchError) as error:
            self.skip(table.name, f"{side.value}: cannot be read ({first_line(error)})")
            return
        finally:
            self.connection.unregister("incoming")
        [(count,)] = self.rows(f"SELECT count(*) FROM {name}")  # noqa: S608
        self.tables[side][table.name] = Loaded(table=wanted, rows=int(count))


@contextmanager
def open_pair(real: Given, synthetic: Given, progress: Progress) -> Iterator[Database]:
    """Load both databases; what is kept on disk is removed at the end."""
    with (
        private_folder() as folder,
        open_source(real) as real_source,
        open_source(synthetic) as synthetic_source,
    ):
        database = Database(folder)
        try:
            database.load(Side.REAL, real_source, progress)
            database.load(Side.SYNTHETIC, synthetic_source, progress)
            yield database
        finally:
            database.close()


def qualified(side: Side, table: str) -> str:
    """The quoted name of a table with its schema."""
    return f"{side.value}.{quote_sql(table)}"


def draw_rows(rows: int, *, most: int, seed: int) -> Positions | None:
    """The numbers of the rows to compare if there are more than `most`, ascending; None for all of them.

    A row drawn twice is there once. Tables of one size get the same numbers, so a database is no distance from itself.
    """
    if rows <= most:
        return None
    drawn = np.zeros(rows, np.bool_)
    drawn[np.random.default_rng([seed, rows]).integers(0, rows, most)] = True
    return np.flatnonzero(drawn)


def sample_table(database: Database, side: Side, name: str, drawn: Positions | None) -> str:
    """The quoted name of a table with the drawn rows alone, in their order; the table's own if all are compared."""
    if drawn is None:
        return qualified(side, name)
    database.connection.register("drawn", pa.table({"source": drawn}))
    database.connection.execute(
        f"CREATE OR REPLACE TABLE coding.{side.value} AS SELECT t.* FROM drawn "  # noqa: S608
        f"JOIN {qualified(side, name)} t ON t.rowid = drawn.source ORDER BY drawn.source"
    )
    database.connection.unregister("drawn")
    return f"coding.{side.value}"


def places(positions: Positions, drawn: Positions | None) -> Positions:
    """Where rows are among the drawn ones; -1 for those that were not drawn or are -1 already.

    >>> places(np.array([7, 3, -1, 5]), np.array([3, 4, 7]))
    array([ 2,  0, -1, -1])
    """
    if drawn is None:
        return positions
    if not len(drawn):
        return np.full(len(positions), -1)
    at = np.minimum(np.searchsorted(drawn, positions), len(drawn) - 1)
    return np.where(drawn[at] == positions, at, -1)
