"""What one fit found and another reuses: cited in the next receipt, and refused where it is called declared."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from privbench.errors import ModelError
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.model.file import load_model, save_model
from privbench.model.model import Model
from privbench.model.verify import verify
from privbench.schema.domain import Origin
from privbench.schema.release import receipt_digest
from privbench.schema.spec import read_spec, write_spec

from ..seeded import SeededEntropy

PERSONS = 3_000


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Persons with one to three visits each; `visits` counts them."""
    path = tmp_path_factory.mktemp("earlier") / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        for statement in (
            "CREATE TABLE person (id INTEGER PRIMARY KEY, age SMALLINT NOT NULL, visits SMALLINT NOT NULL)",
            "CREATE TABLE visit (id INTEGER PRIMARY KEY, person INTEGER NOT NULL REFERENCES person, cost SMALLINT)",
            f"INSERT INTO person SELECT i, 18 + i % 70, 1 + i % 3 FROM range({PERSONS}) t(i)",
            f"INSERT INTO visit SELECT 3 * i + k, i, i % 97 FROM range({PERSONS}) t(i), range(3) s(k) WHERE k <= i % 3",
        ):
            connection.execute(statement)
    return path


@pytest.fixture(scope="module")
def first(source: Path) -> Model:
    return fit(draft(source, unit="person"), epsilon=50, entropy=SeededEntropy(2))


@pytest.fixture(scope="module")
def second(first: Model, source: Path, tmp_path_factory: pytest.TempPathFactory) -> Model:
    path = tmp_path_factory.mktemp("spec") / "next.yaml"
    write_spec(first.spec.for_reuse(first.receipt), path)
    return fit(read_spec(path), source=source, epsilon=8, entropy=SeededEntropy())


def origins(model: Model) -> dict[str, tuple[str, str | None]]:
    columns = [*model.receipt["public"]["domains"], *model.receipt["computed"]]
    return {f"{c['table']}.{c['column']}": (c["origin"], c.get("release")) for c in columns}


def test_the_receipt_cites_the_release_that_paid(first: Model, second: Model) -> None:
    digest = receipt_digest(first.receipt)
    assert origins(first) == {
        "person.age": ("private", None),
        "person.visits": ("found", None),
        "visit.cost": ("private", None),
    }
    assert origins(second) == dict.fromkeys(origins(first), ("earlier release", digest))
    assert first.receipt["earlier"] == []
    assert second.receipt["earlier"] == [
        {"receipt": digest, "epsilon": "50/1", "delta": "0/1", "neighbours": "replace"}
    ]


def test_the_model_is_saved_loaded_and_verified_with_what_it_cites(second: Model, tmp_path: Path) -> None:
    save_model(second, tmp_path / "model")
    assert load_model(tmp_path / "model").spec == second.spec
    assert verify(tmp_path / "model").problems == ()


def test_a_third_fit_keeps_what_the_second_cites(first: Model, second: Model) -> None:
    third = second.spec.for_reuse(second.receipt)
    assert [release.receipt for release in third.earlier_releases()] == [receipt_digest(first.receipt)]


def test_two_fits_that_spend_the_same_are_two_releases(source: Path) -> None:
    spec = draft(source, unit="person", domains="data", find=False)
    one, two = (fit(spec, epsilon=1, method="independent", entropy=SeededEntropy(seed)).receipt for seed in (1, 2))
    assert {**one, "id": two["id"]} == two
    assert receipt_digest(one) != receipt_digest(two)


def refused(model: Model, path: Path) -> bool:
    """Whether neither the verifier nor a reader takes a model."""
    save_model(model, path)
    with pytest.raises(ModelError):
        load_model(path)
    return verify(path).status == "failed"


def test_a_receipt_that_leaves_the_release_out_is_refused(second: Model, tmp_path: Path) -> None:
    assert refused(replace(second, receipt={**second.receipt, "earlier": []}), tmp_path / "model")


@pytest.mark.parametrize("where", ["spec", "receipt"])
def test_what_was_found_before_cannot_be_called_declared(second: Model, tmp_path: Path, where: str) -> None:
    domain = second.spec.column("person", "age").domain
    assert domain is not None
    spec = second.spec.with_domains({("person", "age"): (domain, Origin.DECLARED)})
    domains = [dict(column) for column in second.receipt["public"]["domains"]]
    next(c for c in domains if c["column"] == "age").update(origin="declared")
    for column in domains:
        if column["column"] == "age":
            del column["release"]
    receipt: dict[str, Any] = {**second.receipt, "public": {**second.receipt["public"], "domains": domains}}
    forged = replace(second, spec=spec) if where == "spec" else replace(second, receipt=receipt)
    assert refused(forged, tmp_path / "model")
