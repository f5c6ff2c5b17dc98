"""Column splits and row splits: with enough budget they find what is there; with little they still end."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privbench.encode.coded import CodedTable
from privbench.encode.keys import own_entities
from privbench.methods.capped import Learnt
from privbench.methods.method import silent
from privbench.methods.paper.network import learn_network
from privbench.methods.paper.plan import Task, choose_halves
from privbench.methods.paper.rowsplit import round_count, shared_rows, split_rows
from privbench.methods.paper.settings import PaperSettings
from privbench.privacy.blocks import Block
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.facts import ColumnFacts, Facts, TableFacts
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy
from privbench.privacy.parts import one_part
from privbench.privacy.queries import Choice, SplitChoice
from privbench.privacy.vault import Vault
from privbench.schema.unit import Neighbours
from privbench.spn.infer import marginal
from privbench.spn.nodes import Sum

from ...opened import counter_of

ROWS = 4000
COLUMNS = {f"o{i}": ColumnFacts(size=64, ordered=True) for i in range(3)} | {
    "u0": ColumnFacts(size=6, ordered=False),
    "u1": ColumnFacts(size=6, ordered=False),
}


FACTS = Facts(
    entity="person",
    neighbours=Neighbours.REPLACE,
    tables={"person": TableFacts(name="person", columns=COLUMNS, rows=ROWS, cap=None)},
    links=(),
)


def clustered(seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Two well separated clusters of unequal size, and which row is in which."""
    rng = np.random.default_rng(seed)
    cluster = (rng.random(ROWS) < 0.4).astype(np.int64)
    codes = {
        name: (cluster * (f.size // 2) + rng.integers(0, f.size // 2, ROWS) // (2 if f.ordered else 1)).astype(np.uint8)
        for name, f in COLUMNS.items()
    }
    return codes, cluster


def vault_on(codes: dict[str, np.ndarray], budget: Fraction, seed: int = 1) -> Vault:
    data = {"person": CodedTable(codes=codes, keys={}, entities=own_entities(ROWS))}
    entropy = TestEntropy(seed)
    vault = Vault(NumpyEngine(one_part(data), entropy=entropy), ledger=Ledger(budget), entropy=entropy)
    vault.cap_rows("person", 1, None)
    return vault


def rows_of(vault: Vault, block: Block) -> np.ndarray:
    assert isinstance(vault._engine, NumpyEngine)
    return counter_of(vault._engine)._rows.of(block)


def learn(vault: Vault, settings: PaperSettings) -> Learnt:
    task = task_on(vault, Fraction(200))
    return learn_network(vault, FACTS, task, settings, rng=np.random.default_rng(2), progress=silent)


def purity(vault: Vault, blocks: Sequence[Block], cluster: np.ndarray) -> float:
    """The share of rows that are with their own kind."""
    hits = [np.bincount(cluster[rows_of(vault, block)], minlength=2).max() for block in blocks]
    return float(sum(hits) / ROWS)


def task_on(vault: Vault, amount: Fraction) -> Task:
    block = vault.whole("person", vault.ledger.root.sequential("network"))
    return Task(block=block, columns=tuple(COLUMNS), rows=ROWS, budget=amount)


@pytest.mark.parametrize("seed", range(4))
def test_a_row_split_finds_the_clusters_when_the_budget_allows(seed: int) -> None:
    codes, cluster = clustered(seed)
    vault = vault_on(codes, Fraction(5), seed)
    found = split_rows(
        vault,
        FACTS,
        task_on(vault, Fraction(5)),
        PaperSettings(min_rows=500),
        amount=Fraction(5),
        rng=np.random.default_rng(seed),
    )
    assert purity(vault, found.blocks, cluster) > 0.99
    assert sum(found.sizes) == ROWS
    assert sorted(found.sizes) == pytest.approx(sorted(np.bincount(cluster)), rel=0.05)
    assert vault.ledger.total <= 5


def test_a_row_split_without_budget_still_parts_all_rows() -> None:
    vault = vault_on(clustered()[0], Fraction(5))
    amount = Fraction(1, 10**4)
    found = split_rows(
        vault, FACTS, task_on(vault, amount), PaperSettings(min_rows=500), amount=amount, rng=np.random.default_rng(0)
    )
    parts = [rows_of(vault, block) for block in found.blocks]
    assert sorted(np.concatenate(parts)) == list(range(ROWS))
    assert vault.ledger.total <= amount


def test_a_network_of_separable_data_starts_with_the_sum_of_its_clusters() -> None:
    codes, cluster = clustered()
    vault = vault_on(codes, Fraction(200))
    wanted = PaperSettings(min_rows=1000, dependence_threshold=Fraction(1, 20))
    learnt = learn(vault, wanted)
    assert isinstance(learnt.network, Sum)
    assert purity(vault, learnt.parts, cluster) > 0.99
    assert sorted(learnt.network.weights) == pytest.approx(sorted(np.bincount(cluster) / ROWS), abs=0.02)
    for side in learnt.network.children:
        halves = marginal(side, "u0").reshape(2, 3).sum(axis=1)
        assert max(halves) > 0.95


def test_where_rows_do_not_part_columns_do() -> None:
    """A split that leaves too few rows on a side becomes a product over the columns that the trial found."""
    codes = {name: np.zeros(ROWS, np.uint8) for name in COLUMNS}
    vault = vault_on(codes, Fraction(200))
    wanted = PaperSettings(min_rows=1500, dependence_threshold=Fraction(-1))
    learnt = learn(vault, wanted)
    assert not isinstance(learnt.network, Sum)
    assert len(learnt.parts) == 1
    assert vault.ledger.total <= 200


# -- columns -------------------------------------------------------------------------------------------------------


def test_the_least_dependent_of_the_tried_halves_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    codes = {name: rng.integers(0, 6, ROWS).astype(np.uint8) for name in COLUMNS}
    codes["o1"] = codes["o0"]
    vault = vault_on(codes, Fraction(10**4))
    asked: list[Choice] = []
    choose = Vault.choose

    def watched(self: Vault, query: Choice, *arguments: Any) -> int:
        asked.append(query)
        return choose(self, query, *arguments)

    monkeypatch.setattr(Vault, "choose", watched)
    for seed in range(5):
        block = vault.whole("person", vault.ledger.root)
        rng = np.random.default_rng(seed)
        chosen = choose_halves(vault, FACTS, block, tuple(COLUMNS), amount=Fraction(1000), rng=rng)
        query = asked[-1]
        assert isinstance(query, SplitChoice)
        seen = query.candidates
        apart = [("o0" in split[0]) != ("o1" in split[0]) for split in seen]
        assert len(seen) == len(COLUMNS)
        assert all(len(split[0]) == 2 and len(split[1]) == 3 for split in seen)
        assert all(apart) or ("o0" in chosen[0]) == ("o1" in chosen[0])


def test_two_columns_cost_nothing() -> None:
    vault = vault_on(clustered()[0], Fraction(1))
    block = vault.whole("person", vault.ledger.root)
    halves = choose_halves(vault, FACTS, block, ("o0", "u0"), amount=Fraction(1), rng=np.random.default_rng(0))
    assert halves == (("o0",), ("u0",))
    assert vault.ledger.total == 0


# -- arithmetic ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 1, 10**3, 10**12])
@pytest.mark.parametrize("epsilon", [1e-12, 1.0, 1e12])
def test_rounds_stay_in_their_limits(rows: int, epsilon: float) -> None:
    assert 2 <= round_count(rows, 15, epsilon) <= 7


@pytest.mark.parametrize(("left", "right"), [(0, 0), (-9, 4), (10**15, 1), (3, 3)])
def test_sides_share_the_rows_of_the_whole(left: int, right: int) -> None:
    found = shared_rows(101, left, right)
    assert min(found) >= 0
    assert sum(found) == (101 if max(left, right) > 0 else 0)
