"""Leaks built in on purpose: each must be caught by replay, brute force, audit, the ledger or the verifier.

Those of weighted counts are in test_weighted_sensitivity.py, those of whole fits in tests/audit.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privbench.encode.coded import CodedTable
from privbench.methods import capped
from privbench.methods.capped import column_histogram, row_histogram
from privbench.methods.paper import network
from privbench.methods.paper.plan import choose_halves
from privbench.privacy import calibrate as calibrate_module
from privbench.privacy import exact, queries
from privbench.privacy import vault as vault_module
from privbench.privacy.blocks import Block
from privbench.privacy.calibrate import calibrate
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.events import Event, PrivacyMeasure
from privbench.privacy.features import Feature, InDegree
from privbench.privacy.ledger import Ledger, Scope
from privbench.privacy.noise import TestEntropy, discrete_laplace
from privbench.privacy.parts import one_part
from privbench.privacy.queries import Dependency, DependencyChoice, FrequentValues, HeavyHitters, Histogram
from privbench.privacy.select import exponential_mechanism
from privbench.privacy.sparse import sparse_histogram
from privbench.privacy.vault import Vault
from privbench_verify.receipt import verify_receipt

from ..methods import made
from ..opened import counter_of, tables_of
from ..seeded import SeededEntropy
from . import tiny, weighted_tiny
from .audit import loss_bound
from .brute import worst_moves
from .tiny import (
    GONE,
    ONE,
    cap_choice,
    database,
    databases_by_keys,
    databases_by_rows,
    degree_queries,
    families,
    key_queries,
    open_vault,
    row_queries,
    whole,
)

CAPS = {"person": 1, "visit": 2, "note": 2}
Mutant = Callable[[pytest.MonkeyPatch], None]

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


def opened(vault: Vault) -> NumpyEngine:
    """The engine of a vault, which no method may open."""
    assert isinstance(vault._engine, NumpyEngine)
    return vault._engine


def exact_leaf_sizes(patch: pytest.MonkeyPatch) -> None:
    """The reference code's own leak: leaves remember how many rows they had."""
    make = network._make

    def leaky(vault: Vault, facts: Any, task: Any, *arguments: Any) -> Any:
        draft, children = make(vault, facts, task, *arguments)
        if draft.counts is not None:
            rows = len(counter_of(opened(vault))._rows.of(task.block))
            values = np.full_like(draft.counts.values, rows)
            draft.counts = replace(draft.counts, values=values)
        return draft, children

    patch.setattr(network, "_make", leaky)


def real_keys(patch: pytest.MonkeyPatch) -> None:
    learn = capped.learn_link

    def leaky(vault: Vault, facts: Any, link: Any, learnt: Any, **options: Any) -> Any:
        found = learn(vault, facts, link, learnt, **options)
        degrees = exact.degrees(tables_of(opened(vault))[link.table].keys[link.name], 10**4)
        counts = np.broadcast_to(degrees[: found.counts.shape[-1]].astype(np.float64), found.counts.shape)
        return replace(found, counts=counts.copy())

    patch.setattr(capped, "learn_link", leaky)


def fitted_order(patch: pytest.MonkeyPatch) -> None:
    """Column splits tried in an order that depends on the data."""

    def leaky(vault: Vault, facts: Any, block: Block, columns: Any, **options: Any) -> Any:
        codes = opened(vault).codes_in(block, columns[:1])[columns[0]]
        first = int(codes.sum()) % len(columns)
        return choose_halves(vault, facts, block, (*columns[first:], *columns[:first]), **options)

    patch.setattr(network, "choose_halves", leaky)


@pytest.mark.parametrize("mutant", [exact_leaf_sizes, real_keys, fitted_order])
def test_replay_catches(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    assert replays(neighbour)
    assert replays(unrelated)
    mutant(monkeypatch)
    assert not (replays(neighbour) and replays(unrelated))


def test_replay_without_rows_catches_a_method_that_opens_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    first = made.vault_of(made.database(5))
    made.run(first)
    exact_leaf_sizes(monkeypatch)
    with pytest.raises(AssertionError):
        made.run(made.vault_of(None, tape=first.answers))


# -- caught by brute force -----------------------------------------------------------------------------------------


def cap_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Histogram, "sensitivity", 1)


