"""Rules that hold whatever the rows are, by the bounds of the numbers that they name.

A rule over a column that adds up rows below cannot be kept by drawing rows again, but may follow from what is added
up: a sum of numbers of which none is negative is not negative. Bounds are worked out like numbers, from the inside out;
what is not understood here has none, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, inf, isnan

from privbench.deferred import exp
from privbench.schema.expression import ColumnName, Expression


@dataclass(frozen=True, slots=True)
class Bounds:
    """No value of a number is below `low` or above `high`; it may be NULL."""

    low: float = -inf
    high: float = inf

    def with_zero(self) -> Bounds:
        """The same, for a number that may also be 0."""
        return Bounds(min(self.low, 0), max(self.high, 0))

    def rounded(self) -> Bounds:
        """The same, for a number that was rounded to some digits."""
        return Bounds(*(end if abs(end) == inf else side(end) for side, end in ((floor, self.low), (ceil, self.high))))


BoundsOf = Callable[[ColumnName], Bounds]


def always_holds(rule: Expression, bounds: BoundsOf) -> bool:
    """Whether no row breaks a rule, given the bounds of the columns that it names.

    >>> from privbench.schema.expression import parse_expression
    >>> rule = parse_expression("total IS NULL OR total * 2 >= 0", where="")
    >>> always_holds(rule, lambda name: Bounds(low=0)), always_holds(rule, lambda name: Bounds())
    (True, False)
    """
    return _always(rule.tree, bounds)


def _always(node: exp.Expr, bounds: BoundsOf) -> bool:
    node = node.unnest()
    if isinstance(node, exp.And):
        return _always(node.left, bounds) and _always(node.right, bounds)
    if isinstance(node, exp.Or):
        return _always(node.left, bounds) or _always(node.right, bounds)
    if isinstance(node, exp.Between):
        value, low, high = (bounds_of(part, bounds) for part in (node.this, node.args["low"], node.args["high"]))
        return value.low >= low.high and value.high <= high.low
    if not isinstance(node, exp.LT | exp.LTE | exp.GT | exp.GTE):
        return False
    left, right = bounds_of(node.left, bounds), bounds_of(node.right, bounds)
    low, high = (left, right) if isinstance(node, exp.LT | exp.LTE) else (right, left)
    return low.high < high.low or (low.high == high.low and isinstance(node, exp.LTE | exp.GTE))


def bounds_of(node: exp.Expr, bounds: BoundsOf) -> Bounds:
    """The bounds of an expression, given those of columns."""
    node = node.unnest()
    match node:
        case exp.Literal(is_string=False):
            return Bounds(float(node.name), float(node.name))
        case exp.Column():
            return bounds(ColumnName(node.table or None, node.name))
        case exp.Neg():
            inner = bounds_of(node.this, bounds)
            return Bounds(-inner.high, -inner.low)
        case exp.Count():
            return Bounds(low=0)
        case exp.Sum():
            inner = bounds_of(node.this, bounds)
            return Bounds(0 if inner.low >= 0 else -inf, 0 if inner.high <= 0 else inf)
        case exp.Min() | exp.Max() | exp.Avg():
            return bounds_of(node.this, bounds) if not node.expressions else Bounds()
        case exp.Add() | exp.Sub() | exp.Mul():
            return _combined(node, bounds_of(node.left, bounds), bounds_of(node.right, bounds))
    return Bounds()


def _combined(node: exp.Binary, left: Bounds, right: Bounds) -> Bounds:
    if isinstance(node, exp.Add):
        return Bounds(left.low + right.low, left.high + right.high)
    if isinstance(node, exp.Sub):
        return Bounds(left.low - right.high, left.high - right.low)
    ends = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    known = [0.0 if isnan(end) else end for end in ends]  # 0 times what has no end is 0
    return Bounds(min(known), max(known))
