"""Entities stand in secret random slots, so that where a row stands in its table says nothing."""

import numpy as np

from privbench.methods.capped import row_histogram
from privbench.privacy.features import key_slot, whole_axis
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.noise import random_order

from .tiny import PERSONS, database, link, open_vault, whole

CAPS = {"person": 1, "visit": 2, "note": 2}


def slots(seed: int, *names: str, shuffled: bool, visited: tuple[int, ...] = tuple(range(PERSONS))) -> list[list[int]]:
    """In which slot each boss or owner of a visit stands, by key, NULL first: exact counts, asked of one engine."""
    people = tuple({"boss": visited[at % len(visited)]} for at in range(PERSONS))
    vault = open_vault(database(people, tuple({"person": at} for at in visited)), CAPS, seed=seed)
    assert vault._engine is not None
    axes = {name: whole_axis(key_slot(link(name), shuffled=shuffled)) for name in names}
    queries = [row_histogram(whole(vault, link(name).table), axis) for name, axis in axes.items()]
    return [np.asarray(found).tolist() for found in vault._engine.count(queries)]


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
    seen = set()
    for seed in range(40):
        bosses, owners = slots(seed, "boss", "person", shuffled=True, visited=(0, 0))
        assert bosses == owners
        seen.add(tuple(owners))
    assert seen == {(0, 2, 0), (0, 0, 2)}


def test_public_ids_keep_their_order() -> None:
    for seed in range(5):
        assert slots(seed, "person", shuffled=False, visited=(1,)) == [[0, 0, 1]]


def test_the_order_of_the_rows_of_the_entity_table_does_not_reach_the_counts() -> None:
    """With the noise off, counts of one database and of its rows turned round have the same law: here, the same set."""
    seen = [
        {tuple(slots(seed, "person", shuffled=True, visited=(one,) * 2)[0]) for seed in range(60)} for one in (0, 1)
    ]
    assert seen[0] == seen[1] == {(0, 2, 0), (0, 0, 2)}


def test_a_key_to_a_row_that_is_not_there_has_no_slot() -> None:
    vault = open_vault(database([{}, {}], [{"person": -2}, {"person": 1}, {}]), CAPS)
    assert vault._engine is not None
    axis = whole_axis(key_slot(link("person"), shuffled=False))
    (found,) = vault._engine.count([row_histogram(whole(vault, "visit"), axis)])
    assert np.asarray(found).tolist() == [1, 0, 1]
