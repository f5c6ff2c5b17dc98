"""The rehearsal: what fails for reasons of the spec fails on made-up rows, before a private row is read or paid for."""

import io
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privbench
from privbench.errors import DataError, PrivBenchError, RehearsalError, SchemaError
from privbench.fitting.prepare import prepare
from privbench.io.base import Source
from privbench.io.open import open_source
from privbench.mistakes import whereabouts
from privbench.rehearsal import made_up_rows, read_public, rehearse
from privbench.schema.domain import Origin
from privbench.schema.spec import Spec
from privbench.schema.tables import Schema, Table

from .e2e.checks import broken_promises
from .e2e.random_databases import random_database
from .e2e.shapes import SHAPES, Shape
from .e2e.walk import drafted

CHOSEN = ["lookup", "junction", "inbound", "seasons", "cycle", "odd_tables"]


def _drafted(shape: Shape, folder: Path, domains: str = "data") -> Spec:
    return privbench.draft(shape.write(folder / "source"), domains=domains, **shape.choices)


class PublicOnly(Source):
    """A source of which nobody may read more than public tables."""

    def __init__(self, source: Source, public: list[str]) -> None:
        self.location = source.location
        self._source, self._public = source, public

    def schema(self) -> Schema:
        return self._source.schema()

    def rows(self, name: str) -> int:
        assert name in self._public
        return self._source.rows(name)

    def read(self, table: Table) -> Iterator[pa.RecordBatch]:
        assert table.name in self._public
        return self._source.read(table)


@pytest.mark.parametrize("name", CHOSEN)
def test_made_up_rows_keep_the_schema_and_no_private_row_is_read(name: str, tmp_path: Path) -> None:
    shape = SHAPES[name]
    prepared = prepare(_drafted(shape, tmp_path), method=None, delta=Fraction(0))
    protection = prepared.protection
    with open_source(tmp_path / "source") as opened:
        source = PublicOnly(opened, list(shape.choices.get("public", ())))
        rows = made_up_rows(prepared, read_public(prepared, source))
        rehearse(prepared, source, Fraction(0))
    assert broken_promises(protection.schema.published(), rows) == []
    filled = {table for table, made in rows.items() if made.num_rows}
    assert filled >= set(protection.order) - {"empty", "picks"}


def test_tables_that_are_made_up_are_rehearsed(tmp_path: Path) -> None:
    shape = SHAPES["lookup"]
    choices = {**shape.choices, "public": [], "made_up": {"city": 5}}
    spec = privbench.draft(shape.write(tmp_path / "source"), domains="data", **choices)
    prepared = prepare(spec, method=None, delta=Fraction(0))
    with open_source(tmp_path / "source") as opened:
        rows = made_up_rows(prepared, read_public(prepared, PublicOnly(opened, [])))
        rehearse(prepared, PublicOnly(opened, []), Fraction(0))
    assert rows["city"].num_rows == 5


def test_columns_of_all_types_come_about(tmp_path: Path) -> None:
    prepared = prepare(_drafted(SHAPES["single"], tmp_path), method=None, delta=Fraction(0))
    made = made_up_rows(prepared, {})["census"]
    constant = [name for name in made.column_names if len(made.column(name).unique()) < 2]
    assert constant == []


def test_public_rows_are_few_and_hold_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privbench.rehearsal.PUBLIC_ROWS", 40)
    shape = SHAPES["inbound"]
    prepared = prepare(_drafted(shape, tmp_path), method=None, delta=Fraction(0))
    with open_source(tmp_path / "source") as source:
        read = read_public(prepared, source)
    rows = {name: pq.read_table(io.BytesIO(content)) for name, content in read.items()}
    assert rows["keyword"].num_rows == 40
    known = set(rows["rating"].column("movie_id").to_pylist())
    remarks = rows["remark"].column("rating").to_pylist()
    assert 0 < len(remarks) < 40
    assert set(remarks) <= {*known, None}


