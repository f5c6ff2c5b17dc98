"""Sample rows of codes from a network: exact sizes, low variance, unbiased.

Every histogram, mixture and conditional is rounded to whole rows by systematic sampling instead of drawn row by row,
so that each count is within one row of its expectation. Rows keep no trace of that order: each leaf shuffles
its codes, each sum shuffles which rows its children get.

A clique tree is sampled column by column, each given the bins of its parents. Rows are grouped by the configuration of
these bins, in an order that is random inside each group and anew for each column, so that columns depend on their
parents alone. In each group the conditional is rounded to whole rows; over all groups the codes of each bin are, and
are dealt out in an even order (`_turns`), so that no group has too many of any code.

Rows of one owner may depend on each other through the first of them: a network may have given columns `#first X`, the
code of column X in the first row of the same owner. The first row itself, and a row without owner, have one code more,
the last. So first rows are drawn first, then all others.
"""

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.clique import (
    CliqueTree,
    Conditional,
    Given,
    bins_of_codes,
    codes_in_bins,
    conditionals,
    number_of_bins,
)
from privbench.spn.deal import Groups, grouped, place, place_stretches
from privbench.spn.feature_names import FIRST, shown
from privbench.spn.nodes import Leaf, Node, Product, distribution, given_columns, walk

CELLS = 2_000_000
"""Cells of the conditionals that are held at once."""

STRATA = 16
"""This many neighbouring configurations share their rounding evenly."""

GOLDEN = (5**0.5 - 1) / 2

Codes = NDArray[np.integer]
Drawn = dict[str, NDArray[np.uint16]]
Places = NDArray[np.int64]


def sample(
    node: Node,
    rows: int,
    rng: np.random.Generator,
    *,
    given: Mapping[str, Codes] | None = None,
    wanted: Collection[str] | None = None,
) -> dict[str, NDArray[np.uint16]]:
    """Draw that many rows, in random order, as one array of codes per column.

    `given` holds a code per row for each of `given_columns(node)`, and fixes the order of the rows; without it these
    columns are drawn from the contexts of the network. Where only some columns are wanted, the codes of others mean
    nothing.

    >>> leaf = Leaf(column="a", counts=np.array([3.0, 1.0]))
    >>> np.bincount(sample(leaf, 8, np.random.default_rng(0))["a"]).tolist()
    [6, 2]
    """
    out: Drawn = {}
    waiting: list[tuple[Node, Places | None]] = [(node, None)]  # None: all rows
    while waiting:
        current, places = waiting.pop()
        count = rows if places is None else places.size
        if count == 0:
            continue
        if isinstance(current, Product):
            waiting.extend((child, places) for child in current.children)
        elif isinstance(current, Leaf):
            _put(out, {current.column: _leaf_codes(current, count, rng)}, places, rows)
        elif isinstance(current, CliqueTree):
            # Given columns are never below a sum, so where they matter `places` are all rows.
            drawn = sample_tree(current, count, rng, given=given if current.given else None, wanted=wanted)
            _put(out, drawn, places, rows)
        else:
            parts = whole_rows(current.weights, count, offset=rng.random())
            blocks = np.split(rng.permutation(rows if places is None else places), np.cumsum(parts)[:-1])
            waiting.extend(zip(current.children, blocks, strict=True))
    return {column: out[column] if column in out else np.zeros(rows, np.uint16) for column in sorted(node.sizes)}


def _put(out: Drawn, drawn: Drawn, places: Places | None, rows: int) -> None:
    """Put codes where they belong; those of all rows are taken as they are."""
    for column, codes in drawn.items():
        if places is None:
            out[column] = codes
        else:
            out.setdefault(column, np.empty(rows, np.uint16))[places] = codes


def _leaf_codes(leaf: Leaf, rows: int, rng: np.random.Generator) -> NDArray[np.uint16]:
    counts = whole_rows(distribution(leaf), rows, offset=rng.random())
    codes = np.repeat(np.arange(counts.size, dtype=np.uint16), counts)
    rng.shuffle(codes)
    return codes


