"""Rows of a private table on their way to their part, as the workers of Spark handle them.

A worker codes the rows of a batch, puts their keys into a form in which they can be compared, and says to which part
they go: that of the entity which the owner key names. Where only a join tells which entity that is, rows pass through
Spark in columns of its own, codes packed into one; else they leave the worker as chunks, one for each part.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.grid import one_array
from privbench.encode.hashing import fingerprint, hash_rows
from privbench.encode.keys import Positions, comparable
from privbench.fitting.slabs import TableWork
from privbench.io.spark_source import cast_rows
from privbench.rules.row_rules import RowRules
from privbench.schema.expression import Expression
from privbench.schema.tables import Column, ForeignKey, Table
from privbench.schema.types import Kind
from privbench.schema.unit import Link, LinkKind
from privbench.spark.jobs import Batches

CHUNKS = pa.schema([("part", pa.int32()), ("place", pa.int32()), ("bytes", pa.binary())])
SQL_CHUNKS = "part int, place int, bytes binary"
PART = "part"
NUMBER = "number"
HASH = "hash"
_CODES, _ORDER = "codes", "ordering"
CHUNK_ROWS = 2**18
"""Rows that a worker gathers before it makes chunks of them."""


class Routing(NamedTuple):
    """How keys that name an entity become the number of a part: hashed as numbers, or as text."""

    parts: int
    as_text: tuple[bool, ...]
    """Of each column of the entity table's key: whether some key has it as another type than a whole number."""

    def part(self, columns: Sequence[pa.Array]) -> NDArray[np.int32]:
        """The part of each row by its key to the entity table, given in the order of that table's key."""
        alike = [c.cast(pa.string()) if text else c for c, text in zip(columns, self.as_text, strict=True)]
        return self.any_part(alike)

    def missing_part(self, columns: Sequence[pa.Array]) -> NDArray[np.int32]:
        """The part of each row by a key to a row that is nowhere: for all that name the same row, of whatever type."""
        return self.any_part([c.cast(pa.string()) for c in columns])

    def any_part(self, columns: Sequence[pa.Array]) -> NDArray[np.int32]:
        """A part for each row by all values of it: for rows that have no entity of the entity table."""
        return (hash_rows(columns) % np.uint64(self.parts)).astype(np.int32)


class KeyColumns:
    """The columns of a table's keys alone, as they can be compared, with a hash of each row."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def __call__(self, batches: Batches) -> Batches:
        """Keys of rows of the source."""
        for batch in batches:
            rows = cast_rows(batch, self.table)
            keys = {f"k{i}": compared(rows, c) for i, c in enumerate(self.table.columns)}
            hashes = hash_rows(list(keys.values())).view(np.int64)
            yield pa.RecordBatch.from_pydict({**keys, HASH: pa.array(hashes)})

    @property
    def sql_schema(self) -> str:
        """The columns in which keys pass through Spark."""
        keys = (f"k{i} {_sql_key_type(column)}" for i, column in enumerate(self.table.columns))
        return ", ".join([*keys, f"{HASH} bigint"])


class CastColumns:
    """The columns of a table in types that Spark has, too, and in which values are in the order of their own type."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def __call__(self, batches: Batches) -> Batches:
        """Rows of the source, cast as other sources cast them."""
        for batch in batches:
            rows = cast_rows(batch, self.table)
            wired = {f"c{i}": rows.column(i).cast(_wire_type(c)) for i, c in enumerate(self.table.columns)}
            yield pa.RecordBatch.from_pydict(wired)

    @property
    def sql_schema(self) -> str:
        """The columns in which rows pass through Spark."""
        return ", ".join(f"c{i} {_sql_wire(column)}" for i, column in enumerate(self.table.columns))


