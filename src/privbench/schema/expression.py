"""SQL expressions over the columns of a row: of a rule that every row keeps, or of a column that is computed.

An expression is parsed once, with sqlglot, in the dialect of its source, and is kept in DuckDB's words, in which it is
also worked out (`rules.evaluate`). A bare name is a column of the row itself, `table.column` one of another table:
of a row above it, which owns it, or, inside an aggregate, of the rows that it owns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from privbench.deferred import exp, sql_errors, sqlglot
from privbench.errors import SpecError, first_line
from privbench.schema.functions import why_refused
from privbench.schema.portable import portable

MAX_TEXT = 10_000
"""No expression is longer; what an untrusted file says is not parsed beyond this."""
MAX_NODES = 2_000
DIALECT = "duckdb"
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, order=True)
class ColumnName:
    """A column as an expression names it; `table` is None for the row's own."""

    table: str | None
    column: str

    def __str__(self) -> str:
        return self.column if self.table is None else f"{self.table}.{self.column}"


@dataclass(frozen=True, kw_only=True)
class Expression:
    """A parsed expression. Two are equal if their text is."""

    sql: str

    @cached_property
    def tree(self) -> exp.Expr:
        """The expression, parsed; not to be changed."""
        return _parsed(self.sql)

    @cached_property
    def columns(self) -> tuple[ColumnName, ...]:
        """The columns that it names outside aggregates, each once, in order."""
        return _columns(node for node in self.tree.find_all(exp.Column) if node.find_ancestor(exp.AggFunc) is None)

    @cached_property
    def aggregated(self) -> tuple[ColumnName, ...]:
        """The columns that it names inside aggregates; `COUNT(table.*)` names the column ``*``."""
        return _columns(node for node in self.tree.find_all(exp.Column) if node.find_ancestor(exp.AggFunc) is not None)

    def renamed(self, name: Callable[[ColumnName], str]) -> exp.Expr:
        """The expression with each column under another, bare name."""

        def rename(node: exp.Expr) -> exp.Expr:
            return exp.column(name(_name(node)), quoted=True) if isinstance(node, exp.Column) else node

        return self.tree.copy().transform(rename)

    def spelled(self, name: Callable[[ColumnName], ColumnName | None]) -> Expression:
        """The expression with its columns spelled as given; what has no column is text, as SQLite and MySQL read it."""

        def spell(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
                return node
            found = name(_name(node))
            if found is None:
                return exp.Literal.string(node.name) if node.this.quoted and not node.table else node
            return exp.Column(this=identifier(found.column), table=found.table and identifier(found.table))

        return Expression(sql=self.tree.copy().transform(spell).sql(DIALECT))

    def __str__(self) -> str:
        return self.sql


def parse_expression(sql: str, *, where: str, checked: bool = True) -> Expression:
    """Read an expression in DuckDB's words; `where` names it in messages. Raises SpecError.

    Unless `checked` is off, for one that is never worked out, it may call functions of a closed list alone.

    >>> parse_expression("a + Orders.b", where="rules").columns
    (ColumnName(table=None, column='a'), ColumnName(table='Orders', column='b'))
    """
    if len(sql) > MAX_TEXT:
        raise SpecError(f"{where}: longer than {MAX_TEXT} characters. Split it into several.")
    try:
        tree = _parsed(sql)
    except (sql_errors.SqlglotError, RecursionError) as error:
        raise SpecError(f"{where}: cannot be read as a SQL expression: {first_line(error)}") from None
    expression = expression_of(tree, where=where)
    if checked and (why := why_refused(expression.tree)) is not None:
        raise SpecError(f"{where}: {why}; or take it out.")
    return expression


def expression_of(tree: exp.Expr, *, where: str) -> Expression:
    """Make an expression of a parsed tree. Raises SpecError where it looks beyond the rows that it may see."""
    refused = next((n for n in tree.find_all(*_refused()) if not _is_counted(n)), None)
    if refused is not None:
        raise SpecError(f"{where}: {refused.sql(DIALECT)[:80]} is not an expression over the columns of a row.")
    if sum(1 for _ in tree.walk()) > MAX_NODES:
        raise SpecError(f"{where}: has more than {MAX_NODES} parts. Split it into several.")
    try:
        sql = portable(tree).sql(DIALECT)
        return Expression(sql=_parsed(sql).sql(DIALECT))  # as it reads when it is written and read again
    except (sql_errors.SqlglotError, RecursionError) as error:
        raise SpecError(f"{where}: cannot be read as a SQL expression: {first_line(error)}") from None


def _refused() -> tuple[type[exp.Expr], ...]:
    """What looks beyond the rows that an expression may see. `COUNT(table.*)` is let through."""
    return exp.Query, exp.Subquery, exp.Window, exp.Placeholder, exp.Parameter, exp.Star


def _parsed(sql: str) -> exp.Expr:
    return _parsed_once(sql).copy()


@lru_cache(maxsize=1024)
def _parsed_once(sql: str) -> exp.Expr:
    """A spec is read many times in a run, and to copy a tree is ten times as fast as to parse it."""
    return sqlglot.parse_one(sql, dialect=DIALECT, into=exp.Condition)


def _is_counted(node: exp.Expr) -> bool:
    """Whether this is the star of `COUNT(table.*)`."""
    return isinstance(node, exp.Star) and isinstance(node.parent, exp.Column) and bool(node.parent.table)


def _name(node: exp.Column) -> ColumnName:
    return ColumnName(node.table or None, "*" if isinstance(node.this, exp.Star) else node.name)


def identifier(name: str) -> exp.Identifier:
    """A name as an expression writes it: in quotes only where it would be read as something else without."""
    return exp.to_identifier(name, quoted=not _reads_plain(name))


@cache
def _reads_plain(name: str) -> bool:
    """Whether a name is read as that of a column without quotes.

    >>> _reads_plain("price"), _reads_plain("unit price"), _reads_plain("current_date")
    (True, False, False)
    """
    if not _PLAIN_NAME.fullmatch(name):
        return False
    try:
        tree = _parsed(f"{name} > {name} AND NOT {name} IN ({name})")
    except sql_errors.SqlglotError:
        return False
    return [column.name for column in tree.find_all(exp.Column)] == [name] * 4


def column_text(name: str) -> str:
    """Write the name of a column as an expression names it."""
    return exp.Column(this=identifier(name)).sql(DIALECT)


def literal_text(value: str | int | float | bool | None) -> str:
    """Write a value as an expression does.

    >>> literal_text("it's"), literal_text(2.5), literal_text(True), literal_text(None)
    ("'it''s'", '2.5', 'TRUE', 'NULL')
    """
    return exp.convert(value).sql(DIALECT)


def _columns(nodes: Iterable[exp.Column]) -> tuple[ColumnName, ...]:
    return tuple(dict.fromkeys(map(_name, nodes)))
