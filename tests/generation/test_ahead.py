"""Rows that keys reference before they are made: none may be missing, though some would have to be left out."""

import json
from pathlib import Path

import duckdb
import pytest

from privbench.errors import SpecError
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.generation.rows import PrivateRows
from privbench.model.model import Model
from privbench.schema.spec import Spec

from ..seeded import SeededEntropy

DDL = """CREATE TABLE client (id INTEGER PRIMARY KEY, least INTEGER NOT NULL CHECK (least BETWEEN 0 AND 9),
  home INTEGER NOT NULL REFERENCES site (id));
CREATE TABLE site (id INTEGER PRIMARY KEY, client INTEGER NOT NULL REFERENCES client (id),
  rooms INTEGER NOT NULL CHECK (rooms BETWEEN 0 AND 4));"""
"""Each references the other, so that homes are drawn before there are sites."""


def clients(folder: Path) -> Spec:
    """Clients who want no room, though they may want nine, where sites have four at most."""
    folder.mkdir()
    (folder / "schema.sql").write_text(DDL)
    (folder / "client.csv").write_text("id,least,home\n" + "".join(f"{c},0,{c % 40}\n" for c in range(80)))
    (folder / "site.csv").write_text("id,client,rooms\n" + "".join(f"{s},{2 * s},4\n" for s in range(40)))
    written = draft(folder, unit="client", owners={"site": ["client"]}).model_dump(mode="json", by_alias=True)
    written["tables"]["site"]["rules"].append("rooms >= client.least")
    return Spec.model_validate(written)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return fit(clients(tmp_path_factory.mktemp("ahead") / "source"), epsilon="0.5", entropy=SeededEntropy(3))


def test_keys_reference_rows_that_are_there_where_rules_leave_rows_out(model: Model, tmp_path: Path) -> None:
    generate(model, tmp_path / "bundle", seed=1, format="duckdb")
    rules = json.loads((tmp_path / "bundle" / "manifest.json").read_text())["tables"]["site"]["rules"]
    with duckdb.connect(str(tmp_path / "bundle" / "data" / "database.duckdb"), read_only=True) as database:
        orphans = "SELECT count(*) FROM client WHERE home NOT IN (SELECT id FROM site)"
        broken = "SELECT count(*) FROM site JOIN client ON client.id = site.client WHERE rooms < least"
        assert [database.sql(sql).fetchall() for sql in (orphans, broken)] == [[(0,)], [(0,)]]
    assert (rules["copied"] > 0, rules["left_out"]) == (True, 0)


def test_rows_that_lack_are_refused_where_keys_may_reference_them(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PrivateRows, "_refilled", lambda _self, _block, values, kept: (values, kept))
    with pytest.raises(SpecError, match=r"site: .* client\.home may reference them"):
        generate(model, tmp_path / "bundle", seed=1)
