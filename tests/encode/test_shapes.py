"""Shapes of made-up strings: valid, within the type's length, unique where promised, the same at every run."""

import re
import uuid
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.encode.codec import compile_codec
from privbench.encode.predicate import In
from privbench.encode.shapes import SHAPES, Composed, shaping
from privbench.errors import SchemaError, SpecError
from privbench.schema.domain import Text
from privbench.schema.types import parse_type

LOOKS = {
    "email": r"[a-z0-9]+([._][a-z]+)?[0-9]*@example\.(com|org|net)",
    "phone": r"[2-9][0-8][0-9](-555-|555)01[0-9]{2}( ?x[0-9]{4})?",
    "url": r"https://(www\.)?example\.(com|org|net)/[-a-z0-9/]+",
    "uuid": r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
    "ip": r"10(\.[0-9]{1,3}){3}",
    "person": r"[A-Z][a-z]+ ([A-Z]\. )?[A-Za-z]+(-[A-Za-z]+)?",
    "first_name": r"[A-Z][a-z]+(-[A-Z][a-z]+)*",
    "last_name": r"[A-Z][A-Za-z]+(-[A-Z][A-Za-z]+)*",
    "city": r"([A-Z][a-z]+ )?[A-Z][a-z]+(-[A-Z][a-z]+)*",
    "region": r"([A-Z][a-z]+ )?[A-Z][a-z]+(-[A-Z][a-z]+)*",
    "country": r"([A-Z][a-z]+ )?[A-Z][a-z]+(-[A-Z][a-z]+)*",
    "postcode": r"[0-9]{5}(-[0-9]{4}([0-9]{2})?)?",
    "address": r"[1-9][0-9]* [A-Z][a-z]+ [A-Z][a-z]+( Apt [0-9]+)?",
    "company": r"[A-Z][A-Za-z]+(, [A-Z][A-Za-z]+)?( & [A-Z][A-Za-z]+)?( [A-Z][A-Za-z]+)?",
    "hex": r"[0-9a-f]*",
    "word": r"[a-z]*",
    "name": r"([A-Z][a-z]*)?",
    "title": r"([A-Z][a-z]* )*([A-Z][a-z]*)?",
    "sentence": r"([A-Z][a-z]*( [a-z]+)*)?\.?",
    "AA-99a9": r"[A-Z]{2}-[0-9]{2}[a-z][0-9]",
}
SYNTAXES = {
    "cidr": r"10(\.[0-9]{1,3}){2}\.(0/24|[0-9]{1,3}/32)",
    "mac": r"02(:[0-9a-f]{2}){5}",
    "mac8": r"02(:[0-9a-f]{2}){7}",
    "json": r'\{("value": "[a-z]+")?\}',
    "xml": r"<value>[a-z]+</value>|<value/>",
    "bytes": r"\\x([0-9a-f]{2})*",
    "bits": r"[01]+",
    "lexeme": r"'[a-z]*'",
    "text_array": r"\{([a-z]{1,7}(,[a-z]{1,7})*)?\}",
    "number_array": r"\{([0-9]{1,5}(,[0-9]{1,5})*)?\}",
    "empty_array": r"\{\}",
}
"""Shapes of types that travel as text, of which there are few short strings."""
EDGES = st.sampled_from([(0, 8, 16, 40), (8, 12, 24), (1, 60), (30, 50)])


def made(shape: str, *, edges: tuple[int, ...], kind: str, codes: np.ndarray, first_row: int = 0, **more) -> list[str]:
    domain = Text(text=edges, shape=shape, **more)
    codec = compile_codec("t.c", parse_type(kind), nullable=False, domain=domain)
    column = codec.decode(codes, np.random.default_rng(0), first_row=first_row)
    column.validate(full=True)
    assert (codec.encode(column) < codec.size).all()
    return column.to_pylist()


