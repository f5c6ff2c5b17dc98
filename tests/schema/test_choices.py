from collections.abc import Callable
from dataclasses import replace

import pytest

from privbench.errors import SchemaError
from privbench.schema.choices import leave_out
from privbench.schema.tables import Index, Schema

Db = Callable[..., Schema]


def names(schema: Schema, table: str) -> list[str]:
    return [c.name for c in schema.table(table).columns]


def test_nothing_dropped_changes_nothing(db: Db) -> None:
    schema = db("a: id* b_id>b", "b: id* x")
    assert leave_out(schema.tables) == schema


def test_dropping_a_table_drops_the_keys_into_it_and_their_columns(db: Db) -> None:
    left = leave_out(db("a: id* b_id>b c_id>c x", "b: id*", "c: id*").tables, drop=["b"])
    assert [t.name for t in left.tables] == ["a", "c"]
    assert names(left, "a") == ["id", "c_id", "x"]
    assert [k.table for k in left.table("a").foreign_keys] == ["c"]


def test_a_column_that_another_key_needs_stays(db: Db) -> None:
    left = leave_out(db("a: id* y+t>b.y+t y+s>c.y+s", "b: y* t*", "c: y* s*").tables, drop=["b"])
    assert names(left, "a") == ["id", "y", "s"]


def test_dropping_cascades_through_unique_keys(db: Db) -> None:
    schema = db("top: id*", "mid: id* t>top", "low: id* x")
    mid = replace(schema.table("mid"), uniques=(("t",),), indexes=(Index(name="i", columns=("t",)),))
    low = replace(
        schema.table("low"),
        foreign_keys=(replace(mid.foreign_keys[0], columns=("x",), table="mid", references=("t",)),),
    )
    left = leave_out([schema.table("top"), mid, low], drop=["top"])
    assert names(left, "mid") == ["id"]
    assert names(left, "low") == ["id"]
    assert left.table("mid").uniques == ()
    assert left.table("mid").indexes == ()


def test_dropping_a_column_drops_its_key_only(db: Db) -> None:
    left = leave_out(db("a: id* y+t>b.y+t", "b: y* t*").tables, columns=[("a", "t")])
    assert names(left, "a") == ["id", "y"]
    assert left.table("a").foreign_keys == ()


def test_a_primary_key_is_never_cut(db: Db) -> None:
    schema = db("list: id*", "entry: list_id*>list n*")
    with pytest.raises(
        SchemaError, match=r"entry\.list_id: its key \(list_id\) -> list\(id\) .*`--drop entry`.*foreign_keys"
    ):
        leave_out(schema.tables, drop=["list"])
    with pytest.raises(SchemaError, match=r"entry\.n: it is dropped, but it is part of the primary key"):
        leave_out(schema.tables, columns=[("entry", "n")])
    assert leave_out(schema.tables, drop=["list", "entry"]).tables == ()


def test_a_table_without_columns_is_refused(db: Db) -> None:
    with pytest.raises(SchemaError, match=r"link: no column is left. Drop the table too: `--drop link`"):
        leave_out(db("a: id*", "link: a_id>a").tables, drop=["a"])
