"""What workloads are generated from: random rows of a source, rows that given keys reference, and the sizes of joins.

Batches stream by; only picked rows are kept. Everything is a function of the source and the seed. Two large tables
that meet in a small one make joins of billions of rows, on which a workload would run for minutes: the size of a tree
of joins is counted exactly from its keys, from the leaves to its first table, and no join is made.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.io.base import Source, arrow_schema
from privbench.schema.tables import Table

Rng = np.random.Generator
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A foreign key that a join follows, from the table that is already there."""

    start: str
    end: str
    start_columns: tuple[str, ...]
    end_columns: tuple[str, ...]

    def columns_of(self, table: str) -> tuple[str, ...]:
        """Its key columns in a table; none if it does not touch that table."""
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


def random_rows(source: Source, table: Table, most: int, rng: Rng) -> pa.Table | None:
    """Draw up to `most` rows of a table, each as likely as any other, in random order; None if it has no rows."""
    kept: pa.Table | None = None
    ranks = np.zeros(0)
    for batch in source.read(table):
        ranks = np.concatenate([ranks, rng.random(batch.num_rows)])
        new = pa.Table.from_batches([batch])
        kept = new if kept is None else pa.concat_tables([kept, new])
        order = np.argsort(ranks, kind="stable")[:most]
        kept, ranks = kept.take(pa.array(order)), ranks[order]
    return kept if kept is not None and kept.num_rows else None


def rows_with_keys(
    source: Source, table: Table, columns: Sequence[str], wanted: Sequence[tuple[Any, ...]], rng: Rng
) -> list[Row | None]:
    """Find a row for each wanted key, drawn from those that have it; None where there is none."""
    keys = list(dict.fromkeys(wanted))
    sets = [pa.array([key[i] for key in keys]).unique() for i in range(len(columns))]
    sets = [s.cast(table.column(c).type.arrow, safe=False) for s, c in zip(sets, columns, strict=True)]
    packed, inverse = np.unique(
        _packed([pa.array([k[i] for k in keys]) for i in range(len(columns))], sets), return_inverse=True
    )
    best = np.full(len(packed), np.inf)
    rows: list[Row | None] = [None] * len(packed)
    for batch in source.read(table):
        codes = _packed([batch.column(c) for c in columns], sets)
        ranks = rng.random(batch.num_rows)
        at = np.searchsorted(packed, codes)
        at[at == len(packed)] = 0
        hits = np.flatnonzero((codes >= 0) & (packed[at] == codes))
        order = hits[np.lexsort((ranks[hits], at[hits]))]
        first = order[np.unique(at[order], return_index=True)[1]]
        better = first[ranks[first] < best[at[first]]]
        for place, row in zip(at[better].tolist(), batch.take(pa.array(better)).to_pylist(), strict=True):
            rows[place] = row
        best[at[better]] = ranks[better]
    numbers = {key: int(inverse[i]) for i, key in enumerate(keys)}
    return [rows[numbers[key]] for key in wanted]


def _packed(columns: Sequence[pa.Array], sets: Sequence[pa.Array]) -> NDArray[np.int64]:
    """Number the rows by which of the listed values each column holds; -1 where one holds another value or NULL."""
    codes = np.zeros(len(columns[0]), np.int64)
    missing = np.zeros(len(columns[0]), bool)
    for column, values in zip(columns, sets, strict=True):
        places = pc.index_in(column.cast(values.type, safe=False), value_set=values)
        missing |= ~pc.and_(places.is_valid(), column.is_valid()).to_numpy(zero_copy_only=False)
        codes = codes * (len(values) + 1) + places.fill_null(0).to_numpy(zero_copy_only=False)
    return np.where(missing, -1, codes)
