"""Which codes go together by a rule: asked of all values of small domains, one pair after the other."""

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.encode import possible
from privbench.encode.codec import Codec, compile_codec
from privbench.encode.possible import possible_codes
from privbench.rules.orders import Order, orders_in
from privbench.rules.row_rules import RowRules
from privbench.schema.domain import Bins, Domain, Range, Text, Values
from privbench.schema.expression import parse_expression
from privbench.schema.types import parse_type


def codec(kind: str, domain: Domain, *, nullable: bool = False) -> Codec:
    return compile_codec("t.c", parse_type(kind), nullable=nullable, domain=domain)


def order(rule: str) -> Order:
    (found,) = orders_in([parse_expression(rule, where="")])
    return found


def asked(rule: str, low: Codec, high: Codec) -> list[list[int]]:
    codes = possible_codes(order(rule), low, high)
    assert codes is not None
    return codes.astype(int).tolist()


DATES = Bins(bins=("2020-01-01", "2020-02-01", "2020-03-01", "2020-04-01"))


def test_dates_in_bins() -> None:
    low, high = codec("DATE", DATES), codec("DATE", DATES, nullable=True)
    assert asked("a <= b", low, high) == [[1, 1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1]]  # the last code is NULL
    assert asked("a < b", low, high) == [[1, 1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1]]


def test_null_keeps_any_rule() -> None:
    low, high = codec("DATE", DATES, nullable=True), codec("DATE", DATES)
    assert asked("a <= b", low, high)[-1] == [1, 1, 1]


def test_a_day_and_a_time() -> None:
    ends = ("2020-01-15 00:00:00", "2020-02-01 00:00:00", "2020-02-01 00:00:01", "2020-03-01 00:00:00")
    times = Bins(bins=ends, step="1s")
    low, high = codec("DATE", DATES), codec("TIMESTAMP", times)
    assert asked("a <= b", low, high) == [[1, 1, 1], [0, 1, 1], [0, 0, 1]]
    assert asked("a < b", low, high) == [[1, 1, 1], [0, 0, 1], [0, 0, 1]]


def test_single_values_and_strict_rules() -> None:
    numbers = codec("INTEGER", Range(range=(1, 4)))
    assert asked("a <= b", numbers, numbers) == [[1, 1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]]
    # the first and the last cell have no end: what lies beyond was put there
    assert asked("a < b", numbers, numbers) == [[1, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1]]


def test_listed_values_are_no_more_than_they_say() -> None:
    listed = codec("INTEGER", Values(values=(1, 2, 5)))
    assert asked("a < b", listed, listed) == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]


def test_decimals_of_other_scales() -> None:
    low = codec("DECIMAL(8,2)", Bins(bins=("0.00", "0.50", "0.75", "1.25")))
    high = codec("DECIMAL(5,1)", Bins(bins=("0.0", "0.5", "0.8", "2.0")))
    assert asked("a <= b", low, high) == [[1, 1, 1], [0, 1, 1], [0, 0, 1]]


def test_open_ends_leave_something_for_each_code() -> None:
    low, high = codec("INTEGER", Bins(bins=(100, 200, 300))), codec("INTEGER", Bins(bins=(0, 10, 20)))
    assert asked("a <= b", low, high) == [[1, 1], [0, 1]]


def test_years_of_dates() -> None:
    low = codec("DATE", Bins(bins=("2019-06-01", "2020-01-01", "2020-07-01", "2022-01-01")))
    high = codec("SMALLINT", Range(range=(2018, 2022)))
    assert asked("YEAR(a) <= b", low, high) == [[1, 1, 1, 1, 1], [0, 0, 1, 1, 1], [0, 0, 1, 1, 1]]


def test_what_has_no_order_is_left_alone() -> None:
    text = codec("VARCHAR", Text(text=(0, 4, 8)))
    assert possible_codes(order("a <= b"), text, text) is None


def test_many_codes_are_asked_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = codec("INTEGER", Range(range=(1, 40)), nullable=True)
    whole = asked("a <= b", numbers, numbers)
    monkeypatch.setattr(possible, "_PAIRS", 100)
    assert asked("a <= b", numbers, numbers) == whole


def edges(kind: str) -> st.SearchStrategy[Domain]:
    numbers = st.lists(st.integers(0, 12), min_size=2, max_size=6, unique=True).map(sorted)
    written = (lambda n: f"{n / 2:.1f}") if kind.startswith("DECIMAL") else (lambda n: n)
    return st.one_of(
        numbers.map(lambda n: Bins(bins=tuple(map(written, n)))),
        numbers.map(lambda n: Values(values=tuple(map(written, n)))),
    )


KINDS = ("INTEGER", "DECIMAL(5,1)")


@given(st.data(), st.sampled_from(["a <= b", "a < b", "a >= b", "a > b"]), st.booleans())
def test_codes_do_not_go_together_only_if_no_values_do(data: Any, rule: str, nullable: bool) -> None:
    kinds = data.draw(st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)))
    found = order(rule)
    codecs = [codec(kind, data.draw(edges(kind)), nullable=nullable) for kind in kinds]
    codes = possible_codes(found, *codecs)
    assert codes is not None
    rng = np.random.default_rng(0)
    values = [c.decode(np.repeat(np.arange(c.size), 40).astype(np.uint16), rng, first_row=0) for c in codecs]
    places = np.array(list(product(range(len(values[0])), range(len(values[1])))))
    rows = {found.low: values[0].take(pa.array(places[:, 0])), found.high: values[1].take(pa.array(places[:, 1]))}
    with RowRules([found.comparison], {name: array.type for name, array in rows.items()}, where="") as rules:
        kept = ~rules.broken(rows)[0].reshape(codecs[0].size, 40, codecs[1].size, 40)
    together = kept.any(axis=(1, 3))
    assert (codes | ~together).all()  # what comes up in rows is possible
    inner = np.ix_(_closed(codecs[0], first=True), _closed(codecs[1], first=False))
    assert np.array_equal(codes[inner], together[inner])


def _closed(of: Codec, *, first: bool) -> list[int]:
    """The codes whose first, or last, value ends their cell."""
    cells = of.size - (of.null_code is not None)
    is_open = type(of).__name__ == "IntervalCodec"
    return [c for c in range(of.size) if not (is_open and c == (0 if first else cells - 1))]
