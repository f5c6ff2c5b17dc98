"""The ledger: totals of any tree, a budget that holds to the last unit, and what a block may be charged."""

import sys
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given

from privbench.errors import BudgetError
from privbench.methods.capped import row_histogram
from privbench.privacy.calibrate import calibrate, calibrate_published
from privbench.privacy.events import FINE_GRID, GRID, Event, PrivacyMeasure
from privbench.privacy.facts import ColumnFacts
from privbench.privacy.features import present, whole_axis
from privbench.privacy.ledger import Ledger
from privbench.privacy.partitions import Centres
from privbench.privacy.queries import Counts, FrequentValues, Histogram, PublishedRowSplit

from .trees import Step, block_of, cap_choice, event, follow, guests, sizes, walks, weights

HALF = Fraction(1, 2)
COST_FACTS = ColumnFacts(size=4, ordered=True)
PERSONS = Centres(table="person", rows_per_entity=1, centres=({"age": (0,)}, {"age": (7,)}))
VISITS = Centres(table="visit", rows_per_entity=3, centres=({"cost": (0,)}, {"cost": (7,)}))


def test_a_sequence_adds_and_a_partition_takes_the_maximum() -> None:
    ledger = Ledger(Fraction(10))
    table = ledger.root.sequential("person")
    table.charge(event("person", Fraction(1)))
    young, old = table.partition("by age", PERSONS, 2)
    young.charge(event("person", Fraction(2)))
    old.charge(event("person", Fraction(3)))
    young.sequential("leaf").charge(event("person", HALF))
    ledger.root.charge(event("visit", Fraction(1)))
    assert young.total == Fraction(5, 2)
    assert table.total == 1 + 3
    assert ledger.total == 1 + 3 + 1


@given(walks)
def test_any_tree_spends_at_most_its_budget(walk: list[Step]) -> None:
    ledger = Ledger(Fraction(7, 10))
    refused = list(follow(ledger, walk))
    assert ledger.total <= ledger.budget
    assert not refused or ledger.total > ledger.budget - max(step.share for step in refused)


def test_a_refusal_changes_nothing() -> None:
    ledger = Ledger(Fraction(1))
    young, old = ledger.root.partition("by age", PERSONS, 2)
    young.charge(event("person", Fraction(3, 4)))
    before = ledger.to_json()
    with pytest.raises(BudgetError, match=r"person: histogram: would spend epsilon 1.25, but only 0.25 of 1 is left"):
        old.charge(event("person", Fraction(5, 4)))
    with pytest.raises(BudgetError):
        ledger.root.charge(event("visit", HALF))
    assert ledger.to_json() == before
    assert old.total == 0
    old.charge(event("person", Fraction(1)))  # a quarter above the other part: just fits
    assert ledger.total == 1


def test_the_budget_is_kept_to_the_last_unit() -> None:
    ledger = Ledger(Fraction(1, 3))
    ledger.root.charge(event("person", Fraction(1, 3)))
    with pytest.raises(BudgetError):
        ledger.root.charge(event("person", Fraction(1, GRID)))
    assert Fraction(1, 3) - Fraction(1, GRID) < ledger.total <= Fraction(1, 3)


def test_what_fits_under_the_part_that_cost_most_is_free() -> None:
    ledger = Ledger(Fraction(1))
    young, old = ledger.root.partition("by age", PERSONS, 2)
    young.charge(event("person", Fraction(1)))
    old.charge(event("person", Fraction(1)))
    assert ledger.total == 1
    with pytest.raises(BudgetError):
        old.charge(event("person", Fraction(1, 1000)))


def test_a_block_measures_its_own_table_with_whole_rows() -> None:
    left, _ = Ledger(Fraction(9)).root.partition("by centres", VISITS, 2)
    left.charge(event("visit", HALF))
    with pytest.raises(ValueError, match="charged to a block of visit"):
        left.charge(event("person", HALF))
    other_cap = calibrate(row_histogram(block_of("visit", cap=4)), PrivacyMeasure.EPSILON, HALF)
    for below in (left, left.sequential("leaf")):
        with pytest.raises(ValueError, match="whole multiple of the 3 rows"):
            below.charge(other_cap)
    left.charge(published(cap=4))


def published(cap: int) -> Event:
    split = PublishedRowSplit(block=block_of("visit", cap=cap), columns={"cost": COST_FACTS}, rounds=2, fewest=1)
    return calibrate_published(split, HALF)


