"""One SQL statement to a query and back, through a syntax tree.

A statement outside the class of queries that models can answer gets the reason. Rendered names are always quoted and
so keep their case, as in the schemas that bundles carry; names and literals are quoted by the dialect's own rules.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from privbench.encode.predicate import Between, In, IsNull, Predicate, Prefix
from privbench.errors import SpecError
from privbench.io.names import find_name
from privbench.schema.domain import Scalar
from privbench.schema.tables import Schema
from privbench.workload.literal import (
    OPERATORS,
    QueryDialect,
    Usage,
    like,
    literal_of,
    pattern_parts,
    scalar_of_literal,
)
from privbench.workload.query import ColumnRef, Filter, Join, Query, TableRef
from privbench.workload.table_names import OutsideError, plain_tables, qualified_tables

_CLAUSES = {
    "with": "has a WITH clause",
    "with_": "has a WITH clause",
    "distinct": "selects DISTINCT rows",
    "group": "has a GROUP BY",
    "having": "has a HAVING",
    "qualify": "has a QUALIFY",
    "windows": "has a WINDOW clause",
    "order": "has an ORDER BY",
    "limit": "has a LIMIT",
    "offset": "has an OFFSET",
    "laterals": "has a LATERAL join",
}
_PLAIN = {"expressions", "from", "from_", "joins", "where"}
_NAMES: Mapping[type[exp.Expr], str] = {
    exp.Or: "OR",
    exp.NEQ: "<>",
    exp.Not: "NOT",
    exp.ILike: "ILIKE",
    exp.Exists: "EXISTS",
}


def read_statement(sql: str, dialect: QueryDialect) -> exp.Expr:
    """Parse one statement; OutsideError if it is not SQL of the dialect."""
    try:
        tree = sqlglot.parse_one(sql, dialect=dialect.value)
    except (SqlglotError, RecursionError) as error:
        first = str(error).split(". Line", 1)[0].splitlines()[0] if str(error) else "too deeply nested"
        raise OutsideError(f"is not SQL that can be read: {first}") from None
    if not isinstance(tree, exp.Expr):
        raise OutsideError("is not SQL that can be read")
    return tree


def table_names(sql: str, dialect: QueryDialect) -> tuple[str, ...]:
    """The tables that a statement names, each once, with their schemas; none if it cannot be read.

    >>> table_names("SELECT 1 FROM a JOIN b ON a.x = b.x WHERE EXISTS (SELECT 1 FROM a)", QueryDialect.DUCKDB)
    ('a', 'b')
    """
    try:
        tree = read_statement(sql, dialect)
    except OutsideError:
        return ()
    shared = {cte.alias for cte in tree.find_all(exp.CTE)}
    named = [table for table in tree.find_all(exp.Table) if table.name not in shared]
    return tuple(dict.fromkeys(f"{table.db}.{table.name}" if table.db else table.name for table in named))


def query_of(tree: exp.Expr, dialect: QueryDialect, schema: Schema | None) -> Query:
    """Read a syntax tree as a query. `schema` finds the table of a column that is not qualified."""
    plain_tables(tree, schema)
    if not isinstance(tree, exp.Select):
        raise OutsideError(f"is not a plain SELECT but {tree.key.upper()}")
    for name, value in tree.args.items():
        if value and name not in _PLAIN:
            raise OutsideError(_CLAUSES.get(name, f"has a clause that is not of the class ({name})"))
    _check_count(tree)
    tables = tuple(_tables(tree))
    reader = _Reader(tables=tables, schema=schema, dialect=dialect)
    joins: list[Join] = []
    filters: list[Filter] = []
    for test in _conjunction(tree):
        part = reader.part(test)
        if isinstance(part, Join):
            joins.append(part)
        else:
            filters.append(part)
    try:
        return Query(tables=tables, joins=tuple(joins), filters=tuple(filters))
    except SpecError as error:
        raise OutsideError(str(error).rstrip(".")) from None


def _check_count(tree: exp.Select) -> None:
    wanted = tree.expressions[0].unalias() if len(tree.expressions) == 1 else None
    if not (isinstance(wanted, exp.Count) and isinstance(wanted.this, exp.Star)):
        raise OutsideError("selects something other than COUNT(*)")


def _tables(tree: exp.Select) -> Iterator[TableRef]:
    source = tree.args.get("from_") or tree.args.get("from")
    if source is None:
        raise OutsideError("names no table")
    for join in tree.args.get("joins") or ():
        how = " ".join(str(join.args[k]) for k in ("method", "side", "kind") if join.args.get(k)).upper()
        if how not in ("", "INNER", "CROSS"):
            raise OutsideError(f"has a {how} JOIN")
        if join.args.get("using"):
            raise OutsideError("has a JOIN with USING; write ON")
    for node in (source.this, *(join.this for join in tree.args.get("joins") or ())):
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise OutsideError("selects from something that is not a table")
        if any(v for k, v in node.args.items() if k not in ("this", "alias")):
            raise OutsideError(f"names a sample or a join inside {node.name}")
        yield TableRef(table=node.name, alias=node.alias or node.name)


def _conjunction(tree: exp.Select) -> Iterator[exp.Expr]:
    on = [join.args["on"] for join in tree.args.get("joins") or () if join.args.get("on")]
    where = [tree.args["where"].this] if tree.args.get("where") else []
    waiting = [*reversed(where), *reversed(on)]
    while waiting:
        test = waiting.pop()
        if isinstance(test, exp.And):
            waiting += [test.expression, test.this]
        elif isinstance(test, exp.Paren):
            waiting.append(test.this)
        else:
            yield test


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Reads single conditions of one query."""

    tables: tuple[TableRef, ...]
    schema: Schema | None
    dialect: QueryDialect

    def part(self, test: exp.Expr) -> Join | Filter:
        if isinstance(test, exp.EQ) and isinstance(test.this, exp.Column) and isinstance(test.expression, exp.Column):
            return Join(left=self._column(test.this), right=self._column(test.expression))
        column, predicate = self._filter(test)
        return Filter(column=self._column(column), predicate=predicate)

    def _filter(self, test: exp.Expr) -> tuple[exp.Expr, Predicate]:
        match test:
            case exp.Not(this=exp.Is(this=column, expression=exp.Null())):
                return column, IsNull(negated=True)
            case exp.Is(this=column, expression=exp.Null()):
                return column, IsNull()
            case exp.Between():
                if test.args.get("symmetric"):
                    raise OutsideError("uses BETWEEN SYMMETRIC")
                low, high = _value(test.args["low"]), _value(test.args["high"])
                return test.this, Between(low=low, high=high)
            case exp.In() if test.expressions:
                return test.this, In(values=tuple(_value(v) for v in test.expressions))
            case exp.Like():
                return test.this, self._like(test, "\\" if self.dialect.backslash else None)
            case exp.Escape(this=exp.Like() as pattern):
                return pattern.this, self._like(pattern, str(test.expression.name))
            case exp.EQ() | exp.GT() | exp.GTE() | exp.LT() | exp.LTE():
                return _comparison(test)
        raise OutsideError(f"uses {_NAMES.get(type(test), test.key.upper())}")

    def _like(self, test: exp.Expr, escape: str | None) -> Predicate:
        pattern = _value(test.expression)
        if not isinstance(pattern, str):
            raise OutsideError("has a LIKE whose pattern is not text")
        parts = pattern_parts(pattern, escape)
        text = "".join(c for c, wild in parts if not wild)
        if not any(wild for _, wild in parts):
            return In(values=(text,))
        if parts[-1] != ("%", True) or any(wild for _, wild in parts[:-1]):
            raise OutsideError("has a LIKE whose pattern is not a prefix")
        return Prefix(text=text)

    def _column(self, node: exp.Expr) -> ColumnRef:
        if not isinstance(node, exp.Column) or node.args.get("db") or not isinstance(node.this, exp.Identifier):
            raise OutsideError("compares something that is not a column")
        return ColumnRef(alias=self._alias(node), column=node.name)

    def _alias(self, node: exp.Column) -> str:
        aliases = [t.alias for t in self.tables]
        if node.table:
            alias = find_name(node.table, aliases)
            if alias is None:
                raise OutsideError(f"names a table {node.table} that it does not select from")
            return alias
        if len(aliases) == 1:
            return aliases[0]
        holding = [t.alias for t in self.tables if self._holds(t.table, node.name)]
        if len(holding) != 1:
            raise OutsideError(f"does not say which table the column {node.name} is of")
        return holding[0]

    def _holds(self, table: str, column: str) -> bool:
        tables = {} if self.schema is None else {t.name: t for t in self.schema.tables}
        name = find_name(table, tables)
        return name is not None and find_name(column, (c.name for c in tables[name].columns)) is not None


def _comparison(test: exp.Expr) -> tuple[exp.Expr, Predicate]:
    on_right, on_left = OPERATORS[type(test)]
    column, literal, usage = test.this, test.expression, on_right
    if scalar_of_literal(column) is not None:
        column, literal, usage = literal, column, on_left
    value = _value(literal)
    if usage is Usage.EQUAL:
        return column, In(values=(value,))
    if usage in (Usage.AT_LEAST, Usage.ABOVE):
        return column, Between(low=value, include_low=usage is Usage.AT_LEAST)
    return column, Between(high=value, include_high=usage is Usage.AT_MOST)


def _value(node: exp.Expr) -> Scalar:
    value = scalar_of_literal(node)
    if value is None:
        shown = (
            "a subquery" if node.find(exp.Select) else "two columns" if node.find(exp.Column) else "no plain literal"
        )
        raise OutsideError(f"compares with {shown}")
    return value


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
    return qualified_tables(select, dialect).sql(dialect=dialect.value)


def _table(table: TableRef) -> exp.Table:
    rendered = exp.Table(this=_name(table.table))
    if table.alias != table.table:
        rendered.set("alias", exp.TableAlias(this=_name(table.alias)))
    return rendered


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
