"""Serial: unique values made from row numbers. Dense, in order, the same at every call, nothing learnt from real keys.

Numbers start at 1, dates and timestamps at 2000-01-01 (days and seconds apart), times at midnight; text is made up.
Keys are numbered in the same way. Only the share of NULLs of a serial column is learnt.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.grid import Grid
from privbench.encode.layout import Codes, LaidOut, Layout, blank
from privbench.encode.predicate import All, Between, OfValues, Predicate
from privbench.encode.scalar import family_of
from privbench.encode.shapes import ROOMY, shaping
from privbench.encode.spelling import capacity, key_strings
from privbench.errors import SchemaError, SpecError
from privbench.schema.types import Kind, SqlType

TEXT_LENGTH = 12
"""How long a made-up text is where neither type nor domain says."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SerialCodec(LaidOut):
    """One cell for all values; row r decodes to the r-th value of the grid, or the r-th made-up string."""

    type: SqlType
    ordered: bool = False

    def encode(self, values: pa.Array | pa.ChunkedArray) -> Codes:
        """Cell 0 for every value."""
        return self.layout.pack(np.zeros(len(values), dtype=np.int64), values)

    def decode(self, codes: Codes, rng: np.random.Generator, *, first_row: int) -> pa.Array:  # noqa: ARG002
        """Return a value per row number; SchemaError if the type is too narrow for that many rows."""
        last = first_row + len(codes)
        most = most_values(self.type, length=self._length)
        if last > most:
            raise SchemaError(
                f"{self.where}: {self.type.sql} has {most} serial values, fewer than the rows to be written. "
                "Use a smaller --scale or a wider type."
            )
        rows = np.arange(first_row, last, dtype=np.int64)
        return blank(numbered(self.type, rows, length=self._length), self.layout.nulls(codes))

    def coverage(self, predicate: Predicate | All) -> NDArray[np.float64]:
        """Exact for NULL. Row numbers have no distribution of their own: a range keeps all rows, equality none."""
        return self.layout.coverage(predicate, self._shares)

    def labels(self) -> tuple[str, ...]:
        """One label for all values."""
        return self.layout.labels(["serial"])

    def _shares(self, parts: tuple[OfValues, ...]) -> NDArray[np.float64]:
        return self.layout.spread(np.array([float(all(isinstance(p, Between) for p in parts))]))

    @property
    def _length(self) -> int:
        return TEXT_LENGTH if self.type.length is None else min(TEXT_LENGTH, self.type.length)


def serial_codec(where: str, kind: SqlType, *, nullable: bool) -> SerialCodec:
    """Compile a serial column."""
    if kind.kind is Kind.BOOLEAN:
        raise SpecError(f"{where}: BOOLEAN cannot be serial; write `values: [false, true]`.")
    return SerialCodec(where=where, layout=Layout(cells=1, nullable=nullable), type=kind)


def numbered(of: SqlType, rows: NDArray[np.int64], *, length: int = TEXT_LENGTH, shape: str | None = None) -> pa.Array:
    """Return the value of each row number (from 0); text of a length, or of a shape and about that length.

    >>> from privbench.schema.types import parse_type
    >>> numbered(parse_type("INTEGER"), np.arange(3)).to_pylist()
    [1, 2, 3]
    """
    if of.kind is Kind.TEXT and (shape or of.syntax) is not None:
        lengths = np.full(len(rows), length, dtype=np.int64)
        return shaping("a text key", shape, of).unique(rows, lengths, lengths, salt=0)
    if of.kind is Kind.TEXT:
        return key_strings(rows, length)
    first, grid = _numbering(of)
    return grid.values(rows + first)


def row_numbers(of: SqlType, values: pa.Array) -> NDArray[np.int64]:
    """Return the row number of each value that `numbered` made, none of them NULL or text.

    >>> from privbench.schema.types import parse_type
    >>> row_numbers(parse_type("INTEGER"), pa.array([1, 3], pa.int32())).tolist()
    [0, 2]
    """
    first, grid = _numbering(of)
    return grid.ticks(values) - first


def most_values(of: SqlType, *, length: int = TEXT_LENGTH, shape: str | None = None) -> int:
    """Return how many different values the type has room for.

    >>> from privbench.schema.types import parse_type
    >>> most_values(parse_type("SMALLINT"))
    32767
    """
    if of.kind is Kind.TEXT:
        plain = shape is None and of.syntax is None
        return capacity(length) if plain else shaping("a text key", shape, of).room(of.length or ROOMY)
    first, grid = _numbering(of)
    return grid.high - first + 1


def check_room(
    where: str, of: SqlType, rows: int, scale: float, *, length: int = TEXT_LENGTH, shape: str | None = None
) -> None:
    """Refuse a scale at which the column would run out of values."""
    most = most_values(of, length=length, shape=shape)
    if rows > most:
        kept = "" if shape is None else f" of the shape {shape!r}"
        raise SchemaError(
            f"{where}: {of.sql}{kept} has room for {most} keys, but scale {scale:g} makes {rows} rows. "
            f"The largest scale that fits is {scale * most / rows:.3g}. For more, widen the type in the spec, "
            "here and in the keys that reference it, before you fit."
        )


def _numbering(of: SqlType) -> tuple[int, Grid]:
    """Return the tick of the first row, and the grid that rows are numbered on."""
    family = family_of(of)
    step = family.row_step(of)
    if family.numeric:
        return int(family.first_row), Grid(type=of, step=step)
    return 0, Grid(type=of, step=step, anchor=family.first_row)
