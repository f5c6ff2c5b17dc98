"""A made-up source and a made-up format, as another system would add them: one module that makes a kind of each.

The source makes its rows up from its location, `numbers://ROWS`; the format writes one file of JSON lines.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from privbench.io.base import BATCH_ROWS, SinkKind, SourceKind, arrow_schema
from privbench.io.ddl import parse_ddl
from privbench.schema.tables import Schema, Table

PREFIX = "numbers://"
DDL = """CREATE TABLE person (id INTEGER PRIMARY KEY, age SMALLINT NOT NULL CHECK (age BETWEEN 0 AND 99));
CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person (id), paid BOOLEAN);"""


class NumbersSource:
    """Persons 0 to ROWS - 1, with two visits each."""

    def __init__(self, location: str) -> None:
        self.location = location
        self._persons = int(location.removeprefix(PREFIX))

    def schema(self) -> Schema:
        return parse_ddl(DDL, where="numbers")

    def read(self, table: Table) -> Iterator[pa.RecordBatch]:
        make = {
            "id": lambda i: i,
            "age": lambda i: i % 100,
            "person_id": lambda i: i % self._persons,
            "paid": lambda i: i % 2 == 0,
        }
        values = {c.name: [make[c.name](i) for i in range(self.rows(table.name))] for c in table.columns}
        yield from pa.table(values, schema=arrow_schema(table)).to_batches(BATCH_ROWS)

    def rows(self, name: str) -> int:
        return {"person": 1, "visit": 2}[name] * self._persons

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


class JsonLinesSink:
    """One file, a line per row."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        self._file.writelines(json.dumps({"table": table, **row}) + "\n" for row in batch.to_pylist())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._file.close()


NUMBERS = SourceKind(name="made-up numbers", matches=lambda location: location.startswith(PREFIX), open=NumbersSource)
JSON_LINES = SinkKind(
    name="jsonl",
    open=lambda folder, _: JsonLinesSink(folder / "rows.jsonl"),
    loading="Read `data/rows.jsonl` line by line; each says which table it is of, such as {table}.",
)