def first_rows_of_the_table(patch: pytest.MonkeyPatch) -> None:
    """Truncation by the order of the whole table: who leaves makes room for others."""
    patch.setattr(exact, "keep_rows", lambda entities, _codes, cap: np.arange(len(entities)) < cap + 1)


def no_truncation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(exact, "keep_rows", lambda entities, _codes, _cap: np.ones(len(entities), bool))


def rows_of_cut_owners_kept(patch: pytest.MonkeyPatch) -> None:
    """The cut of an owned table counts rows per owner row, not per entity."""
    keep = exact.keep_rows
    patch.setattr(exact, "keep_rows", lambda entities, codes, cap: keep(np.arange(len(entities)) // 2, codes, cap))


def in_degrees_charged_like_fanouts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Feature, "in_degree", property(lambda _: None))


def references_count_once(patch: pytest.MonkeyPatch) -> None:
    """A key that moves a row from one bin to another moves two of them."""

    def once(query: Histogram) -> int:
        assert query.block is not None
        counted = [axis.feature.source for axis in query.axes if isinstance(axis.feature.source, InDegree)]
        return query.block.cap + sum(source.cap or 0 for source in counted)

    patch.setattr(Histogram, "sensitivity", property(once))


def sums_from_zero(patch: pytest.MonkeyPatch) -> None:
    """Coordinates that are not centred move a sum twice as far."""
    centred = exact.coordinates
    patch.setattr(exact, "coordinates", lambda codes, size: centred(codes, size) + exact.COORDINATE)


def dependence_in_finer_units(patch: pytest.MonkeyPatch) -> None:
    """Scores in bits divided by nothing: the sensitivity of the score is far above what is charged."""
    patch.setattr(exact, "dependence_units", lambda bits, _most: int(bits * 2**exact.SCORE_BITS))


@pytest.mark.parametrize(
    "mutant",
    [
        cap_forgotten,
        first_rows_of_the_table,
        no_truncation,
        rows_of_cut_owners_kept,
        in_degrees_charged_like_fanouts,
        references_count_once,
        sums_from_zero,
        dependence_in_finer_units,
    ],
)
def test_brute_force_catches(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match=">"):
        check_rows_and_keys()


def check_rows_and_keys() -> None:
    for caps in ({"person": 1, "visit": 1, "note": 1}, CAPS):
        vault = open_vault(None, caps)
        worst_moves(families(databases_by_rows(), caps), row_queries(vault))
        worst_moves(families(databases_by_keys((0, 1, 1)), caps), key_queries(vault))


@pytest.mark.parametrize("name", ["followers of a visit", "notes about a visit", "bosses"])
def test_in_degrees_that_are_called_additive_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Histogram, "additive", True)
    vault = open_vault(None, CAPS)
    asked = {name: {**key_queries(vault), **degree_queries(vault)}[name]}
    databases = [*databases_by_keys((0, 1)), *databases_by_keys((0, 1, 1))]
    with pytest.raises(AssertionError, match="not additive"):
        worst_moves(families(databases, CAPS), asked)


@pytest.mark.parametrize("name", ["cluster sums", "dependence of few rows"])
def test_sums_and_dependences_that_are_called_additive_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (queries.Sums, queries.Dependence):
        monkeypatch.setattr(kind, "additive", True)
    asked = {name: row_queries(open_vault(None, CAPS))[name]}
    with pytest.raises(AssertionError, match="not additive"):
        worst_moves(families(databases_by_rows(), CAPS), asked)


