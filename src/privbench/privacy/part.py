"""A part of the private database: the rows of some entities, all of them, in codes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from privbench.encode.coded import CodedDatabase

RawColumns = Mapping[str, Mapping[str, pa.Array]]
"""The values of columns that have no codes yet, by table and column."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """The rows of some entities in all private tables.

    Keys to rows of the same entity are places in the part, keys to other rows the numbers that these have in their
    whole table. Entities are numbered inside the part.
    """

    tables: CodedDatabase
    raw: RawColumns

    def __repr__(self) -> str:
        return "<private rows>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private data cannot be pickled")
