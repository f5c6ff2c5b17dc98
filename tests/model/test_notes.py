"""What is told of columns and rules holds: `made up` of what was made up, `may break` of what rows may break."""

from typing import Any

import pytest

from privbench.model.notes import change_lines, column_changes, published_literals, unkept_checks
from privbench.schema.spec import Spec

NUMBER = {"type": "BIGINT", "null": False}
SHAPES = {"photo": {"type": "BLOB"}, "token": {"type": "UUID"}, "extra": {"type": "JSON"}}
LEFT_OUT = {"check": "is_iban(token)", "left_out": "there is no function is_iban"}


def _spec(**country: Any) -> Spec:
    def made(words: dict[str, Any]) -> dict[str, Any]:
        return {name: {**column, "domain": {"text": [0, 9]}} for name, column in words.items()}

    person = {
        "id": NUMBER,
        "country": NUMBER,
        **made(SHAPES),
        "flags": {"type": "BIT(3)"},
        "copy": {"type": "JSON", "computed": "extra"},
    }
    tables = {
        "country": {"key": ["id"], "columns": {"id": NUMBER, **SHAPES}, "rules": [LEFT_OUT], **country},
        "person": {
            "key": ["id"],
            "foreign_keys": [{"columns": ["country"], "table": "country", "references": ["id"]}],
            "columns": person,
            "rules": ["id > 0", LEFT_OUT, {"check": "id > 0", "left_out": "it is there twice"}],
        },
    }
    return Spec.model_validate({"unit": "person", "tables": tables})


@pytest.mark.parametrize("country", [{"public": True}, {"made_up": 5}], ids=str)
def test_made_up_is_said_of_private_columns_that_are_made_up(country: dict[str, Any]) -> None:
    changed = [(change.table, change.column) for change in column_changes(_spec(**country))]
    assert changed == [("person", name) for name in SHAPES]
    assert not any("country." in line for line in change_lines(_spec(**country)))


def test_rules_of_copied_rows_are_not_lost() -> None:
    assert unkept_checks(_spec(public=True)) == ["person: is_iban(token) (there is no function is_iban)"]
    assert len(unkept_checks(_spec(made_up=5))) == 2


def test_the_published_spec_keeps_what_is_told() -> None:
    spec = _spec(public=True)
    assert [line.casefold() for line in unkept_checks(spec.published())] == unkept_checks(spec)


def test_rules_from_the_data_are_no_definitions_of_the_source() -> None:
    table = {"key": ["id"], "columns": {"id": NUMBER}, "rules": ["id > 0", {"check": "id < 77", "from": "data"}]}
    told = published_literals(Spec.model_validate({"unit": "person", "tables": {"person": table}}))
    assert [(each.kind, each.name) for each in told] == [("check", "person 1"), ("rule from the data", "person 2")]
