"""An event checks itself: noise pays for what the query says an entity can move, in the measure of its mechanism."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.errors import BudgetError
from privbench.privacy.events import FINE_GRID, GRID, Event, Mechanism, PrivacyMeasure, quantise


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A query of which nothing is known but what an event needs."""

    sensitivity: int = 3
    draws: int = 4
    additive: bool = False
    monotone: bool = False
    table: str = "person"

    def to_json(self) -> dict[str, Any]:
        return {"kind": "sizes", "table": self.table}


def counts(query: Asked | None = None, **changes: Any) -> Event:
    facts = {"scale": Fraction(6), "amount": Fraction(1, 2), "measure": PrivacyMeasure.EPSILON}
    return Event(**{"query": query or Asked(), "mechanism": Mechanism.DISCRETE_LAPLACE, **facts, **changes})


def choice(query: Asked | None = None, **changes: Any) -> Event:
    facts = {"mechanism": Mechanism.PERMUTE_AND_FLIP, "scale": Fraction(12)}
    return counts(query or Asked(draws=1), **{**facts, **changes})


MONOTONE = Asked(draws=1, monotone=True)


def test_noise_that_just_pays_is_taken() -> None:
    assert counts().amount == Fraction(1, 2)
    assert choice().scale == 12
    assert choice(MONOTONE, scale=Fraction(6)).scale == 6


@pytest.mark.parametrize(
    ("event", "query", "scale"),
    [
        (counts, Asked(), Fraction(599, 100)),
        (choice, Asked(draws=1), Fraction(6)),
        (choice, Asked(draws=1), Fraction(1199, 100)),
        (choice, MONOTONE, Fraction(599, 100)),
    ],
)
def test_too_little_noise_is_refused(event: Any, query: Asked, scale: Fraction) -> None:
    with pytest.raises(ValueError, match=r"person: sizes: noise of scale .* costs"):
        event(query, scale=scale)


@pytest.mark.parametrize("name", ["scale", "amount"])
@pytest.mark.parametrize("value", [0.5, 1, Fraction(0), Fraction(-1), "1/2"])
def test_amounts_are_positive_rationals(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a positive Fraction"):
        counts(**{name: value})


@pytest.mark.parametrize("query", [Asked(sensitivity=0), Asked(sensitivity=-1), Asked(draws=0)])
def test_a_query_moves_and_draws_something(query: Asked) -> None:
    with pytest.raises(ValueError, match="that an entity moves by"):
        counts(query)


def test_epsilon_lies_on_the_grid() -> None:
    for off in (Fraction(1, 3), Fraction(1, 2 * GRID)):
        with pytest.raises(ValueError, match="quantise"):
            counts(amount=off, scale=Fraction(10**20))


def gaussian(query: Asked | None = None, **changes: Any) -> Event:
    facts = {"mechanism": Mechanism.DISCRETE_GAUSSIAN, "measure": PrivacyMeasure.RHO, "amount": Fraction(1, 8)}
    return counts(query, **{**facts, **changes})


def exponential(query: Asked | None = None, **changes: Any) -> Event:
    return gaussian(query or Asked(draws=1), **{"mechanism": Mechanism.EXPONENTIAL, **changes})


@pytest.mark.parametrize(
    ("event", "measure", "additive", "least"),
    [
        (gaussian, PrivacyMeasure.RHO, False, Fraction(1, 8)),
        (gaussian, PrivacyMeasure.RHO, True, Fraction(1, 8)),
        (gaussian, PrivacyMeasure.RHO_REPLACE, True, Fraction(2, 8)),
        (gaussian, PrivacyMeasure.RHO_REPLACE, False, Fraction(4, 8)),
        (exponential, PrivacyMeasure.RHO, False, Fraction(1, 8)),
        (exponential, PrivacyMeasure.RHO_REPLACE, False, Fraction(4, 8)),
    ],
)
def test_rho_goes_with_the_square(event: Any, measure: PrivacyMeasure, additive: bool, least: Fraction) -> None:
    """Sensitivity 3 with scale 6: a ratio of 1/2, or 1 for a choice, whose square is cut to an eighth."""
    query = Asked(draws=1, additive=additive)
    assert event(query, measure=measure, amount=least).cost == least
    with pytest.raises(ValueError, match="more than rho"):
        event(query, measure=measure, amount=least - Fraction(1, FINE_GRID))


def test_a_monotone_choice_costs_a_quarter_of_the_rho() -> None:
    assert exponential(MONOTONE).cost == Fraction(1, 32)
    assert exponential(MONOTONE, measure=PrivacyMeasure.RHO_REPLACE).cost == Fraction(1, 8)


def test_each_measure_has_its_mechanisms() -> None:
    for event, wrong in (
        (counts, PrivacyMeasure.RHO),
        (choice, PrivacyMeasure.RHO_REPLACE),
        (gaussian, PrivacyMeasure.EPSILON),
        (exponential, PrivacyMeasure.EPSILON),
    ):
        with pytest.raises(ValueError, match="is not paid for in"):
            event(measure=wrong, scale=Fraction(100))


def test_a_claim_as_published_is_taken_as_it_is() -> None:
    assert counts(mechanism=Mechanism.AS_PUBLISHED, scale=Fraction(1, 1000)).amount == Fraction(1, 2)


def test_an_event_is_described_by_its_query() -> None:
    described = counts().to_json()
    assert described == {
        "mechanism": "discrete-laplace",
        "query": {"kind": "sizes", "table": "person"},
        "sensitivity": "3/1",
        "scale": "6/1",
        "draws": 4,
    }


@given(st.fractions(min_value=Fraction(1, GRID), max_value=100))
def test_quantise_rounds_down_to_the_grid(epsilon: Fraction) -> None:
    rounded = quantise(epsilon)
    assert 0 <= epsilon - rounded < Fraction(1, GRID)
    assert quantise(rounded) == rounded
    assert GRID % rounded.denominator == 0


def test_a_share_below_the_grid_is_refused() -> None:
    with pytest.raises(BudgetError, match="Raise epsilon"):
        quantise(Fraction(1, GRID + 1))
    assert quantise(Fraction(1, GRID + 1), PrivacyMeasure.RHO) > 0
    with pytest.raises(BudgetError, match=r"rho .* is too small"):
        quantise(Fraction(1, FINE_GRID + 1), PrivacyMeasure.RHO)
