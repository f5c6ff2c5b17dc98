"""The code store: parts in memory and in files alike, what may go wrong with it, and how much memory it takes."""

import errno
import os
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privbench
from privbench.errors import DataError, SourceError, SpecError, StoreError
from privbench.fitting import engines, gathering, reading, slabs
from privbench.fitting.memory import BASE, StorePlan, parse_memory, plan_store
from privbench.fitting.reading import ReadDatabase, read_database
from privbench.io import files
from privbench.io.files import FolderSource
from privbench.io.open import open_source
from privbench.methods.method import silent
from privbench.model.model import compile_codecs
from privbench.privacy.part import Part
from privbench.privacy.part_counter import PartCounter
from privbench.privacy.part_files import FileParts
from privbench.privacy.parts import MemoryParts, Parts
from privbench.schema.spec import Spec

DDL = """CREATE TABLE person (id INTEGER PRIMARY KEY, age SMALLINT, name VARCHAR);
CREATE TABLE visit (id INTEGER PRIMARY KEY, person INTEGER REFERENCES person, day SMALLINT, friend INTEGER REFERENCES
person, place VARCHAR UNIQUE);
CREATE TABLE note (visit INTEGER NOT NULL REFERENCES visit, stars SMALLINT);"""
PEOPLE, VISITS, NOTES = 60, 200, 300


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Many batches, slabs and parts of few rows; temporary files of our own."""
    monkeypatch.setattr(files, "BATCH_ROWS", 7)
    monkeypatch.setattr(slabs, "SLAB_ROWS", 20)
    monkeypatch.setattr(gathering, "ONE_PART", 0)
    monkeypatch.setattr(gathering, "PART_ROWS", 64)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "source")


def write(folder: Path, **changed: Callable[[dict[str, Any]], None]) -> Path:
    rng = np.random.default_rng(0)
    tables: dict[str, dict[str, Any]] = {
        "person": {
            "id": np.arange(PEOPLE, dtype=np.int32),
            "age": rng.integers(0, 9, PEOPLE).astype(np.int16),
            "name": [f"n{i % 3}" for i in range(PEOPLE)],
        },
        "visit": {
            "id": np.arange(VISITS, dtype=np.int32),
            "person": rng.integers(0, PEOPLE, VISITS).astype(np.int32),
            "day": rng.integers(0, 5, VISITS).astype(np.int16),
            "friend": rng.integers(0, PEOPLE, VISITS).astype(np.int32),
            "place": [f"p{i}" for i in rng.permutation(VISITS)],
        },
        "note": {
            "visit": rng.integers(0, VISITS, NOTES).astype(np.int32),
            "stars": rng.integers(0, 5, NOTES).astype(np.int16),
        },
    }
    for name, change in changed.items():
        change(tables[name])
    folder.mkdir()
    (folder / "schema.sql").write_text(DDL)
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return folder


def drafted(source: Path) -> Spec:
    return privbench.draft(source, unit="person", owners={"visit": ("person",)}, domains="data")


def read(source: Path, folder: Path | None = None, *, uncoded: bool = False) -> ReadDatabase:
    spec = drafted(source)
    protection = spec.protection()
    codecs = compile_codecs(spec, protection, without={("visit", "day")} if uncoded else set())
    with open_source(source) as opened:
        plan = plan_store(opened, protection, codecs, memory=None, in_one_part=False)
        if folder is not None:
            folder.mkdir(exist_ok=True)
            plan = replace(plan, in_files=True, buffers=500)
        return read_database(
            opened, protection, codecs, orphans_as_null=False, plan=plan, folder=folder, progress=silent
        )


# -- parts -----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "files"])
def parts(request: pytest.FixtureRequest, source: Path, tmp_path: Path) -> Parts:
    return read(source, tmp_path / "store" if request.param == "files" else None, uncoded=True).parts


def _sizes(counter: PartCounter) -> Counter[str]:
    return Counter({name: len(table.entities) for name, table in counter.part.tables.items()})


def _codes(counter: PartCounter) -> list[tuple[int, ...]]:
    visit = counter.part.tables["visit"]
    return [tuple(row) for row in np.stack([*visit.codes.values(), visit.keys["visit.friend"]]).T.tolist()]


def test_parts_hold_every_row_once(parts: Parts) -> None:
    assert len(parts) == 8
    assert isinstance(parts, MemoryParts | FileParts)
    assert sum(parts.map(_sizes), Counter()) == {"person": PEOPLE, "visit": VISITS, "note": NOTES}


def test_entities_are_in_one_part_with_all_of_their_rows(parts: Parts) -> None:
    def check(counter: PartCounter) -> int:
        tables = counter.part.tables
        assert tables["person"].entities.tolist() == list(range(len(tables["person"].entities)))
        for name, key in (("visit", "visit.person"), ("note", "note.visit")):
            owners = tables[name].keys[key]
            assert (owners >= 0).all()
            above = {"visit": "person", "note": "visit"}[name]
            assert (tables[above].entities[owners] == tables[name].entities).all()
        assert tables["person"].numbers is not None, "friends are of other entities"
        return len(tables["person"].entities)

    assert sum(parts.map(check)) == PEOPLE


def test_parts_can_be_rewritten(parts: Parts) -> None:
    before = sorted(row for rows in parts.map(_codes) for row in rows)

    def doubled(part: Part) -> Part:
        tables = dict(part.tables)
        tables["visit"].codes["twice"] = (part.raw["visit"]["day"].to_numpy() * 2).astype(np.uint8)
        return Part(tables=tables, raw={})

    parts.rewrite(doubled)
    after = sorted(row for rows in parts.map(_codes) for row in rows)
    assert len(after) == len(before)
    assert all(counter for counter in parts.map(lambda c: not c.part.raw.get("visit")))
    assert sum(sum(r) for r in after) > sum(sum(r) for r in before)


def test_what_work_raises_comes_out(parts: Parts) -> None:
    def broken(_: PartCounter) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(parts.map(broken))


# -- faults ----------------------------------------------------------------------------------------------------------


def _remove(file: Path) -> None:
    file.unlink()


def _cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def _change(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("damage", [_remove, _cut, _change])
def test_a_part_that_is_not_as_it_was_written_is_an_error(
    damage: Callable[[Path], None], source: Path, tmp_path: Path
) -> None:
    parts = read(source, tmp_path / "store").parts
    damage(sorted((tmp_path / "store").glob("part-3-*"))[1])
    with pytest.raises(StoreError, match="Fit again"):
        list(parts.map(_sizes))


def test_rows_that_wait_in_a_file_that_was_cut_are_an_error(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_parts = reading._Reader.make_parts

    def cut_first(*arguments: Any, **more: Any) -> Any:
        _cut(sorted((tmp_path / "store").glob("rows-*"))[0])
        return make_parts(*arguments, **more)

    monkeypatch.setattr(reading._Reader, "make_parts", cut_first)
    with pytest.raises(StoreError, match="was changed"):
        read(source, tmp_path / "store")


def _in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = engines.plan_store
    monkeypatch.setattr(engines, "plan_store", lambda *a, **k: replace(plan(*a, **k), in_files=True, buffers=500))


def _left(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRIVBENCH_BUDGET_RECORD", str(tmp_path / "record.json"))
    return tmp_path / "record.json"


def test_a_full_disk_is_told_and_nothing_is_left(
    source: Path, tmp_path: Path, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, opened, real = drafted(source), [], Path.open

    def full(path: Path, *mode: Any, **more: Any) -> Any:
        if path.name.startswith("part-"):
            opened.append(path)
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, *mode, **more)

    _in_files(monkeypatch)
    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(StoreError, match=r"the disk is full.*--memory"):
        privbench.fit(spec, source=source, epsilon=1)
    assert opened
    assert _left(tmp_path / "temporary") == []
    assert record.read_text() == "", "nothing was spent"


@pytest.mark.parametrize("when", ["reading visit", "learning", "reading note"])
def test_an_interrupt_leaves_nothing(
    when: str, source: Path, tmp_path: Path, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def stop(what: str, _done: int, _all: int) -> None:
        if what.startswith(when) or (when == "learning" and not what.startswith(("reading", "finding", "rehearsing"))):
            seen.append(len(_left(tmp_path / "temporary")))
            raise KeyboardInterrupt

    _in_files(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        privbench.fit(drafted(source), source=source, epsilon=1, progress=stop)
    assert seen[0] > 1, "there were private files"
    assert _left(tmp_path / "temporary") == []
    assert record.read_text() == "", "nothing was spent"


def test_a_part_that_is_lost_after_budget_was_spent_ends_the_fit_and_nothing_is_recorded(
    source: Path, tmp_path: Path, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(what: str, _done: int, _all: int) -> None:
        if not what.startswith(("reading", "finding", "rehearsing")):
            for file in (tmp_path / "temporary").rglob("part-3-*"):
                file.unlink()

    _in_files(monkeypatch)
    with pytest.raises(StoreError, match=r"part-3-\d+\.arrow: this work file of the fit is gone\. Nothing was written"):
        privbench.fit(drafted(source), source=source, epsilon=1, progress=lose)
    assert _left(tmp_path / "temporary") == []
    assert record.read_text() == "", "no model was given away"
    privbench.fit(drafted(source), source=source, epsilon=1)
    assert len(record.read_text().splitlines()) == 1


def test_private_files_are_gone_when_a_fit_ends(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, held = drafted(source), []
    _in_files(monkeypatch)

    def look(*_: object) -> None:
        held.extend(
            path.parent.stat().st_mode & 0o777 for path in _left(tmp_path / "temporary") if path.suffix == ".arrow"
        )

    privbench.fit(spec, source=source, epsilon=1, progress=look)
    assert set(held) == {0o700}
    assert _left(tmp_path / "temporary") == []


def test_a_file_that_is_written_to_meanwhile_is_told(source: Path, record: Path) -> None:
    spec = drafted(source)

    def touch(what: str, _done: int, _all: int) -> None:
        if what == "reading note":
            pq.write_table(pq.read_table(source / "note.parquet").slice(1), source / "note.parquet")

    with pytest.raises(SourceError, match=r"note.*changed while it was read"):
        privbench.fit(spec, source=source, epsilon=1, progress=touch)
    assert record.read_text() == "", "nothing was spent"


def test_other_rows_than_a_moment_ago_are_told(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any source: fewer rows than it said, or a row whose key was not there when keys were read."""
    real = FolderSource.read

    def fewer(self: FolderSource, table: Any) -> Iterator[pa.RecordBatch]:
        batches = list(real(self, table))
        yield from batches[:-1] if table.name == "note" else batches

    with monkeypatch.context() as patch:
        patch.setattr(FolderSource, "read", fewer)
        with pytest.raises(SourceError, match="note: changed"):
            read(source)

    def other(self: FolderSource, table: Any) -> Iterator[pa.RecordBatch]:
        for batch in real(self, table):
            if table.name == "person" and len(table.columns) > 1:
                at = batch.schema.get_field_index("id")
                batch = batch.set_column(at, "id", pa.array(np.arange(10**6, 10**6 + batch.num_rows), pa.int32()))  # noqa: PLW2901
            yield batch

    with open_source(source) as opened:
        spec = drafted(source)
        protection = spec.protection()
        codecs = compile_codecs(spec, protection)
        monkeypatch.setattr(FolderSource, "read", other)
        with pytest.raises(SourceError, match="person: changed"):
            read_database(opened, protection, codecs, orphans_as_null=False, progress=silent)


