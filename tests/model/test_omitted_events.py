"""No event can be left out of a receipt: what the others are said to cost would not fit the budget any more."""

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from privbench.errors import ModelError, SpecError
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.methods.tree.columns import own_features
from privbench.methods.tree.plan import total_amounts
from privbench.methods.tree.settings import tree_settings
from privbench.model.facts import public_facts
from privbench.model.file import load_model, save_model
from privbench.model.model import Model
from privbench.model.receipt_check import verify_model
from privbench.model.verify import verify

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


# -- with the parts of tables in the spec made to fit ------------------------------------------------------------------


def with_parts(model: Model) -> Model:
    """The model with a spec that gives each table just what the events that are left cost there."""
    rows = {name: model.receipt["public"]["sizes"].get(name, 0) for name in model.protection.order}
    facts = public_facts(model.spec, model.protection, model.codecs, rows, public_sizes=False)
    nodes, budget = model.receipt["ledger"]["nodes"], Fraction(model.receipt["budget"]["amount"])
    charged = {n["label"].removeprefix("table "): Fraction(n["total"]) for n in nodes[1:] if n.get("label")}
    totals = total_amounts(facts, budget=budget)
    parts = {
        table: float(charged[table] - totals.get(table, 0)) / math.sqrt(len(own_features(facts, table)))
        for table in facts.tables
    }
    tables = {
        name: table.model_copy(update={"budget": parts[name] / max(parts.values())}) if name in parts else table
        for name, table in model.spec.tables.items()
    }
    spec = model.spec.model_copy(update={"tables": tables})
    return replace(model, spec=spec)


def test_parts_of_tables_cannot_be_made_to_fit_what_is_left(forum: Fitted, tmp_path: Path) -> None:
    """Each event left out in turn, with parts to the last digit: the tables' sums fit, but a spec has no such parts."""
    model = forum()
    forgeries = [with_parts(without(model, at)) for at in events_of(model)]
    fitting = [forged for forged in forgeries if verify_model(forged).status != "failed"]
    assert fitting, "the forgery must be one that sums do not tell"
    for forged in fitting:
        save_model(forged, tmp_path / "forged.model", force=True)
        for read in (load_model, verify):
            with pytest.raises(ModelError, match=r"budget is 0\.\d+: it has at most three digits"):
                read(tmp_path / "forged.model")


def test_settings_of_the_spec_are_those_of_the_receipt(forum: Fitted) -> None:
    """Shares of a table's budget say what its first histograms cost: they cannot be changed in the spec alone."""
    model = forum()
    other = model.spec.model_copy(update={"method": {"name": "tree", "single_share": 0.5}})
    assert_fails(verify_model(replace(model, spec=other)), "public.parameters is not what the model's spec says")
    with pytest.raises(SpecError, match=r"single_share is 0\.33333: it has at most three decimals"):
        tree_settings({"single_share": 0.33333})
