"""A folder with one Parquet or CSV file per table, or a folder of `part-*` files: the source, and the sink.

A `schema.sql` beside the files gives types and keys; files and CREATE TABLE statements must then match one to one.
Without it the types come from the files and there are no keys. Names match exactly or else without regard to case.
The sink writes the same bytes for the same batches.
"""

from collections.abc import Collection, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from privbench.errors import SourceError, first_line
from privbench.io.base import BATCH_ROWS, Format, SinkKind, Source, SourceKind
from privbench.io.cast import cast_batch
from privbench.io.csv_bytes import CSV_SUFFIXES
from privbench.io.csv_file import CsvFile, count_rows, infer_types, read_header, read_text
from privbench.io.declared import check_columns
from privbench.io.names import Names, file_stems, table_name
from privbench.io.staging import target_error
from privbench.io.stored import csv_type, for_csv, for_parquet, parquet_type
from privbench.schema.csv_options import CsvOptions
from privbench.schema.domain import implied_by_type
from privbench.schema.tables import Column, Schema, Table
from privbench.schema.types import type_of_arrow
from privbench.threads import ahead

_PARQUET = ".parquet"
_CHANGED = (pa.types.is_uint64, pa.types.is_float16, pa.types.is_null, pa.types.is_time32)
"""Arrow types that become one of ours which is not the same."""


class FolderSource(Source):
    """Tables in files. `data` is where they are, if not beside `schema.sql` (as in a bundle)."""

    def __init__(self, folder: Path, *, data: Path | None = None, csv: CsvOptions | None = None) -> None:
        self.location = str(folder)
        self._ddl = folder / "schema.sql"
        self._files = _files_by_table(data or folder, csv or CsvOptions())
        if csv is not None and not any(file.is_csv for file in self._files.values()):
            raise SourceError(f"{folder}: has no CSV file, and `--null`, `--delimiter` and `--ragged` are for these.")
        self._names = Names(self._files)
        self._schema: Schema | None = None

    def schema(self) -> Schema:
        """Read `schema.sql` if there is one, else the types in the files."""
        if self._schema is None:
            self._schema = self._declared() if self._ddl.is_file() else self._found()
        return self._schema

    def read(self, table: Table) -> Iterator[pa.RecordBatch]:
        file = self._file(table.name)
        stored = Names(_stored_columns(file))
        names = [stored.find(c.name) for c in table.columns]
        for column, name in zip(table.columns, names, strict=True):
            if name is None:
                raise SourceError(f"{table.name}.{column.name}: {file.path.name} has no such column.")
        _check_unchanged(file)
        for batch in _batches(file, tuple(n for n in names if n is not None)):
            yield cast_batch(batch, table)
        _check_unchanged(file)

    def rows(self, name: str) -> int:
        """Count the rows; free for Parquet, a pass over the file for CSV."""
        file = self._file(name)
        if file.is_csv:
            return sum(count_rows(part.csv) for part in file.each())
        return sum(_count_parquet(part) for part in file.each())

    def close(self) -> None:
        """Nothing stays open between two reads."""

    def _file(self, name: str) -> "_File":
        spelled = self._names.find(name)
        if spelled is None:
            raise SourceError(f"{self.location}: no Parquet or CSV file for table {name}.")
        return self._files[spelled]

    def _declared(self) -> Schema:
        schema = read_schema(self._ddl)
        self._check_match(schema)
        return schema

    def _check_match(self, schema: Schema) -> None:
        without = [t.name for t in schema.tables if self._names.find(t.name) is None]
        if without:
            raise SourceError(f"{self.location}: schema.sql declares {', '.join(without)}, but there is no such file.")
        unused = {f.shown for f in self._files.values()} - {self._file(t.name).shown for t in schema.tables}
        if unused:
            raise SourceError(
                f"{self.location}: no CREATE TABLE in schema.sql for {', '.join(sorted(unused))}. Add it, or move the "
                "file elsewhere."
            )
        for table in schema.tables:
            file = self._file(table.name)
            check_columns(table, _stored_columns(file), schema="schema.sql", place=file.path.name)

    def _found(self) -> Schema:
        return Schema(tables=tuple(_table_of_file(file) for file in self._files.values()))


