"""What Spark reads: folders of files and of folders, and tables of its catalogue; what is wrong is told as here."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privbench
from privbench.errors import PrivBenchError, SourceError, SpecError
from privbench.io.spark_source import SparkSource
from privbench.spark import session

from ..e2e.shapes import SHAPES
from ..seeded import SeededEntropy
from ..servers.spark import MASTER, QUIET
from .fits import fitted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

DDL = """
CREATE TABLE owner (id INTEGER PRIMARY KEY, age SMALLINT NOT NULL);
CREATE TABLE pet (id VARCHAR(9) PRIMARY KEY, owner_id INTEGER NOT NULL REFERENCES owner(id), weight DECIMAL(5,1),
  CHECK (weight > 0));
"""
OWNERS: dict[str, list[Any]] = {"id": list(range(40)), "age": [20 + i % 50 for i in range(40)]}
PETS: dict[str, list[Any]] = {
    "id": [f"p{i}" for i in range(60)],
    "owner_id": [i % 40 for i in range(60)],
    "weight": [str(1 + i % 7) for i in range(60)],
}


def _write(folder: Path, owners: dict[str, list[Any]], pets: dict[str, list[Any]]) -> Path:
    folder.mkdir()
    (folder / "schema.sql").write_text(DDL)
    pq.write_table(
        pa.table({"id": pa.array(owners["id"], pa.int32()), "age": pa.array(owners["age"], pa.int16())}),
        folder / "owner.parquet",
    )
    weight = pa.array(pets["weight"], pa.string()).cast(pa.decimal128(5, 1))
    columns = {"id": pa.array(pets["id"]), "owner_id": pa.array(pets["owner_id"], pa.int32()), "weight": weight}
    pq.write_table(pa.table(columns), folder / "pet.parquet")
    return folder


BROKEN: dict[str, tuple[dict[str, list[Any]], dict[str, list[Any]]]] = {
    "a key twice": (OWNERS | {"id": [0, *range(39)]}, PETS),
    "a NULL in a key": (OWNERS, PETS | {"id": [None, *PETS["id"][1:]]}),
    "a NULL owner": (OWNERS, PETS | {"owner_id": [None, None, *PETS["owner_id"][2:]]}),
    "orphans": (OWNERS, PETS | {"owner_id": [99, 98, *PETS["owner_id"][2:]]}),
    "a broken rule": (OWNERS, PETS | {"weight": ["-1", *PETS["weight"][1:]]}),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_wrong_data_are_refused_in_the_same_words(fault: str, spark: "SparkSession", tmp_path: Path) -> None:
    spec = privbench.draft(_write(tmp_path / "good", OWNERS, PETS), unit="owner", domains="data", find=False)
    folder = _write(tmp_path / "bad", *BROKEN[fault])
    told = {}
    for engine in ("local", "spark"):
        with pytest.raises(PrivBenchError) as error:
            fitted(spec, folder, engine=engine)
        told[engine] = (type(error.value), str(error.value))
    assert told["local"] == told["spark"]


def test_a_database_of_the_catalogue(spark: "SparkSession", tmp_path: Path) -> None:
    folder = _write(tmp_path / "pets", OWNERS, PETS)
    spec = privbench.draft(folder, unit="owner", domains="data", find=False)
    spark.sql("CREATE DATABASE pets")
    try:
        for name in ("owner", "pet"):
            spark.read.parquet(str(folder / f"{name}.parquet")).write.saveAsTable(f"pets.{name}")
        here, _ = fitted(spec, folder, engine="local")
        model = privbench.fit(spec, source="spark:pets", engine="spark", epsilon="3", entropy=SeededEntropy(1))
        there, _ = fitted(spec, "spark:pets", engine="spark")  # type: ignore[arg-type]
    finally:
        spark.sql("DROP DATABASE pets CASCADE")
    assert here == there
    assert set(model.tables) == {"owner", "pet"}


def test_folders_of_files(spark: "SparkSession", tmp_path: Path) -> None:
    folder = _write(tmp_path / "pets", OWNERS, PETS)
    spec = privbench.draft(folder, unit="owner", domains="data", find=False)
    parts = tmp_path / "parts"
    for name in ("owner", "pet"):
        spark.read.parquet(str(folder / f"{name}.parquet")).repartition(3).write.parquet(str(parts / f"{name}.parquet"))
    here, _ = fitted(spec, folder, engine="local")
    there, _ = fitted(spec, parts, engine="spark")
    assert here == there


def test_settings_of_the_machine_win(spark: "SparkSession") -> None:
    """Those of `spark-submit` do in the same way: Java knows both before ours are added."""
    settings = dict(spark.sparkContext.getConf().getAll())
    assert settings["spark.log.level"] == QUIET
    assert settings["spark.master"] == MASTER
    assert settings["spark.io.encryption.enabled"] == "true"
    assert settings["spark.app.name"] == "privbench"


def test_what_spark_cannot_read(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "empty", tmp_path / "nowhere"):
        with pytest.raises(SourceError, match=place.name):
            SparkSource(str(place), session=spark).schema()
    with pytest.raises(PrivBenchError, match="no_such"):
        SparkSource("spark:no_such", session=spark).schema()


def test_what_spark_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before Spark starts."""
    monkeypatch.setattr(session, "spark_session", None)
    folder = _write(tmp_path / "pets", OWNERS, PETS)
    spec = privbench.draft(folder, unit="owner", domains="data", find=False)
    with pytest.raises(SpecError, match="method paper"):
        fitted(spec, folder, engine="spark", method="paper")
    shape = SHAPES["lookup"]
    lookup = shape.write(tmp_path / "lookup")
    with pytest.raises(SpecError, match=r"^address: rows of a lookup.* a view of person"):
        fitted(privbench.draft(lookup, domains="data", **shape.choices), lookup, engine="spark")
    with pytest.raises(SpecError, match="--memory is for"):
        fitted(spec, folder, engine="spark", memory="1GB")
    with pytest.raises(SpecError, match="for `--engine spark`"):
        fitted(spec, folder, engine="local", master="local[2]")
    with pytest.raises(SpecError, match="Spark reads folders of Parquet"):
        fitted(spec, {"owner": pa.table(OWNERS)}, engine="spark")  # type: ignore[arg-type]
