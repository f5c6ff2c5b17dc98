"""Queries as values: COUNT(*) over tables joined on equal columns, with a conjunction of predicates on single columns.

This is the class of queries that a model can answer by inference. Several predicates on one column are kept as they
were written, each a filter of its own; a range with one open end and one closed is two of them, so that a query has
one form and comes back from SQL as it went in.
"""

from dataclasses import dataclass, field, replace
from enum import Enum

from privbench.encode.predicate import Between, Predicate
from privbench.errors import SpecError
from privbench.schema.notebook import page


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRef:
    """A table and the name that the query calls it by."""

    table: str
    alias: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRef:
    """A column of one of the query's tables."""

    alias: str
    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Two columns of different tables that are equal."""

    left: ColumnRef
    right: ColumnRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A predicate on one column."""

    column: ColumnRef
    predicate: Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """SELECT COUNT(*) FROM tables WHERE joins AND filters; checked when made."""

    tables: tuple[TableRef, ...]
    joins: tuple[Join, ...] = ()
    filters: tuple[Filter, ...] = ()

    def __post_init__(self) -> None:
        aliases = {t.alias for t in self.tables}
        if not self.tables or len(aliases) < len(self.tables):
            raise SpecError("a query needs a table, and no two of the same name.")
        ends = [end for join in self.joins for end in (join.left, join.right)]
        for end in (*ends, *(f.column for f in self.filters)):
            if end.alias not in aliases:
                raise SpecError(f"{end.alias}.{end.column}: the query has no table {end.alias}.")
        if any(join.left.alias == join.right.alias for join in self.joins):
            raise SpecError("a join compares two columns of the same table.")
        object.__setattr__(self, "filters", tuple(part for f in self.filters for part in _one_form(f)))


class Literals(Enum):
    """Where the literals of a workload come from."""

    REAL = "real"
    """From private rows: the file is private as a whole, since what stands together in a query is one row's."""
    MODEL = "model"
    """From a model, or from a bundle that a model wrote: no private row was read."""
    TRANSLATED = "translated"
    """Drawn from a model in place of others, or kept because the publisher said that they are public."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement of a workload: its text, and its query or the reason why it has none."""

    number: int
    sql: str
    query: Query | None = None
    reason: str | None = None
    cardinality: int | None = None
    """The number of rows that the file states, if any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Statements in order, and where their literals come from if the file says so."""

    statements: tuple[Statement, ...]
    literals: Literals | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What the header of the file is to say beside; not read back."""

    def __repr__(self) -> str:
        whose = "" if self.literals is None else f", literals of {self.literals.value} rows"
        return f"<Workload: {len(self.statements)} queries{whose}>"

    def _repr_html_(self) -> str:
        rows = [(statement.number, statement.sql, statement.cardinality) for statement in self.statements]
        private = ["Its literals come from real rows: it is private."] if self.literals is Literals.REAL else []
        return page(f"{len(self.statements)} queries", ["query", "SQL", "real rows"], rows, notes=private)

    @property
    def outside(self) -> tuple[Statement, ...]:
        """The statements that no model can answer; they run on a database all the same."""
        return tuple(s for s in self.statements if s.query is None)


def _one_form(part: Filter) -> tuple[Filter, ...]:
    predicate = part.predicate
    if not isinstance(predicate, Between):
        return (part,)
    if predicate.low is None and predicate.high is None:
        raise SpecError(f"{part.column.alias}.{part.column.column}: a range needs a lower or an upper end.")
    if predicate.low is None or predicate.high is None or (predicate.include_low and predicate.include_high):
        return (part,)
    return (
        replace(part, predicate=Between(low=predicate.low, include_low=predicate.include_low)),
        replace(part, predicate=Between(high=predicate.high, include_high=predicate.include_high)),
    )
