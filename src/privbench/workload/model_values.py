"""What a model draws for a column, and literals drawn from it in place of those of a query.

A column is a row of cells, each with a probability and a number of different values. Of an original literal only its
cell is looked at, and of that only the class of selectivities that the condition is in under the model: `=` becomes a
value of the same class, `<` and its kin a quantile, a range another range anywhere in the column, and LIKE a piece of a
value. Classes follow from the model alone, so that many draws for one literal tell no more than its class. The same
literal becomes the same value among conditions that AND joins, and nowhere else.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, log
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.interval import IntervalCodec
from privbench.encode.scalar import number_of
from privbench.schema.domain import Scalar
from privbench.schema.types import Kind, SqlType
from privbench.workload.literal import Affix, Usage, read_number, scalar_of_value
from privbench.workload.table_names import OutsideError

LIKE_FACTOR = 1.5
"""Selectivities are in one class if they are in one band, whose ends differ by this factor."""
MOST_CANDIDATES = 8
"""Bands of fewer cells than this are joined to one class; in a small column than a quarter of them, at least two."""
LOW, HIGH = 2 / 3, 1 / 3
"""Where in their cells, from above, the ends of a range are taken to be: about a third of a cell apart in one."""
MOST_STRINGS = 1024
"""Of how many values of a text column the pieces are looked at that a LIKE may ask for."""
HALF = 0.5
_PIECE_LENGTHS = range(1, 7)
_TRIES = 32
_LEAST = 1e-12
Comparable = Fraction | str
"""A value by which others of its column are before or after it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelColumn:
    """The cells of a column in the order of their values; everything here is public with the model."""

    where: str
    type: SqlType
    shares: NDArray[np.float64]  # (cells,)
    """Probabilities of the cells, which sum to 1."""
    values_in: NDArray[np.float64]  # (cells,)
    """How many different values each cell holds."""
    cell_of: Callable[[Scalar, Usage], int]
    """The cell of a literal: all that is ever looked at."""
    at: Callable[[int, float], Scalar]
    """The value at a share, from 0 up to 1, of a cell's values."""
    holds: Callable[[Scalar], bool] = lambda _: False
    """Whether the column may hold exactly this value, as far as the model says."""
    is_public: bool = False
    """Whether its values are public by declaration: of a declared domain, of the schema, or of a public table."""

    @property
    def ends(self) -> NDArray[np.float64]:
        """The probability of each cell and those before it."""
        return np.asarray(np.minimum(np.cumsum(self.shares), 1.0))

    def holds_pieces(self, pieces: Collection[str]) -> bool:
        """Tell whether a listed text holds all these pieces."""
        if self.type.kind is not Kind.TEXT or self.values_in.max() > 1:
            return False
        return any(all(p in str(self.at(i, 0.0)) for p in pieces) for i in range(len(self.shares)))


def interval_column(where: str, codec: IntervalCodec, shares: NDArray[np.float64], *, is_public: bool) -> ModelColumn:
    """Ordered values in cells between edges; a heavy hitter is a cell of its own."""
    kind, first, last = codec.grid.type, int(codec.first[0]), int(codec.last[-1])

    def cell_of(literal: Scalar, usage: Usage) -> int:  # noqa: ARG001
        tick = min(max(floor(codec.grid.position(where, literal)), first), last)
        return int(np.searchsorted(codec.first, tick, side="right")) - 1

    def at(cell: int, share: float) -> Scalar:
        value = codec.at(cell, share)
        number = read_number(str(value)) if kind.kind is Kind.DECIMAL else value
        return value if number is None else number

    def holds(literal: Scalar) -> bool:
        place = codec.grid.position(where, literal)
        return place.denominator == 1 and first <= place <= last and codec.draws(int(place))

    return ModelColumn(
        where=where,
        type=kind,
        shares=_normal(shares[: len(codec.first)]),
        values_in=codec.values_in,
        cell_of=cell_of,
        at=at,
        holds=holds,
        is_public=is_public,
    )


def listed_column(
    where: str,
    kind: SqlType,
    values: pa.Array,
    weights: NDArray[np.float64],
    *,
    made_up: Collection[str] = (),
    is_public: bool,
) -> ModelColumn:
    """Values one by one, each a cell; `made_up` are those among them that stand for all that is not listed."""
    if not len(values):
        raise OutsideError(f"compares with {where}, of which the model has no value")
    order = pc.array_sort_indices(values)
    ordered, shares = values.take(order), _normal(weights[order.to_numpy()])

    def scalar(place: int) -> Scalar:
        value = scalar_of_value(ordered[place].as_py())
        if value is None:
            raise OutsideError(f"compares with {where}, whose values have no literal")
        return value

    def place_of(literal: Scalar) -> tuple[int, bool]:
        wanted = comparable(where, kind, literal)
        place = bisect_left(range(len(ordered)), wanted, key=lambda i: comparable(where, kind, scalar(i)))
        if place == len(ordered):
            return place - 1, False
        return place, comparable(where, kind, scalar(place)) == wanted

    others = np.flatnonzero(pc.is_in(ordered, value_set=pa.array(list(made_up), ordered.type)).to_numpy(False))
    invented = frozenset(made_up)

    def cell_of(literal: Scalar, usage: Usage) -> int:
        place, is_listed = place_of(literal)
        return int(others[0]) if usage is Usage.EQUAL and not is_listed and len(others) else place

    return ModelColumn(
        where=where,
        type=kind,
        shares=shares,
        values_in=np.ones(len(ordered)),
        cell_of=cell_of,
        at=lambda cell, _: scalar(cell),
        holds=lambda literal: place_of(literal)[1] and literal not in invented,
        is_public=is_public,
    )


