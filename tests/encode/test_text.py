"""Made-up strings: unique where promised, of the wanted length, and pools of the wanted size."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.encode.codec import compile_codec
from privbench.encode.spelling import LETTERS, capacity, key_strings, unique_strings, word_capacity, words
from privbench.errors import SchemaError
from privbench.schema.domain import Text
from privbench.schema.types import parse_type

NUMBERS = st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 5000), unique=True, min_size=1, max_size=50)


@settings(max_examples=100)
@given(numbers=NUMBERS, data=st.data(), salt=st.integers(0, 2**32 - 1))
def test_strings_have_their_length_and_never_meet(numbers, data, salt) -> None:
    rows = np.array(numbers, dtype=np.int64)
    extra = data.draw(st.lists(st.integers(0, 20), min_size=len(rows), max_size=len(rows)))
    lengths = LETTERS.needed(rows) + np.array(extra)
    made = unique_strings(rows, lengths, salt=salt)
    made.validate(full=True)
    assert pc.utf8_length(made).to_pylist() == lengths.tolist()
    assert len(set(made.to_pylist())) == len(numbers)


@pytest.mark.parametrize("length", [0, 1, 2, 3])
@pytest.mark.parametrize(("spell", "count"), [(unique_strings, capacity), (words, word_capacity)])
def test_all_strings_up_to_the_capacity_differ(length, spell, count) -> None:
    rows = np.arange(count(length) + 1)
    made = spell(rows, np.full(len(rows), length), salt=7).to_pylist()
    assert len(set(made[:-1])) == count(length)
    assert made[-1] in made[:-1]


def test_a_string_depends_on_number_length_and_salt_alone() -> None:
    rows = np.arange(1000)
    lengths = rows % 13
    whole = words(rows, lengths, salt=3)
    assert pa.concat_arrays([words(rows[:7], lengths[:7], salt=3), words(rows[7:], lengths[7:], salt=3)]).equals(whole)
    assert not words(rows, lengths, salt=4).equals(whole)


def test_keys_that_do_not_fit_are_refused() -> None:
    assert len(set(key_strings(np.arange(36), 1).to_pylist())) == 36
    with pytest.raises(SchemaError, match="36 values"):
        key_strings(np.arange(37), 1)


@settings(max_examples=50)
@given(
    first_row=st.integers(0, 2**40),
    codes=st.lists(st.integers(0, 2), min_size=1, max_size=80),
    edges=st.sampled_from([(0, 1, 2), (1, 4, 9), (5, 30, 60)]),
)
def test_text_without_distinct_is_unique_and_never_too_long(first_row, codes, edges) -> None:
    codec = compile_codec("t.c", parse_type("VARCHAR(40)"), nullable=True, domain=Text(text=edges))
    made = codec.decode(np.array(codes, np.uint8), np.random.default_rng(0), first_row=first_row).to_pylist()
    strings = [m for m in made if m is not None]
    assert len(strings) == sum(c != codec.null_code for c in codes) == len(set(strings))
    assert max(map(len, strings), default=0) <= 40


def test_unique_text_in_a_narrow_type_is_refused_by_name() -> None:
    codec = compile_codec("t.c", parse_type("VARCHAR(2)"), nullable=False, domain=Text(text=(0, 2)))
    assert codec.decode(np.zeros(1, np.uint8), np.random.default_rng(0), first_row=1295).to_pylist()
    again = codec.decode(np.zeros(2, np.uint8), np.random.default_rng(0), first_row=1295).to_pylist()
    assert [len(text) <= 2 for text in again] == [True, True]
    with pytest.raises(SchemaError, match=r"t\.c: there are not enough different strings"):
        replace(codec, in_key=True).decode(np.zeros(1, np.uint8), np.random.default_rng(0), first_row=1296)


@pytest.mark.parametrize("distinct", [1, 10, 3000, 100_000])
def test_a_pool_has_about_the_wanted_number_of_strings(distinct) -> None:
    domain = Text(text=(4, 8, 16), distinct=distinct)
    codec = compile_codec("t.c", parse_type("VARCHAR"), nullable=True, domain=domain)
    rng = np.random.default_rng(0)
    found: set[str] = set()
    for batch in range(4):
        codes = rng.choice(3, size=50_000, p=[0.2, 0.6, 0.2]).astype(np.uint8)
        made = codec.decode(codes, rng, first_row=50_000 * batch)
        assert codec.encode(made).tolist() == codes.tolist()
        found.update(made.drop_null().to_pylist())
    assert distinct * 0.9 <= len(found) <= distinct * 1.05 + 2


def test_columns_of_one_table_get_different_strings() -> None:
    codes = np.zeros(100, np.uint8)
    first, last = (
        compile_codec(where, parse_type("VARCHAR"), nullable=False, domain=Text(text=(8, 16), distinct=1000))
        for where in ("person.first", "person.last")
    )
    a, b = (c.decode(codes, np.random.default_rng(0), first_row=0).to_pylist() for c in (first, last))
    assert not set(a) & set(b)
