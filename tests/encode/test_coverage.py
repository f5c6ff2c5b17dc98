"""Coverage of predicates: against enumeration of a small grid, and against the values that decode draws."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.encode.codec import Codec, compile_codec
from privbench.encode.predicate import All, Between, In, IsNull, Predicate, Prefix
from privbench.errors import SpecError
from privbench.schema.domain import Bins, Domain, Range, Serial, Text, Values
from privbench.schema.types import parse_type

ENDS = st.none() | st.integers(-15, 30) | st.sampled_from([0.5, 2.5, "7.25"])
BETWEEN = st.builds(Between, low=ENDS, high=ENDS, include_low=st.booleans(), include_high=st.booleans())
IN = st.builds(In, values=st.lists(st.integers(-15, 30) | st.just(2.5), max_size=5).map(tuple))
DOMAINS: list[Domain] = [
    Range(range=(-4, 9)),
    Bins(bins=(-10, -3, 1, 3, 24), heavy_hitters=(0, 2)),
    Values(values=(-10, 0, 3, 20)),
]


def compiled(name: str, domain: Domain) -> Codec:
    return compile_codec("t.c", parse_type(name), nullable=True, domain=domain)


def holds(predicate: Predicate, value: float | str | None) -> bool:
    """SQL's answer, written down again."""
    match predicate:
        case IsNull(negated=negated):
            return (value is None) != negated
        case In(values=values):
            return value is not None and value in [type(value)(v) for v in values]
        case Between(low=low, high=high):
            if value is None:
                return False
            above = low is None or value > type(value)(low) or (predicate.include_low and value == type(value)(low))
            below = high is None or value < type(value)(high) or (predicate.include_high and value == type(value)(high))
            return above and below


@pytest.mark.parametrize("domain", DOMAINS)
@settings(max_examples=60)
@given(predicate=BETWEEN | IN | st.builds(IsNull, negated=st.booleans()))
def test_coverage_is_the_share_of_a_cells_values(domain, predicate) -> None:
    codec = compiled("INTEGER", domain)
    # Draw each cell's values often enough to see them all: cells here have at most 21 values.
    codes = np.repeat(np.arange(codec.size), 300).astype(np.uint8)
    drawn = codec.decode(codes, np.random.default_rng(0), first_row=0).to_pylist()
    cells = [drawn[300 * code : 300 * (code + 1)] for code in range(codec.size)]
    coverage = codec.coverage(predicate)
    for share, values in zip(coverage, cells, strict=True):
        known = sorted(set(values), key=str)
        met = [holds(predicate, None if v is None else float(v)) for v in known]
        if not any(v is not None and v >= 3 for v in known):  # the uniform cells: every value counts the same
            assert share == pytest.approx(sum(met) / len(met))
        assert (share == 0) == (not any(met))
        assert (share > 1 - 1e-12) == all(met)


@pytest.mark.parametrize(
    ("name", "domain", "predicate"),
    [
        ("INTEGER", Bins(bins=(1, 1000, 1000000)), Between(low=50, high=3000)),
        ("DOUBLE", Bins(bins=(0, 0.5, 1000)), Between(low=0.25, high=20.5, include_high=False)),
        ("BIGINT", Bins(bins=(-(2**63), 0, 2**63)), Between(low=-(2**62), high=2**40)),
        ("DATE", Bins(bins=("2000-01-01", "2001-01-01", "2010-01-01")), Between(low="2000-03-01", high="2004-01-01")),
        ("VARCHAR", Values(values=("a", "b", "c"), other=True), Between(low="b", high="k")),
        ("VARCHAR", Text(text=(1, 4, 20), distinct=500), Between(low="c", high="m")),
        ("VARCHAR", Text(text=(4, 8, 20)), Between(low="c", high="m")),
    ],
)
def test_coverage_agrees_with_what_decode_draws(name, domain, predicate) -> None:
    codec = compiled(name, domain)
    for code in range(codec.size):
        codes = np.full(8000, code, dtype=np.uint8)
        drawn = codec.decode(codes, np.random.default_rng(code), first_row=0)
        values = drawn.cast(pa.string()) if name == "DATE" else drawn
        share = np.mean([holds(predicate, v) for v in values.to_pylist()])
        assert codec.coverage(predicate)[code] == pytest.approx(share, abs=0.1 if name == "VARCHAR" else 0.03)


def test_serial_columns_answer_null_exactly() -> None:
    codec = compiled("INTEGER", Serial())
    assert codec.coverage(IsNull()).tolist() == [0, 1]
    assert codec.coverage(IsNull(negated=True)).tolist() == [1, 0]
    assert codec.coverage(In(values=(5,))).tolist() == [0, 0]


def test_a_predicate_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(SpecError, match=r"t\.c: 'yesterday' does not fit DATE"):
        compiled("DATE", Range(range=("2020-01-01", "2020-02-01"))).coverage(Between(low="yesterday"))


@pytest.mark.parametrize("domain", DOMAINS)
@settings(max_examples=60)
@given(parts=st.lists(BETWEEN | IN | st.builds(IsNull, negated=st.booleans()), max_size=3).map(tuple))
def test_several_predicates_cover_what_each_value_says(domain, parts) -> None:
    codec = compiled("INTEGER", domain)
    codes = np.repeat(np.arange(codec.size), 300).astype(np.uint8)
    drawn = codec.decode(codes, np.random.default_rng(0), first_row=0).to_pylist()
    for code, share in enumerate(codec.coverage(All(parts=parts))):
        known = set(drawn[300 * code : 300 * (code + 1)])
        met = [all(holds(p, None if v is None else float(v)) for p in parts) for v in known]
        if not any(v is not None and v >= 3 for v in known):
            assert share == pytest.approx(sum(met) / len(met))
        assert (share == 0) == (not any(met))
        assert (share > 1 - 1e-12) == all(met)


def test_prefixes_are_of_text_alone() -> None:
    listed = compiled("VARCHAR", Values(values=("abc", "abd", "b"), other=True))
    assert listed.coverage(Prefix(text="ab")).tolist() == [1, 1, 0, 0, 0]
    assert listed.coverage(Prefix(text="")).tolist() == [1, 1, 1, 1, 0]
    assert listed.coverage(All(parts=(Prefix(text="ab"), Between(low="abd")))).tolist() == [0, 1, 0, 0, 0]
    for domain in (Range(range=(0, 3)), Values(values=(1, 11)), Serial()):
        assert not compiled("INTEGER", domain).coverage(Prefix(text="1")).any()


def test_prefixes_of_made_up_text_are_counted() -> None:
    codec = compiled("VARCHAR", Text(text=(4, 12), distinct=300))
    drawn = codec.decode(np.zeros(8000, np.uint8), np.random.default_rng(1), first_row=0).to_pylist()
    share = np.mean([text.startswith(("b", "c")) for text in drawn])
    found = sum(codec.coverage(Prefix(text=letter))[0] for letter in "bc")
    assert found == pytest.approx(share, abs=0.05)