def test_every_shape_is_looked_at() -> None:
    assert {*SHAPES} == ({*LOOKS} | {*SYNTAXES}) - {"AA-99a9"}


@pytest.mark.parametrize("shape", SYNTAXES)
@pytest.mark.parametrize("distinct", [None, 1, 30])
def test_strings_of_a_syntax_are_valid_at_any_length(shape, distinct) -> None:
    codes = np.random.default_rng(0).integers(0, 4, 400).astype(np.uint8)
    if shape == "empty_array" and distinct != 1:
        return
    strings = made(shape, edges=(1, 2, 12, 30, 80), kind="VARCHAR", codes=codes, distinct=distinct)
    assert all(re.fullmatch(SYNTAXES[shape], text) for text in strings), strings[:5]
    assert distinct is not None or len(set(strings)) == 400


@pytest.mark.parametrize("shape", ["json", "xml", "bytes", "bits", "text_array", "number_array"])
def test_strings_of_a_syntax_are_about_as_long_as_their_cell(shape) -> None:
    codes = np.repeat(np.array([0, 1], np.uint8), 500)
    strings = made(shape, edges=(30, 40, 81), kind="VARCHAR", codes=codes)
    lengths = np.array([len(text) for text in strings])
    assert set(lengths[codes == 0]) <= set(range(29, 41))
    assert set(lengths[codes == 1]) <= set(range(39, 82))


@pytest.mark.parametrize("shape", LOOKS)
@settings(max_examples=15)
@given(edges=EDGES, first_row=st.integers(0, 10_000), seed=st.integers(0, 9), limit=st.sampled_from([36, 60, 200]))
def test_strings_are_of_their_shape_unique_and_not_too_long(shape, edges, first_row, seed, limit) -> None:
    codes = np.random.default_rng(seed).integers(0, len(edges) - 1, 300).astype(np.uint8)
    strings = made(shape, edges=edges, kind=f"VARCHAR({limit})", codes=codes, first_row=first_row)
    assert all(re.fullmatch(LOOKS[shape], text) for text in strings), strings[:5]
    assert max(map(len, strings)) <= limit
    assert len(set(strings)) == 300


@pytest.mark.parametrize("shape", LOOKS)
@pytest.mark.parametrize("distinct", [1, 40, 200])
def test_a_pool_has_about_the_wanted_number_of_strings(shape, distinct) -> None:
    codes = np.random.default_rng(0).choice(3, 20_000, p=[0.3, 0.5, 0.2]).astype(np.uint8)
    first = made(shape, edges=(2, 8, 12, 40), kind="VARCHAR(40)", codes=codes, distinct=distinct)
    assert all(re.fullmatch(LOOKS[shape], text) for text in first)
    assert 0.75 * distinct - 3 <= len(set(first)) <= distinct + 3
    assert first == made(shape, edges=(2, 8, 12, 40), kind="VARCHAR(40)", codes=codes, distinct=distinct)


def test_strings_of_a_pool_repeat_unevenly_as_the_skew_says() -> None:
    codes = np.zeros(50_000, np.uint8)
    for skew, least, most in ((0, 0.001, 0.01), (1, 0.08, 0.2), (2, 0.4, 0.6)):
        strings = made("person", edges=(5, 40), kind="VARCHAR", codes=codes, distinct=300, skew=skew)
        _, counts = np.unique(strings, return_counts=True)
        assert least <= counts.max() / 50_000 <= most


def test_uuids_are_of_version_four() -> None:
    strings = made("uuid", edges=(36, 37), kind="CHAR(36)", codes=np.zeros(500, np.uint8))
    assert {uuid.UUID(text).version for text in strings} == {4}
    assert {uuid.UUID(text).variant for text in strings} == {uuid.RFC_4122}


