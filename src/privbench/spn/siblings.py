"""Rows of one owner that depend on each other, through the first of them: the others are drawn given its codes.

A network may have given columns `#first X`: the code of column X in the first row of the same owner. The first row
itself, and a row without owner, have one code more, the last. So first rows are drawn first, then all others.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privbench.spn.clique_sample import Codes
from privbench.spn.feature_names import FIRST
from privbench.spn.nodes import Node, given_columns
from privbench.spn.sample import sample

Drawn = dict[str, NDArray[np.uint16]]
Places = NDArray[np.int64]


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
        known = {name: found[places] for name, found in given.items()}
        known |= first_codes(network, codes, firsts[places])
        for name, found in sample(network, len(places), rng, given=known).items():
            codes[name][places] = found
    return codes
