"""Partitions: each by itself the same bytes wherever it is made, all together a database with its keys and sizes."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from privbench.errors import SpecError, TargetError
from privbench.generation import blocks, draws, partition, partitions, rows
from privbench.generation.generate import generate
from privbench.generation.partition import Partition, hindrances, merged_ranks, rows_before
from privbench.generation.partitions import make_partition
from privbench.generation.run import Run
from privbench.io.open import open_source
from privbench.methods.method import silent
from privbench.model.model import Model
from privbench_verify.checksums import sha256, wrong_checksums

from ..tree_models import made
from .test_late import with_words
from .test_tree_keys import cycle

TABLES = ("town", "person", "visit", "note", "passport", "season", "game")
KEYS = {
    ("person", "id"): None,
    ("visit", "id"): None,
    ("visit", "person_id"): ("person", "id"),
    ("visit", "guest_id"): ("person", "id"),
    ("person", "boss_id"): ("person", "id"),
    ("person", "town_id"): ("town", "id"),
    ("note", "visit_id"): ("visit", "id"),
    ("passport", "person_id"): ("person", "id"),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 97)
    monkeypatch.setattr(rows, "BLOCK_ROWS", 97)


@pytest.fixture(params=["one by one", "together"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Partitions that are made by themselves, and such that are cut out of the whole."""
    monkeypatch.setattr(partition, "FEWEST_TARGETS", 10 if request.param == "one by one" else 1_000)
    return str(request.param)


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "FEWEST_TARGETS", 10)


def loaded(out: Path) -> duckdb.DuckDBPyConnection:
    base = duckdb.connect()
    for folder in (out / "data").iterdir():
        base.execute(f"CREATE TABLE {folder.name} AS SELECT * FROM read_parquet('{folder}/*.parquet', filename = true)")
    return base


def one(base: duckdb.DuckDBPyConnection, query: str) -> Any:
    found = base.execute(query).fetchone()
    assert found is not None
    return found[0]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("scale", [0.3, 1, 2.5])
def test_keys_and_sizes_are_those_of_one_database(way: str, scale: float, tmp_path: Path) -> None:
    whole = generate(made(), tmp_path / "whole", scale=scale, seed=1)
    parts = generate(made(), tmp_path / "out", scale=scale, seed=1, partitions=4)
    assert whole is not None
    assert parts is not None
    assert {t: parts[t] for t in ("town", "person", "visit", "note")} == {
        t: whole[t] for t in ("town", "person", "visit", "note")
    }
    base = loaded(tmp_path / "out")
    for table in TABLES:
        assert one(base, f"SELECT count(*) FROM {table}") == parts[table]
    for (table, column), target in KEYS.items():
        if target is None:
            assert one(base, f"SELECT count(DISTINCT {column}) = count(*) FROM {table}")
            assert one(base, f"SELECT min({column}) = 1 AND max({column}) = count(*) FROM {table}")
        else:
            missing = f"{column} IS NOT NULL AND {column} NOT IN (SELECT {target[1]} FROM {target[0]})"
            assert one(base, f"SELECT count(*) FROM {table} WHERE {missing}") == 0
    assert one(base, "SELECT count(*) FROM (SELECT person_id, year FROM season GROUP BY ALL HAVING count(*) > 1)") == 0
    assert one(base, "SELECT count(*) FROM note WHERE visit_id IS NULL") == round(40 * scale)
    assert one(base, "SELECT count(DISTINCT filename) FROM person") == 4
    assert one(base, "SELECT count(DISTINCT filename) FROM town") == 1
    own = "SELECT p.filename[-13:] = v.filename[-13:] FROM visit v JOIN person p ON p.id = v.person_id"
    assert way == "together" or set(base.execute(own).fetchall()) == {(True,)}


