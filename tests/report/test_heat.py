"""The heat map of a clique tree: how its columns hang, and what the query leaves at each of them."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privbench.encode.predicate import Between, In
from privbench.report.heat import network, query_heat
from privbench.report.report import render_report
from privbench.spn.clique import CliqueTree, Conditional, Given
from privbench.spn.infer import probability
from privbench.spn.nodes import Leaf, Node, Product
from privbench.workload.sql import parse_workload

from .browser import open_page
from .conftest import EVIL, Shop


def column(name: str, size: int, *parents: str) -> Conditional:
    """A column that takes the code of its parents, mostly; all have as many bins."""
    factor = np.eye(size) * 8 + 1
    return Conditional(
        column=name, bins=np.arange(size), counts=np.ones(size), parents=parents, factors=(factor,) * len(parents)
    )


def test_columns_hang_below_the_last_of_their_parents() -> None:
    tree = CliqueTree(
        columns=(
            column("a", 2),
            column("b", 2, "a"),
            column("c", 2, "b", "a"),
            column("d", 2, "a", "g"),
            column("e", 2),
        ),
        given=(Given(column="g", bins=np.arange(2)),),
        contexts=np.array([[0]]),
        weights=np.ones(1),
    )
    assert network(Product(children=(Leaf(column="x", counts=np.ones(2)), tree))) == [
        {"k": "product", "c": [1, 2]},
        {"k": "leaf", "t": "x"},
        {"k": "clique", "c": [3, 4]},
        {"k": "column", "t": "a", "p": [], "c": [5, 6]},
        {"k": "column", "t": "e", "p": [], "c": []},
        {"k": "column", "t": "b", "p": ["a"], "c": [7]},
        {"k": "column", "t": "d", "p": ["a", "g"], "c": []},
        {"k": "column", "t": "c", "p": ["b", "a"], "c": []},
    ]


def with_tree(shop: Shop) -> Shop:
    """The shop with a clique tree for customer: the city depends on the age, any other column is a leaf."""
    sizes = shop.model.tables["customer"].network.sizes
    names = ("age", EVIL)
    ages, cities = (sizes[name] for name in names)
    factor = 1.0 + 9 * (np.arange(ages)[:, None] % cities == np.arange(cities))
    columns = (
        Conditional(column="age", bins=np.arange(ages), counts=1.0 + np.arange(ages)),
        Conditional(column=EVIL, bins=np.arange(cities), counts=np.ones(cities), parents=("age",), factors=(factor,)),
    )
    leaves = tuple(Leaf(column=c, counts=np.ones(size)) for c, size in sizes.items() if c not in names)
    network: Node = CliqueTree(columns=columns)
    if leaves:
        network = Product(children=(network, *leaves))
    customer = replace(shop.model.tables["customer"], network=network)
    return replace(shop, model=replace(shop.model, tables={**shop.model.tables, "customer": customer}))


def heat(shop: Shop) -> tuple[dict[str, float], dict[str, float]]:
    """What the query leaves at the columns of the tree, and at the root: in the model, and by the real columns."""
    sql = f"SELECT COUNT(*) FROM customer WHERE age <= 3 AND \"{EVIL}\" = 'Bern'"
    [statement] = parse_workload(sql, schema=shop.model.protection.schema).statements
    found = query_heat(shop.model, statement, shop.result)
    assert found is not None
    [tree] = found["trees"]
    nodes = network(shop.model.tables["customer"].network)
    names = ["root", *(node.get("t") for node in nodes[1:])]
    model, real = (dict(zip(names, tree[side], strict=True)) for side in ("model", "real"))
    return model, real


@pytest.mark.slow
def test_a_column_shows_what_it_and_those_above_it_leave(shop: Shop) -> None:
    shop = with_tree(shop)
    customer, codecs = shop.model.tables["customer"].network, shop.model.codecs["customer"]
    young = codecs["age"].coverage(Between(high=3))
    both = {"age": young, EVIL: codecs[EVIL].coverage(In(values=("Bern",)))}
    model, _ = heat(shop)
    assert model["age"] == pytest.approx(probability(customer, {"age": young}), rel=1e-3)
    assert model[EVIL] == pytest.approx(probability(customer, both), rel=1e-3)
    assert model["root"] == model[EVIL] < model["age"]


@pytest.mark.slow
def test_real_columns_are_as_dependent_as_the_models(shop: Shop) -> None:
    shop = with_tree(shop)
    customer, codecs = shop.model.tables["customer"].network, shop.model.codecs["customer"]
    both = {"age": codecs["age"].coverage(Between(high=3)), EVIL: codecs[EVIL].coverage(In(values=("Bern",)))}
    lift = probability(customer, both) / np.prod([probability(customer, {c: e}) for c, e in both.items()])
    _, real = heat(shop)
    # Of 120 customers 55 are of ages 0 to 3, and a third lives in Bern.
    assert real["age"] == pytest.approx(55 / 120, rel=1e-3)
    assert real[EVIL] == pytest.approx(55 / 360 * lift, rel=1e-3)


@pytest.mark.slow
def test_the_page_draws_a_clique_tree(shop: Shop, tmp_path: Path) -> None:
    shop = with_tree(shop)
    script = 'byId("heat-query").value = data.heat.findIndex((q) => q.n === 1); drawHeat();'
    dom = open_page(render_report(shop.result, model=shop.model), tmp_path, script)
    [found] = re.findall(r'<section id="heat">.*?</section>', dom, re.DOTALL)
    model = found.split('class="tree"')[1]
    assert "→" in model
    assert "depends on age" in model
    assert len(re.findall(r'class="node"', model)) >= 3