@pytest.mark.parametrize("shape", ["email", "person", "address", "city"])
def test_lengths_are_kept_as_far_as_the_shape_has_them(shape) -> None:
    domain = Text(text=(0, 12, 20, 24, 40), shape=shape)
    codec = compile_codec("t.c", parse_type("VARCHAR"), nullable=False, domain=domain)
    codes = np.random.default_rng(0).integers(0, 4, 4000).astype(np.uint8)
    lengths = np.array([len(t) for t in codec.decode(codes, np.random.default_rng(0), first_row=0).to_pylist()])
    means = [lengths[codes == cell].mean() for cell in range(4)]
    assert means == sorted(means)
    assert means[-1] - means[0] > 2


def test_a_cell_of_empty_strings_stays_empty() -> None:
    strings = made("email", edges=(0, 1, 40), kind="VARCHAR", codes=np.array([0, 1, 0], np.uint8), distinct=5)
    assert [bool(text) for text in strings] == [False, True, False]


def test_a_pattern_is_exhausted_exactly_and_then_refused_by_name() -> None:
    strings = made("A9", edges=(2, 3), kind="CHAR(2)", codes=np.zeros(260, np.uint8))
    assert len(set(strings)) == 260
    codec = compile_codec("t.c", parse_type("CHAR(2)"), nullable=False, domain=Text(text=(2, 3), shape="A9"))
    with pytest.raises(SchemaError, match=r"t\.c: there are not enough different strings of the shape 'A9'"):
        replace(codec, in_key=True).decode(np.zeros(1, np.uint8), np.random.default_rng(0), first_row=260)


@pytest.mark.parametrize("shape", [s for s in SHAPES if isinstance(shaping("", s, parse_type("VARCHAR")), Composed)])
def test_forms_never_meet_where_one_ends_and_the_next_begins(shape) -> None:
    made_of = shaping("", shape, parse_type("VARCHAR"))
    assert isinstance(made_of, Composed)
    ends = [0, *(e for e in made_of.ends if e < 2**60)]
    numbers = np.unique(np.concatenate([np.arange(max(e - 400, 0), e + 400) for e in ends]) // 4)
    numbers = numbers[numbers < made_of.room(0)]
    zeros = np.zeros(len(numbers), np.int64)
    strings = made_of.unique(numbers, zeros, zeros + 90, salt=3).to_pylist()
    assert len(set(strings)) == len(numbers)


@settings(max_examples=60)
@given(pattern=st.text("Aa9-/XZ. ", min_size=1, max_size=12), limit=st.integers(1, 12))
def test_any_pattern_is_written_or_refused(pattern, limit) -> None:
    kind = parse_type(f"VARCHAR({limit})")
    if len(pattern) > limit or not ("9" in pattern or "A" in pattern or {*pattern} & {*"aXZ"} == {"a"}):
        with pytest.raises(SpecError, match=r"^t\.c: "):
            shaping("t.c", pattern, kind)
        return
    made_of = shaping("t.c", pattern, kind)
    count = min(made_of.room(limit), 500)
    numbers, ends = np.arange(count), np.zeros(count, np.int64)
    strings = made_of.unique(numbers, ends, ends, salt=0).to_pylist()
    looks = "".join({"A": "[A-Z]", "a": "[a-z]", "9": "[0-9]"}.get(c, re.escape(c)) for c in pattern)
    assert len(set(strings)) == count
    assert all(re.fullmatch(looks, text) for text in strings)


def test_coverage_of_a_frequent_string_is_about_its_share() -> None:
    domain = Text(text=(4, 40), shape="person", distinct=100)
    codec = compile_codec("t.c", parse_type("VARCHAR"), nullable=True, domain=domain)
    strings = codec.decode(np.zeros(40_000, np.uint8), np.random.default_rng(0), first_row=10**9).to_pylist()
    values, counts = np.unique(strings, return_counts=True)
    top = str(values[counts.argmax()])
    assert codec.coverage(In(values=(top,)))[0] == pytest.approx(counts.max() / 40_000, rel=0.1)
    assert codec.coverage(In(values=("nobody",))).sum() == 0