def read_schema(path: Path) -> Schema:
    """Read a `schema.sql`; its line ends stay as they are, since a quoted name may hold one."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: cannot be read as text in UTF-8 ({error}).") from error
    from privbench.io.ddl import parse_ddl  # noqa: PLC0415  loads sqlglot, which types in files do without

    return parse_ddl(text, where=path.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """The file of a table, or the first of several."""

    table: str
    path: Path
    options: CsvOptions
    state: tuple[int, int]
    """Size and time of the last change, when the folder was opened; of several files those of the first."""
    parts: tuple[Path, ...] = ()
    """All files, where there are several."""
    states: tuple[tuple[int, int], ...] = ()

    def check_unchanged(self) -> None:
        """Refuse a file that somebody wrote to since: what was read of it before and after would not go together."""
        if _state(self.path) != self.state:
            raise SourceError(
                f"{self.path.name}: changed while it was read. Try again when nobody writes to the folder, or read a "
                "copy of it."
            )

    def each(self) -> Iterator["_File"]:
        """Every file by itself."""
        pairs = zip(self.parts, self.states, strict=True) if self.parts else [(self.path, self.state)]
        for path, state in pairs:
            yield replace(self, path=path, state=state, parts=(), states=())

    @property
    def shown(self) -> str:
        """What to call it in messages."""
        return f"{self.path.parent.name}/" if self.parts else self.path.name

    @property
    def is_csv(self) -> bool:
        return self.path.suffix.lower() != _PARQUET

    @property
    def csv(self) -> CsvFile:
        return CsvFile(table=self.table, path=self.path, options=self.options)


def _files_by_table(folder: Path, options: CsvOptions) -> dict[str, _File]:
    try:
        paths = sorted(p for p in folder.iterdir() if _parts(p) or _suffix(p) is not None)
    except OSError as error:
        raise SourceError(f"{folder}: cannot be read ({error.strerror}).") from error
    if not paths:
        raise SourceError(
            f"{folder}: has no .parquet or .csv file. Put one file per table there (.csv.gz and .csv.zip do as well)."
        )
    files: dict[str, _File] = {}
    for path in paths:
        name = table_name(path.name[: len(path.name) - len(_suffix(path) or "")])
        if name in files:
            raise SourceError(f"{folder}: {files[name].path.name} and {path.name} are both table {name}. Keep one.")
        parts = _parts(path)
        first, states = parts[0] if parts else path, tuple(map(_state, parts))
        files[name] = _File(table=name, path=first, options=options, state=_state(first), parts=parts, states=states)
        _check_parts(files[name])
    return files


def _parts(path: Path) -> tuple[Path, ...]:
    """The files of a folder that holds one table, in their order; none for a file or any other folder."""
    if not path.is_dir():
        return ()
    return tuple(sorted(p for p in path.glob("part-*") if p.is_file() and _suffix(p) is not None))


def _check_parts(file: _File) -> None:
    """Refuse parts of a table that differ in kind or columns."""
    if not file.parts:
        return
    first, *others = file.each()
    columns = _stored_columns(first)
    for other in others:
        if other.is_csv != first.is_csv or _stored_columns(other) != columns:
            raise SourceError(
                f"{other.path.parent.name}: {first.path.name} and {other.path.name} have different columns or formats, "
                "so they are no parts of one table."
            )


def _check_unchanged(file: _File) -> None:
    for part in file.each():
        part.check_unchanged()


def _state(path: Path) -> tuple[int, int]:
    try:
        facts = path.stat()
    except OSError as error:
        raise SourceError(f"{path.name}: cannot be read ({error.strerror}).") from error
    return facts.st_size, facts.st_mtime_ns


def _suffix(path: Path) -> str | None:
    """How the name of a table's file ends, the longest first; None for any other file."""
    endings = sorted((_PARQUET, *CSV_SUFFIXES), key=len, reverse=True)
    return next((end for end in endings if path.name.lower().endswith(end) and len(path.name) > len(end)), None)


def _stored_columns(file: _File) -> tuple[str, ...]:
    if file.is_csv:
        return read_header(file.csv)
    with _open_parquet(file) as parquet:
        return tuple(parquet.schema_arrow.names)