def compared(rows: pa.RecordBatch, column: Column) -> pa.Array:
    """A column of a key, as it can be compared."""
    return comparable(rows.column(column.name)).cast(key_type(column))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCoder:
    """Codes the rows of one table. It is sent to workers, so it holds what is public alone."""

    place: int
    """The place of the table in the order of private tables."""
    work: TableWork
    """Which columns are read, coded and kept; of indexes it has those of public tables."""
    keys: tuple[str, ...]
    """Columns of keys to private tables, of keys that they reference, and of keys that are unique."""
    owners: tuple[tuple[str, ...], ...]
    """The columns of the keys that say whose a row is, of each row the first that is not NULL."""
    identity: tuple[str, ...]
    """A key of the table, by which rows that nobody owns are divided; none where it has none."""
    direct: tuple[tuple[str, ...], ...] | None
    """The columns of owner keys in the order of the entity table's key; None where a join must find the entity."""
    routing: Routing

    @property
    def table(self) -> Table:
        """The columns that are read."""
        return self.work.table

    @property
    def rules(self) -> tuple[Expression, ...]:
        """The rules over one row."""
        return self.work.protection.schema.table(self.table.name).own_checks

    @property
    def public(self) -> tuple[Link, ...]:
        """The keys to public tables."""
        return tuple(link for link in self.work.links if link.kind is LinkKind.CATEGORY)

    @property
    def references(self) -> tuple[Link, ...]:
        """The keys to rows of any entity: a join finds their numbers."""
        return tuple(link for link in self.work.links if link.kind is LinkKind.REFERENCE)

    # -- what a worker does ------------------------------------------------------------------------------------

    def coded(self, batches: Batches) -> Batches:
        """Rows of the source with all that is known of them: keys, codes, values, broken rules, and their part."""
        schema = self.work.protection.schema
        rules = RowRules.of(schema.table(self.table.name), schema, self.rules) if self.rules else None
        for batch in batches:
            rows = cast_rows(batch, self.table)
            keys = self._keys(rows)
            columns = {f"k{i}": keys[name] for i, name in enumerate(self.keys)}
            for i, link in enumerate(self.public):
                index = self.work.indexes[link.target, link.key.references]
                columns[f"p{i}"] = pa.array(index.find([rows.column(n) for n in link.key.columns]), pa.int32())
            columns |= {f"c{i}": pa.array(c.encode(rows.column(n))) for i, (n, c) in enumerate(self.work.coded.items())}
            columns |= {f"v{i}": rows.column(name) for i, name in enumerate(self._kept)}
            if not self.table.primary_key:
                columns[_ORDER] = pa.array(hash_rows(rows.columns).view(np.int64))
            if rules is not None:
                broken = rules.broken({name: rows.column(name.column) for name in rules.columns})
                columns |= {f"b{i}": pa.array(rule.astype(np.uint8)) for i, rule in enumerate(broken)}
            yield pa.RecordBatch.from_pydict(columns | self._parts(rows, keys))
        if rules is not None:
            rules.close()

    def chunks(self, batches: Batches) -> Batches:
        """Rows of the source, as chunks for their parts."""
        return chunked(self.coded(batches), self.place)

    def joined(self, batches: Batches) -> Batches:
        """Rows that came through Spark, as chunks for their parts."""
        return chunked(map(self.unwired, batches), self.place)

    def wired(self, batches: Batches) -> Batches:
        """Rows of the source in columns that Spark can join."""
        for rows in self.coded(batches):
            yield self._wire(rows)

    def key_rows(self, batches: Batches) -> Batches:
        """The keys of rows alone; their part with them, where the keys tell it."""
        for batch in batches:
            rows = cast_rows(batch, self.key_table)
            keys = self._keys(rows)
            part = self._parts(rows, keys) if self.direct is not None and self.identity else {}
            yield pa.RecordBatch.from_pydict({f"k{i}": keys[n] for i, n in enumerate(self.keys)} | part)

    def _keys(self, rows: pa.RecordBatch) -> dict[str, pa.Array]:
        """The columns of keys, as they can be compared."""
        return {name: compared(rows, self.table.column(name)) for name in self.keys}

    @property
    def key_table(self) -> Table:
        """The table with the columns of its keys alone."""
        return Table(name=self.table.name, columns=tuple(self.table.column(name) for name in self.keys))

    # -- what is known of rows ---------------------------------------------------------------------------------

    def codes(self, rows: pa.Table) -> dict[str, NDArray[np.unsignedinteger]]:
        """The codes of rows by column."""
        return {name: rows.column(f"c{i}").to_numpy() for i, name in enumerate(self.work.coded)}

    def values(self, rows: pa.Table, columns: Sequence[str]) -> dict[str, pa.Array]:
        """The values of rows in some of the columns that are kept."""
        return {name: one_array(rows.column(f"v{self._kept.index(name)}")) for name in columns}

    def order(self, rows: pa.Table) -> tuple[pa.Array, ...]:
        """What rows are sorted by: their primary key, or else a hash of their values."""
        if not self.table.primary_key:
            return (pa.array(rows.column(_ORDER).to_numpy().view(np.uint64)),)
        by_value = self._ordered
        return tuple(
            one_array(rows.column(f"v{self._kept.index(n)}" if n in by_value else f"k{self.keys.index(n)}"))
            for n in self.table.primary_key
        )

    def broken(self, rows: pa.Table) -> NDArray[np.int64]:
        """How many rows break each rule over one row."""
        return np.array([rows.column(f"b{i}").to_numpy().sum() for i in range(len(self.rules))], np.int64)

    def fingerprint(self, rows: pa.Table) -> int:
        """The fingerprint of the keys of rows."""
        return fingerprint([one_array(rows.column(name)) for name in self.key(self.keys)])

    def numbers_of(self, link: Link, rows: pa.Table) -> Positions:
        """The numbers of the rows that a key to a public table, or to rows of any entity, references."""
        place = f"p{self.public.index(link)}" if link in self.public else f"t{self.references.index(link)}"
        return np.asarray(rows.column(place).to_numpy(), np.int64)

    def no_rows(self) -> pa.Table:
        """As many columns as rows have, and no rows."""
        empty = pa.RecordBatch.from_pydict({c.name: pa.array([], c.type.arrow) for c in self.table.columns})
        rows = pa.Table.from_batches([*self.coded(iter([empty]))])
        joined = [NUMBER, *(f"t{i}" for i in range(len(self.references)))]
        for name in joined:
            rows = rows.append_column(name, pa.array([], pa.int64()))
        return rows

    @property
    def _ordered(self) -> tuple[str, ...]:
        """The columns of the primary key whose order is not that of their comparable form."""
        names = self.table.primary_key
        return tuple(n for n in names if self.table.column(n).type.kind not in (Kind.INTEGER, Kind.TEXT))

    @property
    def _kept(self) -> tuple[str, ...]:
        """The columns whose values go to the part."""
        return tuple(dict.fromkeys((*self.work.values, *self.work.ruled, *self._ordered)))

    # -- parts -------------------------------------------------------------------------------------------------

    def _parts(self, rows: pa.RecordBatch, keys: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """The part of each row; where only a join tells, what to take where it finds nothing."""
        own = [keys[name] for name in self.identity] or list(rows.columns)
        alone = self.routing.any_part(own)
        if self.direct is not None:
            part = alone
            for columns in reversed(self.direct):
                part = _where_known([keys[n] for n in columns], self.routing.part, part)
            return {PART: pa.array(part, pa.int32())}
        lost = {
            f"m{i}": pa.array(_where_known([keys[n] for n in columns], self.routing.missing_part, alone), pa.int32())
            for i, columns in enumerate(self.owners)
        }
        return {**lost, "alone": pa.array(alone, pa.int32())}

    # -- columns of Spark --------------------------------------------------------------------------------------

    @property
    def sql_schema(self) -> str:
        """The columns in which rows pass through Spark."""
        fields = [f"k{i} {_sql_key_type(self.table.column(name))}" for i, name in enumerate(self.keys)]
        fields += [f"v{i} {_sql_wire(self.table.column(name))}" for i, name in enumerate(self._kept)]
        fields += [f"{name} int" for name in self._route_columns]
        fields += [f"{_ORDER} bigint"] * (not self.table.primary_key)
        return ", ".join([*fields, f"{_CODES} binary"])

    @property
    def sql_keys(self) -> str:
        """The columns in which keys alone pass through Spark."""
        fields = [f"k{i} {_sql_key_type(self.table.column(name))}" for i, name in enumerate(self.keys)]
        return ", ".join([*fields, *([f"{PART} int"] if self.direct is not None and self.identity else [])])

    def key(self, columns: Sequence[str]) -> list[str]:
        """What the columns of a key are called among those of Spark."""
        return [f"k{self.keys.index(name)}" for name in columns]

    @property
    def _route_columns(self) -> list[str]:
        return [PART] if self.direct is not None else [*(f"m{i}" for i in range(len(self.owners))), "alone"]

    @property
    def _packed(self) -> list[tuple[str, np.dtype[np.generic]]]:
        """The columns that are packed into one, with their types."""
        codes = [
            (f"c{i}", codec.encode(pa.array([], self.table.column(name).type.arrow)).dtype)
            for i, (name, codec) in enumerate(self.work.coded.items())
        ]
        public = [(f"p{i}", np.dtype(np.int32)) for i in range(len(self.public))]
        return [*public, *codes, *((f"b{i}", np.dtype(np.uint8)) for i in range(len(self.rules)))]

    def _wire(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        kept = {f"k{i}": rows.column(f"k{i}") for i in range(len(self.keys))}
        kept |= {
            f"v{i}": rows.column(f"v{i}").cast(_wire_type(self.table.column(name))) for i, name in enumerate(self._kept)
        }
        kept |= {name: rows.column(name) for name in self._route_columns}
        kept |= {_ORDER: rows.column(_ORDER)} if not self.table.primary_key else {}
        packed = np.zeros(rows.num_rows, np.dtype(self._packed or [("none", np.dtype(np.uint8))]))
        for name, kind in self._packed:
            packed[name] = rows.column(name).to_numpy().astype(kind, copy=False)
        return pa.RecordBatch.from_pydict(kept | {_CODES: _fixed_bytes(packed)})

    def unwired(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows as they were before they passed through Spark, with what was joined to them."""
        packed = _from_bytes(rows.column(_CODES), np.dtype(self._packed or [("none", np.dtype(np.uint8))]))
        columns = {
            name: rows.column(name)
            for name in rows.schema.names
            if name != _CODES and not name.startswith(("v", "m")) and name != "alone"
        }
        columns |= {
            f"v{i}": rows.column(f"v{i}").cast(self.table.column(name).type.arrow) for i, name in enumerate(self._kept)
        }
        columns |= {name: pa.array(np.ascontiguousarray(packed[name])) for name, _ in self._packed}
        return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerList:
    """All keys of a table that owns others, each in the part to which rows below it go if a join does not find it.

    So the worker that makes this part can tell whether it is missing.
    """

    place: int
    """After those of tables."""
    coder: RowCoder
    """That of the table."""
    references: tuple[str, ...]
    """The columns that keys of rows below reference."""

    def chunks(self, batches: Batches) -> Batches:
        """Keys of rows of the source, as chunks for parts."""
        return chunked(map(self._with_part, self.coder.key_rows(batches)), self.place)

    def _with_part(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        keys = {name: rows.column(name) for name in self.coder.key(self.coder.keys)}
        part = self.coder.routing.missing_part([keys[name] for name in self.coder.key(self.references)])
        return pa.RecordBatch.from_pydict({**keys, PART: pa.array(part, pa.int32())})


def chunked(rows: Batches, place: int) -> Batches:
    """Rows with a part, as one chunk for each part in each so many rows."""
    for table in _gathered(rows):
        parts = table.column(PART).to_numpy()
        order = np.argsort(parts, kind="stable")
        sorted_rows = table.drop_columns([PART]).take(pa.array(order)).combine_chunks()
        found, starts = np.unique(parts[order], return_index=True)
        ends = [*starts[1:], len(order)]
        content = [ipc_bytes(sorted_rows.slice(a, b - a)) for a, b in zip(starts, ends, strict=True)]
        places = pa.array(np.full(len(found), place), pa.int32())
        yield pa.RecordBatch.from_arrays(
            [pa.array(found, pa.int32()), places, pa.array(content, pa.binary())], schema=CHUNKS
        )


def ipc_bytes(rows: pa.Table) -> bytes:
    """Rows as bytes of Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _gathered(batches: Batches) -> Iterator[pa.Table]:
    """Batches put together to so many rows, so that chunks are not too many."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(b.num_rows for b in held) >= CHUNK_ROWS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _where_known(
    columns: Sequence[pa.Array],
    part: Callable[[Sequence[pa.Array]], NDArray[np.int32]],
    otherwise: NDArray[np.int32],
) -> NDArray[np.int32]:
    """The part by a key, for rows in which none of its columns is NULL."""
    known = np.logical_and.reduce([c.is_valid().to_numpy(zero_copy_only=False) for c in columns])
    return np.where(known, part(columns), otherwise)


def key_type(column: Column) -> pa.DataType:
    """The type in which a column of a key is compared with those of other tables."""
    return pa.int64() if column.type.kind is Kind.INTEGER else pa.string()


def _sql_key_type(column: Column) -> str:
    return "bigint" if column.type.kind is Kind.INTEGER else "string"


def _wire_type(column: Column) -> pa.DataType:
    """A type that Spark has, too, and that loses nothing."""
    arrow = column.type.arrow
    wider = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
    timed = pa.types.is_time(arrow) or pa.types.is_timestamp(arrow)
    return pa.int64() if timed else wider.get(arrow, arrow)


def _sql_wire(column: Column) -> str:
    arrow = _wire_type(column)
    if pa.types.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    return _SQL_NAMES[arrow]


_SQL_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.date32(): "date",
}


def _fixed_bytes(packed: NDArray[np.void]) -> pa.Array:
    """Rows of fixed width as values of bytes."""
    offsets = np.arange(len(packed) + 1, dtype=np.int32) * packed.dtype.itemsize
    return pa.Array.from_buffers(
        pa.binary(), len(packed), [None, pa.py_buffer(offsets), pa.py_buffer(packed.tobytes())]
    )


def _from_bytes(values: pa.Array, kind: np.dtype[np.void]) -> NDArray[np.void]:
    """The rows of fixed width that values of bytes were made of."""
    values = values.cast(pa.binary())
    offsets = np.frombuffer(values.buffers()[1], np.int32)
    start = int(offsets[values.offset])
    content = values.buffers()[2]
    return np.frombuffer(content, kind, count=len(values), offset=start) if len(values) else np.zeros(0, kind)


def owner_columns(keys: Sequence[ForeignKey], entity: Table) -> tuple[tuple[str, ...], ...] | None:
    """The columns of keys in the order of the entity table's key; None where one of them leads elsewhere."""
    found = []
    for key in keys:
        if key.table != entity.name or set(key.references) != set(entity.primary_key):
            return None
        by_reference = dict(zip(key.references, key.columns, strict=True))
        found.append(tuple(by_reference[name] for name in entity.primary_key))
    return tuple(found)
