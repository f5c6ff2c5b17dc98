"""Workloads made from a model, a bundle or a database: literals are those of rows that are there.

So no query comes out empty. What is made from real rows is private.

SAM style: one table, one to five columns of a random row, each compared with `=`, `<=` or `>=`. MSCN style: up to four
joins along foreign keys, every number of joins equally often, literals from rows that join; joins that would count
billions of rows are drawn again. By seed; of rows a sample is held, for joins the keys.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privbench.encode.predicate import Between, In, IsNull, Predicate
from privbench.errors import SourceError, SpecError
from privbench.generation.bundle import is_untouched_bundle
from privbench.generation.generate import generate as write_bundle
from privbench.io.base import Source
from privbench.io.file_kind import MODEL, kind_of
from privbench.io.given import Given, Located, path_of, source_of
from privbench.io.open import open_source
from privbench.io.staging import private_folder
from privbench.model.file import load_model
from privbench.model.model import Model
from privbench.schema.tables import ForeignKey, Schema, Table
from privbench.schema.types import Kind
from privbench.workload.literal import scalar_of_value
from privbench.workload.query import ColumnRef, Filter, Join, Literals, Query, Statement, TableRef, Workload
from privbench.workload.source_rows import JoinSizes, Rng, Row, Step, random_rows, rows_with_keys
from privbench.workload.statement import render

MOST_JOINS = 4
MOST_FILTERS = 5
SAMPLE_ROWS = 10_000
"""Rows of a table that queries start from."""
MANY_VALUES = 10
"""Columns with at least this many different values are also compared by `<=` and `>=`."""
MOST_JOINED = 1e9
"""Joins that have more rows than this before anything is filtered would take minutes to count: they are not asked."""
MOST_DRAWN = 2_000_000
"""Rows that a model draws to make queries from; a larger database is drawn at a smaller scale."""
LEAST_SCALE = 0.01
_WALKS = 500
"""How often joins are drawn before none that are small enough are thought to be there."""
_ROUNDS = 12
_TRIES = 8
"""Rows that a query may start from in each round of passes; the last that joins is taken."""


class Style(Enum):
    """Whose workloads the queries are like."""

    SAM = "sam"
    MSCN = "mscn"


@dataclass(slots=True)
class _Draft:
    """A query in the making: its first table, the joins to come, and a row of each table found so far."""

    first: str
    steps: list[Step]
    rows: dict[str, Row] = field(default_factory=dict)


def generate_workload(
    source: Given | Model,
    *,
    n: int = 400,
    seed: int = 0,
    style: Style | str = Style.MSCN,
    schema: str | os.PathLike[str] | None = None,
    null: Collection[str] = (),
    delimiter: str | None = None,
    ragged: str = "error",
) -> Workload:
    """Make n queries from a model, a bundle or a database; the same source and seed make the same queries.

    From a model literals are those of rows that it draws. Literals of a bundle whose files match its checksums
    count as the model's, too; those of any other database are real, and the workload is private. `style`: "mscn" has
    joins, "sam" has none. `write_workload` writes it to a file.

    Example::

        queries = privbench.generate_workload("shop.model", n=400, style="sam")
    """
    style = _style(style)
    if n < 1 or seed < 0:
        raise SpecError(f"{n} queries with seed {seed}: ask for at least one, and a seed that is not negative.")
    where = _located(source, schema=schema, null=null, delimiter=delimiter, ragged=ragged)
    with (
        _rows_of(where, seed=seed) as (located, literals),
        open_source(located) as opened,
        JoinSizes(opened, _steps(opened.schema())) as sizes,
    ):
        queries = _Generator(opened, np.random.default_rng(seed), sizes, where=opened.location).queries(n, style)
    statements = tuple(Statement(number=i, sql=render(q), query=q) for i, q in enumerate(queries, 1))
    return Workload(statements=statements, literals=literals)


def _style(style: Style | str) -> Style:
    try:
        return Style(style)
    except ValueError:
        raise SpecError(f"style {style!r}: it can be {' or '.join(repr(s.value) for s in Style)}.") from None


def _located(source: Given | Model, **words: Any) -> Located | Model:
    """A database that can be opened, or a model: given, or read from its file."""
    if isinstance(source, Model):
        return source
    located = source_of(source, **words)
    path = path_of(located)
    return load_model(path) if path is not None and kind_of(path) == MODEL else located


@contextmanager
def _rows_of(source: Located | Model, *, seed: int) -> Iterator[tuple[Located, Literals]]:
    """Where the rows are while the block lasts, and whose they are; a model draws some."""
    if not isinstance(source, Model):
        path = path_of(source)
        is_made = path is not None and is_untouched_bundle(Path(path))
        yield source, Literals.MODEL if is_made else Literals.REAL
        return
    rows = sum(table.rows for table in source.tables.values())
    with private_folder() as folder:
        scale = max(min(1.0, MOST_DRAWN / max(rows, 1.0)), LEAST_SCALE)
        write_bundle(source, folder / "bundle", seed=seed, scale=scale)
        yield folder / "bundle", Literals.MODEL


class _Generator:
    """Draws queries from one source."""

    def __init__(self, source: Source, rng: Rng, sizes: JoinSizes, *, where: str) -> None:
        self._source = source
        self._where = where
        self._rng = rng
        self._sizes = sizes
        self._schema = source.schema()
        self._samples = self._read_samples()
        self._ranged = {name: _ranged_columns(self._schema.table(name), rows) for name, rows in self._samples.items()}

    def queries(self, n: int, style: Style) -> list[Query]:
        if style is Style.SAM:
            return [self._query(draft) for draft in self._singles(n)]
        most = self._most_joins()
        wanted = [i % (most + 1) for i in range(n)]
        return [self._query(draft) for draft in self._joined([wanted[i] for i in self._rng.permutation(n)])]

    def _read_samples(self) -> Mapping[str, pa.Table]:
        drawn = {t.name: random_rows(self._source, t, SAMPLE_ROWS, self._rng) for t in self._schema.tables}
        samples = {name: rows for name, rows in drawn.items() if rows is not None}
        if not any(_columns(self._schema.table(name)) for name in samples):
            raise SourceError(f"{self._where}: has no row with a column to ask for.")
        return samples

    def _singles(self, n: int) -> list[_Draft]:
        names = [name for name in self._samples if _columns(self._schema.table(name))]
        return [self._start(names[int(i)], []) for i in self._rng.integers(len(names), size=n)]

    def _start(self, name: str, steps: list[Step]) -> _Draft:
        row = self._samples[name].slice(int(self._rng.integers(self._samples[name].num_rows)), 1).to_pylist()[0]
        return _Draft(name, steps, {name: row})

    def _joined(self, wanted: Sequence[int]) -> list[_Draft]:
        """A draft with a row of each of its tables for each wanted number of joins; those that fail start again."""
        done: dict[int, _Draft] = {}
        for _ in range(_ROUNDS):
            missing = [i for i in range(len(wanted)) if i not in done]
            if not missing:
                return [done[i] for i in range(len(wanted))]
            drafts = [(i, self._start(*self._walk(wanted[i]))) for i in missing for _ in range(_TRIES)]
            for place in range(MOST_JOINS):
                self._follow([d for _, d in drafts], place)
            done |= {i: d for i, d in drafts if len(d.rows) == wanted[i] + 1}
        raise SourceError(f"{self._where}: no rows were found that join along its foreign keys. Are the keys right?")

    def _most_joins(self) -> int:
        """The most joins, up to four, that some tree along foreign keys has which is neither empty nor too large."""
        most = _most_joins(self._schema, list(self._samples))
        if not most:
            return 0
        rng = np.random.default_rng(0)  # of its own: where all joins are small, the seed's draws are for queries alone
        joins_there = next((joins for joins in range(most, 0, -1) if self._small(joins, rng) is not None), None)
        if joins_there is None:
            raise self._no_joins("no joins")
        return joins_there

    def _walk(self, joins: int) -> tuple[str, list[Step]]:
        """A tree of `joins` joins that is neither empty nor too large."""
        tree = self._small(joins, self._rng)
        if tree is None:
            raise self._no_joins(f"no {joins} joins")
        return tree

    def _no_joins(self, what: str) -> SourceError:
        return SourceError(
            f"{self._where}: {what} along its foreign keys were found that have rows, and no more than "
            f"{MOST_JOINED:,.0f}. Are the keys right? `--style sam` asks for one table at a time."
        )

    def _small(self, joins: int, rng: Rng) -> tuple[str, list[Step]] | None:
        """A random tree of `joins` joins, drawn again while it is too large, or empty; None if all are."""
        drawn = (self._tree(joins, rng) for _ in range(_WALKS))
        return next(((a, s) for a, s in drawn if not s or 0 < self._sizes.rows(a, s) <= MOST_JOINED), None)

    def _tree(self, joins: int, rng: Rng) -> tuple[str, list[Step]]:
        """A tree of `joins` joins, grown from a random table; tables from which it cannot grow are passed over."""
        names = list(self._samples)
        for start in rng.permutation(len(names)):
            there, steps = [names[start]], list[Step]()
            while len(steps) < joins:
                ways = [s for s in _steps(self._schema) if s.start in there and s.end not in there]
                ways = [s for s in ways if s.end in self._samples]
                if not ways:
                    break
                steps.append(ways[int(rng.integers(len(ways)))])
                there.append(steps[-1].end)
            if len(steps) == joins and any(_columns(self._schema.table(t)) for t in there):
                return there[0], steps
        raise SourceError(f"{self._where}: no {joins} joins with a column to ask for.")

    def _follow(self, drafts: Sequence[_Draft], place: int) -> None:
        """Find the next table's row of each draft, one pass over each table."""
        asking: dict[tuple[str, tuple[str, ...]], list[tuple[_Draft, tuple[Any, ...]]]] = {}
        for draft in drafts:
            if place < len(draft.steps) and (step := draft.steps[place]).start in draft.rows:
                key = tuple(draft.rows[step.start][c] for c in step.start_columns)
                if None not in key:
                    asking.setdefault((step.end, step.end_columns), []).append((draft, key))
        for (name, columns), asked in sorted(asking.items(), key=lambda item: item[0]):
            keys = [key for _, key in asked]
            rows = rows_with_keys(self._source, self._schema.table(name), columns, keys, self._rng)
            for (draft, _), row in zip(asked, rows, strict=True):
                if row is not None:
                    draft.rows[name] = row

    def _query(self, draft: _Draft) -> Query:
        places = [(t, c) for t in draft.rows for c in _columns(self._schema.table(t))]
        count = int(self._rng.integers(1, min(MOST_FILTERS, len(places)) + 1))
        chosen = [places[i] for i in sorted(self._rng.permutation(len(places))[:count])]
        filters = [
            Filter(column=ColumnRef(alias=t, column=c), predicate=predicate)
            for t, c in chosen
            if (predicate := self._predicate(t, c, draft.rows[t][c])) is not None
        ]
        return Query(
            tables=tuple(TableRef(table=t, alias=t) for t in draft.rows),
            joins=tuple(
                Join(left=ColumnRef(alias=s.start, column=a), right=ColumnRef(alias=s.end, column=b))
                for s in draft.steps
                for a, b in zip(s.start_columns, s.end_columns, strict=True)
            ),
            filters=tuple(filters),
        )

    def _predicate(self, table: str, column: str, value: Any) -> Predicate | None:
        """A predicate that the value satisfies; none for a float that is no number."""
        if value is None:
            return IsNull()
        scalar = scalar_of_value(value)
        if scalar is None:
            return None
        kinds = 3 if column in self._ranged[table] else 1
        return (In(values=(scalar,)), Between(high=scalar), Between(low=scalar))[int(self._rng.integers(kinds))]