@pytest.mark.parametrize("number", range(3))
def test_a_random_database_is_rehearsed(number: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is told of made-up rows. More databases are walked by `e2e/test_random_databases.py`."""
    shape, source = random_database(number), tmp_path / "source"
    shape.write(source)
    prepared = prepare(drafted(shape, source, "private"), method=None, delta=Fraction(0))
    with open_source(source) as opened:
        caplog.clear()
        rehearse(prepared, opened, Fraction(0))
    assert caplog.records == []


def test_texts_of_a_syntax_are_rehearsed() -> None:
    """Their lists are to be found with the budget of a delta."""
    ddl = "CREATE TABLE t (id INTEGER PRIMARY KEY, key UUID NOT NULL, word VARCHAR(3))"
    key = "0000-4000-8000-000000000000"
    columns = {"id": range(60), "key": [f"{i:08x}-{key}" for i in range(60)], "word": ["abc"] * 60}
    tables = {"t": pa.table(columns)}
    spec = privbench.draft(tables, schema=ddl, unit="t", find=False)
    changed = {("t", name): (None, Origin.PRIVATE) for name in ("key", "word")}
    model = privbench.fit(spec.with_domains(changed), source=tables, epsilon=50, delta="1e-6")  # type: ignore[arg-type]
    assert model.tables["t"].rows == 60


# -- what fails --------------------------------------------------------------------------------------------------------


def _broken(*_args: Any, **_options: Any) -> Any:
    table, column = "visit", "cost"
    return {}[f"{table}.{column}"]


PLANTED = {
    "learning": "privbench.methods.tree.method.learn_table",
    "drawing": "privbench.generation.run.PrivateRows",
    "companions": "privbench.generation.bundle.script_files",
    "verifying": "privbench.model.receipt_check._other_claims",
    "saving": "privbench.model.file._entries",
}


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "state" / "budget.jsonl"
    monkeypatch.setenv("PRIVBENCH_BUDGET_RECORD", str(path))
    return path


@pytest.mark.parametrize("where", PLANTED.values(), ids=PLANTED)
def test_a_mistake_of_ours_is_found_before_anything_is_spent(
    where: str, tmp_path: Path, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = SHAPES["parent_child"]
    source = shape.write(tmp_path / "source")
    monkeypatch.setattr(where, _broken)
    with pytest.raises(RehearsalError, match=r"^visit\.cost: .*KeyError.*nothing was spent"):
        privbench.synth(source, tmp_path / "bundle", epsilon=50, domains="data", **shape.choices)
    assert record.read_bytes() == b""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "state"]


def test_an_error_of_the_tree_keeps_its_class(tmp_path: Path, record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: Any) -> None:
        raise SchemaError("visit.cost: is too long.")

    spec = _drafted(SHAPES["parent_child"], tmp_path)
    monkeypatch.setattr("privbench.rehearsal.save_model", refuse)
    with pytest.raises(SchemaError, match=r"visit\.cost: is too long\. \(Found in a rehearsal"):
        privbench.fit(spec, epsilon=50)
    assert record.read_bytes() == b""


def test_rows_that_the_bundle_s_own_script_refuses_are_found(
    tmp_path: Path, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = ".bail on\nCREATE TABLE t (n INTEGER CHECK (n > 0));\nINSERT INTO t VALUES (0);\n"
    spec = _drafted(SHAPES["parent_child"], tmp_path)
    monkeypatch.setattr("privbench.io.load_scripts._duckdb", lambda *_: script.splitlines())
    with pytest.raises(RehearsalError, match=r"load/duckdb\.sql: .*CHECK constraint failed"):
        privbench.fit(spec, epsilon=50)
    assert record.read_bytes() == b""


def test_without_a_rehearsal_the_fit_goes_ahead(tmp_path: Path, record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = _drafted(SHAPES["parent_child"], tmp_path)
    monkeypatch.setattr("privbench.rehearsal.save_model", _broken)
    with pytest.raises(RehearsalError):
        privbench.fit(spec, epsilon=50)
    assert set(privbench.fit(spec, epsilon=50, rehearse=False).tables) == {"person", "visit"}
    assert len(record.read_text().splitlines()) == 1


def test_errors_of_the_data_are_told_as_such(tmp_path: Path) -> None:
    """A rehearsal does not look at the rows, and so does not stand in the way of who does."""
    spec = privbench.draft({"t": pa.table({"n": [1, 2, 3]})}, unit="t", domains="data", find=False)
    with pytest.raises(DataError) as found:
        privbench.fit(spec, source={"t": pa.table({"n": ["a", "b", "c"]})}, epsilon=50)
    assert "rehearsal" not in str(found.value)


def test_whereabouts_name_table_column_and_line() -> None:
    def learn(table: str, column: str) -> None:
        raise KeyError(column)

    with pytest.raises(KeyError) as caught:
        learn("person", "age")
    place = whereabouts(caught.value)
    assert (place.table, place.column, place.words) == ("person", "age", "person.age")
    assert place.line.startswith("tests/test_rehearsal.py:")
    assert issubclass(RehearsalError, PrivBenchError)


@pytest.mark.parametrize("kind", ["TIMESTAMPTZ", "postcode NOT NULL UNIQUE"])
def test_what_draft_takes_from_data_and_domains_is_rehearsed(kind: str, tmp_path: Path) -> None:
    domain = "CREATE DOMAIN postcode AS text CHECK (VALUE ~ '^[0-9]{4}$');"
    between = " CHECK (x BETWEEN '2022-01-01 00:00:00+00'::timestamptz AND '2022-12-31 00:00:00+00'::timestamptz)"
    check = between if kind == "TIMESTAMPTZ" else ""
    (tmp_path / "schema.sql").write_text(f"{domain}\nCREATE TABLE p (id INT PRIMARY KEY, x {kind}{check});")
    values = [f"2022-{1 + i % 12:02}-01 00:00:00+00" if check else f"{1000 + i}" for i in range(200)]
    (tmp_path / "p.csv").write_text("id,x\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values)))
    spec = privbench.draft(tmp_path, unit="p", domains="data")
    with open_source(tmp_path) as source:
        rehearse(prepare(spec, method=None, delta=Fraction(0)), source, Fraction(0))
