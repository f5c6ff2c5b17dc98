"""The parts of a model file must fit together before anything is made of them; it may come from anyone.

Links must fit their keys, and find their columns in the networks with the codes they expect.
Parquet is checked by its metadata before a value is read: a few bytes can claim a trillion rows, or a long string for
each of a million. What `fit` writes is not compressed (the file is, as a whole), so pages are as long as they say.
"""

import io
import math
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from privbench.errors import ModelError
from privbench.io.base import arrow_schema
from privbench.model.model import Model
from privbench.privacy.facts import SIZE_LIMIT
from privbench.schema.computed import equal_columns
from privbench.schema.unit import Link, Protection, Role
from privbench.spn.fanouts import RANK_EDGES, size_edges
from privbench.spn.feature_names import ACTIVITY, COMPONENT, RANK, STRATUM, first_column, owner_column, shown
from privbench.spn.link import LinkColumn
from privbench.spn.nodes import given_columns

CELLS_PER_BYTE, FREE_CELLS = 1000, 2**20
"""More values than that Parquet of its length does not hold when `fit` writes it, in groups of 65,536 rows."""
MAX_BATCH_TEXT = 2**28
"""Bytes of text that a batch of rows may unpack to, beyond the length of the file."""
_BATCH_ROWS = 2**16
MOST_OF_OWNER = 2**24
"""The rows of an owner are made in one block, so that their number must not fill the memory."""


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
    for beside in (COMPONENT, ACTIVITY):  # of no column and no link; what they cost is checked with the receipt
        sizes.pop(beside, None)
    if not 0 <= table.rows <= SIZE_LIMIT:
        raise ModelError(f"{name}: has an impossible number of rows.")
    if table.rows_error is not None and not 0 <= table.rows_error < math.inf:  # written so that NaN fails
        raise ModelError(f"{name}: has an impossible error of its number of rows.")
    low, high = (math.nan if end is None else end for end in (table.rows_low, table.rows_high))
    if (table.rows_low or table.rows_high) is not None and not 0 <= low <= table.rows <= high < math.inf:
        raise ModelError(f"{name}: has an impossible range of its number of rows.")
    _check_links(model, name)
    _check_counted(model, name)
    if sizes != {column: codec.size for column, codec in model.codecs[name].items()} | _feature_sizes(model, name):
        raise ModelError(f"{name}: its network does not fit its columns.")


def _feature_sizes(model: Model, table: str) -> dict[str, int]:
    """The columns of a table's network beside those of the table, with their numbers of codes, as its links ask."""
    sizes: dict[str, int] = {}
    for column in _columns(model, table):
        if column.name in sizes or column.name in model.codecs[table]:
            raise ModelError(f"{table}: the network has two columns named {shown(column.name)}.")
        sizes[column.name] = column.codes
    return sizes


def _check_links(model: Model, name: str) -> None:
    """Refuse links that are not those of the table's keys, or of a kind that their key cannot have."""
    links, keys = model.tables[name].links, model.protection.links_of(name)
    if set(links) != {key.name for key in keys}:
        raise ModelError(f"{name}: its links do not fit its keys.")
    for key in keys:
        if key.kind not in links[key.name].keys:
            raise ModelError(f"{name}: the link of {key.name} is not of the kind of its key.")
        if links[key.name].knows_above and not model.protection.leads_above(key):
            raise ModelError(f"{name}: the link of {key.name} asks for a row above that there is not.")
        if any(column.codes != _parts(model, name) for column in links[key.name].columns(key) if _is_part(column)):
            raise ModelError(f"{name}: the link of {key.name} has other parts than its network.")
        _check_children(model, key)


def _check_counted(model: Model, name: str) -> None:
    """Refuse columns that count rows which do not come with their owner: their number is not known when it is made."""
    equal = equal_columns(model.protection, name).values()
    for child in (equals.rows for equals in equal if equals.rows is not None):
        owner = model.protection.owner_link(child)
        link = None if owner is None else model.tables[child].links.get(owner.name)
        if link is None or link.with_owner is None:
            raise ModelError(f"{name}: counts rows of {child}, which do not come with their owner.")


def _columns(model: Model, table: str) -> Iterator[LinkColumn]:
    """What links of the table's own keys, and of keys that reference it, need in its network."""
    for key in (k for k in model.protection.links if table in (k.table, k.target) and k.table in model.tables):
        link = model.tables[key.table].links.get(key.name)
        for column in () if link is None else link.columns(key):
            if (key.target if column.on_target else key.table) == table and not _is_part(column):
                yield column


def _is_part(column: LinkColumn) -> bool:
    """Whether it is the part of the table that a row is of: one column for all links, left out where there is one."""
    return column.name == COMPONENT


def _parts(model: Model, table: str) -> int:
    return model.tables[table].network.sizes.get(COMPONENT, 1)


def _check_children(model: Model, key: Link) -> None:
    """Rows that come with their owner are drawn by features of it and of its first row, with one code more."""
    children = model.tables[key.table].links[key.name].with_owner
    if children is None:
        return
    if not children.unowned <= SIZE_LIMIT:
        raise ModelError(f"{key.table}: has an impossible number of rows without an owner.")
    if children.edges[-1] > MOST_OF_OWNER:
        raise ModelError(f"{key.table}: an owner has more than {MOST_OF_OWNER:,} rows in it, too many for memory.")
    above, own = model.tables[key.target].network, model.tables[key.table].network
    sizes = {**above.sizes, **{given.column: len(given.bins) for given in given_columns(above)}}
    known = {owner_column(name): codes + 1 for name, codes in sizes.items()}
    known |= {first_column(name): codes + 1 for name, codes in own.sizes.items()}
    known |= {RANK: len(RANK_EDGES) - 1, STRATUM: len(size_edges()) - 1}
    for given in given_columns(own):
        if known.get(given.column) != len(given.bins):
            raise ModelError(f"{key.table}: its network asks for {shown(given.column)}, which its rows do not have.")


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
    _check_strings(content, columns, where=where)
    return int(rows)


def _check_strings(content: bytes, columns: pa.Schema, *, where: str) -> None:
    """Refuse strings that stand once in the file and are used so often that they would fill the memory."""
    strings = [field.name for field in columns if pa.types.is_string(field.type)]
    if not strings:
        return
    file = pq.ParquetFile(io.BytesIO(content), read_dictionary=strings)
    for batch in file.iter_batches(_BATCH_ROWS, columns=strings, use_threads=False):
        lengths = (pc.binary_length(c.dictionary).take(c.indices) for c in batch.columns)
        if sum(pc.sum(lengths_of).as_py() or 0 for lengths_of in lengths) > MAX_BATCH_TEXT + len(content):
            raise ModelError(f"{where}: its strings would take more memory than a table of its size does.")
