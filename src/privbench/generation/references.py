"""The rows that the reference keys of a block name, for links that say how often each row is named.

A key to the table's own rows names rows of its block; one into a table made before looks at what that carried; one
into a table made later knows only its size.
"""

import numpy as np
from numpy.typing import NDArray

from privbench.generation.spans import Span
from privbench.generation.spools import Spools, number
from privbench.generation.targets import Points, name_anywhere, name_carried, name_once, name_weighted
from privbench.schema.unit import Link
from privbench.spn.named import draw_named
from privbench.spn.nodes import Node
from privbench.spn.tree_links import Named

Rng = np.random.Generator
Rows = NDArray[np.int64]


class NamedKeys:
    """Draws the targets of one key of one table, block after block."""

    def __init__(
        self,
        link: Link,
        model: Named,
        network: Node,
        *,
        unique: bool,
        rows: int,
        targets: int,
        spools: Spools,
        rng: Rng,
    ) -> None:
        """`rows` of that network hold the key, `targets` can be named; each at most once if `unique`."""
        self._link = link
        self._model = model
        self._network = network
        self._unique = unique
        self._rows = rows
        self._targets = targets
        self._spools = spools
        self._carried = model.column is not None and spools.is_made(link.key.table)
        self._points = Points(rng.random())

    def draw(self, span: Span, codes: dict[str, NDArray[np.uint16]], *, rng: Rng) -> Rows:
        """The row that each key names, -1 for NULL; of a key to the same table, its place in the block."""
        null = np.zeros(span.rows, bool) if self._model.null is None else codes[self._model.null] == 1
        named = np.flatnonzero(~null)
        found = np.full(span.rows, -1, np.int64)
        if not len(named) or not self._targets:
            return found
        if self._link.key.table == self._link.table:
            found[named] = self._within(self._numbers(span, codes, rng), len(named), rng)
        else:
            found[named] = self._once(span, len(named), rng) if self._unique else self._often(len(named), rng)
        return found

    def _numbers(self, span: Span, codes: dict[str, NDArray[np.uint16]], rng: Rng) -> NDArray[np.float64]:
        """How often the rows of the block are named."""
        if self._model.column is None:
            return np.zeros(span.rows)
        return draw_named(self._model, self._network, codes, rng=rng)

    def _within(self, numbers: NDArray[np.float64], count: int, rng: Rng) -> Rows:
        if self._unique:
            return name_once(numbers, count, rng=rng)
        return name_weighted(numbers, self._points.take(count, rng=rng))

    def _often(self, count: int, rng: Rng) -> Rows:
        points = self._points.take(count, rng=rng)
        if not self._carried:
            return name_anywhere(self._targets, points)
        return name_carried(self._spools.of(self._link.key.table), self._link, points)

    def _once(self, span: Span, count: int, rng: Rng) -> Rows:
        """Rows that no other block names: those that stand where this block stands in its table."""
        first = min(span.first_row * self._targets // max(self._rows, 1), self._targets)
        last = min((span.first_row + span.rows) * self._targets // max(self._rows, 1), self._targets)
        rows, numbers = np.arange(first, last), np.zeros(last - first)
        if self._carried:
            carried = self._spools.of(self._link.key.table)
            rows = carried.row_numbers(first, last)
            summed = carried.read(number(self._link), max(first - 1, 0), last)
            numbers = np.floor(np.diff(summed, prepend=0.0)[min(first, 1) :])
        chosen = name_once(numbers, count, rng=rng)
        found: Rows = np.append(rows, -1)[chosen]
        return found
