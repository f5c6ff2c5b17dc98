"""Values made from row numbers: dense, in order, the same at every call, with nothing learnt from real keys.

Numbers start at 1, dates and timestamps at 2000-01-01 (days and seconds apart), times at midnight; text is made up.
"""

from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.grid import Grid
from privbench.encode.scalar import MICROSECONDS, number_of
from privbench.encode.text import capacity, key_strings
from privbench.errors import SchemaError
from privbench.schema.types import Kind, SqlType

TEXT_LENGTH = 12
"""How long a made-up text is where neither type nor domain says."""


def numbered(of: SqlType, rows: NDArray[np.int64], *, length: int = TEXT_LENGTH) -> pa.Array:
    """Return the value of each row number (from 0).

    >>> from privbench.schema.types import parse_type
    >>> numbered(parse_type("INTEGER"), np.arange(3)).to_pylist()
    [1, 2, 3]
    """
    if of.kind is Kind.TEXT:
        return key_strings(rows, length)
    return _grid(of).values(rows + _first(of), nulls=np.zeros(len(rows), dtype=np.bool_))


def most_values(of: SqlType, *, length: int = TEXT_LENGTH) -> int:
    """Return how many different values the type has room for.

    >>> from privbench.schema.types import parse_type
    >>> most_values(parse_type("SMALLINT"))
    32767
    """
    return capacity(length) if of.kind is Kind.TEXT else _grid(of).high - _first(of) + 1


def check_room(where: str, of: SqlType, rows: int, scale: float, *, length: int = TEXT_LENGTH) -> None:
    """Refuse a scale at which the column would run out of values."""
    most = most_values(of, length=length)
    if rows > most:
        raise SchemaError(
            f"{where}: {of.sql} has room for {most} keys, but scale {scale:g} makes {rows} rows. "
            f"The largest scale that fits is {scale * most / rows:.3g}. For more, widen the type in the spec, "
            "here and in the keys that name it, before you fit."
        )


def _first(of: SqlType) -> int:
    return 1 if of.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT) else 0


def _grid(of: SqlType) -> Grid:
    """Return the grid that rows are numbered on; whole numbers where the type has room for them."""
    match of.kind:
        case Kind.DECIMAL if of.precision > of.scale:
            return Grid(type=of, step=Fraction(10**of.scale))
        case Kind.DATE:
            return Grid(type=of, step=Fraction(1), anchor=number_of("", of, "2000-01-01"))
        case Kind.TIMESTAMP:
            return Grid(type=of, step=Fraction(MICROSECONDS["s"]), anchor=number_of("", of, "2000-01-01"))
        case _:
            return Grid(type=of, step=Fraction(1))
