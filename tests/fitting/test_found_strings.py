"""Lists of texts from draft to bundle: refused without a delta, found with one, told, paid for and checked."""

from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privbench.errors import SpecError
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.fitting.plan import plan
from privbench.fitting.warnings import fit_warnings
from privbench.generation.generate import generate
from privbench.model.file import load_model, save_model
from privbench.model.model import Model
from privbench.model.notes import found_lists
from privbench.model.verify import verify
from privbench.schema.domain import Bins, Origin, Text, Values
from privbench.schema.spec import read_spec, write_spec

from ..forging import MISSING, assert_refused, events, places_from, settle, take_out
from ..seeded import SeededEntropy

PEOPLE = 3_000
ODD = ("", " ", "'", 'a "quoted" one', "ünïcödé 🙂", "null", "yes", "1", "two\nlines", "- a: [b", "#c")
DELTA = "1e-9"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop") / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, kind VARCHAR, name VARCHAR, note VARCHAR(5))")
        connection.execute(
            "CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person (id), "
            "place VARCHAR NOT NULL)"
        )
        kinds = [ODD[i % len(ODD)] for i in range(PEOPLE)]
        notes = ["same" if i % 3 else None for i in range(PEOPLE)]
        names = [f"name {i}" for i in range(PEOPLE)]
        connection.register("people", pa.table({"id": range(PEOPLE), "kind": kinds, "name": names, "note": notes}))
        connection.execute("INSERT INTO person SELECT * FROM people")
        connection.execute(
            f"INSERT INTO visit SELECT i, i % {PEOPLE}, CASE WHEN i % 5 = 0 THEN 'home' ELSE 'away' END "
            f"FROM range({4 * PEOPLE}) t(i) UNION ALL SELECT {4 * PEOPLE} + i, 7, 'secret' FROM range({PEOPLE}) t(i)"
        )
    return path


@pytest.fixture(scope="module")
def model(shop: Path) -> Model:
    spec = draft(shop, unit="person")
    return fit(spec, epsilon=8, delta=DELTA, entropy=SeededEntropy(), method="independent")


def test_lists_are_found(model: Model) -> None:
    assert model.spec.column("person", "kind").domain == Values(values=tuple(sorted(ODD)), other=True)
    assert model.spec.column("person", "note").domain == Values(values=("same",), other=True, shape="sentence")
    assert isinstance(model.spec.column("person", "name").domain, Text)
    places = model.spec.column("visit", "place").domain
    assert places == Values(values=("away", "home"), other=True)  # whatever one person's rows are full of
    assert found_lists(model) == {"person.kind": len(ODD), "person.note": 1, "visit.place": 2}


def test_it_is_paid_for_and_verified(model: Model, tmp_path: Path) -> None:
    receipt = model.receipt
    assert places_from(model, "private") == ["person.kind", "person.name", "person.note", "visit.place"]
    assert (receipt["condition"], Fraction(receipt["budget"]["thresholds"])) == (None, Fraction(1, 4 * 10**9))
    assert 0 < Fraction(receipt["ledger"]["delta"]) <= Fraction(1, 4 * 10**9)
    save_model(model, tmp_path / "model")
    generate(load_model(tmp_path / "model"), tmp_path / "bundle", seed=1)
    assert verify(tmp_path / "model").status == verify(tmp_path / "bundle").status == "verified"
    kinds = set(pq.read_table(tmp_path / "bundle" / "data" / "person.parquet")["kind"].to_pylist())
    assert set(ODD) < kinds
    assert all(kind is None or kind in ODD or len(kind) == 8 for kind in kinds)
    readme = (tmp_path / "bundle" / "README.md").read_text()
    assert "texts of the source that many entities have, found within this promise:\nperson.kind, person.note" in readme


def test_the_spec_goes_through_a_file(model: Model, tmp_path: Path) -> None:
    write_spec(model.spec, tmp_path / "spec.yaml")
    assert read_spec(tmp_path / "spec.yaml") == model.spec


def test_what_was_not_found_is_told(model: Model) -> None:
    said = fit_warnings(model)
    [line] = [line for line in said if "Too few entities share a text" in line]
    assert "person.name" in line
    assert "person.kind" not in line
    assert any(line.startswith("Remedies: declare the list") for line in said)


