"""Differential replay of activity and of weights in proportion: asked of every table before a whole fit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privbench.methods import registry
from privbench.methods.tree.columns import own_features
from privbench.methods.tree.method import TREE
from privbench.methods.tree.weighed import WeighedTable
from privbench.privacy import exact
from privbench.privacy.exact import Integers
from privbench.privacy.facts import Facts, LinkFacts
from privbench.privacy.feature_codes import FeatureCodes
from privbench.privacy.features import Feature, activity, of_owner, whole_axis
from privbench.privacy.queries import Pair
from privbench.privacy.vault import Vault
from privbench.schema.unit import LinkKind, Neighbours
from privbench.spn.fanouts import fanout_edges

from .test_replay import check

SHARE = Fraction(1, 1000)
"""The part of the budget that each question gets."""
FULL_ROWS = (1, 2, 8)
CASES = [(neighbours, delta) for neighbours in Neighbours for delta in ("0", "1e-6")]


def owner_keys_below(facts: Facts, table: str) -> Iterator[LinkFacts]:
    for link in facts.links_to(table):
        if link.kind is LinkKind.OWNER:
            yield link
            yield from owner_keys_below(facts, link.table)


def activities(facts: Facts, table: str) -> list[Feature]:
    """The activity of the rows of a table, and that of their owner rows."""
    links, owner = tuple(owner_keys_below(facts, table)), facts.owner_link(table)
    above = [] if owner is None else activities(facts, owner.target)
    own = [activity(links, fanout_edges(40))] if links else []
    return own + [of_owner(feature, owner) for feature in above if owner is not None]


def ask(vault: Vault, facts: Facts, table: str, amount: Fraction) -> None:
    """Measure the rows and activities of a table, and choose among their pairs with its columns."""
    found, own = activities(facts, table), own_features(facts, table)
    for full_rows in FULL_ROWS:
        weighed = WeighedTable(vault=vault, table=table, scope=vault.ledger.root, full_rows=full_rows)
        axes = [[], *([whole_axis(feature)] for feature in (*found, *own))]
        weighed.measure_all([(one, amount) for one in axes])
        pairs = [(whole_axis(first), whole_axis(second)) for first in found for second in own]
        tables = [Pair(*both, np.zeros([axis.size for axis in both], np.int64), 0) for both in pairs]
        chosen = weighed.choose(tables, amount) if tables else None
        if chosen is not None:
            weighed.measure([chosen.first, chosen.second], amount)


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Method `tree`, but for what it asks first."""

    def learn(vault: Vault, facts: Facts, settings: Any, progress: Any) -> Any:
        amount = (vault.ledger.budget - vault.ledger.total) * SHARE
        for table in facts.tables:
            ask(vault, facts, table, amount)
        return TREE.learn(vault, facts, settings, progress)

    monkeypatch.setitem(registry.BUILT_IN, "tree", replace(TREE, learn=learn))


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize(("neighbours", "delta"), CASES)
def test_neighbours_cannot_be_told_apart_by_more_than_was_charged(
    neighbours: Neighbours, delta: str, tmp_path: Path
) -> None:
    run = check(tmp_path, "tree", neighbours, delta, seed=7)
    asked = [question.event.query.to_json() for question in run.asked]
    assert {query.get("full_rows", 1) for query in asked if query["kind"] == "histogram"} >= set(FULL_ROWS)
    assert sum("activity" in str(query) for query in asked) > 3 * len(FULL_ROWS)


Mutant = Callable[[pytest.MonkeyPatch], None]


def rows_in_proportion_however_many(patch: pytest.MonkeyPatch) -> None:
    def unlimited(entities: Integers, units: int, full_rows: int) -> Integers:
        return units // (exact.rows_of_entity(entities) if full_rows == 1 else np.full(len(entities), full_rows))

    patch.setattr(exact, "row_weights", unlimited)


def activity_of_references(patch: pytest.MonkeyPatch) -> None:
    """A person's orders, and all that the person has helped with."""
    rows_below = FeatureCodes._rows_below

    def helped(self: FeatureCodes, table: str, links: Sequence[LinkFacts]) -> Integers:
        helpers = self._data["purchase"].keys["purchase.helper"]
        more = exact.degrees(helpers, self._size(table)) if table == "person" else 0
        return rows_below(self, table, links) + more

    patch.setattr(FeatureCodes, "_rows_below", helped)


def check_several(folder: Path) -> None:
    for seed in (4, 7, 8, 13):
        check(folder, "tree", Neighbours.ADD_REMOVE, "0", seed=seed)


@pytest.mark.slow
@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("mutant", [rows_in_proportion_however_many, activity_of_references])
def test_replay_catches(mutant: Mutant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match=r"moved|differ"):
        check_several(tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("asking")
def test_without_a_mutant_nothing_is_caught(tmp_path: Path) -> None:
    check_several(tmp_path)
