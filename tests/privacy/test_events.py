from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.errors import BudgetError
from privbench.privacy.events import FINE_GRID, GRID, UNITS, Currency, Event, Mechanism, quantise


def counts(**changes: Any) -> Event:
    facts = {"sensitivity": Fraction(3), "scale": Fraction(6), "amount": Fraction(1, 2), "draws": 4}
    return Event(**{"mechanism": Mechanism.DISCRETE_LAPLACE, "query": "sizes", "table": "person", **facts, **changes})


def choice(**changes: Any) -> Event:
    facts = {"mechanism": Mechanism.PERMUTE_AND_FLIP, "scale": Fraction(12), "draws": 1}
    return counts(**{**facts, **changes})


def test_noise_that_just_pays_is_taken() -> None:
    assert counts().amount == Fraction(1, 2)
    assert choice().scale == 12
    assert choice(monotone=True, scale=Fraction(6)).scale == 6


@pytest.mark.parametrize(
    ("event", "changes"),
    [
        (counts, {"scale": Fraction(599, 100)}),
        (choice, {"scale": Fraction(6)}),
        (choice, {"scale": Fraction(1199, 100)}),
        (choice, {"scale": Fraction(599, 100), "monotone": True}),
    ],
)
def test_too_little_noise_is_refused(event: Any, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"person: sizes: noise of scale .* costs"):
        event(**changes)


@pytest.mark.parametrize("name", ["sensitivity", "scale", "amount"])
@pytest.mark.parametrize("value", [0.5, 1, Fraction(0), Fraction(-1), "1/2"])
def test_amounts_are_positive_rationals(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a positive Fraction"):
        counts(**{name: value})


def test_epsilon_lies_on_the_grid() -> None:
    for off in (Fraction(1, 3), Fraction(1, 2 * GRID)):
        with pytest.raises(ValueError, match="quantise"):
            counts(amount=off, scale=Fraction(10**20))


def test_a_choice_is_one_draw_and_only_it_is_monotone() -> None:
    with pytest.raises(ValueError, match="one choice"):
        choice(draws=2)
    with pytest.raises(ValueError, match="monotone"):
        counts(monotone=True)
    with pytest.raises(ValueError, match="at least once"):
        counts(draws=0)


def gaussian(**changes: Any) -> Event:
    facts = {"mechanism": Mechanism.DISCRETE_GAUSSIAN, "currency": Currency.RHO, "amount": Fraction(1, 8)}
    return counts(**{**facts, **changes})


def exponential(**changes: Any) -> Event:
    return gaussian(**{"mechanism": Mechanism.EXPONENTIAL, "draws": 1, **changes})


@pytest.mark.parametrize(
    ("event", "currency", "additive", "least"),
    [
        (gaussian, Currency.RHO, False, Fraction(1, 8)),
        (gaussian, Currency.RHO, True, Fraction(1, 8)),
        (gaussian, Currency.RHO_REPLACE, True, Fraction(2, 8)),
        (gaussian, Currency.RHO_REPLACE, False, Fraction(4, 8)),
        (exponential, Currency.RHO, False, Fraction(1, 8)),
        (exponential, Currency.RHO_REPLACE, False, Fraction(4, 8)),
    ],
)
def test_rho_goes_with_the_square(event: Any, currency: Currency, additive: bool, least: Fraction) -> None:
    """Sensitivity 3 with scale 6: a ratio of 1/2, or 1 for a choice, whose square is cut to an eighth."""
    assert event(currency=currency, additive=additive, amount=least).cost == least
    with pytest.raises(ValueError, match="more than rho"):
        event(currency=currency, additive=additive, amount=least - Fraction(1, FINE_GRID))


def test_a_monotone_choice_costs_a_quarter_of_the_rho() -> None:
    assert exponential(monotone=True).cost == Fraction(1, 32)
    assert exponential(monotone=True, currency=Currency.RHO_REPLACE).cost == Fraction(1, 8)


def test_only_counts_are_additive() -> None:
    with pytest.raises(ValueError, match="only counts can be additive"):
        exponential(additive=True)


def test_each_currency_has_its_mechanisms() -> None:
    for event, wrong in ((counts, Currency.RHO), (choice, Currency.RHO_REPLACE), (gaussian, Currency.EPSILON)):
        with pytest.raises(ValueError, match="is not paid for in"):
            event(currency=wrong, scale=Fraction(100))


def test_an_entity_weighs_all_its_units() -> None:
    assert counts(weighted=True, sensitivity=Fraction(UNITS), scale=Fraction(2 * UNITS)).weighted
    with pytest.raises(ValueError, match="weighs 1048576 units"):
        counts(weighted=True, sensitivity=Fraction(UNITS - 1), scale=Fraction(2 * UNITS))


def test_a_claim_as_published_is_taken_as_it_is() -> None:
    assert counts(mechanism=Mechanism.AS_PUBLISHED, scale=Fraction(1, 1000)).amount == Fraction(1, 2)


@given(st.fractions(min_value=Fraction(1, GRID), max_value=100))
def test_quantise_rounds_down_to_the_grid(epsilon: Fraction) -> None:
    rounded = quantise(epsilon)
    assert 0 <= epsilon - rounded < Fraction(1, GRID)
    assert quantise(rounded) == rounded
    assert GRID % rounded.denominator == 0


def test_a_share_below_the_grid_is_refused() -> None:
    with pytest.raises(BudgetError, match="Raise epsilon"):
        quantise(Fraction(1, GRID + 1))
    assert quantise(Fraction(1, GRID + 1), Currency.RHO) > 0
    with pytest.raises(BudgetError, match="of rho is too small"):
        quantise(Fraction(1, FINE_GRID + 1), Currency.RHO)
