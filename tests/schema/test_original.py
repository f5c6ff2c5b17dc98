"""The source's own DDL: what is kept of it beside a schema, what is published, and how the spec file writes it."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from privbench.io.ddl import parse_ddl
from privbench.schema.original import (
    DROPPED,
    NO_KEY,
    LeftOut,
    OriginalDdl,
    Phase,
    SourceDialect,
    Statement,
    TableDefinition,
)
from privbench.schema.spec import Spec, read_spec, spec_text, write_spec
from privbench.schema.table_spec import ColumnSpec, ForeignKeySpec, TableSpec
from privbench.schema.yaml_file import item, parse_yaml

SCHEMA = parse_ddl(
    """CREATE TABLE a (id INT PRIMARY KEY, word VARCHAR(8), secret INT UNIQUE);
    CREATE TABLE b (id INT PRIMARY KEY, a INT NOT NULL REFERENCES a); CREATE INDEX by_word ON a (word)""",
    where="schema.sql",
)


_SQL = {
    "index": "CREATE INDEX {} ON s.a (word)",
    "view": "CREATE VIEW {} AS SELECT 1 AS x",
    "foreign key": 'ALTER TABLE b ADD CONSTRAINT "{}" FOREIGN KEY (a) REFERENCES s.a(id)',
    "comment": "COMMENT ON {} IS 'x'",
}


def _after(kind: str, name: str, **words: object) -> Statement:
    sql = _SQL[kind].format(name)
    return Statement.model_validate({"kind": kind, "name": name, "sql": sql, "phase": "after", **words})


def _original(*statements: Statement) -> OriginalDdl:
    tables = {
        "a": TableDefinition(
            name='"s"."a"',
            columns={"id": "integer", "word": "character varying(8) DEFAULT 'x'::text", "secret": "integer"},
            after="WITH (fillfactor='80')",
            generated=("secret",),
            sequences={"id": '"s"."a_id_seq"', "secret": "z"},
        ),
        "b": TableDefinition(name="b", columns={"id": "integer", "a": "integer"}),
    }
    return OriginalDdl(dialect=SourceDialect.POSTGRES, tables=tables, statements=statements)


TYPE = Statement(kind="type", name="mood", sql="CREATE TYPE mood AS ENUM ('a')", phase=Phase.BEFORE)
PARTIAL = _after("index", "partial", tables=("a",), columns=(("a", "word"), ("a", "secret")))
VIEW = _after("view", "seen", tables=("a",), columns=(("a", "secret"),))
ABOVE = _after("view", "above", needs=("view seen",))
BY_WORD = _after("index", "by_word", tables=("a",), columns=(("a", "word"),), key=("word",))
TO_A = _after("foreign key", "b.to_a", tables=("b", "a"), columns=(("b", "a"), ("a", "id")), key=("a",))


def test_all_is_kept_while_all_is_there() -> None:
    statements = (TYPE, PARTIAL, VIEW, ABOVE, BY_WORD, TO_A)
    assert _original(*statements).kept(SCHEMA) == (statements, ())


def test_what_names_a_dropped_column_goes_with_what_needs_it() -> None:
    schema = replace(SCHEMA, tables=(replace(SCHEMA.table("a"), columns=SCHEMA.table("a").columns[:2], uniques=()),))
    kept, left_out = _original(TYPE, PARTIAL, VIEW, ABOVE, BY_WORD, TO_A).kept(schema)
    assert kept == (TYPE, BY_WORD)
    assert [str(each) for each in left_out] == [
        f"index partial: {DROPPED}",
        f"view seen: {DROPPED}",
        "view above: it needs view seen, which is not there",
        f"foreign key b.to_a: {DROPPED}",
    ]


def test_a_key_that_the_owner_took_out_of_the_spec_is_left_out() -> None:
    tables = (replace(SCHEMA.table("a"), indexes=()), replace(SCHEMA.table("b"), foreign_keys=()))
    kept, left_out = _original(BY_WORD, TO_A, PARTIAL).kept(replace(SCHEMA, tables=tables))
    assert kept == (PARTIAL,)
    assert {each.reason for each in left_out} == {NO_KEY}


def test_nothing_that_was_dropped_is_published() -> None:
    cut = replace(SCHEMA.table("a"), columns=SCHEMA.table("a").columns[:2], uniques=())
    published = _original(TYPE, PARTIAL, VIEW, ABOVE, TO_A).published(replace(SCHEMA, tables=(cut,)))
    text = published.model_dump_json()
    for name in ("secret", "seen", "above", "partial", "to_a"):
        assert name not in text
    assert published.left_out == tuple(
        LeftOut(kind=k, reason=DROPPED) for k in ("index", "view", "view", "foreign key")
    )
    assert published.tables["a"].sequences == {"id": '"s"."a_id_seq"'}
    assert published.kept(replace(SCHEMA, tables=(cut,))) == ((TYPE,), published.left_out)


def test_what_is_worked_out_from_a_dropped_column_is_declared_by_its_type() -> None:
    columns = {"id": "int", "word": "text GENERATED ALWAYS AS (`secret` || '!') STORED", "secret": "int"}
    table = TableDefinition(name="a", columns=columns, generated=("word",))
    original = OriginalDdl(dialect=SourceDialect.MYSQL, tables={"a": table})
    cut = replace(SCHEMA.table("a"), columns=SCHEMA.table("a").columns[:2], uniques=())
    published = original.published(replace(SCHEMA, tables=(cut,))).tables["a"]
    assert published.columns == {"id": "int"}
    assert published.generated == ()


def test_columns_without_a_type_are_no_secret() -> None:
    cut = replace(SCHEMA.table("a"), columns=SCHEMA.table("a").columns[:2], uniques=())
    published = _original(PARTIAL).published(replace(SCHEMA, tables=(cut,)), named=[("a", "secret")])
    assert [each.name for each in published.left_out] == ["partial"]


def _spec(original: OriginalDdl) -> Spec:
    columns = {"id": ColumnSpec(type="INTEGER", null=False), "a": ColumnSpec(type="INTEGER", null=False)}
    key = ForeignKeySpec(columns=("a",), table="a", references=("id",))
    words = {
        "id": columns["id"],
        "word": ColumnSpec(type="VARCHAR(8)"),
        "secret": ColumnSpec(type="INTEGER", drop=True),
    }
    tables = {
        "a": TableSpec(key=("id",), columns=words),
        "b": TableSpec(key=("id",), columns=columns, foreign_keys=(key,)),
    }
    return Spec(unit="a", tables=tables, original=original)


def test_the_spec_file_gives_it_back_and_tells_to_review_it(tmp_path: Path) -> None:
    view = VIEW.model_copy(update={"sql": 'CREATE VIEW seen AS\n SELECT "a".word\n\n   FROM a\t"x;--"'})
    spec = _spec(_original(TYPE, PARTIAL, view, TO_A))
    write_spec(spec, tmp_path / "spec.yaml")
    assert read_spec(tmp_path / "spec.yaml") == spec
    text = spec_text(spec)
    assert "published as they are" in text
    assert '\n         SELECT "a".word\n' in text


def test_the_schema_of_a_spec_has_it_and_the_published_spec_names_nothing_dropped() -> None:
    spec = _spec(_original(VIEW, TO_A))
    assert spec.schema().original == spec.original
    assert spec.protection().schema.published().original == spec.original
    published = spec.published().original
    assert published is not None
    assert [s.title for s in published.statements] == ["foreign key b.to_a"]
    assert "secret" not in published.model_dump_json()


def test_text_with_nul_is_refused() -> None:
    with pytest.raises(ValidationError):
        Statement(kind="view", name="v", sql="SELECT '\0'", phase=Phase.AFTER)


@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_from_an_item(text: str) -> None:
    lines = ["top:", *item({"a": text, "b": [text]}, indent=2)]
    assert parse_yaml("\n".join(lines)).plain() == {"top": [{"a": text, "b": [text]}]}


def _serving(kind: str, name: str, sql: str) -> Statement:
    return Statement(kind=kind, name=name, sql=sql, phase=Phase.BEFORE)


SERVING = (
    _serving("schema", "vault", "CREATE SCHEMA vault"),
    _serving("type", "illness", "CREATE TYPE illness AS ENUM ('plague')"),
    _serving("type", "mood", "CREATE TYPE mood AS ENUM ('a')"),
    _serving("sequence", "vault.b_id_seq", "CREATE SEQUENCE vault.b_id_seq"),
    _serving("sequence", "a_id_seq", "CREATE SEQUENCE a_id_seq"),
    _serving("function", "peek(integer)", "CREATE FUNCTION peek(integer) RETURNS int AS $$ SELECT secret FROM a $$"),
    _serving("function", "plain(integer)", "CREATE FUNCTION plain(integer) RETURNS int AS $$ SELECT 1 $$"),
)


def test_what_served_only_what_was_dropped_is_not_published() -> None:
    """Names of sequences and schemas, labels of types and bodies of functions tell of dropped tables and columns."""
    tables = {
        "a": TableDefinition(
            name="a",
            columns={"id": "int DEFAULT nextval('a_id_seq')", "word": "mood DEFAULT peek(3)", "secret": "illness"},
        ),
        "vault.b": TableDefinition(name='"vault"."b"', columns={"id": "int DEFAULT nextval('vault.b_id_seq')"}),
    }
    about = _after("comment", "type illness", needs=("type illness",))
    on_schema = _after("comment", "schema vault")
    index = _after(
        "index",
        "a.by_peek",
        sql="CREATE INDEX by_peek ON a (peek(word))",
        tables=("a",),
        columns=(("a", "word"),),
        needs=("function peek(integer)",),
    )
    left_out = (
        LeftOut(kind="trigger", name="vault.b.audit", reason="is not made"),
        LeftOut(kind="trigger", name="a.stamp", reason="is not made"),
    )
    original = OriginalDdl(
        dialect=SourceDialect.POSTGRES, tables=tables, statements=(*SERVING, about, on_schema, index), left_out=left_out
    )
    cut = replace(SCHEMA.table("a"), columns=SCHEMA.table("a").columns[:2], uniques=())
    published = original.published(replace(SCHEMA, tables=(cut,)))
    text = published.model_dump_json()
    for name in ("vault", "illness", "plague", "b_id_seq", "peek", "secret", "audit"):
        assert name not in text
    assert [s.name for s in published.statements] == ["mood", "a_id_seq", "plain(integer)"]
    assert published.tables["a"].columns == {"id": "int DEFAULT nextval('a_id_seq')"}
    assert LeftOut(kind="trigger", name="a.stamp", reason="is not made") in published.left_out
    assert published.left_out.count(LeftOut(kind="trigger", reason=DROPPED)) == 1


def test_what_is_used_or_not_used_at_all_is_published_while_nothing_is_dropped() -> None:
    published = _original(*SERVING).published(SCHEMA)
    assert [s.title for s in published.statements] == [s.title for s in SERVING]


def test_a_table_is_not_partitioned_by_a_dropped_column() -> None:
    table = TableDefinition(name="a", columns={"id": "int", "secret": "int"}, after="PARTITION BY RANGE (secret)")
    part = Statement(
        kind="partition",
        name="a_1",
        sql="CREATE TABLE a_1 PARTITION OF a FOR VALUES FROM (1) TO (2)",
        phase=Phase.BEFORE,
        tables=("a",),
        columns=(("a", "secret"),),
    )
    original = OriginalDdl(dialect=SourceDialect.POSTGRES, tables={"a": table}, statements=(part,))
    cut = replace(SCHEMA.table("a"), columns=SCHEMA.table("a").columns[:2], uniques=())
    published = original.published(replace(SCHEMA, tables=(cut,)))
    assert (published.tables["a"].after, published.statements) == ("", ())
