"""The form of a statement that is to be published: only constructs that are known to carry no words of the publisher.

What is not listed here is refused. Aliases and the names of WITH queries are numbered anew, names of the schema get
the schema's spelling, and qualifiers of tables (a database, a catalog) are dropped.
"""

from collections.abc import Iterable
from itertools import count

from sqlglot import exp

from privbench.schema.tables import Schema
from privbench.workload.parse import OutsideError

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


def drop_qualifiers(tree: exp.Expr) -> None:
    """Drop the database and the catalog before tables and columns."""
    shared = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    for node in tree.find_all(exp.Table, exp.Column):
        qualified = node.args.get("db") or node.args.get("catalog")
        if qualified and isinstance(node, exp.Table) and node.name.casefold() in shared:
            raise OutsideError("has a WITH query of the same name as a table")
        node.set("db", None)
        node.set("catalog", None)


def check_form(tree: exp.Expr) -> None:
    """OutsideError if a statement holds a construct that is not known to be free of the publisher's words."""
    for node in tree.walk():
        if type(node) not in _ALLOWED:
            raise OutsideError(f"uses {node.key.upper()}, which is not known to be fit for publishing")
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
            raise OutsideError(f"uses {node.key.upper()} with words that are not known to be fit for publishing")


def rename(tree: exp.Expr, schema: Schema) -> None:
    """Number aliases and WITH queries (t1, t2, ..) and columns (c1, c2, ..) anew, throughout the statement.

    An alias that is a name of the schema stays. All others differ from every name of the schema, so that one new name
    for each, wherever it stands, leaves the meaning as it is.
    """
    tables = _spellings(t.name for t in schema.tables)
    columns = _spellings(c.name for t in schema.tables for c in t.columns)
    aliases = list(tree.find_all(exp.TableAlias))
    named = [a.this for a in aliases if isinstance(a.this, exp.Identifier)]
    outputs = [name for a in aliases for name in a.args.get("columns") or ()]
    outputs += [a.args["alias"] for a in tree.find_all(exp.Alias)]
    taken = {*tables, *columns}
    new_tables, new_columns = _numbered(named, "t", tables, taken), _numbered(outputs, "c", columns, taken)
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
    found: dict[str, set[str]] = {}
    for name in names:
        found.setdefault(name.casefold(), set()).add(name)
    return found


def _others(node: exp.Expr, *known: str) -> bool:
    return any(value for name, value in node.args.items() if name not in known)


def _words(node: exp.Expr) -> list[str]:
    values = [v for value in node.args.values() for v in (value if isinstance(value, list) else [value])]
    return [str(v) for v in values if isinstance(v, str | int) and not isinstance(v, bool | _Type)]
