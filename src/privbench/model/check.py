"""The parts of a model file must fit together before anything is made of them; it may come from anyone.

Parquet is checked by its metadata before a value is read: a few bytes can claim a trillion rows, or a long text for
each of a million. What `fit` writes is not compressed (the file is, as a whole), so pages are as long as they say.
"""

import io
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from privbench.errors import ModelError
from privbench.io.base import arrow_schema
from privbench.model.link_check import check_counted, check_links, feature_sizes
from privbench.model.model import Model
from privbench.privacy.facts import SIZE_LIMIT
from privbench.schema.unit import Protection, Role
from privbench.spn.feature_names import COMPONENT

CELLS_PER_BYTE, FREE_CELLS = 1000, 2**20
"""More values than that Parquet of its length does not hold when `fit` writes it, in groups of 65,536 rows."""
MAX_BATCH_TEXT = 2**28
"""Bytes of text that a batch of rows may unpack to, beyond the length of the file."""
_BATCH_ROWS = 2**16


def check_model(model: Model, *, public_rows: Mapping[str, int] | None = None) -> None:
    """Refuse a model whose tables, columns, codes or keys are not those of its spec.

    `public_rows` are the rows that the public tables have by the header of the file.
    """
    if set(model.tables) != set(model.protection.order):
        raise ModelError("its tables are not those of its spec.")
    for name in model.tables:
        _check_table(model, name)
    _check_public(model, public_rows)
    _check_entity_keys(model)


def _check_table(model: Model, name: str) -> None:
    table, sizes = model.tables[name], dict(model.tables[name].network.sizes)
    sizes.pop(COMPONENT, None)
    if not 0 <= table.rows <= SIZE_LIMIT:
        raise ModelError(f"{name}: has an impossible number of rows.")
    check_links(model, name)
    check_counted(model, name)
    if sizes != {column: codec.size for column, codec in model.codecs[name].items()} | feature_sizes(model, name):
        raise ModelError(f"{name}: its network does not fit its columns.")


def _check_public(model: Model, rows: Mapping[str, int] | None) -> None:
    tables = [t for t in model.protection.schema.tables if model.protection.roles[t.name] is Role.PUBLIC]
    if set(model.public) != {t.name for t in tables}:
        raise ModelError("its public tables are not those of its spec.")
    for table in tables:
        held = check_parquet(model.public[table.name], arrow_schema(table), where=table.name)
        if rows is not None and rows[table.name] != held:
            raise ModelError(f"{table.name}: has {held:,} rows, but the header says {rows[table.name]:,}.")


def entity_key_schema(protection: Protection) -> pa.Schema:
    """The columns of the kept keys of the entity table."""
    entity = protection.schema.table(protection.entity)
    return pa.schema({name: entity.column(name).type.arrow for name in entity.primary_key})


def _check_entity_keys(model: Model) -> None:
    if model.entity_keys is None:
        return
    entity = model.protection.entity
    fits = model.entity_keys.schema == entity_key_schema(model.protection)
    if not fits or len(model.entity_keys) < round(model.tables[entity].rows):
        raise ModelError(f"{entity}: the keys that are kept do not fit it.")


def check_parquet(content: bytes, columns: pa.Schema, *, where: str) -> int:
    """Refuse Parquet of other columns, or that would unpack to far more than its length; returns its rows."""
    file = pq.ParquetFile(io.BytesIO(content))
    facts = file.metadata
    if not file.schema_arrow.equals(columns):
        raise ModelError(f"{where}: its columns are not those of the spec.")
    groups = [facts.row_group(i) for i in range(facts.num_row_groups)]
    rows = facts.num_rows
    cells = FREE_CELLS + CELLS_PER_BYTE * len(content)
    if not 0 <= rows <= SIZE_LIMIT or rows * max(len(columns), 1) > cells or rows != sum(g.num_rows for g in groups):
        raise ModelError(f"{where}: says that it has {rows:,} rows, more than its Parquet can hold.")
    for group in groups:
        chunks = [group.column(i) for i in range(group.num_columns)]
        if any(chunk.compression != "UNCOMPRESSED" for chunk in chunks):
            raise ModelError(f"{where}: its Parquet is compressed, which that of a model is not.")
    _check_texts(content, columns, where=where)
    return int(rows)


def _check_texts(content: bytes, columns: pa.Schema, *, where: str) -> None:
    """Refuse texts that stand once in the file and are used so often that they would fill the memory."""
    texts = [field.name for field in columns if pa.types.is_string(field.type)]
    if not texts:
        return
    file = pq.ParquetFile(io.BytesIO(content), read_dictionary=texts)
    for batch in file.iter_batches(_BATCH_ROWS, columns=texts, use_threads=False):
        lengths = (pc.binary_length(c.dictionary).take(c.indices) for c in batch.columns)
        if sum(pc.sum(lengths_of).as_py() or 0 for lengths_of in lengths) > MAX_BATCH_TEXT + len(content):
            raise ModelError(f"{where}: its texts would take more memory than a table of its size does.")
