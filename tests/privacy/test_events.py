from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.errors import BudgetError
from privbench.privacy.events import GRID, Event, Mechanism, quantise


def counts(**changes: Any) -> Event:
    facts = {"sensitivity": Fraction(3), "scale": Fraction(6), "epsilon": Fraction(1, 2), "draws": 4}
    return Event(**{"mechanism": Mechanism.DISCRETE_LAPLACE, "query": "sizes", "table": "person", **facts, **changes})


def choice(**changes: Any) -> Event:
    facts = {"mechanism": Mechanism.PERMUTE_AND_FLIP, "scale": Fraction(12), "draws": 1}
    return counts(**{**facts, **changes})


def test_noise_that_just_pays_is_taken() -> None:
    assert counts().epsilon == Fraction(1, 2)
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


@pytest.mark.parametrize("name", ["sensitivity", "scale", "epsilon"])
@pytest.mark.parametrize("value", [0.5, 1, Fraction(0), Fraction(-1), "1/2"])
def test_amounts_are_positive_rationals(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a positive Fraction"):
        counts(**{name: value})


def test_epsilon_lies_on_the_grid() -> None:
    for off in (Fraction(1, 3), Fraction(1, 2 * GRID)):
        with pytest.raises(ValueError, match="quantise"):
            counts(epsilon=off, scale=Fraction(10**20))


def test_a_choice_is_one_draw_and_only_it_is_monotone() -> None:
    with pytest.raises(ValueError, match="one choice"):
        choice(draws=2)
    with pytest.raises(ValueError, match="monotone"):
        counts(monotone=True)
    with pytest.raises(ValueError, match="at least once"):
        counts(draws=0)


def test_a_claim_as_printed_is_taken_as_it_is() -> None:
    assert counts(mechanism=Mechanism.AS_PRINTED, scale=Fraction(1, 1000)).epsilon == Fraction(1, 2)


@given(st.fractions(min_value=Fraction(1, GRID), max_value=100))
def test_quantise_rounds_down_to_the_grid(epsilon: Fraction) -> None:
    rounded = quantise(epsilon)
    assert 0 <= epsilon - rounded < Fraction(1, GRID)
    assert quantise(rounded) == rounded
    assert GRID % rounded.denominator == 0


def test_a_share_below_the_grid_is_refused() -> None:
    with pytest.raises(BudgetError, match="Raise epsilon"):
        quantise(Fraction(1, GRID + 1))
