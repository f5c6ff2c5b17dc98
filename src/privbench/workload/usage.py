"""What a literal of a query is there for: compared with a column, part of the query's form, or neither."""

from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from privbench.schema.domain import Scalar
from privbench.workload.literal import scalar_of_literal
from privbench.workload.parse import OutsideError

_WRAPPERS = (exp.Neg, exp.Paren, exp.Cast)
_CONSTANTS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Case, exp.If, exp.Count, exp.Select, exp.Coalesce)
_OPAQUE = (exp.HexString, exp.BitString, exp.ByteString, exp.RawString, exp.National, exp.UnicodeString, exp.Heredoc)


class Usage(Enum):
    """How a literal is compared with its column."""

    EQUAL = "="
    AT_LEAST = ">="
    ABOVE = ">"
    AT_MOST = "<="
    BELOW = "<"
    PATTERN = "like"


_OPERATORS: dict[type[exp.Expr], tuple[Usage, Usage]] = {
    exp.EQ: (Usage.EQUAL, Usage.EQUAL),
    exp.NEQ: (Usage.EQUAL, Usage.EQUAL),
    exp.GTE: (Usage.AT_LEAST, Usage.AT_MOST),
    exp.GT: (Usage.ABOVE, Usage.BELOW),
    exp.LTE: (Usage.AT_MOST, Usage.AT_LEAST),
    exp.LT: (Usage.BELOW, Usage.ABOVE),
}
"""What an operator is to a literal on its right, and on its left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A literal (with its sign or cast), its value, the column that it is compared with, and how."""

    node: exp.Expr
    value: Scalar
    column: exp.Column
    usage: Usage


def literals_of(tree: exp.Expr) -> list[Found]:
    """Find every literal that is compared with a column.

    OutsideError if one is compared with something else, or stands where what it says about values is not known.
    Numbers of rows and of columns, and 0 and 1 in arithmetic, belong to the form of the query.
    """
    if opaque := tree.find(*_OPAQUE):
        raise OutsideError(f"holds a literal that cannot be mapped: {opaque.key}")
    found = [_found(node) for node in tree.find_all(exp.Literal, exp.Boolean)]
    return [f for f in found if f is not None]


def _found(node: exp.Expr) -> Found | None:
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
    return Found(node=node, value=value, column=column, usage=usage)


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
    operators = None if parent is None else _OPERATORS.get(type(parent))
    if parent is None or operators is None:
        return None, None
    on_right = node.arg_key == "expression"
    return (parent.this, operators[0]) if on_right else (parent.expression, operators[1])
