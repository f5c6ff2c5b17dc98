"""The verifier computes the delta of every threshold again, adds them up, and refuses what does not fit."""

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from math import erfc, sqrt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.privacy.domain_vault import DomainVault
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.raw import RawColumn
from privbench.privacy.receipt import open_ledger
from privbench.schema.types import parse_type
from privbench.schema.unit import Neighbours
from privbench_verify.receipt import verify_receipt
from privbench_verify.thresholds import chance_of

from ..failing import assert_fails
from ..privacy.test_receipt import described, schema
from ..privacy.trees import DELTA, EPSILON, receipt

KIND = parse_type("VARCHAR")
PLACE = ("person", "age")
THRESHOLDS = DELTA / 4
Json = dict[str, Any]


def listed(neighbours: Neighbours = Neighbours.REPLACE) -> Json:
    """A receipt of a fit that looked twice for the frequent texts of a column, and did nothing else."""
    ledger = open_ledger(EPSILON, DELTA, neighbours, thresholds=THRESHOLDS)
    data = {PLACE: RawColumn(KIND, pa.array(["a"] * 900, KIND.arrow), np.arange(900))}
    vault = DomainVault({PLACE: KIND}, data, ledger=ledger, entropy=FixedEntropy(1))
    vault.texts(PLACE, amount=ledger.budget / 4)
    vault.frequent(PLACE, amount=ledger.budget / 4)
    vault.frequent(PLACE, without=("a",), amount=ledger.budget / 4)
    made = receipt(ledger, epsilon=EPSILON, delta=DELTA, neighbours=neighbours)
    paper: Json = json.loads(json.dumps(made))
    domains = paper["public"]["domains"]
    for names in domains.values():
        names[:] = [name for name in names if name != "person.age"]
    domains["private"].append("person.age")
    return paper


GOOD = listed()


def event(paper: Json) -> Json:
    """The first look at frequent texts."""
    return next(n for n in paper["ledger"]["nodes"] if n.get("mechanism") == "frequent-values")


