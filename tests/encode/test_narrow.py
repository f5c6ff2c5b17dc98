"""What rules leave of a domain is a domain that a spec can say, and repeats as before."""

import numpy as np
import pytest

from privbench.encode.codec import compile_codec
from privbench.encode.narrow import narrowed, ruled_codec
from privbench.schema.domain import Bins, Domain, Text, Values
from privbench.schema.expression import parse_expression
from privbench.schema.types import parse_type

SALARY = Bins(bins=(-10_000, 0, 50_000, 1_000_000), step=10, distinct=60, skew=0.5)


def test_values_repeat_as_often_where_a_rule_cuts_their_bins() -> None:
    rule, kind = parse_expression("salary > 0", where="rules"), parse_type("INTEGER")
    within = narrowed("t.salary", kind, SALARY, [rule])
    assert isinstance(within, Bins)
    assert (within.bins, within.distinct, within.skew) == ((10, 50_000, 1_000_000), 60, 0.5)
    codec = ruled_codec("t.salary", kind, nullable=False, domain=SALARY, rules=[rule])
    codes = np.repeat(np.arange(codec.size), 2000).astype(np.uint16)
    assert len(codec.decode(codes, np.random.default_rng(0), first_row=0).unique()) <= 60


@pytest.mark.parametrize(
    ("domain", "rule"),
    [
        (SALARY, "c BETWEEN -50 AND 700"),
        (Values(values=("a", "bb", "c"), other=True, others=9, skew=0.5, shape="AA-9999"), "c IN ('a', 'c')"),
        (Values(values=("a", "bb", "c"), other=True, others=9, shape="AA-9999"), "c <> 'a'"),
        (Text(text=(0, 4, 8), distinct=9, skew=2, shape="word"), "LENGTH(c) < 6"),
    ],
)
def test_what_is_left_can_be_written_and_read_again(domain: Domain, rule: str) -> None:
    kind = parse_type("INTEGER" if isinstance(domain, Bins) else "VARCHAR(9)")
    within = narrowed("t.c", kind, domain, [parse_expression(rule, where="rules")])
    assert within is not None
    assert within != domain
    assert type(within).model_validate_json(within.model_dump_json()) == within
    assert compile_codec("t.c", kind, nullable=False, domain=within).size > 0


@pytest.mark.parametrize(
    ("shape", "like", "once"),
    [("email", "%@%", "@"), ("email", "K%@%", "K"), ("word", "%@%", "@")],
)
def test_text_keeps_its_shape_where_that_keeps_the_pattern(shape: str, like: str, once: str) -> None:
    """An e-mail address gets no second sign; a shape that does not keep the pattern is written into it."""
    rule = parse_expression(f"c LIKE '{like}'", where="rules")
    domain = Text(text=(12, 16, 24), shape=shape)
    codec = ruled_codec("t.c", parse_type("VARCHAR(40)"), nullable=False, domain=domain, rules=[rule])
    codes = np.tile(np.arange(codec.size), 200).astype(np.uint16)
    made = codec.decode(codes, np.random.default_rng(0), first_row=0).to_pylist()
    assert all(once in text for text in made)
    if like == "%@%":
        assert all(text.count("@") == 1 for text in made)
