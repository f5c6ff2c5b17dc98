"""Databases generated from links that stand in networks: keys, sizes, dependence on owners, the same bytes again."""

import copy
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from privbench.generation import blocks, rows
from privbench.generation.generate import generate
from privbench.generation.sizes import lost_rows, planned_rows
from privbench.methods.method import TableModel
from privbench.model.model import Model
from privbench.spn.block_link import BlockLink
from privbench.spn.fanouts import bin_means, bin_of
from privbench.spn.feature_names import in_degree_column, key_column, null_column, rows_column
from privbench.spn.infer import marginal

from ..tree_models import BOSSES, GUESTS, SPEC, TOWNS, VISITS, made, tables

KEYS = {
    "person": [("town_id", "town", "id"), ("boss_id", "person", "id")],
    "visit": [("person_id", "person", "id"), ("guest_id", "person", "id")],
    "note": [("visit_id", "visit", "id")],
    "passport": [("person_id", "person", "id")],
    "season": [("person_id", "person", "id")],
    "game": [("(person_id, year)", "season", "(person_id, year)")],
}
UNIQUE = {"person": "id", "visit": "id", "passport": "person_id", "season": "(person_id, year)"}


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 250)
    monkeypatch.setattr(rows, "BLOCK_ROWS", 250)


def opened(model: Model, out: Path, *, scale: float = 1, seed: int = 1) -> duckdb.DuckDBPyConnection:
    """A generated database with a view for each table."""
    generate(model, out, scale=scale, seed=seed)
    base = duckdb.connect()
    for file in sorted((out / "data").iterdir()):
        base.execute(f"CREATE VIEW {file.stem} AS SELECT * FROM '{file}'")
    return base


def number(base: duckdb.DuckDBPyConnection, query: str) -> Any:
    (found,) = base.execute(query).fetchone() or (None,)
    return found


def check_keys(base: duckdb.DuckDBPyConnection) -> None:
    """No key names a missing row, and no primary key repeats."""
    for table, keys in KEYS.items():
        for column, target, reference in keys:
            holders = f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL"
            assert number(base, f"SELECT count(*) FROM ({holders} EXCEPT SELECT {reference} FROM {target})") == 0, table
    for table, key in UNIQUE.items():
        assert number(base, f"SELECT count(*) - count(DISTINCT {key}) FROM {table}") == 0, table


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.01, 1, 7])
@pytest.mark.usefixtures("small_blocks")
def test_keys_hold_at_any_scale(scale: float, tmp_path: Path) -> None:
    base = opened(made(), tmp_path / "out", scale=scale)
    check_keys(base)
    assert number(base, "SELECT count(*) FROM person") == round(500 * scale)
    assert number(base, "SELECT count(*) FROM note WHERE visit_id IS NULL") == round(40 * scale)


@pytest.mark.usefixtures("small_blocks")
def test_databases_load_with_all_constraints(tmp_path: Path) -> None:
    for form in ("duckdb", "sqlite"):
        rows = generate(made(), tmp_path / form, seed=1, format=form)
        assert min(rows.values()) > 0


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for out, seed in (("a", 1), ("b", 1), ("c", 2)):
        generate(made(), tmp_path / out, seed=seed, scale=3)
    for file in (tmp_path / "a" / "data").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / "data" / file.name).read_bytes()
    assert (tmp_path / "a/data/visit.parquet").read_bytes() != (tmp_path / "c/data/visit.parquet").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("block", [4096, 65_536])
