"""Columns coded as differences, once it is known whose rows are whose: bases are looked up and differences coded.

A base is a value of the same row, of a row that owns it, or of a row of the same owner: always of the same entity, so
that an entity's codes depend on its own rows alone (docs/proofs/coding.md).
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.codec import Codecs
from privbench.encode.coded import CodedTable
from privbench.encode.keys import rows_led_to
from privbench.encode.relative import SequenceCodec, differences, sequence_order
from privbench.fitting.entities import KeyPositions, RawTable
from privbench.schema.relative import Base, relative_columns, sequence_columns, values_needed
from privbench.schema.unit import Protection, key_name

NullBases = Mapping[Base, pa.Scalar]
"""What stands for NULL in the bases of relative columns: see `encode.relative.stand_ins`."""
Positions = NDArray[np.int64]


def needed_values(protection: Protection, table: str) -> set[str]:
    """The columns of a table whose values other columns are coded against, in its own rows or in rows below."""
    tables = [t for t in protection.order if t == table or table in protection.above(t)]
    return {column for t in tables for owner, column in values_needed(protection, t) if owner == table}


def order_sequences(protection: Protection, tables: Mapping[str, RawTable]) -> None:
    """Put the rows of each owner into the order of their sequence, where a table has one."""
    for name in protection.order:
        sequences = sequence_columns(protection, name)
        if not sequences:
            continue
        kind = protection.schema.table(name).column(sequences[0]).type
        order = sequence_order(kind, tables[name].values[sequences[0]], _owner_rows(protection, name, tables))
        _reorder(protection, name, tables, order)


def code_relative(
    protection: Protection,
    codecs: Codecs,
    tables: Mapping[str, RawTable],
    private: Mapping[str, CodedTable],
    *,
    null_bases: NullBases,
) -> dict[str, dict[str, pa.Array]]:
    """Add the codes of relative columns; returns what has no codec yet: values, of relative columns differences."""
    left: dict[str, dict[str, pa.Array]] = {}
    for name in protection.order:
        relative = relative_columns(protection, name)
        left[name] = {c: v for c, v in tables[name].values.items() if c not in codecs[name] and c not in relative}
        for column, base in relative.items():
            codec, values, made = codecs[name].get(column), tables[name].values[column], None
            if base.value is not None:
                stand_in = null_bases.get(base.value)
                made = _differences(protection, name, column, base.value, tables, stand_in=stand_in)
            if isinstance(codec, SequenceCodec):
                owners = _owner_rows(protection, name, tables)
                private[name].codes[column] = codec.encode_sequences(values, owners, made)
            elif codec is None:
                left[name][column] = made
            else:
                private[name].codes[column] = codec.encode(made)
    return left


def _differences(
    protection: Protection,
    name: str,
    column: str,
    base: Base,
    tables: Mapping[str, RawTable],
    *,
    stand_in: pa.Scalar | None,
) -> pa.Array:
    kind = protection.schema.table(name).column(column).type
    base_type = protection.schema.table(base.table).column(base.column).type
    bases = tables[base.table].values[base.column]
    if base.table != name:
        rows = _rows_above(protection, name, base.table, tables)
        bases = bases.take(pa.array(np.maximum(rows, 0), mask=rows < 0))
    if stand_in is not None:
        bases = bases.fill_null(stand_in)
    return differences(kind, tables[name].values[column], base_type, bases)


def _rows_above(protection: Protection, name: str, above: str, tables: Mapping[str, RawTable]) -> Positions:
    """For each row of a table the row above it in another table; -1 where there is none."""
    owners = (_owner_rows(protection, table, tables) for table in protection.up_to(name, above))
    return rows_led_to(np.arange(tables[name].rows), owners)


def _owner_rows(protection: Protection, name: str, tables: Mapping[str, RawTable]) -> Positions:
    """The owner of each row; -1 where it is NULL or missing."""
    return np.maximum(tables[name].keys[key_name(name, protection.owners[name])].rows, -1)


def _reorder(protection: Protection, name: str, tables: Mapping[str, RawTable], order: Positions) -> None:
    """Put the rows of a table into another order, and let keys reference the same rows as before."""
    table = tables[name]
    table.codes = {column: codes[order] for column, codes in table.codes.items()}
    table.values = {column: values.take(pa.array(order)) for column, values in table.values.items()}
    table.keys = {
        key: KeyPositions(rows=held.rows[order], missing=held.missing[order]) for key, held in table.keys.items()
    }
    became = np.empty(len(order), np.int64)
    became[order] = np.arange(len(order))
    for link in (k for k in protection.links_to(name) if k.table in tables):
        held = tables[link.table].keys[link.name]
        rows = np.where(held.rows < 0, held.rows, became[held.rows] if len(became) else held.rows)
        tables[link.table].keys[link.name] = KeyPositions(rows=rows, missing=held.missing)
