"""The values of synthetic rows, block by block: decoded codes, key values, keys kept unique, rows in order.

Blocks of private tables come from `draws`; what tables made later need of the rows is carried on.

Public tables are copied. Keys of theirs that reference private rows are kept or redrawn: where the ids of the entity
table are kept, such keys stay valid as they are. At other scales the ids are moved in order, so that what two public
tables say of one entity stays together. Keys into other private tables, and into public rows whose own key was
redrawn, are drawn over the rows that are there.
"""

import io
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from privbench.generation.blocks import BLOCK_ROWS
from privbench.generation.carried import Spools
from privbench.generation.derived import copied_columns, number_columns
from privbench.generation.draws import Block, Draws
from privbench.generation.keys import KeyMaker, rows_further_up
from privbench.generation.sizes import Sizes
from privbench.generation.unique import ROUNDS, Uniqueness, deduplicated
from privbench.model.model import Model
from privbench.model.order import colliding_keys, declared_order, is_numbered, redrawn_links, references_entity
from privbench.schema.unit import Link, LinkKind

Places = NDArray[np.int64]


class PrivateRows:
    """Makes the rows of one private table."""

    def __init__(
        self, model: Model, name: str, *, draws: Draws, sizes: Sizes, keys: KeyMaker, spools: Spools, sort: bool
    ) -> None:
        """`sort` says whether rows may be put into the order that the spec declares."""
        self._table = model.protection.schema.table(name)
        self._protection = model.protection
        self._codecs = model.codecs[name]
        self._links = model.protection.links_of(name)
        self._owner = model.protection.owner_link(name)
        self._implied = model.protection.implied_of(name)
        self._settled = {c for link in self._implied for c in link.key.columns}
        self._settled |= set() if self._owner is None else set(self._owner.key.columns)
        self._draws = draws
        self._sizes = sizes
        self._keys = keys
        self._spools = spools
        self._order = declared_order(model.spec, self._table) if sort else []
        self._unique = [
            Uniqueness(key, local=self._holds_owner(key)) for key in colliding_keys(model.spec, self._table)
        ]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The table, at most a few blocks in memory."""
        written = 0
        schema = pa.schema([pa.field(c.name, c.type.arrow) for c in self._table.columns])
        for block in self._draws.blocks():
            values, owners = self._block(block, written)
            count = len(next(iter(values.values())))
            written += count
            if count:
                batch = pa.RecordBatch.from_arrays([values[f.name] for f in schema], schema=schema)
                self._keys.spool(self._table, batch, owners)
                yield batch

    def _block(self, block: Block, written: int) -> tuple[dict[str, pa.Array], Places | None]:
        """The values of a block's rows, and their owners."""
        values = self._values(block, written)
        for unique in self._unique:
            values = unique.repaired(values, partial(self._redraw, unique, block, written))
        values, keep = deduplicated(values, self._complete(values, block.rows), self._unique)
        kept = np.flatnonzero(keep)
        order = self._sorted(values, len(kept))
        numbers = written + np.argsort(order, kind="stable")  # (rows kept,) each row's number in the table
        values |= self._within(block, kept, numbers)
        if self._order:
            values = {name: array.take(pa.array(order)) for name, array in values.items()}
        if is_numbered(self._table, self._table.primary_key):
            rows = np.arange(written, written + len(kept))
            values[self._table.primary_key[0]] = self._keys.own_key(self._table, rows)
        self._carry(block, kept, numbers)
        return values, None if self._owner is None else self._owners(block)[kept][order]

    def _owners(self, block: Block) -> Places:
        """The owners of a block's rows; of rows without one, rows further up."""
        assert self._owner is not None  # noqa: S101  else nothing is above
        return rows_further_up(block.targets[self._owner.name], block.further_up)

    def _above(self, block: Block, table: str, column: str) -> pa.Array:
        """A column of the rows above those of a block; NULL for rows without an owner."""
        assert self._owner is not None  # noqa: S101  else nothing is above
        further_up = self._implied[0].target if self._implied else None
        owners = self._owners(block)
        return self._keys.above(self._owner.target, owners, table=table, column=column, further_up=further_up)

    def _sorted(self, values: Mapping[str, pa.Array], rows: int) -> Places:
        """The order in which the rows are written."""
        if not self._order:
            return np.arange(rows)
        columns = pa.table({name: values[name] for name in self._order})
        order: Places = pc.sort_indices(columns, [(name, "ascending") for name in self._order]).to_numpy()
        return order.astype(np.int64)

    def _carry(self, block: Block, kept: Places, numbers: Places) -> None:
        codes = block.features(self._spools.features(self._table.name), kept)
        counts = {name: rows[kept] for name, rows in block.counts.items()}
        entities = block.entities[kept]
        self._spools.carry(self._table.name, codes=codes, counts=counts, entities=entities, rows=numbers, rng=block.rng)

    def _within(self, block: Block, kept: Places, numbers: Places) -> dict[str, pa.Array]:
        """Keys to the table's own rows, moved to rows that are there for sure, since rows may be lost."""
        values: dict[str, pa.Array] = {}
        for link in (k for k in self._links if k.target == self._table.name):
            in_key = any(set(link.key.columns) & set(unique.columns) for unique in self._unique)
            in_key |= link.kind is LinkKind.INSIDE  # another row might be another entity's
            targets = block.targets[link.name][kept]
            if link.name in block.local:
                values |= self._key_values(link, _moved_within(targets, block.rows, kept, numbers, null=in_key))
            elif self._unique:
                there = int(numbers.max(initial=-1)) + 1
                moved = np.where(targets < there, targets, -1 if in_key else targets % max(there, 1))
                values |= self._key_values(link, moved)
        return values

    def _values(self, block: Block, written: int) -> dict[str, pa.Array]:
        values: dict[str, pa.Array] = {}
        for name, codec in self._codecs.items():
            values[name] = codec.decode(block.codes[name], block.rng, first_row=block.first_row)
        for link in self._links:
            values |= self._key_values(link, _as_rows(block, link, block.targets[link.name], written))
        values |= self._implied_values(block)
        return values | dict(number_columns(self._protection, self._table, targets=block.targets, counts=block.counts))

    def _references(self, link: Link) -> dict[str, str]:
        """The columns that take a value of a key's target row, and which: its own, and copies of the owner's."""
        own = dict(zip(link.key.columns, link.key.references, strict=True))
        if link.kind is LinkKind.INSIDE:  # where keys share a column, they have the same value there
            return {name: reference for name, reference in own.items() if name not in self._settled}
        return own | (copied_columns(self._table) if link.kind is LinkKind.OWNER else {})

    def _key_values(self, link: Link, targets: Places) -> dict[str, pa.Array]:
        """The values of a key. Where only some of its columns may be NULL, the others of a NULL key have any value."""
        partly = link.nullable and self._sizes[link.target] > 0
        anywhere = np.where(targets < 0, np.arange(len(targets)) % max(self._sizes[link.target], 1), targets)
        values = {}
        for name, reference in self._references(link).items():
            column = self._table.column(name)
            rows = anywhere if partly and not column.nullable else targets
            values[column.name] = self._keys.values(link.target, reference, rows).cast(column.type.arrow)
        return values

    def _implied_values(self, block: Block) -> dict[str, pa.Array]:
        """The values of implied keys: those of the rows above."""
        return {
            name: self._above(block, link.target, reference).cast(self._table.column(name).type.arrow)
            for link in self._implied
            for name, reference in zip(link.key.columns, link.key.references, strict=True)
        }

    def _complete(self, values: Mapping[str, pa.Array], rows: int) -> NDArray[np.bool_]:
        """Rows that have all they must have: a NOT NULL key whose target table is empty cannot be filled."""
        keep = np.ones(rows, bool)
        for link in (*self._links, *self._implied):
            for name in self._references(link):
                if not self._table.column(name).nullable:
                    keep &= values[name].is_valid().to_numpy(zero_copy_only=False)
        return keep

    def _redraw(
        self, unique: Uniqueness, block: Block, written: int, places: Places, attempt: int
    ) -> dict[str, pa.Array]:
        """New values for a key's own columns: first from the network, then, if that keeps repeating, from anywhere."""
        values: dict[str, pa.Array] = {}
        codes = self._draws.redraw(block, places)
        for name in (c for c in unique.columns if c in self._codecs):
            codec = self._codecs[name]
            if attempt >= ROUNDS // 3:
                most = codec.size - (codec.null_code is not None)
                codes[name] = block.rng.integers(0, most, len(places)).astype(np.uint16)
            values[name] = codec.decode(codes[name], block.rng, first_row=block.first_row)
            block.codes[name][places] = codes[name]
        for link in self._links:
            if link.kind not in (LinkKind.OWNER, LinkKind.INSIDE) and set(link.key.columns) & set(unique.columns):
                targets = block.targets[link.name]
                there = block.rows if link.name in block.local else self._sizes[link.target]
                anew = block.rng.integers(0, max(there, 1), len(places))
                targets[places] = np.where(targets[places] < 0, -1, anew)
                values |= self._key_values(link, _as_rows(block, link, targets[places], written))
        return values

    def _holds_owner(self, key: tuple[str, ...]) -> bool:
        return self._owner is not None and set(self._owner.key.columns) <= set(key)


