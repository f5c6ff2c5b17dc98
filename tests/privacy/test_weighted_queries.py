"""What the door with weights charges and answers: for every kind of feature, in every currency."""

from fractions import Fraction
from math import isclose, prod
from typing import Any

import numpy as np
import pytest
from privbench.privacy.sealed_features import SealedFeatures
from privbench.privacy.weighted import WeightedQueries

from privbench.errors import BudgetError
from privbench.privacy.events import UNITS, Currency
from privbench.privacy.exact import distance_score
from privbench.privacy.features import Axis, touches_of
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy
from privbench.privacy.queries import Pair
from privbench.privacy.vault import Vault

from . import weighted_tiny as tiny
from .tiny import Silence
from .weighted_tiny import AXES, FACTS, OTHERS, PAIRS, SINGLES, coded, label

ONE = Fraction(1)
ROWS = next(b for b in tiny.bundles() if len(b) > 6)
DATA = coded([*ROWS, *OTHERS["many visits"]])


def open_vault(currency: Currency = Currency.EPSILON, *, seed: int = 0) -> Vault:
    return Vault(FACTS, DATA, ledger=Ledger(Fraction(10**6), currency), entropy=TestEntropy(seed))


def last_event(vault: Vault) -> dict[str, Any]:
    event: dict[str, Any] = vault.ledger.to_json()["nodes"][-1]
    return event


def queries_of(vault: Vault, table: str) -> WeightedQueries:
    return WeightedQueries(vault, table, vault.ledger.root)


def axes_of(question: tiny.Question) -> list[Axis]:
    return [AXES[question[0], f.name] for f in question[1]]


