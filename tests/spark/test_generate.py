"""Partitions made on a cluster are those made on one machine, byte by byte; with a worker lost, too."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import privbench
from privbench.errors import SpecError
from privbench.model.model import Model

from ..e2e.shapes import SHAPES
from ..seeded import SeededEntropy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    shape = SHAPES["three_levels"]
    folder = shape.write(tmp_path_factory.mktemp("source"))
    return privbench.fit(
        privbench.draft(folder, domains="data", **shape.choices), epsilon="3", entropy=SeededEntropy(1)
    )


def _files(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_partitions_are_the_same_bytes(model: Model, spark: "SparkSession", tmp_path: Path) -> None:
    here = privbench.generate(model, tmp_path / "here", seed=7, scale=3, partitions=4)
    there = privbench.generate(model, tmp_path / "there", seed=7, scale=3, partitions=4, engine="spark")
    assert here.rows == there.rows
    assert _files(tmp_path / "here") == _files(tmp_path / "there")
    assert len(list((tmp_path / "there" / "data").rglob("part-*.parquet"))) > 4


def test_some_partitions_there_and_the_rest_here(model: Model, spark: "SparkSession", tmp_path: Path) -> None:
    out = tmp_path / "mixed"
    privbench.generate(model, out, seed=7, scale=3, partitions=4, only=[1, 3], engine="spark")
    assert not list((out / "partitions").glob(".*"))
    privbench.generate(model, out, seed=7, scale=3, partitions=4, resume=True)
    privbench.generate(model, tmp_path / "here", seed=7, scale=3, partitions=4)
    assert _files(tmp_path / "here") == _files(out)


def test_spark_makes_partitions_alone(model: Model, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="--partitions"):
        privbench.generate(model, tmp_path / "out", engine="spark")
    with pytest.raises(SpecError, match="--engine spark"):
        privbench.generate(model, tmp_path / "out", partitions=2, master="local[2]")
    assert not (tmp_path / "out").exists()