def test_partitions_that_do_not_fit_their_scope() -> None:
    root = Ledger(Fraction(9)).root
    young, _ = root.partition("by age", PERSONS, 2)
    with pytest.raises(ValueError, match="2 blocks are described, but 3"):
        root.partition("by age", PERSONS, 3)
    with pytest.raises(ValueError, match="inside a block of person"):
        young.partition("by centres", VISITS, 2)
    assert len(young.sequential("leaf").partition("nested", PERSONS, 2)) == 2


def test_budget_must_be_positive() -> None:
    with pytest.raises(BudgetError, match="positive"):
        Ledger(Fraction(0))


def calls_of(action: Callable[[], None]) -> int:
    """How many Python functions an action calls: a measure of work that no other process can disturb."""
    calls, before = 0, sys.getprofile()

    def count(_frame: object, what: str, _argument: object) -> None:
        nonlocal calls
        calls += what == "call"

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls


def test_the_last_of_ten_thousand_charges_is_as_little_work_as_the_tenth() -> None:
    ledger = Ledger(Fraction(1000))
    scope = ledger.root
    for _ in range(10):
        scope = scope.partition("split", PERSONS, 2)[0].sequential("node")
    charge = event("person", Fraction(1, 1000))
    for _ in range(9):
        scope.charge(charge)
    tenth = calls_of(lambda: scope.charge(charge))
    for _ in range(9_989):
        scope.charge(charge)
    assert 0 < calls_of(lambda: scope.charge(charge)) < 2 * tenth
    assert ledger.total == 10_000 * charge.amount


def test_as_published_is_remembered() -> None:
    ledger = Ledger(Fraction(9))
    ledger.root.charge(event("person", HALF))
    assert not ledger.as_published
    ledger.root.charge(published(cap=3))
    assert ledger.as_published


def test_rho_adds_up_and_is_kept_to_the_last_step() -> None:
    ledger = Ledger(Fraction(1, 3), PrivacyMeasure.RHO)
    counts = calibrate(sizes("person"), PrivacyMeasure.RHO, Fraction(1, 3))
    ledger.root.sequential("persons").charge(counts)
    assert Fraction(1, 3) - Fraction(1, FINE_GRID) < ledger.total <= Fraction(1, 3)
    little = calibrate(sizes("person"), PrivacyMeasure.RHO, Fraction(1, 10**9))
    with pytest.raises(BudgetError, match="would spend rho 1e-09"):
        ledger.root.charge(little)
    assert ledger.to_json()["nodes"][-1]["rho"] == ledger.to_json()["total"]


def test_a_ledger_takes_one_privacy_measure() -> None:
    counts = calibrate(sizes("person"), PrivacyMeasure.RHO, HALF)
    for ledger in (Ledger(Fraction(1)), Ledger(Fraction(1), PrivacyMeasure.RHO_REPLACE)):
        with pytest.raises(ValueError, match="but the ledger counts"):
            ledger.root.charge(counts)
        assert ledger.total == 0


def test_rho_has_no_parallel_blocks() -> None:
    with pytest.raises(ValueError, match="cannot be charged in parallel"):
        Ledger(Fraction(1), PrivacyMeasure.RHO).root.partition("by age", PERSONS, 2)


def test_only_rows_are_counted_in_blocks() -> None:
    """Weights, votes and caps are about whole tables."""
    left, _ = Ledger(Fraction(9)).root.partition("by centres", VISITS, 2)
    holders = Histogram(table="visit", axes=(whole_axis(present("cost")),), counts=Counts.VOTES)
    for query in (*weights(), holders, cap_choice()):
        with pytest.raises(ValueError, match="does not count rows of it"):
            left.charge(calibrate(query, PrivacyMeasure.EPSILON, HALF))
    young, _ = Ledger(Fraction(9)).root.partition("by age", PERSONS, 2)
    with pytest.raises(ValueError, match="does not count rows of it"):
        left.charge(calibrate(guests(), PrivacyMeasure.EPSILON, HALF))
    young.charge(event("person", HALF))


def test_deltas_add_up_to_no_more_than_there_is() -> None:
    delta = Fraction(1, 10**9)
    ledger = Ledger(Fraction(1), PrivacyMeasure.RHO, thresholds=delta)
    strings = calibrate(FrequentValues(table="t", column="a"), PrivacyMeasure.RHO, Fraction(1, 9), delta=delta / 2)
    for _ in range(2):
        ledger.root.charge(strings)
    before = ledger.to_json()
    with pytest.raises(BudgetError, match=r"would spend delta 5e-10 .* but only 0 of 1e-09 is left"):
        ledger.root.charge(strings)
    assert ledger.to_json() == before
    assert Fraction(before["delta"]) == ledger.delta == delta