def test_scores_that_do_not_move_the_same_way_are_not_monotone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distance from a wanted number of cut entities is a fair score, but must be charged twice."""
    monkeypatch.setattr(exact, "cap_scores", lambda above, _: -np.abs(above - 1))
    with pytest.raises(AssertionError, match="not monotone"):
        worst_moves(families(databases_by_rows(), {"person": 1}), {"cap": cap_choice()})


# -- caught by the vault, the ledger and the verifier ---------------------------------------------------------------


def half_the_noise_of_a_choice(patch: pytest.MonkeyPatch) -> None:
    fair = calibrate_module.choice_scale

    def cheap(measure: PrivacyMeasure, amount: Fraction, *, sensitivity: int, monotone: bool) -> Fraction:
        return fair(measure, amount, sensitivity=sensitivity, monotone=True)

    patch.setattr(calibrate_module, "choice_scale", cheap)


@pytest.mark.parametrize("measure", PrivacyMeasure)
def test_an_event_refuses_a_choice_without_factor_two(measure: PrivacyMeasure, monkeypatch: pytest.MonkeyPatch) -> None:
    vault = open_vault(database([{}, {}], [{"person": GONE}]), CAPS, measure=measure)
    query = row_queries(vault)["column split"]
    assert vault.choose(query, ONE) == 0  # type: ignore[arg-type]
    half_the_noise_of_a_choice(monkeypatch)
    with pytest.raises(ValueError, match=f"more than {measure.word}"):
        vault.choose(query, ONE)  # type: ignore[arg-type]


def test_an_event_refuses_a_threshold_that_is_one_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    query = FrequentValues(table="t", column="a")
    delta, least = Fraction(1, 10**9), calibrate_module.least_threshold
    assert calibrate(query, PrivacyMeasure.RHO, Fraction(1, 9), delta=delta).threshold > 2
    monkeypatch.setattr(calibrate_module, "least_threshold", lambda *known: least(*known) - 1)
    with pytest.raises(ValueError, match="a value of one entity passes"):
        calibrate(query, PrivacyMeasure.RHO, Fraction(1, 9), delta=delta)


def test_the_verifier_finds_a_choice_without_factor_two(monkeypatch: pytest.MonkeyPatch) -> None:
    half_the_noise_of_a_choice(monkeypatch)
    monkeypatch.setattr(Event, "__post_init__", lambda _: None)
    vault = made.vault_of(made.database(5), entropy=SeededEntropy())
    made.run(vault)
    verdict = verify_receipt(made.receipt(vault))
    assert verdict.status == "failed"


def test_the_verifier_finds_a_cap_that_was_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    public = made.facts(caps={"visit": 3, "note": 2})
    vault = made.vault_of(made.database(5), entropy=SeededEntropy())
    made.run(vault, public=public)
    assert verify_receipt(made.receipt(vault, public=public)).status == "verified"
    monkeypatch.setattr(Histogram, "sensitivity", 3)  # a multiple of what blocks ask for, but less than in-degrees move
    vault = made.vault_of(made.database(5), entropy=SeededEntropy())
    made.run(vault, public=public)
    assert verify_receipt(made.receipt(vault, public=public)).status == "failed"


def test_the_verifier_finds_a_dependence_without_its_allowance_for_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "ROW_SCORE", 2**exact.SCORE_BITS)
    vault = made.vault_of(made.database(5), entropy=SeededEntropy())
    made.run(vault)
    kinds = {node["query"]["kind"] for node in vault.ledger.to_json()["nodes"] if node["kind"] == "event"}
    assert {"dependence", "choice of column split"} <= kinds
    assert verify_receipt(made.receipt(vault)).status == "failed"


def test_a_count_in_a_part_with_the_cap_forgotten_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cap_forgotten(monkeypatch)
    vault = open_vault(database([{}, {}], [{"person": GONE}]), CAPS)
    with pytest.raises(ValueError, match="whole multiple"):
        vault.measure(column_histogram(tiny.facts(), tiny.parts(vault)[1], "kind"), ONE)


def test_a_skipped_charge_leaves_an_answer_without_event(monkeypatch: pytest.MonkeyPatch) -> None:
    charge, coins = Scope.charge, 1

    def forgetful(self: Scope, event: Event) -> None:
        if not isinstance(event.query, Histogram):
            charge(self, event)

    def events_and_answers() -> tuple[int, int]:
        vault = made.vault_of(made.database(5))
        made.run(vault)
        return sum(node["kind"] == "event" for node in vault.ledger.to_json()["nodes"]), len(vault.answers) - coins

    events, answers = events_and_answers()
    assert events == answers
    monkeypatch.setattr(Scope, "charge", forgetful)
    events, answers = events_and_answers()
    assert events < answers


def test_overlapping_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that repeat would let a row count as often as it is in one."""
    learn = capped.learn_link

    def twice(vault: Vault, facts: Any, link: Any, learnt: Any, **options: Any) -> Any:
        return learn(vault, facts, link, replace(learnt, parts=learnt.parts * 2), **options)

    monkeypatch.setattr(capped, "learn_link", twice)
    with pytest.raises(ValueError, match="overlap"):
        made.run(made.vault_of(made.database(5)))


