"""The contract of every source: the same rows, types and keys, whatever the system."""

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from privbench.errors import DataError, SourceError
from privbench.io import csv_file, duckdb_file, files, memory, sqlite_file
from privbench.io.base import Format, Source, arrow_schema
from privbench.io.mysql import source as mysql_source
from privbench.io.open import open_source
from privbench.io.postgres import source as postgres_source
from privbench.schema.tables import Schema
from privbench.schema.types import parse_type


def test_gives_every_row_in_the_asked_types(source: Source, schema: Schema, rows: dict[str, pa.Table]) -> None:
    with source:
        for table in schema.tables:
            batches = list(source.read(table))
            assert pa.Table.from_batches(batches, arrow_schema(table)) == rows[table.name]
            assert source.rows(table.name) == rows[table.name].num_rows


def test_can_be_read_twice_and_in_turns(source: Source, schema: Schema) -> None:
    with source:
        one, two = source.read(schema.table("kinds")), source.read(schema.table("kinds"))
        assert next(one) == next(two)
        assert next(source.read(schema.table("kinds"))).num_rows == 3


def test_schema_has_tables_columns_keys_and_nulls(source: Source, schema: Schema) -> None:
    with source:
        found = source.schema()
    assert {t.name for t in found.tables} == {t.name for t in schema.tables}
    for table in schema.tables:
        twin = found.table(table.name)
        assert [c.name for c in twin.columns] == [c.name for c in table.columns]
        assert [c.nullable for c in twin.columns] == [c.nullable for c in table.columns]
        assert (twin.primary_key, twin.uniques, twin.indexes) == (table.primary_key, table.uniques, table.indexes)
        for column in table.columns:
            assert twin.column(column.name).type.kind is column.type.kind
            assert twin.column(column.name).type.scale == column.type.scale


@pytest.mark.parametrize("to", [Format.PARQUET, Format.SQLITE], ids=lambda f: f.value)
def test_foreign_keys_are_all_there(to: Format, write_bundle: Callable[[Format], Path], schema: Schema) -> None:
    with open_source(write_bundle(to)) as source:
        for table in schema.tables:
            assert set(source.schema().table(table.name).foreign_keys) == set(table.foreign_keys)


def test_a_bundle_with_duckdb_keeps_the_keys_that_duckdb_cannot_hold(
    write_bundle: Callable[[Format], Path], schema: Schema
) -> None:
    bundle = write_bundle(Format.DUCKDB)
    with open_source(bundle) as whole, open_source(bundle / "data" / "database.duckdb") as file:
        assert whole.schema().table("order").foreign_keys == schema.table("order").foreign_keys
        assert (
            len(file.schema().table("order").foreign_keys) + len(file.schema().table('shop "A"').foreign_keys)
            == len(list(schema.foreign_keys())) - 2
        )


def test_reads_some_columns_in_another_order_and_type(source: Source, schema: Schema) -> None:
    kinds = schema.table("kinds")
    as_text = dataclasses.replace(kinds.column("i16"), type=parse_type("VARCHAR"))
    some = dataclasses.replace(kinds, columns=(kinds.column("word"), as_text), indexes=())
    with source:
        [batch] = source.read(some)
    assert batch.schema.names == ["word", "i16"]
    assert batch.column("i16").to_pylist() == ["-32768", "0", None]


def test_a_value_that_does_not_fit_is_named(source: Source, schema: Schema) -> None:
    kinds = schema.table("kinds")
    narrow = dataclasses.replace(
        kinds, columns=(dataclasses.replace(kinds.column("i64"), type=parse_type("INTEGER")),), indexes=()
    )
    with source, pytest.raises(DataError, match=r"kinds\.i64: '?-9223372036854775808'? is not a value of type INTEGER"):
        list(source.read(narrow))


def test_a_table_or_column_that_is_not_there(source: Source, schema: Schema) -> None:
    ghost = dataclasses.replace(schema.table("lonely"), name="ghost")
    column = dataclasses.replace(schema.table("lonely").columns[0], name="ghost")
    missing = dataclasses.replace(schema.table("lonely"), columns=(column,))
    with source:
        for table in (ghost, missing):
            with pytest.raises(SourceError, match="ghost"):
                list(source.read(table))
        with pytest.raises(SourceError, match="ghost"):
            source.rows("ghost")


def test_batches_stay_small(source: Source, schema: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (csv_file, duckdb_file, files, memory, mysql_source, postgres_source, sqlite_file):
        monkeypatch.setattr(module, "BATCH_ROWS", 2)
    with source:
        sizes = [b.num_rows for b in source.read(schema.table("lonely"))]
    assert sum(sizes) == 4
    if not isinstance(source, duckdb_file.DuckDBSource):  # DuckDB rounds up to its own vectors
        assert max(sizes) <= 2


def test_rows_may_be_asked_for_on_another_thread(source: Source, schema: Schema) -> None:
    with source, ThreadPoolExecutor(max_workers=1) as other:
        batches = source.read(schema.table("lonely"))
        read = [*other.submit(lambda: [next(batches)]).result(), *batches]
    assert sum(batch.num_rows for batch in read) == 4
