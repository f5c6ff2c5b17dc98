"""What an amount of budget buys: the event costs no more than it, and hardly less; the method is told its noise."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from privbench.privacy.price import price_choice, price_noise, price_published

from privbench.errors import BudgetError
from privbench.privacy.calibrate import Noise, choice_noise, drawable, noise_of
from privbench.privacy.events import UNITS, Currency, Mechanism
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy
from privbench.privacy.vault import Vault

from .tiny import BOTH, CENTRES, database, facts

amounts = st.fractions(min_value=Fraction(1, 10**4), max_value=10)
currencies = st.sampled_from(Currency)


@given(currencies, amounts, st.sampled_from([1, 3, UNITS]), st.booleans())
def test_noise_costs_what_was_paid(currency: Currency, amount: Fraction, sensitivity: int, additive: bool) -> None:
    event = price_noise(currency, "t", "q", sensitivity=sensitivity, amount=amount, draws=2, additive=additive)
    assert event.cost <= event.amount <= amount
    assert event.cost > amount * (1 - Fraction(1, 10**6))
    assert event.mechanism is (
        Mechanism.DISCRETE_LAPLACE if currency is Currency.EPSILON else Mechanism.DISCRETE_GAUSSIAN
    )


@given(currencies, amounts, st.sampled_from([1, 3, UNITS]), st.booleans())
def test_a_choice_costs_what_was_paid(currency: Currency, amount: Fraction, sensitivity: int, monotone: bool) -> None:
    event = price_choice(currency, "t", "q", sensitivity=sensitivity, amount=amount, monotone=monotone)
    assert event.cost <= event.amount <= amount
    assert event.cost > amount * (1 - Fraction(1, 10**6))
    assert event.mechanism is (Mechanism.PERMUTE_AND_FLIP if currency is Currency.EPSILON else Mechanism.EXPONENTIAL)


def test_noise_in_entities() -> None:
    laplace = noise_of(Currency.EPSILON, Fraction(1, 2), sensitivity=UNITS, additive=True)
    assert laplace == Noise(gaussian=False, scale=2.0)
    assert laplace.variance == 8
    gaussian = noise_of(Currency.RHO, Fraction(1, 8), sensitivity=UNITS, additive=True)
    assert gaussian == Noise(gaussian=True, scale=2.0)
    assert gaussian.variance == 4
    assert noise_of(Currency.RHO_REPLACE, Fraction(1, 4), sensitivity=UNITS, additive=True).scale == 2
    assert noise_of(Currency.RHO_REPLACE, Fraction(1, 2), sensitivity=UNITS, additive=False).scale == 2
    assert noise_of(Currency.EPSILON, Fraction(1, 2), sensitivity=3, additive=True, unit=1).scale == 6


def test_a_choice_in_entities() -> None:
    assert choice_noise(Currency.EPSILON, Fraction(1, 2), sensitivity=UNITS, monotone=False) == 4
    assert choice_noise(Currency.RHO, Fraction(1, 8), sensitivity=UNITS, monotone=False) == 2
    assert choice_noise(Currency.RHO_REPLACE, Fraction(1, 2), sensitivity=UNITS, monotone=False) == 2
    assert choice_noise(Currency.RHO, Fraction(1, 8), sensitivity=5, monotone=True, unit=1) == 5


def test_the_highest_of_many_draws() -> None:
    assert Noise(gaussian=False, scale=2.0).highest(100) == pytest.approx(9.21, abs=0.01)
    assert Noise(gaussian=True, scale=2.0).highest(100) == pytest.approx(6.07, abs=0.01)


def test_what_cannot_be_drawn() -> None:
    for currency in Currency:
        assert drawable(currency, Fraction(1, 100), sensitivity=UNITS)
        assert not drawable(currency, Fraction(1, 10**13), sensitivity=UNITS)
        with pytest.raises(BudgetError):
            noise_of(currency, Fraction(1, 10**13), sensitivity=UNITS, additive=False)


def test_what_is_printed_is_paid_in_epsilon() -> None:
    event = price_published("t", "row split", sensitivity=8, rounds=3, amount=Fraction(1, 2))
    assert (event.mechanism, event.scale, event.draws) == (Mechanism.AS_PUBLISHED, 24, 3)


@pytest.mark.parametrize("currency", [Currency.RHO, Currency.RHO_REPLACE])
def test_the_vault_draws_what_its_ledger_counts(currency: Currency) -> None:
    vault = Vault(facts(), database([{}, {}]), ledger=Ledger(Fraction(100), currency), entropy=TestEntropy(7))
    vault.cap_rows("person", 1)
    block = vault.whole("person", vault.ledger.root)
    amount = Fraction(2 if currency is Currency.RHO_REPLACE else 1, 32)
    found = [vault.size(block, epsilon=amount) for _ in range(400)]
    told = vault.noise(amount, sensitivity=1, additive=True, unit=1)
    assert told == Noise(gaussian=True, scale=4.0)
    variance = sum((x - 2) ** 2 for x in found) / len(found)
    assert 0.75 < variance / told.variance < 1.3
    vault.choose_cap("visit", [1, 2], [0, 1], scope=vault.ledger.root, epsilon=amount)
    assert [n["mechanism"] for n in vault.ledger.to_json()["nodes"][-2:]] == ["discrete-gaussian", "exponential"]
    assert vault.choice_noise(amount, sensitivity=1, monotone=True, unit=1) > 0
    vault.cap_rows("visit", 1)
    visits = vault.whole("visit", vault.ledger.root)
    with pytest.raises(ValueError, match="in parallel"):
        vault.split(visits, BOTH, CENTRES)
