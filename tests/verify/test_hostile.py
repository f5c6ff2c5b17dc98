"""Whatever a receipt says, there is a verdict, and soon: nothing takes long, exhausts memory or raises."""

import copy
import json
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench_verify.receipt import verify_receipt
from privbench_verify.strict_json import MAX_VALUES, read_json

from ..failing import assert_fails
from .receipts import AGES, Json, Nodes, events, good, good_blocks, rational, receipt, settle
from .test_queries import QUERIES

SECONDS = 2.0
"""Far more than each takes on an idle machine, far less than quadratic work would."""


@pytest.fixture
def quickly() -> Iterator[None]:
    begun = time.process_time()
    yield
    assert time.process_time() - begun < SECONDS


TEXTS: dict[str, tuple[Callable[[], str | bytes], str]] = {
    "very deep lists": (lambda: "[" * 10**6, "nested more than 64 deep"),
    "very deep objects": (lambda: '{"a":' * 10**6, "nested more than 64 deep"),
    "lists 65 deep": (lambda: "[" * 65 + "]" * 65, "nested more than 64 deep"),
    "a long integer": (lambda: "1" * 10**7, "more than 400 digits"),
    "a long negative integer": (lambda: "-" + "1" * 402, "more than 400 digits"),
    "a long float": (lambda: "0." + "1" * 10**7, "more than 400 digits"),
    "a large float": (lambda: "1e999", "too large"),
    "NaN": (lambda: '{"a": NaN}', "NaN is no number"),
    "Infinity": (lambda: "[Infinity]", "Infinity is no number"),
    "minus Infinity": (lambda: "[-Infinity]", "-Infinity is no number"),
    "a key twice": (lambda: '{"epsilon": 1, "a": {"b": 1, "b": 1}}', "'b' stands twice"),
    "a long key twice": (lambda: json.dumps("k" * 10**6).join(["{", ":1,", ":2}"]), "stands twice"),
    "very many values": (lambda: "[" + "[]," * MAX_VALUES + "1]", "more than 20000000 values"),
    "more than fits": (lambda: " " * (2**28 + 1), "larger than 256 MB"),
    "no UTF-8": (lambda: b'"\xff"', "decode"),
    "UTF-16": (lambda: "[1]".encode("utf-16"), "decode"),
    "a byte order mark": (lambda: "\ufeff[1]", "BOM"),
    "no JSON": (lambda: "{1: 2}", "Expecting"),
    "two values": (lambda: "[1] [2]", "Extra data"),
    "nothing": (lambda: "", "Expecting"),
}


@pytest.mark.usefixtures("quickly")
@pytest.mark.parametrize("name", TEXTS)
def test_hostile_json_is_refused(name: str) -> None:
    make, message = TEXTS[name]
    with pytest.raises(ValueError, match=message):
        read_json(make())


def test_what_is_within_the_limits_is_read() -> None:
    for text in ("[" * 64 + "]" * 64, "9" * 400, "-" + "9" * 400, '{"a": [1.5, true, null, "é\\u0000"]}'):
        assert read_json(text) == json.loads(text) == read_json(text.encode())


def test_nothing_that_json_allows_makes_the_reader_raise_something_else() -> None:
    for text in ('"\\ud800"', "[]", "0", "-0", "1E5", '{"": {}}', '"' + "\\u0041" * 1000 + '"'):
        assert read_json(text) == json.loads(text)


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def knot() -> Any:
    """A list that holds itself."""
    value: list[Any] = []
    value.extend([value, value])
    return value


def deep_feature(paper: Json) -> None:
    feature: Json = {"kind": "rank"}
    for _ in range(10**4):
        feature = {"kind": "first", "feature": feature}
    events(paper)[-1]["query"] = {**QUERIES["rank"].query, "axes": [{"bins": 2, "feature": feature}]}


def many_thresholds(paper: Json) -> None:
    """Deltas whose common denominator would grow without end."""
    events(paper)[-1]["parent"] = 0
    primes = [p for p in range(10**4, 2 * 10**4) if all(p % d for d in range(2, 142))]
    for prime in primes:
        paper["ledger"]["nodes"].append({**events(paper)[-1], "delta": f"1/{prime}"})


