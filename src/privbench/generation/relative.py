"""Values of relative columns: differences are decoded, and added to their bases in the order in which these are known.

The differences of a block's rows are kept beside its values, so that a row whose base is drawn again can be worked out
again.
"""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.codec import Codec
from privbench.encode.relative import SequenceCodec, restored, step_of_codec
from privbench.schema.relative import relative_columns
from privbench.schema.unit import Protection

Above = Callable[[str, str], pa.Array]
"""Looks up a column of the rows above, by its table and name."""


def difference(column: str) -> str:
    """The name under which the differences of a column stand beside its values; no column of a table has it."""
    return f"\0difference {column}"


class RelativeColumns:
    """Works out the relative columns of one table's rows."""

    def __init__(self, protection: Protection, codecs: Mapping[str, Codec], table: str) -> None:
        self._bases = relative_columns(protection, table)
        self._codecs = {name: codecs[name] for name in self._bases}
        self._table = table
        self._schema = protection.schema

    def __contains__(self, column: str) -> bool:
        return column in self._bases

    def __bool__(self) -> bool:
        return bool(self._bases)

    @property
    def needed(self) -> list[str]:
        """What must be known of a row itself to work out its relative columns."""
        own = [b.column for b in self._bases.values() if b.table == self._table]
        return [*dict.fromkeys(own), *(difference(name) for name, b in self._bases.items() if not b.previous)]

    def is_sequence(self, column: str) -> bool:
        """Whether a column goes on from the row before, so that no row can be drawn again alone."""
        return column in self._bases and self._bases[column].previous

    def decoded(
        self, codes: Mapping[str, NDArray[np.uint16]], rng: np.random.Generator, *, owners: NDArray[np.int64] | None
    ) -> dict[str, pa.Array]:
        """Differences drawn for the columns that codes are given of; of sequences the values.

        `owners` are those of all rows of a block; without them no sequence is decoded.
        """
        values: dict[str, pa.Array] = {}
        for name in (n for n in self._bases if n in codes):
            codec = self._codecs[name]
            if not isinstance(codec, SequenceCodec):
                values[difference(name)] = codec.decode(codes[name], rng, first_row=0)
            elif owners is not None:
                values[name] = codec.decode_sequences(codes[name], owners, rng)
        return values

    def restored(self, values: Mapping[str, pa.Array], above: Above) -> dict[str, pa.Array]:
        """The values of all relative columns but sequences, given those of the others, and differences."""
        known = dict(values)
        for name, base in self._bases.items():
            if base.previous:
                continue
            bases = known[base.column] if base.table == self._table else above(base.table, base.column)
            kind = self._schema.table(self._table).column(name).type
            base_type = self._schema.table(base.table).column(base.column).type
            step = step_of_codec(self._codecs[name])
            known[name] = restored(kind, known[difference(name)], base_type, bases, step=step)
        return {name: known[name] for name, base in self._bases.items() if not base.previous}
