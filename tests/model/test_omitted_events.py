"""No event can be left out of a receipt: what the others are said to cost would not fit the budget any more."""

import copy
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.model.model import Model
from privbench.model.receipt_check import verify_model

from ..audit.forums import CHOICES, write_forums
from ..e2e import shapes
from ..failing import assert_fails
from ..forging import take_out
from ..seeded import SeededEntropy
from ..verify.receipts import rational, settle

Receipt = dict[str, Any]
Fitted = Callable[..., Model]


@pytest.fixture(scope="module")
def forum(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    """A small forum: hubs, chains, NULL owners, references of every kind, and sizes that are counted."""
    source = write_forums(tmp_path_factory.mktemp("forum"), seed=3, users=40, replaced=True).one

    @cache
    def fitted(*, delta: str = "0", neighbours: str = "replace") -> Model:
        spec = draft(source, neighbours=neighbours, **CHOICES)
        return fit(spec, epsilon="60", delta=delta, entropy=SeededEntropy(2))

    return fitted


def events_of(model: Model) -> list[int]:
    return [at for at, node in enumerate(model.receipt["ledger"]["nodes"]) if node["kind"] == "event"]


def without(model: Model, *gone: int, lowered: bool = True) -> Model:
    """The model with a receipt that adds up without some events, of a budget and an epsilon that are lower by them."""
    receipt = copy.deepcopy(model.receipt)
    nodes, measure = receipt["ledger"]["nodes"], receipt["budget"]["measure"]
    saved = sum(Fraction(nodes[at][measure]) for at in gone)
    take_out(receipt["ledger"], [nodes[at] for at in gone])
    settle(receipt)
    if lowered:
        left = Fraction(receipt["budget"]["amount"]) - saved
        receipt["budget"]["amount"] = rational(left)
        if measure == "epsilon":
            receipt["epsilon"] = rational(left * (2 if receipt["neighbours"] == "replace" else 1))
    return replace(model, receipt=receipt)


def omittable(model: Model, *, lowered: bool = True) -> list[str]:
    """The queries of events without any one of which the receipt still verifies."""
    assert verify_model(model).status in ("verified", "unverified", "conditional")
    nodes = model.receipt["ledger"]["nodes"]
    return [
        str(nodes[at]["query"])
        for at in events_of(model)
        if verify_model(without(model, at, lowered=lowered)).status != "failed"
    ]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_no_event_of_a_rich_model_can_be_left_out(forum: Fitted, delta: str, neighbours: str) -> None:
    model = forum(delta=delta, neighbours=neighbours)
    kinds = {axis["feature"]["kind"] for at in events_of(model) for axis in _axes(model, at)}
    assert {"null key", "own key", "fanout", "in-degree"} <= kinds
    assert any(_axes(model, at) == [] for at in events_of(model)), "some size must have been counted"
    assert omittable(model) == []


def _axes(model: Model, at: int) -> list[dict[str, Any]]:
    axes: list[dict[str, Any]] = model.receipt["ledger"]["nodes"][at]["query"].get("axes", [{"feature": {"kind": ""}}])
    return axes


def test_no_event_can_be_left_out_without_lowering_the_budget(forum: Fitted) -> None:
    assert omittable(forum(), lowered=False) == []


def test_nor_can_all_sizes_and_second_measurements(forum: Fitted) -> None:
    """What the structure of the tables does not tell, all at once."""
    model = forum(delta="1e-6")
    nodes, seen, gone = model.receipt["ledger"]["nodes"], set[str](), list[int]()
    for at in events_of(model):
        query = str(nodes[at]["query"])
        if query in seen or _axes(model, at) == []:
            gone.append(at)
        seen.add(query)
    assert_fails(verify_model(without(model, *gone)), "costs what the first one does of this budget")


@pytest.mark.parametrize(
    ("shape", "delta", "domains"),
    [
        (shapes.SINGLE, "0", "data"),
        (shapes.PARENT_CHILD, "1e-6", "private"),
        (shapes.DIAMOND, "0", "private"),
        (shapes.SEASONS, "0", "data"),
        (shapes.JUNCTION, "0", "data"),
    ],
    ids=["one table", "strings", "private domains", "lists", "keys alone"],
)
def test_no_event_of_other_shapes_can_be_left_out(
    shape: shapes.Shape, delta: str, domains: str, tmp_path: Path
) -> None:
    spec = draft(shape.write(tmp_path / "source"), domains=domains, **shape.choices)
    assert omittable(fit(spec, epsilon="40", delta=delta, entropy=SeededEntropy(2))) == []


def test_charges_of_another_version_are_not_compared_and_it_is_said(forum: Fitted) -> None:
    model = forum()
    older = replace(model, receipt={**model.receipt, "software": "privbench 0.1.0"})
    assert not any("not compared" in line for line in verify_model(model).assumptions)
    assert any('"privbench 0.1.0" wrote it' in line for line in verify_model(older).assumptions)


def test_a_budget_that_no_plan_fits_is_a_problem_not_a_crash(forum: Fitted) -> None:
    model = forum()
    huge = {**model.receipt, "epsilon": f"{10**320}/1", "budget": {"measure": "epsilon", "amount": f"{10**320 // 2}/1"}}
    assert_fails(verify_model(replace(model, receipt=huge)), "none that method tree could have planned with")
