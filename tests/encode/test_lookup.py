"""Coding by look-up gives the codes of the codec, whatever came before."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.encode.codec import compile_codec
from privbench.encode.lookup import LookedUp
from privbench.schema.domain import Bins, Domain, Range, Values
from privbench.schema.types import parse_type

DOMAINS = [
    ("SMALLINT", Range(range=(-5, 200)), st.integers(-(2**15), 2**15 - 1)),
    ("INTEGER", Bins(bins=(0, 10, 1000, 10**6)), st.integers(-(2**31), 2**31 - 1) | st.integers(-20, 2000)),
    ("BIGINT", Values(values=(1, 7, 10**12)), st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 70)),
    ("DATE", Bins(bins=("2000-01-01", "2010-01-01", "2020-01-01")), st.dates()),
    ("VARCHAR", Values(values=("a", "b"), other=True), st.text(max_size=2)),
]


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize(("kind", "domain", "values"), DOMAINS, ids=[d[0] for d in DOMAINS])
@given(data=st.data())
def test_codes_are_those_of_the_codec(
    kind: str, domain: Domain, values: st.SearchStrategy[object], nullable: bool, data: st.DataObject
) -> None:
    codec = compile_codec("t.c", parse_type(kind), nullable=nullable, domain=domain)
    looked_up = LookedUp(codec)
    for _ in range(3):
        batch = pa.array(data.draw(st.lists(values | st.none())), parse_type(kind).arrow)[
            data.draw(st.integers(0, 2)) :
        ]
        assert looked_up.encode(batch).tolist() == codec.encode(batch).tolist()
        assert looked_up.encode(batch).dtype == codec.encode(batch).dtype


@pytest.mark.parametrize("end", [2**63 - 1, -(2**63)], ids=str)
def test_numbers_at_the_ends_of_their_type_have_codes(end: int) -> None:
    """Nothing in the data may make coding fail, not even that all rows at hand have the last number that there is."""
    codec = compile_codec("t.n", parse_type("BIGINT"), nullable=True, domain=Range(range=(0, 99)))
    values = pa.array([end, end, None], pa.int64())
    assert LookedUp(codec).encode(values).tolist() == codec.encode(values).tolist()
