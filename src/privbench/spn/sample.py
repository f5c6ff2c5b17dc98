"""Sample rows of codes from a network: exact sizes, low variance, unbiased.

Every histogram, mixture and conditional is rounded to whole rows by systematic sampling instead of drawn row by row,
so that each count is within one row of its expectation. Rows keep no trace of that order: each leaf shuffles
its codes, each sum shuffles which rows its children get.

A clique tree is sampled column by column, each given the bins of its parents. Rows are grouped by the configuration of
these bins; in each group the conditional is rounded to whole rows, then the codes of each bin are. Which rows of a
group get which bin is random, anew for each column, so that columns depend on their parents alone.

Rows of one owner may depend on each other through the first of them: a network may have given columns `#first X`, the
code of column X in the first row of the same owner. The first row itself, and a row without owner, have one code more,
the last. So first rows are drawn first, then all others.
"""

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.clique import CliqueTree, Conditional, Given, code_shares, conditionals, number_of_bins
from privbench.spn.feature_names import FIRST, shown
from privbench.spn.nodes import Leaf, Node, Product, distribution, given_columns, walk

CELLS = 2_000_000
"""Cells of the conditionals that are held at once."""

STRATA = 16
"""This many neighbouring configurations share their rounding evenly."""

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
    out = {column: np.empty(rows, dtype=np.uint16) for column in sorted(node.sizes)}
    waiting = [(node, np.arange(rows))]
    while waiting:
        current, places = waiting.pop()
        if places.size == 0:
            continue
        if isinstance(current, Leaf):
            out[current.column][places] = _leaf_codes(current, places.size, rng)
        elif isinstance(current, Product):
            waiting.extend((child, places) for child in current.children)
        elif isinstance(current, CliqueTree):
            # Given columns are never below a sum, so where they matter `places` are all rows.
            drawn = sample_tree(current, places.size, rng, given=given if current.given else None, wanted=wanted)
            for column, codes in drawn.items():
                out[column][places] = codes
        else:
            parts = whole_rows(current.weights, places.size, offset=rng.random())
            blocks = np.split(rng.permutation(places), np.cumsum(parts)[:-1])
            waiting.extend(zip(current.children, blocks, strict=True))
    return out


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


def sample_siblings(
    network: Node, rows: int, rng: np.random.Generator, *, given: Mapping[str, Codes] | None, firsts: Places
) -> Drawn:
    """Draw rows of which `first_rows` says who is first: these, then all others. Other networks draw them at once."""
    if given is None or not any(column.column.startswith(FIRST) for column in given_columns(network)):
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
        drawn = draw_bins(column, [bins[parent] for parent in column.parents], rows, rng)
        codes[column.column] = draw_codes(column, drawn, rng)
        if column.column in needed:
            bins[column.column] = drawn
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
        bins[column.column] = column.bins.astype(np.uint16)[own]
    return bins


def draw_bins(
    column: Conditional, parents: list[NDArray[np.uint16]], rows: int, rng: np.random.Generator
) -> NDArray[np.uint16]:
    """Draw the bin of each row, given the bins of its parents: one array for each of `column.parents`."""
    key = np.zeros(rows, dtype=np.int64)
    for own, factor in zip(parents, column.factors, strict=True):
        key *= factor.shape[0]
        key += own
    order = _grouped(key, rng)
    key = key[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    sizes = np.diff(starts, append=rows)
    first = order[starts]
    drawn = np.empty(rows, dtype=np.uint16)
    drawn[order] = _rounded(column, [own[first] for own in parents], sizes, rng)
    return drawn


def _rounded(
    column: Conditional, configurations: list[NDArray[np.uint16]], sizes: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.uint16]:
    """The bins of all rows, by configuration and ascending in each."""
    offsets = _offsets(sizes.size, rng)
    bins = number_of_bins(column)
    parts = [np.empty(0, dtype=np.uint16)]
    step = max(1, CELLS // bins)
    for start in range(0, sizes.size, step):
        part = slice(start, start + step)
        edges = np.cumsum(np.atleast_2d(conditionals(column, [own[part] for own in configurations])), axis=1)
        # As in whole_rows: by the last entry first, so that it becomes 1 exactly.
        edges /= edges[:, -1:].copy()
        edges *= sizes[part, None]
        edges += offsets[part, None]
        edges = np.minimum(np.floor(edges), sizes[part, None])
        whole = np.diff(edges, axis=1, prepend=0.0).astype(np.int64).ravel()
        parts.append(np.repeat(np.tile(np.arange(bins, dtype=np.uint16), len(edges)), whole))
    return np.concatenate(parts)


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
    codes = np.argsort(column.bins, kind="stable").astype(np.uint16)  # by bin
    if codes.size == number_of_bins(column):
        return codes[bins]
    shares = code_shares(column)[codes]
    ends = np.cumsum(np.bincount(column.bins))
    parts = [np.empty(0, dtype=np.uint16)]
    for rows, start, end in zip(np.bincount(bins, minlength=ends.size), np.r_[0, ends[:-1]], ends, strict=True):
        whole = whole_rows(shares[start:end], rows, offset=rng.random())
        parts.append(np.repeat(codes[start:end], whole))
    drawn = np.empty(bins.size, dtype=np.uint16)
    drawn[_grouped(bins, rng)] = np.concatenate(parts)
    return drawn


def draw_within_bins(node: Node, codes: Mapping[str, Codes], rng: np.random.Generator) -> Drawn:
    """Other codes for columns with these codes, of the bins that they are in; of columns that have bins."""
    trees = [child for child in walk(node) if isinstance(child, CliqueTree)]
    columns = {column.column: column for tree in trees for column in tree.columns if column.column in codes}
    return {
        name: draw_codes(column, column.bins.astype(np.uint16)[codes[name]], rng) for name, column in columns.items()
    }


def _grouped(key: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.int64]:
    """Positions by ascending key, in random order where it is the same."""
    order = rng.permutation(key.size)
    top = int(key.max(initial=0))
    shift = 0
    while top >> shift:
        # numpy sorts 16-bit integers by radix: two passes are faster than one over wider integers.
        digit = (key >> shift if shift else key).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
        shift += 16
    return order


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
