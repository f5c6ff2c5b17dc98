"""What is charged as additive (an entity lowers no count), against all tiny databases and all their neighbours."""

from typing import Any

import pytest

from privbench.privacy import door as door_module
from privbench.privacy.events import Currency, Event
from privbench.privacy.price import price_noise
from privbench.schema.unit import Neighbours

from .tiny import (
    DEGREE_QUERIES,
    KEY_QUERIES,
    ROW_QUERIES,
    Silence,
    databases_by_keys,
    databases_by_rows,
    facts,
    open_vault,
    worst_change,
)

CAPS = {"person": 1, "visit": 2, "note": 2}
OWNERS = [(1,), (0, 1), (1, 1), (0, -1, 1), (0, 1, 1)]
WHOLE = {name: query for name, query in ROW_QUERIES.items() if name != "histogram in a part"}
SIGNED = {"cluster sums", "dependence", "column split", "notes about a visit", "guests per person", "bosses"}
SIGNED |= {"followers of a visit", "followers of a visit, up to 1"}
"""What an entity may lower, or what is a choice."""


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> Silence:
    return Silence(monkeypatch)


@pytest.mark.slow
def test_counts_of_rows(silence: Silence) -> None:
    worst = worst_change(silence, databases_by_rows(), WHOLE, CAPS, currency=Currency.RHO_REPLACE)
    assert worst["histogram"] == (2, 2)


@pytest.mark.slow
def test_counts_of_keys(silence: Silence) -> None:
    databases = (data for owners in OWNERS for data in databases_by_keys(owners))
    worst = worst_change(silence, databases, KEY_QUERIES, CAPS, currency=Currency.RHO_REPLACE)
    assert worst["notes per visit"] == (2, 2)


def test_degrees_of_entities_whose_number_is_private(silence: Silence) -> None:
    public = facts(Neighbours.ADD_REMOVE)
    databases = (data for owners in OWNERS for data in databases_by_keys(owners))
    worst = worst_change(silence, databases, DEGREE_QUERIES, CAPS, public, Currency.RHO)
    assert worst["visits per person"] == (1, 1)


def test_which_counts_are_additive(silence: Silence) -> None:
    data, public = next(databases_by_keys((0, 1))), facts(Neighbours.ADD_REMOVE)
    for queries, known in ((WHOLE | KEY_QUERIES, None), (DEGREE_QUERIES, public)):
        for name, query in queries.items():
            found = silence.ask(open_vault(data, CAPS, known, Currency.RHO), query)
            assert found.additive == (name not in SIGNED), name


def test_a_wrong_claim_is_caught(silence: Silence, monkeypatch: pytest.MonkeyPatch) -> None:
    def bold(*arguments: Any, **options: Any) -> Event:
        return price_noise(*arguments, **{**options, "additive": True})

    monkeypatch.setattr(door_module, "price_noise", bold)
    for name in ("followers of a visit", "notes about a visit"):
        databases = (data for owners in OWNERS for data in databases_by_keys(owners))
        with pytest.raises(AssertionError, match="not additive"):
            worst_change(silence, databases, {name: KEY_QUERIES[name]}, CAPS, currency=Currency.RHO)
    with pytest.raises(AssertionError, match="not additive"):
        worst_change(silence, databases_by_rows(), {"sums": WHOLE["cluster sums"]}, CAPS, currency=Currency.RHO)
