"""Memory does not grow with the scale factor: the peak of a process at scale 1 and at scale 20.

The process keeps to one core: libraries keep buffers for each that they see.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.model.file import save_model

DDL = """CREATE TABLE person (id INTEGER PRIMARY KEY, name VARCHAR, age SMALLINT);
CREATE TABLE season (person INTEGER NOT NULL REFERENCES person, year SMALLINT NOT NULL, pay DECIMAL(9, 2),
  PRIMARY KEY (person, year));
CREATE TABLE game (person INTEGER NOT NULL, year SMALLINT NOT NULL, day DATE,
  FOREIGN KEY (person, year) REFERENCES season (person, year));"""
PEOPLE, ALLOWED = 30_000, 150 * 2**10  # KB
MEASURE = """
import os, sys
from pathlib import Path
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
from privbench import Format, generate, load_model
generate(load_model(sys.argv[1]), sys.argv[2], scale=float(sys.argv[3]), seed=1, format=Format(sys.argv[4]))
print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line))
"""


@pytest.fixture(scope="module", params=["tree", "paper"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memory")
    rng = np.random.default_rng(0)
    person, year = np.arange(PEOPLE, dtype=np.int32), rng.integers(1990, 2020, PEOPLE).astype(np.int16)
    (folder / "schema.sql").write_text(DDL)
    names = [f"name {i % 5000}" for i in range(PEOPLE)]
    age = rng.integers(0, 90, PEOPLE).astype(np.int16)
    pq.write_table(pa.table({"id": person, "name": names, "age": age}), folder / "person.parquet")
    pay = pa.array(rng.integers(0, 10**6, PEOPLE)).cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2))
    pq.write_table(pa.table({"person": person, "year": year, "pay": pay}), folder / "season.parquet")
    day = pa.array(rng.integers(0, 9000, PEOPLE).astype(np.int32)).cast(pa.date32())
    pq.write_table(pa.table({"person": person, "year": year, "day": day}), folder / "game.parquet")
    path = folder / "model"
    save_model(fit(draft(folder, unit="person", domains="data"), epsilon=100, method=request.param), path)
    return path


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
@pytest.mark.parametrize("form", ["parquet", "csv", "duckdb", "sqlite"])
def test_memory_does_not_grow_with_the_scale(form: str, model: Path, tmp_path: Path) -> None:
    peak = {}
    for scale in (1, 20):
        arguments = [sys.executable, "-c", MEASURE, str(model), str(tmp_path / f"{scale}"), str(scale), form]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)  # noqa: S603
        peak[scale] = int(done.stdout)
    assert peak[20] - peak[1] < ALLOWED, peak
