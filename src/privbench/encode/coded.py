"""Private tables as codes and positions: what the vault locks away.

Made by `fitting.reading` from a source, handed to the vault, and read nowhere else. It does not print and
cannot be pickled.
"""

from collections.abc import Mapping
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray


class CodedTable:
    """Rows of one private table: codes by column, the rows that keys reference by key name, the entity of each row.

    `numbers` are the numbers of the rows in their whole table, by which rows of other entities reference them; None
    where these are the rows of the whole table in their order.
    """

    __slots__ = ("codes", "entities", "keys", "numbers")

    def __init__(
        self,
        *,
        codes: Mapping[str, NDArray[np.unsignedinteger]],
        keys: Mapping[str, NDArray[np.signedinteger]],
        entities: NDArray[np.integer],
        numbers: NDArray[np.integer] | None = None,
    ) -> None:
        self.codes = dict(codes)
        self.keys = dict(keys)
        self.entities = entities
        self.numbers = numbers

    def __repr__(self) -> str:
        return "<private table>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private data cannot be pickled")


CodedDatabase = Mapping[str, CodedTable]
