"""Finding what columns depend on: what holds is found, other things are not, and little is spent on either."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from privbench.encode.coded import CodedTable
from privbench.methods.tree import finding
from privbench.methods.tree.finding import (
    DIFFERING,
    FAR_TOLD,
    MOST_SHARE,
    SCOPE,
    Candidate,
    find_dependencies,
    finding_costs,
    forecast_finding,
)
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.facts import LinkFacts
from privbench.privacy.features import Base, agreement, nearness
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.parts import one_part
from privbench.privacy.vault import Answer, Vault
from privbench.privacy.windows import NEAR
from privbench.schema.computed import Equals
from privbench.schema.unit import LinkKind

ENTITIES, FEW = 20_000, 8_000
"""All that epsilon 3.2 finds is found from about 18,000 entities on, dates near others with fewer."""
BUDGET = "1.6"
"""Half of epsilon 3.2, as entities are replaced."""
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


def counts_persons(column: str) -> Candidate:
    feature = agreement(column, Equals(rows="person"), 0, LINK)
    return Candidate(table="home", column=column, feature=feature)


def near(column: str, *bases: Base) -> list[Candidate]:
    return [
        Candidate(table="person", column=column, feature=nearness(column, base, days))
        for base in bases
        for days in NEAR
    ]


def vault(
    differing: Mapping[str, float],
    *,
    dates: Mapping[str, pa.Array] | None = None,
    entities: int = ENTITIES,
    seed: int = 1,
    tape: Sequence[Answer] | None = None,
    rows: int = 1,
    budget: str = BUDGET,
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
    said = {column: _saying(share, entities, rows) for column, share in differing.items()}
    raw = {"home": said | _dates(entities, dates, "built"), "person": _dates(entities, dates, "moved", "born", "left")}
    return Vault(NumpyEngine(one_part(data, raw), entropy=entropy), ledger=ledger, entropy=entropy)


def _saying(differing: float, entities: int, rows: int) -> pa.Array:
    """Numbers that are wrong for a share of homes, other homes for each share."""
    wrong = np.random.default_rng(int(1e6 * differing)).permutation(entities) < differing * entities
    return pa.array(np.where(wrong, rows + 7, rows))


def _dates(entities: int, dates: Mapping[str, pa.Array] | None, *names: str) -> dict[str, pa.Array]:
    return {name: values[:entities] for name, values in (dates or {}).items() if name in names}


def found(opened: Vault, candidates: Sequence[Candidate], *, entities: int = ENTITIES) -> list[str]:
    held = find_dependencies(opened, candidates, entity="home", entities=entities)
    assert opened.ledger.total <= opened.ledger.budget * MOST_SHARE
    return [candidate.column for candidate in held]


def counting(*columns: str) -> list[Candidate]:
    return [counts_persons(column) for column in columns]


SHARES = {"persons": 0.0, "members": 0.001, "rooms": 0.05, "cars": 0.4, "pets": 0.9, "floor": 1.0}


def test_what_holds_is_found_among_many_nearly_always_and_nothing_else_ever() -> None:
    """At this number of entities one of twenty is missed."""
    every = [found(vault(SHARES, seed=seed), counting(*SHARES)) for seed in range(8)]
    assert {column for columns in every for column in columns} == {"members", "persons"}
    assert sum(map(len, every)) >= 14


@pytest.mark.parametrize("seed", range(4))
def test_the_same_wrong_homes_do_not_hide_each_other(seed: int) -> None:
    """Entities that differ from several candidates have one vote against all of them."""
    shares = {"persons": 0.0, "rooms": 0.1, "members": 0.1, "cars": 0.1}
    opened = vault(shares, seed=seed)
    assert found(opened, counting(*shares)) == ["persons"]


def test_where_nothing_holds_one_choice_is_all_that_is_spent() -> None:
    opened = vault({"rooms": 0.6, "cars": 0.95})
    assert found(opened, counting("rooms", "cars")) == []
    costs = finding_costs([DIFFERING], opened.ledger.budget, PrivacyMeasure.EPSILON, entities=ENTITIES)
    assert costs is not None
    assert 0 < opened.ledger.total <= costs.choice < opened.ledger.budget / 500
    assert len(opened.answers) == 1


def test_what_holds_for_most_is_voted_on_and_refused() -> None:
    opened = vault({"rooms": 0.06})
    assert found(opened, counting("rooms")) == []
    assert [answer.shape for answer in opened.answers] == [(1,), (1, 3)]


@pytest.mark.parametrize("rare", [0.0, 0.003])
@pytest.mark.parametrize("seed", range(4))
def test_columns_that_are_nearly_always_plain_prove_nothing(rare: float, seed: int) -> None:
    """A flag that few homes have set and a table in which few have rows agree in 0."""
    assert found(vault({"gone": rare, "persons": 0.0}, seed=seed, rows=0), counting("gone", "persons")) == []


# -- dates that are near others ------------------------------------------------------------------------------------


def dates_of(entities: int = ENTITIES) -> dict[str, pa.Array]:
    """Homes are built in ten years; people move in within two months, leave within 90 days; some are born any time."""
    rng = np.random.default_rng(7)
    built = rng.integers(10_000, 13_650, entities)
    moved = built + rng.integers(1, 60, entities)
    left = moved + rng.integers(1, 90, entities)
    born = rng.integers(5_000, 12_000, entities)
    return {n: pa.array(v, pa.int32()).cast(pa.date32()) for n, v in locals().items() if isinstance(v, np.ndarray)}


OWNER_BUILT = Base("built", (LINK,))


def dated(*columns: str) -> list[Candidate]:
    bases = {"moved": [OWNER_BUILT], "born": [OWNER_BUILT, Base("moved")], "left": [OWNER_BUILT, Base("moved")]}
    return [candidate for column in columns for candidate in near(column, *bases[column])]


@pytest.mark.parametrize("entities", [FEW, ENTITIES])
@pytest.mark.parametrize("seed", range(4))
def test_dates_are_found_to_be_near_others(seed: int, entities: int) -> None:
    opened = vault({}, dates=dates_of(entities), entities=entities, seed=seed)
    held = find_dependencies(opened, dated("moved", "born", "left"), entity="home", entities=entities)
    assert {candidate.column for candidate in held} == {"moved", "left"}
    assert opened.ledger.total <= opened.ledger.budget * MOST_SHARE


def test_dates_that_lie_together_anyway_are_not_differences() -> None:
    """All homes of one year: people move in as near to the year's middle as to their own home's day."""
    rng = np.random.default_rng(3)
    built = rng.integers(12_000, 12_200, ENTITIES)
    dates = {"built": built, "moved": built + rng.integers(0, 200, ENTITIES)}
    arrays = {name: pa.array(days, pa.int32()).cast(pa.date32()) for name, days in dates.items()}
    assert found(vault({}, dates=arrays), dated("moved")) == []


def test_a_date_that_equals_another_is_a_copy_and_not_a_difference() -> None:
    arrays = {"built": dates_of()["built"], "moved": dates_of()["built"]}
    copy = Candidate(table="person", column="moved", feature=agreement("moved", Equals(owner="built"), None, LINK))
    opened = vault({}, dates=arrays)
    (held,) = find_dependencies(opened, [*dated("moved"), copy], entity="home", entities=ENTITIES)
    assert held is copy


def test_near_dates_and_equal_numbers_share_one_vote() -> None:
    opened = vault({"persons": 0.0}, dates=dates_of())
    assert set(found(opened, [*counting("persons"), *dated("moved", "left")])) == {"persons", "moved", "left"}
    assert sum(answer.shape == (3, 3) for answer in opened.answers) == 1


# -- what is spent -------------------------------------------------------------------------------------------------


def test_nothing_is_asked_where_no_vote_could_tell() -> None:
    opened = vault({"persons": 0.0}, entities=1000)
    candidates = [*counting("persons"), *dated("moved")]
    assert found(opened, candidates, entities=1000) == []
    assert opened.ledger.total == 0
    assert opened.answers == []
    assert forecast_finding(candidates, Fraction(BUDGET), PrivacyMeasure.EPSILON, entities=1000) is None


def test_with_fewer_entities_only_dates_are_looked_at() -> None:
    candidates = [*counting("persons"), *dated("moved")]
    few = forecast_finding(candidates, Fraction(BUDGET), PrivacyMeasure.EPSILON, entities=FEW)
    assert few is not None
    assert few.columns == ("person.moved",)
    opened = vault({"persons": 0.0}, dates=dates_of(FEW), entities=FEW)
    assert found(opened, candidates, entities=FEW) == ["moved"]


def test_the_forecast_is_what_is_spent() -> None:
    candidates = counting("persons", "rooms")
    expected = forecast_finding(candidates, Fraction(BUDGET), PrivacyMeasure.EPSILON, entities=ENTITIES)
    assert expected is not None
    assert expected.columns == ("home.persons", "home.rooms")
    nothing, something = vault({"persons": 0.7, "rooms": 0.7}), vault({"persons": 0.0, "rooms": 0.0})
    assert found(nothing, candidates) == []
    assert found(something, candidates)
    assert float(nothing.ledger.total) == pytest.approx(float(expected.least))
    assert expected.least < something.ledger.total <= expected.most


def test_more_entities_cost_less() -> None:
    few, many = (
        finding_costs([DIFFERING], Fraction(2), PrivacyMeasure.EPSILON, entities=n) for n in (ENTITIES, 100 * ENTITIES)
    )
    assert few is not None
    assert many is not None
    assert many.vote < few.vote / 50
    assert many.choice < few.choice / 50


@pytest.mark.parametrize("measure", PrivacyMeasure)
def test_finding_has_costs_in_every_measure(measure: PrivacyMeasure) -> None:
    costs = finding_costs([DIFFERING, FAR_TOLD], Fraction(1, 10), measure, entities=10**7)
    assert costs is not None
    assert costs.tells == DIFFERING
    assert costs.choice < costs.vote <= Fraction(1, 1000)


def test_the_vote_is_kept_however_many_are_picked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choices end when what is left is just enough for the vote."""
    monkeypatch.setattr(finding, "NONE", Fraction(-2))
    columns = {f"c{at}": 0.5 for at in range(40)}
    opened = vault(columns)
    assert found(opened, counting(*columns)) == []
    assert opened.answers[-1].ndim == 2


def test_what_is_found_follows_from_the_answers_alone() -> None:
    candidates = [*counting("persons", "rooms", "cars"), *dated("moved", "left")]
    recorded = vault({"persons": 0.0, "rooms": 0.0, "cars": 0.5}, dates=dates_of(), seed=5)
    expected = found(recorded, candidates)
    assert expected
    for replayed in (
        vault({}, tape=recorded.answers),
        vault({}, tape=recorded.answers),
    ):
        assert found(replayed, candidates) == expected
        assert replayed.ledger.to_json() == recorded.ledger.to_json()


def test_the_ledger_says_what_was_asked() -> None:
    opened = vault({"persons": 0.0})
    found(opened, counting("persons"))
    nodes = opened.ledger.to_json()["nodes"]
    assert [node["label"] for node in nodes if node.get("label")][-1] == SCOPE
    queries = [node["query"] for node in nodes if node["kind"] == "event"]
    compared = {"kind": "agreement", "column": "persons", "equals": {"rows": "person"}}
    assert queries == [
        {"kind": "choice of dependency", "table": "home", "candidates": 1},
        {
            "kind": "votes on dependencies",
            "table": "home",
            "candidates": [{"table": "home", "feature": compared}],
        },
    ]