def first_rows(owners: NDArray[np.int64]) -> Places:
    """The place of the first row of each row's owner, -1 for first rows and without owner; owners stand in runs.

    >>> first_rows(np.array([4, 4, 4, 7, 8, 8, -1, -1])).tolist()
    [-1, 0, 0, -1, -1, 4, -1, -1]
    """
    places = np.arange(len(owners))
    fresh = np.diff(owners, prepend=-1) != 0
    starts = np.maximum.accumulate(np.where(fresh, places, 0))
    return np.where((owners < 0) | (starts == places), -1, starts)


def first_codes(network: Node, codes: Mapping[str, Codes], firsts: Places) -> Drawn:
    """The given columns of first rows, for rows whose first rows are at these places among codes drawn already."""
    names = [given.column for given in given_columns(network) if given.column.startswith(FIRST)]
    columns = {name: name.removeprefix(FIRST) for name in names}
    return {
        name: np.append(codes[column], network.sizes[column])[firsts].astype(np.uint16)
        for name, column in columns.items()
    }


def asks_first_rows(network: Node) -> bool:
    """Whether rows depend on the first row of their owner."""
    return any(column.column.startswith(FIRST) for column in given_columns(network))


def sample_siblings(
    network: Node, rows: int, rng: np.random.Generator, *, given: Mapping[str, Codes] | None, firsts: Places
) -> Drawn:
    """Draw rows of which `first_rows` says who is first: these, then all others. Other networks draw them at once."""
    if given is None or not asks_first_rows(network):
        return sample(network, rows, rng, given=given)
    codes = {name: np.zeros(rows, np.uint16) for name in sorted(network.sizes)}
    for places in (np.flatnonzero(firsts < 0), np.flatnonzero(firsts >= 0)):
        known = {name: own[places] for name, own in given.items()}
        known |= first_codes(network, codes, firsts[places])
        for name, drawn in sample(network, len(places), rng, given=known).items():
            codes[name][places] = drawn
    return codes


def sample_tree(
    tree: CliqueTree,
    rows: int,
    rng: np.random.Generator,
    *,
    given: Mapping[str, Codes] | None,
    wanted: Collection[str] | None = None,
) -> dict[str, NDArray[np.uint16]]:
    """Draw that many rows; `given` holds the codes of the given columns, None draws them from the contexts.

    Of some columns only, if so wanted, and of those that they depend on.
    """
    bins = _drawn_contexts(tree, rows, rng) if given is None else _given_bins(tree.given, given, rows)
    columns = tree.columns if wanted is None else _with_ancestors(tree, wanted)
    needed = {parent for column in columns for parent in column.parents}
    codes: dict[str, NDArray[np.uint16]] = {}
    for column in columns:
        groups, runs = _deal(column, [bins[parent] for parent in column.parents], rows, rng)
        codes[column.column] = _dealt_codes(column, groups, runs, rng)
        if column.column in needed:
            bins[column.column] = bins_of_codes(column, codes[column.column])
    return codes


def _with_ancestors(tree: CliqueTree, wanted: Collection[str]) -> list[Conditional]:
    """The columns that are wanted and those that they depend on, parents first."""
    needed, found = set(wanted), list[Conditional]()
    for column in reversed(tree.columns):
        if column.column in needed:
            needed |= set(column.parents)
            found.append(column)
    return found[::-1]


def _drawn_contexts(tree: CliqueTree, rows: int, rng: np.random.Generator) -> dict[str, NDArray[np.uint16]]:
    if not tree.given:
        return {}
    times = whole_rows(tree.weights, rows, offset=rng.random())
    chosen = rng.permutation(np.repeat(np.arange(times.size), times))
    return {g.column: bins.astype(np.uint16)[chosen] for g, bins in zip(tree.given, tree.contexts.T, strict=True)}