def _batches(file: _File, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    for part in file.each():
        yield from _part_batches(part, columns)


def _part_batches(file: _File, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    if file.is_csv:
        yield from (b.select(columns) for b in read_text(file.csv, columns))
        return
    with closing(ahead(_parquet_batches(file, columns))) as batches:
        yield from batches


def _parquet_batches(file: _File, columns: tuple[str, ...]) -> Generator[pa.RecordBatch, None, None]:
    with _open_parquet(file) as parquet:
        try:
            for batch in parquet.iter_batches(BATCH_ROWS, columns=list(columns), use_threads=False):
                yield batch.select(columns)
        except (pa.ArrowException, OSError) as error:
            raise SourceError(f"{file.path.name}: is damaged ({first_line(error)}).") from error


def _count_parquet(file: _File) -> int:
    with _open_parquet(file) as parquet:
        return int(parquet.metadata.num_rows)


def _open_parquet(file: _File) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file.path, pre_buffer=False)  # which would hold all of the file until it is read
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{file.path.name}: is not a readable Parquet file ({first_line(error)}).") from error


def _table_of_file(file: _File) -> Table:
    return Table(name=file.table, columns=_guessed_columns(file) if file.is_csv else _parquet_columns(file))


def _guessed_columns(file: _File) -> tuple[Column, ...]:
    """The columns of a CSV file. Their types are guessed from the values, so that they imply nothing."""
    types = infer_types(file.csv)
    return tuple(Column(name=n, type=t, guessed=True, source_type="CSV") for n, t in types.items())


def _parquet_columns(file: _File) -> tuple[Column, ...]:
    with _open_parquet(file) as parquet:
        return tuple(arrow_column(field.name, field.type) for field in parquet.schema_arrow)


def arrow_column(name: str, arrow: pa.DataType) -> Column:
    """The column that an Arrow type stands for, where no schema declares it.

    That all values are NULL is no type: it was read off them.
    """
    ours = type_of_arrow(arrow)
    if is_all_null(arrow):
        return Column(name=name, type=ours, guessed=True, source_type="null")
    changed = any(test(arrow) for test in _CHANGED) or (pa.types.is_timestamp(arrow) and arrow.unit != "us")
    return Column(name=name, type=ours, implied=implied_by_type(ours), source_type=str(arrow) if changed else None)


def is_all_null(arrow: pa.DataType) -> bool:
    """Tell whether a type says that there is no value, also of categories."""
    return bool(pa.types.is_null(arrow.value_type if pa.types.is_dictionary(arrow) else arrow))


class _Writer(Protocol):
    def write_batch(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


class FileSink:
    """One Parquet or CSV file per table. In CSV a NULL is an empty field and text is always quoted."""

    def __init__(
        self,
        folder: Path,
        *,
        schema: Schema,
        format: Format,  # noqa: A002
        only: Collection[str] | None = None,
    ) -> None:
        """`only` are the tables that have a file here, if not all."""
        stems = file_stems(t.name for t in schema.tables)
        self._paths = {
            name: folder / f"{stem}.{format.value}" for name, stem in stems.items() if only is None or name in only
        }
        self._schema = schema
        self._format = format
        self._writers: dict[str, _Writer] = {}
        self._completed: set[str] = set()

    @property
    def tables(self) -> list[str]:
        """The tables that have a file."""
        return list(self._paths)

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        try:
            convert = for_csv if self._format is Format.CSV else for_parquet
            self._writer(table).write_batch(convert(batch, self._schema.table(table)))
        except OSError as error:
            raise target_error(self._paths[table].name, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None:
            for table in self._paths:
                self.complete(table)
            return
        for writer in self._writers.values():
            _close_quietly(writer)

    def complete(self, table: str) -> None:
        """Close the file of a table, of which no more rows come."""
        if table in self._completed:
            return
        self._completed.add(table)
        try:
            self._writer(table).close()
        except OSError as error:
            raise target_error(self._paths[table].name, error) from error

    def _writer(self, table: str) -> _Writer:
        if table not in self._writers:
            kept = csv_type if self._format is Format.CSV else parquet_type
            fields = [pa.field(c.name, kept(c.type)) for c in self._schema.table(table).columns]
            keys = key_columns(self._schema.table(table))
            self._writers[table] = _open_writer(self._paths[table], pa.schema(fields), self._format, keys=keys)
        return self._writers[table]


def key_columns(table: Table) -> frozenset[str]:
    """The columns that are keys by themselves: hardly two rows of a primary key's have the same value."""
    keys = [table.primary_key, *(key.columns for key in table.foreign_keys)]
    return frozenset(key[0] for key in keys if len(key) == 1)


def _open_writer(path: Path, schema: pa.Schema, format: Format, *, keys: Collection[str]) -> _Writer:  # noqa: A002
    """Parquet files have dictionaries but for whole numbers that are keys: these are kept as differences."""
    writer: _Writer
    if format is Format.CSV:
        writer = pcsv.CSVWriter(path, schema)
    else:
        numbers = [field.name for field in schema if field.name in keys and pa.types.is_integer(field.type)]
        writer = pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            use_dictionary=[name for name in schema.names if name not in numbers],
            column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        )
    return writer


def _close_quietly(writer: _Writer) -> None:
    """Close after a failure; a second failure would only hide the first."""
    try:
        writer.close()
    except (OSError, pa.ArrowException):
        return


FOLDER_SOURCE = SourceKind(
    name="a folder with one Parquet or CSV file per table",
    matches=lambda location: Path(location).is_dir(),
    open=lambda location: FolderSource(Path(location)),
)
PARQUET_SINK = SinkKind(
    name=Format.PARQUET.value,
    open=lambda folder, schema: FileSink(folder, schema=schema, format=Format.PARQUET),
    loading="`python -c \"import duckdb; duckdb.read_parquet('data/{table}.parquet').limit(5).show()\"`, "
    "or run `schema.sql` and load each file.",
)
CSV_SINK = SinkKind(
    name=Format.CSV.value,
    open=lambda folder, schema: FileSink(folder, schema=schema, format=Format.CSV),
    loading="Run `schema.sql`, then load each file: an empty field is NULL, a quoted empty one an empty string.",
)
