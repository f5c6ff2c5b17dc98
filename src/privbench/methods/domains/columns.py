"""The columns whose domains are searched, and what may be asked of them: queries of a vault, in a scope of its ledger.

Counts are weights, so that one entity moves each of them by at most its weight, however many rows it has; or votes, of
which an entity has one (docs/proofs/domains.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from privbench.encode.grid import Grid
from privbench.privacy.calibrate import threshold_of
from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.features import Feature, cell, magnitude, present, step, whole_axis
from privbench.privacy.ledger import Scope
from privbench.privacy.queries import Counts, FrequentValues, HeavyHitters, Histogram
from privbench.privacy.vault import Measured, Vault
from privbench.schema.tables import Place
from privbench.schema.types import SqlType

SCOPE = "domains"
"""How the ledger calls all of it."""
FREQUENT_QUERIES = 2
"""No column is asked more often for its frequent values: the delta for thresholds is shared so."""


def tail_share(thresholds: Fraction, columns: int) -> Fraction:
    """The part of the delta for thresholds that each query for frequent values gets."""
    return thresholds / (FREQUENT_QUERIES * columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchedColumns:
    """Columns without a domain; their types are public."""

    vault: Vault
    scope: Scope
    types: Mapping[Place, SqlType]

    @property
    def measure(self) -> PrivacyMeasure:
        """What amounts are in."""
        return self.vault.privacy_measure

    @property
    def finds_heavy_hitters(self) -> bool:
        """Whether heavy hitters can be measured: with Laplace noise, whose zeros can be drawn, or with a threshold."""
        return self.measure is PrivacyMeasure.EPSILON or self.vault.ledger.thresholds > 0

    def least_count(self, amount: Fraction) -> int:
        """How many entities, less or more by noise, a value must have to come out."""
        return threshold_of(self.measure, amount, delta=self._delta)

    def magnitudes(self, places: Sequence[Place], amount: Fraction) -> dict[Place, Measured]:
        """Entities by the order of magnitude of their values."""
        return self._weights({place: magnitude(place[1], self.types[place]) for place in places}, amount)

    def steps(self, places: Sequence[Place], amount: Fraction) -> dict[Place, Measured]:
        """Entities by the coarsest step that their values lie on, the last for none; zeros are not counted."""
        return self._weights({place: step(place[1], self.types[place]) for place in places}, amount)

    def cells(
        self,
        place: Place,
        grid: Grid,
        *,
        starts: Sequence[int],
        last: int,
        without: Sequence[int] = (),
        amount: Fraction,
    ) -> Measured:
        """Entities by cells of ticks, from each start to the next, the last one to `last`; some ticks left out."""
        return self._weights({place: cell(place[1], grid, starts, last, without)}, amount)[place]

    def heavy_hitters(
        self, place: Place, grid: Grid, *, low: int, high: int, false: float, amount: Fraction
    ) -> Measured:
        """The ticks of low .. high with large counts.

        Without a delta about `false` of them are there by noise alone; with one, none.
        """
        table, column = place
        if self.measure is PrivacyMeasure.EPSILON:
            query = HeavyHitters(table=table, column=column, grid=grid, low=low, high=high, false=false)
            return self.vault.measure(query, amount, self.scope)
        votes = FrequentValues(table=table, column=column, grid=grid, low=low, high=high)
        return self.vault.measure(votes, amount, self.scope, delta=self._delta)

    def holders(self, places: Sequence[Place], amount: Fraction) -> dict[Place, Measured]:
        """How many entities have a value: a single count."""
        queries = [
            Histogram(table=table, axes=(whole_axis(present(column)),), counts=Counts.VOTES) for table, column in places
        ]
        measured = self.vault.measure_all([(query, amount) for query in queries], self.scope)
        return dict(zip(places, measured, strict=True))

    def frequent_strings(self, place: Place, *, without: Sequence[str] = (), amount: Fraction) -> Measured:
        """The strings that enough entities vote for; those in `without` get no votes."""
        query = FrequentValues(table=place[0], column=place[1], without=tuple(without))
        return self.vault.measure(query, amount, self.scope, delta=self._delta)

    def _weights(self, features: Mapping[Place, Feature], amount: Fraction) -> dict[Place, Measured]:
        requests = [
            (Histogram(table=place[0], axes=(whole_axis(feature),)), amount) for place, feature in features.items()
        ]
        return dict(zip(features, self.vault.measure_all(requests, self.scope), strict=True))

    @property
    def _delta(self) -> Fraction:
        """The probability that each query may have to let out a value of one entity alone."""
        return tail_share(self.vault.ledger.thresholds, len(self.types))