def _given_bins(columns: tuple[Given, ...], codes: Mapping[str, Codes], rows: int) -> dict[str, NDArray[np.uint16]]:
    bins = {}
    for column in columns:
        if column.column not in codes:
            raise ModelError(f"{shown(column.column)}: is needed to draw rows, and was not given.")
        own = codes[column.column]
        if own.shape != (rows,) or (rows and not 0 <= own.min() <= own.max() < column.bins.size):
            raise ModelError(f"{shown(column.column)}: needs {rows} codes below {column.bins.size}.")
        bins[column.column] = bins_of_codes(column, own)
    return bins


class _Runs(NamedTuple):
    """Bins of rows that stand in groups, as runs of rows with the same bin."""

    bins: NDArray[np.uint16]  # (runs,)
    counts: NDArray[np.int64]  # (runs,)
    before: NDArray[np.int64]
    """(runs,): how many rows before the run have its bin; not worked out where each bin has one code."""


def draw_bins(
    column: Conditional, parents: list[NDArray[np.uint16]], rows: int, rng: np.random.Generator
) -> NDArray[np.uint16]:
    """Draw the bin of each row, given the bins of its parents: one array for each of `column.parents`."""
    groups, runs = _deal(column, parents, rows, rng)
    return place(groups, runs.bins, runs.counts)


def _deal(
    column: Conditional, parents: list[NDArray[np.uint16]], rows: int, rng: np.random.Generator
) -> tuple[Groups, _Runs]:
    """Rows grouped by their configuration, and the bins that they get."""
    few = math.prod(factor.shape[0] for factor in column.factors) <= 2**32
    key: NDArray[np.uint32 | np.uint64] = np.zeros(rows, np.uint32 if few else np.uint64)
    for at, (own, factor) in enumerate(zip(parents, column.factors, strict=True)):
        if at:
            np.multiply(key, factor.shape[0], out=key)
        np.add(key, own, out=key)
    groups = grouped(key, rng)
    return groups, _rounded(column, [own[groups.first] for own in parents], groups.sizes, rng)


