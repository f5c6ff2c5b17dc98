"""A statistical audit of all that is published: whole runs on two neighbours, told apart no better than promised."""

from fractions import Fraction

import numpy as np
import pytest

from privbench.encode.coded import CodedTable
from privbench.encode.keys import own_entities
from privbench.methods.method import silent
from privbench.methods.paper.method import learn
from privbench.methods.paper.settings import PaperSettings
from privbench.privacy import vault as vault_module
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.facts import ColumnFacts, Facts, TableFacts
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy, discrete_laplace
from privbench.privacy.parts import one_part
from privbench.privacy.vault import Vault
from privbench.schema.unit import Neighbours
from privbench.spn.nodes import Leaf, walk

from ..privacy.audit import loss_bound

COLUMNS = {"a": ColumnFacts(size=2, ordered=True), "b": ColumnFacts(size=2, ordered=False)}
FACTS = Facts(
    entity="person",
    neighbours=Neighbours.ADD_REMOVE,
    tables={"person": TableFacts(name="person", columns=COLUMNS, rows=None, cap=None)},
    links=(),
)
RUNS = 3000


def published(persons: int, entropy: TestEntropy) -> int:
    """How many persons seem to be there, going by a model of persons who all have the last codes."""
    codes = {name: np.ones(persons, np.uint8) for name in COLUMNS}
    data = {"person": CodedTable(codes=codes, keys={}, entities=own_entities(persons))}
    vault = Vault(NumpyEngine(one_part(data), entropy=entropy), ledger=Ledger(Fraction(1)), entropy=entropy)
    network = learn(vault, FACTS, PaperSettings(), silent)["person"].network
    return int(sum(n.counts[1] for n in walk(network) if isinstance(n, Leaf) and n.column in COLUMNS))


def loss() -> float:
    entropy = TestEntropy(7)
    left, right = (np.array([published(n, entropy) for _ in range(RUNS)]) for n in (20, 19))
    return loss_bound(left, right)


@pytest.mark.slow
def test_whole_runs_lose_no_more_than_epsilon_and_half_the_noise_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loss() <= 1
    monkeypatch.setattr(
        vault_module, "discrete_laplace", lambda size, scale, entropy: discrete_laplace(size, scale / 4, entropy)
    )
    assert loss() > 1
