"""From a source to coded private tables and copies of the public ones: the only reader of private rows.

One pass over each table: attributes are coded batch by batch; those without a codec are kept as values until a
domain is found for them, columns coded as differences until the rows above are known, and keys until they can be
replaced by row positions. Everything that can be wrong with the
data is found here, before anything is spent.
"""

import io
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from privbench.encode.codec import Codec, Codecs
from privbench.encode.coded import CodedTable
from privbench.encode.keys import MISSING, NULL, KeyIndex, missing_rows
from privbench.errors import DataError, SourceError
from privbench.fitting.entities import KeyPositions, RawTable, assign_entities
from privbench.fitting.relative import NullBases, code_relative, needed_values, order_sequences
from privbench.fitting.rules import RealRows, Suggested, check_rules_above, columns_for_rules_above
from privbench.io.base import Source, arrow_schema
from privbench.io.names import Names
from privbench.methods.method import Progress
from privbench.model.order import ids_are_public
from privbench.privacy.facts import SIZE_LIMIT
from privbench.schema.relative import relative_columns
from privbench.schema.tables import Schema, Table
from privbench.schema.unit import Link, LinkKind, Protection, Role

_logger = logging.getLogger(__name__)
RawColumns = Mapping[str, Mapping[str, pa.Array]]
"""Values by table and column."""
KeyValues = Mapping[tuple[str, ...], list[pa.ChunkedArray]]
"""The values of some columns of a table, by the tuple of their names."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadDatabase:
    """What was read: private tables in codes, public tables as Parquet, and public facts of the keys."""

    private: Mapping[str, CodedTable]
    raw: RawColumns
    """The values of attributes without a codec, by table and column; their codes are not in `private` yet.

    Of a relative column the differences.
    """
    public: Mapping[str, bytes]
    rows: Mapping[str, int]
    entity_keys: pa.Table | None
    """The keys of the entity table in ascending order, where public tables make them public."""


def read_database(
    source: Source,
    protection: Protection,
    codecs: Codecs,
    *,
    orphans_as_null: bool,
    null_bases: NullBases | None = None,
    suggested: Suggested = (),
    progress: Progress,
) -> ReadDatabase:
    """Read all tables; raises DataError where the data break the schema. Attributes without a codec are kept raw.

    `null_bases` are the values that stand for NULL in the bases of relative columns, `suggested` the rules that were
    taken from the data.
    """
    codes: dict[str, dict[str, NDArray[np.unsignedinteger]]] = {}
    values: dict[str, dict[str, pa.Array]] = {}
    keys: dict[str, KeyValues] = {}
    public: dict[str, bytes] = {}
    rows: dict[str, int] = {}
    ruled: dict[str, _HeldColumns] = {}
    for at, table in enumerate(protection.schema.tables):
        progress(f"reading {table.name}", at, len(protection.schema.tables))
        if protection.roles[table.name] is Role.PUBLIC:
            public[table.name], keys[table.name], rows[table.name] = _read_public(source, protection, table)
        else:
            plain, held = _split(protection, table, codecs[table.name])
            ruled[table.name] = _HeldColumns(table, columns_for_rules_above(protection, table.name))
            codes[table.name], values[table.name], keys[table.name], rows[table.name] = _read_private(
                source, protection, table, plain, held, ruled[table.name], suggested
            )
    _check_sizes(rows)
    progress("checking keys", 0, 1)
    named = {table: held.arrays() for table, held in ruled.items()}
    entity_keys = _sort_public_keys(protection, codes, values, keys, named)
    positions = _positions(protection, keys, orphans_as_null=orphans_as_null)
    _check_rules_above(protection, named, positions, suggested)
    raw = {
        t: RawTable(codes=codes[t], values=values[t], keys=positions.get(t, {}), rows=rows[t]) for t in protection.order
    }
    private = assign_entities(protection, raw)
    sizes = rows | {t: len(table.entities) for t, table in private.items()}
    kept = {t: table.values for t, table in raw.items()}
    order_sequences(protection, private, kept)
    left = code_relative(protection, codecs, private, kept, null_bases=null_bases or {})
    return ReadDatabase(private=private, raw=left, public=public, rows=sizes, entity_keys=entity_keys)


def _split(
    protection: Protection, table: Table, codecs: Mapping[str, Codec]
) -> tuple[dict[str, Codec], tuple[str, ...]]:
    """The codecs of columns that are coded batch by batch, and the columns whose values are kept until all is read."""
    relative = relative_columns(protection, table.name)
    plain = {name: codec for name, codec in codecs.items() if name not in relative}
    bases = needed_values(protection, table.name)
    return plain, tuple(n for n in protection.attributes(table.name) if n not in plain or n in bases)


def _check_sizes(rows: Mapping[str, int]) -> None:
    for table, count in rows.items():
        if count > SIZE_LIMIT:
            raise DataError(f"{table}: has {count} rows, at most {SIZE_LIMIT} can be protected. Split the table.")


def check_source(source: Schema, wanted: Schema) -> None:
    """Refuse a source that lacks a table or a column of the spec."""
    columns = {t.name: Names(c.name for c in t.columns) for t in source.tables}
    names = Names(columns)
    for table in wanted.tables:
        spelled = names.find(table.name)
        if spelled is None:
            raise SourceError(
                f"{table.name}: the spec has this table, the source does not. Tables there: {', '.join(columns)}. "
                f"Say `drop: true` under {table.name} in the spec, or read another source."
            )
        for column in table.columns:
            if columns[spelled].find(column.name) is None:
                raise SourceError(
                    f"{table.name}.{column.name}: the spec has this column, the source does not. "
                    "Say `drop: true` under the column in the spec, or read another source."
                )


def _read_private(
    source: Source,
    protection: Protection,
    table: Table,
    codecs: Mapping[str, Codec],
    values_of: tuple[str, ...],
    ruled: "_HeldColumns",
    suggested: Suggested,
) -> tuple[dict[str, NDArray[np.unsignedinteger]], dict[str, pa.Array], KeyValues, int]:
    parts: dict[str, list[NDArray[np.unsignedinteger]]] = {name: [] for name in codecs}
    raw: dict[str, list[pa.Array]] = {name: [] for name in values_of}
    held, rules = _HeldKeys(protection, table), RealRows(protection, table, suggested)
    rows = 0
    for batch in source.read(table):
        rows += batch.num_rows
        rules.add(batch)
        ruled.add(batch)
        for name, kept in raw.items():
            kept.append(batch.column(name))
        for name, codec in codecs.items():
            parts[name].append(codec.encode(batch.column(name)))
        held.add(batch)
    rules.check()
    if not rows:
        parts = {n: [codec.encode(pa.array([], table.column(n).type.arrow))] for n, codec in codecs.items()}
    codes = {name: np.concatenate(part) for name, part in parts.items()}
    values = {n: _whole(table, n, part) for n, part in raw.items()}
    return codes, values, held.values(), rows


def _whole(table: Table, column: str, parts: list[pa.Array]) -> pa.Array:
    """The values of a column in one piece, in which Arrow holds no more than 2 GiB of text."""
    try:
        return pa.chunked_array(parts, table.column(column).type.arrow).combine_chunks()
    except pa.ArrowInvalid:
        raise DataError(
            f"{table.name}.{column}: holds more than 2 GiB of text, too much to look for texts in, or to compare with "
            "the column of that name in its owner. Declare its domain (`domain: {text: [0, 8, 16, 32]}`) and say "
            "`method: {name: tree, find: false}`, or drop the column."
        ) from None


def _read_public(source: Source, protection: Protection, table: Table) -> tuple[bytes, KeyValues, int]:
    held, rows, buffer = _HeldKeys(protection, table), 0, io.BytesIO()
    rules = RealRows(protection, table, ())
    with pq.ParquetWriter(
        buffer, arrow_schema(table), compression="none"
    ) as writer:  # the model file is compressed as a whole
        for batch in source.read(table):
            rows += batch.num_rows
            held.add(batch)
            rules.add(batch)
            writer.write_batch(batch)
    rules.check()
    return buffer.getvalue(), held.values(), rows


class _HeldColumns:
    """Some columns of a table, gathered batch by batch."""

    def __init__(self, table: Table, columns: Iterable[str]) -> None:
        self._types = {name: table.column(name).type.arrow for name in columns}
        self._parts: dict[str, list[pa.Array]] = {name: [] for name in self._types}

    def add(self, batch: pa.RecordBatch) -> None:
        for name, parts in self._parts.items():
            parts.append(batch.column(name))

    def arrays(self) -> dict[str, pa.ChunkedArray]:
        return {name: pa.chunked_array(parts, type=self._types[name]) for name, parts in self._parts.items()}


class _HeldKeys:
    """The key columns of a table, gathered batch by batch."""

    def __init__(self, protection: Protection, table: Table) -> None:
        self._keys = [*table.keys, *(k.columns for k in table.foreign_keys)]
        self._keys += [link.key.references for link in protection.keys if link.key.table == table.name]
        self._columns = _HeldColumns(table, dict.fromkeys(name for key in self._keys for name in key))

    def add(self, batch: pa.RecordBatch) -> None:
        self._columns.add(batch)

    def values(self) -> KeyValues:
        arrays = self._columns.arrays()
        return {key: [arrays[name] for name in key] for key in self._keys}


def _check_rules_above(
    protection: Protection,
    values: Mapping[str, Mapping[str, pa.ChunkedArray]],
    positions: Mapping[str, Mapping[str, KeyPositions]],
    suggested: Suggested,
) -> None:
    """Refuse rules over rows above that rows break, now that these are known."""
    links = {table: protection.owner_link(table) for table in protection.order}
    owners = {table: positions[table][link.name].rows for table, link in links.items() if link is not None}
    check_rules_above(protection, values, owners, suggested)


def _positions(
    protection: Protection, keys: Mapping[str, KeyValues], *, orphans_as_null: bool
) -> dict[str, dict[str, KeyPositions]]:
    """For each key of each table, the position of the row that it references. Checks every key and UNIQUE."""
    indexes: dict[tuple[str, tuple[str, ...]], KeyIndex] = {}
    for table, columns in _unique_keys(protection):
        primary = columns == protection.schema.table(table).primary_key
        where = f"{table}({', '.join(columns)})"
        indexes[table, columns] = KeyIndex(where, keys[table][columns], nullable=not primary)
    by_table: dict[str, dict[str, KeyPositions]] = {}
    for link in protection.keys:
        values = keys[link.table][link.key.columns]
        positions = indexes[link.key.table, link.key.references].find(values)
        name = link.name
        _check_nulls(name, link, positions)
        _check_orphans(name, link, positions, as_null=orphans_as_null)
        by_table.setdefault(link.table, {})[name] = KeyPositions(
            rows=positions, missing=missing_rows(positions, values)
        )
    return by_table


def _unique_keys(protection: Protection) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every key that the schema declares unique, and every list of columns that a foreign key references."""
    seen = set()
    for table in protection.schema.tables:
        for columns in table.keys:
            seen.add((table.name, columns))
            yield table.name, columns
    for link in protection.keys:
        wanted = (link.key.table, link.key.references)
        if wanted not in seen:
            seen.add(wanted)
            yield wanted


