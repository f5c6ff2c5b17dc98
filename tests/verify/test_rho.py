"""Receipts that count rho, and tables without a limit of rows: honest ones pass, forged ones do not."""

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.privacy.events import Currency
from privbench.privacy.ledger import Ledger
from privbench.privacy.receipt import add_remove_budget
from privbench.schema.unit import Neighbours
from privbench_verify.receipt import verify_receipt

from ..failing import assert_fails
from ..privacy.test_receipt import described, schema
from ..privacy.trees import BY_GUESTS, DELTA, EPSILON, event, good, good_rho, receipt, rho_ledger, weigh
from .test_receipt import find, junk


@pytest.mark.parametrize("neighbours", Neighbours)
def test_an_honest_receipt_is_verified(neighbours: Neighbours) -> None:
    verdict = verify_receipt(good_rho(neighbours))
    assert verdict.problems == ()
    assert verdict.status == "verified"
    assert (verdict.epsilon, verdict.delta) == (EPSILON, DELTA)
    assert verdict.spent is not None
    assert Fraction(1) < verdict.spent < Fraction(3)  # two fifths and a little of rho


def test_a_spent_budget_is_verified_to_the_end() -> None:
    ledger = rho_ledger()
    paper = receipt(ledger, epsilon=EPSILON, delta=DELTA)
    rest = ledger.budget - ledger.total
    last = copy.deepcopy(find(paper, "event", -2))
    last |= {"parent": 0, "rho": f"{rest.numerator}/{rest.denominator}", "scale": "1000000000000/1"}
    paper["ledger"]["nodes"].append(last)
    total = f"{ledger.budget.numerator}/{ledger.budget.denominator}"
    paper["ledger"]["total"] = paper["ledger"]["nodes"][0]["total"] = total
    verdict = verify_receipt(paper)
    assert verdict.status == "verified"
    assert verdict.spent is not None
    assert EPSILON - Fraction(1, 10**9) < verdict.spent <= EPSILON


def scaled(node: dict[str, Any], factor: Fraction) -> None:
    scale = Fraction(node["scale"]) * factor
    node["scale"] = f"{scale.numerator}/{scale.denominator}"


MUTANTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a rho too large": (lambda r: r["budget"].update(rho="13609/100000"), "from which only epsilon 3.2"),
    "a rho by far too large": (lambda r: r["budget"].update(rho="9" * 900 + "/1"), "protects nothing"),
    "a smaller epsilon": (lambda r: r.update(epsilon="3/1"), "from which only epsilon"),
    "a smaller delta": (lambda r: r.update(delta="1/10000000000"), "from which only epsilon"),
    "no delta": (lambda r: r.update(delta="0/1"), "budget.factor is None"),
    "a delta that is large": (lambda r: r.update(delta="1/1000"), "delta is 1/1000"),
    "a delta below all": (lambda r: r.update(delta="1/" + "9" * 40), "neither 0/1 nor from"),
    "a negative delta": (lambda r: r.update(delta="-1/1000000000"), "neither 0/1 nor from"),
    "a budget of epsilon": (lambda r: r.update(budget={"add_remove": "8/5", "factor": 2}), "rho is None"),
    "less noise on counts": (lambda r: scaled(find(r, "event", 1), Fraction(99, 100)), "is too small for rho"),
    "less noise on a choice": (lambda r: scaled(find(r, "event", 0), Fraction(99, 100)), "is too small for rho"),
    "less noise on weights": (lambda r: scaled(find(r, "event", 2), Fraction(99, 100)), "is too small for rho"),
    "replaced at the price of one added": (lambda r: scaled(find(r, "event", 2), Fraction(8, 10)), "is too small"),
    "counts of keys said to be additive": (
        lambda r: find(r, "event", 1).update(additive=True),
        "an entity moves what others add",
    ),
    "named rows said to be additive": (
        lambda r: find(r, "event", 2).update(query="weights of #in-degree visit.guest", sensitivity="3145728/1"),
        "an entity moves what others add",
    ),
    "named rows at the price of own ones": (
        lambda r: find(r, "event", 2).update(query="weights of age x #in-degree visit.guest", additive=False),
        "at least 3145728",
    ),
    "additive as a text": (lambda r: find(r, "event", 2).update(additive="yes"), "neither true nor false"),
    "Laplace noise": (lambda r: find(r, "event", 1).update(mechanism="discrete-laplace"), "not one that rho pays for"),
    "as published": (lambda r: find(r, "event", 1).update(mechanism="as-published"), "not one that rho pays for"),
    "an event charged in epsilon": (lambda r: find(r, "event").update(epsilon="1/50", rho=None), "rho is None"),
    "another choice said to be monotone": (
        lambda r: find(r, "event", 3).update(monotone=True),
        "only a choice of rows per entity",
    ),
    "a part of a table": (
        lambda r: r["ledger"]["nodes"].append({**find(good(), "partition"), "parent": 0, "total": "0/1"}),
        "cannot be charged in parallel",
    ),
    "an event left out": (lambda r: r["ledger"]["nodes"].pop(), "adds up to"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_changed_receipt_fails(name: str) -> None:
    change, message = MUTANTS[name]
    paper = good_rho()
    change(paper)
    assert_fails(verify_receipt(paper), message)


def test_noise_for_add_remove_is_too_little_for_replace() -> None:
    paper = good_rho(Neighbours.ADD_REMOVE)
    paper.update(neighbours="replace")
    verdict = verify_receipt(paper)
    assert len([p for p in verdict.problems if "too small for rho" in p]) == 4


def test_keys_are_counted_as_they_are_called() -> None:
    assert find(good_rho(), "event", 1)["query"] == BY_GUESTS
    assert find(good_rho(), "event", 1)["additive"] is False


# -- weights -------------------------------------------------------------------------------------------------------


def unlimited(neighbours: Neighbours = Neighbours.REPLACE) -> dict[str, Any]:
    """A receipt about visits that are counted by weight alone."""
    ledger = Ledger(add_remove_budget(EPSILON, neighbours))
    ledger.root.charge(event("person", Fraction(1, 4)))
    weigh(ledger)
    read: dict[str, Any] = json.loads(json.dumps(receipt(ledger, epsilon=EPSILON, neighbours=neighbours, cap=None)))
    return read


def test_a_table_may_have_no_limit() -> None:
    paper = unlimited()
    assert paper["unit"]["tables"]["visit"]["rows_per_entity"] is None
    assert paper["unit"]["tables"]["visit"]["rows_per_entity_from"] == "none"
    assert verify_receipt(paper).status == "verified"


UNLIMITED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "rows counted": (lambda r: find(r, "event", 1).update(weighted=False), "only weights can be counted"),
    "rows chosen": (lambda r: find(r, "event", 2).update(weighted=False), "only weights can be counted"),
    "no limit from somewhere": (
        lambda r: r["unit"]["tables"]["visit"].update(rows_per_entity_from="declared"),
        "not a positive integer",
    ),
    "a limit from nowhere": (
        lambda r: r["unit"]["tables"]["visit"].update(rows_per_entity=3),
        "not a positive integer",
    ),
    "an entity without limit": (
        lambda r: r["unit"]["tables"]["person"].update(rows_per_entity=None, rows_per_entity_from="none"),
        "one row in its own table",
    ),
    "parted": (
        lambda r: r["ledger"]["nodes"].append(
            {**find(good(), "partition", 1), "parent": 0, "total": "0/1", "rows_per_entity": 3}
        ),
        "the unit says None",
    ),
}


@pytest.mark.parametrize("name", UNLIMITED)
def test_without_a_limit_only_weights_count(name: str) -> None:
    change, message = UNLIMITED[name]
    paper = unlimited()
    change(paper)
    assert_fails(verify_receipt(paper), message)


def test_a_receipt_from_before_weights_is_verified() -> None:
    paper = good()
    paper["unit"].pop("units_per_entity")
    for node in paper["ledger"]["nodes"]:
        node.pop("weighted", None)
    assert verify_receipt(paper).status == "verified"


# -- both ----------------------------------------------------------------------------------------------------------


def test_the_schema_in_the_docs_describes_these_receipts() -> None:
    rules = schema()
    for paper in (good_rho(), good_rho(Neighbours.ADD_REMOVE), unlimited()):
        assert described(paper, rules, rules["$defs"]) == []
    mixed = good_rho()
    mixed["budget"]["factor"] = 2
    assert described(mixed, rules, rules["$defs"])


def test_ledger_and_promise_must_fit() -> None:
    with pytest.raises(ValueError, match="cannot keep a promise"):
        receipt(Ledger(EPSILON / 2, Currency.RHO), epsilon=EPSILON)


GOOD = good_rho()


@settings(max_examples=60)
@given(st.data())
def test_no_receipt_makes_the_verifier_raise(data: st.DataObject) -> None:
    paper: Any = copy.deepcopy(GOOD)
    place = data.draw(st.sampled_from(["delta", "epsilon", "rho", "event", "unit"]))
    holder = {
        "delta": paper,
        "epsilon": paper,
        "rho": paper["budget"],
        "event": find(paper, "event", data.draw(st.integers(0, 3))),
        "unit": paper["unit"],
    }[place]
    key = data.draw(st.sampled_from(sorted(holder))) if place in ("event", "unit") else place
    holder[key] = data.draw(junk | st.sampled_from(["1/" + "9" * 999, "9" * 999 + "/1", "1/999", "0/1", "-1/2"]))
    assert verify_receipt(paper).status in ("verified", "conditional", "unverified", "failed")
