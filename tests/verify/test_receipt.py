import ast
import copy
import json
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.privacy.blocks import Boxes
from privbench.privacy.events import Event, Mechanism
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy
from privbench.privacy.receipt import AS_PUBLISHED, NOT_PRIVATE
from privbench.schema.domain import Origin
from privbench.schema.unit import Neighbours
from privbench_verify import events as verify_events
from privbench_verify import read as verify_read
from privbench_verify import receipt as verify
from privbench_verify import thresholds as verify_thresholds
from privbench_verify import tree as verify_tree
from privbench_verify import zcdp as verify_zcdp
from privbench_verify.receipt import verify_receipt

from ..failing import assert_fails
from ..privacy.trees import EPSILON, Step, event, follow, good, receipt, spent_ledger, walks


def find(paper: dict[str, Any], kind: str, at: int = 0) -> dict[str, Any]:
    """The node of that kind, counting from 0 (or from the end)."""
    found: list[dict[str, Any]] = [node for node in paper["ledger"]["nodes"] if node["kind"] == kind]
    return found[at]


def test_an_honest_receipt_is_verified() -> None:
    verdict = verify_receipt(good())
    assert verdict.problems == ()
    assert verdict.status == "verified"
    assert verdict.epsilon == EPSILON
    assert verdict.spent == 2 * spent_ledger().total


def test_add_remove_costs_once() -> None:
    ledger = spent_ledger(Neighbours.ADD_REMOVE)
    verdict = verify_receipt(receipt(ledger, epsilon=EPSILON, neighbours=Neighbours.ADD_REMOVE))
    assert verdict.status == "verified"
    assert verdict.spent == ledger.total


def test_domains_from_the_data_make_it_conditional() -> None:
    verdict = verify_receipt(good(origin=Origin.DATA))
    assert verdict.status == "conditional"
    assert verdict.condition == "epsilon holds given that these domains are public: visit.cost"


def test_a_test_source_is_stamped_and_never_verified() -> None:
    paper = good(entropy=TestEntropy(1))
    assert paper["stamp"] == NOT_PRIVATE
    assert verify_receipt(paper).status == "unverified"
    paper["stamp"] = None
    assert verify_receipt(paper).status == "failed"


def test_a_claim_as_published_is_stamped_and_never_verified() -> None:
    ledger = spent_ledger()
    facts = {"query": "row split", "table": "person", "amount": Fraction(1, 8), "draws": 5}
    ledger.root.charge(
        Event(mechanism=Mechanism.AS_PUBLISHED, sensitivity=Fraction(9), scale=Fraction(1), **facts)  # type: ignore[arg-type]
    )
    paper = receipt(ledger, epsilon=EPSILON)
    assert paper["stamp"] == AS_PUBLISHED
    verdict = verify_receipt(paper)
    assert verdict.status == "unverified"
    assert verdict.spent == 2 * ledger.total
    assert verify_receipt({**paper, "stamp": None}).status == "failed"


