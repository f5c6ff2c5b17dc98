"""Executors and workers that are lost in the middle: the fit ends as if nothing had been, or says why it cannot."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privbench
from privbench.errors import ServerError, SourceError
from privbench.fitting import spark_reading
from privbench.io.spark_source import SparkSource
from privbench.privacy import spark_parts
from privbench.privacy.spark_parts import SparkParts
from privbench.schema.tables import Table

from ..e2e.shapes import SHAPES
from .fits import content, fitted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

Work = Callable[[Iterator[Any]], Iterator[Any]]
STEPS = {"reading": spark_reading, "counting": spark_parts}


def _killing(work: Work, marker: Path, *, victim: str, times: int) -> Work:
    """Work that kills the process that does it, or the executor above that, the first times that it is asked."""
    place = str(marker)

    def killed(batches: Iterator[Any]) -> Iterator[Any]:
        for attempt in range(times):
            try:
                os.close(os.open(f"{place}-{attempt}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            whom = os.getpid()
            if victim == "executor":
                for _ in range(2):  # above a worker is the daemon that forked it, above that the executor
                    with open(f"/proc/{whom}/stat") as file:
                        whom = int(file.read().rsplit(")", 1)[1].split()[1])
            os.kill(whom, signal.SIGKILL)
        yield from work(batches)

    return killed


@pytest.fixture
def shop(tmp_path: Path) -> tuple[Any, Path]:
    shape = SHAPES["partly_null"]
    folder = shape.write(tmp_path / "source")
    return privbench.draft(folder, domains="data", **shape.choices), folder


@pytest.mark.parametrize("victim", ["worker", "executor"])
@pytest.mark.parametrize("step", STEPS)
def test_what_is_lost_is_worked_out_again(
    step: str,
    victim: str,
    shop: tuple[Any, Path],
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, model = fitted(*shop, engine="local")
    module = STEPS[step]
    plain = module.map_batches
    calls: list[Any] = []

    def map_batches(frame: Any, work: Any, schema: str) -> Any:
        calls.append(work)
        once = len(calls) == 3
        return plain(frame, _killing(work, tmp_path / "dead", victim=victim, times=1) if once else work, schema)

    monkeypatch.setattr(module, "map_batches", map_batches)
    there, same = fitted(*shop, engine="spark")
    assert list(tmp_path.glob("dead-*"))
    assert here == there
    assert content(model, tmp_path) == content(same, tmp_path)


def _lose_parts(patch: pytest.MonkeyPatch, *, at: set[int], meanwhile: Callable[[], None] = lambda: None) -> list[str]:
    """Have Spark lose all parts before some pieces of work, as with executors that are gone; returns all of these."""
    done: list[str] = []
    for method in ("map", "rewrite"):
        plain = getattr(SparkParts, method)

        def losing(parts: SparkParts, work: Any, *, method: str = method, plain: Any = plain) -> Any:
            done.append(method)
            if len(done) in at:
                meanwhile()
                parts._frame.unpersist(blocking=True)
            return plain(parts, work)

        patch.setattr(SparkParts, method, losing)
    return done


def _change(path: Path, column: str) -> None:
    """Put the values of a column into another order: there are as many rows as before, with the same values."""
    rows = pq.read_table(path)
    place, field = rows.column_names.index(column), rows.schema.field(column)
    turned = pa.chunked_array([rows.column(column).slice(1).combine_chunks(), rows.column(column)[:1].combine_chunks()])
    assert turned != rows.column(column)
    pq.write_table(rows.set_column(place, field, turned), path)


def test_parts_that_are_made_again_are_the_same(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With joins that find owners, and others that number rows."""
    shape = SHAPES["diamond"]
    folder = shape.write(tmp_path / "source")
    spec = privbench.draft(folder, **shape.choices)
    finding = {"delta": "1e-6", "epsilon": "20"}  # domains: parts are rewritten then
    here, _ = fitted(spec, folder, engine="local", **finding)
    done = _lose_parts(monkeypatch, at={1, 2, 5})
    there, _ = fitted(spec, folder, engine="spark", **finding)
    assert "rewrite" in done
    assert len(done) >= 5
    assert here == there


