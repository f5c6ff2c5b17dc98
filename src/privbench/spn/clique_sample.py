"""Sample rows of codes from a clique tree, column by column, each given the bins of its parents.

Rows are grouped by the configuration of their parents' bins. In each group the conditional is rounded to whole rows
by systematic sampling, then the codes of each bin are: every such count is within one row of its expectation. Which
rows of a group get which bin is random, anew for each column, so that columns depend on their parents alone.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.clique import CliqueTree, Conditional, Given, code_shares, conditionals, number_of_bins
from privbench.spn.rounding import whole_rows

CELLS = 2_000_000
"""Cells of the conditionals that are held at once."""

STRATA = 16
"""This many neighbouring configurations share their rounding evenly."""

Codes = NDArray[np.integer]


def sample_tree(
    tree: CliqueTree, rows: int, rng: np.random.Generator, *, given: Mapping[str, Codes] | None
) -> dict[str, NDArray[np.uint16]]:
    """Draw that many rows; `given` holds the codes of the given columns, None draws them from the contexts."""
    bins = _drawn_contexts(tree, rows, rng) if given is None else _given_bins(tree.given, given, rows)
    needed = {parent for column in tree.columns for parent in column.parents}
    found: dict[str, NDArray[np.uint16]] = {}
    for column in tree.columns:
        drawn = draw_bins(column, [bins[parent] for parent in column.parents], rows, rng)
        found[column.column] = draw_codes(column, drawn, rng)
        if column.column in needed:
            bins[column.column] = drawn
    return found


def _drawn_contexts(tree: CliqueTree, rows: int, rng: np.random.Generator) -> dict[str, NDArray[np.uint16]]:
    if not tree.given:
        return {}
    times = whole_rows(tree.weights, rows, offset=rng.random())
    chosen = rng.permutation(np.repeat(np.arange(times.size), times))
    return {g.column: bins.astype(np.uint16)[chosen] for g, bins in zip(tree.given, tree.contexts.T, strict=True)}


def _given_bins(columns: tuple[Given, ...], codes: Mapping[str, Codes], rows: int) -> dict[str, NDArray[np.uint16]]:
    found = {}
    for column in columns:
        if column.column not in codes:
            raise ModelError(f"{column.column}: is needed to draw rows, and was not given.")
        own = codes[column.column]
        if own.shape != (rows,) or (rows and not 0 <= own.min() <= own.max() < column.bins.size):
            raise ModelError(f"{column.column}: needs {rows} codes below {column.bins.size}.")
        found[column.column] = column.bins.astype(np.uint16)[own]
    return found


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
    found = np.empty(bins.size, dtype=np.uint16)
    found[_grouped(bins, rng)] = np.concatenate(parts)
    return found


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
