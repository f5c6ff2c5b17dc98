"""The vault's door: nothing without a charge, nothing past the budget, nothing on a part that looks at the whole."""

import copy
import pickle
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from privbench.privacy.sealed import Sealed

from privbench.encode.coded import CodedTable
from privbench.errors import BudgetError
from privbench.privacy.blocks import disjoint
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy
from privbench.privacy.vault import Vault

from .tiny import BOTH, CENTRES, GONE, KEY_QUERIES, ONE, ROW_QUERIES, database, facts, link, open_vault

CAPS = {"person": 1, "visit": 2, "note": 2}
QUERIES = {**ROW_QUERIES, **KEY_QUERIES}


class Untouchable(dict[str, CodedTable]):
    """A database that must not be looked at."""

    def __getitem__(self, _: str) -> CodedTable:
        raise AssertionError("the data were touched")


def made() -> dict[str, CodedTable]:
    visits = [{"person": p, "cost": p + 1, "kind": p, "guest": 0, "previous": 0} for p in (0, 1, 1)]
    return database([{}, {"boss": 0}], visits, [{"visit": 1, "about": 0}])


def spend_all_but(vault: Vault, epsilon: Fraction) -> None:
    vault.size(vault.whole("person", vault.ledger.root), epsilon=vault.ledger.budget - epsilon)


def printed(vault: Vault) -> object:
    block = vault.whole("visit", vault.ledger.root)
    return vault.split_as_published(block, BOTH, rounds=2, fewest=1, epsilon=ONE)


def capped(vault: Vault) -> object:
    return vault.choose_cap("visit", [1, 2], [0, 1], scope=vault.ledger.root, epsilon=ONE)


