"""What the names and literals of a statement stand for, and whether its form is fit for publishing.

Columns are followed through aliases, subqueries and WITH; each literal is compared with a column, is part of the
query's form, or cannot be traced. Only constructs that are known to carry no words of the publisher are let through;
aliases and the names of WITH queries are numbered anew, names of the schema get the schema's spelling.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import count

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from privbench.io.names import find_name
from privbench.schema.domain import Scalar
from privbench.schema.tables import Schema
from privbench.workload.literal import OPERATORS, Usage, scalar_of_literal
from privbench.workload.table_names import OutsideError

Base = tuple[str, str]
"""A table of the schema and a column of it."""
_WRAPPERS = (exp.Neg, exp.Paren, exp.Cast)
_CONSTANTS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Case, exp.If, exp.Count, exp.Select, exp.Coalesce)
_OPAQUE = (exp.HexString, exp.BitString, exp.ByteString, exp.RawString, exp.National, exp.UnicodeString, exp.Heredoc)
_QUERIES = (exp.Select, exp.Subquery, exp.With, exp.CTE, exp.Union, exp.Except, exp.Intersect, exp.From, exp.Join)
_CLAUSES = (exp.Where, exp.Having, exp.Group, exp.Rollup, exp.Cube, exp.Order, exp.Ordered, exp.Limit, exp.Offset)
_NAMES = (exp.Table, exp.TableAlias, exp.Column, exp.Alias, exp.Identifier, exp.Star)
_VALUES = (exp.Literal, exp.Boolean, exp.Null, exp.Cast, exp.DataType, exp.Tuple, exp.Distinct)
_LOGIC = (exp.And, exp.Or, exp.Not, exp.Paren, exp.Case, exp.If, exp.Exists, exp.Any, exp.All, exp.Is, exp.Escape)
_TESTS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like)
_ARITHMETIC = (exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Abs, exp.Coalesce)
_TEXT = (exp.Lower, exp.Upper, exp.Length, exp.Year, exp.Month, exp.Day)
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Filter, exp.Window, exp.RowNumber)
_ALLOWED = frozenset((*_QUERIES, *_CLAUSES, *_NAMES, *_VALUES, *_LOGIC, *_TESTS, *_ARITHMETIC, *_TEXT, *_AGGREGATES))
_NAMED = (exp.Table, exp.TableAlias, exp.Column, exp.Alias)
_KEYWORDS = {"LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "SEMI", "ANTI", "OVER"}
_Type = exp.DataType.Type
_TYPES = {
    *(_Type.BOOLEAN, _Type.TINYINT, _Type.SMALLINT, _Type.INT, _Type.BIGINT, _Type.FLOAT, _Type.DOUBLE, _Type.DECIMAL),
    *(_Type.TEXT, _Type.VARCHAR, _Type.CHAR, _Type.DATE, _Type.TIME, _Type.DATETIME),
    *(_Type.TIMESTAMP, _Type.TIMESTAMPTZ, _Type.TIMESTAMPNTZ),
}


class Derived(Enum):
    """What a name stands for that is no column of a table: something that the query computes."""

    COMPUTED = "computed"


class Resolver:
    """Resolves the names of one statement."""

    def __init__(self, tree: exp.Expr, schema: Schema) -> None:
        self._tables = {t.name: t for t in schema.tables}
        try:
            scopes = traverse_scope(tree) if isinstance(tree, exp.Query) else []
        except SqlglotError as error:
            raise OutsideError(f"names a table twice or none ({str(error).splitlines()[0]})") from None
        if not scopes:
            raise OutsideError("is not a query")
        self._scopes = {id(scope.expression): scope for scope in scopes}
        for scope in scopes:
            for source in scope.sources.values():
                if isinstance(source, exp.Table) and find_name(source.name, self._tables) is None:
                    raise OutsideError(f"selects from {source.name}, which is not in the model")

    def resolve(self, node: exp.Column) -> Base | Derived:
        """Find what a column stands for; OutsideError if nothing does."""
        select = node.find_ancestor(exp.Select)
        scope = self._scopes.get(id(select))
        while scope is not None:
            column = self._within(scope, node.name, node.table)
            if column is not None:
                return column
            scope = scope.parent
        raise OutsideError(f"names a column {node.sql()} that is not in the model")

    def _within(self, scope: Scope, name: str, table: str) -> Base | Derived | None:
        sources = dict(scope.sources)
        if table:
            alias = find_name(table, sources)
            return None if alias is None else self._of(scope, alias, name)
        columns = [f for f in (self._of(scope, alias, name) for alias in sources) if f is not None]
        if columns:
            return columns[0] if len(columns) == 1 else Derived.COMPUTED
        names = [s.alias for s in _selects(scope) if isinstance(s, exp.Alias)]
        return Derived.COMPUTED if find_name(name, names) is not None else None

    def _of(self, scope: Scope, alias: str, name: str) -> Base | Derived | None:
        """The column of one source."""
        source = scope.sources[alias]
        if isinstance(source, exp.Table):
            table = self._tables[find_name(source.name, self._tables) or ""]
            column = find_name(name, (c.name for c in table.columns))
            return None if column is None else (table.name, column)
        selects = _selects(source)
        outer = _renamed(source) or [s.alias_or_name for s in selects]
        column = find_name(name, outer)
        if column is None:
            return Derived.COMPUTED if any(s.is_star for s in selects) else None
        inside = selects[outer.index(column)].unalias()
        base = self._within(source, inside.name, inside.table) if isinstance(inside, exp.Column) else None
        return base or Derived.COMPUTED


def _selects(scope: Scope) -> list[exp.Expr]:
    return scope.expression.selects if isinstance(scope.expression, exp.Query) else []


def _renamed(scope: Scope) -> list[str]:
    """The names that `AS t (a, b)` gives to the columns of a subquery."""
    parent = scope.expression.parent
    return list(parent.alias_column_names) if isinstance(parent, (exp.Subquery, exp.CTE)) else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A literal (with its sign or cast), its value, the column that it is compared with, and how."""

    node: exp.Expr
    value: Scalar
    column: exp.Column
    usage: Usage

    @property
    def conjunction(self) -> tuple[int, str]:
        """Which conditions, joined by AND, it is one of, and the column: two ends of one range agree in both."""
        test = self.node.parent
        while test is not None and isinstance(test.parent, exp.And | exp.Paren):
            test = test.parent
        return id(test), self.column.sql()


