"""What a model draws for a column, and literals drawn from it in place of those of a query.

A column is a row of cells, each with a probability and a number of different values. Of an original literal only its
cell is looked at, and of that only how selective the condition is under the model: `=` becomes a value of like
frequency, `<` and its kin a quantile of like selectivity, a range another range of like selectivity anywhere in the
column, and LIKE a piece of another value. The same literal becomes the same value throughout a workload.
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
"""Selectivities are like each other if they differ by no more than this factor."""
MOST_CANDIDATES = 8
"""How many of the nearest cells are drawn from where fewer are alike; in a small column a quarter, at least two."""
MANY_VALUES = 64
"""A cell of at least this many values never gives back a literal of the workload: it is not noticed to be missing."""
MOST_STRINGS = 1024
"""Of how many values of a text column the pieces are looked at that a LIKE may ask for."""
_PIECE_LENGTHS = range(1, 7)
_TRIES = 32
_LEAST = 1e-12
Comparable = Fraction | str
"""A value by which others of its column are before or after it."""
Cell = tuple[int, float]
"""A cell, and where in it."""


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
    """Literals drawn from one column of the model for a workload; `originals` are those of the workload, comparable."""

    column: ModelColumn
    originals: frozenset[Comparable]
    rng: Random
    _made: dict[object, tuple[Scalar, ...]] = field(default_factory=dict)
    _used: set[Comparable] = field(default_factory=set)

    def equal(self, literal: Scalar) -> Scalar:
        """Draw a value of like frequency; another one for each literal, as far as there are enough."""

        def others() -> tuple[Scalar, ...]:
            frequencies = self.column.shares / self.column.values_in
            cells = _alike(frequencies, frequencies[self.column.cell_of(literal, Usage.EQUAL)]).tolist()
            value = self._another(literal, lambda: self._value(self.rng.choice(cells)), taken=self._used)
            self._used.add(self._order(value))
            return (value,)

        return self._once((self._order(literal),), others)[0]

    def bound(self, literal: Scalar, usage: Usage) -> Scalar:
        """Draw the end of a range that is open at its other side."""
        return self._once((self._order(literal), usage), lambda: (self._bound(literal, usage),))[0]

    def _bound(self, literal: Scalar, usage: Usage) -> Scalar:
        cell = self.column.cell_of(literal, usage)
        if self.column.values_in.max() == 1:
            selectivities = self._selectivities(usage)
            cells = _alike(selectivities, selectivities[cell]).tolist()
            return self._another(literal, lambda: self._value(self.rng.choice(cells)))
        end, share, from_below = self.column.ends[cell], self.column.shares[cell], usage in (Usage.AT_MOST, Usage.BELOW)

        def draw() -> tuple[Scalar, Cell]:
            within = end - self.rng.random() * share
            alike = self._like(within if from_below else 1 - within)
            return self._quantile(alike if from_below else 1 - alike)

        return self._another(literal, draw)

    def bounds(self, low: Scalar, high: Scalar) -> tuple[Scalar, Scalar]:
        """Draw both ends of a range: of like selectivity, anywhere in the column."""

        def draw() -> tuple[tuple[Scalar, Cell], tuple[Scalar, Cell]]:
            ends, shares = self.column.ends, self.column.shares
            one_by_one = self.column.values_in.max() == 1
            cells = sorted((self.column.cell_of(low, Usage.AT_LEAST), self.column.cell_of(high, Usage.AT_MOST)))
            within = (1.0, 0.0) if one_by_one else (self.rng.random(), self.rng.random())
            begin, end = sorted(float(ends[c] - r * shares[c]) for c, r in zip(cells, within, strict=True))
            share = self._like(end - begin)
            start = self.rng.random() * (1 - share)
            return self._quantile(start), self._quantile(start + share * (1 - _LEAST))

        def others() -> tuple[Scalar, ...]:
            pair = draw()
            for _ in range(_TRIES):
                if not any(self._comes_back(a, b, c) for a, (b, (c, _)) in zip((low, high), pair, strict=True)):
                    break
                pair = draw()
            return pair[0][0], pair[1][0]

        drawn = self._once((self._order(low), self._order(high)), others)
        return drawn[0], drawn[1]

    def piece(self, text: str, affix: Affix) -> str:
        """Draw the piece of a text that a LIKE asks for."""

        def draw() -> tuple[Scalar, ...]:
            strings, weights = self._strings()
            shares: dict[str, float] = {}
            for value, weight in zip(strings, weights, strict=True):
                for piece in set(affix.pieces(value, _PIECE_LENGTHS)):
                    shares[piece] = shares.get(piece, 0.0) + weight
            wanted = sum(weight for value, weight in zip(strings, weights, strict=True) if affix.holds(value, text))
            pieces = [piece for piece in shares if piece != text]
            if not pieces:
                raise OutsideError(f"has a LIKE on {self.column.where}, of which the model has no other text")
            if self.column.values_in.max() > 1:  # made-up text: how a real one compares with it says nothing
                wanted = shares[self.rng.choice(pieces)]
            places = _alike(np.array([shares[piece] for piece in pieces]), wanted)
            return (pieces[self.rng.choice(places.tolist())],)

        return str(self._once((text, affix), draw)[0])

    def _once(self, key: object, draw: Callable[[], tuple[Scalar, ...]]) -> tuple[Scalar, ...]:
        if key not in self._made:
            self._made[key] = draw()
        return self._made[key]

    def _another(
        self, literal: Scalar, draw: Callable[[], tuple[Scalar, Cell]], *, taken: Collection[Comparable] = ()
    ) -> Scalar:
        """Draw until the value is none that must not come back, nor one that is taken; the last draw if all are."""
        value, (cell, _) = draw()
        for _ in range(_TRIES):
            if self._order(value) not in taken and not self._comes_back(literal, value, cell):
                break
            value, (cell, _) = draw()
        return value

    def _comes_back(self, literal: Scalar, value: Scalar, cell: int) -> bool:
        """Whether a drawn value is a literal of the workload, where there are enough others.

        A column of few values may give back a literal by chance: never to do so would tell which one it was.
        """
        if self.column.values_in[cell] >= MANY_VALUES:
            return self._order(value) in self.originals
        return len(self.column.shares) > MOST_CANDIDATES and self._order(value) == self._order(literal)

    def _order(self, value: Scalar) -> Comparable:
        return comparable(self.column.where, self.column.type, value)

    def _value(self, cell: int) -> tuple[Scalar, Cell]:
        share = self.rng.random()
        return self.column.at(cell, share), (cell, share)

    def _quantile(self, share: float) -> tuple[Scalar, Cell]:
        ends, shares = self.column.ends, self.column.shares
        cell = min(int(np.searchsorted(ends, share, side="right")), len(ends) - 1)
        within = (share - (ends[cell] - shares[cell])) / shares[cell] if shares[cell] else 0.0
        within = min(max(within, 0.0), 1 - _LEAST)
        return self.column.at(cell, within), (cell, within)

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
        band = floor(-log(min(max(share, _LEAST), 1.0)) / log(LIKE_FACTOR))
        return float(LIKE_FACTOR ** -(band + self.rng.random()))

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


def _alike(shares: NDArray[np.float64], wanted: float) -> NDArray[np.int64]:
    """The places whose shares are like the wanted one, or the nearest few where hardly any are.

    A value that at least half of all rows have may be the only candidate: it reveals nothing about a single row.
    """
    distances = np.abs(np.log(np.maximum(shares, _LEAST)) - log(max(wanted, _LEAST)))
    near = np.flatnonzero(distances <= log(LIKE_FACTOR))
    fewest = 1 if wanted >= 0.5 else min(max(ceil(len(shares) / 4), 2), MOST_CANDIDATES, len(shares))
    return near if len(near) >= fewest else np.argsort(distances, kind="stable")[:fewest]


def _normal(weights: NDArray[np.float64] | Sequence[float] | Iterable[float]) -> NDArray[np.float64]:
    """Weights as probabilities; all alike if there is none."""
    positive = np.maximum(np.asarray(weights, np.float64), 0.0)
    total = positive.sum()
    return np.asarray(positive / total if total > 0 else np.full(len(positive), 1 / max(len(positive), 1)))
