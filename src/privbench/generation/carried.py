"""What tables made later need of the rows of an earlier one, on disk: codes, fanouts, how often a row is named.

One raw file per column, appended block by block, and read by ranges or mapped into memory: memory does not grow
with the scale.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

ROW = "row"
"""The column of a row's number in its table, which is not its place here where the table is sorted."""


class Carried:
    """Columns of one table, written once from first to last row, then read."""

    def __init__(self, folder: Path, types: Mapping[str, type[np.generic]]) -> None:
        self._types = {name: np.dtype(kind) for name, kind in types.items()}
        self._paths = {name: folder / f"{i}.column" for i, name in enumerate(types)}
        self._files: dict[str, BinaryIO] = {}
        self.rows = 0
        folder.mkdir(parents=True)

    def write(self, columns: Mapping[str, NDArray[Any]], rows: int) -> None:
        """Append rows."""
        for name, kind in self._types.items():
            if name not in self._files:
                self._files[name] = self._paths[name].open("wb")
            self._files[name].write(np.ascontiguousarray(columns[name], kind).tobytes())
        self.rows += rows

    def finish(self) -> None:
        """Make everything written readable."""
        for file in self._files.values():
            file.close()

    def read(self, name: str, first: int, last: int) -> NDArray[Any]:
        """Rows first .. last-1 of a column, in memory."""
        kind = self._types[name]
        if last <= first:
            return np.empty(0, kind)
        return np.fromfile(self._paths[name], kind, last - first, offset=first * kind.itemsize)

    def mapped(self, name: str) -> NDArray[Any]:
        """A whole column, of which only what is looked at comes into memory."""
        if self.rows == 0:
            return np.empty(0, self._types[name])
        return np.memmap(self._paths[name], self._types[name], mode="r")

    def row_numbers(self, first: int, last: int) -> NDArray[np.int64]:
        """The numbers in their table of the rows first .. last-1."""
        return self.read(ROW, first, last) if ROW in self._types else np.arange(first, last)

    def row_numbers_at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers in their table of the rows at these places."""
        return self.mapped(ROW)[places] if ROW in self._types else places
