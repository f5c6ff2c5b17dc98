"""What a spec may say of derived columns: read and written back, and refused, with the path, where it cannot be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privbench.errors import SpecError
from privbench.schema.derived import Derived
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
                "people": {"type": "SMALLINT", "derived": {"rows": "person"}},
            },
        },
        "person": {
            "key": ["id"],
            "foreign_keys": [{"columns": ["home_id"], "table": "home", "references": ["id"]}],
            "columns": {
                "id": {"type": "INTEGER"},
                "home_id": {"type": "INTEGER"},
                "region": {"type": "VARCHAR", "derived": {"owner": "region"}},
                "rooms": {"type": "SMALLINT", "null": False, "derived": {"owner": "rooms"}},
                "number": {"type": "SMALLINT", "derived": {"rank": 1}},
            },
        },
    },
}


def changed(table: str, column: str, **words: Any) -> Spec:
    tables = {t: {**said, "columns": dict(said["columns"])} for t, said in SPEC["tables"].items()}
    tables[table]["columns"][column] = {**tables[table]["columns"].get(column, {"type": "SMALLINT"}), **words}
    return Spec.model_validate({**SPEC, "tables": tables})


def test_derived_columns_are_not_modelled_and_need_no_domain() -> None:
    spec = Spec.model_validate(SPEC)
    protection = spec.protection()
    assert protection.attributes("home") == ("region", "rooms")
    assert protection.attributes("person") == ()
    assert spec.wanted(protection) == ()
    assert set(spec.origins(protection)) == {("home", "region"), ("home", "rooms")}
    assert spec.published().column("home", "people").derived == Derived(rows="person")


def test_the_file_holds_what_is_derived(tmp_path: Path) -> None:
    spec = Spec.model_validate(SPEC)
    write_spec(spec, tmp_path / "spec.yaml")
    assert read_spec(tmp_path / "spec.yaml") == spec


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: changed("home", "people", derived={"rows": "town"}),
            r"tables\.home\.columns\.people\.derived: \{rows: town\} cannot be.* here: \{rows: person\}\.",
        ),
        (
            lambda: changed("home", "rooms", derived={"rank": 1}, domain=None),
            r"tables\.home\.columns\.rooms\.derived: .*Possible for SMALLINT NOT NULL here: \{rows: person\}\.",
        ),
        (
            lambda: changed("person", "region", derived={"owner": "regoin"}),
            r"person\.columns\.region\.derived: \{owner: regoin\} cannot be.* here: \{owner: region\}\.",
        ),
        (
            lambda: changed("person", "region", null=False),
            r"Possible for VARCHAR NOT NULL here: none\.",
        ),
        (
            lambda: changed("person", "rooms", type="BIGINT"),
            r"\{owner: rooms\} cannot be.*Possible for BIGINT NOT NULL here: \{rank: 1\}, \{rank: 0\}\.",
        ),
        (lambda: changed("town", "size", derived={"rank": 1}), "town is public and copied as it is"),
        (lambda: changed("person", "id", derived={"rank": 1}), "the column is a key"),
        (lambda: changed("person", "home_id", derived={"owner": "id"}), "the column is a key"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(make: Callable[[], Spec], message: str) -> None:
    spec = make()
    with pytest.raises(SpecError, match=message):
        spec.protection()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("derived: {rows: b, rank: 1}", "line 4, tables.a.columns.n.derived: say one of `rows: TABLE`"),
        ("derived: {}", "say one of `rows: TABLE`"),
        ("derived: rank", "line 4, tables.a.columns.n.derived: a mapping is wanted"),
        ("derived: {rank: 2}", "tables.a.columns.n.derived.rank"),
        ("derived: {row: b}", "Did you mean rows? Allowed: rows, owner, rank"),
        ("derived: {rank: 1}, domain: private", "derived and domain exclude each other"),
        ("derived: {rank: 1}, domain: {range: [0, 9]}", "derived and domain exclude each other"),
    ],
)
def test_other_words_are_refused_with_their_line(said: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(f"tables:\n  a:\n    columns:\n      n: {{type: INTEGER, {said}}}\n")
    with pytest.raises(SpecError) as error:
        read_spec(path)
    assert message in str(error.value)