# -- caught by audit -----------------------------------------------------------------------------------------------


def sizes_with(visits: int, runs: int, seed: int) -> np.ndarray:
    """The noisy number of visits, over and over, with epsilon 1 each."""
    vault = open_vault(database([{}, {}], [{"person": GONE}] * visits), CAPS, seed=seed)
    size = row_histogram(whole(vault, "visit"))
    return np.array([m.values[0] for m in vault.measure_all([(size, ONE)] * runs)])


def test_an_audit_of_the_vault_passes_it_and_catches_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = 2000
    assert loss_bound(sizes_with(0, runs, 1), sizes_with(2, runs, 2)) <= 1
    halve(monkeypatch, "discrete_laplace", lambda n, scale, entropy: discrete_laplace(n, scale / 2, entropy))
    assert loss_bound(sizes_with(0, runs, 1), sizes_with(2, runs, 2)) > 1


def halve(patch: pytest.MonkeyPatch, name: str, sampler: Callable[..., Any]) -> None:
    """Let the vault draw by another sampler."""
    assert hasattr(vault_module, name)
    patch.setattr(vault_module, name, sampler)


def choices_with(persons: int, runs: int, seed: int) -> np.ndarray:
    """Which of two candidates is taken: a person is for the first and against the second; a scale of its weight."""
    rows = [weighted_tiny.Row(table="person", name=f"p{at}", entity=f"p{at}") for at in range(persons)]
    raw = {"person": {"age": pa.array([0] * persons, pa.int16()), "amount": pa.array([7] * persons, pa.int16())}}
    entropy = TestEntropy(seed)
    vault = Vault(
        NumpyEngine(one_part(weighted_tiny.coded(rows), raw), entropy=entropy),
        ledger=Ledger(Fraction(10**6), PrivacyMeasure.RHO),
        entropy=entropy,
    )
    for_it, against_it = (
        Dependency("person", weighted_tiny.agreement(column, "visit.person", None, rows="visit"))
        for column in ("age", "amount")
    )
    choice = DependencyChoice(table="person", candidates=(for_it, against_it))
    assert calibrate_module.choice_noise(vault.privacy_measure, Fraction(1, 2)) == 1
    return np.array([vault.choose(choice, Fraction(1, 2), vault.ledger.root) for _ in range(runs)])


@pytest.mark.slow
def test_an_audit_catches_the_exponential_mechanism_at_half_its_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores that move by a scale up and down: no choice is more than exp(2) times as likely."""
    runs = 6000
    assert loss_bound(choices_with(0, runs, 1), choices_with(1, runs, 2)) <= 2
    half = lambda scores, *, scale, entropy: exponential_mechanism(scores, scale=scale / 2, entropy=entropy)  # noqa: E731
    halve(monkeypatch, "exponential_mechanism", half)
    assert loss_bound(choices_with(0, runs, 1), choices_with(1, runs, 2)) > 2


def heavy_with(entities: int, runs: int, seed: int) -> np.ndarray:
    """How often a single tick is let out of a search for heavy hitters, with epsilon 1 each."""
    entropy = TestEntropy(seed)
    table = CodedTable(codes={}, keys={}, entities=np.arange(entities))
    raw = {"t": {"a": pa.array([5] * entities, pa.int32())}}
    engine = NumpyEngine(one_part({"t": table}, raw), entropy=entropy)
    vault = Vault(engine, ledger=Ledger(Fraction(10**6)), entropy=entropy)
    grid = weighted_tiny.GRID
    query = HeavyHitters(table="t", column="a", grid=grid, low=5, high=5, false=0.5)
    return np.array([len(m.keys) for m in vault.measure_all([(query, ONE)] * runs, vault.ledger.root)])


def test_an_audit_catches_a_domain_search_with_half_its_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = 1000
    assert loss_bound(heavy_with(0, runs, 1), heavy_with(1, runs, 2)) <= 1
    half = lambda *known, scale, **options: sparse_histogram(*known, scale=scale / 2, **options)  # noqa: E731
    halve(monkeypatch, "sparse_histogram", half)
    assert loss_bound(heavy_with(0, runs, 1), heavy_with(1, runs, 2)) > 1
