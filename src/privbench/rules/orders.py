"""Which rules say that one column of a row is never above another: `users.creation_date <= creation_date`.

Terms of a rule that compare two columns, or the years of dates, are read; all else is passed over. As NULL keeps any
rule, `x IS NULL OR` before a comparison of x changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from privbench.deferred import exp
from privbench.schema.expression import DIALECT, ColumnName, Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A comparison that every row keeps, in which a larger `high` or a smaller `low` breaks nothing."""

    low: ColumnName
    high: ColumnName
    comparison: Expression


def orders_in(rules: Iterable[Expression]) -> Iterator[Order]:
    """The orders of two columns that rules state.

    >>> from privbench.schema.expression import parse_expression
    >>> rule = parse_expression("sent > orders.placed AND price BETWEEN cost AND 9", where="")
    >>> [str(order.comparison) for order in orders_in([rule])]
    ['orders.placed < sent', 'cost <= price']
    """
    for rule in rules:
        for low, high, strict in (found for term in _terms(rule.tree) for found in _compared(term)):
            below, above = _column(low), _column(high)
            if below is not None and above is not None and below != above:
                said = (exp.LT if strict else exp.LTE)(this=low.copy(), expression=high.copy())
                yield Order(low=below, high=above, comparison=Expression(sql=said.sql(DIALECT)))


def _terms(node: exp.Expr) -> Iterator[exp.Expr]:
    """The terms that all hold, without what only says that a column may be NULL."""
    node = node.unnest()
    if isinstance(node, exp.And):
        yield from _terms(node.left)
        yield from _terms(node.right)
    elif isinstance(node, exp.Or):
        parts = [part.unnest() for part in node.flatten()]
        others = [part for part in parts if not _is_null(part)]
        nulls = {str(part.this) for part in parts if _is_null(part)}
        if len(others) == 1 and nulls <= {str(column) for column in others[0].find_all(exp.Column)}:
            yield from _terms(others[0])
    else:
        yield node


def _is_null(node: exp.Expr) -> bool:
    return isinstance(node, exp.Is) and isinstance(node.expression, exp.Null)


def _compared(term: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr, bool]]:
    """What is below, what is above, and whether they are never equal."""
    if isinstance(term, exp.Between):
        yield term.args["low"], term.this, False
        yield term.this, term.args["high"], False
    elif isinstance(term, exp.LT | exp.LTE):
        yield term.left, term.right, isinstance(term, exp.LT)
    elif isinstance(term, exp.GT | exp.GTE):
        yield term.right, term.left, isinstance(term, exp.GT)


def _column(node: exp.Expr) -> ColumnName | None:
    """The column that a side is, or is the year of: both rise with it."""
    node = node.unnest()
    node = node.this.unnest() if isinstance(node, exp.Year) else node
    return ColumnName(node.table or None, node.name) if isinstance(node, exp.Column) else None
