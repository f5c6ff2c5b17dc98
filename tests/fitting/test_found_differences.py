"""Dates that are found to lie near others: from data to rows, with the vote in the receipt."""

import json
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privbench.fitting.draft import draft
from privbench.fitting.finding import candidates_to_test
from privbench.fitting.fit import fit
from privbench.fitting.plan import plan
from privbench.generation.generate import generate
from privbench.io.open import open_source
from privbench.model.chosen import method_settings
from privbench.model.file import load_model, save_model
from privbench.model.model import Model
from privbench.model.receipt_check import verify_model
from privbench.privacy.features import Nearness
from privbench.schema.computed import ComputedOrigin
from privbench.schema.domain import Origin
from privbench.schema.release import receipt_digest
from privbench.schema.spec import Spec

from ..failing import assert_fails
from ..forging import write_shop
from ..seeded import SeededEntropy

BUYERS, EPSILON = 1500, "40"
DDL = """CREATE TABLE buyer (id INTEGER PRIMARY KEY, born DATE NOT NULL);
CREATE TABLE purchase (id INTEGER PRIMARY KEY, buyer_id INTEGER NOT NULL REFERENCES buyer (id), ordered DATE NOT NULL);
CREATE TABLE parcel (purchase_id INTEGER NOT NULL REFERENCES purchase (id), sent DATE NOT NULL, arrived TIMESTAMP,
  packed DATE NOT NULL);"""
FOUND = {("parcel", "sent"): "purchase.ordered", ("parcel", "arrived"): "sent"}
"""Bases of which the differences lie closest together. Days of packing have nothing to do with others."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Buyers born in 40 years order in ten years; what they order is sent in a month and arrives in a few days."""
    rng, first = np.random.default_rng(11), date(2010, 1, 1)
    buyers, purchases, parcels = ["id,born"], ["id,buyer_id,ordered"], ["purchase_id,sent,arrived,packed"]
    for buyer in range(BUYERS):
        buyers.append(f"{buyer},{date(1950, 1, 1) + timedelta(int(rng.integers(0, 14_600)))}")
        for _ in range(rng.integers(1, 4)):
            purchase, ordered = len(purchases), first + timedelta(int(rng.integers(0, 3650)))
            purchases.append(f"{purchase},{buyer},{ordered}")
            sent = ordered + timedelta(int(rng.integers(1, 30)))
            arrived = f"{sent + timedelta(int(rng.integers(0, 5)))} 12:00:00" if rng.random() < 0.95 else ""
            parcels.append(f"{purchase},{sent},{arrived},{first + timedelta(int(rng.integers(0, 3650)))}")
    tables = {"buyer": buyers, "purchase": purchases, "parcel": parcels}
    return write_shop(
        tmp_path_factory.mktemp("near") / "source", DDL, **{t: "\n".join(rows) for t, rows in tables.items()}
    )


@pytest.fixture(scope="module")
def spec(source: Path) -> Spec:
    return draft(source, unit="buyer", domains="private")


@pytest.fixture(scope="module")
def model(spec: Spec) -> Model:
    return fit(spec, epsilon=EPSILON, entropy=SeededEntropy())


def found(model: Model) -> dict[tuple[str, str], str | None]:
    return {place: column.relative_to for place, column in model.spec.relative_columns(model.protection).items()}


def test_candidates_are_dates_of_rows_above_or_before_in_the_row(spec: Spec) -> None:
    candidates = candidates_to_test(spec, spec.protection(), method_settings(spec))
    bases: dict[str, set[tuple[str, int]]] = {}
    for candidate in candidates:
        if isinstance(source := candidate.feature.source, Nearness):
            bases.setdefault(candidate.column, set()).add((source.base.column, len(source.base.path)))
    above = {("ordered", 1), ("born", 2)}
    assert bases == {
        "ordered": {("born", 1)},
        "sent": above,
        "arrived": {*above, ("sent", 0)},
        "packed": {*above, ("sent", 0), ("arrived", 0)},
    }


