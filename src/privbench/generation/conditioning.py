"""The given columns of a table's network, for the rows of a block: what is known of a row before it is drawn.

Rows born with their owner know the owner's features, their rank and the size of their entity; entities may know what
public tables say of them. What the first row of an owner is like is not known yet: here all rows are first.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privbench.generation.carried import Carried
from privbench.generation.child_rows import Brood
from privbench.generation.spans import Span
from privbench.generation.spools import feature
from privbench.spn.feature_names import FIRST, OWNER, RANK, STRATUM
from privbench.spn.nodes import Node, given_columns

Codes = NDArray[np.uint16]


def given_codes(
    network: Node, span: Span, *, owners: Carried | None, known: Mapping[str, Codes]
) -> dict[str, Codes] | None:
    """The codes of all given columns, row by row; None where they are not known and must be drawn, too.

    `owners` is what the owner table carries, `known` are public codes of all rows of the table.
    """
    found: dict[str, Codes] = {}
    for column in given_columns(network):
        if column.column in known:
            found[column.column] = known[column.column][span.first_row : span.first_row + span.rows]
        elif owners is None:
            return None
        elif span.brood is None or column.column.startswith(FIRST):
            found[column.column] = _without_owner(column.column, len(column.bins), span.rows)
        else:
            found[column.column] = _with_owner(column.column, owners, span.brood)
    return found or None


def _without_owner(name: str, codes: int, rows: int) -> Codes:
    return np.full(rows, codes - 1 if name.startswith((OWNER, FIRST)) else 0, np.uint16)


def _with_owner(name: str, owners: Carried, brood: Brood) -> Codes:
    if name == RANK:
        return brood.ranks()
    if name == STRATUM:
        return brood.sizes()
    return np.repeat(owners.read(feature(name.removeprefix(OWNER)), brood.first, brood.last), brood.fanouts)
