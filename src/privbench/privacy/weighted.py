"""Measured queries of method `tree`: histograms and choices in which every entity weighs the same.

A row weighs UNITS divided by the rows that its entity has in the table, rounded down. So a histogram of features moves
by at most UNITS in L1 if one entity is added or removed, however many rows it has, and so does its distance from any
public table (docs/proofs/tree.md). Nothing is cut off.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.door import Exact
from privbench.privacy.events import UNITS, Currency
from privbench.privacy.features import Axis, Feature, Pair, touches_of
from privbench.privacy.ledger import Scope
from privbench.privacy.price import Noise, noise_of
from privbench.privacy.vault import Vault
from privbench.spn.feature_names import shown

Integers = NDArray[np.int64]


def weights_query(names: Sequence[str]) -> str:
    """How the ledger calls a weighted histogram of features.

    >>> weights_query(["age", "sex"])
    'weights of age x sex'
    """
    return f"weights of {' x '.join(map(shown, names))}"


def weights_noise(currency: Currency, features: Sequence[Feature], amount: Fraction) -> Noise:
    """The noise that an amount buys for a weighted histogram of features, in entities."""
    touches = touches_of(features)
    return noise_of(currency, amount, sensitivity=UNITS * touches, additive=touches == 1)


class WeightedQueries:
    """The door of the vault for one table, with weights."""

    def __init__(self, vault: Vault, table: str, scope: Scope) -> None:
        self._vault = vault
        self._table = table
        self._scope = scope

    def noise(self, features: Sequence[Feature], amount: Fraction) -> Noise:
        """The noise of a histogram of these features for that amount, in entities."""
        return weights_noise(self._vault.ledger.currency, features, amount)

    def histogram(self, axes: Sequence[Axis], *, amount: Fraction) -> Integers:
        """Weights by the bins of one or more axes."""
        return self._weights(axes, lambda sealed: sealed.features.cells(self._table, axes), amount)

    def total(self, *, amount: Fraction) -> int:
        """The weight of all rows: UNITS for each entity that has any here, but for rounding."""
        return int(
            self._vault._measure(
                self._scope,
                self._table,
                "weight of all rows",
                lambda sealed: np.array([sealed.features.total(self._table)], np.int64),
                draws=1,
                sensitivity=UNITS,
                epsilon=amount,
                weighted=True,
                additive=True,
            )[0]
        )

    def choose(self, pairs: Sequence[Pair], *, amount: Fraction) -> Pair | None:
        """Pick the pair that is farthest from what is expected of it; None stands for a distance of 0."""
        at = self._vault._select(
            self._scope,
            self._table,
            f"one of {len(pairs)} pairs of columns, or none",
            lambda sealed: np.array([*sealed.features.scores(self._table, pairs), 0], np.int64),
            sensitivity=UNITS,
            epsilon=amount,
            weighted=True,
        )
        return pairs[at] if at < len(pairs) else None

    def choose_first_cell(self, features: Sequence[Feature], *, amount: Fraction) -> Feature | None:
        """Pick the feature whose first code outweighs its second the most; None stands for a tie."""
        at = self._vault._select(
            self._scope,
            self._table,
            f"one of {len(features)} claims about columns, or none",
            lambda sealed: np.array([*(sealed.features.lead(self._table, f) for f in features), 0], np.int64),
            sensitivity=UNITS,
            epsilon=amount,
            weighted=True,
        )
        return features[at] if at < len(features) else None

    def pair(self, first: Axis, second: Axis, *, amount: Fraction) -> Integers:
        """Weights by the bins of two axes; counted once, however often they were among the choices."""
        return self._weights((first, second), lambda sealed: sealed.features.pair(self._table, first, second), amount)

    def forget(self) -> None:
        """The table is learnt: let go of what was counted for it."""
        if self._vault._sealed is not None:
            self._vault._sealed.features.forget(self._table)

    def _weights(self, axes: Sequence[Axis], exact: Exact, amount: Fraction) -> Integers:
        touches = touches_of(axis.feature for axis in axes)
        return self._vault._measure(
            self._scope,
            self._table,
            weights_query([axis.feature.name for axis in axes]),
            exact,
            draws=prod(axis.size for axis in axes),
            sensitivity=UNITS * touches,
            epsilon=amount,
            weighted=True,
            additive=touches == 1,
        )
