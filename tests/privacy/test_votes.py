"""Frequent values: every entity has one vote, whatever its rows; charged in rho and delta, recorded and replayed."""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privbench.privacy.domain_vault import DomainVault, frequent_query
from privbench.privacy.raw import RawColumn

from privbench.encode.grid import Grid
from privbench.errors import BudgetError
from privbench.privacy.events import UNITS, Currency
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.thresholds import lone_chance
from privbench.schema.types import parse_type

TEXT, NUMBER = parse_type("VARCHAR"), parse_type("INTEGER")
PLACE = ("t", "a")
GRID = Grid(type=NUMBER, step=Fraction(1))
DELTA = Fraction(1, 10**9)
Rows = list[tuple[int, str | None]]
"""An entity and a text each."""


def _column(rows: Rows) -> RawColumn:
    entities = np.unique([e for e, _ in rows], return_inverse=True)[1].astype(np.int64)
    return RawColumn(TEXT, pa.array([v for _, v in rows], pa.string()), entities)


def _votes(rows: Rows, without: tuple[str, ...] = ()) -> Counter[str]:
    values, votes = _column(rows).voted_values(without)
    return Counter(dict(zip(values.to_pylist(), votes.tolist(), strict=True)))


def _vault(values: Any, *, thresholds: Fraction = DELTA, tape: Any = None, rho: Fraction = Fraction(1)) -> DomainVault:
    ledger = Ledger(rho, Currency.RHO_REPLACE, thresholds=thresholds)
    kind = NUMBER if values and isinstance(values[0], int) else TEXT
    data = {PLACE: RawColumn(kind, pa.array(values, kind.arrow), np.arange(len(values)))} if tape is None else None
    return DomainVault({PLACE: kind}, data, ledger=ledger, entropy=FixedEntropy(1), tape=tape)


rows_of_five = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["", "a", "b", "Ünï", "c\x00d", None])), min_size=1, max_size=12
)


@given(rows_of_five, st.sampled_from([(), ("a",), ("a", "")]))
@settings(max_examples=50, deadline=None)
def test_an_entity_has_one_vote_of_its_own(rows: Rows, without: tuple[str, ...]) -> None:
    whole = _votes(rows, without)
    for entity in {e for e, _ in rows}:
        own = {text for e, text in rows if e == entity and text is not None and text not in without}
        left = [row for row in rows if row[0] != entity]
        added = whole - (_votes(left, without) if left else Counter())
        assert whole - added == (_votes(left, without) if left else Counter())  # no other vote changes
        assert (added.total(), set(added) <= own) == (1 if own else 0, True)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-5, 5)), min_size=1, max_size=12))
@settings(max_examples=40, deadline=None)
def test_ticks_are_voted_for_in_the_same_way(rows: list[tuple[int, int]]) -> None:
    def votes(some: list[tuple[int, int]]) -> Counter[int]:
        entities = np.unique([e for e, _ in some], return_inverse=True)[1].astype(np.int64)
        column = RawColumn(NUMBER, pa.array([v for _, v in some], pa.int32()), entities)
        return Counter(dict(zip(*(a.tolist() for a in column.voted_ticks(GRID, -3, 3)), strict=True)))

    whole = votes(rows)
    for entity in {e for e, _ in rows}:
        own = {v for e, v in rows if e == entity and -3 <= v <= 3}
        left = [row for row in rows if row[0] != entity]
        added = whole - (votes(left) if left else Counter())
        assert (added.total(), set(added) <= own) == (1 if own else 0, True)


def test_voters_are_entities_with_a_text() -> None:
    column = _column([(0, "a"), (0, "b"), (1, None), (2, ""), (2, None)])
    assert column.voters().tolist() == [2 * UNITS]


def test_what_is_charged() -> None:
    vault = _vault(["a"] * 5_000 + ["b"] * 3)
    found = vault.frequent(PLACE, amount=Fraction(1, 100))
    event = vault._ledger.to_json()["nodes"][-1]
    assert (event["mechanism"], event["query"]) == ("frequent-values", frequent_query("a"))
    assert (event["sensitivity"], event["draws"], event["additive"], event["weighted"]) == ("1/1", 1, True, False)
    assert Fraction(event["delta"]) == DELTA / 2 == vault._ledger.delta
    assert lone_chance(Fraction(event["scale"]), event["threshold"]) <= DELTA / 2
    assert vault.least_count(Fraction(1, 100)) == event["threshold"] < 100
    assert found.texts == ("a",)
    assert found.counts[0] == pytest.approx(5_000, abs=80)
    assert found.noise.scale == pytest.approx(10, abs=0.1)