def test_a_list_that_leaves_out_much_is_told(tmp_path: Path) -> None:
    source = tmp_path / "d"
    with duckdb.connect(str(source)) as connection:
        connection.execute("CREATE TABLE t (a VARCHAR)")
        connection.execute(
            "INSERT INTO t SELECT CASE WHEN i % 10 < 7 THEN 'most' ELSE 'x' || i END FROM range(5000) t(i)"
        )
    found = fit(draft(source), epsilon=8, delta=DELTA, entropy=SeededEntropy(), method="independent")
    [line] = [line for line in fit_warnings(found) if "leave out a good part" in line]
    assert "t.a (3" in line
    assert "of its texts)" in line


def test_without_a_delta_it_is_refused_before_anything_is_read(shop: Path, tmp_path: Path) -> None:
    spec = draft(shop, unit="person")
    with pytest.raises(SpecError, match=r"(?s)no domain for person\.kind, .*visit\.place: .*--delta 1e-9"):
        fit(spec, source=tmp_path / "there is no such file", epsilon=1)
    with pytest.raises(SpecError, match="--delta 1e-9"):
        plan(spec, epsilon=1)


def test_a_list_that_nobody_paid_for_is_refused(shop: Path, tmp_path: Path) -> None:
    """A model says that a list was found, but its receipt has only the count of texts."""
    spec = draft(shop, unit="person")
    forged = fit(spec, epsilon=8, delta=DELTA, entropy=SeededEntropy(), method="independent")
    nodes = events({"receipt": forged.receipt}, "person", kind="heavy hitters")
    for event in [node for node in nodes if node["query"]["column"] == "kind"]:
        event["query"]["column"] = "name"
    save_model(forged, tmp_path / "model")
    assert_refused(tmp_path / "model", f'{MISSING}{{"column": "kind", "counts": "votes", "kind": "heavy hitters"')


def test_heavy_hitters_that_nobody_paid_for_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "d"
    with duckdb.connect(str(source)) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
        connection.execute("INSERT INTO t SELECT CASE WHEN i % 2 = 0 THEN 777 ELSE 13 * i END FROM range(8000) t(i)")
    found = fit(draft(source), epsilon=8, delta=DELTA, entropy=SeededEntropy(), method="independent")
    domain = found.spec.column("t", "a").domain
    assert isinstance(domain, Bins)
    assert domain.heavy_hitters == (777,)
    save_model(found, tmp_path / "model")
    assert verify(tmp_path / "model").problems == ()
    [event] = [n for n in found.receipt["ledger"]["nodes"] if n.get("mechanism") == "frequent-values"]
    take_out(found.receipt["ledger"], [event])
    settle(found.receipt)["ledger"]["delta"] = "0/1"
    save_model(found, tmp_path / "forged")
    assert_refused(tmp_path / "forged", f'{MISSING}{{"column": "a", "counts": "votes", "kind": "heavy hitters"')


def test_a_fit_can_be_planned(shop: Path) -> None:
    spec = draft(shop, unit="person")
    said = plan(spec, epsilon=8, delta=DELTA, rows={"person": PEOPLE})
    assert said.domains is not None
    assert said.domains.strings == ("person.kind", "person.name", "person.note", "visit.place")
    assert said.domains.listed is not None
    assert 10 < said.domains.listed < PEOPLE / 10
    few = plan(spec, epsilon=8, delta=DELTA, rows={"person": 100})
    assert any(line.startswith("Hardly any list will be found for person.kind") for line in few.warnings)
    assert not any("Hardly any list" in line for line in said.warnings)


def test_lists_that_were_found_are_from_an_earlier_release_the_next_time(model: Model, shop: Path) -> None:
    spec = model.spec.for_reuse(model.receipt)
    again = fit(spec, source=shop, epsilon=1, entropy=SeededEntropy(), method="independent")
    assert places_from(again, "private") == []
    assert again.spec.column("person", "kind").origin is Origin.EARLIER


def test_all_of_delta_is_left_where_nothing_is_to_be_found(model: Model, shop: Path) -> None:
    spec = model.spec.for_reuse(model.receipt)
    again = fit(spec, source=shop, epsilon=1, delta=DELTA, entropy=SeededEntropy(), method="independent")
    assert again.receipt["budget"]["thresholds"] == again.receipt["ledger"]["delta"] == "0/1"
