"""One Parquet or CSV file per table; the same batches give the same bytes."""

from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from privbench.io.base import Format, SinkKind, arrow_schema
from privbench.io.names import file_stems
from privbench.io.staging import target_error
from privbench.schema.tables import Schema


class _Writer(Protocol):
    def write_batch(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


class FileSink:
    """One Parquet or CSV file per table. In CSV a NULL is an empty field and text is always quoted."""

    def __init__(self, folder: Path, *, schema: Schema, format: Format) -> None:  # noqa: A002
        stems = file_stems(t.name for t in schema.tables)
        self._paths = {name: folder / f"{stem}.{format.value}" for name, stem in stems.items()}
        self._schema = schema
        self._format = format
        self._writers: dict[str, _Writer] = {}

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """Append a batch to the table's file."""
        try:
            self._writer(table).write_batch(batch)
        except OSError as error:
            raise target_error(self._paths[table].name, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None:
            for table in self._schema.tables:
                self._complete(table.name)
            return
        for writer in self._writers.values():
            _close_quietly(writer)

    def _complete(self, table: str) -> None:
        try:
            self._writer(table).close()
        except OSError as error:
            raise target_error(self._paths[table].name, error) from error

    def _writer(self, table: str) -> _Writer:
        if table not in self._writers:
            schema = arrow_schema(self._schema.table(table))
            self._writers[table] = _open_writer(self._paths[table], schema, self._format)
        return self._writers[table]


def _open_writer(path: Path, schema: pa.Schema, format: Format) -> _Writer:  # noqa: A002
    writer: _Writer
    if format is Format.CSV:
        writer = pcsv.CSVWriter(path, schema)
    else:
        writer = pq.ParquetWriter(path, schema, compression="zstd")
    return writer


def _close_quietly(writer: _Writer) -> None:
    """Close after a failure; a second failure would only hide the first."""
    try:
        writer.close()
    except (OSError, pa.ArrowException):
        return


PARQUET = SinkKind(
    name=Format.PARQUET.value,
    open=lambda folder, schema: FileSink(folder, schema=schema, format=Format.PARQUET),
    loading="`python -c \"import duckdb; duckdb.read_parquet('data/{table}.parquet').limit(5).show()\"`, "
    "or run `schema.sql` and load each file.",
)
CSV = SinkKind(
    name=Format.CSV.value,
    open=lambda folder, schema: FileSink(folder, schema=schema, format=Format.CSV),
    loading="Run `schema.sql`, then load each file: an empty field is NULL, a quoted empty one an empty string.",
)