def rational(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"


def cheaper(paper: Json) -> None:
    """Say less delta than the threshold costs, in the event and in the sum."""
    less = Fraction(event(paper)["delta"]) / 10
    paper["ledger"]["delta"] = rational(Fraction(paper["ledger"]["delta"]) - 9 * less)
    event(paper)["delta"] = rational(less)


def dearer(paper: Json) -> None:
    """Say a delta for which there is no room."""
    paper["ledger"]["delta"] = rational(Fraction(paper["ledger"]["delta"]) + THRESHOLDS)
    event(paper)["delta"] = rational(Fraction(event(paper)["delta"]) + THRESHOLDS)


def less_noise(paper: Json) -> None:
    event(paper)["scale"] = rational(Fraction(event(paper)["scale"]) / 2)


def many_each(paper: Json) -> None:
    """Let an entity have two values: more noise, the same threshold."""
    event(paper).update(sensitivity="2/1", scale=rational(2 * Fraction(event(paper)["scale"])))


def without_thresholds(paper: Json) -> None:
    """Let texts come out with plain noise, for no delta at all."""
    for node in paper["ledger"]["nodes"]:
        if node.get("mechanism") == "frequent-values":
            node.update(mechanism="discrete-gaussian")
            del node["threshold"], node["delta"]
    del paper["ledger"]["delta"], paper["budget"]["thresholds"]


FORGERIES: dict[str, tuple[Callable[[Json], Any], str]] = {
    "a lower threshold": (lambda r: event(r).update(threshold=event(r)["threshold"] - 1), "is too low for delta"),
    "a threshold that hides nothing": (lambda r: event(r).update(threshold=1), "threshold is 1, not a whole number"),
    "a threshold that is no number": (lambda r: event(r).update(threshold="9"), "threshold is '9'"),
    "no threshold": (lambda r: event(r).pop("threshold"), "threshold is None"),
    "no delta": (lambda r: event(r).pop("delta"), "delta is None, not a rational"),
    "a cheaper delta": (cheaper, "is too low for delta"),
    "more than there is": (dearer, "more than budget.thresholds"),
    "a sum that hides some": (lambda r: r["ledger"].update(delta="1/100000000000"), "thresholds add up to"),
    "no sum": (lambda r: r["ledger"].pop("delta"), "thresholds add up to"),
    "no room said": (lambda r: r["budget"].pop("thresholds"), "more than budget.thresholds"),
    "all of delta": (lambda r: r["budget"].update(thresholds=r["delta"]), "leaves nothing of delta"),
    "more room than the rest allows": (
        lambda r: r["budget"].update(thresholds=rational(DELTA * 9 / 10)),
        "from which only epsilon",
    ),
    "less noise": (less_noise, "is too small for rho"),
    "several values of an entity": (many_each, "each entity has one, which counts 1"),
    "weights": (lambda r: event(r).update(weighted=True), "each entity has one, which counts 1"),
    "several draws": (lambda r: event(r).update(draws=7), "drawn at once"),
    "plain noise on texts that are there": (
        lambda r: event(r).update(mechanism="discrete-gaussian"),
        "has a threshold or a delta, which only frequent-values have",
    ),
    "plain noise for no delta": (without_thresholds, "texts that are there are let out by frequent-values alone"),
    "rows that count as votes": (lambda r: event(r).update(query="histogram of age"), "is no query in which each"),
    "weights that count as votes": (
        lambda r: event(r).update(query="weights of #in-degree a"),
        "is no query in which each",
    ),
    "a search that is not there": (
        lambda r: next(n for n in r["ledger"]["nodes"] if n.get("query") == "texts of age").update(
            query="cells of age"
        ),
        "person.age: its domain is found with budget if",
    ),
}


@pytest.mark.parametrize("neighbours", Neighbours)
def test_an_honest_receipt_is_verified(neighbours: Neighbours) -> None:
    verdict = verify_receipt(listed(neighbours))
    assert verdict.problems == ()
    assert verdict.status == "verified"
    assert verdict.spent is not None
    assert verdict.spent < EPSILON


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_receipt_fails(name: str) -> None:
    change, message = FORGERIES[name]
    paper = copy.deepcopy(GOOD)
    change(paper)
    assert_fails(verify_receipt(paper), message)


def test_the_schema_in_the_docs_describes_these_receipts() -> None:
    rules = schema()
    assert described(GOOD, rules, rules["$defs"]) == []
    paper = copy.deepcopy(GOOD)
    event(paper)["threshold"] = "9"
    assert described(paper, rules, rules["$defs"])


def test_without_a_delta_there_are_no_thresholds() -> None:
    paper = copy.deepcopy(GOOD)
    paper["delta"], paper["budget"] = "0/1", {"add_remove": "1/10", "factor": 2}
    count = next(n for n in paper["ledger"]["nodes"] if n.get("query") == "texts of age")
    count.update(mechanism="discrete-laplace", epsilon="1/10")
    assert any("unknown mechanism 'frequent-values'" in problem for problem in verify_receipt(paper).problems)


def test_no_list_of_texts_with_pure_epsilon() -> None:
    """A receipt that adds up, of a mechanism that cannot be: Laplace noise on texts that are there."""
    paper = copy.deepcopy(GOOD)
    paper["delta"], paper["budget"] = "0/1", {"add_remove": "3/10", "factor": 2}
    paper["ledger"] = {"total": "3/10", "nodes": paper["ledger"]["nodes"]}
    for node in paper["ledger"]["nodes"]:
        if node["kind"] == "sequence":
            node["total"] = "3/10"
            continue
        for name in ("rho", "additive", "threshold", "delta"):
            node.pop(name, None)
        node.update(mechanism="discrete-laplace", epsilon="1/10", scale=rational(10 * Fraction(node["sensitivity"])))
    problems = verify_receipt(paper).problems
    assert len(problems) == 2
    assert all("texts that are there are let out by frequent-values alone" in problem for problem in problems)


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_whatever_the_numbers_are_there_is_a_verdict(data: st.DataObject) -> None:
    paper = copy.deepcopy(GOOD)
    holder = data.draw(st.sampled_from([event(paper), paper["budget"], paper["ledger"]]))
    key = data.draw(st.sampled_from([k for k in ("threshold", "delta", "thresholds", "scale") if k in holder]))
    huge = st.integers(1, 10**400)
    holder[key] = data.draw(
        st.one_of(st.none(), st.integers(-(2**70), 2**70), st.builds(lambda a, b: f"{a}/{b}", huge, huge))
    )
    assert verify_receipt(paper).status in ("verified", "failed")


def test_the_chance_of_the_verifier_is_a_bound() -> None:
    """By Gaussian integrals: for large noise the sums are close to them, and the bound is above."""

    for deviations in (2, 5, 7):
        found = float(chance_of(Fraction(10**6), deviations * 10**6 + 1))
        assert erfc(deviations / sqrt(2)) / 2 < found < 1.3 * erfc(deviations / sqrt(2)) / 2
