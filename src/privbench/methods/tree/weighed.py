"""One table as method `tree` asks about it: histograms and choices of pairs in which no entity weighs more than one.

A row weighs one over the rows that its entity has in the table, or over `full_rows` if these are more. So a histogram
of features moves by at most the weight of one entity if an entity is added or removed, however many rows it has
(docs/proofs/tree.md). Nothing is cut off.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privbench.privacy.calibrate import Noise, noise_of
from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.features import Axis, Feature, InDegree, null_key, own_key
from privbench.privacy.ledger import Scope
from privbench.privacy.queries import ENTITY_WEIGHT, Counts, Histogram, Pair, PairChoice, sensitivity_factor
from privbench.privacy.vault import Measured, Vault

Axes = Sequence[Axis]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeighedTable:
    """A table of the vault, and the scope that all that is asked of it is charged to."""

    vault: Vault
    table: str
    scope: Scope
    full_rows: int = 1
    """The rows from which on an entity weighs the same; of fewer, in proportion to them."""

    def noise(self, features: Sequence[Feature], amount: Fraction) -> Noise:
        """The noise of a histogram of these features for that amount, in entities."""
        return features_noise(self.vault.privacy_measure, features, amount)

    def measure(self, axes: Axes, amount: Fraction) -> Measured:
        """Weights by the bins of axes; the weight of all rows without any."""
        return self.vault.measure(self._histogram(axes), amount, self.scope)

    def measure_all(self, requests: Sequence[tuple[Axes, Fraction]]) -> list[Measured]:
        """The same for several histograms at once."""
        queries = [(self._histogram(axes), amount) for axes, amount in requests]
        return self.vault.measure_all(queries, self.scope)

    def _histogram(self, axes: Axes) -> Histogram:
        return Histogram(table=self.table, axes=tuple(axes), full_rows=self.full_rows)

    def entities_with_key(self, counted: InDegree, amount: Fraction) -> Measured:
        """How many entities have a key, perhaps of another table, that in-degrees may count."""
        return self.vault.measure(key_holders(counted), amount, self.scope)

    def choose(
        self, pairs: Sequence[Pair], amount: Fraction, *, foreseen: Sequence[tuple[Axis, Axis]] = ()
    ) -> Pair | None:
        """Pick the pair that is farthest from what is expected of it; None stands for a distance of 0."""
        query = PairChoice(
            table=self.table, candidates=tuple(pairs), full_rows=self.full_rows, foreseen=tuple(foreseen)
        )
        at = self.vault.choose(query, amount, self.scope)
        return pairs[at] if at < len(pairs) else None


def key_holders(counted: InDegree) -> Histogram:
    """How many entities have a key that is not NULL, and not to the row above: each has one vote."""
    feature = own_key(counted.link, counted.above) if counted.above else null_key(counted.link)
    there = Axis(feature, np.append(0, np.full(feature.size - 1, -1)))
    return Histogram(table=counted.link.table, axes=(there,), counts=Counts.VOTES)


def features_noise(measure: PrivacyMeasure, features: Sequence[Feature], amount: Fraction) -> Noise:
    """The noise that an amount buys for a weighted histogram of features, in entities."""
    factor = sensitivity_factor(list(features))
    return noise_of(measure, amount, sensitivity=ENTITY_WEIGHT * factor, additive=factor == 1)
