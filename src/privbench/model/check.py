"""The parts of a model file must fit together before anything is made of them; it may come from a stranger."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from privbench.errors import ModelError
from privbench.io.base import arrow_schema
from privbench.model.link_check import check_links, feature_sizes
from privbench.model.model import Model
from privbench.privacy.facts import SIZE_LIMIT
from privbench.schema.unit import Role, key_name
from privbench.spn.links import COMPONENT, SlotCounts
from privbench.spn.tree_links import Fanouts


def check_model(model: Model) -> None:
    """Refuse a model whose tables, columns, codes or keys are not those of its spec."""
    if set(model.tables) != set(model.protection.order):
        raise ModelError("its tables are not those of its spec.")
    for name in model.tables:
        _check_table(model, name)
    _check_public(model)
    _check_entity_keys(model)


def _check_table(model: Model, name: str) -> None:
    table, sizes = model.tables[name], dict(model.tables[name].network.sizes)
    parts = sizes.pop(COMPONENT, 0)
    if not 0 <= table.rows <= SIZE_LIMIT:
        raise ModelError(f"{name}: has an impossible number of rows.")
    keys = {k.name for k in model.protection.links if k.table == name}
    counts = [link.counts for link in table.links.values() if isinstance(link, SlotCounts)]
    if set(table.links) != keys or any(len(c) != max(parts, 1) for c in counts):
        raise ModelError(f"{name}: its links do not fit its keys.")
    check_links(model, name)
    _check_counted(model, name)
    if sizes != {column: codec.size for column, codec in model.codecs[name].items()} | feature_sizes(model, name):
        raise ModelError(f"{name}: its network does not fit its columns.")


def _check_counted(model: Model, name: str) -> None:
    """Refuse columns that count rows which are not born with their owner: their number is not known when it is made."""
    derived = [column.derived for column in model.protection.schema.table(name).columns]
    for child in (said.rows for said in derived if said is not None and said.rows is not None):
        link = key_name(child, model.protection.owners[child])
        if not isinstance(model.tables[child].links.get(link), Fanouts):
            raise ModelError(f"{name}: counts rows of {child}, which are not born with it.")


def _check_public(model: Model) -> None:
    tables = [t for t in model.protection.schema.tables if model.protection.roles[t.name] is Role.PUBLIC]
    if set(model.public) != {t.name for t in tables}:
        raise ModelError("its public tables are not those of its spec.")
    for table in tables:
        if not _schema(model.public[table.name]).equals(arrow_schema(table)):
            raise ModelError(f"{table.name}: its columns are not those of the spec.")


def _check_entity_keys(model: Model) -> None:
    if model.entity_keys is None:
        return
    entity = model.protection.schema.table(model.protection.entity)
    columns = {name: entity.column(name).type.arrow for name in entity.primary_key}
    rows = round(model.tables[entity.name].rows)
    if model.entity_keys.schema != pa.schema(columns) or len(model.entity_keys) < rows:
        raise ModelError(f"{entity.name}: the keys that are kept do not fit it.")


def _schema(content: bytes) -> pa.Schema:
    return pq.read_schema(io.BytesIO(content))
