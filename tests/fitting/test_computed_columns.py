"""Columns that are found to equal something: from data to model, with every test in the receipt."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from privbench.fitting.computed import computed_columns
from privbench.fitting.draft import draft
from privbench.fitting.finding import candidates_to_test
from privbench.fitting.fit import fit
from privbench.fitting.plan import plan
from privbench.generation.generate import generate
from privbench.model.chosen import method_settings
from privbench.model.file import load_model, save_model
from privbench.model.model import Model
from privbench.model.receipt_check import verify_model
from privbench.privacy.features import Agreement
from privbench.schema.computed import ComputedOrigin, Equals
from privbench.schema.domain import Origin
from privbench.schema.release import receipt_digest
from privbench.schema.spec import Spec
from privbench.schema.unit import Neighbours

from ..computed_shop import OWNERS, check, rows_of, write_source
from ..failing import assert_fails
from ..forging import settle, take_out, write_shop
from ..seeded import SeededEntropy

SHOPS, EPSILON = 1500, "400"
FOUND = {
    "shop.sales = COUNT(sale.*)",
    "sale.region = shop.region",
    "sale.opened = shop.opened",
    "sale.number = ROW_NUMBER()",
    "sale.lines = COUNT(line.*)",
    "line.position = ROW_NUMBER()",
    "line.region = sale.region",
    "line.lines = sale.lines",
}
"""All that hold in every row. Rows without owner break what is said of sale.place and visit.region."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_source(tmp_path_factory.mktemp("derived") / "source", SHOPS)


def drafted(source: Path) -> Spec:
    """Domains from the data, and nothing else that could be found there: it is left to the fit."""
    return draft(source, unit="shop", domains="data", find=False).model_copy(update={"method": {}})


@pytest.fixture(scope="module")
def model(source: Path) -> Model:
    return fit(drafted(source), epsilon=EPSILON, entropy=SeededEntropy())


def shown(table: str, column: str, equals: Equals) -> str:
    return f"{table}.{column} = {equals.expression(OWNERS.get(table))}"


def votes(model: Model) -> list[Any]:
    """The events in which entities voted."""
    events = [node for node in model.receipt["ledger"]["nodes"] if node["kind"] == "event"]
    return [event for event in events if event["query"]["kind"] == "votes on dependencies"]


def comparisons(model: Model) -> set[str]:
    """What was voted on."""
    return {
        shown(candidate["table"], feature["column"], Equals.model_validate(feature["equals"]))
        for event in votes(model)
        for candidate in event["query"]["candidates"]
        if (feature := candidate["feature"])["kind"] == "agreement"
    }


def test_what_holds_is_found(model: Model, tmp_path: Path) -> None:
    assert set(computed_columns(model.protection)) == FOUND
    generate(model, tmp_path / "out", seed=1)
    rows = rows_of(tmp_path / "out")
    for row in rows["sale"]:
        row["place"] = 0 if row["number"] is None else row["number"] - 1  # which is learnt
    shops = {shop["id"]: shop["region"] for shop in rows["shop"]}
    for visit in rows["visit"]:
        visit["region"] = shops.get(visit["shop_id"], "north")  # so is this
    check(rows)


def test_the_receipt_holds_every_test(model: Model, tmp_path: Path) -> None:
    save_model(model, tmp_path / "shop.model")
    loaded = load_model(tmp_path / "shop.model")
    assert verify_model(loaded).status == "conditional"
    assert verify_model(loaded).problems == ()
    assert comparisons(model) >= FOUND
    assert len(votes(model)) == 1
    spent = [Fraction(n["total"]) for n in model.receipt["ledger"]["nodes"] if n.get("label") == "dependencies"]
    assert 0 < spent[0] <= Fraction(EPSILON) / 2 / 40


def test_an_edited_test_is_noticed(model: Model) -> None:
    receipt = json.loads(json.dumps(model.receipt))
    forged = replace(model, receipt=receipt)
    (event,) = votes(forged)
    event["epsilon"] = "0/1"
    assert verify_model(forged).status == "failed"


def test_a_column_that_nobody_tested_is_no_computed_one(model: Model) -> None:
    """Without its test, though all adds up, a receipt does not say that a column was found to equal something."""
    receipt = json.loads(json.dumps(model.receipt))
    forged = replace(model, receipt=receipt)
    (event,) = votes(forged)
    candidates = event["query"]["candidates"]
    left = [c for c in candidates if (c["table"], c["feature"]["column"]) != ("sale", "number")]
    event["query"]["candidates"], event["draws"] = left, 3 * len(left)
    assert_fails(verify_model(forged), "sale.number: has the origin found")
    take_out(receipt["ledger"], [event])
    assert_fails(verify_model(replace(model, receipt=settle(receipt))), "sale.region: has the origin found")


