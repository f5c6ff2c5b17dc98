"""Columns that equal what the rows around them say, found by paid tests before anything else is measured.

In each table one choice picks the candidate dependency that holds for the most entities, or none if none holds for
most; a histogram of three cells then says for what share it holds, does not hold, and holds where that says little: two
columns that are nearly always 0 or NULL agree in that. A candidate is accepted if it surely fails for few, and for
fewer than it holds for. Where noise would not allow that, which public numbers tell, nothing is asked and spent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from privbench.methods.tree.weighed import WeighedTable, features_noise
from privbench.privacy.calibrate import drawable
from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.facts import LinkFacts
from privbench.privacy.features import Agreement, Feature, whole_axis
from privbench.privacy.queries import ENTITY_WEIGHT, DependencyChoice
from privbench.privacy.vault import Vault
from privbench.schema.computed import Equals

SCOPE = "computed columns"
"""How the ledger calls all of it."""
DIFFERING = 0.01
"""The largest share of entities for which an accepted candidate does not hold."""
SURE = 3.0
"""Standard deviations of the noise that are added to what was measured, to be sure."""
SLACK = 2.0
"""Standard deviations that must fit besides, so that a candidate that always holds is accepted nearly always."""
TEST_SHARE = Fraction(1, 100)
"""The largest part of the budget for one test."""
CHOICE = Fraction(1, 8)
"""What a choice costs, as a part of the cost of a test."""
MOST_SHARE = Fraction(1, 20)
"""The largest part of the budget for all choices and tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A candidate dependency: that a column equals something."""

    table: str
    column: str
    equals: Equals
    link: LinkFacts
    """The owner key that leads to the rows it depends on."""
    plain: float | None
    """The number in which unrelated columns may well agree."""

    @property
    def feature(self) -> Feature:
        """Whether it does, row by row: the codes of `privacy/agreement.py`."""
        source = Agreement(self.column, self.equals, self.plain, self.link)
        return Feature(name=self.column, size=3, ordered=False, source=source)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCosts:
    """What a choice and a test cost, and all of them at most."""

    choice: Fraction
    test: Fraction
    most: Fraction


def test_costs(budget: Fraction, measure: PrivacyMeasure, *, entities: float) -> TestCosts | None:
    """The least that tells whether candidates hold; None if that is too much."""
    test = budget * TEST_SHARE
    if not _tells(test, measure, entities):
        return None
    while _tells(test / 2, measure, entities):
        test /= 2
    return TestCosts(choice=test * CHOICE, test=test, most=budget * MOST_SHARE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyForecast:
    """What tests will cost: the columns (`table.column`) that are looked at, and amounts of the budget."""

    columns: tuple[str, ...]
    least: Fraction
    """If none of them equals anything."""
    most: Fraction


def forecast_tests(
    candidates: Sequence[Candidate], budget: Fraction, measure: PrivacyMeasure, *, entities: float
) -> DependencyForecast | None:
    """Forecast tests of candidates; None if there is nothing to test, or no test could tell."""
    costs = test_costs(budget, measure, entities=entities) if candidates else None
    if costs is None:
        return None
    columns = tuple(dict.fromkeys(f"{candidate.table}.{candidate.column}" for candidate in candidates))
    tables = len({candidate.table for candidate in candidates})
    return DependencyForecast(
        columns=columns,
        least=costs.choice * tables,
        most=min(costs.most, costs.choice * tables + (costs.choice + costs.test) * len(columns)),
    )


def find_computed(vault: Vault, candidates: Sequence[Candidate], *, entities: float) -> list[Candidate]:
    """Test candidates about tables whose codes are those of their features; returns those that hold."""
    ledger = vault.ledger
    costs = test_costs(ledger.budget, ledger.measure, entities=entities)
    if costs is None:
        return []
    scope, accepted = ledger.root.sequential(SCOPE), list[Candidate]()
    for name in dict.fromkeys(candidate.table for candidate in candidates):
        table = WeighedTable(vault=vault, table=name, scope=scope)
        left = [candidate for candidate in candidates if candidate.table == name]
        while left and scope.total + costs.choice + costs.test <= costs.most:
            held = _held(table, left, costs)
            if held is None:
                break
            accepted.append(held)
            left = [candidate for candidate in left if candidate.column != held.column]
        vault.forget(name)
    return accepted


def _held(table: WeighedTable, candidates: Sequence[Candidate], costs: TestCosts) -> Candidate | None:
    """The candidate that holds for the most entities, if it surely holds for nearly all."""
    features = tuple(candidate.feature for candidate in candidates)
    question = DependencyChoice(table=table.table, candidates=features)
    at = table.vault.choose(question, costs.choice, table.scope)
    if at == len(candidates):
        return None
    measured = table.measure([whole_axis(features[at])], costs.test)
    equal, differing, idle = measured.counts
    doubt = SURE * sqrt(measured.noise.variance)
    few = differing + doubt <= DIFFERING * (equal + differing + idle)
    return candidates[at] if few and differing + doubt < equal - doubt else None


def _tells(amount: Fraction, measure: PrivacyMeasure, entities: float) -> bool:
    """Whether a test for that amount could accept a candidate that always holds, and its choice can be drawn."""
    if not drawable(measure, amount * CHOICE, sensitivity=2 * ENTITY_WEIGHT):
        return False
    deviation = sqrt(features_noise(measure, [], amount).variance)
    return (SURE + SLACK) * deviation <= DIFFERING * entities
