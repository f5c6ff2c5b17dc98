"""A uniform sample of the rows of a large table, drawn by seed, on which its columns are compared.

The time and memory of the distances then no longer grow with the table. Row counts, children per parent and the
answers of queries are of all rows, whatever their number.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.evaluation.database import Database, Side, qualified

MAX_ROWS = 2_000_000
"""A table with more rows is compared on that many draws of its rows; a row drawn twice counts once."""

Positions = NDArray[np.signedinteger]


def draw_rows(rows: int, *, seed: int) -> Positions | None:
    """The numbers of the rows to compare, ascending; None for all of them.

    Tables of one size get the same numbers, so a database is no distance from itself.
    """
    if rows <= MAX_ROWS:
        return None
    return np.unique(np.random.default_rng([seed, rows]).integers(0, rows, MAX_ROWS))


def sample_table(database: Database, side: Side, name: str, drawn: Positions | None) -> str:
    """The quoted name of a table with the drawn rows alone, in their order; the table's own if all are compared."""
    if drawn is None:
        return qualified(side, name)
    database.connection.register("drawn", pa.table({"source": drawn}))
    database.connection.execute(
        f"CREATE OR REPLACE TABLE coding.{side.value} AS SELECT t.* FROM drawn "  # noqa: S608
        f"JOIN {qualified(side, name)} t ON t.rowid = drawn.source ORDER BY drawn.source"
    )
    database.connection.unregister("drawn")
    return f"coding.{side.value}"


def places(positions: Positions, drawn: Positions | None) -> Positions:
    """Where rows are among the drawn ones; -1 for those that were not drawn or are -1 already.

    >>> places(np.array([7, 3, -1, 5]), np.array([3, 4, 7]))
    array([ 2,  0, -1, -1])
    """
    if drawn is None:
        return positions
    if not len(drawn):
        return np.full(len(positions), -1)
    at = np.minimum(np.searchsorted(drawn, positions), len(drawn) - 1)
    return np.where(drawn[at] == positions, at, -1)
