"""The conditional of a column as a table over its clique, for inference.

P(bin | parents) = inside[parents in the tree, bin] * outside[given parents, bin] / norm[given parents, parents in the
tree]. The three are kept apart, since together they would need a cell for each context, parent and bin. Tables are
kept while there is room: a workload asks the same network thousands of questions.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from privbench.spn.clique import CliqueTree, Conditional, bin_shares, conditionals, number_of_bins, own_parents, scaled

KEPT_CELLS = 2**23
"""Cells of all tables that are kept: 64 MB."""

MAX_KEPT = 500
"""Tables that are kept."""

MAX_NORM = KEPT_CELLS // 8
"""Cells of a norm that is kept; a larger one is computed where it is needed, for the contexts at hand."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """P(column | parents), with parents in the tree in order of placement, and given ones in configurations."""

    conditional: Conditional
    parents: tuple[str, ...]  # in the tree
    given: dict[str, Integers]  # bins of the given parents in each configuration that the contexts have
    configuration: Integers  # (contexts,)
    inside: Floats  # (bins of each parent in the tree, bins); without given parents the conditional itself
    outside: Floats | None  # (configurations, bins)
    norm: Floats | None  # (configurations, cells of the parents in the tree), if it is kept

    @property
    def column(self) -> str:
        """The name of the column."""
        return self.conditional.column

    @property
    def clique(self) -> tuple[str, ...]:
        """The columns of the axes of `inside`."""
        return (*self.parents, self.column)

    def values(self, contexts: Integers) -> Floats:
        """Compute the conditionals in some contexts: (contexts, *shape of inside)."""
        known = {name: bins[self.configuration[contexts]] for name, bins in self.given.items()}
        if not known:
            return np.broadcast_to(self.inside, (contexts.size, *self.inside.shape))
        return conditionals(self.conditional, _places(self.conditional, self.parents, known))

    def summed(self, contexts: Integers, *, weights: Floats, evidence: Floats) -> Floats:
        """Compute the expectation of weights * evidence over the bins: (contexts, *bins of the parents in the tree).

        `weights` has an axis for the contexts and one for each column of the clique; any of them may have length 1.
        `evidence` has a number for each bin.
        """
        shape = (contexts.size, *self.inside.shape[:-1])
        known = weights * evidence
        if self.outside is None:
            return np.broadcast_to(_contracted(self.inside, known), shape)
        given = self.outside[self.configuration[contexts]]
        total = _contracted(self.inside, known * np.expand_dims(given, tuple(range(1, len(shape)))))
        norm = _norm(self.inside, given) if self.norm is None else self.norm[self.configuration[contexts]]
        norm = norm.reshape(shape)
        expected: Floats = total / np.where(norm == 0, 1.0, norm)
        if not norm.all():
            np.copyto(expected, (known * bin_shares(self.conditional)).sum(axis=-1), where=norm == 0)
        return expected


_KEPT: dict[tuple[CliqueTree, str], Table] = {}


def conditional_table(tree: CliqueTree, column: Conditional) -> Table:
    """Take the table of a column, from where it is kept or built anew."""
    key = (tree, column.column)
    if key not in _KEPT:
        table = _built(tree, column)
        if sum(map(_held, _KEPT.values())) + _held(table) > KEPT_CELLS or len(_KEPT) == MAX_KEPT:
            _KEPT.clear()
        _KEPT[key] = table
    return _KEPT[key]


def distinct(labels: list[Integers], size: int) -> tuple[Integers, Integers]:
    """Number the combinations of labels that occur: the first place of each, and the number at each place.

    >>> first, number = distinct([np.array([1, 0, 1]), np.array([5, 5, 5])], 3)
    >>> first.tolist(), number.tolist()
    ([1, 0], [1, 0, 1])
    """
    first, number = np.zeros(1, np.int64), np.zeros(size, np.int64)
    for label in labels:
        if label.any():
            joined = number * (int(label.max()) + 1) + label
            _, first, number = np.unique(joined, return_index=True, return_inverse=True)
    return first, number


def _built(tree: CliqueTree, column: Conditional) -> Table:
    parents = own_parents(tree, column)
    contexts = {
        g.column: bins for g, bins in zip(tree.given, tree.contexts.T, strict=True) if g.column in column.parents
    }
    first, configuration = distinct(list(contexts.values()), len(tree.contexts))
    given = {name: bins[first] for name, bins in contexts.items()}
    outside = norm = None
    if given:
        factors = dict(zip(column.parents, map(scaled, column.factors), strict=True))
        inside = np.ones(1)
        for place, name in enumerate(parents):
            inside = inside * factors[name].reshape(-1, *(1,) * (len(parents) - 1 - place), number_of_bins(column))
        inside = np.broadcast_to(inside, (*inside.shape[:-1], number_of_bins(column)))
        outside = np.prod([factors[name][bins] for name, bins in given.items()], axis=0)
        if len(outside) * prod(inside.shape[:-1]) <= MAX_NORM:
            norm = _norm(inside, outside)
    else:
        inside = conditionals(column, _places(column, parents, {}))
    return Table(
        conditional=column,
        parents=parents,
        given=given,
        configuration=configuration,
        inside=inside,
        outside=outside,
        norm=norm,
    )


def _contracted(inside: Floats, known: Floats) -> Floats:
    """Sum inside[parents, bin] * known[context, parents, bin] over the bins.

    Axes of `known` that have length 1 make it a product of matrices, for each place on the other axes.
    """
    if len(known) == 1:
        return np.asarray(np.einsum("...b,...b->...", inside, known[0]))[None]
    *sizes, bins = inside.shape
    there = [axis for axis, size in enumerate(known.shape[1:-1]) if size > 1]
    absent = [axis for axis in range(len(sizes)) if axis not in there]
    order = (*there, *absent)
    cells = prod(sizes[axis] for axis in there)
    left = inside.transpose(*order, len(sizes)).reshape(cells, -1, bins)
    right = known.reshape(len(known), cells, bins).transpose(1, 2, 0)
    total: Floats = np.matmul(left, right).reshape(*(sizes[axis] for axis in order), len(known))
    return total.transpose(len(sizes), *(order.index(axis) for axis in range(len(sizes))))


def _norm(inside: Floats, outside: Floats) -> Floats:
    norm: Floats = outside @ inside.reshape(-1, outside.shape[1]).T
    return norm


def _places(column: Conditional, parents: tuple[str, ...], given: dict[str, Integers]) -> list[Integers]:
    """The bins of the parents as an open grid: given ones on the first axis, if any, each of the others on its own."""
    shift = 1 if given else 0
    axes = shift + len(parents)
    places = []
    for name, factor in zip(column.parents, column.factors, strict=True):
        bins, axis = (given[name], 0) if name in given else (np.arange(len(factor)), shift + parents.index(name))
        places.append(np.expand_dims(bins, tuple(a for a in range(axes) if a != axis)))
    return places


def _held(table: Table) -> int:
    arrays = (table.configuration, table.inside, table.outside, table.norm)
    return sum(array.size for array in arrays if array is not None)
