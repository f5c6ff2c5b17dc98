"""A group of dependent columns as a chain of conditionals, each column given a few that were placed before it.

The parents of a column form a clique of the graph (they are joined among themselves), so the graph is chordal:
exact inference takes one pass over the columns, backwards, through tables no larger than a clique. Written out it
is a sum-product network: a sum over the bins of each parent. Codes are grouped into bins, dependence is between bins.

Given columns are known before a row is drawn, such as those of the row's owner. They may be parents of any column;
where the caller does not give them, they are drawn from a fixed sample of contexts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.checks import checked_bins, checked_counts, checked_weights, shares_of
from privbench.spn.feature_names import shown

T = TypeVar("T", bound=np.generic)

MAX_CELLS = 2**22
"""Cells of the table over a column and its parents in the tree; inference holds a few such tables."""

MAX_KEPT = 1_000
"""Columns of which is kept what does not change: sampling asks for it block after block."""

MAX_KEYS = 2**62
"""Configurations of all parents of a column, given ones too; sampling numbers them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Conditional:
    """One column given its parents.

    P(bin | parents) is proportional to the product over the parents of factor[bin of the parent, bin]. Where that is
    zero for every bin, and without parents, P(bin) is the bin's own share of the counts. Inside a bin the codes share
    its mass by counts, evenly if all are zero.
    """

    column: str
    bins: NDArray[np.int64]  # (codes,) the bin of each code, numbered from 0 without gaps
    counts: NDArray[np.float64]  # (codes,)
    parents: tuple[str, ...] = ()
    factors: tuple[NDArray[np.float64], ...] = ()  # one per parent: (bins of the parent, bins)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", checked_bins(self.column, self.bins))
        object.__setattr__(self, "counts", checked_counts(self.column, self.counts))
        object.__setattr__(self, "factors", tuple(np.array(f, dtype=np.float64) for f in self.factors))
        if self.counts.shape != self.bins.shape:
            raise ModelError(
                f"{shown(self.column)}: has {self.counts.size} counts and the bins of {self.bins.size} codes."
            )
        if len(self.factors) != len(self.parents) or len(set(self.parents)) != len(self.parents):
            raise ModelError(f"{shown(self.column)}: needs parents of different names and a factor for each of them.")
        for parent, factor in zip(self.parents, self.factors, strict=True):
            if factor.ndim != 2 or factor.shape[1] != number_of_bins(self):
                raise ModelError(
                    f"{shown(self.column)}: the factor of {shown(parent)} has shape {factor.shape}, needs a column for "
                    "each bin."
                )
            # Written so that NaN fails.
            if not ((factor >= 0) & (factor < np.inf)).all():
                raise ModelError(
                    f"{shown(self.column)}: the factor of {shown(parent)} holds a negative number, infinity or NaN."
                )
            factor.setflags(write=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Given:
    """A column that is known before the row is drawn."""

    column: str
    bins: NDArray[np.int64]  # (codes,) the bin of each code, numbered from 0 without gaps

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", checked_bins(self.column, self.bins))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CliqueTree:
    """Columns in order of placement, each given earlier or given ones.

    With q the last placed of the parents that a column has in the tree, the others are parents of q.
    """

    columns: tuple[Conditional, ...]
    given: tuple[Given, ...] = ()
    contexts: NDArray[np.int64] = field(default_factory=lambda: np.zeros((1, 0), np.int64))
    """(contexts, given) bins of the given columns, in a sample of what they can be."""
    weights: NDArray[np.float64] = field(default_factory=lambda: np.ones(1))
    """(contexts,)"""
    sizes: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.columns:
            raise ModelError("a clique tree needs a column.")
        _check_contexts(self)
        bins = {g.column: number_of_bins(g) for g in self.given}
        if len(bins) != len(self.given):
            raise ModelError("the given columns of a clique tree need different names.")
        placed: dict[str, Conditional] = {}
        for column in self.columns:
            if column.column in bins:
                raise ModelError(f"{shown(column.column)}: is there twice in a clique tree.")
            _check_parents(column, bins)
            _check_clique(column, placed, bins)
            bins[column.column] = number_of_bins(column)
            placed[column.column] = column
        object.__setattr__(self, "sizes", {c.column: c.bins.size for c in self.columns})


def number_of_bins(column: Conditional | Given) -> int:
    """Count the bins of a column."""
    return int(column.bins.max()) + 1


@lru_cache(MAX_KEPT)
def bin_shares(column: Conditional) -> NDArray[np.float64]:
    """Compute the probability of each bin by the counts alone.

    >>> column = Conditional(column="a", bins=np.array([0, 1, 1]), counts=np.array([2.0, 4.0, 2.0]))
    >>> bin_shares(column).tolist()
    [0.25, 0.75]
    """
    return _fixed(np.bincount(column.bins, weights=shares_of(column.counts)).astype(np.float64))


def code_shares(column: Conditional) -> NDArray[np.float64]:
    """Compute the probability of each code given its bin.

    >>> column = Conditional(column="a", bins=np.array([0, 0, 1, 1]), counts=np.array([3.0, 1.0, 0.0, 0.0]))
    >>> code_shares(column).tolist()
    [0.75, 0.25, 0.5, 0.5]
    """
    top = np.zeros(number_of_bins(column))
    np.maximum.at(top, column.bins, column.counts)
    # By the largest of the bin first, as in shares_of.
    parts = np.where(top[column.bins] == 0, 1.0, column.counts / np.where(top == 0, 1.0, top)[column.bins])
    shares: NDArray[np.float64] = parts / np.bincount(column.bins, weights=parts)[column.bins]
    return shares


class CodesInBins(NamedTuple):
    """The codes of a column, bin after bin."""

    codes: NDArray[np.uint16]  # (codes,)
    shares: NDArray[np.float64]  # (codes,): of its bin
    slices: tuple[slice, ...]
    """(bins,): where its codes stand."""


@lru_cache(MAX_KEPT)
def codes_in_bins(column: Conditional) -> CodesInBins:
    """List the codes of each bin.

    >>> column = Conditional(column="a", bins=np.array([0, 1, 0]), counts=np.array([3.0, 5.0, 1.0]))
    >>> codes_in_bins(column).codes.tolist(), codes_in_bins(column).shares.tolist()
    ([0, 2, 1], [0.75, 0.25, 1.0])
    """
    codes = np.argsort(column.bins, kind="stable").astype(np.uint16)
    ends = np.cumsum(np.bincount(column.bins)).tolist()
    slices = tuple(slice(start, end) for start, end in zip([0, *ends], ends, strict=False))
    return CodesInBins(_fixed(codes), _fixed(code_shares(column)[codes]), slices)


def bins_of_codes(column: Conditional | Given, codes: NDArray[np.integer]) -> NDArray[np.uint16]:
    """Look up the bin of each code; where every code is a bin of its own the codes as they are.

    >>> bins_of_codes(Given(column="a", bins=np.array([0, 1, 0])), np.array([2, 1])).tolist()
    [0, 1]
    """
    bins = _bins(column)
    return codes.astype(np.uint16, copy=False) if bins is None else bins.take(codes)


@lru_cache(MAX_KEPT)
def _bins(column: Conditional | Given) -> NDArray[np.uint16] | None:
    """The bin of each code; None where that is the code."""
    if np.array_equal(column.bins, np.arange(column.bins.size)):
        return None
    return _fixed(column.bins.astype(np.uint16))


def conditionals(column: Conditional, parents: Sequence[NDArray[np.integer]]) -> NDArray[np.float64]:
    """Compute the probability of each bin, on the last axis, for configurations of the parents' bins.

    The bins of the parents come as one array for each, and broadcast: lists of the same length for a list of
    configurations, open grids for all of them.

    >>> a = np.array([[3.0, 1.0], [0.0, 0.0]])
    >>> column = Conditional(column="c", bins=np.arange(2), counts=np.array([1.0, 1.0]), parents=("a",), factors=(a,))
    >>> conditionals(column, [np.array([0, 1])]).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    if not parents:
        return bin_shares(column)
    shares: NDArray[np.float64] = np.ones(1)
    for factor, bins in zip(_scaled_factors(column), parents, strict=True):
        shares = shares * factor[bins]
    total = shares.sum(axis=-1, keepdims=True)
    shares /= np.where(total == 0, 1.0, total)
    np.copyto(shares, bin_shares(column), where=total == 0)
    return shares


def scaled(factor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide each row by its largest number: that changes no conditional, and products of several cannot overflow."""
    top = factor.max(axis=1, keepdims=True)
    return factor / np.where(top == 0, 1.0, top)


@lru_cache(MAX_KEPT)
def _scaled_factors(column: Conditional) -> tuple[NDArray[np.float64], ...]:
    return tuple(_fixed(scaled(factor)) for factor in column.factors)


def _fixed(array: NDArray[T]) -> NDArray[T]:
    """The array, which many will look at."""
    array.setflags(write=False)
    return array


def own_parents(tree: CliqueTree, column: Conditional) -> tuple[str, ...]:
    """List the parents of a column that are columns of the tree, in order of placement."""
    return tuple(name for name in tree.sizes if name in column.parents)


def _check_contexts(tree: CliqueTree) -> None:
    contexts = np.array(tree.contexts)
    if (
        contexts.ndim != 2
        or contexts.shape[1] != len(tree.given)
        or not len(contexts)
        or contexts.dtype.kind not in "iu"
    ):
        raise ModelError(f"the contexts of {len(tree.given)} given columns have shape {contexts.shape}.")
    for given, bins in zip(tree.given, contexts.T, strict=True):
        if bins.min() < 0 or bins.max() >= number_of_bins(given):
            raise ModelError(f"{shown(given.column)}: a context has a bin that the column has not.")
    if np.shape(tree.weights) != (len(contexts),):
        raise ModelError(f"{len(contexts)} contexts need as many weights, got shape {np.shape(tree.weights)}.")
    contexts = contexts.astype(np.int64)
    contexts.setflags(write=False)
    object.__setattr__(tree, "contexts", contexts)
    object.__setattr__(tree, "weights", checked_weights("contexts", tree.weights))


def _check_parents(column: Conditional, bins: Mapping[str, int]) -> None:
    configurations = 1
    for parent, factor in zip(column.parents, column.factors, strict=True):
        if parent not in bins:
            raise ModelError(
                f"{shown(column.column)}: its parent {shown(parent)} is neither placed before it nor given."
            )
        if factor.shape[0] != bins[parent]:
            raise ModelError(
                f"{shown(column.column)}: the factor of {shown(parent)} has {factor.shape[0]} rows, the parent "
                f"{bins[parent]} bins."
            )
        configurations *= bins[parent]
    if configurations > MAX_KEYS:
        raise ModelError(f"{shown(column.column)}: its parents have too many configurations: {configurations}.")


def _check_clique(column: Conditional, placed: Mapping[str, Conditional], bins: Mapping[str, int]) -> None:
    own = [name for name in placed if name in column.parents]
    if own and (apart := set(own[:-1]) - set(placed[own[-1]].parents)):
        raise ModelError(
            f"{shown(column.column)}: its parents are no clique: {shown(min(apart))} is not a parent of "
            f"{shown(own[-1])}, placed after it."
        )
    cells = number_of_bins(column)
    for name in own:
        cells *= bins[name]
    if cells > MAX_CELLS:
        raise ModelError(
            f"{shown(column.column)}: the table with its parents has {cells} cells, at most {MAX_CELLS} can be."
        )
