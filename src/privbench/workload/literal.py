"""Literals of SQL as plain values and back, on the syntax tree; LIKE patterns as pieces of text.

Dates and times are ISO strings. A number is an int or a float if that says exactly the same, else a decimal string.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any

from sqlglot import exp

from privbench.schema.domain import Scalar

ESCAPE = "!"
"""What LIKE patterns are escaped with: unlike a backslash it means nothing to any system unless declared."""
_WILD = "%_"
_TEXT_CASTS = {
    exp.DataType.Type.DATE,
    exp.DataType.Type.TIME,
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.TIMESTAMPNTZ,
    exp.DataType.Type.DATETIME,
    exp.DataType.Type.TEXT,
    exp.DataType.Type.VARCHAR,
    exp.DataType.Type.CHAR,
}


class QueryDialect(Enum):
    """The systems that queries are read from and written for."""

    DUCKDB = "duckdb"
    POSTGRES = "postgres"
    SQLITE = "sqlite"
    MYSQL = "mysql"

    @property
    def backslash(self) -> bool:
        """Whether a backslash escapes in LIKE without being declared."""
        return self in (QueryDialect.POSTGRES, QueryDialect.MYSQL)


class Usage(Enum):
    """How a literal is compared with its column."""

    EQUAL = "="
    AT_LEAST = ">="
    ABOVE = ">"
    AT_MOST = "<="
    BELOW = "<"
    PATTERN = "like"


OPERATORS: Mapping[type[exp.Expr], tuple[Usage, Usage]] = {
    exp.EQ: (Usage.EQUAL, Usage.EQUAL),
    exp.NEQ: (Usage.EQUAL, Usage.EQUAL),
    exp.GTE: (Usage.AT_LEAST, Usage.AT_MOST),
    exp.GT: (Usage.ABOVE, Usage.BELOW),
    exp.LTE: (Usage.AT_MOST, Usage.AT_LEAST),
    exp.LT: (Usage.BELOW, Usage.ABOVE),
}
"""What an operator is to a literal on its right, and on its left."""


class Affix(Enum):
    """Where in a text the piece stands that a LIKE asks for."""

    PREFIX = "x%"
    SUFFIX = "%x"
    INSIDE = "%x%"

    def holds(self, text: str, piece: str) -> bool:
        """Tell whether a text has the piece there."""
        if self is Affix.PREFIX:
            return text.startswith(piece)
        return text.endswith(piece) if self is Affix.SUFFIX else piece in text

    def pieces(self, text: str, lengths: Iterable[int]) -> Iterator[str]:
        """Every piece of these lengths that a text has there.

        >>> list(Affix.SUFFIX.pieces("abc", (1, 2)))
        ['c', 'bc']
        """
        for length in (n for n in lengths if n <= len(text)):
            last = len(text) - length
            starts = {Affix.PREFIX: range(1), Affix.SUFFIX: range(last, last + 1), Affix.INSIDE: range(last + 1)}
            yield from (text[start : start + length] for start in starts[self])


def scalar_of_value(value: Any) -> Scalar | None:
    """Write a value of an Arrow array as a literal; None for what has none (NaN, infinities)."""
    match value:
        case bool() | int() | str():
            return value
        case float():
            return value if isfinite(value) else None
        case Decimal():
            return read_number(f"{value:f}")
        case dt.datetime():
            return value.isoformat(sep=" ")
        case dt.date() | dt.time():
            return value.isoformat()
    return None


def scalar_of_literal(node: exp.Expr) -> Scalar | None:
    """Read a literal, signed or cast to a date or text; None if it is anything else."""
    match node:
        case exp.Paren():
            return scalar_of_literal(node.this)
        case exp.Boolean():
            return bool(node.this)
        case exp.Neg():
            number = node.this
            return read_number(f"-{number.this}") if isinstance(number, exp.Literal) and not number.is_string else None
        case exp.Cast() if node.to.this in _TEXT_CASTS:
            inside = node.this
            return str(inside.this) if isinstance(inside, exp.Literal) and inside.is_string else None
        case exp.Literal():
            return str(node.this) if node.is_string else read_number(str(node.this))
    return None


def read_number(text: str) -> Scalar | None:
    """Read a number exactly; None if it has no finite value.

    >>> read_number("2.50"), read_number("-7"), read_number("0.12345678901234567890")
    (2.5, -7, '0.12345678901234567890')
    """
    digits = text.removeprefix("-")
    if digits.isdecimal():
        return int(text)
    try:
        exact, nearest = Decimal(text), float(text)
    except (ArithmeticError, ValueError):
        return None
    if not exact.is_finite():
        return None
    return nearest if exact == Decimal(repr(nearest)) else text


def literal_of(value: Scalar) -> exp.Expr:
    """Write a value as a literal."""
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str):
        return exp.Literal.string(value)
    number = exp.Literal.number(repr(abs(value)))
    return exp.Neg(this=number) if value < 0 else number


def pattern_parts(pattern: str, escape: str | None) -> list[tuple[str, bool]]:
    """Take a LIKE pattern apart into characters and whether each is a wildcard."""
    parts: list[tuple[str, bool]] = []
    characters = iter(pattern)
    for character in characters:
        if escape is not None and character == escape:
            parts.append((next(characters, character), False))
        else:
            parts.append((character, character in _WILD))
    return parts


def affix_of(parts: list[tuple[str, bool]]) -> tuple[str, Affix] | None:
    """The piece of text that a pattern asks for, and where it stands; None for any other pattern.

    >>> affix_of(pattern_parts("%ab%", None)), affix_of(pattern_parts("a_b", None))
    (('ab', <Affix.INSIDE: '%x%'>), None)
    """
    shape = "".join(c if wild else "x" for c, wild in parts)
    ends = (shape[:1] == "%", len(shape) > 1 and shape[-1:] == "%")
    inside = parts[ends[0] : len(parts) - ends[1]]
    affix = {(False, True): Affix.PREFIX, (True, False): Affix.SUFFIX, (True, True): Affix.INSIDE}.get(ends)
    if affix is None or not inside or any(wild for _, wild in inside):
        return None
    return "".join(c for c, _ in inside), affix


def like(column: exp.Expr, text: str, affix: Affix = Affix.PREFIX) -> exp.Expr:
    """Write a LIKE that is true of text with this piece."""
    plain = not any(c in text for c in (*_WILD, ESCAPE, "\\"))
    escaped = text if plain else "".join(ESCAPE + c if c in (*_WILD, ESCAPE) else c for c in text)
    pattern = exp.Like(this=column, expression=exp.Literal.string(affix.value.replace("x", escaped)))
    return pattern if plain else exp.Escape(this=pattern, expression=exp.Literal.string(ESCAPE))
