"""The order in which tables are made, and the schemas for which there is none."""

import pytest

from privbench.errors import SchemaError
from privbench.io.ddl import parse_ddl
from privbench.model.order import colliding_keys, generation_order, redrawn_links, referenced_ahead
from privbench.schema.spec import Spec
from privbench.schema.table_spec import ColumnSpec, ForeignKeySpec, TableSpec


def _spec(ddl: str, unit: str, *, public: tuple[str, ...] = ()) -> Spec:
    tables = {}
    for table in parse_ddl(ddl, where="test").tables:
        keys = [ForeignKeySpec(columns=k.columns, table=k.table, references=k.references) for k in table.foreign_keys]
        domain = None if table.name in public else {"range": [0, 9]}
        columns = {
            c.name: ColumnSpec(type=c.type.sql, null=c.nullable, domain=domain)  # type: ignore[arg-type]
            for c in table.columns
        }
        tables[table.name] = TableSpec(
            key=table.primary_key,
            unique=table.uniques,
            foreign_keys=tuple(keys),
            columns=columns,
            public=table.name in public,
        )
    return Spec(unit=unit, tables=tables)


def _order(spec: Spec) -> tuple[str, ...]:
    return generation_order(spec, spec.protection())


CYCLE = """CREATE TABLE a (id INT PRIMARY KEY, b INT REFERENCES b (id), x INT, y INT{a});
CREATE TABLE b (id INT PRIMARY KEY, a INT REFERENCES a (id), x INT, y INT{b});"""


def test_what_a_key_names_comes_first() -> None:
    ddl = "CREATE TABLE c (b INT REFERENCES b (id)); CREATE TABLE b (id INT PRIMARY KEY, a INT REFERENCES a (id));"
    assert _order(_spec(ddl + "CREATE TABLE a (id INT PRIMARY KEY);", "a")) == ("a", "b", "c")


def test_in_a_cycle_the_table_that_may_lose_rows_comes_first() -> None:
    assert _order(_spec(CYCLE.format(a="", b=", UNIQUE (x, y)"), "a")) == ("b", "a")
    assert _order(_spec(CYCLE.format(a=", UNIQUE (x, y)", b=""), "a")) == ("a", "b")


def test_a_cycle_in_which_both_may_lose_rows_is_refused() -> None:
    with pytest.raises(SchemaError, match="a, b: their keys form a cycle"):
        _order(_spec(CYCLE.format(a=", UNIQUE (x, y)", b=", UNIQUE (x, y)"), "a"))


@pytest.mark.parametrize(
    "columns",
    [
        "id INT PRIMARY KEY, code INT UNIQUE, up INT REFERENCES t (code)",
        "id INT PRIMARY KEY, x INT, up INT NOT NULL REFERENCES t (id), UNIQUE (up, x)",
    ],
)
def test_self_references_that_cannot_be_repaired_are_refused(columns: str) -> None:
    spec = _spec(f"CREATE TABLE t ({columns});", "t")
    spec = spec.model_copy(
        update={"tables": {"t": spec.tables["t"].model_copy(update={"columns": _serial(spec.tables["t"])})}}
    )
    with pytest.raises(SchemaError, match="references the table's own rows"):
        _order(spec)


def _serial(table: TableSpec) -> dict[str, ColumnSpec]:
    serial = ColumnSpec(type="INTEGER", domain={"serial": True})  # type: ignore[arg-type]
    return {name: serial if name == "code" else column for name, column in table.columns.items()}


def test_colliding_keys_are_those_of_drawn_values() -> None:
    ddl = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, UNIQUE (a, b), UNIQUE (id, a));"
    spec = _spec(ddl, "t")
    assert colliding_keys(spec, spec.schema().table("t")) == (("a", "b"),)


def test_stale_links_follow_the_ids_that_are_made_anew() -> None:
    ddl = """CREATE TABLE e (id INT PRIMARY KEY);
    CREATE TABLE p (e INT PRIMARY KEY REFERENCES e (id));
    CREATE TABLE q (id INT PRIMARY KEY, p INT REFERENCES p (e));
    CREATE TABLE r (q INT REFERENCES q (id));"""
    protection = _spec(ddl, "e", public=("p", "q", "r")).protection()
    assert [k.table for k in redrawn_links(protection, keep_entity_keys=False)] == ["p", "q"]
    assert redrawn_links(protection, keep_entity_keys=True) == ()


def test_owners_come_first_where_rows_are_born_with_them() -> None:
    """Then a cycle that the table which may lose rows would have to begin is refused."""
    spec = _spec(CYCLE.format(a="", b=""), "a")
    assert generation_order(spec, spec.protection(), owners_first=True) == ("a", "b")
    losing = _spec(CYCLE.format(a="", b=", UNIQUE (x, y)"), "a")
    with pytest.raises(SchemaError, match="a, b: their keys form a cycle"):
        generation_order(losing, losing.protection(), owners_first=True)


def test_promised_are_tables_named_before_they_are_made_and_what_they_need() -> None:
    ddl = """CREATE TABLE a (id INT PRIMARY KEY, c INT REFERENCES c (id));
    CREATE TABLE b (id INT PRIMARY KEY, a INT REFERENCES a (id));
    CREATE TABLE c (id INT PRIMARY KEY, b INT REFERENCES b (id), d INT NOT NULL REFERENCES d (id),
      f INT REFERENCES f (id));
    CREATE TABLE d (id INT PRIMARY KEY, a INT REFERENCES a (id));
    CREATE TABLE e (id INT PRIMARY KEY, a INT REFERENCES a (id));
    CREATE TABLE f (id INT PRIMARY KEY, a INT REFERENCES a (id));"""
    spec = _spec(ddl, "a")
    spec = spec.model_copy(
        update={"tables": spec.tables | {"c": spec.tables["c"].model_copy(update={"owner": ("b",)})}}
    )
    protection = spec.protection()
    order = generation_order(spec, protection, owners_first=True)
    assert order[0] == "a"
    assert referenced_ahead(protection, order) == {"a", "b", "c", "d"}
    tree = _spec("CREATE TABLE b (a INT REFERENCES a (id)); CREATE TABLE a (id INT PRIMARY KEY);", "a")
    assert referenced_ahead(tree.protection(), ("a", "b")) == frozenset()
