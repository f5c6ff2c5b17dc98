"""Leaks built in on purpose: each must be caught by replay, brute force, audit, the ledger or the verifier."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from privbench.privacy.sealed import Sealed

from privbench.encode.coded import CodedTable
from privbench.methods import links
from privbench.methods.capped import Size
from privbench.methods.paper import tree
from privbench.methods.paper.plan import choose_halves
from privbench.privacy import door as door_module
from privbench.privacy import price as price_module
from privbench.privacy import queries
from privbench.privacy.events import Currency, Event
from privbench.privacy.ledger import Ledger, Scope
from privbench.privacy.noise import TestEntropy, discrete_laplace, round_scale
from privbench.privacy.vault import Vault
from privbench.spn.count_links import SlotLink
from privbench_verify.receipt import verify_receipt

from ..methods import made
from ..seeded import SeededEntropy
from . import tiny
from .audit import loss_bound
from .tiny import GONE, KEY_QUERIES, ONE, ROW_QUERIES, Silence, databases_by_keys, databases_by_rows, worst_change

CAPS = {"person": 1, "visit": 2, "note": 2}

# -- caught by replay ----------------------------------------------------------------------------------------------


def replays(other: Callable[[], dict[str, CodedTable]]) -> bool:
    """Whether other data behind the same answers give the same models."""
    first = made.vault_of(made.database(5))
    models = made.released(made.run(first))
    again = made.vault_of(other(), tape=first.answers)
    try:
        return made.released(made.run(again)) == models
    except (ValueError, IndexError, StopIteration):
        return False  # it asked for something else than the tape holds


def neighbour() -> dict[str, CodedTable]:
    """The same data but for one row of one person."""
    data = made.database(5)
    data["person"].codes["age"][17] ^= 1
    data["visit"].keys["visit.guest"][0] = 5
    return data


def unrelated() -> dict[str, CodedTable]:
    return made.database(99, visits=900)


def _private(vault: Vault) -> Sealed:
    assert vault._sealed is not None
    return vault._sealed


def exact_leaf_sizes(patch: pytest.MonkeyPatch) -> None:
    """The reference code's own leak: leaves remember how many rows they had."""
    make = tree._node

    def leaky(vault: Vault, draft: Any, *arguments: Any, **options: Any) -> Any:
        node, _ = make(vault, draft, *arguments, **options)
        return node, Size(rows=len(_private(vault).rows(draft.task.block)), variance=1e-9)

    patch.setattr(tree, "_node", leaky)


def real_keys(patch: pytest.MonkeyPatch) -> None:
    def leaky(vault: Vault, link: Any, learnt: Any, **_: Any) -> SlotLink:
        degrees = queries.degrees(_private(vault).key(link), link.slots or 10**4)
        return SlotLink(counts=np.append(0.0, degrees)[None, :])

    patch.setattr(links, "learn_link", leaky)


def fitted_order(patch: pytest.MonkeyPatch) -> None:
    """Column splits tried in an order that depends on the data."""
    choose = choose_halves

    def leaky(vault: Vault, block: Any, columns: Any, **options: Any) -> Any:
        first = int(_private(vault).codes(block, columns[0]).sum()) % len(columns)
        return choose(vault, block, (*columns[first:], *columns[:first]), **options)

    patch.setattr(tree, "choose_halves", leaky)


