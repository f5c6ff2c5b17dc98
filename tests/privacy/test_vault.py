"""The vault's two verbs: nothing without a charge, nothing past the budget, no part that looks at the whole."""

import copy
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privbench.encode.coded import CodedTable
from privbench.errors import BudgetError
from privbench.methods.capped import column_histogram, row_histogram
from privbench.privacy import features
from privbench.privacy import vault as vault_module
from privbench.privacy.blocks import Block, disjoint
from privbench.privacy.calibrate import Noise, calibrate, query_noise
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.exact import distance_score
from privbench.privacy.features import whole_axis
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy
from privbench.privacy.part_counter import PartCounter
from privbench.privacy.parts import one_part
from privbench.privacy.queries import ENTITY_WEIGHT, Choice, Histogram, Pair, PairChoice, Query
from privbench.privacy.vault import Measured, Vault, draw

from . import weighted_tiny
from .tiny import (
    CENTRES,
    COLUMNS,
    GONE,
    ONE,
    cap_choice,
    database,
    facts,
    key_queries,
    link,
    open_vault,
    parts,
    row_queries,
    whole,
)
from .weighted_tiny import HEAVY, LEADS, OTHERS, PAIRS, SINGLES, TOTALS

CAPS = {"person": 1, "visit": 2, "note": 2}
NAMES = [*row_queries(open_vault(None, CAPS)), *key_queries(open_vault(None, CAPS)), "cap"]


def queries(vault: Vault) -> dict[str, Query]:
    return {**row_queries(vault), **key_queries(vault), "cap": cap_choice()}


def ask(vault: Vault, query: Query, amount: Fraction = ONE) -> Measured | int:
    """Ask anything: charged to the scope of its block, or to the root."""
    scope = vault.ledger.root if query.block is None else None
    if isinstance(query, Choice):
        return vault.choose(query, amount, scope)
    return vault.measure(query, amount, scope)  # type: ignore[arg-type]


def as_published(vault: Vault) -> object:
    return vault.split_as_published(whole(vault, "visit"), COLUMNS["visit"], rounds=2, fewest=1, amount=ONE)


def made() -> dict[str, CodedTable]:
    visits = [{"person": p, "cost": p + 1, "kind": p, "guest": 0, "previous": 0} for p in (0, 1, 1)]
    return database([{}, {"boss": 0}], visits, [{"visit": 1, "about": 0}])


def weighted_vault(measure: PrivacyMeasure = PrivacyMeasure.EPSILON, *, budget: int = 10**6, seed: int = 0) -> Vault:
    """A vault on one of the databases with keys of every kind."""
    rows = [*next(b for b in weighted_tiny.bundles() if len(b) > 6), *OTHERS["many visits"]]
    entropy = TestEntropy(seed)
    engine = NumpyEngine(one_part(weighted_tiny.coded(rows), weighted_tiny.raw(rows)), entropy=entropy)
    return Vault(engine, ledger=Ledger(Fraction(budget), measure), entropy=entropy)


def exact_answers(vault: Vault, *asked: Query) -> list[Any]:
    assert vault._engine is not None
    return [np.asarray(found) for found in vault._engine.count(asked)]


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("discrete_laplace", "discrete_gaussian"):
        monkeypatch.setattr(f"privbench.privacy.vault.{name}", lambda size, *_: np.zeros(size, np.int64))


# -- charged first -------------------------------------------------------------------------------------------------


def untouchable(*_: Any, **__: Any) -> Any:
    raise AssertionError("the rows were touched")


