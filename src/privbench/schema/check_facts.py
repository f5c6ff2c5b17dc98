"""What the CHECKs of a table say of one column: its values, its bounds, how long texts are and their pattern.

A term that lists literals or bounds a column is read; what is neither (another function, two columns, NOT) is passed
over, which only makes a domain wider: rules are met in any case, by drawing rows again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from itertools import product

from privbench.deferred import exp
from privbench.schema.domain import MAX_CELLS, Domain, Range, Scalar, Values
from privbench.schema.expression import Expression
from privbench.schema.types import Kind, SqlType

Literal = str | Decimal | bool
MOST_TICKS = 366
"""Bounds with no more values between them than this, the days of a year, give a cell for each."""
_EXACT = Context(prec=100)
_EPOCH = dt.date(1970, 1, 1)
_MOST_CASES = 64
"""A list whose members may be in capital or in small letters is written out up to so many texts."""


@dataclass(slots=True)
class Facts:
    """What the CHECKs of a table say about one column."""

    values: list[Literal] | None = None
    low: list[tuple[Literal, bool]] = field(default_factory=list)  # bound, inclusive
    high: list[tuple[Literal, bool]] = field(default_factory=list)
    shortest: int = 0
    longest: int | None = None
    patterns: list[str] = field(default_factory=list)  # of LIKE
    required: bool = False  # IS NOT NULL


def facts_of(checks: Iterable[Expression]) -> dict[str, Facts]:
    """Collect what the CHECKs of a table say, by column.

    >>> from privbench.schema.expression import parse_expression
    >>> facts = facts_of([parse_expression("price > 0 AND (code IS NULL OR LENGTH(code) = 5)", where="")])
    >>> facts["price"].low, facts["code"].shortest, facts["code"].longest
    ([(Decimal('0'), False)], 5, 5)
    """
    facts: dict[str, Facts] = {}
    for check in checks:
        if all(name.table is None for name in check.columns):
            for term in _terms(check.tree):
                _note(term, facts)
    return facts


def implied_domain(facts: Facts, of: SqlType) -> Domain | None:
    """Find the domain that the facts give a column of this type, if they give one.

    Wide bounds give none: a cell for every value would be noise. They hold as rules, within which a domain is found.
    """
    if facts.values is not None:
        scalars = [_scalar(v, of) for v in facts.values]
        known = tuple(s for s in dict.fromkeys(scalars) if s is not None)
        complete = None not in scalars and 0 < len(set(map(str, known))) == len(known) <= MAX_CELLS
        return Values(values=known) if complete else None
    if not facts.low or not facts.high:
        return None
    lows = [_units(v, of, up=True, strict=not inclusive) for v, inclusive in facts.low]
    highs = [_units(v, of, up=False, strict=not inclusive) for v, inclusive in facts.high]
    low = max((u for u in lows if u is not None), default=None)
    high = min((u for u in highs if u is not None), default=None)
    if low is None or high is None or not 0 <= high - low < MOST_TICKS:
        return None
    return Range(range=(_of_units(low, of), _of_units(high, of)))


def _terms(node: exp.Expr) -> list[exp.Expr]:
    node = _bare(node)
    if isinstance(node, exp.And):
        return _terms(node.left) + _terms(node.right)
    return [node]


def _bare(node: exp.Expr) -> exp.Expr:
    """Take off brackets and casts; PostgreSQL writes `(x)::text = 'a'::text` for `x = 'a'`."""
    while isinstance(node, (exp.Paren, exp.Cast)):
        node = node.this
    return node


def _note(term: exp.Expr, facts: dict[str, Facts]) -> None:
    listed = _listed(term)
    if listed is not None and listed[1]:
        facts.setdefault(listed[0], Facts()).values = listed[1]
        return
    if (required := _required(term)) is not None:
        facts.setdefault(required, Facts()).required = True
    term = _unless_null(term)
    for column, value, below, inclusive in _bounds(term):
        fact = facts.setdefault(column, Facts())
        (fact.low if below else fact.high).append((value, inclusive))
    for column, shortest, longest in _lengths(term):
        fact = facts.setdefault(column, Facts())
        fact.shortest = max(fact.shortest, shortest)
        fact.longest = longest if fact.longest is None else min(fact.longest, longest or fact.longest)
    if isinstance(term, exp.Like) and (like := _column(term.this)) and isinstance(_literal(term.expression), str):
        facts.setdefault(like, Facts()).patterns.append(str(_literal(term.expression)))


def _required(term: exp.Expr) -> str | None:
    """The column that a term says is not NULL."""
    inner = _bare(term.this) if isinstance(term, exp.Not) else term
    negated = isinstance(term, exp.Not) != bool(inner.args.get("negate"))
    is_null = isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null)
    return _column(inner.this) if is_null and negated else None


def _unless_null(term: exp.Expr) -> exp.Expr:
    """Take `x IS NULL OR` off a term about x: a NULL passes any CHECK."""
    if not isinstance(term, exp.Or):
        return term
    left, right = _bare(term.left), _bare(term.right)
    for null, other in ((left, right), (right, left)):
        if isinstance(null, exp.Is) and isinstance(null.expression, exp.Null):
            names = {column.name for column in other.find_all(exp.Column)}
            if names == {_column(null.this)}:
                return other
    return term


def _listed(term: exp.Expr) -> tuple[str, list[Literal]] | None:
    """Read a term that lists the values of one column; `x IS NULL` adds none, as NULL passes any CHECK."""
    term = _bare(term)
    if isinstance(term, exp.Or):
        left, right = _listed(term.left), _listed(term.right)
        return (left[0], left[1] + right[1]) if left and right and left[0] == right[0] else None
    if not isinstance(term, (exp.In, exp.EQ, exp.Is)):
        return None
    inner = _bare(term.this)
    column = _column(inner.this if isinstance(inner, (exp.Upper, exp.Lower)) else inner)
    if column is None:
        return None
    if isinstance(term, exp.Is):
        return (column, []) if isinstance(term.expression, exp.Null) else None
    nodes = list(term.expressions) if isinstance(term, exp.In) else [term.expression]
    values = [_literal(n) for n in nodes]
    known = [v for v in values if v is not None]
    if not nodes or len(known) != len(nodes):
        return None
    if isinstance(inner, (exp.Upper, exp.Lower)):
        cased = _in_any_case(known, upper=isinstance(inner, exp.Upper))
        return None if cased is None else (column, cased)
    return column, known


def _in_any_case(values: list[Literal], *, upper: bool) -> list[Literal] | None:
    """The texts that are one of these in capital, or in small, letters; None if they are too many to list.

    >>> _in_any_case(["M", "f"], upper=True)
    ['M', 'm']
    """
    texts = [v for v in values if isinstance(v, str) and v == (v.upper() if upper else v.lower())]
    cases = sum(2 ** sum(c.isalpha() for c in text) for text in texts)
    if cases > _MOST_CASES or not all(map(str.isascii, texts)):
        return None
    return ["".join(cs) for text in texts for cs in product(*(dict.fromkeys((c.upper(), c.lower())) for c in text))]


def _lengths(term: exp.Expr) -> list[tuple[str, int, int | None]]:
    """Read bounds of the length of a text as (column, shortest, longest)."""
    lengths: list[tuple[str, int, int | None]] = []
    for of, value, below, inclusive in _compared(term):
        number = _literal(value)
        if not isinstance(number, Decimal) or (column := _measured(of)) is None:
            continue
        least = int(number.to_integral_value(ROUND_CEILING if below else ROUND_FLOOR))
        least += 0 if inclusive or least != number else (1 if below else -1)
        lengths.append((column, max(least, 0), None) if below else (column, 0, least))
    if isinstance(term, exp.EQ):
        number, column = _literal(term.right), _measured(_bare(term.left))
        if isinstance(number, Decimal) and column is not None and number == int(number):
            lengths.append((column, int(number), int(number)))
    return lengths


def _measured(node: exp.Expr) -> str | None:
    """The column whose length a node is, in letters or in bytes: made-up texts have as many of these as of those."""
    if isinstance(node, exp.Anonymous) and node.name.upper() == "STRLEN":
        return _column(node.expressions[0])
    return _column(node.this) if isinstance(node, exp.Length) else None


def _compared(term: exp.Expr) -> list[tuple[exp.Expr, exp.Expr, bool, bool]]:
    """Read a comparison both ways round, as (what, with what, is that a lower bound, inclusive)."""
    if isinstance(term, exp.Between):
        sides = [(term.this, term.args["low"], True, True), (term.this, term.args["high"], False, True)]
    elif isinstance(term, (exp.GT, exp.GTE, exp.LT, exp.LTE)):
        below, inclusive = isinstance(term, (exp.GT, exp.GTE)), isinstance(term, (exp.GTE, exp.LTE))
        sides = [(term.left, term.right, below, inclusive), (term.right, term.left, not below, inclusive)]
    else:
        return []
    return [(_bare(what), value, below, inclusive) for what, value, below, inclusive in sides]


def _bounds(term: exp.Expr) -> list[tuple[str, Literal, bool, bool]]:
    """Read bounds as (column, value, is it a lower one, inclusive)."""
    bounds = []
    for column_side, value_side, below, inclusive in _compared(term):
        column, value = _column(column_side), _literal(value_side)
        if column is not None and value is not None:
            bounds.append((column, value, below, inclusive))
    return bounds


def _column(node: exp.Expr) -> str | None:
    node = _bare(node)
    return node.name if isinstance(node, exp.Column) else None


def _literal(node: exp.Expr) -> Literal | None:
    node = _bare(node)
    if isinstance(node, exp.Neg):
        value = _literal(node.this)
        return -value if isinstance(value, Decimal) else None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if not isinstance(node, exp.Literal):
        return None
    return str(node.this) if node.is_string else Decimal(node.this)


def _scalar(value: Literal, of: SqlType) -> Scalar | None:
    """Write a literal as the spec writes a value of that type; None if it is not one."""
    if of.kind is Kind.TEXT:
        return value if isinstance(value, str) else None
    if of.kind is Kind.BOOLEAN:
        return value if isinstance(value, bool) else None
    if of.kind is Kind.FLOAT:
        return float(value) if isinstance(value, Decimal) else None
    units = _units(value, of, up=True, strict=False)
    return None if units is None or units != _units(value, of, up=False, strict=False) else _of_units(units, of)


def _units(value: Literal, of: SqlType, *, up: bool, strict: bool) -> int | None:
    """Count the type's smallest steps in a value, rounded inwards; None for types without such a step."""
    if isinstance(value, bool):
        return None
    try:
        if of.kind is Kind.DATE:
            exact = Decimal((dt.date.fromisoformat(str(value)) - _EPOCH).days)
        elif of.kind in (Kind.INTEGER, Kind.DECIMAL):
            exact = Decimal(value).scaleb(of.scale, _EXACT)
        else:
            return None
    except (ValueError, InvalidOperation):
        return None
    whole = int(exact.to_integral_value(ROUND_CEILING if up else ROUND_FLOOR))
    return whole + (1 if up else -1) if strict and whole == exact else whole


def _of_units(units: int, of: SqlType) -> Scalar:
    if of.kind is Kind.DATE:
        return (_EPOCH + dt.timedelta(days=units)).isoformat()
    return units if of.kind is Kind.INTEGER else f"{Decimal(units).scaleb(-of.scale, _EXACT):f}"
