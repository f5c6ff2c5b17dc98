"""Values of relative columns: differences are decoded, and added to their bases in the order in which these are known.

The differences of a block's rows are kept beside its values, so that a row whose base is drawn again can be worked out
again.
"""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.relative import SequenceCodec, restored, stand_ins, step_of_codec
from privbench.model.model import Model
from privbench.schema.relative import Base, relative_columns
from privbench.schema.types import SqlType

Above = Callable[[str, str], pa.Array]
"""Looks up a column of the rows above, by its table and name."""


def difference(column: str) -> str:
    """The name under which the differences of a column stand beside its values; no column of a table has it."""
    return f"\0difference {column}"


class RelativeColumns:
    """Works out the relative columns of one table's rows."""

    def __init__(self, model: Model, table: str) -> None:
        self._bases = relative_columns(model.protection, table)
        self._codecs = {name: model.codecs[table][name] for name in self._bases}
        self._stand_ins = stand_ins(model.spec, model.protection)
        self._table = table
        self._schema = model.protection.schema

    def __contains__(self, column: str) -> bool:
        return column in self._bases

    def __bool__(self) -> bool:
        return bool(self._bases)

    @property
    def needed(self) -> list[str]:
        """What must be known of a row itself to work out its relative columns."""
        own = [b.value.column for b in self._bases.values() if b.value is not None and b.value.table == self._table]
        return [*dict.fromkeys(own), *(difference(name) for name, b in self._bases.items() if not b.previous)]

    def is_sequence(self, column: str) -> bool:
        """Whether a column goes on from the row before, so that no row can be drawn again alone."""
        return column in self._bases and self._bases[column].previous

    def decoded(
        self,
        codes: Mapping[str, NDArray[np.uint16]],
        rng: np.random.Generator,
        owners: NDArray[np.int64] | None,
        values: Mapping[str, pa.Array],
        above: Above,
    ) -> dict[str, pa.Array]:
        """Differences drawn for the rows of a block; of sequences the values. `values` are those of other columns."""
        drawn: dict[str, pa.Array] = {}
        for name, base in self._bases.items():
            codec = self._codecs[name]
            if not isinstance(codec, SequenceCodec):
                drawn[difference(name)] = codec.decode(codes[name], rng, first_row=0)
                continue
            assert owners is not None  # noqa: S101  only owned rows have rows before them
            start = None if base.value is None else (self._type(base.value), self._looked_up(base.value, values, above))
            drawn[name] = codec.decode_sequences(codes[name], owners, rng, start)
        return drawn

    def restored(self, values: Mapping[str, pa.Array], above: Above) -> dict[str, pa.Array]:
        """The values of all relative columns but sequences, given those of the others, and differences."""
        known = dict(values)
        for name, base in self._bases.items():
            if base.previous:
                continue
            bases, step = self._looked_up(base, known, above), step_of_codec(self._codecs[name])
            kind = self._schema.table(self._table).column(name).type
            known[name] = restored(kind, known[difference(name)], self._type(base), bases, step=step)
        return {name: known[name] for name, base in self._bases.items() if not base.previous}

    def _type(self, base: Base) -> SqlType:
        return self._schema.table(base.table).column(base.column).type

    def _looked_up(self, base: Base, values: Mapping[str, pa.Array], above: Above) -> pa.Array:
        bases = values[base.column] if base.table == self._table else above(base.table, base.column)
        return bases.fill_null(self._stand_ins[base])
