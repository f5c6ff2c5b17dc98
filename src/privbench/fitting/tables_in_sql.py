"""What holds in the tables of a source, asked in SQL, with DuckDB, under plain names, for `draft`.

Questions go to a sample of a table first, joined to only those rows of other tables that it needs; what holds there is
asked of all rows, of which the columns that the question names are read as it is answered. No table is ever held as a
whole. It sees private rows: what is found by it is for the publisher to review, marked as taken from the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.deferred import duckdb, exp
from privbench.io.base import Source
from privbench.schema.expression import identifier
from privbench.schema.tables import Column, ForeignKey, Schema, Table
from privbench.schema.types import Kind, SqlType
from privbench.schema.unit import Link, LinkKind, Protection

NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)
AMOUNTS = (Kind.DECIMAL, Kind.FLOAT)
_UPWARDS = (LinkKind.OWNER, LinkKind.CATEGORY, LinkKind.COPIED)
SAMPLE_ROWS = 1_000
"""Rows on which candidates are tried before those that hold are checked on all rows."""
_OWN_COLUMN = re.compile(r"r\.(c\d+)")


class Sampler:
    """Keeps some rows of a table as its batches come: all rows are as likely, and the same are kept each time."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(1)
        self._rows: list[pa.RecordBatch] = []
        self._marks = np.zeros(0)

    def add(self, batch: pa.RecordBatch) -> None:
        """Give each row a random mark, and keep those with the lowest."""
        marks = self._rng.random(batch.num_rows)
        last = SAMPLE_ROWS - 1
        chosen = np.flatnonzero(marks < (np.partition(self._marks, last)[last] if len(self._marks) > last else 1))
        lowest = chosen[np.argsort(marks[chosen])[:SAMPLE_ROWS]]
        self._rows.append(batch.take(pa.array(lowest)))
        self._marks = np.concatenate([self._marks, marks[lowest]])

    def rows(self, schema: pa.Schema) -> pa.Table:
        """The rows, in random order."""
        order = np.argsort(self._marks)[:SAMPLE_ROWS]
        return pa.Table.from_batches(self._rows, schema).take(pa.array(order)).combine_chunks()


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A column as a row sees it: what its name is in the spec, and in the joined tables here."""

    type: SqlType
    column: str
    table: str | None
    """None for a column of the row itself."""
    sql: str
    is_year: bool = False
    """Whether only the year of the date is meant."""

    @cached_property
    def written(self) -> exp.Expr:
        """It as an expression of the spec; not to be changed."""
        column = exp.column(identifier(self.column), table=None if self.table is None else identifier(self.table))
        return exp.Year(this=column) if self.is_year else column

    @property
    def is_number(self) -> bool:
        return self.type.kind in NUMBERS

    @property
    def is_amount(self) -> bool:
        """Whether it may be a price or a quantity with decimals: counts are rarely multiplied."""
        return self.type.kind in AMOUNTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Rows of another table beside the rows `r`, or beside those of a join before."""

    table: str
    alias: str
    left: str
    """The alias of the rows that it is joined to."""
    by: tuple[str, str]
    """A column of the table and one of the rows on the left, which have the same value where rows are joined."""
    sql: str
    """The join itself, in which {rows} stands for the rows of the table, and {terms} for aggregates of them."""
    terms: Mapping[str, str] = field(default_factory=dict)
    """Aggregates by their names, of the rows `d` of the table."""

    def text(self, rows: str) -> str:
        """The join, with rows by some name."""
        return self.sql.format(rows=rows, terms="".join(f", {sql} AS {name}" for name, sql in self.terms.items()))


