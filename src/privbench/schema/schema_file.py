"""The schema of a bundle as a file, `schema.json`: what its scripts are made from, so that `verify` makes them again.

It is read with the care of a model: names, types and expressions are those of a spec, the source's own DDL is checked.
What no script depends on is not in it: domains, the type in the source, differences, keys inside an entity.
"""

import json
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from privbench.errors import SchemaError
from privbench.schema.expression import Expression, parse_expression
from privbench.schema.original import OriginalDdl
from privbench.schema.tables import Column, ForeignKey, Index, Schema, Table
from privbench.schema.types import parse_type

SCHEMA_FILE = "schema.json"
_VERSION = 1
_Name = Annotated[str, Field(max_length=1000)]
_Names = tuple[_Name, ...]
_MAP = Expression(sql="NULL")
"""What a column equals that a map gives: scripts only say that there is a map."""


class _Words(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class _Column(_Words):
    name: _Name
    type: str
    null: StrictBool
    quoted: StrictBool = False
    computed: str | None = None
    generated: StrictBool = False
    map_of: _Name | None = None


class _Key(_Words):
    columns: _Names
    table: _Name
    references: _Names


class _Index(_Words):
    name: _Name
    columns: _Names
    unique: StrictBool = False


class _Table(_Words):
    name: _Name
    quoted: StrictBool = False
    columns: tuple[_Column, ...]
    key: _Names = ()
    unique: tuple[_Names, ...] = ()
    foreign_keys: tuple[_Key, ...] = ()
    indexes: tuple[_Index, ...] = ()
    checks: tuple[str, ...] = ()


class _File(_Words):
    version: int
    tables: tuple[_Table, ...]
    original: OriginalDdl | None = None
    original_code: StrictBool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleSchema:
    """The schema of a bundle; `original_code` says that its scripts run the source's code."""

    schema: Schema
    original_code: bool


def schema_text(bundle: BundleSchema) -> str:
    """The text of the file."""
    schema = bundle.schema
    words = _File(
        version=_VERSION,
        tables=tuple(map(_table_words, schema.tables)),
        original=schema.original,
        original_code=bundle.original_code,
    )
    return json.dumps(words.model_dump(mode="json", exclude_defaults=True), indent=1, ensure_ascii=False) + "\n"


def read_schema(words: Any) -> BundleSchema:
    """Read the file's JSON; what is code is not in it unless the file says so. Raises SchemaError."""
    try:
        file = _File.model_validate(words)
    except ValidationError as error:
        first = error.errors()[0]
        raise SchemaError(f"{SCHEMA_FILE}: {'.'.join(map(str, first['loc']))}: {first['msg']}.") from None
    if file.version != _VERSION:
        raise SchemaError(f"{SCHEMA_FILE}: version is {file.version}, not {_VERSION}.")
    original = file.original
    if original is not None and not file.original_code:
        original = original.without_code()
    return BundleSchema(
        schema=Schema(tables=tuple(map(_table, file.tables)), original=original), original_code=file.original_code
    )


def _table_words(table: Table) -> _Table:
    return _Table(
        name=table.name,
        quoted=table.quoted,
        columns=tuple(
            _Column(
                name=column.name,
                type=column.type.sql,
                null=column.nullable,
                quoted=column.quoted,
                computed=column.computed.sql if column.computed is not None and column.determined_by is None else None,
                generated=column.generated,
                map_of=column.determined_by if column.computed is not None else None,
            )
            for column in table.columns
        ),
        key=table.primary_key,
        unique=table.uniques,
        foreign_keys=tuple(_Key(columns=k.columns, table=k.table, references=k.references) for k in table.foreign_keys),
        indexes=tuple(_Index(name=i.name, columns=i.columns, unique=i.unique) for i in table.indexes),
        checks=tuple(check.sql for check in table.checks),
    )


def _table(words: _Table) -> Table:
    return Table(
        name=words.name,
        quoted=words.quoted,
        columns=tuple(_column(column, words.name) for column in words.columns),
        primary_key=words.key,
        uniques=words.unique,
        foreign_keys=tuple(
            ForeignKey(columns=k.columns, table=k.table, references=k.references) for k in words.foreign_keys
        ),
        indexes=tuple(Index(name=i.name, columns=i.columns, unique=i.unique) for i in words.indexes),
        checks=tuple(parse_expression(sql, where=f"{words.name}: checks") for sql in words.checks),
    )


def _column(words: _Column, table: str) -> Column:
    where = f"{table}.{words.name}"
    computed = _MAP if words.map_of is not None else None
    if words.computed is not None:
        computed = parse_expression(words.computed, where=where)
    return Column(
        name=words.name,
        type=parse_type(words.type),
        nullable=words.null,
        quoted=words.quoted,
        computed=computed,
        generated=words.generated,
        determined_by=words.map_of,
    )
