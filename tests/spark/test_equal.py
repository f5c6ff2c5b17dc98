"""Every exact cell is the same on a cluster and on one machine; with the same noise the model is, byte by byte."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privbench

from ..e2e.shapes import SHAPES
from .fits import content, fitted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

REFUSED = {"lookup"}


@pytest.mark.parametrize("name", [name for name in SHAPES if name not in REFUSED])
def test_all_shapes(name: str, spark: "SparkSession", tmp_path: Path) -> None:
    shape = SHAPES[name]
    folder = shape.write(tmp_path / "source")
    spec = privbench.draft(folder, domains="data", **shape.choices)
    here, model = fitted(spec, folder, engine="local")
    there, same = fitted(spec, folder, engine="spark")
    assert here == there
    assert content(model, tmp_path) == content(same, tmp_path)


@pytest.mark.parametrize("shape", ["three_levels", "partly_null"])
def test_domains_that_are_found_with_budget(shape: str, spark: "SparkSession", tmp_path: Path) -> None:
    folder = SHAPES[shape].write(tmp_path / "source")
    spec = privbench.draft(folder, **SHAPES[shape].choices)
    here, model = fitted(spec, folder, engine="local", delta="1e-6", epsilon="20")
    there, same = fitted(spec, folder, engine="spark", delta="1e-6", epsilon="20")
    assert here == there
    assert content(model, tmp_path) == content(same, tmp_path)


SEASONS = """
CREATE TABLE player (id INTEGER PRIMARY KEY, height SMALLINT NOT NULL);
CREATE TABLE bat (player INTEGER NOT NULL REFERENCES player (id), year INTEGER NOT NULL, team INTEGER, hits SMALLINT,
  PRIMARY KEY (player, year));
CREATE TABLE pitch (player INTEGER NOT NULL REFERENCES player (id), year INTEGER NOT NULL, team INTEGER, wins SMALLINT,
  PRIMARY KEY (player, year));
"""


def test_hidden_lists(spark: "SparkSession", tmp_path: Path) -> None:
    """The seasons of players, and the team of each: in a few of them teams differ from table to table.

    Teams are stored as text, of which "10" comes before "9".
    """
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "schema.sql").write_text(SEASONS)
    rng = np.random.default_rng(3)
    players = pa.table(
        {"id": pa.array(np.arange(4000), pa.int32()), "height": pa.array(rng.integers(0, 9, 4000), pa.int16())}
    )
    pq.write_table(players, folder / "player.parquet")
    player, year = np.repeat(np.arange(4000), 3), np.tile([1990, 1991, 1992], 4000)
    for name, column in {"bat": "hits", "pitch": "wins"}.items():
        there = rng.random(12_000) < 0.8
        teams = ((player + (rng.random(12_000) < 0.001)) % 7 + 5).astype(str)
        rows = {
            "player": pa.array(player[there], pa.int32()),
            "year": pa.array(year[there], pa.int32()),
            "team": pa.array(teams[there], mask=rng.random(int(there.sum())) < 0.1),
            column: pa.array(rng.integers(0, 5, int(there.sum())), pa.int16()),
        }
        pq.write_table(pa.table(rows), folder / f"{name}.parquet", row_group_size=5000)
    spec = privbench.draft(folder, unit="player", domains="data")
    assert spec.drafted_lists() == ("player_year",)
    here, model = fitted(spec, folder, engine="local")
    there, same = fitted(spec, folder, engine="spark")
    assert model.receipt["unit"]["lists"] == ["player_year"]
    assert here == there
    assert content(model, tmp_path) == content(same, tmp_path)


def test_orphans_and_rows_without_owner(spark: "SparkSession", tmp_path: Path) -> None:
    """Rows of the same missing owner are one entity, with all that these own; others are entities by themselves."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "schema.sql").write_text(
        "CREATE TABLE person (id INTEGER PRIMARY KEY, age SMALLINT NOT NULL);"
        "CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER REFERENCES person(id), kind SMALLINT NOT NULL,"
        " host_id INTEGER REFERENCES person(id));"
        "CREATE TABLE bill (visit_id INTEGER REFERENCES visit(id), amount SMALLINT NOT NULL);"
    )
    rng = np.random.default_rng(3)
    ages = rng.integers(0, 90, 50)
    pq.write_table(
        pa.table({"id": pa.array(rng.permutation(50) + 7, pa.int32()), "age": pa.array(ages, pa.int16())}),
        folder / "person.parquet",
    )
    owners, hosts = rng.integers(0, 80, 200), rng.integers(0, 70, 200)
    visits = {
        "id": pa.array(rng.permutation(200), pa.int32()),
        "person_id": pa.array(owners, pa.int32(), mask=rng.random(200) < 0.1),
        "kind": pa.array(rng.integers(0, 3, 200), pa.int16()),
        "host_id": pa.array(hosts, pa.int32(), mask=rng.random(200) < 0.1),
    }
    pq.write_table(pa.table(visits), folder / "visit.parquet", row_group_size=30)
    bills = {
        "visit_id": pa.array(rng.integers(0, 260, 500), pa.int32(), mask=rng.random(500) < 0.1),
        "amount": pa.array(rng.integers(0, 4, 500), pa.int16()),
    }
    pq.write_table(pa.table(bills), folder / "bill.parquet")
    owned = {"visit": ("person_id",)}
    spec = privbench.draft(folder, unit="person", domains="data", owners=owned, orphans="null")
    here, model = fitted(spec, folder, engine="local")
    there, same = fitted(spec, folder, engine="spark")
    assert here == there
    assert content(model, tmp_path) == content(same, tmp_path)


