"""Values: columns whose cells are listed values.

Numbers, dates and booleans are ordered by value, and an unlisted one goes to the nearest listed one. Text is
nominal: unlisted text goes to OTHER (to the first cell where there is no OTHER), and OTHER decodes to made-up
strings that are not in the list: as many as the domain says, of its shape, or else about as long as the listed ones.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.grid import INT64_DIGITS, one_array, typed, whole_numbers
from privbench.encode.layout import Codes, LaidOut, Layout, looked_up
from privbench.encode.pool import draw_ranks, weights
from privbench.encode.predicate import All, OfValues, Predicate, conjunction
from privbench.encode.scalar import bounds_of, decimal_of, number_of
from privbench.encode.shapes import ROOMY, shaping
from privbench.encode.spelling import LETTERS, SYLLABLES, key_strings, salt_of
from privbench.errors import SpecError
from privbench.schema.domain import EVEN_SKEW, Scalar, Values
from privbench.schema.types import Kind, SqlType

_Numbers = NDArray[np.int64] | NDArray[np.float64]
_OTHERS = 64
_OTHER_LENGTH = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrderedList(LaidOut):
    """Listed numbers, dates, times or booleans, ascending. `cuts[i]` is the last number nearer to i than to i + 1."""

    type: SqlType
    numbers: tuple[Fraction, ...]
    points: pa.Array
    cuts: _Numbers
    ordered: bool = True

    def encode(self, values: pa.Array | pa.ChunkedArray) -> Codes:
        """Return the code of the nearest listed value."""
        one = one_array(values)
        cells = np.searchsorted(self.cuts, _measure(self.type, one), side="left")
        if _is_wide(self.type):  # too many digits for a measure: listed values are found exactly first
            places = pc.index_in(one, value_set=self.points)
            cells = np.where(places.is_valid(), pc.fill_null(places, 0), cells)
        return self.layout.pack(cells, values)

    def decode(self, codes: Codes, rng: np.random.Generator, *, first_row: int) -> pa.Array:  # noqa: ARG002
        return looked_up(self.points, codes)

    def coverage(self, predicate: Predicate | All) -> NDArray[np.float64]:
        """1 for the listed values that satisfy the predicate."""
        return self.layout.coverage(predicate, self._shares)

    def labels(self) -> tuple[str, ...]:
        return self.layout.labels(self.points.cast(pa.string()).to_pylist())

    def _shares(self, parts: tuple[OfValues, ...]) -> NDArray[np.float64]:
        holds = conjunction(parts, lambda v: number_of(self.where, self.type, v))
        return self.layout.spread(np.array([float(holds(n)) for n in self.numbers]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextList(LaidOut):
    """Listed strings in the order of their code points; `others` are the strings that OTHER stands for.

    The most frequent of these come first, and the next ones are rarer as `skew` says.
    """

    points: pa.Array
    others: pa.Array
    skew: float
    ordered: bool = False

    def encode(self, values: pa.Array | pa.ChunkedArray) -> Codes:
        places = one_array(pc.index_in(values, value_set=self.points))
        cells = pc.fill_null(places, self.other_code or 0).to_numpy(zero_copy_only=False)
        return self.layout.pack(cells, values)

    def decode(self, codes: Codes, rng: np.random.Generator, *, first_row: int) -> pa.Array:
        """Return the listed string of each code; one of the made-up ones for OTHER."""
        if self.other_code is None:
            return looked_up(self.points, codes)
        places, unlisted = codes.astype(np.int64), np.flatnonzero(codes == self.other_code)
        places[self.layout.nulls(codes)] = len(self.points) + len(self.others)
        before = first_row / max(len(codes), 1)  # batches of this size that came before
        one_pool, sizes = np.zeros(len(unlisted), dtype=np.int64), np.array([len(self.others)])
        places[unlisted] += draw_ranks(one_pool, sizes, rng, before=before, skew=self.skew)
        return looked_up(pa.concat_arrays([self.points, self.others]), places)

    def coverage(self, predicate: Predicate | All) -> NDArray[np.float64]:
        """1 for the listed strings that satisfy the predicate; for OTHER, the share of its made-up strings."""
        return self.layout.coverage(predicate, self._shares)

    @property
    def other_shares(self) -> NDArray[np.float64]:
        """How often each of the strings that OTHER stands for is drawn."""
        return weights(len(self.others), self.skew)

    def labels(self) -> tuple[str, ...]:
        return self.layout.labels(self.points.to_pylist())

    def _shares(self, parts: tuple[OfValues, ...]) -> NDArray[np.float64]:
        holds = conjunction(parts, str)
        cells = np.array([float(holds(p)) for p in self.points.to_pylist()])
        others = np.array([holds(o) for o in self.others.to_pylist()], dtype=np.float64)
        return self.layout.spread(cells, other=float(others @ self.other_shares))


def ordered_list(where: str, kind: SqlType, domain: Values, *, nullable: bool) -> OrderedList:
    """Compile a list of numbers, dates, times or booleans."""
    if domain.other:
        raise SpecError(f"{where}: `other` is for text; an unlisted {kind.sql} goes to the nearest listed value.")
    numbers = sorted(_fitting(where, kind, value) for value in domain.values)
    points = _points(kind, numbers)
    if len(set(numbers)) < len(numbers) or pc.count_distinct(points).as_py() < len(numbers):
        raise SpecError(f"{where}: two of the listed values are the same {kind.sql}; leave one of them out.")
    return OrderedList(
        where=where,
        layout=Layout(cells=len(numbers), nullable=nullable),
        type=kind,
        numbers=tuple(numbers),
        points=points,
        cuts=_cuts(_measure(kind, points)),
    )


def text_list(where: str, kind: SqlType, domain: Values, *, nullable: bool) -> TextList:
    """Compile a list of strings."""
    listed = sorted(_string(where, kind, value) for value in domain.values)
    points = pa.array(listed, type=pa.string())
    made = _others(where, kind, domain, listed) if domain.other else []
    if domain.other and not made:
        raise SpecError(f"{where}: every short {kind.sql} is listed, so none is left for `other`; leave `other` out.")
    layout = Layout(cells=len(listed), other=domain.other, nullable=nullable)
    skew = EVEN_SKEW if domain.others is None else domain.skew
    return TextList(where=where, layout=layout, points=points, others=pa.array(made, type=pa.string()), skew=skew)


def _others(where: str, kind: SqlType, domain: Values, listed: list[str]) -> list[str]:
    """Make up the strings that OTHER stands for."""
    if domain.others is None and domain.shape is None and kind.syntax is None:
        return unlisted(kind, set(listed))
    count = _OTHERS if domain.others is None else domain.others
    shape, tries = shaping(where, domain.shape, kind), count + len(listed)
    lengths = [max(len(text), 1) for text in listed]
    if (
        domain.shape is None and kind.syntax is None
    ):  # as long as the listed ones, or longer if there are not enough strings of that length
        shape = SYLLABLES if SYLLABLES.room(min(kind.length or ROOMY, ROOMY)) >= tries else LETTERS
    room = shape.room(kind.length or ROOMY)
    numbers = np.arange(min(tries, room), dtype=np.int64)
    wanted = np.array(lengths, dtype=np.int64)[numbers % len(lengths)]
    made = shape.unique(numbers, wanted, wanted, salt=salt_of(where)).to_pylist()
    rest = set(listed)
    others = [text for text in made if text not in rest and len(text) <= (kind.length or len(text))][:count]
    if domain.others is not None and len(others) < count:
        raise SpecError(
            f"{where}: `others` is {count}, but only {len(others)} strings that fit {kind.sql} are left beside the "
            "list. Write at most that many, or another shape."
        )
    return others


def _fitting(where: str, kind: SqlType, value: Scalar) -> Fraction:
    number = number_of(where, kind, value)
    low, high = bounds_of(kind)
    if not low <= number <= high or (kind.kind is not Kind.FLOAT and number.denominator != 1):
        raise SpecError(f"{where}: {value!r} does not fit {kind.sql}; list only values that the column can hold.")
    return number


def _string(where: str, kind: SqlType, value: Scalar) -> str:
    if not isinstance(value, str):
        raise SpecError(f"{where}: {value!r} is not text; write it in quotes.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise SpecError(f"{where}: {value!r} is not valid Unicode; leave it out of the list.") from error
    if kind.labels and value not in kind.labels:
        raise SpecError(f"{where}: {value!r} is not a label of {kind.sql}; list only its labels.")
    if kind.length is not None and len(value) > kind.length:
        raise SpecError(f"{where}: {value!r} is longer than {kind.sql} allows; list only values that fit.")
    return value


def _points(kind: SqlType, numbers: list[Fraction]) -> pa.Array:
    if kind.kind is Kind.FLOAT:
        return pa.array([float(n) for n in numbers]).cast(kind.arrow)
    if kind.kind is Kind.DECIMAL:
        return pa.array([decimal_of(kind, n) for n in numbers], type=kind.arrow)
    return typed(kind, np.array([int(n) for n in numbers]), nulls=np.zeros(len(numbers), dtype=bool))


def _is_wide(kind: SqlType) -> bool:
    return kind.kind is Kind.DECIMAL and kind.precision > INT64_DIGITS


def _measure(kind: SqlType, values: pa.Array) -> _Numbers:
    """Numbers by which to find the nearest listed value; NaN sorts last, as in databases."""
    if kind.kind is Kind.FLOAT or _is_wide(kind):
        return np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False))
    return whole_numbers(kind, values)


def _cuts(points: _Numbers) -> _Numbers:
    """Return the middles between neighbours, rounded so that each listed value stays its own nearest."""
    if points.dtype == np.int64:
        return np.array([(int(a) + int(b)) // 2 for a, b in pairwise(points)], dtype=np.int64)
    low, high = points[:-1], points[1:]
    middles = low / 2 + high / 2
    return np.asarray(np.where(middles < high, np.maximum(middles, low), low))


def unlisted(kind: SqlType, listed: set[str]) -> list[str]:
    """Make up strings that OTHER can stand for; none if the list holds all that we would write."""
    if kind.labels:
        return []
    if kind.syntax is not None:
        return _others("", kind, Values(values=tuple(sorted(listed)) or ("",), other=True), sorted(listed) or [""])
    length = _OTHER_LENGTH if kind.length is None else min(_OTHER_LENGTH, kind.length)
    tries = np.arange(min(LETTERS.room(length), len(listed) + _OTHERS), dtype=np.int64)
    made: list[str] = key_strings(tries, length).to_pylist()
    return [text for text in made if text not in listed][:_OTHERS]
