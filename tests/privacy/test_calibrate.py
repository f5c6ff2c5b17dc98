"""What an amount of budget buys: the event costs no more than it, and hardly less; the method is told its noise."""

from fractions import Fraction
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.errors import BudgetError
from privbench.methods.capped import row_histogram
from privbench.privacy.calibrate import (
    Noise,
    calibrate,
    calibrate_published,
    choice_noise,
    drawable,
    noise_of,
    query_noise,
)
from privbench.privacy.events import Mechanism, PrivacyMeasure
from privbench.privacy.queries import ENTITY_WEIGHT, Choice, Counted, Histogram, PublishedRowSplit

from .tiny import CENTRES, COLUMNS, cap_choice, database, key_queries, open_vault, row_queries, whole
from .trees import block_of
from .weighted_tiny import DEPENDENCIES, HEAVY, PAIRS, SINGLES

CAPS = {"person": 1, "visit": 2, "note": 2}
ASKED = {**row_queries(open_vault(None, CAPS)), **key_queries(open_vault(None, CAPS)), **DEPENDENCIES}
ASKED |= {name: query for every in (SINGLES, PAIRS) for name, query in list(every.items())[::7]}
ASKED |= {"cap": cap_choice()}
amounts = st.fractions(min_value=Fraction(1, 10**4), max_value=10)
measures = st.sampled_from(PrivacyMeasure)


@given(measures, amounts, st.sampled_from(sorted(ASKED)))
def test_a_query_costs_what_was_paid(measure: PrivacyMeasure, amount: Fraction, name: str) -> None:
    query = ASKED[name]
    assert isinstance(query, Counted | Choice)
    event = calibrate(query, measure, amount)
    assert event.cost <= event.amount <= amount
    assert event.cost > amount * (1 - Fraction(1, 10**6))
    pure = measure is PrivacyMeasure.EPSILON
    if query.chooses:
        assert event.mechanism is (Mechanism.PERMUTE_AND_FLIP if pure else Mechanism.EXPONENTIAL)
    else:
        assert event.mechanism is (Mechanism.DISCRETE_LAPLACE if pure else Mechanism.DISCRETE_GAUSSIAN)
    assert (event.sensitivity, event.draws, event.table) == (query.sensitivity, query.draws, query.table)


@pytest.mark.parametrize("measure", PrivacyMeasure)
@pytest.mark.parametrize("name", [name for name, query in ASKED.items() if not query.chooses])
def test_the_noise_that_is_told_is_the_noise_that_is_drawn(name: str, measure: PrivacyMeasure) -> None:
    query = ASKED[name]
    assert isinstance(query, Counted)
    told, event = query_noise(query, measure, Fraction(1, 3)), calibrate(query, measure, Fraction(1, 3))
    assert isclose(told.scale, float(event.scale / query.unit), rel_tol=1e-12)
    assert told.gaussian == (measure is not PrivacyMeasure.EPSILON)


@pytest.mark.parametrize(("factor", "multiple"), [(1, 2), (3, 4 * 9), (5, 4 * 25)])
def test_the_rho_of_replacing_covers_what_it_moves(factor: int, multiple: int) -> None:
    """Additive counts move by the root of two of an entity's weight, others by twice their sensitivity."""
    query = next(q for q in (*SINGLES.values(), *PAIRS.values()) if q.sensitivity == factor * ENTITY_WEIGHT)
    sigma = calibrate(query, PrivacyMeasure.RHO_REPLACE, Fraction(1, 7)).scale
    lost = multiple * ENTITY_WEIGHT**2 / (2 * sigma**2)
    assert Fraction(1, 7) * Fraction(999, 1000) < lost <= Fraction(1, 7)


def test_zeros_between_heavy_hitters_have_laplace_noise_alone() -> None:
    query = HEAVY["visit: heavy hitters"]
    assert isinstance(query, Counted)
    assert calibrate(query, PrivacyMeasure.EPSILON, Fraction(1)).draws == 300
    for measure in (PrivacyMeasure.RHO, PrivacyMeasure.RHO_REPLACE):
        with pytest.raises(ValueError, match=r"visit\.amount"):
            calibrate(query, measure, Fraction(1))