def _rounded(
    column: Conditional, configurations: list[NDArray[np.uint16]], sizes: NDArray[np.int64], rng: np.random.Generator
) -> _Runs:
    """The bins of all rows, by configuration and ascending in each."""
    offsets = _offsets(sizes.size, rng)
    names = np.arange(number_of_bins(column), dtype=np.uint16)
    before = np.zeros(names.size, np.int64)
    parts: list[_Runs] = []
    step = max(1, CELLS // names.size)
    for start in range(0, sizes.size, step):
        part = slice(start, start + step)
        edges = np.cumsum(np.atleast_2d(conditionals(column, [own[part] for own in configurations])), axis=1)
        # As in whole_rows: by the last entry first, so that it becomes 1 exactly.
        edges /= edges[:, -1:].copy()
        edges *= sizes[part, None]
        edges += offsets[part, None]
        rounded = np.minimum(edges, sizes[part, None]).astype(np.int64)
        whole: NDArray[np.int64] = np.diff(rounded, axis=1, prepend=0)
        earlier = whole
        if names.size < column.bins.size:
            summed = before + np.cumsum(whole, axis=0)
            earlier, before = summed - whole, summed[-1]
        there = np.flatnonzero(whole) if sizes.size > step else slice(None)  # most of many cells are empty
        own = np.tile(names, len(whole))[there], whole.ravel()[there], earlier.ravel()[there]
        parts.append(_Runs(*own))
    if len(parts) == 1:
        return parts[0]
    none = np.empty(0, np.int64)
    return _Runs(
        np.concatenate([none.astype(np.uint16), *(part.bins for part in parts)]),
        np.concatenate([none, *(part.counts for part in parts)]),
        np.concatenate([none, *(part.before for part in parts)]),
    )


def _dealt_codes(column: Conditional, groups: Groups, runs: _Runs, rng: np.random.Generator) -> NDArray[np.uint16]:
    """The code of each row, given runs of bins."""
    in_bins = codes_in_bins(column)
    if in_bins.codes.size == len(in_bins.slices):
        return place(groups, in_bins.codes[runs.bins], runs.counts)
    rows = np.bincount(runs.bins, runs.counts, len(in_bins.slices)).astype(np.int64)
    starts = np.cumsum(rows) - rows
    pool = np.empty(groups.order.size, np.uint16)
    for count, at, own in zip(rows.tolist(), starts.tolist(), in_bins.slices, strict=True):
        codes = in_bins.codes[own]
        if codes.size == 1:
            pool[at : at + count] = codes[0]
        elif count:
            whole = whole_rows(in_bins.shares[own], count, offset=rng.random())
            np.repeat(codes, whole).take(_turns(count, rng), out=pool[at : at + count], mode="clip")
    return place_stretches(groups, pool, starts[runs.bins] + runs.before, runs.counts)


def _turns(count: int, rng: np.random.Generator) -> NDArray[np.integer]:
    """The numbers 0 .. count - 1 from a random one on, in an order any stretch of which is evenly spread.

    >>> sorted(_turns(7, np.random.default_rng(0)).tolist())
    [0, 1, 2, 3, 4, 5, 6]
    """
    step = round(count * GOLDEN)
    while math.gcd(step, count) > 1:
        step += 1
    turns = np.arange(count, dtype=np.uint32 if count <= 2**16 else np.uint64)  # the product fits
    np.multiply(turns, step, out=turns)
    np.add(turns, int(rng.integers(count)), out=turns)
    return np.remainder(turns, count, out=turns)


def _offsets(configurations: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Where the grid of each configuration starts: uniform, and spread evenly among neighbours.

    Small configurations are then rounded up and down in turn, but not in the same order for two columns.
    """
    blocks = np.tile(np.arange(STRATA, dtype=np.float64), (-(-configurations // STRATA), 1))
    strata = rng.permuted(blocks, axis=1).ravel()[:configurations]
    # Rounding may reach 1, which would be a row too many.
    return np.minimum((strata + rng.random(configurations)) / STRATA, np.nextafter(1, 0))


def draw_codes(column: Conditional, bins: NDArray[np.uint16], rng: np.random.Generator) -> NDArray[np.uint16]:
    """Draw the code of each row, given its bin."""
    groups = grouped(bins, rng)
    runs = _Runs(bins[groups.first], groups.sizes, np.zeros_like(groups.sizes))
    return _dealt_codes(column, groups, runs, rng)


def draw_within_bins(node: Node, codes: Mapping[str, Codes], rng: np.random.Generator) -> Drawn:
    """Other codes for columns with these codes, of the bins that they are in; of columns that have bins."""
    trees = [child for child in walk(node) if isinstance(child, CliqueTree)]
    columns = {column.column: column for tree in trees for column in tree.columns if column.column in codes}
    return {name: draw_codes(column, bins_of_codes(column, codes[name]), rng) for name, column in columns.items()}


def whole_rows(shares: NDArray[np.float64], rows: int, *, offset: float) -> NDArray[np.int64]:
    """Round rows * shares to integers that add up to `rows`, each less than 1 from its exact value.

    Systematic sampling: the cumulated shares cut [0, rows) into intervals, and each gets the points of
    the grid {k - offset} that it holds. Over a uniform offset in [0, 1) the expectation is exact.

    >>> whole_rows(np.array([0.5, 0.3, 0.2]), 5, offset=0.4).tolist()
    [2, 2, 1]
    """
    cumulated = np.cumsum(shares)
    # Divided by the last entry, not by 1: a share of zero at the end then gets no row.
    edges = np.floor(cumulated / cumulated[-1] * rows + offset)
    # rows + offset can round up to rows + 1 when there are many rows.
    whole: NDArray[np.int64] = np.diff(np.minimum(edges, rows), prepend=0.0).astype(np.int64)
    return whole
