"""A statistical audit of what method `tree` publishes: runs on two neighbours, told apart no better than promised.

Every number is seeded. The same audit must see a fault when noise is too small, when rows weigh too much, and when
an entity's keys to others are charged like its own rows.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from privbench.encode.coded import CodedDatabase, CodedTable
from privbench.encode.keys import MISSING, NULL, own_entities
from privbench.errors import BudgetError
from privbench.methods.method import silent
from privbench.methods.tree.method import learn
from privbench.methods.tree.settings import TreeSettings
from privbench.privacy import exact
from privbench.privacy import vault as vault_module
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.facts import ColumnFacts, Facts, LinkFacts, TableFacts
from privbench.privacy.features import Feature, in_degree, own, whole_axis
from privbench.privacy.gaussian import discrete_gaussian
from privbench.privacy.noise import TestEntropy, discrete_laplace
from privbench.privacy.parts import one_part
from privbench.privacy.queries import Histogram
from privbench.privacy.receipt import open_ledger
from privbench.privacy.vault import Vault
from privbench.schema.unit import LinkKind, Neighbours
from privbench.spn.fanouts import fanout_edges

from ...privacy.audit import loss_bound

EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)
COLUMNS = {"a": ColumnFacts(size=2, ordered=False)}
STEPS = 16
"""Numbers are told in sixteenths of an entity."""


def link(table: str, kind: LinkKind) -> LinkFacts:
    name = f"{table}.person"
    return LinkFacts(
        name=name, table=table, columns=("person",), target="person", kind=kind, slots=None, nullable=True, unique=False
    )


OWNER, BOSS = link("visit", LinkKind.OWNER), link("person", LinkKind.REFERENCE)


FACTS = Facts(
    entity="person",
    neighbours=Neighbours.ADD_REMOVE,
    tables={"person": TableFacts(name="person", columns=COLUMNS, rows=None, cap=None)},
    links=(),
)


def vault_of(data: CodedDatabase, entropy: TestEntropy, *, delta: Fraction = Fraction(0)) -> Vault:
    ledger = open_ledger(EPSILON, delta, Neighbours.ADD_REMOVE)
    return Vault(NumpyEngine(one_part(data), entropy=entropy), ledger=ledger, entropy=entropy)


def measured(vault: Vault, table: str, feature: Feature) -> NDArray[np.float64]:
    """A weighted histogram for all of the budget, in entities."""
    return vault.measure(Histogram(table=table, axes=(whole_axis(feature),)), EPSILON, vault.ledger.root).counts


def persons(rows: int, boss: NDArray[np.int64] | None = None) -> CodedTable:
    keys = {} if boss is None else {BOSS.name: boss}
    return CodedTable(codes={"a": np.ones(rows, np.uint8)}, keys=keys, entities=own_entities(rows))


def model_rows(rows: int, entropy: TestEntropy, *, delta: Fraction = Fraction(0)) -> int:
    """How many persons a model of so many seems to have seen; that a fit is refused is an answer, too."""
    vault = vault_of({"person": persons(rows)}, entropy, delta=delta)
    try:
        return int(learn(vault, FACTS, TreeSettings(), silent)["person"].rows * STEPS)
    except BudgetError:
        return -1


def visits(rows: int, entropy: TestEntropy) -> int:
    """The weight of visits of a kind that one person alone makes, so many of them."""
    owners = np.append(np.arange(7), np.full(rows, 7)).astype(np.int64)
    kinds = np.append(np.zeros(7), np.ones(rows)).astype(np.uint8)
    visit = CodedTable(codes={"a": kinds}, keys={OWNER.name: owners}, entities=owners)
    vault = vault_of({"person": persons(8), "visit": visit}, entropy)
    return int(measured(vault, "visit", own("a", COLUMNS["a"]))[1] * STEPS)


def bosses(boss: list[int], entropy: TestEntropy) -> int:
    """The likelihood of seven persons, the last of whom is named and names another, against that of the six others."""
    vault = vault_of({"person": persons(len(boss), np.array(boss, np.int64))}, entropy)
    found = measured(vault, "person", in_degree(BOSS, fanout_edges(1)))
    without, there = np.array([6, 0]), np.array([5, 2])
    return int((np.abs(found - without) - np.abs(found - there)).sum() * STEPS)


def loss(left: Callable[[TestEntropy], int], right: Callable[[TestEntropy], int], *, runs: int) -> float:
    entropy = TestEntropy(7)
    samples = [np.array([side(entropy) for _ in range(runs)], np.int64) for side in (left, right)]
    return loss_bound(*samples)


@pytest.mark.slow
def test_models_lose_no_more_than_epsilon_and_a_quarter_of_the_noise_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = (lambda e: model_rows(20, e), lambda e: model_rows(19, e))
    assert loss(*sides, runs=1500) <= EPSILON
    monkeypatch.setattr(vault_module, "discrete_laplace", lambda n, scale, e: discrete_laplace(n, scale / 4, e))
    assert loss(*sides, runs=1500) > EPSILON


@pytest.mark.slow
def test_with_a_delta_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = (lambda e: model_rows(20, e, delta=DELTA), lambda e: model_rows(19, e, delta=DELTA))
    assert loss(*sides, runs=1500) <= EPSILON
    monkeypatch.setattr(vault_module, "discrete_gaussian", lambda n, scale, e: discrete_gaussian(n, scale / 16, e))
    assert loss(*sides, runs=1500) > EPSILON


@pytest.mark.slow
def test_rows_of_one_entity_lose_no_more_than_one_and_undivided_weights_show(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = (lambda e: visits(4, e), lambda e: visits(0, e))
    assert loss(*sides, runs=3000) <= EPSILON
    monkeypatch.setattr(exact, "row_weights", lambda *_: None)
    assert loss(*sides, runs=3000) > EPSILON


@pytest.mark.slow
def test_keys_to_others_lose_no_more_than_epsilon_and_a_price_of_one_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    rest = [MISSING, *[NULL] * 5]
    sides = (lambda e: bosses([6, *rest[1:], 1], e), lambda e: bosses(rest, e))
    assert 0.6 * EPSILON < loss(*sides, runs=4000) <= EPSILON
    monkeypatch.setattr(Feature, "in_degree", property(lambda _: None))
    assert loss(*sides, runs=4000) > EPSILON