def literals_of(tree: exp.Expr) -> list[Compared]:
    """List every literal that is compared with a column.

    OutsideError if one is compared with something else, or stands where what it says about values is not known.
    Numbers of rows and of columns, and 0 and 1 in arithmetic, belong to the form of the query.
    """
    if opaque := tree.find(*_OPAQUE):
        raise OutsideError(f"holds a literal that cannot be read: {opaque.key}")
    literals = [_literal(node) for node in tree.find_all(exp.Literal, exp.Boolean)]
    return [literal for literal in literals if literal is not None]


def round_limits(tree: exp.Expr) -> list[tuple[str, str]]:
    """Round every LIMIT to 1, 10, 100 or 1000 rows and drop every OFFSET; lists what changed, before and after."""
    changes = []
    for limit in list(tree.find_all(exp.Limit)):
        rows = scalar_of_literal(limit.expression) if limit.expression is not None else None
        if isinstance(rows, int):
            rounded = min(10 ** max(len(str(rows * 3)) - 1, 0), 1000)  # 4 and more of a power of ten are the next one
            limit.set("expression", exp.Literal.number(rounded))
            changes += [(f"LIMIT {rows}", f"LIMIT {rounded}")] if rows != rounded else []
    for offset in list(tree.find_all(exp.Offset)):
        changes.append((offset.sql().strip(), ""))
        offset.pop()
    return changes


def _literal(node: exp.Expr) -> Compared | None:
    while isinstance(node.parent, _WRAPPERS):
        node = node.parent
    parent, value = node.parent, scalar_of_literal(node)
    if _is_form(parent, value):
        return None
    column, usage = _compared(node, parent)
    while isinstance(column, exp.Paren):
        column = column.this
    if value is None or usage is None or not isinstance(column, exp.Column):
        raise OutsideError("holds a literal that is not compared with a column")
    return Compared(node=node, value=value, column=column, usage=usage)


def _is_form(parent: exp.Expr | None, value: Scalar | None) -> bool:
    """Whether a literal says nothing about values: a number of rows, the number of a column, 0 or 1, an escape."""
    if isinstance(parent, exp.Escape):
        return isinstance(value, str) and len(value) == 1 and not value.isalnum()
    if isinstance(value, str | None):
        return False
    if isinstance(parent, _CONSTANTS):
        return value in (0, 1)
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    if isinstance(parent, exp.Limit | exp.Offset):
        return value >= 0
    clause = parent.parent if isinstance(parent, exp.Ordered) else parent
    query = clause.parent if isinstance(clause, exp.Group | exp.Order) else None
    return isinstance(query, exp.Query) and 1 <= value <= len(query.selects)


