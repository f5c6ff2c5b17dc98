"""Compile a column's domain to its codec: values to small integer codes, and codes back to values.

A codec is public: it comes from the type and the domain alone. It is total: every value of the type, NULL, NaN
and infinities included, has a code, so nothing that depends on a private value can raise. Codes are the cells in
order, then OTHER, then NULL.
"""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.interval import bins_codec, range_codec
from privbench.encode.layout import Codes
from privbench.encode.listed import ordered_list, text_list
from privbench.encode.predicate import All, Predicate
from privbench.encode.serial import serial_codec
from privbench.encode.text import length_codec
from privbench.errors import SpecError
from privbench.schema.domain import MAX_CELLS, Bins, Domain, Range, Serial, Text, Values
from privbench.schema.types import Kind, SqlType

_OTHER_DOMAINS = {
    Kind.TEXT: "`values: [...]` or `text: [0, 8, 16, 32]`",
    Kind.BOOLEAN: "`values: [false, true]`",
}


class Codec(Protocol):
    """What methods and the generator know of a column."""

    @property
    def size(self) -> int:
        """The number of codes."""

    @property
    def ordered(self) -> bool:
        """Whether the cells are in the order of their values."""

    @property
    def null_code(self) -> int | None:
        """The code of NULL, if the column is nullable."""

    @property
    def other_code(self) -> int | None:
        """The code of unlisted values, if they have one of their own."""

    def encode(self, values: pa.Array | pa.ChunkedArray) -> Codes:
        """Return the code of each value (uint8, or uint16 above 256 codes). Never raises on a value of the type."""

    def decode(self, codes: Codes, rng: np.random.Generator, *, first_row: int) -> pa.Array:
        """Draw a value for each code, as an array of exactly the column's Arrow type.

        `first_row` is the number of the first row in its table, from which unique values are made.
        """

    def coverage(self, predicate: Predicate | All) -> NDArray[np.float64]:
        """Return the share of each code's values that satisfies the predicate, between 0 and 1."""

    def labels(self) -> tuple[str, ...]:
        """Return what each code stands for, to be read by people."""


Codecs = Mapping[str, Mapping[str, Codec]]
"""Codecs by table and column."""


def compile_codec(where: str, type: SqlType, *, nullable: bool, domain: Domain) -> Codec:  # noqa: A002
    """Return the codec of the column `where` (table.column); SpecError if the domain does not suit the type.

    >>> from privbench.schema.types import parse_type
    >>> codec = compile_codec("t.age", parse_type("SMALLINT"), nullable=True, domain=Range(range=(0, 99)))
    >>> codec.encode(pa.array([42, 120, None], pa.int16())).tolist()
    [42, 99, 100]
    """
    is_text = type.kind is Kind.TEXT
    match domain:
        case Values() if is_text:
            codec: Codec = text_list(where, type, domain, nullable=nullable)
        case Values():
            codec = ordered_list(where, type, domain, nullable=nullable)
        case Text() if is_text and not type.labels:
            codec = length_codec(where, type, domain, nullable=nullable)
        case Serial():
            codec = serial_codec(where, type, nullable=nullable)
        case Range() if type.kind not in _OTHER_DOMAINS:
            codec = range_codec(where, type, domain, nullable=nullable)
        case Bins() if type.kind not in _OTHER_DOMAINS:
            codec = bins_codec(where, type, domain, nullable=nullable)
        case _:
            kind = domain.__class__.__name__.lower()
            wanted = _OTHER_DOMAINS.get(type.kind, "`range`, `bins` or `values`")
            raise SpecError(f"{where}: a `{kind}` domain does not suit {type.sql}; write {wanted}.")
    if codec.size > MAX_CELLS + 2:
        raise SpecError(f"{where}: {codec.size} cells, at most {MAX_CELLS} are allowed. Write fewer.")
    return codec
