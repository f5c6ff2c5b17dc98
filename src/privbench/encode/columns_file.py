"""Columns in work files: NumPy and Arrow arrays of equal length, written as Arrow IPC and read back as they were.

A file is read only if it is as it was left: a work file that somebody cut, changed or removed is an error that says so,
never other data.
"""

import errno
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.errors import StoreError

Columns = Mapping[str, NDArray[Any] | pa.Array]


@dataclass(slots=True, eq=False)
class ColumnsFile:
    """A file of columns that grows batch by batch; what it holds is known by how it was left."""

    path: Path
    _kinds: dict[str, bool] | None = None
    """By column whether it is a NumPy array."""
    _schema: pa.Schema | None = None
    _left: tuple[int, int] = (0, 0)
    """Size and time of the last change, as they were after the last write."""

    def append(self, columns: Columns) -> None:
        """Write some rows after those that are there."""
        arrays = {name: pa.array(c) if isinstance(c, np.ndarray) else c for name, c in columns.items()}
        batch = pa.RecordBatch.from_pydict(arrays)
        if self._schema is None:
            self._schema = batch.schema
            self._kinds = {name: isinstance(c, np.ndarray) for name, c in columns.items()}
        try:
            with self.path.open("ab") as file:
                file.write(batch.serialize())
                file.flush()
        except OSError as error:
            raise store_error(self.path, error) from error
        self._left = self._state()

    def read(self) -> list[Columns]:
        """All rows, batch by batch. Raises StoreError if the file is not as it was left."""
        if self._schema is None or self._kinds is None:
            return []
        if self._state() != self._left:
            raise StoreError(f"{self.path}: this work file of the fit was changed. {_AGAIN}")
        batches: list[Columns] = []
        try:
            with pa.OSFile(str(self.path)) as file:
                for message in pa.ipc.MessageReader.open_stream(file):
                    batch = pa.ipc.read_record_batch(message, self._schema)
                    batches.append({n: _plain(batch.column(n), numpy=kind) for n, kind in self._kinds.items()})
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"{self.path}: this work file of the fit is damaged ({error}). {_AGAIN}") from error
        return batches

    def remove(self) -> None:
        """Remove the file, if there is one."""
        self.path.unlink(missing_ok=True)
        self._schema = self._kinds = None

    def _state(self) -> tuple[int, int]:
        try:
            facts = self.path.stat()
        except OSError:
            raise StoreError(f"{self.path}: this work file of the fit is gone. {_AGAIN}") from None
        return facts.st_size, facts.st_mtime_ns


_AGAIN = "Nothing was written. Fit again, and keep the folder for temporary files from being cleaned meanwhile."


def _plain(column: pa.Array, *, numpy: bool) -> NDArray[Any] | pa.Array:
    return column.to_numpy(zero_copy_only=True) if numpy else column


def store_error(path: Path, error: OSError) -> StoreError:
    """Say why work files could not be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StoreError(
            f"{path.parent}: the disk is full, and the rows do not fit into memory. Nothing was left behind. Free some "
            "space, set TMPDIR to a folder on a larger disk, or give more memory (`--memory`)."
        )
    return StoreError(f"{path.parent}: could not be written ({error.strerror or error}). Nothing was left behind.")
