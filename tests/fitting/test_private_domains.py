"""Domains that are left to the budget: drafted without a look, refused where they cannot be, found and paid for."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from privbench.errors import SpecError
from privbench.fitting.domains import wanted_types, with_found
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.fitting.plan import plan
from privbench.fitting.reading import read_database
from privbench.fitting.warnings import fit_warnings
from privbench.generation.generate import generate
from privbench.io.duckdb_file import DuckDBSource
from privbench.io.open import open_source
from privbench.methods.method import silent
from privbench.model.file import load_model, save_model
from privbench.model.model import compile_codecs
from privbench.model.verify import verify
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.facts import ColumnFacts
from privbench.privacy.features import own, present, whole_axis
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.queries import Counts, Histogram
from privbench.privacy.vault import Vault
from privbench.schema.domain import Origin, Range, Serial, Text, Values
from privbench.schema.release import receipt_digest, release_of
from privbench.schema.spec import Spec, read_spec, write_spec

from ..forging import MISSING, assert_refused, events, fewer_bins, places_from
from ..one_part import only_part
from ..seeded import SeededEntropy

ROWS = 3_000


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop") / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        for statement in (
            "CREATE TABLE person (id INTEGER PRIMARY KEY, age SMALLINT, mail VARCHAR(40) UNIQUE, badge BIGINT UNIQUE, "
            "active BOOLEAN NOT NULL, kind VARCHAR CHECK (kind IN ('a', 'b')))",
            "CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person (id), "
            "day DATE NOT NULL, cost DECIMAL(9,2))",
            f"INSERT INTO person SELECT i, 18 + i % 70, 'm' || i, i, i % 2 = 0, 'a' FROM range({ROWS}) t(i)",
            f"INSERT INTO visit SELECT i, i % {ROWS}, DATE '2020-01-01' + INTERVAL (i % 365) DAY, (i % 97) / 4 "
            f"FROM range({2 * ROWS}) t(i)",
        ):
            connection.execute(statement)
    return path


def _fit(shop: Path, **flags: Any) -> Any:
    return fit(draft(shop, unit="person"), epsilon=8, entropy=SeededEntropy(), method="independent", **flags)


def test_a_draft_looks_at_no_value(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("values were read")

    monkeypatch.setattr(DuckDBSource, "read", refuse)
    columns = draft(shop, unit="person").tables["person"].columns
    assert (columns["age"].domain, columns["age"].origin, columns["age"].null) == (None, Origin.PRIVATE, True)
    assert (columns["mail"].domain, columns["mail"].origin) == (Text(text=(0, 8, 16, 32, 64, 128)), Origin.SCHEMA)
    assert (columns["badge"].domain, columns["badge"].origin) == (Serial(), Origin.SCHEMA)
    assert columns["kind"].domain == Values(values=("a", "b"))
    with pytest.raises(AssertionError, match="values were read"):
        draft(shop, unit="person", domains="data")


def test_the_spec_file_says_private(shop: Path, tmp_path: Path) -> None:
    spec = draft(shop, unit="person")
    write_spec(spec, tmp_path / "spec.yaml")
    assert "age: {type: SMALLINT, null: true, domain: private}" in (tmp_path / "spec.yaml").read_text()
    assert read_spec(tmp_path / "spec.yaml") == spec


def test_another_word_is_refused(shop: Path) -> None:
    with pytest.raises(SpecError, match=r"`private`.*or read from the `data`"):
        draft(shop, unit="person", domains="public")


def test_the_receipt_says_what_was_found_and_verifies(shop: Path, tmp_path: Path) -> None:
    model = _fit(shop)
    assert places_from(model, "private") == ["person.age", "visit.cost", "visit.day"]
    assert places_from(model, "data") == []
    assert model.receipt["condition"] is None
    for features in ("magnitude day", "cell day", "step cost", "magnitude cost"):
        assert events({"receipt": model.receipt}, "visit", features)
    save_model(model, tmp_path / "model")
    generate(load_model(tmp_path / "model"), tmp_path / "bundle", seed=1)
    assert verify(tmp_path / "bundle").status == verify(tmp_path / "model").status == "verified"
    assert model.spec.column("person", "age").domain == Range(range=(0, 127))
    assert model.spec.column("person", "age").origin is Origin.PRIVATE


def test_a_model_whose_domains_nobody_paid_for_is_refused(shop: Path, tmp_path: Path) -> None:
    model = _fit(shop)
    mail = model.spec.column("person", "mail").domain
    spec = model.spec.with_domains({("person", "mail"): (mail, Origin.PRIVATE)})
    [domain] = [d for d in model.receipt["public"]["domains"] if d["column"] == "mail"]
    domain["origin"] = "private"
    save_model(replace(model, spec=spec), tmp_path / "model")
    assert any("person.mail:" in problem for problem in verify(tmp_path / "model").problems)


def test_a_search_of_fewer_cells_than_the_type_has_is_refused(shop: Path, tmp_path: Path) -> None:
    model = _fit(shop)
    fewer_bins("person", "magnitude age")({"receipt": model.receipt})
    save_model(model, tmp_path / "model")
    search = '{"axes": [{"bins": 33, "feature": {"column": "age", "kind": "magnitude"}}]'
    assert_refused(tmp_path / "model", f"{MISSING}{search}")


def test_texts_without_a_list_are_refused_all_at_once_before_anything_is_read(tmp_path: Path) -> None:
    source = tmp_path / "d"
    with duckdb.connect(str(source)) as connection:
        connection.execute("CREATE TABLE t (a VARCHAR, b INTEGER, c VARCHAR(9))")
    spec = draft(source)
    assert spec.wanted(spec.protection()) == (("t", "a"), ("t", "b"), ("t", "c"))
    with pytest.raises(
        SpecError, match=r"(?s)no domain for t\.a, t\.c: .*values: \[\.\.\].*text.*drop.*--domains data"
    ):
        fit(spec, source=tmp_path / "there is no such file", epsilon=1)


def test_a_domain_that_is_not_there_is_looked_for(shop: Path) -> None:
    spec = draft(shop, unit="person")
    silent_spec = spec.with_domains({("person", "age"): (None, Origin.DECLARED)})  # type: ignore[dict-item]
    assert silent_spec.wanted(silent_spec.protection()) == spec.wanted(spec.protection())
    left = spec.with_domains({("person", "age"): (None, Origin.DATA)})  # type: ignore[dict-item]
    with pytest.raises(SpecError, match=r"no domain for person\.age"):
        left.protection()


def test_a_unique_column_cannot_be_searched() -> None:
    spec = Spec.model_validate({"tables": {"t": {"unique": [["a"]], "columns": {"a": {"type": "DATE"}}}}})
    with pytest.raises(SpecError, match=r"t\.a: a UNIQUE column"):
        spec.protection()


def test_a_domain_that_an_earlier_fit_found_cites_its_release(shop: Path, tmp_path: Path) -> None:
    first = _fit(shop)
    write_spec(first.spec.for_reuse(first.receipt), tmp_path / "next.yaml")
    again = fit(tmp_path / "next.yaml", source=shop, epsilon=1, entropy=SeededEntropy(), method="independent")
    column = again.spec.column("person", "age")
    assert (column.origin, column.release) == (Origin.EARLIER, receipt_digest(first.receipt))
    assert again.spec.origins(again.protection)["person", "age"] is Origin.EARLIER
    assert again.spec.earlier_releases() == (release_of(first.receipt),)
    assert places_from(again, "private") == []
    save_model(again, tmp_path / "model")
    assert load_model(tmp_path / "model").spec == again.spec


def test_a_domain_that_was_found_by_a_fit_that_is_not_named_is_refused(shop: Path) -> None:
    found = _fit(shop).spec
    with pytest.raises(SpecError, match=r"person\.age, visit\.day, visit\.cost: .*show MODEL --spec"):
        fit(found, source=shop, epsilon=1)
    with pytest.raises(SpecError, match=r"found by an earlier fit"):
        plan(found, epsilon=1)


def test_too_little_budget_falls_back_on_the_type(shop: Path) -> None:
    spec = draft(shop, unit="person")
    model = fit(spec, epsilon="0.0001", entropy=SeededEntropy(), method="independent")
    assert "person.age" in places_from(model, "schema")


def test_the_method_gets_what_is_left(shop: Path) -> None:
    receipt = _fit(shop).receipt
    domains = next(n for n in receipt["ledger"]["nodes"] if n.get("label") == "domains")
    assert Fraction(0) < Fraction(domains["total"]) <= Fraction(receipt["budget"]["amount"]) * 3 / 10
    assert Fraction(receipt["ledger"]["total"]) > Fraction(receipt["budget"]["amount"]) * 9 / 10


def test_the_spec_is_a_function_of_the_noisy_answers(shop: Path) -> None:
    spec = draft(shop, unit="person")
    protection = spec.protection()
    wanted = wanted_types(spec, protection)
    with open_source(shop) as source:
        codecs = compile_codecs(spec, protection, without=wanted)
        read = read_database(source, protection, codecs, orphans_as_null=False, progress=silent)
    entropy = FixedEntropy(3)
    engine = NumpyEngine(read.parts, entropy=entropy)
    first = Vault(engine, ledger=Ledger(Fraction(4)), entropy=entropy)
    found = with_found(spec, protection, first, wanted)
    replay = Vault(None, ledger=Ledger(Fraction(4)), entropy=FixedEntropy(4), tape=first.answers)
    assert with_found(spec, protection, replay, wanted) == found
    assert found.wanted(protection) == ()


def test_columns_are_coded_once_their_domain_is_known(shop: Path) -> None:
    """After that their codes are counted, and no value is left to look at."""
    spec = draft(shop, unit="person", domains="data")
    protection = spec.protection()
    with open_source(shop) as source:
        codecs = compile_codecs(spec, protection, without={("person", "age")})
        read = read_database(source, protection, codecs, orphans_as_null=False, progress=silent)
    entropy, ledger, codecs = SeededEntropy(), Ledger(Fraction(200)), compile_codecs(spec, protection)
    vault = Vault(NumpyEngine(read.parts, entropy=entropy), ledger=ledger, entropy=entropy)
    vault.encode(codecs)
    age = own("age", ColumnFacts(size=codecs["person"]["age"].size, ordered=True, null=False))
    query = Histogram(table="person", axes=(whole_axis(age),))
    assert vault.measure(query, Fraction(100), ledger.root).counts.round().tolist() == [43] * 60 + [42] * 10
    search = Histogram(table="person", axes=(whole_axis(present("age")),), counts=Counts.VOTES)
    with pytest.raises(KeyError):
        vault.measure(search, Fraction(1), ledger.root)


def test_raw_values_follow_their_rows(tmp_path: Path) -> None:
    """A lookup row that two rows name becomes two, and rows with public ids are sorted; raw values go along."""
    source = tmp_path / "d"
    with duckdb.connect(str(source)) as connection:
        for statement in (
            "CREATE TABLE address (id INTEGER PRIMARY KEY, zip INTEGER)",
            "CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, address_id INTEGER REFERENCES address (id))",
            "CREATE TABLE film (id INTEGER PRIMARY KEY, person_id INTEGER REFERENCES person (id))",
            "INSERT INTO address VALUES (1, 111), (2, 222)",
            "INSERT INTO person VALUES (9, 90, 2), (7, 70, 1), (8, 80, 2)",
            "INSERT INTO film VALUES (1, 9)",
        ):
            connection.execute(statement)
    spec = draft(source, unit="person", lookups={"address": "person"}, public=["film"])
    protection = spec.protection()
    with open_source(source) as opened:
        codecs = compile_codecs(spec, protection, without=wanted_types(spec, protection))
        read = read_database(opened, protection, codecs, orphans_as_null=False, progress=silent)
    part = only_part(read)
    assert part.raw["person"]["age"].to_pylist() == [70, 80, 90]
    keys = next(iter(part.tables["person"].keys.values()))
    assert part.raw["address"]["zip"].take(pa.array(keys)).to_pylist() == [111, 222, 222]
    assert len(set(keys.tolist())) == 3


def test_types_guessed_from_values_are_not_private(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    with pytest.raises(SpecError, match=r"t: the types of a CSV file, .* are guessed.*schema\.sql"):
        draft(tmp_path)
    (tmp_path / "schema.sql").write_text("CREATE TABLE t (a INTEGER);")
    assert draft(tmp_path).column("t", "a").origin is Origin.PRIVATE


def test_domains_found_with_little_budget_are_told(shop: Path) -> None:
    spec = draft(shop, unit="person")
    poor = fit(spec, epsilon="0.5", entropy=SeededEntropy(), method="independent")
    [said] = [line for line in fit_warnings(poor) if "found with little budget" in line]
    assert said.startswith("The domains of person.age, visit.day, visit.cost were found")
    assert "Declare them in the spec" in said
    rich = fit(spec, epsilon=50, entropy=SeededEntropy(), method="independent")
    assert not any("found with little budget" in line for line in fit_warnings(rich))