def test_dates_with_a_domain_stay_what_they_are(source: Path) -> None:
    """A domain that somebody declared, or took from the data, is one of dates."""
    spec = draft(source, unit="buyer", domains="data")
    assert candidates_to_test(spec, spec.protection(), method_settings(spec)) == ()


def test_dates_that_lie_near_others_become_differences(model: Model, tmp_path: Path) -> None:
    assert found(model) == FOUND
    for place in FOUND:
        column = model.spec.column(*place)
        assert (column.relative_origin, column.origin) == (ComputedOrigin.FOUND, Origin.PRIVATE)
    generate(model, tmp_path / "out", seed=1)
    with open_source(tmp_path / "out") as opened:
        purchases, parcels = (rows_of(opened, model, name) for name in ("purchase", "parcel"))
    ordered = {row["id"]: row["ordered"] for row in purchases}
    late = [(row["sent"] - ordered[row["purchase_id"]]).days for row in parcels]
    assert np.mean([0 <= days <= 31 for days in late]) > 0.97
    after = [(row["arrived"].date() - row["sent"]).days for row in parcels if row["arrived"] is not None]
    assert np.mean([0 <= days <= 5 for days in after]) > 0.97
    assert 0.9 < len(after) / len(parcels) < 1


def rows_of(opened: Any, model: Model, name: str) -> list[dict[str, Any]]:
    return [row for batch in opened.read(model.protection.schema.table(name)) for row in batch.to_pylist()]


def test_the_receipt_holds_the_vote(model: Model, tmp_path: Path) -> None:
    save_model(model, tmp_path / "shop.model")
    loaded = load_model(tmp_path / "shop.model")
    verdict = verify_model(loaded)
    assert (verdict.status, verdict.problems) == ("verified", ())
    assert loaded.receipt["relative"] == [
        {"table": "parcel", "column": "sent", "origin": "found", "base": {"table": "purchase", "column": "ordered"}},
        {"table": "parcel", "column": "arrived", "origin": "found", "base": {"table": "parcel", "column": "sent"}},
    ]


def test_a_difference_that_nobody_voted_on_is_noticed(model: Model) -> None:
    receipt = json.loads(json.dumps(model.receipt))
    (event,) = [n for n in receipt["ledger"]["nodes"] if n.get("query", {}).get("kind") == "votes on dependencies"]
    for candidate in event["query"]["candidates"]:
        if candidate["feature"]["column"] == "sent":
            candidate["feature"]["base"] = {"column": "born", "owners": 2}
    assert_fails(verify_model(replace(model, receipt=receipt)), "parcel.sent: has the origin found as a difference")


def test_a_base_of_rows_that_do_not_own_the_row_is_noticed(model: Model) -> None:
    receipt = json.loads(json.dumps(model.receipt))
    receipt["relative"][0] |= {"table": "purchase", "base": {"table": "parcel", "column": "sent"}}
    assert_fails(verify_model(replace(model, receipt=receipt)), "rows of parcel do not own rows of purchase")


def test_what_was_found_is_from_an_earlier_release_in_the_next_fit(model: Model, source: Path) -> None:
    with pytest.raises(Exception, match="found by an earlier fit"):
        fit(model.spec, source=source, epsilon=EPSILON, entropy=SeededEntropy())
    reused = model.spec.for_reuse(model.receipt)
    again = fit(reused, source=source, epsilon=EPSILON, entropy=SeededEntropy())
    assert found(again) == FOUND
    digest = receipt_digest(model.receipt)
    assert [r["release"] for r in again.receipt["relative"]] == [digest, digest]
    assert verify_model(again).problems == ()


def test_nothing_is_looked_for_if_the_spec_says_so_or_the_budget_is_small(spec: Spec) -> None:
    quiet = spec.model_copy(update={"method": {"name": "tree", "find": False}})
    assert candidates_to_test(quiet, quiet.protection(), method_settings(quiet)) == ()
    assert plan(spec, epsilon="3.2", rows={"buyer": BUYERS}).finding is None
    planned = plan(spec, epsilon=EPSILON, rows={"buyer": BUYERS}).finding
    assert planned is not None
    assert planned.columns == ("purchase.ordered", "parcel.sent", "parcel.arrived", "parcel.packed")
