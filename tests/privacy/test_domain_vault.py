"""The vault of raw columns: charged before anything is touched, recorded, replayed, and shut."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from privbench.privacy.domain_vault import DomainVault, magnitudes_query
from privbench.privacy.raw import RawColumn

from privbench.encode.grid import Grid
from privbench.errors import BudgetError
from privbench.privacy.events import UNITS, Currency
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.schema.types import parse_type

KIND = parse_type("INTEGER")
PLACE = ("t", "a")
GRID = Grid(type=KIND, step=Fraction(1))
ONE = Fraction(1)
Ask = Callable[[DomainVault, Fraction], Any]
QUERIES: dict[str, Ask] = {
    magnitudes_query("a"): lambda vault, amount: vault.magnitudes(PLACE, amount=amount),
    "steps of a": lambda vault, amount: vault.steps(PLACE, amount=amount),
    "cells of a": lambda vault, amount: vault.cells(PLACE, GRID, starts=(0, 50), last=99, amount=amount),
    "heavy_hitters of a": lambda vault, amount: vault.heavy_hitters(
        PLACE, GRID, low=0, high=9999, false=5.0, amount=amount
    ),
}


class _Untouchable(dict[Any, Any]):
    def __getitem__(self, key: Any) -> Any:
        raise AssertionError(f"{key} was touched")


def _data(value: int = 7, rows: int = 400) -> dict[Any, RawColumn]:
    values = pa.array([value] * rows, pa.int32())
    return {PLACE: RawColumn(KIND, values, np.arange(rows))}


def _vault(data: Any, *, ledger: Ledger | None = None, tape: Any = None, seed: int = 1) -> DomainVault:
    return DomainVault({PLACE: KIND}, data, ledger=ledger or Ledger(ONE), entropy=FixedEntropy(seed), tape=tape)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_that_cannot_be_paid_touches_nothing(query: str) -> None:
    ledger = Ledger(Fraction(1, 10))
    with pytest.raises(BudgetError):
        QUERIES[query](_vault(_Untouchable(), ledger=ledger), ONE)
    assert ledger.total == 0
    with pytest.raises(AssertionError, match="was touched"):
        QUERIES[query](_vault(_Untouchable(), ledger=Ledger(ONE)), ONE)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_is_charged_for_an_entity_with_any_number_of_rows(query: str) -> None:
    ledger = Ledger(ONE)
    vault = _vault(_data(), ledger=ledger)
    QUERIES[query](vault, Fraction(1, 4))
    event = ledger.to_json()["nodes"][-1]
    assert (event["query"], event["table"], event["weighted"]) == (query, "t", True)
    assert event["sensitivity"] == f"{UNITS}/1"
    assert Fraction(event["scale"]) == 4 * UNITS
    assert vault.spent == ledger.total == Fraction(1, 4)
    assert (
        event["draws"] == {"magnitudes of a": 65, "steps of a": 4, "cells of a": 2, "heavy_hitters of a": 10_000}[query]
    )


def test_answers_are_replayed_without_data() -> None:
    first = _vault(_data())
    before = [ask(first, Fraction(1, 8)) for ask in QUERIES.values()]
    second = _vault(None, tape=first.answers, seed=9)
    after = [ask(second, Fraction(1, 8)) for ask in QUERIES.values()]
    assert all(np.array_equal(a.counts, b.counts) for a, b in zip(before, after, strict=True))
    assert before[-1].ticks == after[-1].ticks
    assert all(not answer.flags.writeable for answer in first.answers)
    with pytest.raises(RuntimeError, match="tape has fewer answers"):
        QUERIES["steps of a"](second, Fraction(1, 8))


def test_noise_is_around_the_counts() -> None:
    vault = _vault(_data(rows=4000))
    measured = vault.cells(PLACE, GRID, starts=(0, 50), last=99, amount=Fraction(1, 2))
    assert measured.noise.scale == 2.0
    assert measured.counts[0] == pytest.approx(4000, abs=60)
    assert measured.counts[1] == pytest.approx(0, abs=60)
    assert len(set((measured.counts * UNITS % UNITS).tolist())) == 2  # noise in units, not in whole entities
    heavy_hitters = vault.heavy_hitters(PLACE, GRID, low=0, high=9999, false=1e-9, amount=Fraction(1, 2))
    assert heavy_hitters.ticks == (7,)


def test_the_vault_is_shut() -> None:
    vault = _vault(_data(value=987654))
    assert "987654" not in repr(vault)
    with pytest.raises(TypeError, match="cannot be pickled"):
        vault.__reduce__()
    for data, tape in ((_data(), []), (None, None)):
        with pytest.raises(ValueError, match="either data or a tape"):
            _vault(data, tape=tape)


def test_too_little_to_measure_is_known_before() -> None:
    vault = _vault(_data())
    assert vault.drawable(Fraction(1, 2**20))
    assert not vault.drawable(Fraction(1, 2**21))
    assert not vault.drawable(Fraction(0))


def test_with_a_delta_noise_is_gaussian() -> None:
    ledger = Ledger(ONE, Currency.RHO_REPLACE)
    vault = _vault(_data(), ledger=ledger)
    measured = QUERIES["cells of a"](vault, Fraction(1, 4))
    event = ledger.to_json()["nodes"][-1]
    assert (event["mechanism"], event["additive"]) == ("discrete-gaussian", True)
    assert measured.noise.gaussian
    assert measured.noise.scale == pytest.approx(2.0, abs=0.01)
