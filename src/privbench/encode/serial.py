"""Serial: unique values without meaning, numbered anew from the row number.

Nothing is learnt of the column but its share of NULLs; `numbering` makes the values.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.layout import Codes, LaidOut, Layout, blank
from privbench.encode.numbering import TEXT_LENGTH, most_values, numbered
from privbench.encode.predicate import All, Between, OfValues, Predicate
from privbench.errors import SchemaError, SpecError
from privbench.schema.types import Kind, SqlType


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