def test_laws_are_those_of_one_database(divided: None, tmp_path: Path) -> None:
    for name, count in (("whole", None), ("out", 5)):
        generate(made(), tmp_path / name, scale=8, seed=1, partitions=count)
    base = loaded(tmp_path / "out")
    for table, column in (("person", "age"), ("visit", "cost"), ("season", "year"), ("game", "won")):
        shares = f"SELECT {column}, count(*) / sum(count(*)) OVER () FROM {{}} GROUP BY 1 ORDER BY 1"
        ours = np.array(base.execute(shares.format(table)).fetchall(), float)
        theirs = np.array(base.execute(shares.format(f"'{tmp_path}/whole/data/{table}.parquet'")).fetchall(), float)
        np.testing.assert_allclose(ours[~np.isnan(ours[:, 0])], theirs[~np.isnan(theirs[:, 0])], atol=0.02)


def test_a_partition_is_the_same_wherever_it_is_made(way: str, tmp_path: Path) -> None:
    request = {"scale": 1.0, "seed": 3, "partitions": 3}
    generate(made(), tmp_path / "out", scale=1.0, seed=3, partitions=3)
    for number in (2, 0, 1):
        record = make_partition(made(), tmp_path / f"elsewhere{number}", **request, partition=number)  # type: ignore[arg-type]
        assert record.partition == number
        folder = tmp_path / f"elsewhere{number}" / "partitions" / f"{number:05d}"
        for file in (f for f in folder.iterdir() if f.suffix == ".parquet"):
            placed = tmp_path / "out" / "data" / file.stem / f"part-{number:05d}.parquet"
            assert file.read_bytes() == placed.read_bytes()
    for number in range(3):  # as if copied together from three machines
        source = tmp_path / f"elsewhere{number}" / "partitions" / f"{number:05d}"
        target = tmp_path / "merged" / "partitions" / f"{number:05d}"
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
    generate(made(), tmp_path / "merged", resume=True, partitions=3)
    assert bytes_of(tmp_path / "merged") == bytes_of(tmp_path / "out")
    assert wrong_checksums(tmp_path / "out") == []


def test_partitions_cut_from_the_whole_are_its_rows(tmp_path: Path) -> None:
    generate(made(), tmp_path / "whole", seed=2)
    generate(made(), tmp_path / "out", seed=2, partitions=7)
    with open_source(tmp_path / "whole") as whole, open_source(tmp_path / "out") as out:
        for table in whole.schema().tables:
            assert pa.Table.from_batches(out.read(table)) == pa.Table.from_batches(whole.read(table))
            assert out.rows(table.name) == whole.rows(table.name)


def test_resume_makes_what_is_missing_or_damaged(way: str, tmp_path: Path) -> None:
    generate(made(), tmp_path / "out", seed=5, partitions=4)
    generate(made(), tmp_path / "again", seed=5, partitions=4, only=[0, 1, 3])
    (tmp_path / "again" / "partitions" / "00001" / "visit.parquet").write_bytes(b"half")
    (tmp_path / "again" / "partitions" / "00003" / "partition.json").unlink()
    assert generate(made(), tmp_path / "again", partitions=4, resume=True) == generate(
        made(), tmp_path / "out", partitions=4, resume=True
    )
    assert bytes_of(tmp_path / "again") == bytes_of(tmp_path / "out")