def test_a_source_that_changes_while_it_is_counted(
    shop: tuple[Any, Path], spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that were lost are not those that were counted: an entity would be counted in two states."""
    done = _lose_parts(monkeypatch, at={2}, meanwhile=lambda: _change(shop[1] / "task.parquet", "hours"))
    before = privbench.budget().sources
    with pytest.raises(SourceError, match=r"changed while it was read.*nothing was released"):
        fitted(*shop, engine="spark")
    assert len(done) == 2
    assert privbench.budget().sources == before


def test_a_source_that_changes_while_it_is_read(
    shop: tuple[Any, Path], spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys were checked, and then rows have others: of the same table, and as many."""
    plain = spark_reading.row_coders

    def row_coders(*words: Any) -> Any:
        _change(shop[1] / "task.parquet", "worker")
        return plain(*words)

    monkeypatch.setattr(spark_reading, "row_coders", row_coders)
    with pytest.raises(SourceError, match=r"task: changed while it was read\. Nothing was spent"):
        fitted(*shop, engine="spark")


@pytest.mark.parametrize(("change", "at"), [("owners", {2}), ("rows", {2}), ("rows", {2, 3})])
def test_a_source_that_changes_while_rows_are_joined(
    change: str, at: set[int], spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only some reads of the keys of visits, by which bills find their person, are of another state of the source."""
    schema = (
        "CREATE TABLE person (id INTEGER PRIMARY KEY, age SMALLINT NOT NULL);"
        "CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER REFERENCES person(id), kind SMALLINT NOT NULL);"
        "CREATE TABLE bill (visit_id INTEGER REFERENCES visit(id), amount SMALLINT NOT NULL);"
    )
    folders = [tmp_path / "now", tmp_path / "then"]
    whole, small = np.arange(60, dtype=np.int32), np.arange(60, dtype=np.int16) % 3
    for folder in folders:
        folder.mkdir()
        (folder / "schema.sql").write_text(schema)
        pq.write_table(pa.table({"id": whole, "age": small}), folder / "person.parquet")
        pq.write_table(pa.table({"id": whole, "person_id": whole, "kind": small}), folder / "visit.parquet")
        pq.write_table(pa.table({"visit_id": whole, "amount": small}), folder / "bill.parquet")
    now, then = folders
    if change == "owners":
        _change(then / "visit.parquet", "person_id")
    else:
        pq.write_table(pq.read_table(now / "visit.parquet").slice(30), then / "visit.parquet")
    other, plain = SparkSource(str(then), session=spark), SparkSource.frame
    asked: list[str] = []

    def frame(source: SparkSource, table: Table) -> "DataFrame":
        if table.name == "visit" and {c.name for c in table.columns} == {"id", "person_id"}:
            asked.append(table.name)
            return plain(other if len(asked) in at else source, table)
        return plain(source, table)

    monkeypatch.setattr(SparkSource, "frame", frame)
    spec = privbench.draft(now, unit="person", domains="data", find=False, orphans="null")
    with pytest.raises(SourceError, match=r"(visit|bill): changed while it was read\. Nothing was spent"):
        fitted(spec, now, engine="spark")
    assert len(asked) == 3  # checked, joined, listed


def test_a_worker_that_always_dies_ends_the_fit(
    shop: tuple[Any, Path], spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = spark_parts.map_batches

    def map_batches(frame: Any, work: Any, schema: str) -> Any:
        return plain(frame, _killing(work, tmp_path / "dead", victim="worker", times=100), schema)

    monkeypatch.setattr(spark_parts, "map_batches", map_batches)
    before = privbench.budget().sources
    with pytest.raises(ServerError, match="Spark could not finish") as told:
        fitted(*shop, engine="spark")
    assert "Nothing was released" in str(told.value)
    assert privbench.budget().sources == before
