"""Models that hold more than their receipts account for, or whose receipts claim what their methods never do."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.methods.method import TableModel
from privbench.model.model import Model
from privbench.model.receipt_check import verify_model
from privbench.schema.domain import Bins
from privbench.spn.clique import CliqueTree
from privbench.spn.feature_names import COMPONENT
from privbench.spn.nodes import Leaf, Product, Sum, walk

from ..failing import assert_fails
from ..forging import settle, write_shop
from ..seeded import SeededEntropy

DDL = """CREATE TABLE person (id INTEGER PRIMARY KEY, a SMALLINT NOT NULL CHECK (a BETWEEN 0 AND 5),
  b SMALLINT NOT NULL CHECK (b BETWEEN 0 AND 5), pay BIGINT NOT NULL);
CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person (id),
  c SMALLINT NOT NULL CHECK (c BETWEEN 0 AND 5));"""
PERSONS = 400
Receipt = dict[str, Any]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    rng = np.random.default_rng(4)
    persons = [
        f"{i},{a},{a},{100 * int(p) if p else 77_777}" for i, (a, p) in enumerate(rng.integers(0, 6, (PERSONS, 2)))
    ]
    visits = [
        f"{i},{p},{c}"
        for i, (p, c) in enumerate(zip(rng.integers(0, PERSONS, 900), rng.integers(0, 6, 900), strict=True))
    ]
    source = write_shop(
        tmp_path_factory.mktemp("unaccounted") / "source",
        DDL,
        person="\n".join(["id,a,b,pay", *persons]),
        visit="\n".join(["id,person_id,c", *visits]),
    )
    spec = draft(source, unit="person")
    return {
        method: fit(spec, epsilon="4000", method=method, entropy=SeededEntropy(3))
        for method in ("tree", "paper", "independent")
    }


@pytest.mark.parametrize("method", ["tree", "paper", "independent"])
def test_an_honest_model_is_verified(models: dict[str, Model], method: str) -> None:
    assert verify_model(models[method]).status == "verified"


def with_receipt(model: Model, change: Callable[[Receipt], None]) -> Model:
    receipt = copy.deepcopy(model.receipt)
    change(receipt)
    return replace(model, receipt=settle(receipt))


def with_network(model: Model, table: str, change: Callable[[TableModel], TableModel]) -> Model:
    return replace(model, tables={**model.tables, table: change(model.tables[table])})


def test_a_limit_of_rows_is_derived_only_where_an_owner_has_one_row(models: dict[str, Model]) -> None:
    def derive(receipt: Receipt) -> None:
        receipt["unit"]["tables"]["visit"] |= {"rows_per_entity": 1, "rows_per_entity_from": "derived"}
        nodes = receipt["ledger"]["nodes"]
        for node in nodes:
            if node["kind"] == "event" and node["query"]["kind"] == "choice of cap":
                node["query"] = {"kind": "histogram", "table": "person", "counts": "rows", "axes": []}
                node["mechanism"] = "discrete-laplace"
            if node["kind"] == "event" and node["query"]["table"] == "visit" and node["query"].get("counts") == "rows":
                node["sensitivity"] = "1/1"
            if node["kind"] == "event" and any(a["feature"]["kind"] == "fanout" for a in node["query"].get("axes", ())):
                node["sensitivity"] = "1/1"

    assert_fails(verify_model(with_receipt(models["independent"], derive)), "said to be its owner's")


def test_a_method_that_splits_no_rows_charges_no_partition(models: dict[str, Model]) -> None:
    model = models["independent"]
    cap = model.receipt["unit"]["tables"]["visit"]["rows_per_entity"]

    def part(receipt: Receipt) -> None:
        nodes = receipt["ledger"]["nodes"]
        queries = {i: node["query"] for i, node in enumerate(nodes) if node["kind"] == "event"}
        at = next(i for i, query in queries.items() if query["table"] == "visit" and query.get("axes"))
        receipt["epsilon"], receipt["budget"]["amount"] = "40000/1", "20000/1"
        columns = {"c": [0]}, {"c": [9]}
        centres = [{"label": str(i), "at": at_} for i, at_ in enumerate(columns)]
        start = len(nodes)
        nodes += [
            {"kind": "partition", "parent": 0, "label": "made up", "table": "visit", "rows_per_entity": cap}
            | {"by": "centres", "centres": centres, "total": "0/1"},
            {"kind": "part", "parent": start, "centre": "0", "total": "0/1"},
            {**copy.deepcopy(nodes[at]), "parent": start + 1},
        ]

    assert_fails(verify_model(with_receipt(model, part)), "partitions are charged in parallel")


def test_heavy_hitters_are_looked_for(models: dict[str, Model]) -> None:
    model = models["tree"]
    domain = model.spec.column("person", "pay").domain
    assert isinstance(domain, Bins)
    assert domain.heavy_hitters, "the made database must have some"

    def forget(receipt: Receipt) -> None:
        for node in receipt["ledger"]["nodes"]:
            if node["kind"] == "event" and node["query"]["kind"] == "heavy hitters":
                node["query"] = {"kind": "histogram", "table": "person", "counts": "weights", "axes": []}
                node["draws"] = 1

    assert_fails(verify_model(with_receipt(model, forget)), "no event looked for any")


@pytest.mark.parametrize("method", ["tree", "independent"])
def test_mixtures_are_the_papers_alone(models: dict[str, Model], method: str) -> None:
    def mix(table: TableModel) -> TableModel:
        leaf = table.network
        plain = Product(children=tuple(Leaf(column=c, counts=np.ones(n)) for c, n in leaf.sizes.items()))
        return replace(table, network=Sum(children=(plain, plain), weights=np.array([0.5, 0.5])))

    assert_fails(verify_model(with_network(models[method], "person", mix)), "never produces")


@pytest.mark.parametrize("method", ["tree", "paper", "independent"])
def test_parts_of_rows_carry_no_counts(models: dict[str, Model], method: str) -> None:
    def carry(table: TableModel) -> TableModel:
        part = Leaf(column=COMPONENT, counts=np.arange(5.0))
        for node in walk(table.network):
            if isinstance(node, Leaf) and node.column == COMPONENT:
                return replace(table, network=_replaced(table.network, node, part))
        return replace(table, network=Product(children=(table.network, part)))

    assert verify_model(with_network(models[method], "person", carry)).status == "failed"


def test_a_sample_of_contexts_is_no_larger_than_a_fit_keeps(models: dict[str, Model]) -> None:
    model = models["tree"]
    trees = [n for n in walk(model.tables["visit"].network) if isinstance(n, CliqueTree) and n.given]
    assert trees, "the made database must have a column that depends on its owner"

    def stuff(table: TableModel) -> TableModel:
        [tree] = trees
        many = np.repeat(tree.contexts, -(-2000 // len(tree.contexts)), axis=0)
        larger = replace(tree, contexts=many, weights=np.full(len(many), 1 / len(many)))
        return replace(table, network=_replaced(table.network, tree, larger))

    assert verify_model(with_network(model, "visit", stuff)).status == "failed"


def _replaced(node: Any, old: Any, new: Any) -> Any:
    if node is old:
        return new
    if isinstance(node, Product):
        return Product(children=tuple(_replaced(child, old, new) for child in node.children))
    return node


@pytest.mark.parametrize("method", ["tree", "paper", "independent"])
def test_the_entity_table_has_its_public_size(models: dict[str, Model], method: str) -> None:
    def grow(table: TableModel) -> TableModel:
        return replace(table, rows=table.rows + 7)

    assert_fails(verify_model(with_network(models[method], "person", grow)), "another number of rows")