def test_fanouts_are_as_the_model_says(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows per owner, childless owners among them, follow the column of the owner's network."""
    monkeypatch.setattr(blocks, "BLOCK_ROWS", block)
    model = made(models=tables(20_000))
    base = opened(model, tmp_path / "out")
    query = "SELECT count(v.id) FROM person p LEFT JOIN visit v ON v.person_id = p.id GROUP BY p.id"
    fanouts = np.array(base.execute(query).fetchall()).ravel()
    found = np.bincount(bin_of(fanouts, VISITS), minlength=len(VISITS) - 1) / len(fanouts)
    expected = marginal(model.tables["person"].network, rows_column("visit.person_id"))
    assert np.abs(found - expected).sum() < 0.02
    assert fanouts.mean() == pytest.approx(expected @ bin_means(VISITS, 1.5), rel=0.01)


def test_children_depend_on_their_owners(tmp_path: Path) -> None:
    """The conditional distributions of the model, also for rows without an owner and for grandchildren."""
    model = made(models=tables(20_000, unowned=4000))
    base = opened(model, tmp_path / "out")
    joined = "visit v JOIN person p ON p.id = v.person_id"
    costs = "CASE WHEN cost IS NULL THEN 2 WHEN cost < 4 THEN 0 ELSE 1 END"
    seen = base.execute(f"SELECT p.age - 1, {costs}, count(*) FROM {joined} GROUP BY ALL").fetchnumpy()
    _check_given(model, "visit", "cost", *seen.values())
    joined = "note n LEFT JOIN visit v ON v.id = n.visit_id"
    owner = f"CASE WHEN n.visit_id IS NULL THEN 3 ELSE {costs} END"
    seen = base.execute(f"SELECT {owner}, stars - 1, count(*) FROM {joined} GROUP BY ALL").fetchnumpy()
    _check_given(model, "note", "stars", *seen.values())


def _check_given(model: Model, table: str, column: str, owner: Any, codes: Any, counts: Any) -> None:
    (conditional,) = (c for c in model.tables[table].network.columns if c.column == column)  # type: ignore[union-attr]
    expected = conditional.factors[0]
    found = np.zeros_like(expected)
    found[np.asarray(owner, int), np.asarray(codes, int)] = counts
    seen = found.sum(axis=1) > 0
    assert seen.sum() >= len(expected) - 1
    shares = found[seen] / found[seen].sum(axis=1, keepdims=True)
    assert np.abs(shares - expected[seen]).max() < 0.02


def test_rows_come_grouped_by_owner_and_numbered_in_order(tmp_path: Path) -> None:
    base = opened(made(), tmp_path / "out")
    owners = np.array(base.execute("SELECT person_id FROM visit").fetchall()).ravel()
    assert (np.diff(owners) >= 0).all()
    ids = np.array(base.execute("SELECT id FROM visit").fetchall()).ravel()
    assert ids.tolist() == list(range(1, len(ids) + 1))


@pytest.mark.parametrize("block", [4096, 65_536])
def test_rows_are_named_as_often_as_they_say(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of each age are named in proportion to the in-degrees that their age goes with."""
    monkeypatch.setattr(blocks, "BLOCK_ROWS", block)
    model = made(models=tables(20_000))
    base = opened(model, tmp_path / "out")
    person = model.tables["person"].network
    for table, key, edges in (("visit", "guest_id", GUESTS), ("person", "boss_id", BOSSES)):
        named = f"SELECT {key} AS id, count(*) AS keys FROM {table} WHERE {key} IS NOT NULL GROUP BY 1"
        by_age = f"SELECT age, sum(coalesce(keys, 0)) FROM person LEFT JOIN ({named}) USING (id) GROUP BY 1 ORDER BY 1"
        found = np.array(base.execute(by_age).fetchall(), float)[:, 1]
        (conditional,) = (c for c in person.columns if c.column == in_degree_column(f"{table}.{key}"))  # type: ignore[union-attr]
        expected = marginal(person, "age") * (conditional.factors[0] @ bin_means(edges, 1.0))
        np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), atol=0.01)


def test_nulls_and_blocks_of_keys(tmp_path: Path) -> None:
    model = made(models=tables(20_000))
    base = opened(model, tmp_path / "out")
    shares = marginal(model.tables["person"].network, key_column("person.town_id"))
    counts = dict(base.execute("SELECT town_id, count(*) FROM person GROUP BY 1").fetchall())
    assert counts[None] == pytest.approx(20_000 * shares[3], rel=0.02)
    for town in range(TOWNS):
        assert counts[10 + town] == pytest.approx(20_000 * shares[town // 2] / 2, rel=0.05)
    nulls = marginal(model.tables["person"].network, null_column("person.boss_id"))[1]
    assert number(base, "SELECT count(*) FROM person WHERE boss_id IS NULL") == pytest.approx(20_000 * nulls, rel=0.02)


def test_empty_tables(tmp_path: Path) -> None:
    """Without owners only rows without an owner are left, and NOT NULL keys leave none."""
    base = opened(made(models=tables(0)), tmp_path / "out")
    counts = {t: number(base, f"SELECT count(*) FROM {t}") for t in KEYS}
    assert counts == {"person": 0, "visit": 0, "note": 40, "passport": 0, "season": 0, "game": 0}


def test_an_empty_public_table(tmp_path: Path) -> None:
    models = tables()
    none = BlockLink(column=key_column("person.town_id"), blocks=3, slots=TOWNS)
    models["person"] = TableModel(
        network=models["person"].network, rows=500, links={**models["person"].links, "person.town_id": none}
    )
    base = opened(made(models=models, towns=0), tmp_path / "out")
    assert number(base, "SELECT count(*) FROM person WHERE town_id IS NOT NULL") == 0
    assert number(base, "SELECT count(*) FROM person") == 500


def test_order_sorts_the_rows(tmp_path: Path) -> None:
    """Sorted by what is declared, with children that still find their owners."""
    spec = copy.deepcopy(SPEC)
    spec["tables"]["visit"]["order"] = ["cost", "id"]
    spec["tables"]["person"]["order"] = ["age"]
    model = made(spec)
    base = opened(model, tmp_path / "out")
    check_keys(base)
    costs = [c if c is not None else 99 for (c,) in base.execute("SELECT cost FROM visit").fetchall()]
    assert costs == sorted(costs)
    ages = [a for (a,) in base.execute("SELECT age FROM person").fetchall()]
    assert ages == sorted(ages)
    plain = opened(made(), tmp_path / "plain")
    fanouts = "SELECT list(n ORDER BY n) FROM (SELECT count(*) n FROM visit GROUP BY person_id)"
    assert number(base, fanouts) == number(plain, fanouts)
    seen = "SELECT p.age, count(*) FROM visit v JOIN person p ON p.id = v.person_id GROUP BY 1 ORDER BY 1"
    assert base.execute(seen).fetchall() == plain.execute(seen).fetchall()
    by_cost = "SELECT v.cost < 4, stars, count(*) FROM note n JOIN visit v ON v.id = visit_id GROUP BY ALL ORDER BY ALL"
    assert base.execute(by_cost).fetchall() == plain.execute(by_cost).fetchall()


def test_every_row_that_is_not_there_is_told() -> None:
    """With the key that is to blame."""
    model = made()
    planned = planned_rows(model, 1)
    assert lost_rows(model, planned, planned) == []
    (said,) = lost_rows(model, planned, planned | {"season": 300})
    assert said.startswith("season: 300 of 1,250 rows were made: the others repeated the key")
    said = lost_rows(model, planned, planned | {"season": 0, "game": 0})[1]
    assert "needs a row of season" in said
