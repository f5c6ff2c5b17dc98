"""`schema.json` holds all that scripts and counts of definitions depend on."""

import json
from dataclasses import MISSING, Field, fields, replace
from typing import Any

import pytest

from privbench.io.load_scripts import definition_counts, script_files
from privbench.schema.domain import Values
from privbench.schema.expression import Expression
from privbench.schema.original import OriginalDdl, Phase, SourceDialect, Statement, TableDefinition
from privbench.schema.schema_file import BundleSchema, read_schema, schema_text
from privbench.schema.tables import Column, ForeignKey, Index, Schema, Table
from privbench.schema.types import parse_type

TYPES = ("INTEGER", "UTINYINT", "DECIMAL(10,2)", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
TYPES += ("CHAR(3)", "VARCHAR(20)", "ENUM('a', 'it''s')", "UUID", "BLOB", "JSON", "INTERVAL", "TIME", "INET")
NOT_KEPT: dict[type, dict[str, Any]] = {
    Column: {
        "implied": Values(values=("a", "b")),
        "guessed": True,
        "relative_to": "id",
        "start": "id",
        "source_type": "money",
    },
    ForeignKey: {"inside": True},
    Index: {"clustered": True},
    Table: {"list_of": ("order",)},
}
"""What no script depends on."""
COLUMNS = tuple(Column(name=f"c{n}", type=parse_type(name)) for n, name in enumerate(TYPES))
FULL = Column(
    name="Full",
    type=parse_type("INTEGER"),
    nullable=False,
    quoted=True,
    computed=Expression(sql="CASE WHEN c0 > 424242 THEN 1 ELSE 2 END"),
    generated=True,
)
WORKED_OUT = Column(name="worked_out", type=parse_type("INTEGER"), computed=Expression(sql="c0 + 7"), generated=True)
MAPPED = Column(name="mapped", type=parse_type("INTEGER"), computed=Expression(sql="NULL"), determined_by="c0")
KEY = Column(name="id", type=parse_type("INTEGER"), nullable=False)
INDEX = Index(name="by_c0", columns=("c0", "c1"), unique=True)
ITSELF = ForeignKey(columns=("c0",), table="Order", references=("id",))
TABLE = Table(
    name="Order",
    quoted=True,
    columns=(KEY, *COLUMNS, FULL, WORKED_OUT, MAPPED),
    primary_key=("id",),
    uniques=(("c0", "c2"),),
    foreign_keys=(ITSELF,),
    indexes=(INDEX, Index(name="plain", columns=("c1",))),
    checks=(Expression(sql="c0 > 5"), Expression(sql="c9 <> 'x'")),
)
ORIGINAL = OriginalDdl(
    dialect=SourceDialect.POSTGRES,
    tables={
        "other": TableDefinition(
            name="public.other", columns={"id": "integer DEFAULT 61"}, nullable=(), after="WITH (fillfactor=70)"
        )
    },
    statements=(
        Statement(
            kind="comment", name="other", sql="COMMENT ON TABLE other IS 'x'", phase=Phase.AFTER, tables=("other",)
        ),
    ),
)
SCHEMA = Schema(tables=(TABLE, Table(name="other", columns=(KEY,), primary_key=("id",))), original=ORIGINAL)


def _again(schema: Schema, *, code: bool = False) -> BundleSchema:
    return read_schema(json.loads(schema_text(BundleSchema(schema=schema, original_code=code))))


def _default(field: Field[Any]) -> object:
    return field.default if field.default is not MISSING else None


@pytest.mark.parametrize("value", [FULL, MAPPED, ITSELF, INDEX, TABLE], ids=["column", "map", "key", "index", "table"])
def test_the_example_sets_every_field_that_is_kept(value: object) -> None:
    kept = [f for f in fields(value) if f.name not in NOT_KEPT[type(value)]]  # type: ignore[arg-type]
    unset = {f.name for f in kept if getattr(value, f.name) == _default(f)}
    excluding = (
        {"determined_by"} if value is FULL else {"generated", "quoted", "nullable"} if value is MAPPED else set()
    )
    assert unset == excluding  # a map is not GENERATED


def test_a_schema_with_every_field_comes_back() -> None:
    assert _again(SCHEMA).schema == SCHEMA
    assert _again(SCHEMA, code=True) == BundleSchema(schema=SCHEMA, original_code=True)


def test_what_is_not_kept_changes_no_script_and_no_count() -> None:
    table = replace(
        TABLE,
        columns=tuple(replace(c, **NOT_KEPT[Column]) for c in TABLE.columns),
        foreign_keys=(replace(ITSELF, **NOT_KEPT[ForeignKey]),),
        indexes=tuple(replace(i, **NOT_KEPT[Index]) for i in TABLE.indexes),
        **NOT_KEPT[Table],
    )
    full = replace(SCHEMA, tables=(table, *SCHEMA.tables[1:]))
    back = _again(full).schema
    assert back == SCHEMA
    assert definition_counts(back) == definition_counts(full)
    assert definition_counts(back)["literals"]["generated column"] == 2
    for form in ("csv", "parquet", "duckdb", "sqlite"):
        assert script_files(back, form) == script_files(full, form)