def test_noise_in_entities() -> None:
    laplace = noise_of(PrivacyMeasure.EPSILON, Fraction(1, 2))
    assert (laplace, laplace.variance) == (Noise(gaussian=False, scale=2.0), 8)
    gaussian = noise_of(PrivacyMeasure.RHO, Fraction(1, 8))
    assert (gaussian, gaussian.variance) == (Noise(gaussian=True, scale=2.0), 4)
    assert noise_of(PrivacyMeasure.RHO_REPLACE, Fraction(1, 4)).scale == 2
    assert noise_of(PrivacyMeasure.RHO_REPLACE, Fraction(1, 2), additive=False).scale == 2
    assert noise_of(PrivacyMeasure.EPSILON, Fraction(1, 2), sensitivity=3, unit=1).scale == 6


def test_a_choice_in_entities() -> None:
    assert choice_noise(PrivacyMeasure.EPSILON, Fraction(1, 2)) == 4
    assert choice_noise(PrivacyMeasure.RHO, Fraction(1, 8)) == 2
    assert choice_noise(PrivacyMeasure.RHO_REPLACE, Fraction(1, 2)) == 2
    assert choice_noise(PrivacyMeasure.RHO, Fraction(1, 8), sensitivity=5, monotone=True, unit=1) == 5


def test_the_highest_of_many_draws() -> None:
    assert Noise(gaussian=False, scale=2.0).highest(100) == pytest.approx(9.21, abs=0.01)
    assert Noise(gaussian=True, scale=2.0).highest(100) == pytest.approx(6.07, abs=0.01)


def test_what_cannot_be_drawn() -> None:
    for measure in PrivacyMeasure:
        assert drawable(measure, Fraction(1, 100))
        assert not drawable(measure, Fraction(1, 10**13))
        with pytest.raises(BudgetError):
            noise_of(measure, Fraction(1, 10**13), additive=False)
    assert drawable(PrivacyMeasure.EPSILON, Fraction(1, 2**20))
    assert not drawable(PrivacyMeasure.EPSILON, Fraction(1, 2**21))
    assert not drawable(PrivacyMeasure.EPSILON, Fraction(0))


def test_a_split_as_published_is_paid_in_epsilon() -> None:
    split = PublishedRowSplit(block=block_of("visit", cap=2), columns=COLUMNS["visit"], rounds=3, fewest=1)
    event = calibrate_published(split, Fraction(1, 2))
    assert (event.mechanism, event.sensitivity, event.draws) == (Mechanism.AS_PUBLISHED, 512 * 2 * 2, 3)
    assert event.scale == 3 * 512 * 2 * 2


@pytest.mark.parametrize("measure", [PrivacyMeasure.RHO, PrivacyMeasure.RHO_REPLACE])
def test_the_vault_draws_what_its_ledger_counts(measure: PrivacyMeasure) -> None:
    vault = open_vault(database([{}, {}]), CAPS, measure=measure, seed=7)
    size: Histogram = row_histogram(whole(vault, "person"))
    amount = Fraction(2 if measure is PrivacyMeasure.RHO_REPLACE else 1, 32)
    found = [int(m.values[0]) for m in vault.measure_all([(size, amount)] * 400)]
    told = query_noise(size, measure, amount)
    assert told == Noise(gaussian=True, scale=4.0)
    variance = sum((x - 2) ** 2 for x in found) / len(found)
    assert 0.75 < variance / told.variance < 1.3
    vault.choose(cap_choice(), amount, vault.ledger.root)
    assert [n["mechanism"] for n in vault.ledger.to_json()["nodes"][-2:]] == ["discrete-gaussian", "exponential"]
    with pytest.raises(ValueError, match="in parallel"):
        vault.split(whole(vault, "visit"), COLUMNS["visit"], CENTRES)
