"""Counts of tree-shaped joins without making them, and join queries drawn around rows of a database.

Keys are resolved to positions of rows once. A count passes one weight per row along the tree of the join, so that
joins of billions of rows cost a few passes over their tables. Numbers are floats with NaN for NULL; text is coded by
the words of the real database, -1 for others.
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.io.base import read_whole
from privbench.io.open import open_source
from privbench.schema.tables import ForeignKey, Schema
from privbench.schema.types import Kind

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]
Link = tuple[str, ForeignKey]
"""A table, and a key of it."""
Words = Mapping[tuple[str, str], Sequence[str]]
"""The values of text columns, sorted."""

COMPARISONS = {"=": operator.eq, "<=": operator.le, ">=": operator.ge}
FEW = 40
"""A column of up to this many values is also asked for equality."""
MANY_WORDS = 300
"""Text of more values is not asked for."""
WIDE = 0.7
"""The share of ranges that are the wider of two, as most of those that people ask for."""
COMMON = 0.01
"""A number is asked for by equality if at least this share of the rows has it."""
NARROWEST = 0.001
"""A range keeps at least this share of the rows: it does not single out one of them."""
TRIES = 200


@dataclass(frozen=True, slots=True)
class Filter:
    """A comparison of a column with a literal."""

    table: str
    column: str
    comparison: str
    literal: float


@dataclass(frozen=True, slots=True)
class Query:
    """A join along some keys, which make a tree, of the rows that meet all filters."""

    tables: tuple[str, ...]
    links: tuple[Link, ...]
    filters: tuple[Filter, ...]


class Tables:
    """The columns of a database as numbers, and for each key the position of the row that it references, or -1."""

    def __init__(
        self,
        schema: Schema,
        columns: Mapping[str, Mapping[str, Floats]],
        links: Mapping[Link, Positions],
        sizes: Mapping[str, int],
    ) -> None:
        self.schema, self.columns, self.links, self.sizes = schema, columns, links, sizes

    def count(self, query: Query) -> float:
        """How many rows the join has."""
        return float(self._weights(query, query.tables[0], None).sum())

    def _weights(self, query: Query, table: str, origin: Link | None) -> Floats:
        """How many rows of the join of everything beyond `origin` each row of a table has."""
        weights = self.meet(table, [f for f in query.filters if f.table == table]).astype(np.float64)
        for link in query.links:
            child, key = link
            if link == origin or table not in (child, key.table):
                continue
            if child == table:
                beyond = self._weights(query, key.table, link)
                weights *= np.append(beyond, 0.0)[self.links[link]]
            else:
                weights *= self.below(link, self._weights(query, child, link))
        return weights

    def meet(self, table: str, filters: Sequence[Filter]) -> NDArray[np.bool_]:
        """Which rows meet all filters."""
        found = np.ones(self.sizes[table], np.bool_)
        for given in filters:
            found &= COMPARISONS[given.comparison](self.columns[table][given.column], given.literal)
        return found

    def below(self, link: Link, weights: Floats | None = None) -> Floats:
        """The sum of weights, or the number, of the rows that reference each row."""
        at = self.links[link]
        there = at >= 0
        chosen = None if weights is None else weights[there]
        return np.bincount(at[there], chosen, minlength=self.sizes[link[1].table]).astype(np.float64)


def read_tables(location: Path, schema: Schema, words: Words | None = None) -> tuple[Tables, Words]:
    """Read a database; without `words`, those of text are its own."""
    columns: dict[str, dict[str, Floats]] = {}
    raw: dict[str, pa.Table] = {}
    known: dict[tuple[str, str], Sequence[str]] = dict(words or {})
    with open_source(location) as source:
        published = source.schema()
        for table in schema.tables:
            raw[table.name] = read_whole(source, table.name, published.table(table.name).columns)
            columns[table.name] = {}
            for column in table.columns:
                values, place = raw[table.name][column.name].combine_chunks(), (table.name, column.name)
                if column.type.kind is Kind.TEXT:
                    if words is None:
                        known[place] = sorted(v for v in values.unique().to_pylist() if v is not None)
                    columns[table.name][column.name] = _coded(values, known[place])
                else:
                    columns[table.name][column.name] = _numbers(values)
    links = {(t.name, key): _resolved(raw[t.name], raw[key.table], key) for t, key in schema.foreign_keys()}
    return Tables(schema, columns, links, {name: table.num_rows for name, table in raw.items()}), known


def _coded(values: pa.Array, words: Sequence[str]) -> Floats:
    codes = {word: code for code, word in enumerate(words)}
    return np.array([np.nan if v is None else codes.get(v, -1) for v in values.to_pylist()], np.float64)


def _numbers(values: pa.Array) -> Floats:
    kind = values.type
    if pa.types.is_time(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        values = values.cast(pa.int64())
    elif pa.types.is_date(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)


def _resolved(child: pa.Table, parent: pa.Table, key: ForeignKey) -> Positions:
    """The position of the referenced row, -1 where a part of the key is NULL or there is none."""
    rows = child.num_rows
    codes = np.zeros(rows + parent.num_rows, np.int64)
    missing = np.zeros(rows, np.bool_)
    for column, reference in zip(key.columns, key.references, strict=True):
        ours, theirs = child[column].combine_chunks(), parent[reference].combine_chunks()
        missing |= ours.is_null().to_numpy(zero_copy_only=False)
        both = pa.concat_arrays([ours.cast(theirs.type), theirs]).dictionary_encode()
        part = both.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        codes = np.unique(codes * (len(both.dictionary) + 1) + part, return_inverse=True)[1]
    at = np.full(codes.max(initial=0) + 1, -1)
    at[codes[rows:]] = np.arange(parent.num_rows)
    return np.where(missing, -1, at[codes[:rows]])


def draw_subplans(
    tables: Tables, *, joins: int, count: int, private: Sequence[str], rng: np.random.Generator, filters: int = 4
) -> list[Query]:
    """The sub-plans of queries of up to so many joins, about `count` of them, all different.

    Literals of a query are those of one row of its join, reached from a random one. A sub-plan is the query over some
    of its tables that it joins: an optimiser has to estimate each of them.
    """
    found: dict[Query, None] = {}
    drawer = _Drawer(tables, private, rng)
    for _ in range(TRIES * count):
        if len(found) >= count:
            break
        query = drawer.query(int(rng.integers(1, joins + 1)), int(rng.integers(0, filters + 1)))
        if query is not None:
            found.update(dict.fromkeys(_subplans(query)))
    return list(found)


def _subplans(query: Query) -> Iterator[Query]:
    for size in range(1, len(query.tables) + 1):
        for tables in combinations(query.tables, size):
            links = tuple(link for link in query.links if link[0] in tables and link[1].table in tables)
            if len(links) == size - 1:  # of a tree: these are joined
                yield Query(tables, links, tuple(f for f in query.filters if f.table in tables))


class _Drawer:
    """Draws queries of a database."""

    def __init__(self, tables: Tables, private: Sequence[str], rng: np.random.Generator) -> None:
        self._tables, self._private, self._rng = tables, list(private), rng
        self._askable = {table: dict(self._ways(table)) for table in tables.sizes}
        self._children: dict[Link, tuple[Positions, Positions]] = {}

    def query(self, joins: int, filters: int) -> Query | None:
        """A query; None if the walk ended early."""
        start = str(self._rng.choice(self._private))
        at = {start: int(self._rng.integers(self._tables.sizes[start]))}
        links: list[Link] = []
        for _ in range(joins):
            link = self._step(at)
            if link is None:
                return None
            links.append(link)
        return Query(tuple(sorted(at)), tuple(sorted(links, key=str)), self._filters(at, filters))

    def _step(self, at: dict[str, int]) -> Link | None:
        """Reach one more table by a key."""
        ways = [k for k in self._tables.links if (k[0] in at) != (k[1].table in at)]
        if not ways:
            return None
        link = ways[self._rng.integers(len(ways))]
        child, key = link
        if child in at:
            row = int(self._tables.links[link][at[child]])
            at[key.table] = row
            return link if row >= 0 else None
        order, firsts = self._rows_below(link)
        first, end = firsts[at[key.table]], firsts[at[key.table] + 1]
        if first == end:
            return None
        at[child] = int(order[self._rng.integers(first, end)])
        return link

    def _rows_below(self, link: Link) -> tuple[Positions, Positions]:
        """The rows by what they reference, and where those of each referenced row begin."""
        if link not in self._children:
            parents = self._tables.links[link]
            order = np.argsort(parents, kind="stable")
            edges = np.arange(self._tables.sizes[link[1].table] + 1)
            self._children[link] = order, np.searchsorted(parents[order], edges)
        return self._children[link]

    def _filters(self, at: Mapping[str, int], count: int) -> tuple[Filter, ...]:
        places = [
            (table, column)
            for table, row in sorted(at.items())
            for column in self._askable[table]
            if not np.isnan(self._tables.columns[table][column][row])
        ]
        chosen = sorted(self._rng.permutation(len(places))[:count].tolist())
        found = []
        for table, column in (places[at] for at in chosen):
            ways, literal = self._askable[table][column], float(self._tables.columns[table][column][at[table]])
            comparison = str(self._rng.choice(ways))
            if comparison == "=" and self._share(table, column, "=", literal) < COMMON:
                comparison = str(self._rng.choice(ways[1:] or ways))
            if comparison != "=" and (
                self._rng.random() < WIDE or self._share(table, column, comparison, literal) < NARROWEST
            ):
                comparison = self._wider(table, column, literal)
            found.append(Filter(table, column, comparison, literal))
        return tuple(found)

    def _share(self, table: str, column: str, comparison: str, literal: float) -> float:
        """The share of rows that a filter keeps."""
        return float(COMPARISONS[comparison](self._tables.columns[table][column], literal).mean())

    def _wider(self, table: str, column: str, literal: float) -> str:
        """The comparison that more rows meet."""
        return max(("<=", ">="), key=lambda way: self._share(table, column, way, literal))

    def _ways(self, table: str) -> Iterator[tuple[str, list[str]]]:
        """The comparisons of each column that is no key."""
        declared = self._tables.schema.table(table)
        keys = {*declared.primary_key, *(c for key in declared.foreign_keys for c in key.columns)}
        for column in declared.columns:
            values = self._tables.columns[table][column.name]
            different = len(np.unique(values[~np.isnan(values)]))
            if column.name in keys or not different:
                continue
            if column.type.kind is Kind.TEXT:
                if different <= MANY_WORDS:
                    yield column.name, ["="]
            else:
                yield column.name, ["=", "<=", ">="] if different <= FEW else ["<=", ">="]
