"""What the structure of a network cost: splits of columns and of rows in a model whose receipt leaves them out."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.methods.paper.plan import halves_in_order
from privbench.model.file import load_unverified, save_model
from privbench.model.model import Model
from privbench.model.receipt_check import verify_model
from privbench.model.verify import verify
from privbench.spn.feature_names import COMPONENT
from privbench.spn.nodes import Leaf, Product, Sum, walk

from ..failing import assert_fails
from ..forging import MISSING, Header, assert_refused, events, forged, settle, take_out, without, write_shop
from ..seeded import SeededEntropy

COLUMNS = ("a", "b", "c", "d")
PEOPLE = 600
SETTINGS: dict[str, dict[str, Any]] = {
    "split": {"min_rows": 40, "dependence_threshold": 0.01},
    "published": {"min_rows": 40, "dependence_threshold": 0.01, "as_published": True},
    "whole": {},
}
"""Rows are split; as the paper publishes it; only columns are."""


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Model files of persons whose columns a and c are equal, b and d as well, by what the paper's method is told."""
    folder = tmp_path_factory.mktemp("splits")
    rng = np.random.default_rng(2)
    rows = [f"{i},{a},{b},{a},{b}" for i, (a, b) in enumerate(rng.integers(0, 6, (PEOPLE, 2)))]
    ddl = "CREATE TABLE person (id INTEGER PRIMARY KEY, a SMALLINT, b SMALLINT, c SMALLINT, d SMALLINT);"
    source = write_shop(folder / "source", ddl, person="\n".join(["id,a,b,c,d", *rows]))

    @cache
    def make(name: str) -> Path:
        spec = draft(source, unit="person", domains="data")
        spec = spec.model_copy(update={"method": {"name": "paper", **SETTINGS[name]}})
        save_model(fit(spec, epsilon="4000", entropy=SeededEntropy()), folder / name)
        return folder / name

    return make


def halves(model: Model) -> list[set[frozenset[str]]]:
    """The column splits of all columns in the network of persons."""
    products = [node for node in walk(model.tables["person"].network) if isinstance(node, Product)]
    found = [{frozenset(child.sizes) - {COMPONENT} for child in product.children} for product in products]
    return [split for split in found if frozenset.union(*split) == frozenset(COLUMNS)]


IN_ORDER = {frozenset(half) for half in halves_in_order(COLUMNS)}


@pytest.mark.parametrize(("name", "status"), [("split", "conditional"), ("published", "unverified")])
def test_the_honest_models(name: str, status: str, fitted: Callable[[str], Path]) -> None:
    assert (verify(fitted(name)).status, verify(fitted(name)).problems) == (status, ())
    model = load_unverified(fitted(name))
    assert any(isinstance(node, Sum) for node in walk(model.tables["person"].network))
    assert any(split != IN_ORDER for split in halves(model))


@pytest.mark.parametrize(
    ("name", "kind", "keep"),
    [
        ("split", "choice of column split", 0),
        ("split", "dependence", 0),
        ("published", "choice of column split", 0),
        ("published", "dependence", 0),
        ("published", "published row split", 1),
    ],
)
def test_structure_that_nobody_paid_for(
    name: str, kind: str, keep: int, fitted: Callable[[str], Path], tmp_path: Path
) -> None:
    """One split as published is kept: without any, the receipt alone shows that rows were parted by nothing."""
    path = forged(fitted(name), tmp_path / "forged", without("person", kind, keep=keep))
    problems = verify(path).problems
    assert len(problems) == 1, problems
    assert problems[0].startswith("person: ")
    assert_refused(path, f"{MISSING}{kind}")


def test_rows_that_are_parted_by_nothing(fitted: Callable[[str], Path], tmp_path: Path) -> None:
    change = without("person", "published row split")
    assert_refused(forged(fitted("published"), tmp_path / "forged", change), "a centre has no coordinates")


def test_a_row_split_without_its_clusters(fitted: Callable[[str], Path], tmp_path: Path) -> None:
    def change(header: Header) -> None:
        receipt = header["receipt"]
        take_out(receipt["ledger"], events(header, "person", "cluster"))
        settle(receipt)

    assert_refused(forged(fitted("split"), tmp_path / "forged", change), '"kind": "cluster"')


def test_a_split_as_published_is_none_of_the_private_method(fitted: Callable[[str], Path], tmp_path: Path) -> None:
    def change(header: Header) -> None:
        header["spec"]["method"]["as_published"] = False
        header["receipt"]["public"]["parameters"]["as_published"] = False

    assert_refused(forged(fitted("published"), tmp_path / "forged", change), '"kind": "cluster"')


def test_another_split_than_the_halves_in_order_needs_a_choice(fitted: Callable[[str], Path]) -> None:
    """The same leaves, split otherwise: without a choice only the split that looks at no data is believed."""
    model = load_unverified(fitted("whole"))
    receipt = model.receipt
    take_out(receipt["ledger"], events({"receipt": receipt}, "person", kind="choice of column split"))
    settle(receipt)
    table = model.tables["person"]
    nodes = {node.column: node for node in walk(table.network) if isinstance(node, Leaf)}

    def split(*pairs: str) -> Model:
        left, right = (Product(children=tuple(nodes[column] for column in pair)) for pair in pairs)
        network = Product(children=(left, Product(children=(right, nodes[COMPONENT]))))
        return replace(model, tables={"person": replace(table, network=network)})

    assert verify_model(split("ab", "cd")).problems == ()
    assert verify_model(split("cd", "ab")).problems == ()
    for other in (("ac", "bd"), ("ad", "bc")):
        assert_fails(verify_model(split(*other)), f"person: 1 {MISSING}choice of column split")
