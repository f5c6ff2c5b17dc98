"""Check that every name in a spec exists: columns in keys, tables in references, the unit.

Each mistake comes with its path in the file, so that the reader can point at the line.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from privbench.errors import SchemaError
from privbench.schema.choices import closest
from privbench.schema.table_spec import ForeignKeySpec, TableSpec
from privbench.schema.tables import is_key
from privbench.schema.yaml_lines import Path

Mistake = tuple[Path, str]


def wrong_names(tables: Mapping[str, TableSpec], unit: str | None) -> Iterator[Mistake]:
    """Find every name that is not there, and every type that cannot be read; dropped tables are not looked at."""
    if unit is not None and unit not in tables:
        yield ("unit",), f"there is no table {unit!r}. {closest(unit, tables)}"
    for name, table in tables.items():
        if not table.drop:
            for path, message in _in_table(tables, name, table):
                yield ("tables", name, *path), message
    if unit is not None and unit in tables and tables[unit].rows_per_entity is not None:
        yield ("tables", unit, "rows_per_entity"), "the unit table has one row per entity: take this out."


def _in_table(tables: Mapping[str, TableSpec], name: str, table: TableSpec) -> Iterator[Mistake]:
    columns = table.columns
    lists: list[tuple[Path, Sequence[str]]] = [(("key",), table.key), (("owner",), table.owner or ())]
    lists += [(("order",), table.order or ())]
    lists += [(("unique", i), u) for i, u in enumerate(table.unique)]
    lists += [(("indexes", n, "columns"), i.columns) for n, i in table.indexes.items()]
    lists += [(("foreign_keys", i, "columns"), k.columns) for i, k in enumerate(table.foreign_keys)]
    for path, names in lists:
        yield from _in_list(path, names, name, columns)
    for i, key in enumerate(table.foreign_keys):
        yield from _in_key(("foreign_keys", i), key, tables)
    if table.owner and not any(set(table.owner) == set(k.columns) for k in table.foreign_keys):
        keys = "; ".join(str(list(k.columns)) for k in table.foreign_keys) or "none"
        yield ("owner",), f"these are not the columns of a foreign key of {name}. Its foreign keys: {keys}."
    if table.owned_by is not None and table.owned_by not in tables:
        yield ("owned_by",), f"there is no table {table.owned_by!r}. {closest(table.owned_by, tables)}"
    for column, spec in table.columns.items():
        if not spec.drop:
            try:
                spec.sql_type(f"{name}.{column}")
            except SchemaError as error:
                yield ("columns", column, "type"), str(error)


def _in_list(path: Path, names: Sequence[str], table: str, columns: Collection[str]) -> Iterator[Mistake]:
    for i, column in enumerate(names):
        if column not in columns:
            yield (*path, i), f"{table} has no column {column!r}. {closest(column, columns)}"
        elif column in names[:i]:
            yield (*path, i), f"{column!r} is named twice."


def _in_key(path: Path, key: ForeignKeySpec, tables: Mapping[str, TableSpec]) -> Iterator[Mistake]:
    target = tables.get(key.table)
    if target is None:
        yield (*path, "table"), f"there is no table {key.table!r}. {closest(key.table, tables)}"
        return
    if len(key.columns) != len(key.references):
        yield (*path, "references"), f"{len(key.columns)} columns reference {len(key.references)}."
    if target.drop:
        return
    keys = [target.key, *target.unique, *(i.columns for i in target.indexes.values() if i.unique)]
    if not is_key(key.references, keys):
        known = "; ".join(str(list(k)) for k in keys if k) or "none"
        yield (*path, "references"), f"not a key of {key.table} (`key` or `unique` there). Its keys: {known}."