def _columns(table: Table) -> list[str]:
    """The columns that queries ask for: all but keys and types without literals."""
    return [c for c in table.attributes if table.column(c).type.kind is not Kind.OTHER]


def _ranged_columns(table: Table, rows: pa.Table) -> set[str]:
    numbers = [c for c in _columns(table) if table.column(c).type.kind not in (Kind.TEXT, Kind.BOOLEAN)]
    return {c for c in numbers if pc.count_distinct(rows.column(c)).as_py() >= MANY_VALUES}


def _steps(schema: Schema) -> list[Step]:
    """Every foreign key between two tables, in both directions."""
    keys = [(table.name, key) for table, key in schema.foreign_keys() if table.name != key.table]
    return [step for name, key in keys for step in _both_ways(name, key)]


def _both_ways(name: str, key: ForeignKey) -> tuple[Step, Step]:
    return (
        Step(start=name, end=key.table, start_columns=key.columns, end_columns=key.references),
        Step(start=key.table, end=name, start_columns=key.references, end_columns=key.columns),
    )


def _most_joins(schema: Schema, names: list[str]) -> int:
    """The most joins, up to four, that some tree along foreign keys has."""
    most = 0
    for name in names:
        reached = [name]
        for table in reached:
            ends = [s.end for s in _steps(schema) if s.start == table]
            reached += [e for e in dict.fromkeys(ends) if e in names and e not in reached]
        most = max(most, len(reached) - 1)
    return min(most, MOST_JOINS)
