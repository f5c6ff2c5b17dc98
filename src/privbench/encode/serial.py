"""Serial: unique values without meaning, numbered anew from the row number.

Nothing is learnt of the column but its share of NULLs. Numbers start at 1, dates and timestamps at 2000-01-01
(days and seconds apart), times at midnight (microseconds apart); text is made up.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.grid import Grid
from privbench.encode.layout import Codes, LaidOut, Layout, blank
from privbench.encode.predicate import Between, IsNull, Predicate
from privbench.encode.scalar import MICROSECONDS, number_of
from privbench.encode.text import capacity, key_strings
from privbench.errors import SchemaError, SpecError
from privbench.schema.types import Kind, SqlType

_TEXT_LENGTH = 12


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
        nulls = self.layout.nulls(codes)
        rows = first_row + np.arange(len(codes), dtype=np.int64)
        if self.type.kind is Kind.TEXT:
            self._check(first_row + len(codes), capacity(self._length))
            return blank(key_strings(rows, self._length), nulls)
        grid = _grid(self.type)
        first = 1 if self.type.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT) else 0
        self._check(first_row + len(codes), grid.high - first + 1)
        return grid.values(rows + first, nulls=nulls)

    def coverage(self, predicate: Predicate) -> NDArray[np.float64]:
        """Exact for NULL. Row numbers have no distribution of their own: a range keeps all rows, equality none."""
        if isinstance(predicate, IsNull):
            return self.layout.null_share(predicate)
        return self.layout.spread(np.array([float(isinstance(predicate, Between))]))

    def labels(self) -> tuple[str, ...]:
        """One label for all values."""
        return self.layout.labels(["serial"])

    @property
    def _length(self) -> int:
        return _TEXT_LENGTH if self.type.length is None else min(_TEXT_LENGTH, self.type.length)

    def _check(self, rows: int, most: int) -> None:
        if rows > most:
            raise SchemaError(
                f"{self.where}: {self.type.sql} has {most} serial values, fewer than the rows to be written. "
                "Use a smaller --scale or a wider type."
            )


def serial_codec(where: str, kind: SqlType, *, nullable: bool) -> SerialCodec:
    """Compile a serial column."""
    if kind.kind is Kind.BOOLEAN:
        raise SpecError(f"{where}: BOOLEAN cannot be serial; write `values: [false, true]`.")
    return SerialCodec(where=where, layout=Layout(cells=1, nullable=nullable), type=kind)


def _grid(kind: SqlType) -> Grid:
    """Return the grid that rows are numbered on; whole numbers where the type has room for them."""
    match kind.kind:
        case Kind.DECIMAL if kind.precision > kind.scale:
            return Grid(type=kind, step=Fraction(10**kind.scale))
        case Kind.DATE:
            return Grid(type=kind, step=Fraction(1), anchor=number_of("", kind, "2000-01-01"))
        case Kind.TIMESTAMP:
            return Grid(type=kind, step=Fraction(MICROSECONDS["s"]), anchor=number_of("", kind, "2000-01-01"))
        case _:
            return Grid(type=kind, step=Fraction(1))