def made_up_column(where: str, kind: SqlType, rows: int, make: Callable[[NDArray[np.int64]], pa.Array]) -> ModelColumn:
    """Keys, serial columns and free text: one cell of values that are made up row by row, without meaning.

    Where a literal stands among them is not known, so every value, and every range, is as good as any other.
    """
    rows = max(rows, 1)
    strings: list[str] = []
    if kind.kind is Kind.TEXT:
        made = make(np.arange(min(rows, MOST_STRINGS))).drop_null()
        strings = sorted({str(text) for text in made.to_pylist()})
        rows = len(strings)

    def at(cell: int, share: float) -> Scalar:  # noqa: ARG001
        row = min(int(share * rows), rows - 1)
        value = strings[row] if strings else scalar_of_value(make(np.array([row]))[0].as_py())
        if value is None:
            raise OutsideError(f"compares with {where}, whose values have no literal")
        return value

    return ModelColumn(
        where=where,
        type=kind,
        shares=np.ones(1),
        values_in=np.array([float(rows)]),
        cell_of=lambda literal, usage: 0,  # noqa: ARG005
        at=at,
    )


@dataclass(slots=True, kw_only=True)
class Drawn:
    """Literals drawn from one column of the model, anew in each scope: in some conditions of a statement."""

    column: ModelColumn
    rng: Random
    scope: object = None
    _made: dict[object, tuple[Scalar, ...]] = field(default_factory=dict)
    _used: dict[object, set[Comparable]] = field(default_factory=dict)
    _pieces: dict[Affix, dict[str, float]] = field(default_factory=dict)

    def equal(self, literal: Scalar) -> Scalar:
        """Draw a value of like frequency; another one for each literal, as far as there are enough."""

        def others() -> tuple[Scalar, ...]:
            frequencies = self.column.shares / self.column.values_in
            cells = _alike(frequencies, frequencies[self.column.cell_of(literal, Usage.EQUAL)]).tolist()
            used = self._used.setdefault(self.scope, set())
            value = self._value(self.rng.choice(cells))
            for _ in range(_TRIES):
                if self._order(value) not in used:
                    break
                value = self._value(self.rng.choice(cells))
            used.add(self._order(value))
            return (value,)

        return self._once((self._order(literal),), others)[0]

    def bound(self, literal: Scalar, usage: Usage) -> Scalar:
        """Draw the end of a range that is open at its other side."""
        return self._once((self._order(literal), usage), lambda: (self._bound(literal, usage),))[0]

    def _bound(self, literal: Scalar, usage: Usage) -> Scalar:
        cell = self.column.cell_of(literal, usage)
        if self.column.values_in.max() == 1:
            selectivities = self._selectivities(usage)
            return self._value(self.rng.choice(_alike(selectivities, selectivities[cell]).tolist()))
        from_below = usage in (Usage.AT_MOST, Usage.BELOW)
        middle = float(self.column.ends[cell] - self.column.shares[cell] / 2)
        alike = self._like(middle if from_below else 1 - middle)
        return self._quantile(alike if from_below else 1 - alike)

    def bounds(self, low: Scalar, high: Scalar) -> tuple[Scalar, Scalar]:
        """Draw both ends of a range: of like selectivity, anywhere in the column."""

        def others() -> tuple[Scalar, ...]:
            ends, shares = self.column.ends, self.column.shares
            one_by_one = self.column.values_in.max() == 1
            cells = sorted((self.column.cell_of(low, Usage.AT_LEAST), self.column.cell_of(high, Usage.AT_MOST)))
            within = (1.0, 0.0) if one_by_one else (LOW, HIGH)
            begin, end = sorted(float(ends[c] - r * shares[c]) for c, r in zip(cells, within, strict=True))
            share = self._like(end - begin)
            start = self.rng.random() * (1 - share)
            return self._quantile(start), self._quantile(start + share * (1 - _LEAST))

        drawn = self._once((self._order(low), self._order(high)), others)
        return drawn[0], drawn[1]

    def piece(self, text: str, affix: Affix) -> str:
        """Draw the piece of a text that a LIKE asks for."""

        def draw() -> tuple[Scalar, ...]:
            shares = self._shares_of_pieces(affix)
            if not shares:
                raise OutsideError(f"has a LIKE on {self.column.where}, of which the model has no text")
            pieces, (strings, weights) = list(shares), self._strings()
            wanted = sum(weight for value, weight in zip(strings, weights, strict=True) if affix.holds(value, text))
            if self.column.values_in.max() > 1:  # made-up text: how a real one compares with it says nothing
                wanted = shares[self.rng.choice(pieces)]
            places = _alike(np.array(list(shares.values())), wanted)
            return (pieces[self.rng.choice(places.tolist())],)

        return str(self._once((text, affix), draw)[0])

    def _shares_of_pieces(self, affix: Affix) -> dict[str, float]:
        if affix not in self._pieces:
            shares = self._pieces[affix] = {}
            for value, weight in zip(*self._strings(), strict=True):
                for piece in set(affix.pieces(value, _PIECE_LENGTHS)):
                    shares[piece] = shares.get(piece, 0.0) + weight
        return self._pieces[affix]

    def _once(self, key: object, draw: Callable[[], tuple[Scalar, ...]]) -> tuple[Scalar, ...]:
        if (self.scope, key) not in self._made:
            self._made[self.scope, key] = draw()
        return self._made[self.scope, key]

    def _order(self, value: Scalar) -> Comparable:
        return comparable(self.column.where, self.column.type, value)

    def _value(self, cell: int) -> Scalar:
        return self.column.at(cell, self.rng.random())

    def _quantile(self, share: float) -> Scalar:
        ends, shares = self.column.ends, self.column.shares
        cell = min(int(np.searchsorted(ends, share, side="right")), len(ends) - 1)
        within = (share - (ends[cell] - shares[cell])) / shares[cell] if shares[cell] else 0.0
        return self.column.at(cell, min(max(within, 0.0), 1 - _LEAST))

    def _selectivities(self, usage: Usage) -> NDArray[np.float64]:
        """How selective a comparison with each single value is."""
        ends, shares = self.column.ends, self.column.shares
        selectivities = {
            Usage.AT_MOST: ends,
            Usage.BELOW: ends - shares,
            Usage.AT_LEAST: 1 - ends + shares,
            Usage.ABOVE: 1 - ends,
        }[usage]
        return np.asarray(np.maximum(selectivities, 0.0))

    def _like(self, share: float) -> float:
        """Draw a share from the band of like ones: all that is left of how selective a condition was."""
        return float(LIKE_FACTOR ** -(float(_bands(np.array([share]))[0]) + self.rng.random()))

    def _strings(self) -> tuple[list[str], list[float]]:
        column = self.column
        if column.type.kind is not Kind.TEXT:
            raise OutsideError(f"compares {column.where} with text")
        if column.values_in.max() > 1:
            rows = int(column.values_in[0])
            return [str(column.at(0, (row + 0.5) / rows)) for row in range(rows)], [1 / rows] * rows
        cells = np.argsort(-column.shares, kind="stable")[:MOST_STRINGS]
        return [str(column.at(int(cell), 0.0)) for cell in cells], column.shares[cells].tolist()