def test_what_was_found_is_from_an_earlier_release_in_the_next_fit(model: Model, source: Path) -> None:
    assert {c.computed_origin for c in model.spec.computed_columns(model.protection).values()} == {ComputedOrigin.FOUND}
    reused = model.spec.for_reuse(model.receipt)
    again = fit(reused, source=source, epsilon=EPSILON, entropy=SeededEntropy())
    columns = again.spec.computed_columns(again.protection).values()
    assert {(c.computed_origin, c.release) for c in columns} == {
        (ComputedOrigin.EARLIER, receipt_digest(model.receipt)),
    }
    assert set(computed_columns(again.protection)) == FOUND
    assert not comparisons(again) & FOUND


@pytest.mark.slow
def test_domains_are_not_searched_for_what_was_found(source: Path) -> None:
    spec = drafted(source)
    private = spec.with_domains(
        {("line", "hue"): (None, Origin.PRIVATE), ("shop", "sales"): (None, Origin.PRIVATE)}  # type: ignore[dict-item]
    )
    model = fit(private, epsilon=EPSILON, entropy=SeededEntropy())
    assert set(computed_columns(model.protection)) == FOUND
    axes = [a for n in model.receipt["ledger"]["nodes"] for a in n.get("query", {}).get("axes", ())]
    assert [a["feature"]["column"] for a in axes if a["feature"]["kind"] == "magnitude"] == ["hue"]


@pytest.mark.slow
@pytest.mark.parametrize("method", [{"name": "tree", "find": False}, {"name": "independent"}])
def test_no_test_is_made_unless_wanted(source: Path, method: dict[str, object]) -> None:
    spec = drafted(source).model_copy(update={"method": method})
    model = fit(spec, epsilon=EPSILON, entropy=SeededEntropy())
    assert comparisons(model) == set()
    assert computed_columns(model.protection) == ()


@pytest.mark.slow
def test_no_test_is_made_with_little_budget(source: Path) -> None:
    assert comparisons(fit(drafted(source), epsilon="20", entropy=SeededEntropy())) == set()


def test_no_test_is_made_where_entities_come_and_go(source: Path) -> None:
    """Whether one can tell anything depends on how many entities there are, which is private then."""
    spec = drafted(source)
    assert candidates_to_test(spec, spec.protection(), method_settings(spec)) != ()
    free = spec.model_copy(update={"neighbours": Neighbours.ADD_REMOVE})
    assert candidates_to_test(free, free.protection(), method_settings(free)) == ()


def test_what_is_tested_follows_from_the_schema(source: Path) -> None:
    spec = drafted(source)
    found = candidates_to_test(spec, spec.protection(), method_settings(spec))
    sources = [(candidate, candidate.feature.source) for candidate in found]
    said = {shown(c.table, c.column, source.equals) for c, source in sources if isinstance(source, Agreement)}
    assert len(said) == len(found)
    assert said > FOUND
    assert {s for s in said if s.startswith("visit.hour")} == {
        "visit.hour = ROW_NUMBER()",
        "visit.hour = ROW_NUMBER() - 1",
    }
    assert not any("paid" in s or s.startswith("shop.region") for s in said)


def test_no_rank_is_looked_for_where_an_owner_has_one_row(tmp_path: Path) -> None:
    """Any flag that is nearly always 0 or 1 would pass for one, and its rare values would be lost."""
    source = write_shop(
        tmp_path / "source",
        "CREATE TABLE shop (id INTEGER PRIMARY KEY);"
        "CREATE TABLE permit (shop_id INTEGER PRIMARY KEY REFERENCES shop (id), void SMALLINT NOT NULL);",
        shop="id\n1\n2",
        permit="shop_id,void\n1,0\n2,0",
    )
    spec = drafted(source)
    assert candidates_to_test(spec, spec.protection(), method_settings(spec)) == ()


def test_the_plan_says_what_tests_cost(source: Path) -> None:
    spec: Spec = drafted(source)
    said = plan(spec, epsilon=EPSILON, rows={"shop": SHOPS})
    assert said.finding is not None
    assert {"shop.sales", "line.hue"} <= set(said.finding.columns)
    assert 0 < said.finding.least < said.finding.most <= said.budget / 40
    assert plan(spec, epsilon="3.2", rows={"shop": SHOPS}).finding is None