def test_what_is_there_does_not_show_in_the_ledger() -> None:
    """Neither the number of different values nor that of rows is anywhere in an event."""
    few, many = (_vault(values) for values in (["a"] * 500, [str(i) for i in range(500)]))
    for vault in (few, many):
        vault.frequent(PLACE, amount=Fraction(1, 100))
    assert few._ledger.to_json() == many._ledger.to_json()


def test_no_more_delta_than_there_is() -> None:
    vault = _vault(["a"] * 500)
    for _ in range(2):
        vault.frequent(PLACE, amount=Fraction(1, 100))
    before = vault._ledger.to_json()
    with pytest.raises(BudgetError, match=r"t: frequent values of a: would spend delta 5e-10 .* but only 0 of 1e-09"):
        vault.frequent(PLACE, amount=Fraction(1, 100))
    assert (vault._ledger.to_json(), len(vault.answers)) == (before, 2)
    with pytest.raises(BudgetError, match="rho"):
        _vault(["a"] * 500).frequent(PLACE, amount=Fraction(2))


def test_spikes_with_a_delta() -> None:
    vault = _vault([7] * 4_000 + [9] * 900 + list(range(100, 600)))
    heavy_hitters = vault.heavy_hitters(PLACE, GRID, low=0, high=10**6, false=20.0, amount=Fraction(1, 100))
    assert heavy_hitters.ticks == (7, 9)  # and no other, in a million
    assert heavy_hitters.counts.tolist() == pytest.approx([4_000, 900], abs=80)
    assert not _vault([7], thresholds=Fraction(0)).finds_heavy_hitters


def test_answers_are_replayed() -> None:
    values = ["x"] * 300 + ["", "é", 'q"'] * 200 + [None]
    first = _vault(values)
    texts = first.texts(PLACE, amount=Fraction(1, 100))
    found = first.frequent(PLACE, amount=Fraction(1, 100))
    more = first.frequent(PLACE, without=("x",), amount=Fraction(1, 100))
    assert (found.texts, more.texts) == (("", 'q"', "x", "é"), ("", 'q"', "é"))
    second = _vault(["x"], tape=first.answers)
    assert second.texts(PLACE, amount=Fraction(1, 100)).counts.tolist() == texts.counts.tolist()
    again = second.frequent(PLACE, amount=Fraction(1, 100))
    assert (again.texts, again.counts.tolist()) == (found.texts, found.counts.tolist())
    assert not first.answers[1].flags.writeable


def test_what_is_not_unicode_is_no_text() -> None:
    raw = pa.array([b"\xff\xfe"] * 500 + [b"ok"] * 500, pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 1000, raw.buffers())
    ledger = Ledger(Fraction(1), Currency.RHO, thresholds=DELTA)
    data = {PLACE: RawColumn(TEXT, broken, np.arange(1000))}
    vault = DomainVault({PLACE: TEXT}, data, ledger=ledger, entropy=FixedEntropy(1))
    assert vault.frequent(PLACE, amount=Fraction(1, 100)).texts == ("ok",)


def test_nothing_at_all() -> None:
    for values in ([None] * 50, [str(i) for i in range(2_000)]):
        vault = _vault(values)
        assert vault.frequent(PLACE, amount=Fraction(1, 100)).texts == ()


@pytest.mark.slow
def test_the_audit_of_a_text_that_one_entity_alone_has() -> None:
    """It comes out no more often than its delta, here a large one; a lower threshold would be seen."""
    delta, tries, released = Fraction(1, 20), 400, 0
    entropy = FixedEntropy(5)
    data = {PLACE: _column([(0, "mine"), (0, "mine"), (1, "a"), (2, "a"), (3, None)])}
    for _ in range(tries):
        ledger = Ledger(Fraction(1), Currency.RHO_REPLACE, thresholds=2 * delta)
        vault = DomainVault({PLACE: TEXT}, data, ledger=ledger, entropy=entropy)
        released += "mine" in vault.frequent(PLACE, amount=Fraction(1, 20)).texts
    expected = tries * float(delta)
    assert expected / 3 < released < expected + 4 * expected**0.5