RECEIPTS: dict[str, tuple[Callable[[Json], Any], str]] = {
    "a huge integer": (lambda r: r["public"]["sizes"].update(person=10**10_000), "more than 400 digits"),
    "a huge negative integer": (lambda r: r["public"]["sizes"].update(person=-(10**10_000)), "more than 400 digits"),
    "a huge rational": (lambda r: r.update(epsilon="1" * 10**7 + "/1"), "of at most 400 characters"),
    "a huge denominator": (lambda r: events(r)[0].update(scale="1/" + "7" * 10**6), "of at most 400 characters"),
    "a charge of a huge denominator": (
        lambda r: events(r)[0].update(epsilon="1/" + "7" * 390),
        "whose denominator does not divide 2**40",
    ),
    "a float": (lambda r: r["public"]["parameters"].update(alpha=0.5), "is a float"),
    "nested deep": (lambda r: r["public"].update(parameters=nested(10**5)), "nested more than 64 deep"),
    "a knot": (lambda r: r["public"].update(parameters=knot()), "nested more than 64 deep"),
    "a deep feature": (deep_feature, "nested more than 64 deep"),
    "keys that are numbers": (lambda r: r["public"]["sizes"].update({7: 1}), "a key that is no text"),
    "a tuple": (lambda r: r["unit"].update(tables=()), "is no value of JSON"),
    "a set": (lambda r: r["unit"].update(tables={1}), "is no value of JSON"),
    "very many nodes": (lambda r: r["ledger"].update(nodes=[None] * 2_000_001), "1 to 2000000 nodes"),
    "a very long name": (lambda r: r["unit"].update(entity="x" * 10**7), "no table of the unit"),
    "very many unknown fields": (lambda r: r.update({str(i): i for i in range(10**5)}), "unknown field"),
    "very many earlier releases": (
        lambda r: r.update(
            earlier=[
                {"receipt": f"{i:064x}", "epsilon": f"1/{10**300 + i}", "delta": "0/1", "neighbours": "replace"}
                for i in range(2000)
            ]
        ),
        "more than 1000",
    ),
    "a long chain of owners": (
        lambda r: r["unit"]["tables"].update(
            {f"t{i}": {**r["unit"]["tables"]["item"], "owner": f"t{i + 1}"} for i in range(20_000)}
        ),
        "no owner table in the unit",
    ),
    "a long circle of owners": (
        lambda r: r["unit"]["tables"].update(
            {f"t{i}": {**r["unit"]["tables"]["item"], "owner": f"t{(i + 1) % 20_000}"} for i in range(20_000)}
        ),
        "go round in a circle",
    ),
    "draws of very many digits": (lambda r: events(r)[0].update(draws=10**399), "but the query has 1"),
}


@pytest.mark.usefixtures("quickly")
@pytest.mark.parametrize("name", RECEIPTS)
def test_a_hostile_receipt_is_refused(name: str) -> None:
    change, message = RECEIPTS[name]
    paper = good_blocks()
    change(paper)
    verdict = verify_receipt(paper)
    assert_fails(verdict, message)
    assert max(map(len, verdict.problems)) < 600


@pytest.mark.usefixtures("quickly")
def test_the_common_denominator_of_deltas_is_limited() -> None:
    paper = good(QUERIES["heavy hitters by votes"], measure="rho")
    many_thresholds(paper)
    assert_fails(verify_receipt(paper), "no common denominator of less than 400 digits")


def test_the_number_of_thresholds_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    paper = good(*[QUERIES["heavy hitters by votes"]] * 3, measure="rho")
    assert verify_receipt(paper).status == "verified"
    monkeypatch.setattr("privbench_verify.tree.MAX_THRESHOLDS", 2)
    assert_fails(verify_receipt(paper), "more than 2 thresholds")


@pytest.mark.usefixtures("quickly")
def test_many_honest_thresholds_are_no_trouble() -> None:
    nodes = Nodes("rho")
    for _ in range(2_000):
        nodes.nodes.append(
            {**QUERIES["heavy hitters by votes"].event("rho", "replace"), "parent": 0, "scale": "65536/1"}
        )
        nodes.nodes[-1].update(threshold=65536 * 8, delta="1/100000000000000", rho=rational(Fraction(2, 2**33)))
    assert verify_receipt(receipt(nodes)).status == "verified"


@pytest.mark.usefixtures("quickly")
def test_many_honest_events_are_no_trouble() -> None:
    nodes = Nodes()
    for _ in range(5_000):
        nodes.nodes.append({**AGES.event("epsilon", "replace"), "parent": 0, "scale": "65536/1", "epsilon": "1/65536"})
    assert verify_receipt(receipt(nodes)).status == "verified"


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=4)
    | st.sampled_from(
        ["1/2", "0/1", "9" * 390 + "/1", "1/" + "9" * 390, "event", "part", "person", "histogram", 10**399]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
PAPERS = [good_blocks(), good(QUERIES["heavy hitters by votes"], QUERIES["two in-degrees"], measure="rho")]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_receipt_makes_the_verifier_raise(data: st.DataObject) -> None:
    paper: Any = copy.deepcopy(data.draw(st.sampled_from(PAPERS)))
    holder, key = {"": paper}, ""
    for _ in range(data.draw(st.integers(1, 9))):
        inside = holder[key]
        if not isinstance(inside, dict | list) or not inside:
            break
        holder = inside
        key = data.draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
    holder[key] = data.draw(junk)
    assert verify_receipt(paper).status in ("verified", "conditional", "unverified", "failed")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60) | st.recursive(junk, st.lists).map(json.dumps))
def test_no_text_makes_the_reader_raise_anything_but_value_errors(text: str | bytes) -> None:
    try:
        verify_receipt(read_json(text))
    except ValueError:
        return


def test_totals_are_exact_whatever_their_order() -> None:
    """A third of the events at a time: sums of integers do not drift."""
    paper = good(*[AGES] * 30)
    for i, event in enumerate(events(paper)[3:]):
        event["epsilon"] = rational(Fraction(2**30 + i, 2**40))
    assert verify_receipt(settle(paper)).spent == 2 * sum(
        (Fraction(event["epsilon"]) for event in events(paper)), Fraction(0)
    )
