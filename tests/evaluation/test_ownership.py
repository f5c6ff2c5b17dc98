import json
from pathlib import Path

import pytest

from privbench.evaluation.resample import find_ownership
from privbench.io.ddl import parse_ddl
from privbench.schema.tables import Schema

SCHEMA = parse_ddl(
    """
    CREATE TABLE country (id INTEGER PRIMARY KEY);
    CREATE TABLE address (id INTEGER PRIMARY KEY);
    CREATE TABLE person (id INTEGER PRIMARY KEY, country INTEGER REFERENCES country,
      address INTEGER REFERENCES address);
    CREATE TABLE visit (place INTEGER REFERENCES country, person INTEGER REFERENCES person);
    """,
    where="schema.sql",
)
UNIT = {
    "entity": "person",
    "tables": {
        "person": {"role": "entity", "owner": None, "key": None},
        "visit": {"role": "owned", "owner": "person", "key": ["person"]},
        "address": {"role": "lookup", "owner": "person", "key": ["address"]},
    },
}


def owners(folder: Path, real: Schema = SCHEMA) -> dict[str, tuple[str, bool] | None]:
    found = find_ownership(real, SCHEMA, folder, None).owners
    return {table: None if owner is None else (owner.table, owner.lookup) for table, owner in found.items()}


def test_a_receipt_says_whose_row_is_whose(tmp_path: Path) -> None:
    (tmp_path / "receipt.json").write_text(json.dumps({"unit": UNIT}))
    without_keys = Schema(tables=())
    assert owners(tmp_path, without_keys) == {"person": None, "address": ("person", True), "visit": ("person", False)}
    assert not find_ownership(SCHEMA, SCHEMA, tmp_path, None).private("country")


@pytest.mark.parametrize("text", [None, "", "{}", "[]", '{"unit": {"entity": "x", "tables": {}}}'])
def test_without_a_usable_receipt_the_first_keys_count(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "receipt.json").write_text(text)
    assert owners(tmp_path) == {
        "country": None,
        "address": None,
        "person": ("country", False),
        "visit": ("country", False),
    }
