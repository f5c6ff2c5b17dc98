"""Columns that equal what the rows around them say, found by paid tests before anything else is measured.

In each table one choice picks the claim that holds for the most entities, or none if none holds for most; a histogram
of three cells then says for what share it holds, does not hold, and holds where that says little: two columns that are
nearly always 0 or NULL agree in that. A claim is accepted if it surely fails for few, and for fewer than it holds for.
Where noise would not allow that, which public numbers tell, nothing is asked and nothing is spent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from privbench.privacy.events import UNITS, Currency
from privbench.privacy.features import Feature, Own, whole_axis
from privbench.privacy.price import drawable
from privbench.privacy.vault import Vault
from privbench.privacy.weighted import WeightedQueries, weights_noise
from privbench.schema.derived import Derived

SCOPE = "derived columns"
"""How the ledger calls all of it."""
DIFFERING = 0.01
"""The largest share of entities for which an accepted claim does not hold,"""
SURE = 3.0
"""so many standard deviations of the noise away;"""
SLACK = 2.0
"""and so many more must fit, so that a claim that always holds is accepted nearly always."""
TEST_SHARE = Fraction(1, 100)
"""Of the budget, for one test at most;"""
CHOICE = Fraction(1, 8)
"""of a test, for one choice;"""
MOST_SHARE = Fraction(1, 20)
"""of the budget, for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """That a column equals something."""

    table: str
    column: str
    derived: Derived

    @property
    def feature(self) -> Feature:
        """Whether it does, row by row: the codes of `privacy/agreement.py`."""
        name = f"#differs {self.column} from {self.derived}"
        return Feature(name=name, size=3, ordered=False, source=Own(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a choice and a test cost, and all of them at most."""

    choice: Fraction
    test: Fraction
    most: Fraction


def prices(budget: Fraction, currency: Currency, *, entities: float) -> Prices | None:
    """The least that tells whether claims hold; None if that is too much."""
    test = budget * TEST_SHARE
    if not _tells(test, currency, entities):
        return None
    while _tells(test / 2, currency, entities):
        test /= 2
    return Prices(choice=test * CHOICE, test=test, most=budget * MOST_SHARE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimForecast:
    """What tests will cost: the columns (`table.column`) that are looked at, and amounts of the budget."""

    columns: tuple[str, ...]
    least: Fraction
    """If none of them equals anything."""
    most: Fraction


def forecast_tests(
    claims: Sequence[Claim], budget: Fraction, currency: Currency, *, entities: float
) -> ClaimForecast | None:
    """Forecast tests of claims; None if there is nothing to test, or no test could tell."""
    price = prices(budget, currency, entities=entities) if claims else None
    if price is None:
        return None
    columns = tuple(dict.fromkeys(f"{claim.table}.{claim.column}" for claim in claims))
    tables = len({claim.table for claim in claims})
    return ClaimForecast(
        columns=columns,
        least=price.choice * tables,
        most=min(price.most, price.choice * tables + (price.choice + price.test) * len(columns)),
    )


def find_derived(vault: Vault, claims: Sequence[Claim], *, entities: float) -> list[Claim]:
    """Test claims about tables whose codes are those of their features; returns those that hold."""
    ledger = vault.ledger
    price = prices(ledger.budget, ledger.currency, entities=entities)
    if price is None:
        return []
    scope, found = ledger.root.sequential(SCOPE), list[Claim]()
    for table in dict.fromkeys(claim.table for claim in claims):
        queries = WeightedQueries(vault, table, scope)
        left = [claim for claim in claims if claim.table == table]
        while left and scope.total + price.choice + price.test <= price.most:
            held = _held(queries, left, price)
            if held is None:
                break
            found.append(held)
            left = [claim for claim in left if claim.column != held.column]
        queries.forget()
    return found


def _held(queries: WeightedQueries, claims: Sequence[Claim], price: Prices) -> Claim | None:
    """The claim that holds for the most entities, if it surely holds for nearly all."""
    features: Mapping[Feature, Claim] = {claim.feature: claim for claim in claims}
    likely = queries.choose_first_cell(list(features), amount=price.choice)
    if likely is None:
        return None
    equal, differing, idle = queries.histogram([whole_axis(likely)], amount=price.test) / UNITS
    doubt = SURE * sqrt(queries.noise([likely], price.test).variance)
    few = differing + doubt <= DIFFERING * (equal + differing + idle)
    return features[likely] if few and differing + doubt < equal - doubt else None


def _tells(amount: Fraction, currency: Currency, entities: float) -> bool:
    """Whether a test for that amount could accept a claim that always holds, and its choice can be drawn."""
    if not drawable(currency, amount * CHOICE, sensitivity=2 * UNITS):
        return False
    deviation = sqrt(weights_noise(currency, [], amount).variance)
    return (SURE + SLACK) * deviation <= DIFFERING * entities