def test_made_up_tables(spark: "SparkSession", tmp_path: Path) -> None:
    """Keys into a table get the same of its made-up rows in every part; its own rows, nonsense here, are not read."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "schema.sql").write_text(
        "CREATE TABLE store (id INTEGER PRIMARY KEY, boss INTEGER NOT NULL UNIQUE REFERENCES staff(id));"
        "CREATE TABLE staff (id INTEGER PRIMARY KEY, email VARCHAR(40) NOT NULL,"
        " pay INTEGER CHECK (pay BETWEEN 1 AND 9));"
        "CREATE TABLE customer (id INTEGER PRIMARY KEY, store INTEGER NOT NULL REFERENCES store(id),"
        " rep INTEGER REFERENCES staff(id));"
        "CREATE TABLE visit (customer INTEGER NOT NULL REFERENCES customer(id),"
        " staff INTEGER NOT NULL REFERENCES staff(id));"
    )
    rng = np.random.default_rng(3)

    def written(name: str, **columns: pa.Array) -> None:
        pq.write_table(pa.table(columns), folder / f"{name}.parquet", row_group_size=50)

    def numbers(values: "np.typing.ArrayLike", **words: "np.typing.ArrayLike") -> pa.Array:
        return pa.array(np.asarray(values), pa.int32(), **words)

    written("store", id=numbers([1, 2, 3]), boss=numbers([71, 95, 80]))
    written("staff", id=pa.array(["real"]), email=pa.array([None], pa.string()), pay=pa.array(["real"]))
    reps = numbers(rng.choice([71, 72, 80], 120), mask=rng.random(120) < 0.1)
    written("customer", id=numbers(np.arange(120)), store=numbers(rng.integers(1, 4, 120)), rep=reps)
    written("visit", customer=numbers(rng.integers(0, 120, 300)), staff=numbers(rng.choice([71, 72, 80, 95], 300)))
    spec = privbench.draft(folder, unit="customer", domains="data", public=["store"], made_up={"staff": 5})
    here, model = fitted(spec, folder, engine="local")
    there, same = fitted(spec, folder, engine="spark")
    assert model.public_table("staff").num_rows == 5
    assert here == there
    assert content(model, tmp_path) == content(same, tmp_path)