class TablesInSql:
    """Answers questions about the tables of a source. A context manager: it holds a connection."""

    def __init__(self, source: Source, schema: Schema, samples: Mapping[str, pa.Table]) -> None:
        self._source = source
        self._schema = schema
        self._samples = samples
        self._made: dict[tuple[str, ...], str] = {}
        self._numbers = count()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        connection = self._stack.enter_context(duckdb.connect(config={"threads": 2}))
        connection.execute("SET enable_external_access = false")
        connection.execute("SET enable_progress_bar = false")
        return connection

    def column(self, table: str, column: str) -> str:
        """The name of a column in SQL."""
        return f"c{[c.name for c in self._schema.table(table).columns].index(column)}"

    def joined(self, left: str, right: str, table: str, key: ForeignKey) -> str:
        """The condition that a row `right` is the one that a key of the row `left` of a table references."""
        pairs = zip(key.columns, key.references, strict=True)
        return " AND ".join(f"{left}.{self.column(table, a)} = {right}.{self.column(key.table, b)}" for a, b in pairs)

    def seen(self, table: Table, column: Column, alias: str, *, own: bool = False) -> Seen:
        """A column of the rows that `alias` stands for, as the rows of some table see it, or of those themselves."""
        name = None if own else table.name
        sql = f"{alias}.{self.column(table.name, column.name)}"
        return Seen(type=column.type, column=column.name, table=name, sql=sql)

    def above(self, protection: Protection, table: Table, *, public: bool = True) -> tuple[list[Join], list[Seen]]:
        """Joins from rows `r` to the rows above and the public rows they lead to, and the columns seen there.

        Made-up rows are not looked at: real keys do not lead to them. Of a table that is reached in two ways no column
        is seen: its name would not say which row is meant.
        """
        joins: list[Join] = []
        seen: list[Seen] = []
        kinds = _UPWARDS if public else (LinkKind.OWNER,)

        def onwards(name: str) -> list[Link]:
            links = protection.links_of(name)
            return [link for link in links if link.kind in kinds and link.target not in protection.made_up]

        steps = [("r", link) for link in onwards(table.name)]
        for left, link in steps:
            alias, target = f"a{len(joins)}", protection.schema.table(link.target)
            by = self.column(link.target, link.key.references[0]), self.column(link.table, link.key.columns[0])
            sql = f"LEFT JOIN {{rows}} {alias} ON {self.joined(left, alias, link.table, link.key)}"
            joins.append(Join(table=target.name, alias=alias, left=left, by=by, sql=sql))
            if [step.target for _, step in steps].count(target.name) == 1:
                plain = [c for c in target.columns if c.name not in target.surrogate_columns]
                seen += [self.seen(target, c, alias) for c in plain]
            reached = {table.name, *(step.target for _, step in steps)}
            steps += [(alias, up) for up in onwards(target.name) if up.target not in reached]
        return joins, seen

    def numbers(self, columns: Sequence[str], table: str, joins: Sequence[Join]) -> NDArray[np.float64]:
        """Numbers, dates and times of the sample of a table, a column of each, in the same order; NaN for NULL."""
        own = [_OWN_COLUMN.fullmatch(column) for column in columns]
        if all(own):
            sample = self._samples[table]
            return np.stack([_as_numbers(sample.column(int(match[1][1:]))) for match in own if match], axis=1)
        terms = ", ".join(f"{column} AS n{i}" for i, column in enumerate(columns))
        names = {"r": self._sample(table)}
        for join in joins:
            names[join.alias] = self._part(join, names[join.left])
        rest = " ".join(join.text(names[join.alias]) for join in joins)
        found = self._connection.sql(f"SELECT {terms} FROM {names['r']} r {rest} ORDER BY r.row").to_arrow_table()  # noqa: S608  plain names
        return np.stack([_as_numbers(column) for column in found.columns], axis=1)

    def ask(self, terms: Sequence[str], table: str, joins: Sequence[Join] = ()) -> Sequence[Any]:
        """Aggregates of all rows of a table; the rows are read now, and of their columns those that are named."""
        texts = [*terms, *(join.text("") for join in joins)]
        with ExitStack() as stack:
            rest = []
            for join in joins:  # one after the other, since some sources cannot read two tables at once
                used = _columns_of("d" if join.terms else join.alias, [join.text("")] if join.terms else texts)
                rest.append(join.text(stack.enter_context(self._kept(join.table, used))))
            own = stack.enter_context(self._read(table, _columns_of("r", texts)))
            sql = f"SELECT {', '.join(terms)} FROM {own} r {' '.join(rest)}"  # noqa: S608  plain names
            (row,) = self._connection.execute(sql).fetchall()
        return tuple(row)

    def _sample(self, table: str) -> str:
        """The name of the sample of a table; a number `row` tells its rows apart."""
        key = ("sample", table)
        if key not in self._made:
            rows = self._samples[table]
            rows = rows.rename_columns([f"c{i}" for i in range(rows.num_columns)])
            self._made[key] = name = self._new_name()
            self._connection.register(name, rows.append_column("row", pa.array(np.arange(rows.num_rows))))
        return self._made[key]

    def _part(self, join: Join, left: str) -> str:
        """The name of a table of those rows that some rows on the left may be joined to."""
        key = (join.table, left, *join.by)
        if key not in self._made:
            self._made[key] = name = self._new_name()
            table, (own, other) = self._schema.table(join.table), join.by
            kind = table.columns[int(own[1:])].type
            values = self._connection.sql(f"SELECT DISTINCT TRY_CAST({other} AS {kind.sql}) FROM {left}")  # noqa: S608  plain names
            wanted = values.to_arrow_table().column(0).cast(kind.arrow)
            columns = {f"c{i}": c for i, c in enumerate(table.columns)}
            batches = self._batches(table, columns)
            kept = [b.filter(pc.is_in(b.column(own), value_set=wanted, skip_nulls=True)) for b in batches]
            self._connection.register(name, pa.Table.from_batches(kept, _types(columns)))
        return self._made[key]

    @contextmanager
    def _read(self, name: str, columns: Iterable[str] | None) -> Iterator[str]:
        """The rows of a table, or some columns of them, as something to be read once in SQL."""
        table = self._schema.table(name)
        wanted = {f"c{i}": c for i, c in enumerate(table.columns)}
        if columns is not None:
            wanted = {short: wanted[short] for short in sorted(columns)} or dict(list(wanted.items())[:1])
        reader = self._new_name()
        types = _types(wanted)
        self._connection.register(reader, pa.RecordBatchReader.from_batches(types, self._batches(table, wanted)))
        try:
            yield reader
        finally:
            self._connection.unregister(reader)

    @contextmanager
    def _kept(self, name: str, columns: Iterable[str]) -> Iterator[str]:
        """Some columns of a table, for one question."""
        kept = self._new_name()
        with self._read(name, columns) as reader:
            self._connection.execute(f"CREATE TABLE {kept} AS FROM {reader}")
        try:
            yield kept
        finally:
            self._connection.execute(f"DROP TABLE {kept}")

    def _batches(self, table: Table, columns: Mapping[str, Column]) -> Iterator[pa.RecordBatch]:
        """Read some columns of a table under their short names."""
        types = _types(columns)
        for batch in self._source.read(Table(name=table.name, columns=tuple(columns.values()))):
            yield batch.rename_columns(types.names).cast(types)

    def _new_name(self) -> str:
        return f"n{next(self._numbers)}"


def _types(columns: Mapping[str, Column]) -> pa.Schema:
    return pa.schema([pa.field(short, column.type.arrow) for short, column in columns.items()])


def needed(joins: Sequence[Join], sql: str) -> list[Join]:
    """The joins that an expression needs: to what it names, and those on the way there."""
    kept: list[Join] = []
    aliases = {join.alias for join in joins if re.search(rf"\b{join.alias}\.", sql)}
    for join in reversed(joins):
        if join.alias in aliases:
            named = {name: term for name, term in join.terms.items() if re.search(rf"\b{join.alias}\.{name}\b", sql)}
            kept.insert(0, replace(join, terms=named))
            aliases.add(join.left)
    return kept


def _columns_of(alias: str, texts: Iterable[str]) -> set[str]:
    """The columns of an alias that are named in SQL.

    >>> sorted(_columns_of("r", ["r.c1 + a0.c2", "ABS(r.c10)"]))
    ['c1', 'c10']
    """
    return {name for text in texts for name in re.findall(rf"\b{alias}\.(c\d+)\b", text)}


def _as_numbers(values: pa.ChunkedArray) -> NDArray[np.float64]:
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.timestamp("us")).cast(pa.int64())
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(), np.float64)