@pytest.mark.parametrize("question", [*SINGLES, *PAIRS[::5]], ids=label)
def test_a_histogram_is_charged_by_what_its_features_can_move(
    question: tiny.Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    Silence(monkeypatch)
    vault, axes = open_vault(Currency.RHO_REPLACE), axes_of(question)
    answer = queries_of(vault, question[0]).histogram(axes, amount=ONE)
    event, touches = last_event(vault), touches_of(question[1])
    assert Fraction(event["sensitivity"]) == UNITS * touches
    assert (event["weighted"], event["additive"], event["monotone"]) == (True, touches == 1, False)
    assert event["draws"] == prod(axis.size for axis in axes) == answer.size
    assert np.array_equal(answer, SealedFeatures(FACTS, DATA).cells(question[0], axes))


@pytest.mark.parametrize("question", PAIRS[::7], ids=label)
def test_a_pair_is_charged_like_a_histogram_and_leaves_no_exact_table_behind(
    question: tiny.Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    Silence(monkeypatch)
    vault, (first, second) = open_vault(), axes_of(question)
    queries = queries_of(vault, question[0])
    there, back = queries.pair(first, second, amount=ONE), queries.pair(second, first, amount=ONE)
    assert Fraction(last_event(vault)["sensitivity"]) == UNITS * touches_of(question[1])
    assert np.array_equal(there, back.T)
    sealed = vault._sealed
    assert sealed is not None
    assert not any(
        np.shares_memory(answer, kept) for answer in (there, back) for kept in sealed.features._pairs.values()
    )


@pytest.mark.parametrize("question", PAIRS[::7], ids=label)
def test_a_choice_is_charged_an_entity_and_never_as_monotone(question: tiny.Question) -> None:
    vault, (first, second) = open_vault(), axes_of(question)
    pair = Pair(first, second, np.zeros((first.size, second.size), np.int64), 0)
    queries_of(vault, question[0]).choose([pair], amount=ONE)
    event = last_event(vault)
    assert (Fraction(event["sensitivity"]), event["weighted"], event["monotone"]) == (UNITS, True, False)
    assert Fraction(event["scale"]) >= 2 * UNITS


def test_none_is_chosen_where_every_pair_is_as_expected() -> None:
    question = PAIRS[0]
    vault, (first, second) = open_vault(), axes_of(question)
    exact = SealedFeatures(FACTS, DATA).cells(question[0], [first, second])
    queries = queries_of(vault, question[0])
    dull, far = Pair(first, second, exact, 10**9), Pair(first, second, exact + 10**9, 0)
    assert queries.choose([dull], amount=Fraction(10**4)) is None
    assert queries.choose([dull, far], amount=Fraction(10**4)) is far


def test_a_table_counted_for_a_choice_is_the_one_that_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    Silence(monkeypatch)
    question = PAIRS[3]
    vault, (first, second) = open_vault(), axes_of(question)
    queries = queries_of(vault, question[0])
    queries.choose([Pair(second, first, np.zeros((second.size, first.size), np.int64), 0)], amount=ONE)
    before = queries.pair(first, second, amount=ONE)
    queries.forget()
    assert np.array_equal(before, queries.pair(first, second, amount=ONE))
    assert np.array_equal(before, SealedFeatures(FACTS, DATA).cells(question[0], [first, second]))


@pytest.mark.parametrize("table", FACTS.tables)
def test_pairs_counted_together_are_what_each_is_alone(table: str) -> None:
    rng = np.random.default_rng(2)
    questions = [q for q in PAIRS if q[0] == table]
    exact = [SealedFeatures(FACTS, DATA).cells(table, axes_of(q)) for q in questions]
    pairs = [Pair(*axes_of(q), rng.integers(0, UNITS, e.shape), 17) for q, e in zip(questions, exact, strict=True)]
    sealed = SealedFeatures(FACTS, DATA)
    alone = [distance_score(e, pair.expected, pair.penalty, pair.touches) for e, pair in zip(exact, pairs, strict=True)]
    assert sealed.scores(table, pairs[::2]) == alone[::2]
    assert sealed.scores(table, pairs) == alone
    for pair, cells in zip(pairs, exact, strict=True):
        assert np.array_equal(sealed.pair(table, pair.first, pair.second), cells)
        assert np.array_equal(sealed.pair(table, pair.second, pair.first), cells.T)


@pytest.mark.parametrize("currency", Currency)
@pytest.mark.parametrize(
    "question", [SINGLES[0], SINGLES[4], next(q for q in PAIRS if touches_of(q[1]) == 5)], ids=label
)
def test_the_noise_that_is_told_is_the_noise_that_is_drawn(question: tiny.Question, currency: Currency) -> None:
    vault = open_vault(currency)
    queries = queries_of(vault, question[0])
    told = queries.noise(question[1], ONE / 3)
    queries.histogram(axes_of(question), amount=ONE / 3)
    assert isclose(told.scale, float(Fraction(last_event(vault)["scale"]) / UNITS), rel_tol=1e-12)
    assert told.gaussian == (currency is not Currency.EPSILON)


def test_measuring_again_costs_again() -> None:
    vault = open_vault()
    queries = queries_of(vault, "person")
    first = queries.histogram(axes_of(SINGLES[0]), amount=ONE)
    second = queries.histogram(axes_of(SINGLES[0]), amount=ONE)
    assert vault.ledger.total == 2
    assert not np.array_equal(first, second)


def test_what_the_ledger_refuses_was_not_looked_at() -> None:
    vault = Vault(FACTS, DATA, ledger=Ledger(ONE), entropy=TestEntropy(0))
    with pytest.raises(BudgetError):
        queries_of(vault, "visit").histogram(axes_of(SINGLES[6]), amount=Fraction(2))
    assert vault.answers == []
    assert vault._sealed is not None
    assert vault._sealed.features._codes == {}


# -- what replacing an entity costs --------------------------------------------------------------------------------


def replaced(step: int) -> Any:
    """Databases in which one person's bundle is exchanged for another's."""
    found = list(tiny.bundles())
    for at in range(0, len(found), step):
        for others in OTHERS.values():
            other = found[(31 * at + 17) % len(found)]
            yield [SealedFeatures(FACTS, coded([*others, *mine])) for mine in (found[at], other)]


@pytest.mark.slow
@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_replacing_moves_additive_histograms_by_the_root_of_two(step: int) -> None:
    worst = dict.fromkeys(map(label, SINGLES), 0)
    for before, after in replaced(step):
        for question in SINGLES:
            change = tiny.cells(before, question) - tiny.cells(after, question)
            square, touches = int((change**2).sum()), touches_of(question[1])
            assert square <= (2 if touches == 1 else 4 * touches**2) * UNITS**2, label(question)
            worst[label(question)] = max(worst[label(question)], square)
    own = [label(q) for q in SINGLES if touches_of(q[1]) == 1]
    assert sum(worst[name] == 2 * UNITS**2 for name in own) > len(own) // 2
    assert max(worst.values()) > 2 * UNITS**2  # counting keys of others is not additive


@pytest.mark.parametrize(("at", "multiple"), [(0, 2), (4, 4 * 9)], ids=["own", "named"])
def test_the_rho_of_replacing_covers_it(at: int, multiple: int) -> None:
    vault = open_vault(Currency.RHO_REPLACE)
    queries_of(vault, "person").histogram(axes_of(SINGLES[at]), amount=Fraction(1, 7))
    sigma = Fraction(last_event(vault)["scale"])
    assert multiple * UNITS**2 / (2 * sigma**2) <= Fraction(1, 7)
    assert multiple * UNITS**2 / (2 * sigma**2) > Fraction(1, 7) * Fraction(999, 1000)