def _compared(node: exp.Expr, parent: exp.Expr | None) -> tuple[exp.Expr | None, Usage | None]:
    match parent:
        case exp.Between():
            usage = {"low": Usage.AT_LEAST, "high": Usage.AT_MOST}.get(node.arg_key or "")
            return parent.this, usage
        case exp.In() if node.arg_key == "expressions":
            return parent.this, Usage.EQUAL
        case exp.Like() if node.arg_key == "expression":
            return parent.this, Usage.PATTERN
    if parent is None or type(parent) not in OPERATORS:
        return None, None
    on_right, on_left = OPERATORS[type(parent)]
    return (parent.this, on_right) if node.arg_key == "expression" else (parent.expression, on_left)


def check_form(tree: exp.Expr) -> None:
    """OutsideError if a statement holds a construct that is not known to be free of the publisher's words."""
    for node in tree.walk():
        if type(node) not in _ALLOWED:
            raise OutsideError(f"uses {node.key.upper()}, which cannot be checked for private text")
        if isinstance(node, exp.DataType) and (node.this not in _TYPES or _others(node, "this")):
            raise OutsideError("uses a type that is not a plain one")
        if isinstance(node, exp.Star) and _others(node):
            raise OutsideError("uses * with exceptions")
        if isinstance(node, exp.Window) and node.args.get("alias"):
            raise OutsideError("has a window with a name")
        if isinstance(node, exp.Identifier):
            if not isinstance(node.parent, _NAMED):
                raise OutsideError("has a name that is neither of a table nor of a column")
        elif not isinstance(node, exp.Literal) and any(word.upper() not in _KEYWORDS for word in _words(node)):
            raise OutsideError(f"uses {node.key.upper()} with words that cannot be checked for private text")


def rename(tree: exp.Expr, schema: Schema) -> None:
    """Number aliases and WITH queries (t1, t2, ..) and columns (c1, c2, ..) anew, throughout the statement.

    An alias that is a name of the schema stays. All others differ from every name of the schema, so that one new name
    for each, wherever it stands, leaves the meaning as it is.
    """
    tables = _spellings(t.name for t in schema.tables)
    columns = _spellings(c.name for t in schema.tables for c in t.columns)
    aliases = list(tree.find_all(exp.TableAlias))
    identifiers = [a.this for a in aliases if isinstance(a.this, exp.Identifier)]
    outputs = [name for a in aliases for name in a.args.get("columns") or ()]
    outputs += [a.args["alias"] for a in tree.find_all(exp.Alias)]
    taken = {*tables, *columns}
    new_tables, new_columns = _numbered(identifiers, "t", tables, taken), _numbered(outputs, "c", columns, taken)
    for node in list(tree.find_all(exp.Identifier)):
        of_table = isinstance(node.parent, exp.Table) or (
            node.arg_key == "table" or (isinstance(node.parent, exp.TableAlias) and node.arg_key == "this")
        )
        known, made = (tables, new_tables) if of_table else (columns, new_columns)
        _spell(node, known, made)


def _spell(node: exp.Identifier, known: dict[str, set[str]], made: dict[str, str]) -> None:
    name = str(node.this)
    folded = name.casefold()
    if folded in made:
        node.set("this", made[folded])
        node.set("quoted", False)
    elif folded not in known:
        raise OutsideError(f"has a name that is not in the model: {name}")
    elif name not in known[folded]:
        node.set("this", min(known[folded]))


def _numbered(
    names: Iterable[exp.Identifier], letter: str, known: dict[str, set[str]], taken: set[str]
) -> dict[str, str]:
    fresh = (name for name in (f"{letter}{n}" for n in count(1)) if name not in taken)
    made: dict[str, str] = {}
    spelled: dict[str, str] = {}
    for node in names:
        name = str(node.this)
        folded = name.casefold()
        if spelled.setdefault(folded, name) != name and node.args.get("quoted"):
            raise OutsideError(f"has aliases that differ in case only: {name}")
        if folded not in known and folded not in made:
            made[folded] = next(fresh)
    return made


def _spellings(names: Iterable[str]) -> dict[str, set[str]]:
    spellings: dict[str, set[str]] = {}
    for name in names:
        spellings.setdefault(name.casefold(), set()).add(name)
    return spellings


def _others(node: exp.Expr, *known: str) -> bool:
    return any(value for name, value in node.args.items() if name not in known)


def _words(node: exp.Expr) -> list[str]:
    values = [v for value in node.args.values() for v in (value if isinstance(value, list) else [value])]
    return [str(v) for v in values if isinstance(v, str | int) and not isinstance(v, bool | _Type)]
