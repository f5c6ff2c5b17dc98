"""Rows that reference a missing owner are kept, with a NULL key, however many share that owner."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.model.receipt_check import verify_model
from privbench.schema.spec import Orphans

from ..forging import write_shop
from ..seeded import SeededEntropy

DDL = """CREATE TABLE owner (id INTEGER PRIMARY KEY, a INTEGER NOT NULL CHECK (a BETWEEN 0 AND 9));
CREATE TABLE child (id INTEGER PRIMARY KEY, owner_id INTEGER NOT NULL REFERENCES owner (id),
  b INTEGER NOT NULL CHECK (b BETWEEN 0 AND 5));"""


@pytest.mark.parametrize("method", ["tree", "paper", "independent"])
def test_about_as_many_rows_as_there_are_come_out_without_owner(method: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    keys = np.where(rng.random(3000) < 0.4, rng.integers(0, 1000, 3000), 10_000 + rng.integers(0, 600, 3000))
    source = write_shop(
        tmp_path / "source",
        DDL,
        owner="id,a\n" + "".join(f"{i},{i % 10}\n" for i in range(1000)),
        child="id,owner_id,b\n" + "".join(f"{i},{key},{i % 6}\n" for i, key in enumerate(keys.tolist())),
    )
    spec = draft(source, unit="owner", orphans=Orphans.NULL)
    model = fit(spec, epsilon="40", method=method, entropy=SeededEntropy(5))
    assert verify_model(model).status == "verified"
    rows = generate(model, tmp_path / "bundle", seed=1)
    unowned = pq.read_table(tmp_path / "bundle/data/child.parquet").column("owner_id").null_count
    assert unowned == pytest.approx(int((keys >= 10_000).sum()), rel=0.2)
    assert rows["child"] == pytest.approx(3000, rel=0.1)