def _check_nulls(name: str, link: Link, positions: NDArray[np.int64]) -> None:
    """Refuse NULL keys in NOT NULL columns: that every row has an owner bounds how many rows there are."""
    nulls = int((positions == NULL).sum())
    if nulls and not link.nullable:
        raise DataError(
            f"{name}: {nulls} rows have a NULL here, but the column is NOT NULL. Fill or remove them, or say "
            "`null: true` under the column in the spec."
        )


def _check_orphans(name: str, link: Link, positions: NDArray[np.int64], *, as_null: bool) -> None:
    """Refuse keys to missing rows, or tell the publisher how many are kept as NULL. Nothing is spent yet."""
    orphans = int((positions == MISSING).sum())
    if not orphans:
        return
    lost = f"{name}: {orphans:,} rows reference a row of {link.target} that does not exist"
    if not as_null:
        raise DataError(
            f'{lost}. Repair them, or say `orphans: "null"` in the spec (`--orphans null`) to count such keys as NULL.'
        )
    if link.kind not in (LinkKind.INBOUND, LinkKind.COPIED) and not link.nullable:
        raise DataError(
            f"{lost}, and the key is part of the primary key, which cannot be NULL. Repair or remove these rows, or "
            f"take the column out of `key` under {link.table} in the spec."
        )
    _logger.warning("%s: they are kept, with a NULL key. This number is for you alone; it is not published.", lost)


def _sort_public_keys(
    protection: Protection,
    codes: dict[str, dict[str, NDArray[np.unsignedinteger]]],
    values: dict[str, dict[str, pa.Array]],
    keys: dict[str, KeyValues],
    named: dict[str, dict[str, pa.ChunkedArray]],
) -> pa.Table | None:
    """Where public tables reference the entity table, its ids are public: sort its rows by them, and return them."""
    if not ids_are_public(protection):
        return None
    entity = protection.schema.table(protection.entity)
    columns = entity.primary_key
    table = pa.table(dict(zip(columns, keys[entity.name][columns], strict=True)))
    order = pc.sort_indices(table, sort_keys=[(c, "ascending") for c in columns])
    codes[entity.name] = {name: column[order.to_numpy()] for name, column in codes[entity.name].items()}
    values[entity.name] = {name: column.take(order) for name, column in values[entity.name].items()}
    named[entity.name] = {name: column.take(order) for name, column in named[entity.name].items()}
    keys[entity.name] = {key: [column.take(order) for column in held] for key, held in keys[entity.name].items()}
    return table.take(order)
