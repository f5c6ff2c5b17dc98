"""Columns coded as differences, once it is known whose rows are whose: bases are looked up and differences coded.

A base is a value of the same row, of a row that owns it, or of a row of the same owner: always of the same entity, so
that an entity's codes depend on its own rows alone (docs/proofs/coding.md). Keys are therefore those of coded tables,
which are NULL where they would lead out of the entity.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.codec import Codecs
from privbench.encode.coded import CodedDatabase
from privbench.encode.keys import NULL, rows_led_to
from privbench.encode.relative import SequenceCodec, differences, sequence_order
from privbench.schema.relative import Base, relative_columns, sequence_columns, values_needed
from privbench.schema.unit import LinkKind, Protection, key_name

NullBases = Mapping[Base, pa.Scalar]
"""What stands for NULL in the bases of relative columns: see `encode.relative.stand_ins`."""
Values = dict[str, dict[str, pa.Array]]
"""Values by table and column, in the order of the rows."""
Positions = NDArray[np.signedinteger]


def needed_values(protection: Protection, table: str) -> set[str]:
    """The columns of a table whose values other columns are coded against, in its own rows or in rows below."""
    tables = [t for t in protection.order if t == table or table in protection.above(t)]
    return {column for t in tables for owner, column in values_needed(protection, t) if owner == table}


def order_sequences(protection: Protection, private: CodedDatabase, values: Values) -> None:
    """Put the rows of each owner into the order of their sequence, where a table has one."""
    for name in protection.order:
        sequences = sequence_columns(protection, name)
        if not sequences:
            continue
        kind = protection.schema.table(name).column(sequences[0]).type
        order = sequence_order(kind, values[name][sequences[0]], _owner_rows(protection, name, private))
        _reorder(protection, name, private, values, order)


def code_relative(
    protection: Protection, codecs: Codecs, private: CodedDatabase, values: Values, *, null_bases: NullBases
) -> dict[str, dict[str, pa.Array]]:
    """Add the codes of relative columns; returns what has no codec yet: values, of relative columns differences."""
    left: dict[str, dict[str, pa.Array]] = {}
    for name in protection.order:
        relative = relative_columns(protection, name)
        left[name] = {c: v for c, v in values[name].items() if c not in codecs[name] and c not in relative}
        for column, base in relative.items():
            codec, made = codecs[name].get(column), None
            if base.value is not None:
                stand_in = null_bases.get(base.value)
                made = _differences(protection, name, column, base.value, private, values, stand_in=stand_in)
            if isinstance(codec, SequenceCodec):
                owners = _owner_rows(protection, name, private)
                private[name].codes[column] = codec.encode_sequences(values[name][column], owners, made)
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
    private: CodedDatabase,
    values: Values,
    *,
    stand_in: pa.Scalar | None,
) -> pa.Array:
    kind = protection.schema.table(name).column(column).type
    base_type = protection.schema.table(base.table).column(base.column).type
    bases = values[base.table][base.column]
    if base.table != name:
        rows = _rows_above(protection, name, base.table, private)
        bases = bases.take(pa.array(np.maximum(rows, 0), mask=rows < 0))
    if stand_in is not None:
        bases = bases.fill_null(stand_in)
    return differences(kind, values[name][column], base_type, bases)


def _rows_above(protection: Protection, name: str, above: str, private: CodedDatabase) -> Positions:
    """For each row of a table the row above it in another table; -1 where there is none."""
    owners = (_owner_rows(protection, table, private) for table in protection.up_to(name, above))
    return rows_led_to(np.arange(len(private[name].entities)), owners)


def _owner_rows(protection: Protection, name: str, private: CodedDatabase) -> Positions:
    """The owner of each row, a row of the same entity; -1 where there is none."""
    return private[name].keys[key_name(name, protection.owners[name])]


def _reorder(protection: Protection, name: str, private: CodedDatabase, values: Values, order: Positions) -> None:
    """Put the rows of a table into another order, and let keys reference the same rows as before.

    Keys to rows of other entities hold numbers, which rows keep.
    """
    table = private[name]
    table.codes = {column: codes[order] for column, codes in table.codes.items()}
    table.keys = {key: rows[order] for key, rows in table.keys.items()}
    table.entities = table.entities[order]
    table.numbers = None if table.numbers is None else table.numbers[order]
    values[name] = {column: kept.take(pa.array(order)) for column, kept in values[name].items()}
    became = np.append(np.empty(len(order), np.int64), NULL)
    became[order] = np.arange(len(order))
    for link in protection.links_to(name):
        if link.kind in (LinkKind.OWNER, LinkKind.INSIDE):
            keys = private[link.table].keys
            keys[link.name] = became[keys[link.name]]
