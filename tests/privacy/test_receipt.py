"""What a receipt says beside its numbers: who is protected, what is public, on what it depends."""

import copy
import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from privbench.privacy.receipt import (
    AS_PUBLISHED,
    NOT_PRIVATE,
    ORPHANS,
    REFERENCES,
    PublicFacts,
    make_receipt,
    open_ledger,
)
from privbench.schema.domain import Origin
from privbench.schema.unit import Neighbours
from privbench_verify.receipt import verify_receipt

from ..verify.test_schema import RULES, fits
from .trees import DELTA, EPSILON, good, good_rho, protection, receipt, spent_ledger

NOTHING_PUBLIC = PublicFacts(
    domains={}, sizes={}, rows_per_entity={"visit": 3}, declared_caps=[], orphans="error", parameters={}
)


def test_replace_halves_the_budget() -> None:
    assert open_ledger(Fraction(16, 5), Fraction(0), Neighbours.REPLACE).budget == Fraction(8, 5)
    assert open_ledger(Fraction(16, 5), Fraction(0), Neighbours.ADD_REMOVE).budget == Fraction(16, 5)


def test_a_ledger_keeps_a_promise_in_its_own_measure() -> None:
    for ledger, delta in ((spent_ledger(), DELTA), (open_ledger(EPSILON, DELTA, Neighbours.REPLACE), Fraction(0))):
        with pytest.raises(ValueError, match="cannot keep a promise"):
            make_receipt(
                protection=protection(),
                facts=NOTHING_PUBLIC,
                epsilon=EPSILON,
                delta=delta,
                ledger=ledger,
                private_noise=True,
                software="privbench 0",
                coins=(1, 2),
            )


def test_the_condition_names_the_domains_that_came_from_the_data() -> None:
    paper = good(origin=Origin.DATA)
    assert paper["condition"] == "epsilon holds given that these domains are public: visit.cost"
    assert {"table": "visit", "column": "cost", "origin": "data"} in paper["public"]["domains"]
    assert good()["condition"] is None


def test_who_is_protected() -> None:
    paper = good()
    assert (paper["unit"]["entity"], paper["unit"]["weight"]) == ("person", 2**20)
    assert paper["unit"]["tables"] == {
        "person": {
            "role": "entity",
            "owner": None,
            "key": None,
            "rows_per_entity": 1,
            "rows_per_entity_from": "derived",
        },
        "visit": {
            "role": "owned",
            "owner": "person",
            "key": ["person"],
            "rows_per_entity": 3,
            "rows_per_entity_from": "chosen",
        },
    }
    guest = {"table": "visit", "columns": ["guest"], "target": "person"}
    assert paper["references"] == {"note": REFERENCES, "keys": [guest]}
    assert paper["public"]["tables"] == ["town"]
    assert paper["budget"] == {"measure": "epsilon", "amount": "8/5"}
    assert good_rho()["budget"].keys() == {"measure", "amount", "thresholds"}


def test_what_orphans_mean() -> None:
    assert (good()["public"]["orphans"], good()["public"]["orphans_note"]) == ("error", None)
    public = good(orphans="null")["public"]
    assert (public["orphans"], public["orphans_note"]) == ("null", ORPHANS)


def test_stamps() -> None:
    assert (good()["stamp"], good()["noise"]) == (None, "operating system")
    tried = good(private_noise=False)
    assert (tried["stamp"], tried["noise"]) == (NOT_PRIVATE, "test")
    assert NOT_PRIVATE.startswith("not private: ")
    assert AS_PUBLISHED == "as published: the claim was not verified"


def test_there_is_no_float_and_json_keeps_it_all() -> None:
    made = receipt(spent_ledger(), epsilon=EPSILON)
    text = json.dumps(made)
    assert json.loads(text) == made
    assert json.loads(text, parse_float=lambda x: f"float {x}") == made
    assert made["public"]["parameters"] == {"method": "paper", "alpha": "0.5", "beta": 10_000}


PAPERS = {
    "epsilon, replace": good,
    "epsilon, add-remove": lambda: good(Neighbours.ADD_REMOVE),
    "rho, replace": good_rho,
    "rho, add-remove": lambda: good_rho(Neighbours.ADD_REMOVE),
}


@pytest.mark.parametrize("name", PAPERS)
def test_what_is_written_verifies_and_is_what_the_docs_describe(name: str) -> None:
    verdict = verify_receipt(PAPERS[name]())
    assert (verdict.status, verdict.problems) == ("verified", ())
    assert fits(PAPERS[name](), RULES)


def test_the_docs_describe_conditions_and_stamps_too() -> None:
    for paper in (good(origin=Origin.DATA), good(orphans="null"), good(private_noise=False)):
        assert fits(paper, RULES)


def tampered(paper: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each event with a sensitivity of one less, with less noise, or for less: claims that brute force would refute."""
    for at, node in enumerate(paper["ledger"]["nodes"]):
        if node["kind"] != "event":
            continue
        for field in ("sensitivity", "scale"):
            less = Fraction(node[field]) - (1 if field == "sensitivity" else Fraction(node[field]) / 100)
            if less > 0:
                changed = copy.deepcopy(paper)
                changed["ledger"]["nodes"][at][field] = f"{less.numerator}/{less.denominator}"
                yield f"{node['query']['kind']}: {field}", changed


@pytest.mark.parametrize("name", PAPERS)
def test_one_unit_less_than_brute_force_finds_does_not_verify(name: str) -> None:
    seen = set()
    for what, paper in tampered(PAPERS[name]()):
        assert verify_receipt(paper).status == "failed", what
        seen.add(what)
    assert {"choice of cap: scale", "histogram: sensitivity", "histogram: scale"} <= seen
