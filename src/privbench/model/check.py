"""The parts of a model file must fit together before anything is made of them; it may come from a stranger."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from privbench.errors import ModelError
from privbench.io.base import arrow_schema
from privbench.model.link_check import check_counted, check_links, feature_sizes
from privbench.model.model import Model
from privbench.privacy.facts import SIZE_LIMIT
from privbench.schema.unit import Role
from privbench.spn.feature_names import COMPONENT


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
    sizes.pop(COMPONENT, None)
    if not 0 <= table.rows <= SIZE_LIMIT:
        raise ModelError(f"{name}: has an impossible number of rows.")
    check_links(model, name)
    check_counted(model, name)
    if sizes != {column: codec.size for column, codec in model.codecs[name].items()} | feature_sizes(model, name):
        raise ModelError(f"{name}: its network does not fit its columns.")


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