def test_an_entity_that_comes_twice_instead_of_another_is_told(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the one that is missing would be taken for those of its neighbour."""
    real = FolderSource.read

    def twice(self: FolderSource, table: Any) -> Iterator[pa.RecordBatch]:
        for batch in real(self, table):
            swapped = table.name == "person" and len(table.columns) > 1
            yield batch.take(pa.array([0, 0, *range(2, len(batch))])) if swapped else batch

    protection = drafted(source).protection()
    codecs = compile_codecs(drafted(source), protection)
    monkeypatch.setattr(FolderSource, "read", twice)
    with open_source(source) as opened, pytest.raises(SourceError, match="person: changed"):
        read_database(opened, protection, codecs, orphans_as_null=False, progress=silent)


# -- keys ------------------------------------------------------------------------------------------------------------


def _set(column: str, at: int, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(columns: dict[str, Any]) -> None:
        values = list(columns[column])
        values[at] = value
        columns[column] = pa.array(values, pa.string() if isinstance(values[0], str) else pa.int32())

    return change


def test_unreferenced_keys_that_repeat_are_refused_wherever_their_rows_are(source: Path, tmp_path: Path) -> None:
    read(source)
    with pytest.raises(DataError, match=r"visit\(place\): 1 rows repeat"):
        read(write(tmp_path / "twice", visit=_set("place", 0, "p199" if _place(source, 0) != "p199" else "p198")))


def _place(source: Path, row: int) -> str:
    return str(pq.read_table(source / "visit.parquet")["place"][row].as_py())


def test_unique_keys_may_be_null(tmp_path: Path) -> None:
    def nulls(columns: dict[str, Any]) -> None:
        columns["place"] = pa.array([None if at % 3 else place for at, place in enumerate(columns["place"])])

    assert read(write(tmp_path / "nulls", visit=nulls)).rows["visit"] == VISITS


def test_equal_hashes_of_different_keys_are_no_error(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = write(tmp_path / "twice", visit=_set("place", 0, _place(source, 150)))
    for module in (slabs, reading):
        monkeypatch.setattr(module, "hash_rows", lambda columns: np.zeros(len(columns[0]), np.uint64))
    assert read(source).rows["visit"] == VISITS
    with pytest.raises(DataError, match=r"visit\(place\): 1 rows repeat"):
        read(twice)


def test_rows_out_of_order_at_the_very_end_are_put_into_it(source: Path, tmp_path: Path) -> None:
    def swapped(columns: dict[str, Any]) -> None:
        order = np.append(np.arange(VISITS - 1)[1:], [VISITS - 1, 0])
        for name, values in columns.items():
            columns[name] = pa.array(values).take(pa.array(order))

    other = write(tmp_path / "other", visit=swapped)

    def days(where: Path) -> list[list[int]]:
        return sorted(read(where).parts.map(lambda c: c.part.tables["visit"].codes["day"].tolist()))

    assert days(other) == days(source)


# -- memory ----------------------------------------------------------------------------------------------------------


def test_rows_that_wait_in_files_take_no_more_memory_with_more_tables(tmp_path: Path) -> None:
    gathered = gathering.Gathered(2, folder=tmp_path, most_bytes=2**20)
    slab, runs = {"code": np.zeros(2**17, np.int64)}, [(0, 0, 2**16), (1, 2**16, 2**17)]
    tracemalloc.start()
    try:
        for table in ("person", "visit", "note", "place", "friend"):
            for _ in range(8):
                gathered.add(table, slab, runs, expected=2**20)
        gathered.flush()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2**20
    assert all(len(gathered.take("visit", part)["code"]) == 2**19 for part in range(2))


def test_too_little_memory_says_what_is_enough(source: Path) -> None:
    spec = drafted(source)
    with pytest.raises(SpecError, match=r"--memory 1 MB.*say `--memory (\d+MB)`") as caught:
        privbench.fit(spec, source=source, epsilon=1, memory="1MB")
    enough = str(caught.value).partition("say `--memory ")[2].partition("`")[0]
    assert privbench.fit(spec, source=source, epsilon=1, memory=enough).receipt


@pytest.mark.parametrize("size", ["", "lots", "-1GB", "0", "2XB", "1..5GB"])
def test_what_is_no_size_is_refused(size: str, source: Path) -> None:
    with pytest.raises(SpecError, match="is not a size"):
        privbench.fit(drafted(source), source=source, epsilon=1, memory=size)
    with pytest.raises(SpecError, match="is not a size"):
        privbench.synth(source, unit="person", epsilon=1, memory=size)


def test_rows_go_to_files_when_they_are_more_than_fit(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By numbers of rows alone: the same source, said to be larger, on a machine that has no control groups."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemAvailable: 8000000 kB\n", encoding="utf-8")

    def planned(rows: int, memory: str | None, *, in_one_part: bool = False) -> StorePlan:
        monkeypatch.setattr(FolderSource, "rows", lambda *_: rows)
        spec = drafted(source)
        protection = spec.protection()
        codecs = compile_codecs(spec, protection)
        with open_source(source) as opened:
            size = parse_memory(memory)
            return plan_store(opened, protection, codecs, memory=size, in_one_part=in_one_part, root=tmp_path)

    monkeypatch.setattr(gathering, "PART_ROWS", 2**19.5)
    assert not planned(10**6, None).in_files
    large = planned(4 * 10**7, "2GB")
    assert large.in_files
    assert large.expected <= 2 * 10**9
    assert not planned(4 * 10**7, "20GB").in_files
    with pytest.raises(SpecError, match="needs all rows at once"):
        planned(4 * 10**7, "1GB", in_one_part=True)
    assert planned(10**6, None, in_one_part=True).stripes.parts == 1


def test_a_plan_forecasts_the_memory_that_the_fit_will_work_with(source: Path) -> None:
    spec = drafted(source)
    protection = spec.protection()
    with open_source(source) as opened:
        codecs = compile_codecs(spec, protection)
        store = plan_store(opened, protection, codecs, memory=None, in_one_part=False)
    assert privbench.plan(spec, epsilon=1, rows=store.rows).megabytes == pytest.approx(store.expected / 1e6)


def test_a_small_fit_is_not_forecast_to_hold_the_batches_of_a_large_one(source: Path) -> None:
    small, large = (
        privbench.plan(drafted(source), epsilon=1, rows=dict.fromkeys(("person", "visit", "note"), rows)).megabytes
        * 1e6
        for rows in (100, 10**6)
    )
    assert small < 1.1 * BASE
    assert large > 1.5 * BASE