@pytest.mark.parametrize("mutant", [exact_leaf_sizes, real_keys, fitted_order])
def test_replay_catches(mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    assert replays(neighbour)
    assert replays(unrelated)
    mutant(monkeypatch)
    assert not (replays(neighbour) and replays(unrelated))


def test_replay_without_data_catches_a_method_that_opens_the_vault(monkeypatch: pytest.MonkeyPatch) -> None:
    first = made.vault_of(made.database(5))
    made.run(first)
    exact_leaf_sizes(monkeypatch)
    with pytest.raises(AssertionError):
        made.run(made.vault_of(None, tape=first.answers))


# -- caught by brute force -----------------------------------------------------------------------------------------


def cap_forgotten(patch: pytest.MonkeyPatch) -> None:
    def count(self: Vault, block: Any, query: str, exact: Any, *, draws: int, epsilon: Fraction) -> Any:
        return self._measure(block.scope, block.table, query, exact, draws=draws, sensitivity=1, epsilon=epsilon)

    patch.setattr(Vault, "_count", count)


def first_rows_of_the_table(patch: pytest.MonkeyPatch) -> None:
    """Truncation by the order of the whole table: who leaves makes room for others."""
    patch.setattr(queries, "keep_rows", lambda entities, _codes, cap: np.arange(len(entities)) < cap + 1)


def no_truncation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(queries, "keep_rows", lambda entities, _codes, _cap: np.ones(len(entities), bool))


def rows_of_cut_owners_kept(patch: pytest.MonkeyPatch) -> None:
    """The cut of an owned table counts rows per owner row, not per entity."""
    keep = queries.keep_rows
    patch.setattr(queries, "keep_rows", lambda entities, codes, cap: keep(np.arange(len(entities)) // 2, codes, cap))


def references_charged_like_owners(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Vault, "degree_sensitivity", lambda self, link: self.cap(link.target))


def references_count_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Vault,
        "degree_sensitivity",
        lambda self, link: self.cap(link.target) + (link.kind.value != "owner") * self.cap(link.table),
    )


def sums_from_zero(patch: pytest.MonkeyPatch) -> None:
    """Coordinates that are not centred move a sum twice as far."""
    centred = queries.coordinates
    patch.setattr(queries, "coordinates", lambda codes, size: centred(codes, size) + queries.COORDINATE)


def dependence_in_finer_units(patch: pytest.MonkeyPatch) -> None:
    """Scores in bits divided by nothing: the sensitivity of the score is far above what is charged."""
    patch.setattr(queries, "dependence_units", lambda bits, _most: int(bits * 2**queries.BITS))


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant",
    [
        cap_forgotten,
        first_rows_of_the_table,
        no_truncation,
        rows_of_cut_owners_kept,
        references_charged_like_owners,
        references_count_one,
        sums_from_zero,
        dependence_in_finer_units,
    ],
)
def test_brute_force_catches(mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    silence = Silence(monkeypatch)
    with pytest.raises(AssertionError, match=">"):
        check_all(silence)


def check_all(silence: Silence) -> None:
    whole_tables = {name: query for name, query in ROW_QUERIES.items() if "part" not in name}
    for caps in ({"person": 1, "visit": 1, "note": 1}, CAPS):
        worst_change(silence, databases_by_rows(), whole_tables, caps)
        worst_change(silence, databases_by_keys((0, 1, 1)), KEY_QUERIES, caps)


def test_scores_that_do_not_move_the_same_way_are_not_monotone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distance from a wanted number of cut entities is a fair score, but must be charged twice."""
    silence = Silence(monkeypatch)
    monkeypatch.setattr(
        queries, "cap_scores", lambda rows, caps, _: -np.abs(np.array([(rows > c).sum() for c in caps], np.int64) - 1)
    )
    ask = {"cap": lambda v: v.choose_cap("visit", [1, 2], [0, 0], scope=v.ledger.root, epsilon=ONE)}
    with pytest.raises(AssertionError, match="not monotone"):
        worst_change(silence, databases_by_rows(), ask, {"person": 1})


# -- caught by ledger and verifier ---------------------------------------------------------------------------------


def half_the_noise_of_a_choice(patch: pytest.MonkeyPatch) -> None:
    def cheap(_: Currency, amount: Fraction, *, sensitivity: int, monotone: bool) -> Fraction:
        return round_scale(sensitivity / amount)

    patch.setattr(price_module, "choice_scale", cheap)


def test_an_event_refuses_a_choice_without_factor_two(monkeypatch: pytest.MonkeyPatch) -> None:
    half_the_noise_of_a_choice(monkeypatch)
    with pytest.raises(ValueError, match="more than epsilon"):
        made.run(made.vault_of(made.database(5)))


def test_the_verifier_finds_a_choice_without_factor_two(monkeypatch: pytest.MonkeyPatch) -> None:
    half_the_noise_of_a_choice(monkeypatch)
    monkeypatch.setattr(Event, "_check_cost", lambda _: None)
    vault = made.vault_of(made.database(5), entropy=SeededEntropy())
    made.run(vault)
    verdict = verify_receipt(made.receipt(vault))
    assert verdict.status == "failed"
    assert "too small" in verdict.problems[0]


def test_a_count_in_a_part_with_the_cap_forgotten_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cap_forgotten(monkeypatch)
    vault = tiny.open_vault(tiny.database([{}, {}], [{"person": GONE}]), CAPS)
    with pytest.raises(ValueError, match="whole multiple"):
        ROW_QUERIES["histogram in a part"](vault)


def test_a_skipped_charge_leaves_an_answer_without_event(monkeypatch: pytest.MonkeyPatch) -> None:
    charge = Scope.charge

    def forgetful(self: Scope, event: Event) -> None:
        if "histogram" not in event.query:
            charge(self, event)

    def events_and_answers() -> tuple[int, int]:
        vault = made.vault_of(made.database(5))
        made.run(vault)
        return sum(node["kind"] == "event" for node in vault.ledger.to_json()["nodes"]), len(vault.answers)

    events, answers = events_and_answers()
    assert events == answers
    monkeypatch.setattr(Scope, "charge", forgetful)
    events, answers = events_and_answers()
    assert events < answers


def test_overlapping_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that repeat would let a row count as often as it is in one."""
    learn = links.learn_link

    def twice(vault: Vault, link: Any, learnt: Any, **options: Any) -> Any:
        return learn(vault, link, replace(learnt, parts=learnt.parts * 2), **options)

    monkeypatch.setattr(links, "learn_link", twice)
    with pytest.raises(ValueError, match="overlap"):
        made.run(made.vault_of(made.database(5)))


# -- caught by audit -----------------------------------------------------------------------------------------------


def sizes_with(visits: int, runs: int, seed: int) -> np.ndarray:
    """The noisy number of visits, over and over, with epsilon 1 each."""
    vault = Vault(
        tiny.facts(),
        tiny.database([{}, {}], [{"person": GONE}] * visits),
        ledger=Ledger(Fraction(10**6)),
        entropy=TestEntropy(seed),
    )
    for table, cap in CAPS.items():
        vault.cap_rows(table, cap)
    block = vault.whole("visit", vault.ledger.root)
    return np.array([vault.size(block, epsilon=ONE) for _ in range(runs)])


@pytest.mark.slow
def test_an_audit_of_the_vault_passes_it_and_catches_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = 2000
    assert loss_bound(sizes_with(0, runs, 1), sizes_with(2, runs, 2)) <= 1
    monkeypatch.setattr(
        door_module, "discrete_laplace", lambda n, scale, entropy: discrete_laplace(n, scale / 2, entropy)
    )
    assert loss_bound(sizes_with(0, runs, 1), sizes_with(2, runs, 2)) > 1
