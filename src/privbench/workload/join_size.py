"""How many rows joins along foreign keys have before anything is filtered: exact, from the keys alone.

Two large tables that meet in a small one make joins of billions of rows, on which a workload would run for minutes.
Keys are read once; counts by key then go from the leaves of a tree of joins to its first table, and no join is made.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import duckdb
import pyarrow as pa

from privbench.io.base import Source, arrow_schema
from privbench.schema.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A foreign key that a join follows, from the table that is already there."""

    start: str
    end: str
    start_columns: tuple[str, ...]
    end_columns: tuple[str, ...]

    def columns_of(self, table: str) -> tuple[str, ...]:
        """The columns by which it names, or finds, rows of a table; none if it does not touch it."""
        return {self.start: self.start_columns, self.end: self.end_columns}.get(table, ())


class JoinSizes:
    """The sizes of trees of joins, each worked out once; `steps` are all that there may be."""

    def __init__(self, source: Source, steps: Sequence[Step]) -> None:
        self._source = source
        self._schema = source.schema()
        self._steps = steps
        self._columns: dict[str, list[str]] = {}
        self._known: dict[tuple[str, frozenset[Step]], float] = {}
        self._counts = duckdb.connect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._counts.close()

    def rows(self, first: str, steps: Sequence[Step]) -> float:
        """Count the rows of a tree of joins."""
        key = (first, frozenset(steps))
        if key not in self._known:
            for name in (first, *(step.end for step in steps)):
                self._read(name)
            [(rows,)] = self._counts.execute(self._counted(first, (), steps)).fetchall()
            self._known[key] = float(rows or 0)
        return self._known[key]

    def _counted(self, name: str, by: Sequence[str], steps: Sequence[Step]) -> str:
        """SQL that counts the joined rows of a table and of all that hangs on it, by some of its columns."""
        below = [step for step in steps if step.start == name]
        joins = [
            f" JOIN ({self._counted(step.end, step.end_columns, steps)}) AS j{at} ON "
            + " AND ".join(f"t.{self._name(name, c)} = j{at}.k{i}" for i, c in enumerate(step.start_columns))
            for at, step in enumerate(below)
        ]
        keys = [f"t.{self._name(name, c)}" for c in by]
        each = " * ".join(["1::DOUBLE", *(f"j{at}.n" for at in range(len(below)))])
        chosen = ", ".join([*(f"{key} AS k{i}" for i, key in enumerate(keys)), f"SUM({each}) AS n"])
        grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {chosen} FROM {self._name(name)} AS t{''.join(joins)}{grouped}"  # noqa: S608 (names are made here)

    def _read(self, name: str) -> None:
        """Read the key columns of a table, unless they are there."""
        if name in self._columns:
            return
        wanted = {column for step in self._steps for column in step.columns_of(name)}
        stored = self._schema.table(name)
        keys = Table(name=name, columns=tuple(c for c in stored.columns if c.name in wanted))
        self._columns[name] = [c.name for c in keys.columns]
        kinds = [field.type for field in arrow_schema(keys)]
        plain = pa.schema([pa.field(f"c{i}", kind) for i, kind in enumerate(kinds)])
        batches = pa.RecordBatchReader.from_batches(plain, self._renamed(keys, plain))
        self._counts.register("batches", batches)
        self._counts.execute(f"CREATE TABLE {self._name(name)} AS FROM batches")
        self._counts.unregister("batches")

    def _renamed(self, table: Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in self._source.read(table):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    def _name(self, table: str, column: str | None = None) -> str:
        """What a table or a column of it is called here, where no name needs quotes."""
        if column is not None:
            return f"c{self._columns[table].index(column)}"
        return f"t{list(self._columns).index(table)}"
