"""What the first parents of columns say of pairs that were not measured: products of tables along the paths of a tree.

Every column has at most one first parent, so that there is one path at most between two columns. Given columns depend
on each other as they do in the sample of synthetic rows. Tables are in the bins of pairs.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from privbench.methods.tree.pair_shrinkage import rake
from privbench.methods.tree.structure import Candidates
from privbench.methods.tree.surroundings import Surroundings

Floats = NDArray[np.float64]

IMPLIED = 0.98
"""What a path says of two columns counts so much, independence the rest: a path rules out nothing."""


class Paths:
    """Tables of first parents with their columns, and the tables of any two columns that follow."""

    def __init__(
        self,
        candidates: Candidates,
        given: Surroundings,
        margins: Sequence[Floats],
        firsts: Mapping[tuple[int, int], Floats],
    ) -> None:
        self._candidates = candidates
        self._surroundings = given
        self._margins = margins
        self._neighbours: dict[int, list[tuple[int, Floats]]] = {}
        for (parent, column), masses in firsts.items():
            self._neighbours.setdefault(parent, []).append((column, _shares(masses)))
            self._neighbours.setdefault(column, []).append((parent, _shares(masses.T)))
        self._reached: dict[int, dict[int, Floats]] = {}

    def expected(self, a: int, b: int) -> Floats | None:
        """The masses of two columns, raked to their margins; None if no path leads from one to the other."""
        if a not in self._reached:
            self._reached[a] = self._from(a)
        found = self._reached[a].get(b)
        if found is None:
            return None
        first, second = self._margins[a], self._margins[b]
        masses = IMPLIED * first[:, None] * found + (1 - IMPLIED) * np.outer(first, second) / second.sum()
        return rake(masses, first, second)

    def _from(self, start: int) -> dict[int, Floats]:
        """The shares of every column that a path leads to, for each bin of the one where it starts."""
        reached: dict[int, Floats] = {start: np.eye(self._candidates.axes[start].size)}
        left = [start]
        crossed = False
        while left:
            place = left.pop()
            steps = list(self._neighbours.get(place, ()))
            if place in self._candidates.given and not crossed:
                crossed = True
                steps += [
                    (other, self._given_shares(place, other)) for other in self._candidates.given if other != place
                ]
            for other, shares in steps:
                if other not in reached:
                    reached[other] = reached[place] @ shares
                    left.append(other)
        del reached[start]
        return reached

    def _given_shares(self, first: int, second: int) -> Floats:
        """The shares of one given column for each bin of another, in the sample."""
        own, given = self._candidates.own, self._surroundings
        a, b = (self._candidates.axes[place].bins[given.codes[place - own]] for place in (first, second))
        shape = tuple(self._candidates.axes[place].size for place in (first, second))
        cells = np.bincount(a * shape[1] + b, weights=given.weights, minlength=shape[0] * shape[1])
        return _shares(cells.reshape(shape).astype(np.float64))


def _shares(masses: Floats) -> Floats:
    shares: Floats = masses / np.maximum(masses.sum(axis=1, keepdims=True), 1e-300)
    return shares
