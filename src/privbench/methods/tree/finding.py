"""Dependencies of columns on the rows around them, found by paid tests before anything else is measured.

Candidates come from the schema: that a column equals something, or else that a date lies near another. Choices pick
those that hold for the most entities, one after the other, until none is better than a public share. Then all that
were picked are put to one vote: an entity has a single vote for all of them, so that they share its noise. Where noise
would not allow to tell, which public numbers say, nothing is asked and spent.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.calibrate import choice_noise, drawable, noise_of
from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.features import Agreement, Feature
from privbench.privacy.queries import ENTITY_WEIGHT, Dependency, DependencyChoice, DependencyVotes
from privbench.privacy.vault import Measured, Vault

SCOPE = "dependencies"
"""How the ledger calls all of it."""
DIFFERING = 0.02
"""The largest share of entities in which a column surely equals something and yet does not."""
FAR = 0.2
"""The largest share that is not near where a date is coded as a difference: any date can be, this one is shorter so."""
FAR_TOLD = 0.1
"""The share of entities whose votes can be told from none where only dates are voted on: some of those are far, too."""
SURE = 3.0
"""Standard deviations of the noise that are added to what was measured, to be sure."""
SLACK = 2.0
"""Standard deviations that must fit besides, so that a candidate that always holds is accepted nearly always."""
NONE = Fraction(3, 10)
"""A candidate is not worth a vote if what holds outweighs what does not by less than this share of the entities."""
CHOICE_NOISE = 1 / 24
"""The noise of a choice, as a share of the entities: some hundred candidates that do not hold hardly ever win."""
CHOICE_SHARE = Fraction(1, 200)
"""The largest part of the budget for one choice."""
VOTE_SHARE = Fraction(1, 80)
"""The largest part of the budget for the vote."""
MOST_SHARE = Fraction(1, 40)
"""The largest part of the budget for all of it."""
SAVING = Fraction(7, 8)
"""Amounts are lowered in steps of this while they can still tell."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """A column, and what is asked of its rows: whether they equal something, or are near it."""

    table: str
    column: str
    feature: Feature

    @property
    def dependency(self) -> Dependency:
        """What the vault is asked."""
        return Dependency(self.table, self.feature)

    @property
    def equals(self) -> bool:
        """Whether the column would equal something, not only lie near it."""
        return isinstance(self.feature.source, Agreement)

    @property
    def tolerance(self) -> float:
        """The largest share of entities that may differ."""
        return DIFFERING if self.equals else FAR

    @property
    def told(self) -> float:
        """The share of entities that a vote on it must tell from none."""
        return DIFFERING if self.equals else FAR_TOLD


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingCosts:
    """What a choice and a vote cost, all of them at most, and the share of entities that the vote can tell."""

    choice: Fraction
    vote: Fraction
    most: Fraction
    tells: float


def finding_costs(
    shares: Iterable[float], budget: Fraction, measure: PrivacyMeasure, *, entities: float
) -> FindingCosts | None:
    """The least that tells a share of entities from none, the smallest that can be told; None if none can be."""
    choice = _least(budget * CHOICE_SHARE, partial(_chooses, measure=measure, entities=entities))
    for share in sorted(set(shares)):
        vote = _least(budget * VOTE_SHARE, partial(_tells, measure=measure, entities=share * entities))
        if choice is not None and vote is not None:
            return FindingCosts(choice=choice, vote=vote, most=budget * MOST_SHARE, tells=share)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingForecast:
    """What finding dependencies will cost: the columns (`table.column`) that are looked at, and amounts of budget."""

    columns: tuple[str, ...]
    least: Fraction
    """If nothing is found."""
    most: Fraction


def forecast_finding(
    candidates: Sequence[Candidate], budget: Fraction, measure: PrivacyMeasure, *, entities: float
) -> FindingForecast | None:
    """Forecast it; None if there is nothing to find, or no vote could tell."""
    costs = finding_costs((c.told for c in candidates), budget, measure, entities=entities)
    if costs is None:
        return None
    asked = [candidate for candidate in candidates if candidate.told >= costs.tells]
    columns = tuple(dict.fromkeys(f"{candidate.table}.{candidate.column}" for candidate in asked))
    rounds = len({candidate.equals for candidate in asked})
    return FindingForecast(
        columns=columns,
        least=costs.choice * rounds,
        most=min(costs.most, costs.choice * (rounds + len(columns)) + costs.vote),
    )


def find_dependencies(
    vault: Vault, candidates: Sequence[Candidate], *, entity: str, entities: int
) -> tuple[Candidate, ...]:
    """Test candidates about tables whose codes are those of their features; returns those that hold."""
    ledger = vault.ledger
    costs = finding_costs((c.told for c in candidates), ledger.budget, ledger.measure, entities=entities)
    if costs is None:
        return ()
    scope = ledger.root.sequential(SCOPE)
    picked, none = list[Candidate](), int(NONE * entities * ENTITY_WEIGHT)
    for equals in (True, False):
        left = [c for c in candidates if c.equals is equals and c.told >= costs.tells and not _settled(c, picked)]
        while left and scope.total + costs.choice + costs.vote <= costs.most:
            asked = tuple(candidate.dependency for candidate in left)
            at = vault.choose(DependencyChoice(table=entity, candidates=asked, none=none), costs.choice, scope)
            if at == len(left):
                break
            picked.append(left[at])
            left = [candidate for candidate in left if not _settled(candidate, picked)]
    held = tuple[Candidate, ...]()
    if picked:
        votes = DependencyVotes(table=entity, candidates=tuple(candidate.dependency for candidate in picked))
        held = accepted(picked, vault.measure(votes, costs.vote, scope))
    for table in dict.fromkeys(candidate.table for candidate in candidates):
        vault.forget(table)
    return held


def accepted(picked: Sequence[Candidate], votes: Measured) -> tuple[Candidate, ...]:
    """The candidates that votes accept."""
    doubt, silenced = SURE * sqrt(votes.noise.variance), votes.counts[:, 1].clip(0).sum()
    return tuple(
        candidate
        for candidate, row in zip(picked, votes.counts * np.array([len(picked), 1, len(picked)]), strict=True)
        if _few(row, doubt, silenced, tolerance=candidate.tolerance) and _most(row, doubt, many=len(picked))
    )


def _few(row: NDArray[np.float64], doubt: float, silenced: float, *, tolerance: float) -> bool:
    """Whether surely few entities differ; those that voted against any candidate had less to say in favour of this."""
    return bool(row[1] + doubt <= tolerance * (row.sum() + silenced))


def _most(row: NDArray[np.float64], doubt: float, *, many: int) -> bool:
    """Whether surely more entities agree than differ, where only so large a part of each agreement was counted."""
    return bool(row[1] + doubt < row[0] - many * doubt)


def _settled(candidate: Candidate, picked: Sequence[Candidate]) -> bool:
    """Whether a candidate need not be asked about, as one of its column will be voted on."""
    return any((candidate.table, candidate.column) == (p.table, p.column) for p in picked)


def _least(most: Fraction, tells: Callable[[Fraction], bool]) -> Fraction | None:
    """The least amount, in steps, that tells something; None if the most does not."""
    if not tells(most):
        return None
    while tells(most * SAVING):
        most *= SAVING
    return most


def _chooses(amount: Fraction, *, measure: PrivacyMeasure, entities: float) -> bool:
    """Whether a choice for that amount has little noise."""
    possible = drawable(measure, amount, sensitivity=2 * ENTITY_WEIGHT)
    return possible and choice_noise(measure, amount) <= CHOICE_NOISE * entities


def _tells(amount: Fraction, *, measure: PrivacyMeasure, entities: float) -> bool:
    """Whether a vote for that amount accepts a candidate that always holds if so many entities may differ."""
    if not drawable(measure, amount):
        return False
    return (SURE + SLACK) * sqrt(noise_of(measure, amount).variance) <= entities
