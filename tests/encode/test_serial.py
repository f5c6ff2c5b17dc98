"""Keys made from row numbers: of the exact type, distinct, the same at every call, within what the type can hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.encode.serial import check_room, most_values, numbered, row_numbers
from privbench.errors import SchemaError
from privbench.schema.types import parse_type

TYPES = [
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UTINYINT",
    "HUGEINT",
    "REAL",
    "DOUBLE",
    "DECIMAL(4,0)",
    "DECIMAL(9,2)",
    "DECIMAL(3,3)",
    "VARCHAR",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMPTZ",
    "BOOLEAN",
]


@pytest.mark.parametrize("sql", TYPES)
def test_keys_are_distinct_never_null_and_of_the_exact_type(sql: str) -> None:
    of = parse_type(sql)
    rows = min(most_values(of), 5000)
    keys = numbered(of, np.arange(rows))
    assert keys.type == of.arrow
    assert keys.null_count == 0
    assert len(keys.unique()) == rows


@pytest.mark.parametrize("sql", TYPES)
def test_the_last_key_that_fits_is_a_value_of_its_own(sql: str) -> None:
    of = parse_type(sql)
    last = min(most_values(of), 2**62) - 1
    keys = numbered(of, np.array([last, max(last - 1, 0), 0]))
    assert len(keys.unique()) == len({last, max(last - 1, 0), 0})


@given(st.sampled_from([t for t in TYPES if "CHAR" not in t]), st.lists(st.integers(0, 2**62)))
def test_keys_lead_back_to_their_row_numbers(sql: str, rows: list[int]) -> None:
    of = parse_type(sql)
    numbers = np.array(rows, np.int64) % min(most_values(of), 2**62)
    assert row_numbers(of, numbered(of, numbers)).tolist() == numbers.tolist()


@given(st.sampled_from(["INTEGER", "VARCHAR", "DATE", "TIMESTAMP", "DECIMAL(9,2)"]), st.lists(st.integers(0, 10**5)))
def test_a_key_depends_on_its_row_number_alone(sql: str, rows: list[int]) -> None:
    of = parse_type(sql)
    together = numbered(of, np.array(rows, np.int64)).to_pylist()
    assert together == [numbered(of, np.array([row])).to_pylist()[0] for row in rows]


def test_numbers_start_at_one_and_are_dense() -> None:
    for sql in ("INTEGER", "DECIMAL(9,2)", "DOUBLE"):
        assert [int(x) for x in numbered(parse_type(sql), np.arange(4)).to_pylist()] == [1, 2, 3, 4]


@pytest.mark.parametrize("length", [1, 2, 5])
def test_text_keys_have_the_length_that_is_asked_for(length: int) -> None:
    of = parse_type("VARCHAR")
    rows = min(most_values(of, length=length), 2000)
    keys = numbered(of, np.arange(rows), length=length).to_pylist()
    assert {len(key) for key in keys} == {length}
    assert len(set(keys)) == rows


def test_a_scale_with_room_passes_and_one_without_names_the_largest() -> None:
    of = parse_type("TINYINT")
    check_room("t.id", of, 127, 1.0)
    with pytest.raises(SchemaError, match=r"t\.id: TINYINT has room for 127 keys, but scale 2 makes 254 rows.*is 1\."):
        check_room("t.id", of, 254, 2.0)
    with pytest.raises(SchemaError, match="36 keys"):
        check_room("t.code", parse_type("VARCHAR"), 37, 1.0, length=1)