def comparable(where: str, kind: SqlType, value: Scalar) -> Comparable:
    """Make values of a column comparable; SpecError if one does not fit the type."""
    return str(value) if kind.kind is Kind.TEXT else number_of(where, kind, value)


def _bands(shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """The band of each share: 0 for all rows, and higher the fewer they are."""
    logs = -np.log(np.clip(shares, _LEAST, 1.0)) / log(LIKE_FACTOR)
    return np.asarray(np.floor(logs), np.int64)


def _alike(shares: NDArray[np.float64], wanted: float) -> NDArray[np.int64]:
    """The places of the class that a share is in: those of its band, and of further ones where these are few.

    What no row has is drawn for nothing. A value that at least half of all rows have may be the only one of its class:
    it reveals nothing about a single row.
    """
    held = np.flatnonzero(shares > _LEAST) if shares.max() > _LEAST else np.arange(len(shares))
    fewest = min(max(ceil(len(held) / 4), 2), MOST_CANDIDATES, len(held))
    order = held[np.argsort(-shares[held], kind="stable")]
    classes: list[NDArray[np.int64]] = []
    for band in np.split(order, np.flatnonzero(np.diff(_bands(shares[order]))) + 1):
        is_few = bool(classes) and len(classes[-1]) < fewest and shares[classes[-1]].min() < HALF
        classes.append(np.append(classes.pop(), band) if is_few else band)
    if len(classes) > 1 and len(classes[-1]) < fewest:
        classes[-2:] = [np.append(*classes[-2:])]
    nearest = np.abs(np.log(np.maximum(shares[order], _LEAST)) - log(max(wanted, _LEAST))).argmin()
    return next(places for places in classes if order[nearest] in places)


def _normal(weights: NDArray[np.float64] | Sequence[float] | Iterable[float]) -> NDArray[np.float64]:
    """Weights as probabilities; all alike if there is none."""
    positive = np.maximum(np.asarray(weights, np.float64), 0.0)
    total = positive.sum()
    return np.asarray(positive / total if total > 0 else np.full(len(positive), 1 / max(len(positive), 1)))
