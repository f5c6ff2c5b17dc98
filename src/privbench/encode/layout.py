"""The order of codes in a column: its cells 0..k-1, then OTHER, then NULL. Shared by all codecs."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.grid import one_array
from privbench.encode.predicate import All, OfValues, Predicate, parts_of

Codes = NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How many codes a column has and which of them are special."""

    cells: int
    other: bool = False
    nullable: bool

    @property
    def size(self) -> int:
        return self.cells + self.other + self.nullable

    @property
    def other_code(self) -> int | None:
        """The code of values that are not listed, if there is one."""
        return self.cells if self.other else None

    @property
    def null_code(self) -> int | None:
        return self.cells + self.other if self.nullable else None

    def pack(self, cells: NDArray[np.int_], values: pa.Array | pa.ChunkedArray) -> Codes:
        """Narrow cell numbers to codes and give NULLs their code (OTHER, else cell 0, if NULL has none)."""
        codes: Codes = cells.astype(np.uint8 if self.size <= 2**8 else np.uint16)
        if values.null_count:
            fallback = self.other_code or 0
            nulls = one_array(values.is_null()).to_numpy(zero_copy_only=False)
            codes[nulls] = fallback if self.null_code is None else self.null_code
        return codes

    def nulls(self, codes: Codes) -> NDArray[np.bool_]:
        return np.zeros(len(codes), dtype=bool) if self.null_code is None else np.asarray(codes == self.null_code)

    def labels(self, cells: list[str]) -> tuple[str, ...]:
        """Return the labels of all codes, given those of the cells."""
        return (*cells, *(["OTHER"] if self.other else []), *(["NULL"] if self.nullable else []))

    def spread(self, cells: NDArray[np.float64], *, other: float = 0.0, null: float = 0.0) -> NDArray[np.float64]:
        """Shares of all codes, given those of the cells."""
        return np.concatenate([cells, [other] * self.other, [null] * self.nullable])

    def coverage(
        self, predicate: Predicate | All, of_values: Callable[[tuple[OfValues, ...]], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Shares of all codes: NULL is answered here, `of_values` answers what looks at values."""
        nulls, others = parts_of(predicate)
        shares = of_values(others) if others else np.ones(self.size)
        for part in nulls:
            value = float(part.negated)
            shares = shares * self.spread(np.full(self.cells, value), other=value, null=1.0 - value)
        return shares


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LaidOut:
    """What every codec has: the column it stands for (table.column) and the layout of its codes."""

    where: str
    layout: Layout

    @property
    def size(self) -> int:
        return self.layout.size

    @property
    def null_code(self) -> int | None:
        return self.layout.null_code

    @property
    def other_code(self) -> int | None:
        return self.layout.other_code


def looked_up(points: pa.Array, codes: NDArray[np.integer]) -> pa.Array:
    """The value of each code, given those of all codes but NULL, which is the last.

    >>> looked_up(pa.array(["a", "b"]), np.array([1, 2, 0], np.uint16)).to_pylist()
    ['b', None, 'a']
    """
    last = len(points) - 1
    if codes.max(initial=0) <= last:
        return points.take(pa.array(codes))
    if last < 0:
        return pa.nulls(len(codes), points.type)
    values = points.take(pa.array(np.minimum(codes, last)))
    valid = np.packbits(codes <= last, bitorder="little")
    return pa.Array.from_buffers(points.type, len(codes), [pa.py_buffer(valid), *values.buffers()[1:]])


def blank(values: pa.Array, nulls: NDArray[np.bool_]) -> pa.Array:
    """Return the values with NULL in the marked rows."""
    return pc.if_else(pa.array(nulls), pa.scalar(None, type=values.type), values) if nulls.any() else values
