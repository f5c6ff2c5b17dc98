"""Dates and times in a rule, for a system that compares them in another form than the rule writes them.

SQLite has no such types: a value is text of one form (`sqlite_file`), and two texts are compared letter by letter. So a
literal gets that form, and a date beside a timestamp the hour. MySQL and MariaDB take no offset: a literal is in UTC,
as the values are. A rule that does more with a date than to compare it is none that SQLite can check.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time

from privbench.deferred import exp
from privbench.schema.tables import Table
from privbench.schema.types import Kind, SqlType

_WIDTH = {"TIME": 0, "DATE": 1, "TIMESTAMP": 2, "TIMESTAMPTZ": 3}
"""What is compared with a wider one is made it first, as DuckDB does; a TIME only with its like."""
_ENDS = {"DATE": " 00:00:00.000000", "TIMESTAMPTZ": "Z"}
_MYSQL = {"TIME": "TIME(6)", "DATE": "DATE", "TIMESTAMP": "DATETIME(6)", "TIMESTAMPTZ": "DATETIME(6)"}


def comparable_times(tree: exp.Expr, table: Table, dialect: str) -> exp.Expr | None:
    """A rule over the columns of a table as SQLite or MySQL can check it; None where it cannot."""
    types = {column.name: column.type for column in table.columns}
    tree = tree.copy()
    done: set[int] = {id(n.this.unnest()) for n in tree.find_all(exp.Is)}
    try:
        for node in list(tree.find_all(exp.Predicate, exp.In)):
            done |= _compared(_operands(node), types, dialect)
        for cast in [n for n in tree.find_all(exp.Cast) if id(n) not in done and _is_literal(n.this)]:
            if (kind := _named(cast, types)) is not None:
                done.add(id(_put(cast, kind, types, dialect)))
    except ValueError:
        return None
    left = [n for n in tree.find_all(exp.Column, exp.Cast, exp.Interval) if id(n) not in done]
    if any(_is_lost(n, types, dialect) for n in left):
        return None
    return tree


def _is_lost(node: exp.Expr, types: Mapping[str, SqlType], dialect: str) -> bool:
    """Whether the system has no such values to work with."""
    if isinstance(node, exp.Column) and node.name in types and types[node.name].kind is Kind.DURATION:
        return True
    return dialect == "sqlite" and (isinstance(node, exp.Interval) or _named(node, types) is not None)


def _operands(node: exp.Expr) -> list[exp.Expr]:
    """What a comparison compares."""
    match node:
        case exp.Between():
            return [node.this, node.args["low"], node.args["high"]]
        case exp.In():
            return [node.this, *node.expressions]
        case exp.Binary() if not isinstance(node, exp.Is):
            return [node.this, node.expression]
    return []


def _compared(operands: list[exp.Expr], types: Mapping[str, SqlType], dialect: str) -> set[int]:
    """Write what is compared in one form, and tell what was; nothing where it is not all columns and literals."""
    inner = [node.unnest() for node in operands]
    kinds = {kind for node in inner if (kind := _named(node, types)) is not None}
    simple = all(isinstance(n, exp.Column | exp.Null) or _is_literal(n) or _is_literal(n.this) for n in inner)
    if not kinds or not simple or (len(kinds) > 1 and "TIME" in kinds):
        return set()
    widest = max(kinds, key=lambda kind: _WIDTH[kind])
    return {id(_put(node, widest, types, dialect)) for node in inner}


def _named(node: exp.Expr, types: Mapping[str, SqlType]) -> str | None:
    """The type of a column, or that a value is cast to, if it is a date or time."""
    if isinstance(node, exp.Column):
        sql = types[node.name].sql if node.name in types else ""
    else:
        sql = node.to.sql("duckdb") if isinstance(node, exp.Cast) else ""
    return sql if sql in _WIDTH else None


def _is_literal(node: object) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


def _put(node: exp.Expr, kind: str, types: Mapping[str, SqlType], dialect: str) -> exp.Expr:
    """Put a value of this type, as the system compares it, into the place of a column or literal."""
    if isinstance(node, exp.Column | exp.Null):
        own = _named(node, types)
        if dialect == "sqlite" and own is not None and own != kind:
            ends = (_ENDS["DATE"] if own == "DATE" else "") + (_ENDS["TIMESTAMPTZ"] if kind == "TIMESTAMPTZ" else "")
            column = node.copy()
            node.replace(exp.DPipe(this=column, expression=exp.Literal.string(ends)))
            return column
        return node
    text = exp.Literal.string(_normal((node if _is_literal(node) else node.this).name, kind, dialect))
    new = text if dialect == "sqlite" else exp.cast(text, _MYSQL[kind], dialect="mysql")
    node.replace(new)
    return new


def _normal(text: str, kind: str, dialect: str) -> str:
    """A literal in the one form of its type; ValueError for what is none (`infinity`)."""
    if kind == "DATE":
        return date.fromisoformat(text).isoformat()
    if kind == "TIME":
        return time.fromisoformat(text).isoformat("microseconds")
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    end = _ENDS["TIMESTAMPTZ"] if kind == "TIMESTAMPTZ" and dialect == "sqlite" else ""
    return moment.isoformat(" ", "microseconds") + end
