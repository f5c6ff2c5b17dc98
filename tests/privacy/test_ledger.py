import time
from fractions import Fraction

import pytest
from hypothesis import given

from privbench.errors import BudgetError
from privbench.privacy.blocks import Boxes, Centres
from privbench.privacy.events import GRID, Event, Mechanism
from privbench.privacy.ledger import Ledger

from .trees import Step, event, follow, walks

HALF = Fraction(1, 2)
AGES = Boxes(table="person", rows_per_entity=1, boxes=({"age": ((0, 4),)}, {"age": ((5, 9),)}))
PERSONS = Centres(table="person", rows_per_entity=1, centres=({"age": (0,)}, {"age": (7,)}))
VISITS = Centres(table="visit", rows_per_entity=3, centres=({"cost": (0,)}, {"cost": (7,)}))


def test_a_sequence_adds_and_a_partition_takes_the_maximum() -> None:
    ledger = Ledger(Fraction(10))
    table = ledger.root.sequential("person")
    table.charge(event("person", Fraction(1)))
    young, old = table.partition("by age", AGES, 2)
    young.charge(event("person", Fraction(2)))
    old.charge(event("person", Fraction(3)))
    young.sequential("leaf").charge(event("person", HALF))
    ledger.root.charge(event("visit", Fraction(1)))
    assert young.spent == 2
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
    young, old = ledger.root.partition("by age", AGES, 2)
    young.charge(event("person", Fraction(3, 4)))
    before = ledger.to_json()
    with pytest.raises(BudgetError, match=r"person: income: would spend epsilon 1.25, but only 0.25 of 1 is left"):
        old.charge(event("person", Fraction(5, 4), query="income"))
    with pytest.raises(BudgetError):
        ledger.root.charge(event("visit", HALF))
    assert ledger.to_json() == before
    assert old.spent == old.total == 0
    old.charge(event("person", Fraction(1)))  # a quarter above the other part: just fits
    assert ledger.total == 1


def test_the_budget_is_kept_to_the_last_unit() -> None:
    ledger = Ledger(Fraction(1, 3))
    ledger.root.charge(event("person", Fraction(1, 3)))
    with pytest.raises(BudgetError):
        ledger.root.charge(event("person", Fraction(1, GRID)))
    assert Fraction(1, 3) - Fraction(1, GRID) < ledger.total <= Fraction(1, 3)


def test_what_fits_under_the_dearest_part_is_free() -> None:
    ledger = Ledger(Fraction(1))
    young, old = ledger.root.partition("by age", AGES, 2)
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
    for below in (left, left.sequential("leaf")):
        with pytest.raises(ValueError, match="whole multiple of the 3 rows"):
            below.charge(_visits(Mechanism.DISCRETE_LAPLACE, sensitivity=Fraction(4)))
    left.charge(_visits(Mechanism.AS_PRINTED, sensitivity=Fraction(4)))


def _visits(mechanism: Mechanism, *, sensitivity: Fraction) -> Event:
    facts = {"query": "sizes", "table": "visit", "scale": Fraction(8), "epsilon": HALF, "draws": 1}
    return Event(mechanism=mechanism, sensitivity=sensitivity, **facts)  # type: ignore[arg-type]


def test_partitions_that_do_not_fit_their_scope() -> None:
    root = Ledger(Fraction(9)).root
    young, _ = root.partition("by age", AGES, 2)
    with pytest.raises(ValueError, match="2 blocks are described, but 3"):
        root.partition("by age", AGES, 3)
    with pytest.raises(ValueError, match="inside a block of person"):
        young.partition("by centres", VISITS, 2)
    with pytest.raises(ValueError, match="reaches outside"):
        young.sequential("leaf").partition("again", AGES, 2)
    elsewhere = Boxes(table="person", rows_per_entity=1, boxes=({"sex": ((0, 0),)},))
    with pytest.raises(ValueError, match="reaches outside"):
        young.partition("other column", elsewhere, 1)
    three = Boxes(table="person", rows_per_entity=1, boxes=({"age": ((0, 1), (3, 3))}, {"age": ((2, 2),)}))
    assert len(young.partition("nested", three, 2)) == 2


def test_budget_must_be_positive() -> None:
    with pytest.raises(BudgetError, match="positive"):
        Ledger(Fraction(0))


def test_ten_thousand_charges_are_quick() -> None:
    ledger = Ledger(Fraction(1000))
    scope = ledger.root
    for _ in range(10):
        scope = scope.partition("split", PERSONS, 2)[0].sequential("node")
    charge = event("person", Fraction(1, 1000))
    start = time.process_time()
    for _ in range(10_000):
        scope.charge(charge)
    assert time.process_time() - start < 0.9
    assert ledger.total == 10_000 * charge.epsilon


def test_as_printed_is_remembered() -> None:
    ledger = Ledger(Fraction(9))
    ledger.root.charge(event("person", HALF))
    assert not ledger.as_printed
    ledger.root.charge(_visits(Mechanism.AS_PRINTED, sensitivity=Fraction(1)))
    assert ledger.as_printed
