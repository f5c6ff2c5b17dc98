"""Any value of any type comes back from a real SQLite column as it was."""

import sqlite3

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.io.sqlite_file import from_arrow, to_arrow
from privbench.schema.types import parse_type

BY_TYPE = {
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "DOUBLE": st.floats(allow_nan=False),
    "DECIMAL(10,2)": st.decimals(-99999999, 99999999, places=2),
    "DECIMAL(38,6)": st.decimals(-(10**31), 10**31, places=6, allow_nan=False),
    "DECIMAL(38,0)": st.integers(-(10**38) + 1, 10**38 - 1),
    "BOOLEAN": st.booleans(),
    "VARCHAR": st.text(st.characters(exclude_categories=["Cs"])),
    "DATE": st.dates(),
    "TIME": st.times(),
    "TIMESTAMP": st.datetimes(),
    "TIMESTAMPTZ": st.datetimes(),
}


@pytest.mark.parametrize("name", BY_TYPE)
@settings(max_examples=25)
@given(data=st.data())
def test_round_trip(name: str, data: st.DataObject) -> None:
    kind = parse_type(name)
    values = data.draw(st.lists(st.none() | BY_TYPE[name], min_size=1, max_size=5))
    array = pa.array(values, kind.arrow)
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE t (a {kind.sql})")
    connection.executemany("INSERT INTO t VALUES (?)", [(v,) for v in from_arrow(array)])
    stored = [v for (v,) in connection.execute("SELECT a FROM t ORDER BY rowid")]
    connection.close()
    assert to_arrow(stored, kind, "t.a").equals(array)