@pytest.mark.parametrize("name", [*NAMES, "as published"])
def test_a_query_that_does_not_fit_is_refused_before_the_rows_are_touched(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = open_vault(made(), CAPS)
    asked = queries(vault)
    vault.measure(row_histogram(whole(vault, "person")), vault.ledger.budget - Fraction(1, 2))
    spent, answers = vault.ledger.total, len(vault.answers)
    for verb in ("count", "codes_in", "split_rows"):
        monkeypatch.setattr(NumpyEngine, verb, untouchable)
    with pytest.raises(BudgetError, match="Nothing was drawn"):
        as_published(vault) if name == "as published" else ask(vault, asked[name])
    assert vault.ledger.total == spent
    assert len(vault.answers) == answers


def test_of_a_batch_nothing_is_counted_unless_all_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    vault = weighted_vault(budget=1)
    monkeypatch.setattr(NumpyEngine, "count", untouchable)
    with pytest.raises(BudgetError):
        vault.measure_all([(query, Fraction(1, 3)) for query in list(SINGLES.values())[:4]], vault.ledger.root)
    assert vault.answers == []


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_be_counted_stays_charged_and_says_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A work file may be gone: who tries again pays again, and the first try has no answer."""
    vault = open_vault(made(), CAPS)
    query = queries(vault)[name]
    with monkeypatch.context() as broken:
        broken.setattr(PartCounter, "tallies", untouchable)
        with pytest.raises(AssertionError, match="touched"):
            ask(vault, query)
    spent = vault.ledger.total
    assert spent > 0
    assert vault.answers == []
    ask(vault, query)
    assert vault.ledger.total == 2 * spent
    assert len(vault.answers) == 1


def test_measuring_again_costs_again() -> None:
    vault, query = weighted_vault(), next(iter(SINGLES.values()))
    first, second = (vault.measure(query, ONE, vault.ledger.root) for _ in range(2))
    assert vault.ledger.total == 2
    assert not np.array_equal(first.values, second.values)


@pytest.mark.parametrize("name", NAMES)
def test_an_event_describes_its_query_and_how_many_numbers_were_drawn(name: str) -> None:
    vault = open_vault(made(), CAPS)
    query = queries(vault)[name]
    ask(vault, query)
    event = vault.ledger.to_json()["nodes"][-1]
    assert event["query"] == query.to_json()
    assert (Fraction(event["sensitivity"]), event["draws"]) == (query.sensitivity, query.draws)
    assert event["draws"] == vault.answers[-1].size


@pytest.mark.parametrize("name", [*SINGLES, *list(PAIRS)[::5], *TOTALS])
def test_a_weighted_histogram_is_charged_and_counted_in_any_measure(name: str, no_noise: None) -> None:
    query = {**SINGLES, **PAIRS, **TOTALS}[name]
    for measure in PrivacyMeasure:
        vault = weighted_vault(measure)
        measured = vault.measure(query, ONE, vault.ledger.root)
        event = vault.ledger.to_json()["nodes"][-1]
        assert (event["query"], event["draws"]) == (query.to_json(), measured.values.size)
        assert Fraction(event["sensitivity"]) == query.sensitivity
        assert np.array_equal(measured.values, exact_answers(vault, query)[0])
        assert np.array_equal(measured.counts, measured.values / ENTITY_WEIGHT)
        assert measured.noise == query_noise(query, vault.privacy_measure, ONE)


# -- what is recorded ----------------------------------------------------------------------------------------------


def test_a_vault_neither_prints_nor_leaves() -> None:
    vault = open_vault(made(), CAPS)
    assert repr(vault) == "<vault>"
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        for private in (vault, vault._engine, made()["visit"]):
            with pytest.raises(TypeError, match="cannot be pickled"):
                leave(private)
            assert "1" not in repr(private).split(" at ")[0]


def test_it_needs_an_engine_or_a_tape_and_not_both() -> None:
    engine = NumpyEngine(one_part(made()), entropy=TestEntropy(0))
    for given, tape in ((None, None), (engine, [])):
        with pytest.raises(ValueError, match="either an engine or a tape"):
            Vault(given, ledger=Ledger(ONE), entropy=TestEntropy(1), tape=tape)


def told(vault: Vault) -> list[Any]:
    """All that a vault answers, as plain values."""
    found: list[Any] = [ask(vault, query) for query in queries(vault).values()]
    blocks, sizes = vault.split_as_published(whole(vault, "visit"), COLUMNS["visit"], rounds=2, fewest=1, amount=ONE)
    found.append(ask(vault, column_histogram(facts(), blocks[1], "cost")))
    plain = [f if isinstance(f, int) else (f.values.tolist(), f.noise, f.unit, f.keys) for f in found]
    return [*plain, sizes, vault.coins(3).tolist()]


def test_every_query_replays_from_its_tape_alone() -> None:
    first = open_vault(made(), CAPS)
    before = told(first)
    second = Vault(None, ledger=Ledger(first.ledger.budget), entropy=TestEntropy(9), tape=first.answers)
    for table, cap in CAPS.items():
        second.cap_rows(table, cap, facts().owner_link(table))
    assert told(second) == before
    assert first.ledger.to_json() == second.ledger.to_json()
    with pytest.raises(RuntimeError, match="fewer answers"):
        ask(second, row_histogram(whole(second, "person")))


def test_recorded_answers_cannot_be_changed_by_who_gets_them() -> None:
    vault = open_vault(made(), CAPS)
    measured = vault.measure(column_histogram(facts(), whole(vault, "visit"), "cost"), ONE)
    with pytest.raises(ValueError, match="read-only"):
        measured.values += 1


def test_no_exact_count_is_behind_an_answer(no_noise: None) -> None:
    """Even without noise an answer is an array of its own: what the engine remembers cannot be changed or watched."""
    vault = weighted_vault()
    assert isinstance(vault._engine, NumpyEngine)
    query = PAIRS["visit: column cost x rank #rank"]
    back = Histogram(table="visit", axes=query.axes[::-1])
    one, other = (vault.measure(q, ONE, vault.ledger.root) for q in (query, back))
    assert np.array_equal(one.values, other.values.T)
    kept = vault._engine._pairs.values()
    assert len(kept) == 1
    assert not any(np.shares_memory(m.values, cells) for m in (one, other) for cells in kept)


def test_noise_is_drawn_for_every_count() -> None:
    answers = []
    for seed in range(30):
        vault = open_vault(made(), CAPS, seed=seed)
        answers.append(vault.measure(column_histogram(facts(), whole(vault, "person"), "age"), ONE).values)
    assert (np.ptp(np.stack(answers), axis=0) > 0).all()


def test_test_noise_is_known_as_such() -> None:
    assert not open_vault(made(), CAPS).noise_is_private


# -- choices -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", PrivacyMeasure)
@pytest.mark.parametrize("name", list(LEADS))
def test_a_choice_is_charged_an_entity_and_never_as_monotone(name: str, measure: PrivacyMeasure) -> None:
    query = LEADS[name]
    assert isinstance(query, Choice)
    vault = weighted_vault(measure)
    vault.choose(query, ONE, vault.ledger.root)
    event = vault.ledger.to_json()["nodes"][-1]
    assert Fraction(event["sensitivity"]) == ENTITY_WEIGHT
    least = {PrivacyMeasure.EPSILON: 2, PrivacyMeasure.RHO: 0.5**0.5, PrivacyMeasure.RHO_REPLACE: 2**0.5}[measure]
    assert float(Fraction(event["scale"])) >= least * ENTITY_WEIGHT * (1 - 1e-12)


def test_none_is_chosen_where_every_pair_is_as_expected() -> None:
    vault, query = weighted_vault(), PAIRS["visit: column cost x rank #rank"]
    cells = exact_answers(vault, query)[0]
    dull, far = Pair(*query.axes, cells, 10**9), Pair(*query.axes, cells + 10**9, 0)
    for candidates, best in (((dull,), 1), ((dull, far), 1), ((far, dull), 0)):
        choice = PairChoice(table="visit", candidates=candidates)
        assert vault.choose(choice, Fraction(10**4), vault.ledger.root) == best


def test_a_table_counted_for_a_choice_is_the_one_that_is_measured(no_noise: None) -> None:
    vault, query = weighted_vault(), PAIRS["visit: column cost x rank #rank"]
    second, first = query.axes[::-1], query.axes
    pair = Pair(*second, np.zeros((second[0].size, second[1].size), np.int64), 0)
    vault.choose(PairChoice(table="visit", candidates=(pair,)), ONE, vault.ledger.root)
    asked = Histogram(table="visit", axes=first)
    before = vault.measure(asked, ONE, vault.ledger.root)
    vault.forget("visit")
    after = vault.measure(asked, ONE, vault.ledger.root)
    assert np.array_equal(before.values, after.values)
    assert np.array_equal(before.values, exact_answers(weighted_vault(), query)[0])


@pytest.mark.parametrize("table", weighted_tiny.TABLES)
def test_pairs_counted_together_are_what_each_is_alone(table: str) -> None:
    rng = np.random.default_rng(2)
    asked = [query for query in PAIRS.values() if query.table == table]
    alone = [exact_answers(weighted_vault(), query)[0] for query in asked]
    pairs = [Pair(*q.axes, rng.integers(0, ENTITY_WEIGHT, e.shape), 17) for q, e in zip(asked, alone, strict=True)]
    scores = [distance_score(e, p.expected, p.penalty, p.sensitivity_factor) for e, p in zip(alone, pairs, strict=True)]
    vault = weighted_vault()
    some, every = (PairChoice(table=table, candidates=tuple(c)) for c in (pairs[::2], pairs))
    assert [found.tolist() for found in exact_answers(vault, some, every)] == [[*scores[::2], 0], [*scores, 0]]
    for query, cells in zip(asked, alone, strict=True):
        there, back = exact_answers(vault, query, Histogram(table=table, axes=query.axes[::-1]))
        assert np.array_equal(there, cells)
        assert np.array_equal(back, cells.T)


# -- queries that would cost more than they are charged ------------------------------------------------------------


def test_a_cap_cannot_change_once_blocks_may_hold_its_rows() -> None:
    vault = open_vault(made(), CAPS)
    with pytest.raises(ValueError, match="capped already"):
        vault.cap_rows("visit", 1, link("person"))


def test_whole_tables_are_not_measured_in_a_part() -> None:
    vault = open_vault(made(), CAPS)
    part = parts(vault)[0]
    asked = queries(vault)
    before = vault.ledger.total
    with pytest.raises(ValueError, match="outside all partitions"):
        vault.whole("visit", part.scope)
    for name in ("size", "null guests", "followers of a visit", "slots of guest"):
        with pytest.raises(ValueError, match="outside all partitions"):
            vault.measure(asked[name], ONE, part.scope)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="outside all partitions"):
        vault.choose(cap_choice("note"), ONE, part.scope)
    for query in (*list(SINGLES.values())[:2], *HEAVY.values()):
        with pytest.raises(ValueError, match="outside all partitions"):
            vault.measure(query, ONE, part.scope)  # type: ignore[arg-type]
    assert vault.ledger.total == before


def test_a_block_of_a_whole_table_cannot_be_charged_to_a_part_by_hand() -> None:
    vault = open_vault(made(), CAPS)
    forged = Block(table="visit", cap=2, scope=parts(vault)[0].scope)
    with pytest.raises(ValueError, match="outside all partitions"):
        vault.measure(row_histogram(forged), ONE)
    assert vault.answers == []


def test_a_block_cannot_claim_fewer_rows_per_entity_than_are_kept() -> None:
    vault = open_vault(made(), CAPS)
    forged = Block(table="visit", cap=1, scope=vault.ledger.root)
    counted = features.in_degree(link("previous"), np.arange(4), cap=1)
    for query in (row_histogram(forged), row_histogram(whole(vault, "visit"), whole_axis(counted))):
        with pytest.raises(ValueError, match="visit"):
            vault.measure(query, ONE)
    assert vault.answers == []


def test_a_query_on_a_part_is_charged_to_that_part() -> None:
    vault = open_vault(made(), CAPS)
    left, right = parts(vault)
    for scope in (vault.ledger.root, right.scope):
        with pytest.raises(ValueError, match="is charged to that part"):
            vault.measure(row_histogram(left), ONE, scope)
    with pytest.raises(ValueError, match="needs a scope"):
        vault.measure(next(iter(SINGLES.values())), ONE)


def test_parts_that_overlap_are_refused() -> None:
    vault = open_vault(made(), CAPS)
    everything = whole(vault, "visit")
    left, right = vault.split(everything, COLUMNS["visit"], CENTRES)
    low, high = vault.split(left, COLUMNS["visit"], CENTRES)
    other, _ = vault.split(everything, COLUMNS["visit"], CENTRES)
    person = whole(vault, "person")
    assert disjoint([low, high, right])
    assert disjoint([right, low])
    overlapping = ([left, left], [everything, left], [left, low], [low, left], [low, other], [right, other])
    for blocks in (*overlapping, [left, person]):
        assert not disjoint(blocks)
        with pytest.raises(ValueError, match="overlap or are of another table"):
            row_histogram(everything, whole_axis(features.part(blocks)))
    with pytest.raises(ValueError, match="another table"):
        row_histogram(everything, whole_axis(features.part([person])))


def test_keys_whose_slots_are_private_are_not_counted_by_slot() -> None:
    with pytest.raises(ValueError, match="are private"):
        features.key_slot(link("previous"), shuffled=False)


# -- nothing raises because of a value -----------------------------------------------------------------------------


@pytest.mark.parametrize("visits", [0, 1, 40])
def test_empty_and_lopsided_tables_are_measured_like_others(visits: int) -> None:
    rows = [{"person": GONE, "cost": 2, "kind": 1, "guest": 1, "previous": 0} for _ in range(visits)]
    vault = open_vault(database([{}, {}], rows), CAPS)
    assert len(told(vault)) == len(NAMES) + 3
    assert vault.ledger.total > 0


def test_measured_counts_are_in_entities_and_add_up() -> None:
    values = np.array([ENTITY_WEIGHT, ENTITY_WEIGHT // 2])
    measured = Measured(values=values, noise=Noise(gaussian=False, scale=1.0), unit=ENTITY_WEIGHT)
    assert (measured.counts.tolist(), measured.total) == ([1.0, 0.5], 1.5)


# -- the noise that is drawn is the one that was charged ---------------------------------------------------------------

SCORES = np.array([0, ENTITY_WEIGHT, 3 * ENTITY_WEIGHT], np.int64)
CHOICES = 3000


def fit_of_choices(measure: PrivacyMeasure) -> float:
    """How well what the vault chooses fits the law of the event that it charges, as a chance."""
    query = next(iter(PAIRS.values()))
    pair = Pair(*query.axes, np.zeros([axis.size for axis in query.axes], np.int64), 0)
    event = calibrate(PairChoice(table=query.table, candidates=(pair, pair)), measure, Fraction(1, 2))
    heads = np.exp((SCORES - SCORES.max()) / float(event.scale))
    others = [heads[at] * (1 / 2 - heads[1 - at] / 6) for at in (0, 1)]  # the best of the three always shows heads
    entropy = TestEntropy(5)
    drawn = [int(draw(event, SCORES, entropy)[0]) for _ in range(CHOICES)]
    law = heads / heads.sum() if event.mechanism.concentrated else np.array([*others, 1 - sum(others)])
    return float(stats.chisquare(np.bincount(drawn, minlength=3), law * CHOICES).pvalue)


@pytest.mark.parametrize(
    ("measure", "sampler"),
    [(PrivacyMeasure.RHO, "exponential_mechanism"), (PrivacyMeasure.EPSILON, "permute_and_flip")],
)
def test_choices_are_drawn_at_the_scale_of_their_event_and_half_of_it_shows(
    measure: PrivacyMeasure, sampler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fit_of_choices(measure) > 1e-3
    choose = getattr(vault_module, sampler)
    half = lambda scores, *, scale, entropy: choose(scores, scale=scale / 2, entropy=entropy)  # noqa: E731
    monkeypatch.setattr(vault_module, sampler, half)
    assert fit_of_choices(measure) < 1e-9
