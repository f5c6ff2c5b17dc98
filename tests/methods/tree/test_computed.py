"""Tests of what columns equal: true candidates are found, others are not, and little is spent on either."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from privbench.encode.coded import CodedTable
from privbench.methods.tree.computed import MOST_SHARE, SCOPE, Candidate, find_computed, forecast_tests
from privbench.methods.tree.computed import test_costs as costs_of_tests
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.facts import LinkFacts
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.vault import Answer, Vault
from privbench.schema.computed import Equals
from privbench.schema.unit import LinkKind

ENTITIES = 50_000


LINK = LinkFacts(
    name="person.home",
    table="person",
    columns=("home",),
    target="home",
    kind=LinkKind.OWNER,
    slots=None,
    nullable=False,
    unique=False,
)


def candidate(column: str) -> Candidate:
    return Candidate(table="home", column=column, equals=Equals(rows="person"), link=LINK, plain=0)


def vault(
    differing: Mapping[str, float],
    *,
    budget: str = "2",
    entities: int = ENTITIES,
    seed: int = 1,
    tape: Sequence[Answer] | None = None,
    rows: int = 1,
) -> Vault:
    """A vault on homes with so many persons each, of which columns say another number for a share of the homes."""
    entropy, ledger = FixedEntropy(seed), Ledger(Fraction(budget))
    if tape is not None:
        return Vault(None, ledger=ledger, entropy=entropy, tape=tape)
    homes = np.arange(entities)
    owners = np.repeat(homes, rows)
    data = {
        "home": CodedTable(codes={}, keys={}, entities=homes),
        "person": CodedTable(codes={}, keys={LINK.name: owners}, entities=owners),
    }
    raw = {"home": {column: _saying(share, entities, rows) for column, share in differing.items()}}
    return Vault(NumpyEngine(data, raw=raw, entropy=entropy), ledger=ledger, entropy=entropy)


def _saying(differing: float, entities: int, rows: int) -> pa.Array:
    return pa.array(np.where(np.arange(entities) < differing * entities, rows + 7, rows))


def found(opened: Vault, *columns: str, entities: int = ENTITIES) -> list[str]:
    held = find_computed(opened, [candidate(c) for c in columns], entities=entities)
    assert opened.ledger.total <= opened.ledger.budget * MOST_SHARE
    return [c.column for c in held]


@pytest.mark.parametrize("seed", range(8))
def test_the_true_candidates_are_found_among_many(seed: int) -> None:
    shares = {"persons": 0.0, "members": 0.0, "rooms": 0.04, "cars": 0.4, "pets": 0.9, "floor": 1.0}
    assert sorted(found(vault(shares, seed=seed), *shares)) == ["members", "persons"]


def test_where_nothing_holds_one_choice_is_all_that_is_spent() -> None:
    opened = vault({"rooms": 0.6, "cars": 0.95})
    assert found(opened, "rooms", "cars") == []
    costs = costs_of_tests(opened.ledger.budget, PrivacyMeasure.EPSILON, entities=ENTITIES)
    assert costs is not None
    assert 0 < opened.ledger.total <= costs.choice < opened.ledger.budget / 500
    assert len(opened.answers) == 1


def test_a_candidate_that_holds_for_most_is_tested_and_refused() -> None:
    opened = vault({"rooms": 0.05})
    assert found(opened, "rooms") == []
    assert [len(answer) for answer in opened.answers] == [1, 3]


@pytest.mark.parametrize("rare", [0.0, 0.003])
@pytest.mark.parametrize("seed", range(4))
def test_columns_that_are_nearly_always_plain_prove_nothing(rare: float, seed: int) -> None:
    """A flag that few homes have set and a table in which few have rows agree in 0."""
    assert found(vault({"gone": rare}, seed=seed, rows=0), "gone") == []


def test_nothing_is_asked_where_no_test_could_tell() -> None:
    opened = vault({"persons": 0.0}, entities=2000)
    assert found(opened, "persons", entities=2000) == []
    assert opened.ledger.total == 0
    assert opened.answers == []
    assert forecast_tests([candidate("persons")], Fraction(2), PrivacyMeasure.EPSILON, entities=2000) is None


def test_the_forecast_is_what_is_spent() -> None:
    candidates = [candidate(c) for c in ("persons", "rooms")]
    expected = forecast_tests(candidates, Fraction(2), PrivacyMeasure.EPSILON, entities=ENTITIES)
    assert expected is not None
    assert expected.columns == ("home.persons", "home.rooms")
    nothing, something = vault({"persons": 0.7, "rooms": 0.7}), vault({"persons": 0.0, "rooms": 0.0})
    assert found(nothing, "persons", "rooms") == []
    assert found(something, "persons", "rooms")
    assert nothing.ledger.total == pytest.approx(expected.least)
    assert expected.least < something.ledger.total <= expected.most


def test_more_entities_cost_less() -> None:
    few, many = (costs_of_tests(Fraction(2), PrivacyMeasure.EPSILON, entities=n) for n in (ENTITIES, 100 * ENTITIES))
    assert few is not None
    assert many is not None
    assert many.test < few.test / 50


@pytest.mark.parametrize("measure", PrivacyMeasure)
def test_tests_have_costs_in_every_measure(measure: PrivacyMeasure) -> None:
    found = costs_of_tests(Fraction(1, 10), measure, entities=10**7)
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
    agreement = {"kind": "agreement", "column": "persons", "equals": {"rows": "person"}}
    assert queries == [
        {"kind": "choice of dependency", "table": "home", "candidates": 1},
        {"kind": "histogram", "table": "home", "counts": "weights", "axes": [{"bins": 3, "feature": agreement}]},
    ]