Change = Callable[[dict[str, Any]], Any]
MUTANTS: dict[str, tuple[Change, str]] = {
    "epsilon of an event lowered": (lambda r: find(r, "event", 1).update(epsilon="1/8"), "too small for epsilon"),
    "epsilon of an event raised": (lambda r: find(r, "event", 1).update(epsilon="1/3"), "adds up to"),
    "epsilon of an event negative": (lambda r: find(r, "event").update(epsilon="-1/8"), "not positive"),
    "promised epsilon lowered": (lambda r: r.update(epsilon="31/10"), "more than epsilon"),
    "budget raised": (lambda r: r["budget"].update(add_remove="9/5"), "more than epsilon"),
    "budget below what was spent": (lambda r: r["budget"].update(add_remove="1/10"), "more than budget.add_remove"),
    "wrong factor for replace": (lambda r: r["budget"].update(factor=1), "budget.factor is 1"),
    "factor is true": (lambda r: r["budget"].update(factor=True), "budget.factor is True"),
    "neighbours changed": (lambda r: r.update(neighbours="add-remove"), "budget.factor is 2"),
    "neighbours unknown": (lambda r: r.update(neighbours="bounded"), "neither 'replace' nor"),
    "delta": (lambda r: r.update(delta="1/1000000"), "rho is None"),
    "weights inside a block": (
        lambda r: find(r, "event", 1).update(weighted=True, sensitivity="1048576/1", scale="4194304/1"),
        "weights are counted inside a block of person",
    ),
    "weighted as a text": (lambda r: find(r, "event").update(weighted="yes"), "neither true nor false"),
    "weights of less than an entity": (
        lambda r: find(r, "event").update(weighted=True, query="choice", sensitivity="1048575/1", scale="104857500/1"),
        "not a whole number of at least 1048576",
    ),
    "weights in other units": (lambda r: r["unit"].update(units_per_entity=1), "is 1, not 1048576"),
    "weights in no units": (
        lambda r: [r["unit"].pop("units_per_entity"), find(r, "event").update(weighted=True)],
        "does not say how much an entity weighs",
    ),
    "version": (lambda r: r.update(version=2), "version 2"),
    "scale too small": (lambda r: find(r, "event", 2).update(scale="199/100"), "too small for epsilon"),
    "scale zero": (lambda r: find(r, "event", 2).update(scale="0/1"), "not positive"),
    "missing factor 2 of a choice": (lambda r: find(r, "event").update(scale="151/1"), "too small for epsilon"),
    "monotone as a text": (lambda r: find(r, "event").update(scale="151/1", monotone="yes"), "too small"),
    "several choices in one event": (lambda r: find(r, "event").update(draws=2), "a choice once"),
    "sensitivity raised": (lambda r: find(r, "event", 2).update(sensitivity="2/1"), "too small for epsilon"),
    "sensitivity of one row only": (lambda r: find(r, "event", 3).update(sensitivity="1/1"), "whole multiple of the 3"),
    "a number as a float": (lambda r: find(r, "event").update(draws=1.0), "is a float"),
    "a float among the parameters": (lambda r: r["public"]["parameters"].update(alpha=0.5), "is a float"),
    "a rational as a decimal": (lambda r: find(r, "event").update(scale="150.5"), "not a rational"),
    "a rational without denominator": (lambda r: r.update(epsilon="3"), "not a rational"),
    "a denominator of zero": (lambda r: r.update(epsilon="3/0"), "not a rational"),
    "overlapping boxes": (lambda r: find(r, "part", 1).update(box={"age": [[4, 9]]}), "overlap"),
    "boxes over different columns": (lambda r: find(r, "part", 1).update(box={"sex": [[5, 9]]}), "overlap"),
    "an empty box": (lambda r: find(r, "part", 1).update(box={"age": []}), "no codes"),
    "intervals out of order": (lambda r: find(r, "part").update(box={"age": [[3, 4], [0, 1]]}), "do not ascend"),
    "a part without box": (lambda r: find(r, "part").pop("box"), "no box"),
    "a centre used twice": (lambda r: find(r, "part", 3).update(centre="0"), "distinct labels"),
    "a centre that is not listed": (lambda r: find(r, "part", 3).update(centre="2"), "distinct labels"),
    "two centres of one label": (lambda r: find(r, "partition", 1)["centres"][1].update(label="0"), "distinct labels"),
    "a centre without place": (lambda r: find(r, "partition", 1)["centres"][0].pop("at"), "not an object"),
    "a centre without coordinates": (lambda r: find(r, "partition", 1)["centres"][0].update(at={}), "no coordinates"),
    "parted by something else": (lambda r: find(r, "partition").update(by="rows"), "neither 'boxes' nor"),
    "other rows per entity": (lambda r: find(r, "partition", 1).update(rows_per_entity=1), "but the unit says 3"),
    "an unknown table": (lambda r: find(r, "event").update(table="town"), "no table of the unit"),
    "another table in a block": (lambda r: find(r, "event", 1).update(table="visit"), "inside a block of person"),
    "an unknown mechanism": (lambda r: find(r, "event").update(mechanism="gaussian"), "unknown mechanism"),
    "an unknown kind": (lambda r: find(r, "event").update(kind="gift"), "unknown kind"),
    "a dropped last event": (lambda r: r["ledger"]["nodes"].pop(), "adds up to"),
    "a dropped first event": (lambda r: r["ledger"]["nodes"].pop(1), "node"),
    "a repeated event": (lambda r: r["ledger"]["nodes"].append(find(r, "event")), "adds up to"),
    "wrong total of the ledger": (lambda r: r["ledger"].update(total="1/2"), "ledger.total is 1/2"),
    "wrong total of a node": (lambda r: find(r, "part").update(total="1/2"), "adds up to 1/4"),
    "a sequence made parallel": (lambda r: find(r, "sequence", 1).update(kind="partition"), "cannot stand below"),
    "a parent that comes later": (lambda r: find(r, "event").update(parent=5), "does not come before"),
    "no root": (lambda r: r["ledger"]["nodes"][0].update(parent=0), "not the root"),
    "no nodes": (lambda r: r["ledger"].update(nodes=[]), "not a list of nodes"),
    "a condition withheld": (lambda r: r["public"]["domains"].update(data=["visit.cost"]), "condition is None"),
    "sensitivity of less than a row": (
        lambda r: find(r, "event", 1).update(sensitivity="1/1000", scale="1/1"),
        "not a whole number of at least 1",
    ),
    "sensitivity not whole": (
        lambda r: find(r, "event", 0).update(sensitivity="7/2", scale="1000/1"),
        "not a whole number of at least 3",
    ),
    "sensitivity below the rows outside parts": (
        lambda r: find(r, "event").update(query="column split", sensitivity="1/1"),
        "not a whole number of at least 3",
    ),
    "another choice said to be monotone": (
        lambda r: find(r, "event").update(query="column split", monotone=True),
        "only a choice of rows per entity",
    ),
    "counts said to be monotone": (lambda r: find(r, "event", 1).update(monotone=True), "only a choice of rows per"),
    "boxes over a column that is not there": (
        lambda r: [p.update(box={"no such": p["box"]["age"]}) for p in (find(r, "part"), find(r, "part", 1))],
        "parted by no such, which has no public domain",
    ),
    "boxes over a column of another table": (
        lambda r: [p.update(box={"cost": p["box"]["age"]}) for p in (find(r, "part"), find(r, "part", 1))],
        "parted by cost, which has no public domain",
    ),
    "centres over a column that is not there": (
        lambda r: [c.update(at={"no such": [1]}) for c in find(r, "partition", 1)["centres"]],
        "parted by no such, which has no public domain",
    ),
    "as published without stamp": (lambda r: r["public"]["parameters"].update(as_published=True), "says as_published"),
    "as published as a text": (lambda r: r["public"]["parameters"].update(as_published="true"), "says as_published"),
    "a stamp that is no text": (lambda r: r.update(stamp=False), "neither null nor a text"),
    "add-remove with a public size": (
        lambda r: r.update(neighbours="add-remove", budget={"add_remove": "8/5", "factor": 1}),
        "sizes and keys must be empty",
    ),
    "add-remove with public keys": (
        lambda r: [
            r.update(neighbours="add-remove", budget={"add_remove": "8/5", "factor": 1}),
            r["public"].update(sizes={}, keys=["person(id)"]),
        ],
        "sizes and keys must be empty",
    ),
    "a size that is no number": (lambda r: r["public"]["sizes"].update(person="many"), "public.sizes"),
    "domains withheld": (lambda r: r["public"]["domains"].pop("declared"), "public.domains.declared"),
    "an entity of several rows": (
        lambda r: r["unit"]["tables"]["person"].update(rows_per_entity=2),
        "one row in its own table",
    ),
    "no entity": (lambda r: r["unit"].update(entity="town"), "no table of the unit"),
    "another entity": (lambda r: r["unit"].update(entity="visit"), "but the entity table is visit"),
    "rows per entity without a number": (
        lambda r: r["unit"]["tables"]["visit"].update(rows_per_entity=None),
        "not a positive integer",
    ),
    "rows per entity from nowhere": (
        lambda r: r["unit"]["tables"]["visit"].pop("rows_per_entity_from"),
        "not a positive integer",
    ),
    "chosen rows per entity said to be declared": (
        lambda r: r["unit"]["tables"]["visit"].update(rows_per_entity_from="declared"),
        "if and only if an event pays",
    ),
    "chosen rows per entity without an event": (
        lambda r: find(r, "event").update(query="column split"),
        "if and only if an event pays",
    ),
    "rows per entity said to be derived": (
        lambda r: r["unit"]["tables"]["visit"].update(rows_per_entity_from="derived"),
        "is not its owner's",
    ),
    "noise of unknown source": (lambda r: r.update(noise="dice"), "noise is 'dice'"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_changed_receipt_fails(name: str) -> None:
    change, message = MUTANTS[name]
    paper = good()
    change(paper)
    assert_fails(verify_receipt(paper), message)


def test_a_monotone_choice_of_rows_per_entity_counts_entities() -> None:
    paper = good()
    find(paper, "event").update(monotone=True, sensitivity="1/1")
    assert verify_receipt(paper).status == "verified"


@pytest.mark.parametrize(
    ("query", "least"),
    [
        ("rows of person by number of visit.person", 1),
        ("rows of person by number of visit.guest", 1 + 2 * 3),
        ("rows of visit by number of visit.previous", 3 + 2 * 3),
        ("rows of person", 3),
    ],
)
def test_rows_by_number_of_keys_move_with_both_tables(query: str, least: int) -> None:
    for sensitivity, status in ((least, "verified"), (least - 1, "failed")):
        paper = good()
        spare = Fraction(100 * least)
        node = {**find(paper, "event"), "mechanism": "discrete-laplace", "query": query, "epsilon": "1/8"}
        node |= {"sensitivity": f"{sensitivity}/1", "scale": f"{spare}/1", "parent": 0}
        paper["ledger"]["nodes"].append(node)
        total = Fraction(paper["ledger"]["total"]) + Fraction(1, 8)
        paper["ledger"]["total"] = paper["ledger"]["nodes"][0]["total"] = f"{total.numerator}/{total.denominator}"
        assert verify_receipt(paper).status == status


def test_a_box_outside_the_block_fails() -> None:
    ledger = Ledger(EPSILON / 2)
    outer = Boxes(table="person", rows_per_entity=1, boxes=({"age": ((0, 4),)},))
    inner = Boxes(table="person", rows_per_entity=1, boxes=({"age": ((2, 3),)},))
    ledger.root.partition("outer", outer, 1)[0].sequential("leaf").partition("inner", inner, 1)
    paper = receipt(ledger, epsilon=EPSILON)
    assert verify_receipt(paper).status == "verified"
    find(paper, "part", 1)["box"] = {"age": [[3, 5]]}
    assert "reaches outside" in verify_receipt(paper).problems[0]
    find(paper, "part", 1)["box"] = {"sex": [[0, 0]]}
    assert "reaches outside" in verify_receipt(paper).problems[0]
    find(paper, "part", 1)["box"] = {"age": [[2, 3]]}
    find(paper, "partition", 1).update(table="visit", rows_per_entity=3)
    assert "parts visit inside a block of person" in verify_receipt(paper).problems[0]


@given(walks)
def test_ledger_and_verifier_agree(walk: list[Step]) -> None:
    ledger = Ledger(Fraction(7, 10))
    list(follow(ledger, walk))
    verdict = verify_receipt(receipt(ledger, epsilon=Fraction(7, 5)))
    assert verdict.problems == ()
    assert verdict.spent == 2 * ledger.total


def test_a_deep_tree_is_no_trouble() -> None:
    ledger = Ledger(EPSILON / 2)
    scope = ledger.root
    for _ in range(5_000):
        scope = scope.sequential("deeper")
    scope.charge(event("person", Fraction(1, 8)))
    paper = json.loads(json.dumps(receipt(ledger, epsilon=EPSILON)))
    assert verify_receipt(paper).spent == Fraction(1, 4)


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from(["1/2", "event", "part"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60)
@given(st.data())
def test_no_receipt_makes_the_verifier_raise(data: st.DataObject) -> None:
    paper: Any = copy.deepcopy(GOOD)
    holder, key = paper, ""
    for _ in range(data.draw(st.integers(1, 5))):
        inside = holder if isinstance(holder, dict) else dict(enumerate(holder))
        key = data.draw(st.sampled_from(sorted(inside, key=str)))
        if not isinstance(inside[key], dict | list) or not inside[key]:
            break
        holder, last = inside[key], holder
    else:
        holder = last
    holder[key] = data.draw(junk)
    assert verify_receipt(paper).status in ("verified", "conditional", "unverified", "failed")


GOOD = good()


@pytest.mark.parametrize("paper", [None, [], "receipt", 3, {}])
def test_what_is_no_receipt_fails(paper: object) -> None:
    assert verify_receipt(paper).status == "failed"


VERIFIER = [verify, verify_events, verify_read, verify_thresholds, verify_tree, verify_zcdp]


@pytest.mark.parametrize("module", VERIFIER)
def test_the_verifier_stands_alone(module: ModuleType) -> None:
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert all(node.level == 0 for node in imports if isinstance(node, ast.ImportFrom))
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in imports if isinstance(node, ast.ImportFrom)}
    others = names - {other.__name__ for other in VERIFIER}
    assert others
    assert {name.partition(".")[0] for name in others} <= sys.stdlib_module_names
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & {"__import__", "eval", "exec", "compile"}
