"""Queries to SQL of any dialect, through a syntax tree: names and literals are quoted by the dialect's own rules.

Names are always quoted and so keep their case, as in the schemas that bundles carry.
"""

from functools import reduce

from sqlglot import exp

from privbench.encode.predicate import Between, In, IsNull, Prefix
from privbench.schema.domain import Scalar
from privbench.workload.literal import QueryDialect, like, literal_of
from privbench.workload.query import ColumnRef, Filter, Query, TableRef


def render(query: Query, dialect: QueryDialect = QueryDialect.DUCKDB) -> str:
    """Write a query as SQL.

    >>> render(Query(tables=(TableRef(table="t", alias="t"),)))
    'SELECT COUNT(*) FROM "t"'
    """
    first, *others = [_table(t) for t in query.tables]
    select = exp.Select(expressions=[exp.Count(this=exp.Star(), big_int=True)]).from_(first)
    for table in others:
        select.append("joins", exp.Join(this=table))
    tests: list[exp.Expr] = [exp.EQ(this=_column(j.left), expression=_column(j.right)) for j in query.joins]
    tests += [test for f in query.filters for test in _tests(f)]
    if tests:
        select.set("where", exp.Where(this=reduce(lambda a, b: exp.And(this=a, expression=b), tests)))
    return select.sql(dialect=dialect.value)


def _table(table: TableRef) -> exp.Table:
    named = exp.Table(this=_name(table.table))
    if table.alias != table.table:
        named.set("alias", exp.TableAlias(this=_name(table.alias)))
    return named


def _column(column: ColumnRef) -> exp.Column:
    return exp.Column(this=_name(column.column), table=_name(column.alias))


def _name(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def _tests(part: Filter) -> list[exp.Expr]:
    column = _column(part.column)
    match part.predicate:
        case IsNull(negated=negated):
            test = exp.Is(this=column, expression=exp.Null())
            return [exp.Not(this=test) if negated else test]
        case Prefix(text=text):
            return [like(column, text)]
        case In(values=(value,)):
            return [exp.EQ(this=column, expression=literal_of(value))]
        case In(values=values):
            return [exp.In(this=column, expressions=[literal_of(v) for v in values])]
        case Between() as between:
            return [_range(column, between)]


def _range(column: exp.Column, between: Between) -> exp.Expr:
    """A closed range, or one with a single end: a query holds no others."""
    if between.low is not None and between.high is not None:
        return exp.Between(this=column, low=literal_of(between.low), high=literal_of(between.high))
    if between.low is not None:
        return _compared(exp.GTE if between.include_low else exp.GT, column, between.low)
    assert between.high is not None  # noqa: S101  Query refuses a range without ends
    return _compared(exp.LTE if between.include_high else exp.LT, column, between.high)


def _compared(operator: type[exp.Binary], column: exp.Column, value: Scalar) -> exp.Expr:
    return operator(this=column, expression=literal_of(value))
