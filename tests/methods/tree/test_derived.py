"""Tests of what columns equal: true claims are found, others are not, and little is spent on either."""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from privbench.encode.coded import CodedTable
from privbench.methods.tree.derived import MOST_SHARE, SCOPE, Claim, find_derived, forecast_tests, prices
from privbench.privacy.agreement import AGREES, DIFFERS, IDLE
from privbench.privacy.events import Currency
from privbench.privacy.facts import ColumnFacts, Facts, TableFacts
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.vault import Vault
from privbench.schema.derived import Derived
from privbench.schema.unit import Neighbours

ENTITIES = 50_000


def claim(column: str) -> Claim:
    return Claim(table="home", column=column, derived=Derived(rows="person"))


def vault(
    differing: Mapping[str, float],
    *,
    budget: str = "2",
    entities: int = ENTITIES,
    seed: int = 1,
    tape: object = None,
    rest: int = AGREES,
) -> Vault:
    """A vault in which each claim fails for a share of the entities; the rest have another code."""
    names = {claim(column).feature.name: share for column, share in differing.items()}
    facts = Facts(
        entity="home",
        neighbours=Neighbours.REPLACE,
        tables={
            "home": TableFacts(
                name="home", columns={n: ColumnFacts(size=3, ordered=False) for n in names}, rows=entities, cap=None
            )
        },
        links=(),
    )
    codes = {name: _failing(share, entities, rest) for name, share in names.items()}
    data = {"home": CodedTable(codes=codes, keys={}, entities=np.arange(entities))}
    ledger = Ledger(Fraction(budget))
    return Vault(
        facts,
        None if tape else data,
        ledger=ledger,
        entropy=FixedEntropy(seed),
        tape=tape or None,  # type: ignore[arg-type]
    )


def _failing(share: float, entities: int, rest: int) -> NDArray[np.uint8]:
    return np.where(np.arange(entities) < share * entities, DIFFERS, rest).astype(np.uint8)


def found(opened: Vault, *columns: str, entities: int = ENTITIES) -> list[str]:
    held = find_derived(opened, [claim(c) for c in columns], entities=entities)
    assert opened.ledger.total <= opened.ledger.budget * MOST_SHARE
    return [c.column for c in held]


@pytest.mark.parametrize("seed", range(8))
def test_the_true_claims_are_found_among_many(seed: int) -> None:
    shares = {"persons": 0.0, "members": 0.0, "rooms": 0.04, "cars": 0.4, "pets": 0.9, "floor": 1.0}
    assert sorted(found(vault(shares, seed=seed), *shares)) == ["members", "persons"]


def test_where_nothing_holds_one_choice_is_all_that_is_spent() -> None:
    opened = vault({"rooms": 0.6, "cars": 0.95})
    assert found(opened, "rooms", "cars") == []
    price = prices(opened.ledger.budget, Currency.EPSILON, entities=ENTITIES)
    assert price is not None
    assert 0 < opened.ledger.total <= price.choice < opened.ledger.budget / 500
    assert len(opened.answers) == 1


def test_a_claim_that_holds_for_most_is_tested_and_refused() -> None:
    opened = vault({"rooms": 0.05})
    assert found(opened, "rooms") == []
    assert [len(answer) for answer in opened.answers] == [1, 3]


@pytest.mark.parametrize("rare", [0.0, 0.003])
@pytest.mark.parametrize("seed", range(4))
def test_columns_that_are_nearly_always_plain_prove_nothing(rare: float, seed: int) -> None:
    """A flag that few homes have set and a table in which few have rows agree in 0."""
    assert found(vault({"gone": rare}, seed=seed, rest=IDLE), "gone") == []


def test_nothing_is_asked_where_no_test_could_tell() -> None:
    opened = vault({"persons": 0.0}, entities=2000)
    assert found(opened, "persons", entities=2000) == []
    assert opened.ledger.total == 0
    assert opened.answers == []
    assert forecast_tests([claim("persons")], Fraction(2), Currency.EPSILON, entities=2000) is None


def test_the_forecast_is_what_is_spent() -> None:
    claims = [claim(c) for c in ("persons", "rooms")]
    expected = forecast_tests(claims, Fraction(2), Currency.EPSILON, entities=ENTITIES)
    assert expected is not None
    assert expected.columns == ("home.persons", "home.rooms")
    nothing, something = vault({"persons": 0.7, "rooms": 0.7}), vault({"persons": 0.0, "rooms": 0.0})
    assert found(nothing, "persons", "rooms") == []
    assert found(something, "persons", "rooms")
    assert nothing.ledger.total == pytest.approx(expected.least)
    assert expected.least < something.ledger.total <= expected.most


def test_more_entities_cost_less() -> None:
    few, many = (prices(Fraction(2), Currency.EPSILON, entities=n) for n in (ENTITIES, 100 * ENTITIES))
    assert few is not None
    assert many is not None
    assert many.test < few.test / 50


@pytest.mark.parametrize("currency", Currency)
def test_prices_exist_in_every_currency(currency: Currency) -> None:
    found = prices(Fraction(1, 10), currency, entities=10**7)
    assert found is not None
    assert found.choice < found.test <= Fraction(1, 1000)


def test_what_is_found_follows_from_the_answers_alone() -> None:
    columns = ("persons", "rooms", "cars")
    recorded = vault({"persons": 0.0, "rooms": 0.0, "cars": 0.5}, seed=5)
    expected = found(recorded, *columns)
    assert expected
    replayed = vault(dict.fromkeys(columns, 0.0), tape=recorded.answers)
    assert found(replayed, *columns) == expected
    assert replayed.ledger.to_json() == recorded.ledger.to_json()


def test_the_ledger_says_what_was_tested() -> None:
    opened = vault({"persons": 0.0})
    found(opened, "persons")
    nodes = opened.ledger.to_json()["nodes"]
    assert [node["label"] for node in nodes if node.get("label")][-1] == SCOPE
    queries = [node["query"] for node in nodes if node["kind"] == "event"]
    assert queries == ["one of 1 claims about columns, or none", "weights of #differs persons from rows of person"]
