"""What a spec may say of computed columns: read and written back, and refused, with the path, where it cannot be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privbench.errors import SpecError
from privbench.schema.computed import Equals, computed_order, equal_columns, late_columns, row_columns
from privbench.schema.expression import Expression
from privbench.schema.spec import Spec, read_spec, write_spec

SPEC: dict[str, Any] = {
    "unit": "home",
    "tables": {
        "town": {"public": True, "key": ["id"], "columns": {"id": {"type": "INTEGER"}, "size": {"type": "INTEGER"}}},
        "home": {
            "key": ["id"],
            "columns": {
                "id": {"type": "INTEGER"},
                "region": {"type": "VARCHAR", "domain": {"values": ["n", "s"]}},
                "rooms": {"type": "SMALLINT", "null": False, "domain": {"range": [1, 9]}},
                "people": {"type": "SMALLINT", "computed": "COUNT(person.*)"},
            },
        },
        "person": {
            "key": ["id"],
            "foreign_keys": [{"columns": ["home_id"], "table": "home", "references": ["id"]}],
            "columns": {
                "id": {"type": "INTEGER"},
                "home_id": {"type": "INTEGER"},
                "region": {"type": "VARCHAR", "computed": "home.region"},
                "rooms": {"type": "SMALLINT", "null": False, "computed": "home.rooms"},
                "number": {"type": "SMALLINT", "computed": "ROW_NUMBER()"},
            },
        },
    },
}


def changed(table: str, column: str, **words: Any) -> Spec:
    tables = {t: {**said, "columns": dict(said["columns"])} for t, said in SPEC["tables"].items()}
    tables[table]["columns"][column] = {**tables[table]["columns"].get(column, {"type": "SMALLINT"}), **words}
    return Spec.model_validate({**SPEC, "tables": tables})


def test_computed_columns_are_not_modelled_and_need_no_domain() -> None:
    spec = Spec.model_validate(SPEC)
    protection = spec.protection()
    assert protection.attributes("home") == ("region", "rooms")
    assert protection.attributes("person") == ()
    assert spec.wanted(protection) == ()
    assert set(spec.origins(protection)) == {("home", "region"), ("home", "rooms")}
    assert spec.published().column("home", "people").computed == Expression(sql="COUNT(person.*)")


def test_the_file_holds_what_is_computed(tmp_path: Path) -> None:
    spec = Spec.model_validate(SPEC)
    write_spec(spec, tmp_path / "spec.yaml")
    assert read_spec(tmp_path / "spec.yaml") == spec


def test_plain_cases_are_told_from_other_expressions() -> None:
    spec = changed("person", "region", computed="UPPER(home.region)")
    assert equal_columns(spec.protection(), "person") == {"rooms": Equals(owner="rooms"), "number": Equals(rank=1)}
    assert equal_columns(spec.protection(), "home") == {"people": Equals(rows="person")}
    assert row_columns(spec.protection(), "person") == ("region",)
    wider = changed("person", "rooms", type="BIGINT").protection()
    assert row_columns(wider, "person") == ("rooms",)


def test_aggregates_and_what_follows_from_them_come_late() -> None:
    spec = changed("home", "people", computed="MAX(person.number) + rooms")
    protection = spec.protection()
    assert late_columns(protection) == (("home", "people"),)
    assert equal_columns(protection, "home") == {}
    order = computed_order(protection)
    assert order.index(("person", "number")) < order.index(("home", "people"))
    with pytest.raises(SpecError, match=r"person\.columns\.rooms\.computed: home\.rooms is of another table"):
        changed("home", "rooms", domain=None, computed="MAX(person.number) + people").protection()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: changed("home", "people", computed="COUNT(town.*)"),
            r"tables\.home\.columns\.people\.computed: there is no column town\.\*.* rows that home owns: of person\.",
        ),
        (lambda: changed("home", "rooms", computed="ROW_NUMBER()", domain=None), r"rooms\.computed: ROW_NUMBER\(\) is"),
        (lambda: changed("person", "number", computed="ROW_NUMBER() + 4"), r"number\.computed: ROW_NUMBER\(\) is"),
        (
            lambda: changed("person", "region", computed="home.regoin"),
            r"person\.columns\.region\.computed: there is no column home\.regoin .* an owner \(home\)",
        ),
        (lambda: changed("home", "people", computed="SUM(MAX(person.number))"), "none inside another"),
        (lambda: changed("home", "people", computed="SUM(person.number * rooms)"), "of columns of one table"),
        (lambda: changed("home", "people", computed="people + 1"), "home.people are computed from each other"),
        (
            lambda: changed("home", "people", computed="SUM(person.rooms)").model_copy(
                update={
                    "tables": changed("home", "people", computed="SUM(person.rooms)").tables
                    | {"person": changed("person", "rooms", computed="home.people").tables["person"]}
                }
            ),
            r"home\.people, person\.rooms are computed from each other in a circle",
        ),
        (lambda: changed("town", "size", computed="1"), "town is public and copied as it is"),
        (lambda: changed("person", "id", computed="ROW_NUMBER()"), "the column is in a key"),
        (lambda: changed("person", "home_id", computed="home.id"), "the column is in a key"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(make: Callable[[], Spec], message: str) -> None:
    spec = make()
    with pytest.raises(SpecError, match=message):
        spec.protection()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("computed: {rank: 1}", "line 4, tables.a.columns.n.computed: a SQL expression is wanted"),
        ('computed: "1 +"', "tables.a.columns.n.computed: computed: cannot be read as a SQL expression"),
        ('computed: "(SELECT 1)"', "is not an expression over the columns of a row"),
        ("computed: ROW_NUMBER(), domain: private", "computed and domain exclude each other"),
        ("computed: ROW_NUMBER(), domain: {range: [0, 9]}", "computed and domain exclude each other"),
    ],
)
def test_other_words_are_refused_with_their_line(said: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(f"tables:\n  a:\n    columns:\n      n: {{type: INTEGER, {said}}}\n")
    with pytest.raises(SpecError) as error:
        read_spec(path)
    assert message in str(error.value)