def _as_rows(block: Block, link: Link, targets: Places, written: int) -> Places:
    """The target rows of keys as long as no row of the block is lost or moved."""
    return np.where(targets < 0, -1, targets + written) if link.name in block.local else targets


def _moved_within(targets: Places, rows: int, kept: Places, numbers: Places, *, null: bool) -> Places:
    """The rows of the table that places of a block became; for one that was lost NULL, or another one."""
    if not len(kept):
        return targets
    became = np.full(rows, -1, np.int64) if null else numbers[np.arange(rows) % len(kept)]
    became[kept] = numbers
    return np.where(targets < 0, -1, became[targets])


class PublicRows:
    """Makes the rows of one public table."""

    def __init__(
        self, model: Model, name: str, *, sizes: Sizes, keys: KeyMaker, keep_entity_keys: bool, seed: int
    ) -> None:
        self._model = model
        self._table = model.protection.schema.table(name)
        self._sizes = sizes
        self._keys = keys
        redrawn = redrawn_links(model.protection, keep_entity_keys=keep_entity_keys)
        self._redrawn = [link for link in redrawn if link.table == name]
        changed = {c for link in self._redrawn for c in link.key.columns}
        self._unique = [Uniqueness(key, local=False) for key in self._table.keys if changed & set(key)]
        self._rng = np.random.default_rng((seed, [t.name for t in model.protection.schema.tables].index(name)))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The table, batch by batch. Rows whose key cannot be made unique are left out."""
        for batch in pq.ParquetFile(io.BytesIO(self._model.public[self._table.name])).iter_batches(BLOCK_ROWS):
            values = {name: batch.column(name) for name in batch.schema.names}
            for link in self._redrawn:
                values |= self._key_values(link, self._targets(link, values))
            for unique in self._unique:
                values = unique.repaired(values, partial(self._redraw, unique, values))
            keep = np.ones(batch.num_rows, bool)
            for column in (c.name for c in self._table.columns if not c.nullable):
                keep &= values[column].is_valid().to_numpy(zero_copy_only=False)
            values, _ = deduplicated(values, keep, self._unique)
            made = pa.RecordBatch.from_pydict(values, schema=batch.schema)
            self._keys.spool(self._table, made)
            yield made

    def _targets(self, link: Link, values: dict[str, pa.Array]) -> NDArray[np.int64]:
        """The rows that a key shall reference, -1 for NULL."""
        old, there = values[link.key.columns[0]], self._sizes[link.target]
        null = old.is_null().to_numpy(zero_copy_only=False)
        if there == 0:
            return np.full(len(old), -1, np.int64)
        if references_entity(self._model.protection, link) and self._model.entity_keys is not None:
            ids = self._model.entity_keys.column(0)
            at = pc.index_in(old.cast(ids.type), value_set=ids).fill_null(0).to_numpy(zero_copy_only=False)
            rows = at.astype(np.int64) * there // len(ids)
        else:
            rows = self._rng.integers(0, there, len(old))
        return np.where(null, -1, rows)

    def _redraw(
        self, unique: Uniqueness, values: dict[str, pa.Array], places: NDArray[np.int64], _attempt: int
    ) -> dict[str, pa.Array]:
        drawn: dict[str, pa.Array] = {}
        for link in (k for k in self._redrawn if set(k.key.columns) & set(unique.columns)):
            null = values[link.key.columns[0]].is_null().to_numpy(zero_copy_only=False)[places]
            rows = self._rng.integers(0, max(self._sizes[link.target], 1), len(places))
            drawn |= self._key_values(link, np.where(null, -1, rows))
        return drawn

    def _key_values(self, link: Link, targets: NDArray[np.int64]) -> dict[str, pa.Array]:
        return {
            column: self._keys.values(link.target, reference, targets).cast(self._table.column(column).type.arrow)
            for column, reference in zip(link.key.columns, link.key.references, strict=True)
        }
