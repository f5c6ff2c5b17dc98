"""Rows of a table on disk, and putting them into another order in bounded memory.

Two steps, both exact and the same at every run. The columns to sort by are sorted by DuckDB, which spills to disk, into
the new place of each row: 8 bytes per row in a file that is mapped into memory. Then the rows are moved there: dealt
out to files by ranges of places, as often as it takes until a file fits into memory, and sorted there.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.deferred import duckdb

Numbers = NDArray[np.int64]

SORTED_ROWS = 4 * 65_536
"""About how many rows are sorted in memory at once: some blocks, so that files get pieces of some size."""
MOST_FILES = 64
"""How many files rows are dealt out to at once, each with its buffers."""
SORT_MEMORY = "128MB"
"""What DuckDB may use to sort before it writes to disk; about as much as the rest of a run takes."""
_PLACE = "\0place"


class Kept:
    """Rows of one table in a file, written once from first to last, then read."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self.schema = schema
        self.rows = 0
        options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
        self._writer = pa.ipc.new_file(str(path), schema, options=options)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self._writer.write_batch(batch)
        self.rows += batch.num_rows

    def finish(self) -> None:
        """Make everything written readable."""
        self._writer.close()

    def remove(self) -> None:
        """Delete the file."""
        self._path.unlink()

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows as they were written, or some of their columns, in the order of the schema."""
        fields = [self.schema.get_field_index(c) for c in columns] if columns else None
        options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        with pa.OSFile(str(self._path)) as file, pa.ipc.open_file(file, options=options) as reader:
            for i in range(reader.num_record_batches):
                yield reader.get_batch(i)


def mapped_numbers(path: Path, rows: int) -> Numbers:
    """Numbers of rows in a new file, of which only what is looked at comes into memory."""
    return np.memmap(path, np.int64, mode="w+", shape=rows) if rows else np.empty(0, np.int64)


def sorted_places(batches: Iterator[pa.RecordBatch], rows: int, *, folder: Path) -> Numbers:
    """The place that each row gets if rows are sorted by their columns, the first one first.

    NULLs come last; rows with equal values stay as they are. `folder` is new and holds what does not fit into memory.
    """
    folder.mkdir()
    places = mapped_numbers(folder / "places", rows)
    first = next(batches, None)
    if first is None:
        return places
    names = [f"c{i}" for i in range(first.num_columns)]
    numbered = _with_rows(first, batches, names)
    head = next(numbered)
    reader = pa.RecordBatchReader.from_batches(head.schema, _chained(head, numbered))
    spilled = str(folder / "spilled")
    with duckdb.connect(config={"threads": 1, "memory_limit": SORT_MEMORY, "temp_directory": spilled}) as base:
        base.register("kept", reader)
        by = ", ".join(f"{name} ASC NULLS LAST" for name in names)
        done = 0
        for batch in base.sql(f"SELECT row FROM kept ORDER BY {by}, row").to_arrow_reader(SORTED_ROWS):  # noqa: S608
            places[batch.column(0).to_numpy()] = np.arange(done, done + batch.num_rows)
            done += batch.num_rows
    return places


def _with_rows(
    first: pa.RecordBatch, batches: Iterator[pa.RecordBatch], names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Columns to sort by under plain names, with the row numbers."""
    done = 0
    for batch in _chained(first, batches):
        rows = pa.array(np.arange(done, done + batch.num_rows))
        yield pa.RecordBatch.from_arrays([*map(_sortable, batch.columns), rows], names=[*names, "row"])
        done += batch.num_rows


def _chained(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from others


def _sortable(array: pa.Array) -> pa.Array:
    """Dates and times as the numbers they are: no database has to know their unit or zone."""
    if not pa.types.is_temporal(array.type):
        return array
    return array.view(pa.int64() if array.type.bit_width == 64 else pa.int32())


def in_places(
    batches: Iterator[pa.RecordBatch], places: Numbers, *, folder: Path, block_rows: int
) -> Iterator[pa.RecordBatch]:
    """Rows in the order of their places. `folder` is new and holds what does not fit into memory."""
    folder.mkdir()
    yield from _moved(_with_places(batches, places), 0, len(places), folder=folder, block_rows=block_rows)


def _with_places(batches: Iterator[pa.RecordBatch], places: Numbers) -> Iterator[pa.RecordBatch]:
    done = 0
    for batch in batches:
        own = np.asarray(places[done : done + batch.num_rows])
        yield batch.append_column(pa.field(_PLACE, pa.int64()), pa.array(own))
        done += batch.num_rows


def _moved(
    batches: Iterator[pa.RecordBatch], first: int, last: int, *, folder: Path, block_rows: int
) -> Iterator[pa.RecordBatch]:
    """The rows of the places first .. last-1, which `batches` hold in any order."""
    if last - first <= SORTED_ROWS:
        for table in _sorted_groups(batches, last - first):
            yield from table.drop_columns([_PLACE]).combine_chunks().to_batches(max_chunksize=block_rows)
        return
    step = max(SORTED_ROWS, -(-(last - first) // MOST_FILES))
    edges = [*range(first, last, step), last]
    files: list[Kept] = []
    for table in _sorted_groups(batches, SORTED_ROWS):
        files = files or [Kept(folder / f"{edge}-{step}", table.schema) for edge in edges[:-1]]
        cuts = np.searchsorted(table.column(_PLACE).to_numpy(), edges)
        for file, (start, end) in zip(files, pairwise(cuts.tolist()), strict=True):
            for piece in table.slice(start, end - start).to_batches():
                file.write(piece)
    for file, (start, end) in zip(files, pairwise(edges), strict=True):
        file.finish()
        yield from _moved(file.read(), start, end, folder=folder, block_rows=block_rows)
        file.remove()


def _sorted_groups(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Batches of at least so many rows together, all but the last, sorted by their places."""
    group: list[pa.RecordBatch] = []
    for batch in batches:
        group.append(batch)
        if sum(b.num_rows for b in group) >= rows:
            yield _sorted(group)
            group = []
    if group:
        yield _sorted(group)


def _sorted(group: list[pa.RecordBatch]) -> pa.Table:
    table = pa.Table.from_batches(group).combine_chunks()
    return table.take(pa.array(np.argsort(table.column(_PLACE).to_numpy())))
