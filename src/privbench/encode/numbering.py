"""Key values made from row numbers: dense, in order, the same at every call, with nothing learnt from real keys."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.text import capacity, key_strings
from privbench.errors import SchemaError
from privbench.schema.types import Kind, SqlType

TEXT_KEY_LENGTH = 12
"""How long a made-up text key is where neither type nor domain says."""


def most_keys(of: SqlType, *, length: int = TEXT_KEY_LENGTH) -> int:
    """How many different keys the type can hold.

    >>> from privbench.schema.types import parse_type
    >>> most_keys(parse_type("SMALLINT"))
    32767
    """
    match of.kind:
        case Kind.INTEGER:
            return of.bounds[1]
        case Kind.FLOAT:
            return 2**24 if of.bits == 32 else 2**53
        case Kind.DECIMAL:
            return int(min(10 ** (of.precision - of.scale) - 1, 2**62))
        case Kind.TEXT:
            return min(capacity(length), 2**62)
        case Kind.DATE:
            return 2_000_000
        case Kind.TIME:
            return 24 * 3600
        case Kind.TIMESTAMP:
            return 2**40
        case Kind.BOOLEAN:
            return 2


def numbered(of: SqlType, rows: NDArray[np.int64], *, length: int = TEXT_KEY_LENGTH) -> pa.Array:
    """The key of each row number (from 0).

    >>> from privbench.schema.types import parse_type
    >>> numbered(parse_type("INTEGER"), np.arange(3)).to_pylist()
    [1, 2, 3]
    """
    match of.kind:
        case Kind.TEXT:
            return key_strings(rows, length)
        case Kind.DECIMAL:
            return pa.array(rows + 1).cast(pa.decimal128(19, 0)).cast(of.arrow)
        case Kind.DATE:
            return pa.array(rows.astype(np.int32)).cast(of.arrow)
        case Kind.TIME | Kind.TIMESTAMP:
            return pa.array(rows * 1_000_000).cast(of.arrow)
        case Kind.BOOLEAN:
            return pa.array(rows % 2 == 1)
        case _:
            return pa.array(rows + 1).cast(of.arrow)


def check_room(where: str, of: SqlType, rows: int, scale: float, *, length: int = TEXT_KEY_LENGTH) -> None:
    """Refuse a scale at which the key column would run out of values."""
    most = most_keys(of, length=length)
    if rows > most:
        raise SchemaError(
            f"{where}: {of.sql} has room for {most} keys, but scale {scale:g} makes {rows} rows. "
            f"The largest scale that fits is {scale * most / rows:.3g}."
        )
