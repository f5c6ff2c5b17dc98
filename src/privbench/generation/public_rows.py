"""Public tables are copied. Keys of theirs that name private rows are kept or made anew.

Where the ids of the entity table are kept, such keys stay valid as they are. At other scales the ids are moved in
order, so that what two public tables say of one entity stays together. Keys into other private tables, and into
public rows whose own key was made anew, are drawn over the rows that are there.
"""

import io
from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from privbench.generation.keys import KeyMaker
from privbench.generation.spans import BLOCK_ROWS, Sizes
from privbench.generation.unique import Uniqueness, settled
from privbench.model.model import Model
from privbench.model.order import names_entity, stale_links
from privbench.schema.unit import Link


class PublicRows:
    """Makes the rows of one public table."""

    def __init__(
        self, model: Model, name: str, *, sizes: Sizes, keys: KeyMaker, keep_entity_keys: bool, seed: int
    ) -> None:
        self._model = model
        self._table = model.protection.schema.table(name)
        self._sizes = sizes
        self._keys = keys
        stale = stale_links(model.protection, keep_entity_keys=keep_entity_keys)
        self._stale = [link for link in stale if link.table == name]
        changed = {c for link in self._stale for c in link.key.columns}
        self._unique = [Uniqueness(key, local=False) for key in self._table.keys if changed & set(key)]
        self._rng = np.random.default_rng((seed, [t.name for t in model.protection.schema.tables].index(name)))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The table, batch by batch. Rows whose key cannot be made unique are left out."""
        for batch in pq.ParquetFile(io.BytesIO(self._model.public[self._table.name])).iter_batches(BLOCK_ROWS):
            values = {name: batch.column(name) for name in batch.schema.names}
            for link in self._stale:
                values |= self._key_values(link, self._targets(link, values))
            for unique in self._unique:
                values = unique.mend(values, partial(self._redraw, unique, values))
            keep = np.ones(batch.num_rows, bool)
            for column in (c.name for c in self._table.columns if not c.nullable):
                keep &= values[column].is_valid().to_numpy(zero_copy_only=False)
            values, _ = settled(values, keep, self._unique)
            yield pa.RecordBatch.from_pydict(values, schema=batch.schema)

    def _targets(self, link: Link, values: dict[str, pa.Array]) -> NDArray[np.int64]:
        """The rows that a key shall name, -1 for NULL."""
        old, there = values[link.key.columns[0]], self._sizes[link.key.table]
        null = old.is_null().to_numpy(zero_copy_only=False)
        if there == 0:
            return np.full(len(old), -1, np.int64)
        if names_entity(self._model.protection, link) and self._model.entity_keys is not None:
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
        for link in (k for k in self._stale if set(k.key.columns) & set(unique.columns)):
            null = values[link.key.columns[0]].is_null().to_numpy(zero_copy_only=False)[places]
            rows = self._rng.integers(0, max(self._sizes[link.key.table], 1), len(places))
            drawn |= self._key_values(link, np.where(null, -1, rows))
        return drawn

    def _key_values(self, link: Link, targets: NDArray[np.int64]) -> dict[str, pa.Array]:
        return {
            column: self._keys.values(link.key.table, reference, targets).cast(self._table.column(column).type.arrow)
            for column, reference in zip(link.key.columns, link.key.references, strict=True)
        }
