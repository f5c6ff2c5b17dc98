import pytest

from privbench.errors import SchemaError
from privbench.schema.tables import Column, ForeignKey, Index, Schema, Table
from privbench.schema.types import parse_type

INTEGER = parse_type("INTEGER")


def columns(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name=n, type=INTEGER) for n in names)


def key(column: str, table: str, reference: str = "id") -> ForeignKey:
    return ForeignKey(columns=(column,), table=table, references=(reference,))


def test_lookup_by_name() -> None:
    table = Table(name="t", columns=columns("a", "b"))
    assert table.column("b").name == "b"
    assert Schema(tables=(table,)).table("t") is table
    with pytest.raises(SchemaError, match=r"t\.c: no such column\. Columns: a, b"):
        table.column("c")
    with pytest.raises(SchemaError, match=r"no table 'u'. Tables: t"):
        Schema(tables=(table,)).table("u")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ()}, "t: a table needs at least one column"),
        ({"columns": columns("a", "a")}, r"t\.a: the column is declared twice"),
        ({"primary_key": ("x",)}, r"t\.x: named by a primary key"),
        ({"primary_key": ("a", "a")}, r"t\.a: a primary key names it twice"),
        ({"uniques": (("x",),)}, "named by a unique key"),
        ({"uniques": ((),)}, "unique key names no column"),
        ({"foreign_keys": (key("x", "t"),)}, "named by a foreign key"),
        ({"indexes": (Index(name="i", columns=("x",)),)}, "named by a index i"),
        ({"indexes": (Index(name="i", columns=("a",)),) * 2}, "two indexes have the name i"),
    ],
)
def test_a_table_checks_itself(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Table(**{"name": "t", "columns": columns("a", "b"), **arguments})  # type: ignore[arg-type]


def test_primary_key_columns_are_never_null() -> None:
    table = Table(name="t", columns=columns("a", "b", "c"), primary_key=("a", "c"))
    assert [c.nullable for c in table.columns] == [False, True, False]


def test_keys_are_all_that_is_unique() -> None:
    indexes = (Index(name="i", columns=("c",), unique=True), Index(name="j", columns=("b",)))
    table = Table(name="t", columns=columns("a", "b", "c"), primary_key=("a",), uniques=(("b", "c"),), indexes=indexes)
    assert table.keys == (("a",), ("b", "c"), ("c",))
    assert Table(name="t", columns=columns("a")).keys == ()


def test_attributes_leave_out_keys_but_not_the_rest_of_a_composite_key() -> None:
    alone = Table(name="t", columns=columns("id", "a"), primary_key=("id",))
    assert alone.attributes == ("a",)
    keys = (key("person", "t"),)
    season = Table(name="s", columns=columns("person", "year", "a"), primary_key=("person", "year"), foreign_keys=keys)
    assert season.attributes == ("year", "a")


def test_a_schema_checks_its_foreign_keys() -> None:
    parent = Table(name="p", columns=columns("id", "u", "v"), primary_key=("id",), uniques=(("u", "v"),))

    def with_key(foreign: ForeignKey) -> Schema:
        return Schema(tables=(parent, Table(name="c", columns=columns("a", "b"), foreign_keys=(foreign,))))

    ((table, only),) = with_key(key("a", "p")).foreign_keys()
    assert (table.name, str(only)) == ("c", "(a) -> p(id)")
    two = ForeignKey(columns=("a", "b"), table="p", references=("v", "u"))
    assert next(with_key(two).foreign_keys())[1] is two
    for bad, message in [
        (key("a", "q"), r"c\.a: references table q, which is not there"),
        (key("a", "p", "u"), r"references p\(u\), which is neither a primary key nor UNIQUE. Keys of p: id; u, v"),
        (ForeignKey(columns=("a", "b"), table="p", references=("id",)), "2 columns reference 1"),
        (ForeignKey(columns=("a", "b"), table="p", references=("id", "id")), "neither a primary key nor UNIQUE"),
    ]:
        with pytest.raises(SchemaError, match=message):
            with_key(bad)


def test_two_tables_of_one_name() -> None:
    with pytest.raises(SchemaError, match="t: the table is declared twice"):
        Schema(tables=(Table(name="t", columns=columns("a")),) * 2)


def test_a_unique_index_may_be_referenced() -> None:
    parent = Table(name="p", columns=columns("u"), indexes=(Index(name="i", columns=("u",), unique=True),))
    child = Table(name="c", columns=columns("a"), foreign_keys=(key("a", "p", "u"),))
    assert Schema(tables=(parent, child)).table("c").foreign_keys[0].references == ("u",)
