"""Entities stand in secret random slots, so that where a row stands in its table says nothing."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
from privbench.privacy.sealed import Sealed

from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.noise import random_order
from privbench.privacy.vault import Vault

from .tiny import PERSONS, database, facts


def sealed(seed: int, *, public_ids: bool) -> Sealed:
    shapes = replace(facts(), public_ids=public_ids)
    people = tuple({"boss": at} for at in range(PERSONS))
    visits = tuple({"person": at} for at in range(PERSONS))
    return Sealed(shapes, database(people, visits), FixedEntropy(seed))


def test_every_order_is_equally_likely() -> None:
    entropy = FixedEntropy(1)
    drawn = [tuple(random_order(3, entropy)) for _ in range(6000)]
    counts = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert (abs(counts - 1000) < 6 * np.sqrt(1000)).all()


def test_equal_words_are_drawn_again() -> None:
    class Twice:
        private = False
        calls = 0

        def words(self, count: int) -> np.ndarray:
            self.calls += 1
            return np.zeros(count, np.uint64) if self.calls == 1 else np.arange(count, dtype=np.uint64)[::-1]

    entropy = Twice()
    assert random_order(3, entropy).tolist() == [2, 1, 0]
    assert entropy.calls == 2


def test_all_keys_into_the_entity_table_share_one_secret_order() -> None:
    shapes = facts()
    boss = next(link for link in shapes.links if link.name == "boss")
    owner = next(link for link in shapes.links if link.name == "person" and link.table == "visit")
    orders = set()
    for seed in range(40):
        opened = sealed(seed, public_ids=False)
        assert opened.slots(boss).tolist() == opened.slots(owner).tolist()
        assert sorted(opened.slots(boss)) == list(range(PERSONS))
        orders.add(tuple(opened.slots(boss)))
    assert len(orders) > 1


def test_public_ids_keep_their_order() -> None:
    shapes = facts()
    boss = next(link for link in shapes.links if link.name == "boss")
    assert sealed(3, public_ids=True).slots(boss).tolist() == list(range(PERSONS))


def test_the_order_of_the_rows_of_the_entity_table_does_not_reach_the_counts() -> None:
    """With the noise off, counts of one database and of its rows turned round have the same law: here, the same set."""
    shapes = replace(facts(), public_ids=False)
    owner = next(link for link in shapes.links if link.name == "person" and link.table == "visit")
    seen = []
    for visited in (0, PERSONS - 1):
        found = set()
        for seed in range(60):
            data = database(tuple({} for _ in range(PERSONS)), ({"person": visited},))
            vault = Vault(shapes, data, ledger=Ledger(Fraction(100)), entropy=FixedEntropy(seed))
            assert vault._sealed is not None
            found.add(int(vault._sealed.slots(owner)[0]))
        seen.append(found)
    assert seen[0] == seen[1] == set(range(PERSONS))
