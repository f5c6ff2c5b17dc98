"""Public tables are copied. Keys of theirs that name private rows are kept or drawn again.

Where the ids of the entity table are kept, such keys stay valid as they are. At other scales, and for keys into
other private tables, each key is drawn again over the synthetic rows.
"""

import io
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privbench.pipeline.keymaker import KeyMaker
from privbench.pipeline.model import Model
from privbench.pipeline.order import is_numbered
from privbench.pipeline.private_rows import BLOCK_ROWS, Sizes
from privbench.schema.unit import Link, LinkKind


def public_batches(
    model: Model, name: str, *, sizes: Sizes, keys: KeyMaker, keep_entity_keys: bool, seed: int
) -> Iterator[pa.RecordBatch]:
    """A public table, batch by batch."""
    stale = [
        link
        for link in model.protection.links
        if link.table == name and link.kind is LinkKind.INBOUND and not (keep_entity_keys and _kept(model, link))
    ]
    rng = np.random.default_rng((seed, [t.name for t in model.protection.schema.tables].index(name)))
    for batch in pq.ParquetFile(io.BytesIO(model.public[name])).iter_batches(BLOCK_ROWS):
        for link in stale:
            batch = _drawn_again(model, batch, link, sizes, keys, rng)  # noqa: PLW2901
        yield batch


def _kept(model: Model, link: Link) -> bool:
    """Whether a key names the entity table by the ids that are kept."""
    entity = model.protection.schema.table(model.protection.entity)
    return link.key.table == entity.name and is_numbered(entity, link.key.references)


def _drawn_again(
    model: Model, batch: pa.RecordBatch, link: Link, sizes: Sizes, keys: KeyMaker, rng: np.random.Generator
) -> pa.RecordBatch:
    table = model.protection.schema.table(link.table)
    null = batch.column(link.key.columns[0]).is_null().to_numpy(zero_copy_only=False)
    there = sizes[link.key.table]
    targets = rng.integers(0, max(there, 1), batch.num_rows)
    found = keys.values(link.key.table, link.key.references, np.where(null | (there == 0), -1, targets))
    for name, array in zip(link.key.columns, found, strict=True):
        at = batch.schema.get_field_index(name)
        batch = batch.set_column(at, batch.schema.field(at), array.cast(table.column(name).type.arrow))
    return batch
