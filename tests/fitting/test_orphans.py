"""`orphans: "null"`: rows whose owner is missing are kept with a NULL key, and the publisher is told how many."""

import logging
from pathlib import Path

import duckdb
import numpy as np
import pytest

import privbench
from privbench.errors import DataError
from privbench.schema.spec import Orphans

from ..forging import write_shop

DDL = (
    "CREATE TABLE person (id INTEGER PRIMARY KEY, age SMALLINT);"
    "CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person (id), cost SMALLINT);"
)
OWNERS, VISITS = 1000, 3000


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of every five visits three name an owner who is not there, each another one."""
    rng = np.random.default_rng(1)
    people = "".join(f"{i},{i % 50}\n" for i in range(OWNERS))
    present = rng.integers(0, OWNERS, VISITS)
    owners = [OWNERS + i if i % 5 < 3 else present[i] for i in range(VISITS)]
    visits = "".join(f"{i},{owner},{i % 7}\n" for i, owner in enumerate(owners))
    return write_shop(
        tmp_path_factory.mktemp("orphans") / "shop",
        DDL,
        person=f"id,age\n{people}",
        visit=f"id,person_id,cost\n{visits}",
    )


@pytest.mark.parametrize("method", ["tree", "paper", "independent"])
def test_rows_without_their_owner_are_kept(
    method: str, shop: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spec = privbench.draft(shop, unit="person", domains="data", orphans=Orphans.NULL)
    assert not spec.column("visit", "person_id").null
    with caplog.at_level(logging.WARNING):
        model = privbench.fit(spec, epsilon=900, method=method)
    told = [r for r in caplog.records if r.name == "privbench.fitting.key_checks"]
    assert [(r.levelname, "visit.person_id: 1,800 rows" in r.message) for r in told] == [("WARNING", True)]
    assert "1,800" not in str(model.receipt)
    privbench.save_model(model, tmp_path / "m")
    rows = privbench.generate(tmp_path / "m", tmp_path / "bundle", seed=1, format="duckdb").rows
    with duckdb.connect(str(tmp_path / "bundle" / "data" / "database.duckdb"), read_only=True) as base:
        [(nulls,)] = base.execute("SELECT count(*) FROM visit WHERE person_id IS NULL").fetchall()
    assert abs(rows["visit"] - VISITS) < 0.1 * VISITS
    assert abs(nulls - 0.6 * VISITS) < 0.1 * VISITS
    assert '"person_id" INTEGER,' in (tmp_path / "bundle" / "schema.sql").read_text()
    readme = (tmp_path / "bundle" / "README.md").read_text()
    assert "- NOT NULL in the source, may be NULL here, as keys to missing rows are: visit.person_id" in readme


def test_a_key_that_cannot_be_null_is_refused(tmp_path: Path) -> None:
    """A part of a primary key is never NULL, so such rows could only be lost."""
    ddl = DDL.replace("id INTEGER PRIMARY KEY, person_id", "id INTEGER, person_id").replace(
        "cost SMALLINT", "cost SMALLINT, PRIMARY KEY (person_id, id)"
    )
    shop = write_shop(tmp_path / "shop", ddl, person="id,age\n1,2\n", visit="id,person_id,cost\n1,1,5\n2,9,5\n")
    spec = privbench.draft(shop, unit="person", domains="data", orphans=Orphans.NULL)
    with pytest.raises(DataError, match=r"visit.person_id: 1 rows .* primary key"):
        privbench.fit(spec, epsilon=3)