@pytest.mark.parametrize(
    "query", [*QUERIES.values(), printed, capped], ids=[*QUERIES, "row split as published", "rows per entity"]
)
def test_a_query_that_does_not_fit_is_refused_before_the_data_are_touched(
    query: Callable[[Vault], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = open_vault(made(), CAPS)
    spend_all_but(vault, Fraction(1, 2))
    spent, answers = vault.ledger.total, len(vault.answers)
    for name in ("rows", "codes", "key", "labels", "degrees", "dependences", "null_keys", "rows_per_entity"):
        monkeypatch.setattr(Sealed, name, lambda *_, **__: pytest.fail("the data were touched"))
    monkeypatch.setattr(Sealed, "open_split", lambda *_: None)
    with pytest.raises(BudgetError, match="Nothing was drawn"):
        query(vault)
    assert vault.ledger.total == spent
    assert len(vault.answers) == answers


def test_a_vault_can_be_made_and_printed_without_touching_the_data() -> None:
    vault = Vault(facts(), Untouchable(), ledger=Ledger(ONE), entropy=TestEntropy(1))
    assert "Vault" in repr(vault)


@pytest.mark.parametrize("leave", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_private_data_cannot_be_pickled_or_copied(leave: Callable[[object], object]) -> None:
    vault = open_vault(made(), CAPS)
    for private in (vault, vault._sealed, made()["visit"]):
        with pytest.raises(TypeError, match="cannot be pickled"):
            leave(private)
        assert "1" not in repr(private).split(" at ")[0]


def test_it_needs_data_or_a_tape_and_not_both() -> None:
    for data, tape in ((None, None), (made(), [])):
        with pytest.raises(ValueError, match="either data or a tape"):
            Vault(facts(), data, ledger=Ledger(ONE), entropy=TestEntropy(1), tape=tape)


def test_every_query_replays_from_its_tape_alone() -> None:
    first = open_vault(made(), CAPS)
    found = [repr(query(first)) for query in (*QUERIES.values(), printed)]
    second = Vault(facts(), None, ledger=Ledger(first.ledger.budget), entropy=TestEntropy(9), tape=first.answers)
    for table, cap in CAPS.items():
        second.cap_rows(table, cap)
    again = [repr(query(second)) for query in (*QUERIES.values(), printed)]
    assert [_plain(text) for text in found] == [_plain(text) for text in again]
    assert first.ledger.to_json() == second.ledger.to_json()


def _plain(text: str) -> str:
    return " ".join(word for word in text.split() if "0x" not in word)


def test_a_tape_that_ends_too_soon_says_so() -> None:
    vault = Vault(facts(), None, ledger=Ledger(ONE), entropy=TestEntropy(1), tape=[])
    vault.cap_rows("person", 1)
    with pytest.raises(RuntimeError, match="fewer answers"):
        vault.size(vault.whole("person", vault.ledger.root), epsilon=ONE)


def test_recorded_answers_cannot_be_changed_by_who_gets_them() -> None:
    vault = open_vault(made(), CAPS)
    answer = vault.histogram(vault.whole("visit", vault.ledger.root), "cost", epsilon=ONE)
    with pytest.raises(ValueError, match="read-only"):
        answer += 1


def test_noise_is_drawn_for_every_count() -> None:
    answers = []
    for seed in range(30):
        vault = Vault(facts(), made(), ledger=Ledger(ONE), entropy=TestEntropy(seed))
        vault.cap_rows("person", 1)
        answers.append(vault.histogram(vault.whole("person", vault.ledger.root), "age", epsilon=ONE))
    assert (np.ptp(np.stack(answers), axis=0) > 0).all()


# -- queries that would cost more than they are charged ------------------------------------------------------------


def test_a_cap_cannot_change_once_blocks_may_hold_its_rows() -> None:
    vault = open_vault(made(), CAPS)
    with pytest.raises(ValueError, match="capped already"):
        vault.cap_rows("visit", 1)


def test_whole_tables_are_not_measured_in_a_part() -> None:
    vault = open_vault(made(), CAPS)
    part = vault.split(vault.whole("visit", vault.ledger.root), BOTH, CENTRES)[0]
    before = vault.ledger.total
    asks: list[Callable[[], object]] = [
        lambda: vault.whole("visit", part.scope),
        lambda: vault.null_keys(link("guest"), scope=part.scope, epsilon=ONE),
        lambda: vault.degree_histogram(link("previous"), cap=2, scope=part.scope, epsilon=ONE),
        lambda: vault.slot_counts(link("guest"), [part], scope=part.scope, epsilon=ONE),
        lambda: vault.choose_cap("note", [1], [0], scope=part.scope, epsilon=ONE),
    ]
    for ask in asks:
        with pytest.raises(ValueError, match="outside all partitions"):
            ask()
    assert vault.ledger.total == before


def test_parts_that_overlap_are_refused() -> None:
    vault = open_vault(made(), CAPS)
    whole = vault.whole("visit", vault.ledger.root)
    left, right = vault.split(whole, BOTH, CENTRES)
    low, high = vault.split(left, BOTH, CENTRES)
    other, _ = vault.split(whole, BOTH, CENTRES)
    person = vault.whole("person", vault.ledger.root)
    assert disjoint([low, high, right])
    assert disjoint([right, low])
    for parts in ([left, left], [whole, left], [left, low], [low, left], [low, other], [right, other], [left, person]):
        assert not disjoint(parts)
        with pytest.raises(ValueError, match="overlap or are of another table"):
            vault.slot_counts(link("guest"), parts, scope=vault.ledger.root, epsilon=ONE)
    with pytest.raises(ValueError, match="another table"):
        vault.slot_counts(link("guest"), [person], scope=vault.ledger.root, epsilon=ONE)


def test_keys_whose_slots_are_private_are_not_counted_by_slot() -> None:
    vault = open_vault(made(), CAPS)
    whole = vault.whole("visit", vault.ledger.root)
    with pytest.raises(ValueError, match="are private"):
        vault.slot_counts(link("previous"), [whole], scope=vault.ledger.root, epsilon=ONE)


# -- nothing raises because of a value -----------------------------------------------------------------------------


@pytest.mark.parametrize("visits", [0, 1, 40])
def test_empty_and_lopsided_tables_are_measured_like_others(visits: int) -> None:
    rows = [{"person": GONE, "cost": 2, "kind": 1, "guest": 1, "previous": 0} for _ in range(visits)]
    vault = open_vault(database([{}, {}], rows), CAPS)
    for query in (*QUERIES.values(), printed):
        query(vault)
    assert vault.ledger.total > 0


@pytest.mark.parametrize("name", QUERIES)
def test_an_event_says_how_many_numbers_were_drawn(name: str) -> None:
    vault = open_vault(made(), CAPS)
    QUERIES[name](vault)
    assert vault.ledger.to_json()["nodes"][-1]["draws"] == vault.answers[-1].size
