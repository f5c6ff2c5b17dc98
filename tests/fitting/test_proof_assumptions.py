"""What docs/proofs/paper.md takes for granted is checked, or said in the receipt."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privbench.errors import DataError, SpecError
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.model.facts import public_facts
from privbench.model.model import compile_codecs
from privbench.schema.spec import Orphans, Sizes, Spec
from privbench.schema.unit import Neighbours

from ..forging import places_from

SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, code VARCHAR(5) UNIQUE, age SMALLINT);
CREATE TABLE visit (k VARCHAR PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person (id), v INTEGER);
CREATE TABLE poster (x INTEGER, code VARCHAR(5) REFERENCES person (code), person_id INTEGER REFERENCES person (id));
"""
ROWS = 40


@pytest.fixture
def clinic(tmp_path: Path) -> Callable[[int | None], Path]:
    def make(last_owner: int | None) -> Path:
        owners = [10 + i % ROWS for i in range(2 * ROWS - 1)] + [last_owner]
        tables = {
            "person": {
                "id": pa.array(range(10, 10 + ROWS), pa.int32()),
                "code": [f"c{i:03d}" for i in range(ROWS)],
                "age": pa.array([i % 7 for i in range(ROWS)], pa.int16()),
            },
            "visit": {
                "k": [f"key{i}" for i in range(2 * ROWS)],
                "person_id": pa.array(owners, pa.int32()),
                "v": pa.array([i % 5 for i in range(2 * ROWS)], pa.int32()),
            },
            "poster": {
                "x": pa.array(range(9), pa.int32()),
                "code": [f"c{i:03d}" for i in range(9)],
                "person_id": pa.array(range(10, 19), pa.int32()),
            },
        }
        folder = tmp_path / "clinic"
        folder.mkdir()
        (folder / "schema.sql").write_text(SCHEMA)
        for name, columns in tables.items():
            pq.write_table(pa.table(columns), folder / f"{name}.parquet")
        return folder

    return make


def drafted(folder: Path, **choices: object) -> Spec:
    spec = draft(folder, unit="person", domains="data", public=["poster"])
    return spec.model_copy(update=choices)


def test_public_sizes_are_refused_where_entities_come_and_go(clinic: Callable[[int | None], Path]) -> None:
    spec = draft(clinic(10), unit="person", domains="data", drop=["poster"], neighbours=Neighbours.ADD_REMOVE)
    with pytest.raises(SpecError, match="sizes: public"):
        fit(spec.model_copy(update={"sizes": Sizes.PUBLIC}), epsilon=1)
    with pytest.raises(SpecError, match="as_published"):
        fit(spec.model_copy(update={"method": {"as_published": True}}), epsilon=1)


def test_a_null_in_a_not_null_owner_key_is_refused(clinic: Callable[[int | None], Path]) -> None:
    with pytest.raises(DataError, match=r"visit\.person_id: 1 rows have a NULL"):
        fit(drafted(clinic(None)), epsilon=1)


@pytest.mark.parametrize(("orphans", "bounded"), [(Orphans.ERROR, True), (Orphans.NULL, False)])
def test_rows_are_bounded_by_owners_only_if_all_have_one(
    clinic: Callable[[int | None], Path], orphans: Orphans, bounded: bool
) -> None:
    spec = drafted(clinic(10), orphans=orphans)
    protection = spec.protection()
    rows = {"person": ROWS, "visit": 2 * ROWS, "poster": 9}
    facts = public_facts(spec, protection, compile_codecs(spec, protection), rows, public_sizes=False)
    assert facts.may_be_unowned("visit") is not bounded


def test_the_length_of_text_keys_is_part_of_the_condition(clinic: Callable[[int | None], Path]) -> None:
    model = fit(drafted(clinic(10)), epsilon=1)
    assert "visit.k" in places_from(model, "data")
    assert "visit.k" in model.receipt["condition"]


def test_public_rows_stay_valid_by_every_key_they_use(clinic: Callable[[int | None], Path], tmp_path: Path) -> None:
    generate(fit(drafted(clinic(10)), epsilon=1), tmp_path / "out", seed=1)
    person, poster = (pq.read_table(tmp_path / "out/data" / f"{t}.parquet").to_pydict() for t in ("person", "poster"))
    assert poster["person_id"] == list(range(10, 19))
    assert set(poster["code"]) <= set(person["code"])
