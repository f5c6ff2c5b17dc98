"""From a publisher's literal to a value that is public: one mapper per kind of column.

A mapper knows the model, which is public, and all literals that a workload compares with its column. What it gives
depends on a literal only by the cell of the column's codec that the literal is in, by the order of the literals, and
by a secret that is thrown away.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from privbench.encode.interval import IntervalCodec
from privbench.encode.scalar import number_of
from privbench.encode.text import LengthCodec
from privbench.schema.domain import Scalar
from privbench.schema.types import Kind, SqlType
from privbench.workload.generate import scalar_of_value
from privbench.workload.literal import read_number
from privbench.workload.parse import OutsideError
from privbench.workload.usage import Usage

_SAMPLE = 1024
_TRIES = 64
Order = Fraction | str
_T = TypeVar("_T", bound=Scalar)


class Mapper(Protocol):
    """Maps the literals of one column."""

    def value(self, literal: Scalar, usage: Usage) -> Scalar | None:
        """Give a public value for a literal, another one if there is any; None if the literal itself is public."""

    def prefix(self, text: str) -> str | None:
        """Give a public prefix for the prefix of a LIKE; None if it is itself public."""

    def knows(self, fragments: Sequence[str]) -> bool:
        """Tell whether some public value holds all these pieces of text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column, the secret of the translation, and the literals it is compared with."""

    where: str
    type: SqlType
    secret: bytes
    literals: tuple[Scalar, ...]

    def order(self, value: Scalar) -> Order:
        """Make values of the column comparable."""
        return str(value) if self.type.kind is Kind.TEXT else number_of(self.where, self.type, value)

    def ranked(self, value: Scalar, among: Callable[[Order], bool] = lambda _: True) -> float:
        """Where a literal stands among the workload's literals, between 0 and 1, both left out."""
        places = sorted({o for o in map(self.order, self.literals) if among(o)})
        return (places.index(self.order(value)) + 1) / (len(places) + 1)

    def chosen(self, value: Scalar, among: int) -> int:
        """A number below `among` that depends on the literal and the secret."""
        text = f"{self.where}\0{self.order(value)}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(text, key=self.secret, digest_size=8).digest()) % max(among, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Public values one by one: a list of the spec, a column of a public table, keys that are public."""

    column: Column
    values: pa.Array
    """Ascending, without NULL."""
    others: Sequence[str]
    """Made-up strings for text that is not listed."""

    def value(self, literal: Scalar, usage: Usage) -> Scalar | None:
        """None if it is listed; else for a range the next listed value with the same answer."""
        wanted = self.column.order(literal)
        place = bisect_left(range(len(self.values)), wanted, key=self._order)
        if place < len(self.values) and self._order(place) == wanted:
            return None
        if usage is Usage.EQUAL and isinstance(wanted, str):
            return self._made_up(literal)
        if not len(self.values):
            raise OutsideError(f"compares with {self.column.where}, which has no public value")
        above, below = min(place, len(self.values) - 1), max(place - 1, 0)
        if usage is Usage.EQUAL and not isinstance(wanted, str):
            return self._scalar(min((below, above), key=lambda i: abs(Fraction(self._order(i)) - wanted)))
        return self._scalar(above if usage in (Usage.AT_LEAST, Usage.BELOW) else below)

    def prefix(self, text: str) -> str | None:
        """None if a listed text has the prefix."""
        if not text or any(str(v).startswith(text) for v in self.values.to_pylist()):
            return None
        if not self.others:
            return ""
        return _another(text, self.column.chosen(text, len(self.others)), len(self.others), self._other_prefix(text))

    def _other_prefix(self, text: str) -> Callable[[int], str]:
        return lambda place: self.others[place][: len(text)]

    def knows(self, fragments: Sequence[str]) -> bool:
        return any(all(f in str(v) for f in fragments) for v in self.values.to_pylist())

    def _made_up(self, literal: Scalar) -> Scalar:
        """Unlisted text: a made-up one, or, as the codec has it, the first listed one."""
        if self.others:
            chosen = self.column.chosen(literal, len(self.others))
            return _another(literal, chosen, len(self.others), lambda place: self.others[place])
        return self._scalar(0)

    def _order(self, place: int) -> Order:
        return self.column.order(self._scalar(place))

    def _scalar(self, place: int) -> Scalar:
        return _scalar(self.values[place].as_py())


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Numbers, dates and times in cells: edges and heavy hitters are public, what lies between is spread."""

    column: Column
    codec: IntervalCodec

    def value(self, literal: Scalar, usage: Usage) -> Scalar | None:  # noqa: ARG002
        """None if it is the start of a cell; an outer edge beyond the cells; else a fresh value of its cell."""
        place = self._place(self.column.order(literal))
        first, end = int(self.codec.first[0]), int(self.codec.last[-1]) + 1
        cell = self._cell(place)
        if place in (end, int(self.codec.first[cell])):
            return None
        if place < first:
            return self._written(self.codec.grid.scalar(first))
        if place > end:
            return self._written(self.codec.grid.scalar(min(end, self.codec.grid.high)))
        inside = self.column.ranked(literal, lambda o: self._is_inside(o, cell))
        value = self.codec.at(cell, inside)
        tick = self._place(self.column.order(value))
        if tick == place:  # by chance: its neighbour in the cell, which has at least two values
            value = self.codec.grid.scalar(int(tick) + (1 if tick < int(self.codec.last[cell]) else -1))
        return self._written(value)

    def prefix(self, text: str) -> str:  # noqa: ARG002
        raise OutsideError(f"compares {self.column.where} with text")

    def knows(self, fragments: Sequence[str]) -> bool:  # noqa: ARG002
        return False

    def _written(self, value: Scalar) -> Scalar:
        """A decimal is a number in SQL, and a string in the spec."""
        number = read_number(str(value)) if self.column.type.kind is Kind.DECIMAL else value
        return value if number is None else number

    def _is_inside(self, order: Order, cell: int) -> bool:
        place = self._place(order)
        return int(self.codec.first[cell]) < place < int(self.codec.last[cell]) + 1

    def _place(self, order: Order) -> Fraction:
        return (Fraction(order) - self.codec.grid.anchor) / self.codec.grid.step

    def _cell(self, place: Fraction) -> int:
        low, high = int(self.codec.first[0]), int(self.codec.last[-1])
        tick = min(max(floor(place), low), high)
        return int(np.searchsorted(self.codec.first, tick, side="right")) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeUp:
    """Keys, serial columns and free text: values that are made up row by row, without meaning."""

    column: Column
    rows: int
    make: Callable[[int], Any]
    """The value of a row."""
    codec: LengthCodec | None = None
    shares: Sequence[float] = ()
    """Of free text: the share of each code."""

    def value(self, literal: Scalar, usage: Usage) -> Scalar:
        """For equality a value chosen by hash; for ranges values that stand to each other as the literals do."""
        if usage is not Usage.EQUAL:
            inside = self.column.ranked(literal)
            rows = max(self.rows, 1)
            if self.codec is None and self.column.type.kind is not Kind.TEXT:
                return _another(literal, int(inside * rows), rows, self._made)
            made = sorted(str(self.make(row)) for row in range(min(rows, _SAMPLE)))
            return _another(literal, int(inside * len(made)), len(made), lambda place: made[place])
        if self.codec is not None:
            return self._text(literal)
        return _another(literal, self.column.chosen(literal, self.rows), self.rows, self._made)

    def prefix(self, text: str) -> str | None:
        if not text:
            return None
        if self.column.type.kind is not Kind.TEXT:
            return ""
        chosen = self.column.chosen(text, self.rows)
        return _another(text, chosen, self.rows, lambda row: str(self.make(row))[: len(text)])

    def knows(self, fragments: Sequence[str]) -> bool:  # noqa: ARG002
        return False

    def _text(self, literal: Scalar) -> str:
        """A made-up string of the literal's length cell, one that generated data are likely to hold."""
        assert self.codec is not None  # noqa: S101
        code = self.codec.encode(pa.array([str(literal)]))
        rows = (self.codec.distinct or self.rows) * self.shares[int(code[0])]
        codec, chosen = self.codec, self.column.chosen(literal, round(rows))
        return _another(
            str(literal),
            chosen,
            round(rows),
            lambda row: str(codec.decode(code, np.random.default_rng(row), first_row=row)[0].as_py()),
        )

    def _made(self, row: int) -> Scalar:
        return _scalar(self.make(row))


def _another(literal: Scalar, place: int, among: int, make: Callable[[int], _T]) -> _T:
    """The value at a place; if that is the literal by chance, the next one that is not."""
    found = make(place)
    for step in range(1, min(among, _TRIES)):
        if found != literal:
            break
        found = make((place + step) % among)
    return found


def _scalar(value: Any) -> Scalar:
    found = scalar_of_value(value)
    if found is None:
        raise OutsideError("compares with a column whose public value has no literal")
    return found
