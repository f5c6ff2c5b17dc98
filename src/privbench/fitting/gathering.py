"""Rows on their way into parts: which part an entity belongs to, and where its rows wait until all are read.

Entities are dealt out in stripes, so that early ones, which often have many rows, are spread; the number of an entity
inside its part then follows by arithmetic. Rows wait in memory, or in files once they take more than they may.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.columns_file import Columns, ColumnsFile
from privbench.encode.keys import Positions

ONE_PART = 200_000
"""So few rows are not divided."""
PART_ROWS = 2**19.5
"""About so many rows are in a part: they are counted from the cache of a core, and there is work for all cores."""
_STRIPE = 12
"""A stripe has at most two to the power of this entities: rows that lie together mostly go to the same part."""
_TURNS = 4
"""Each part has at least two to the power of this stripes, if there are enough entities."""
Run = tuple[int, int, int]
"""A part, and the first row and the end of a run of its rows."""
_SLACK = 1.06
"""How much larger than the average a part is expected to be."""


class TooMuchTextError(Exception):
    """A column of a part holds more text than Arrow has in one piece; says which."""


@dataclass(frozen=True, slots=True)
class Stripes:
    """Entities dealt out to parts: stripes of 2**width entities, to 2**parts parts in turn.

    >>> stripes = Stripes(1, 1)
    >>> entities = np.arange(9)
    >>> stripes.part_of(entities).tolist(), stripes.inside(entities).tolist()
    ([0, 0, 1, 1, 0, 0, 1, 1, 0], [0, 1, 0, 1, 2, 3, 2, 3, 4])
    """

    log_parts: int
    width: int = 0

    @classmethod
    def of(cls, rows: int, entities: int) -> "Stripes":
        """For so many rows of so many entities."""
        if rows < ONE_PART or entities < 2:
            return cls(0)
        log_parts = min(max(round(log2(rows / PART_ROWS)), 1), int(log2(entities)))
        return cls(log_parts, max(0, min(_STRIPE, int(log2(entities)) - log_parts - _TURNS)))

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return 1 << self.log_parts

    def part_of(self, entities: Positions) -> NDArray[np.unsignedinteger]:
        """The part of each entity."""
        kind = np.uint8 if self.log_parts <= 8 else np.uint16
        return ((entities >> self.width) & (self.parts - 1)).astype(kind)

    def inside(self, entities: Positions) -> Positions:
        """The number of each entity inside its part: those of the first ones are dense."""
        if not self.log_parts:
            return entities
        low = entities & ((1 << self.width) - 1)
        return ((entities >> (self.width + self.log_parts)) << self.width) | low


class Gathered:
    """Rows by part and table, in the order in which they came."""

    def __init__(self, parts: int, *, folder: Path | None = None, most_bytes: int = 0) -> None:
        """With a folder, at most so many bytes wait in memory at a time."""
        self.parts = parts
        self._folder = folder
        self._most = most_bytes
        self._held = 0
        self._rows: dict[tuple[str, int], _Waiting] = {}
        self._tables: dict[str, int] = {}

    def add(self, table: str, columns: Columns, runs: Iterable[Run], *, expected: int) -> None:
        """Add rows, which lie in runs of the same part. `expected` is how many rows the table will have."""
        room = 0 if self._folder is not None else int(expected / self.parts * _SLACK)
        for part, start, end in runs:
            self._waiting(table, part).append(columns, start, end, room=room)
        if self._folder is not None:
            self._held += sum(int(column.nbytes) for column in columns.values())
            if self._held > self._most:
                self.flush()

    def clear(self, table: str) -> None:
        """Let go of the rows of a table, to read it again."""
        for part in range(self.parts):
            self._waiting(table, part).clear()

    def flush(self) -> None:
        """Write what waits in memory into files."""
        for waiting in self._rows.values():
            waiting.flush()
        self._held = 0

    def take(self, table: str, part: int) -> Columns:
        """The rows of a table in a part, which then no longer wait. Raises TooMuchTextError."""
        waiting = self._rows.pop((table, part), None)
        return {} if waiting is None else waiting.take()

    def _waiting(self, table: str, part: int) -> "_Waiting":
        key = (table, part)
        if key not in self._rows:
            number = self._tables.setdefault(table, len(self._tables))
            file = None if self._folder is None else ColumnsFile(self._folder / f"rows-{number}-{part}.arrow")
            self._rows[key] = _Waiting(file)
        return self._rows[key]


class _Waiting:
    """Rows of one table and part: in arrays that grow, before these in a file."""

    def __init__(self, file: ColumnsFile | None) -> None:
        self._file = file
        self._rows = 0
        self._arrays: dict[str, NDArray[Any]] = {}
        self._chunks: dict[str, list[pa.Array]] = {}

    def append(self, columns: Columns, start: int, end: int, *, room: int) -> None:
        rows = self._rows + end - start
        for name, column in columns.items():
            if isinstance(column, np.ndarray):
                held = self._arrays.get(name)
                if held is None:
                    held = self._arrays[name] = np.empty(
                        max(rows, room), column.dtype
                    )  # costs nothing until it is used
                elif rows > len(held):
                    held.resize(rows + rows // 2, refcheck=False)
                held[self._rows : rows] = column[start:end]
            else:
                own = pa.concat_arrays([column.slice(start, end - start)])  # a copy: the other rows can be let go of
                self._chunks.setdefault(name, []).append(own)
        self._rows = rows

    def clear(self) -> None:
        self._let_go()
        if self._file is not None:
            self._file.remove()

    def flush(self) -> None:
        if self._file is not None and self._rows:
            self._file.append(self._in_memory())
            self._let_go()

    def _let_go(self) -> None:
        """Hold no memory: after the last row of a table others wait, and rooms of all tables would add up."""
        self._rows, self._arrays, self._chunks = 0, {}, {}

    def take(self) -> Columns:
        if self._file is None:
            return self._in_memory(shrink=True)
        batches = [*self._file.read(), *([self._in_memory()] if self._rows else [])]
        self._file.remove()
        return {name: _joined(name, [batch[name] for batch in batches]) for name in batches[0]} if batches else {}

    def _in_memory(self, *, shrink: bool = False) -> Mapping[str, NDArray[Any] | pa.Array]:
        if shrink:
            for held in self._arrays.values():
                held.resize(self._rows, refcheck=False)
        arrays = {name: held[: self._rows] for name, held in self._arrays.items()}
        return arrays | {name: _joined(name, chunks) for name, chunks in self._chunks.items()}


def _joined(name: str, parts: list[Any]) -> NDArray[Any] | pa.Array:
    if len(parts) == 1:
        return parts[0]
    try:
        return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else pa.concat_arrays(parts)
    except pa.ArrowInvalid:  # texts of more than 2 GiB
        raise TooMuchTextError(name) from None
