"""The private database as codes and positions: what the vault locks away.

Made by `fitting.reading` from a source, handed to the vault, and read nowhere else. It does not print and
cannot be pickled.
"""

from collections.abc import Mapping
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray


class CodedTable:
    """One private table: codes by column, key positions by key name, and the entity of each row."""

    __slots__ = ("codes", "entities", "keys")

    def __init__(
        self,
        *,
        codes: Mapping[str, NDArray[np.unsignedinteger]],
        keys: Mapping[str, NDArray[np.int64]],
        entities: NDArray[np.int64],
    ) -> None:
        self.codes = dict(codes)
        self.keys = dict(keys)
        self.entities = entities

    def __repr__(self) -> str:
        return "<private table>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private data cannot be pickled")


CodedDatabase = Mapping[str, CodedTable]
