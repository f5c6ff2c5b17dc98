"""Generated workloads: by seed, never empty, of the style that was asked for, from any kind of source."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from privbench.errors import SourceError, SpecError
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.io.base import Format
from privbench.io.open import open_source
from privbench.model.file import save_model
from privbench.model.model import Model
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.workload import generate as generating
from privbench.workload.estimate import estimate_cardinality
from privbench.workload.generate import Style, generate_workload
from privbench.workload.query import Literals, Workload
from privbench.workload.source_rows import JoinSizes, Step, random_rows, rows_with_keys
from privbench.workload.sql import parse_workload, workload_text
from privbench.workload.translate import translate


def made(location: Path, *, n: int = 60, seed: int = 3, style: Style = Style.MSCN) -> Workload:
    return generate_workload(location, n=n, seed=seed, style=style)


@pytest.mark.slow
@pytest.mark.parametrize("style", Style)
def test_the_same_seed_makes_the_same_queries_and_none_is_empty(source: Path, style: Style) -> None:
    workload = made(source, style=style)
    assert workload == made(source, style=style)
    assert workload != made(source, seed=4, style=style)
    with duckdb.connect() as con:
        for file in source.glob("*.parquet"):
            con.execute(f"CREATE VIEW {file.stem} AS FROM '{file}'")
        found = [con.execute(s.sql).fetchone() for s in workload.statements]
    assert all(row is not None and row[0] > 0 for row in found)
    assert parse_workload(workload_text(workload)) == workload


def test_joins_are_spread_evenly_and_sam_has_none(source: Path) -> None:
    joins = Counter(len(s.query.tables) - 1 for s in made(source).statements if s.query)
    assert joins == {0: 12, 1: 12, 2: 12, 3: 12, 4: 12}
    assert all(len(s.query.tables) == 1 for s in made(source, style=Style.SAM).statements if s.query)


def test_queries_ask_for_values_and_not_for_keys(source: Path) -> None:
    filters = [f for s in made(source, n=200).statements if s.query for f in s.query.filters]
    assert not {f.column.column for f in filters} & {"id", "person_id", "visit_id", "town_id"}
    assert len({type(f.predicate) for f in filters}) == 3
    assert all(1 <= len(s.query.filters) <= 5 for s in made(source).statements if s.query)


def test_literals_of_a_source_are_real_and_those_of_a_bundle_the_models(source: Path, bundle: Path) -> None:
    assert made(source, n=1).literals is Literals.REAL
    assert made(bundle, n=1).literals is Literals.MODEL
    assert workload_text(made(source, n=1)).startswith("-- privbench: literals=real\n-- PRIVATE")


def test_a_model_draws_rows_for_its_queries_itself(model: Model, source: Path, tmp_path: Path) -> None:
    save_model(model, tmp_path / "m.model")
    drawn = made(tmp_path / "m.model")
    assert drawn.literals is Literals.MODEL
    assert drawn == made(tmp_path / "m.model")
    mails = {f.predicate for s in drawn.statements if s.query for f in s.query.filters if f.column.column == "mail"}
    assert mails
    assert not any("secret" in str(mail) for mail in mails)
    queries = [s.query for s in drawn.statements if s.query and "mail" not in s.sql]
    assert sum(estimate_cardinality(model, query) <= 0 for query in queries) <= len(queries) // 20


def test_a_large_model_is_drawn_at_a_smaller_scale(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_model(model, tmp_path / "m.model")
    monkeypatch.setattr(generating, "MOST_DRAWN", 1000)
    scales = []
    write = generating.write_bundle
    monkeypatch.setattr(
        generating, "write_bundle", lambda *a, scale, **k: scales.append(scale) or write(*a, scale=scale, **k)
    )
    assert len(made(tmp_path / "m.model", n=5).statements) == 5
    assert scales == [pytest.approx(1000 / sum(t.rows for t in model.tables.values()))]


ODD = ['a"b', "x\n; DROP TABLE y; --", "*/ q /*", "it's -- here", "city #named after"]


def test_names_that_look_like_sql_stay_names(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    folder.mkdir()
    quoted = ['"' + name.replace('"', '""') + '"' for name in ODD]
    with duckdb.connect(str(folder / "odd.duckdb")) as con:
        con.execute(
            f"CREATE TABLE {quoted[1]} ({quoted[0]} INTEGER PRIMARY KEY, {quoted[2]} INTEGER, {quoted[3]} VARCHAR)"
        )
        con.execute(f"INSERT INTO {quoted[1]} SELECT range, range % 7, 'v' || range % 5 FROM range(50)")
        con.execute(f"CREATE TABLE {quoted[4]} ({quoted[0]} INTEGER REFERENCES {quoted[1]}, {quoted[2]} INTEGER)")
        con.execute(f"INSERT INTO {quoted[4]} SELECT range % 50, range % 3 FROM range(90)")
    workload = made(folder / "odd.duckdb", n=30)
    assert parse_workload(workload_text(workload)) == workload
    with duckdb.connect(str(folder / "odd.duckdb"), read_only=True) as con:
        assert all(con.execute(s.sql).fetchone()[0] > 0 for s in workload.statements)  # type: ignore[index]
    model = fit(draft(folder / "odd.duckdb", domains="data", unit=ODD[1]), epsilon=100, entropy=FixedEntropy(1))
    translated = translate(replace(workload, literals=None), model, seed=1).workload
    assert len(translated.statements) == 30
    assert parse_workload(workload_text(translated)) == translated
    assert [s.query for s in translated.statements].count(None) == 0


@pytest.mark.slow
@pytest.mark.parametrize("form", [Format.CSV, Format.DUCKDB, Format.SQLITE])
def test_every_kind_of_source(model: Model, bundle: Path, tmp_path: Path, form: Format) -> None:
    generate(model, tmp_path / "other", seed=0, format=form)
    assert made(tmp_path / "other", n=20).statements == made(bundle, n=20).statements


def hub(folder: Path) -> Path:
    """Two tables of 60 rows that meet in one of two rows, and a third that has one row for each of the first."""
    folder.mkdir()
    (folder / "schema.sql").write_text(
        "CREATE TABLE hub (id INTEGER PRIMARY KEY, x INTEGER);"
        "CREATE TABLE a (id INTEGER PRIMARY KEY, hub INTEGER REFERENCES hub(id), x INTEGER);"
        "CREATE TABLE b (hub INTEGER REFERENCES hub(id), x INTEGER);"
        "CREATE TABLE c (a INTEGER REFERENCES a(id), x INTEGER);"
    )
    (folder / "hub.csv").write_text("id,x\n0,0\n1,1\n")
    (folder / "a.csv").write_text("id,hub,x\n" + "".join(f"{i},{i % 2 if i else ''},{i}\n" for i in range(60)))
    (folder / "b.csv").write_text("hub,x\n" + "".join(f"{i % 3 // 2},{i}\n" for i in range(60)))
    (folder / "c.csv").write_text("a,x\n" + "".join(f"{i},{i}\n" for i in range(60)))
    return folder


def test_sizes_of_joins_are_exact(tmp_path: Path) -> None:
    owner = Step(start="hub", end="a", start_columns=("id",), end_columns=("hub",))
    other = Step(start="hub", end="b", start_columns=("id",), end_columns=("hub",))
    below = Step(start="a", end="c", start_columns=("id",), end_columns=("a",))
    back = Step(start="a", end="hub", start_columns=("hub",), end_columns=("id",))
    steps = [owner, other, below, back]
    with open_source(hub(tmp_path / "db")) as opened, JoinSizes(opened, steps) as sizes:
        assert sizes.rows("hub", [owner]) == 59
        assert sizes.rows("a", [below]) == 60
        assert sizes.rows("hub", [owner, other, below]) == 29 * 40 + 30 * 20
        assert sizes.rows("a", [back, other, below]) == 29 * 40 + 30 * 20


def test_joins_of_too_many_rows_are_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = hub(tmp_path / "db")
    meets = {"a", "b"}
    assert any(meets <= {t.table for t in s.query.tables} for s in made(source).statements if s.query)
    monkeypatch.setattr(generating, "MOST_JOINED", 100)
    fewer = made(source)
    assert not any(meets <= {t.table for t in s.query.tables} for s in fewer.statements if s.query)
    assert {len(s.query.joins) for s in fewer.statements if s.query} == {0, 1, 2}
    assert fewer == made(source)
    monkeypatch.setattr(generating, "MOST_JOINED", 50)
    with pytest.raises(SourceError, match=r"no joins along its foreign keys .* no more than 50"):
        made(source)
    assert len(made(source, style=Style.SAM).statements) == 60


def test_bad_requests(source: Path, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="0 queries"):
        made(source, n=0)
    with pytest.raises(SpecError, match="not negative"):
        made(source, seed=-1)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "t.csv").write_text("a\n")
    with pytest.raises(SourceError, match="no row"):
        made(tmp_path / "empty")


def test_random_rows_are_alike_and_bounded(source: Path) -> None:
    with open_source(source) as opened:
        table = opened.schema().table("visit")
        hits = np.zeros(1200)
        for seed in range(200):
            rows = random_rows(opened, table, 60, np.random.default_rng(seed))
            assert rows is not None
            assert rows.num_rows == 60
            hits[np.array(rows.column("id")) - 50] += 1
    assert hits.sum() == 12_000
    assert hits.min() > 0
    assert hits.max() < 30  # expected 10


def test_rows_are_found_by_their_keys(source: Path) -> None:
    with open_source(source) as opened:
        table = opened.schema().table("visit")
        rows = pa.Table.from_batches(list(opened.read(table))).to_pylist()
        wanted = [(r["person_id"], r["kind"]) for r in rows[:40]] + [(-1, "a"), (rows[0]["person_id"], "zz")]
        found = rows_with_keys(opened, table, ("person_id", "kind"), wanted, np.random.default_rng(0))
        assert found[-2:] == [None, None]
        assert [(r["person_id"], r["kind"]) for r in found[:-2] if r] == wanted[:-2]
        picks = {
            rows_with_keys(opened, table, ("kind",), [("a",)], np.random.default_rng(s))[0]["id"]  # type: ignore[index]
            for s in range(10)
        }
    assert len(picks) > 5