def test_resume_mends_a_bundle_that_was_complete(way: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    generate(made(), out, seed=5, partitions=4)
    there = bytes_of(out)
    (out / "data" / "visit" / "part-00001.parquet").unlink()
    (out / "data" / "person" / "part-00003.parquet").write_bytes(b"half")
    generate(made(), out, partitions=4, resume=True)
    assert bytes_of(out) == there
    (out / "schema.sql").write_text("changed")
    with pytest.raises(TargetError, match=r"schema\.sql: is missing, was changed"):
        generate(made(), out, partitions=4, resume=True)


def test_a_run_that_made_nothing_leaves_nothing(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> Iterator[Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "batches", failing)
    with pytest.raises(KeyboardInterrupt):
        generate(made(), tmp_path / "out", seed=5, partitions=3)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_whole_partitions_alone(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate(made(), tmp_path / "out", seed=5, partitions=3, only=[1])
    there = bytes_of(tmp_path / "out")
    write = Run.batches

    def failing(run: Run, *args: Any) -> Iterator[Any]:
        for count, made_rows in enumerate(write(run, *args)):
            if count == 5:
                raise KeyboardInterrupt
            yield made_rows

    monkeypatch.setattr(Run, "batches", failing)
    with pytest.raises(KeyboardInterrupt):
        generate(made(), tmp_path / "out", seed=5, partitions=3, resume=True)
    assert bytes_of(tmp_path / "out") == there


def test_completing_goes_on_after_a_kill(divided: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate(made(), tmp_path / "out", seed=5, partitions=3)

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(partitions, "write_companions", killed)
        with pytest.raises(KeyboardInterrupt):
            generate(made(), tmp_path / "again", seed=5, partitions=3)
    for begun in ("README.md", ".SHA256SUMS"):
        (tmp_path / "again" / begun).write_text("beg")
    generate(made(), tmp_path / "again", seed=5, partitions=3, resume=True)
    assert bytes_of(tmp_path / "again") == bytes_of(tmp_path / "out")


@pytest.mark.parametrize(("partitions_wanted", "threads"), [(1, 6), (2, 3), (4, 1), (9, 1)])
def test_threads_are_as_many_as_cores_in_all(
    partitions_wanted: int, threads: int, divided: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "cores", lambda: 6)
    seen = set()

    class Watched(Run):
        def __init__(self, *arguments: Any, threads: int, **more: Any) -> None:
            seen.add(threads)
            super().__init__(*arguments, threads=threads, **more)

    monkeypatch.setattr(partitions, "Run", Watched)
    generate(made(), tmp_path / "out", seed=1, partitions=9, only=range(partitions_wanted))
    assert seen == {threads}


def test_threads_do_not_matter(divided: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for threads in (1, 4):
        for module in (partitions, draws):
            monkeypatch.setattr(module, "cores", lambda threads=threads: threads)
        generate(made(), tmp_path / str(threads), seed=1, partitions=6)
    assert bytes_of(tmp_path / "1") == bytes_of(tmp_path / "4")


def test_keys_in_the_order_of_a_column_are_so_over_partitions(divided: None, tmp_path: Path) -> None:
    spec = with_words({"person": {"numbered_by": "age"}, "visit": {"numbered_by": "cost", "order": ["cost"]}})
    generate(made(spec), tmp_path / "out", seed=1, partitions=5)
    base = loaded(tmp_path / "out")
    assert one(base, "SELECT count(DISTINCT id) = count(*) AND max(id) = count(*) AND min(id) = 1 FROM person")
    assert one(base, "SELECT corr(id, age) FROM person") > 0.9
    for table, column in (("visit", "person_id"), ("visit", "guest_id"), ("person", "boss_id")):
        missing = f"{column} IS NOT NULL AND {column} NOT IN (SELECT id FROM person)"
        assert one(base, f"SELECT count(*) FROM {table} WHERE {missing}") == 0


def test_csv_and_its_scripts(way: str, tmp_path: Path) -> None:
    rows_made = generate(made(), tmp_path / "out", seed=1, partitions=3, format="csv")
    assert rows_made is not None
    with open_source(tmp_path / "out") as source:
        assert {name: source.rows(name) for name in rows_made} == rows_made
    script = (tmp_path / "out" / "load" / "duckdb.sql").read_text()
    assert "data/visit/part-00002.csv" in script
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert manifest["partitions"] == 3
    assert manifest["tables"]["visit"]["files"] == [f"data/visit/part-0000{i}.csv" for i in range(3)]


def unique(model: dict[str, Any]) -> list[str]:
    parsed = made(with_words(model))
    return hindrances(parsed, dict.fromkeys(TABLES, 10**6), 1.0, 4)


def test_what_hinders_is_named() -> None:
    assert unique({}) == []
    assert unique({"person": {"unique": [["town_id", "age"]]}}) == [
        "person.town_id, age: its values are drawn, and none may be in two partitions"
    ]
    assert unique({"visit": {"unique": [["person_id", "cost"]]}}) == []
    few = dict.fromkeys(TABLES, 100)
    assert hindrances(made(), few, 1.0, 4) == [
        "visit.guest_id: references person, which has 100 rows, fewer than 1,000 for each partition"
    ]
    assert hindrances(made(), few, 1.0, 1) == []


@pytest.mark.parametrize("model", [cycle(), cycle(unique=True)])
def test_tables_referenced_before_they_are_made(model: Model, divided: None, tmp_path: Path) -> None:
    whole = generate(model, tmp_path / "whole", seed=1)
    assert generate(model, tmp_path / "out", seed=1, partitions=4) == whole
    base = loaded(tmp_path / "out")
    missing = "best_id IS NOT NULL AND best_id NOT IN (SELECT id FROM note)"
    assert one(base, f"SELECT count(*) FROM person WHERE {missing}") == 0


def test_shares_add_up() -> None:
    model, totals = made(), {"town": 6, "person": 7, "visit": 31, "note": 50, "passport": 3, "season": 9, "game": 4}
    before = [rows_before(model, totals, 1.0, Partition(number=i, count=11)) for i in range(12)]
    for name in totals.keys() - {"town"}:
        starts = [rows[name] for rows in before]
        assert starts == sorted(starts)
        assert starts[0] == 0
        assert starts[-1] == totals[name]
    for i in range(11):  # no child rows without owners
        here = {name: before[i + 1][name] - before[i][name] for name in totals.keys() - {"town"}}
        assert here["person"] or not here["visit"]


def test_merged_ranks_are_a_permutation() -> None:
    sizes = [5, 0, 1, 9, 9, 2]
    places = [merged_ranks(np.arange(size), sizes, i) for i, size in enumerate(sizes)]
    assert sorted(np.concatenate(places).tolist()) == list(range(sum(sizes)))
    assert all((np.diff(each) > 0).all() for each in places)


def test_other_requests_are_refused(divided: None, tmp_path: Path) -> None:
    generate(made(), tmp_path / "out", seed=5, partitions=3, only=[1])
    with pytest.raises(TargetError, match="seed 5, not 6"):
        generate(made(), tmp_path / "out", seed=6, partitions=3, resume=True)
    with pytest.raises(TargetError, match=r"exists.*--resume"):
        generate(made(), tmp_path / "out", seed=5, partitions=3)
    with pytest.raises(SpecError, match=r"0\.\.2"):
        generate(made(), tmp_path / "new", seed=5, partitions=3, only=[3])
    with pytest.raises(SpecError, match="--seed"):
        generate(made(), tmp_path / "new", partitions=3, only=[0])
    with pytest.raises(SpecError, match="parquet or csv"):
        generate(made(), tmp_path / "new", seed=1, partitions=3, format="duckdb")
    with pytest.raises(SpecError, match="--partitions"):
        generate(made(), tmp_path / "new", seed=1, only=[1])
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("mine", ["mine.txt", "README.md", "data/mine.txt", "partitions/mine.txt"])
def test_what_others_put_there_is_not_touched(mine: str, divided: None, tmp_path: Path) -> None:
    (tmp_path / "other" / mine).parent.mkdir(parents=True)
    (tmp_path / "other" / mine).write_text("x")
    for more in ({"resume": True}, {"only": [1]}):
        with pytest.raises(TargetError, match="something else"):
            generate(made(), tmp_path / "other", seed=1, partitions=3, **more)
    assert [p for p in (tmp_path / "other").rglob("*") if p.is_file()] == [tmp_path / "other" / mine]


def test_files_are_hashed_once_when_they_are_put_together(
    divided: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate(made(), tmp_path / "out", seed=5, partitions=3, only=[0, 1, 2])
    hashed = Counter[Path]()

    def counting(path: Path) -> str:
        hashed[path] += 1
        return sha256(path)

    monkeypatch.setattr(partitions, "sha256", counting)
    job = partitions.PartitionJob(made(), tmp_path / "out", scale=1, seed=5, partitions=3, form="parquet")
    job.complete(silent)
    assert set(hashed.values()) == {1}
