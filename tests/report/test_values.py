"""What the page says, without a browser: verdicts, shares of real columns, the bars of the budget."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.encode.codec import Codec, compile_codec
from privbench.encode.predicate import Between, In, IsNull, Predicate, Prefix
from privbench.errors import SpecError
from privbench.evaluation.metrics import Limits, distance_metrics, query_metrics
from privbench.evaluation.result import (
    Bin,
    BinKind,
    Distance,
    Histogram,
    Marginals,
    Measure,
    Quantiles,
    Summary,
    TableResult,
)
from privbench.report.heat import MAX_NODES, network, read_queries, real_share
from privbench.report.ledger import budget_bars
from privbench.report.public import read_public
from privbench.report.summary import Grade, grade_measure, judge_queries, judge_table
from privbench.schema.domain import Range, Scalar, Values
from privbench.schema.types import parse_type
from privbench.spn.nodes import Leaf, Product, Sum, walk

from .conftest import Shop

AGES = compile_codec("t.age", parse_type("SMALLINT"), nullable=True, domain=Range(range=(0, 19)))
CITIES = compile_codec("t.city", parse_type("VARCHAR"), nullable=False, domain=Values(values=("Bern", "Rom", "Ulm")))


[TVD] = [m for m in distance_metrics() if m.name == "tvd"]
[Q_ERROR] = query_metrics()
NULL = Bin(kind=BinKind.NULL)


def value(of: Scalar) -> Bin:
    return Bin(kind=BinKind.VALUE, low=of)


def span(low: Scalar, high: Scalar | None) -> Bin:
    return Bin(kind=BinKind.RANGE, low=low, high=high)


def shares(
    counts: dict[Bin, int], predicates: list[Predicate], codec: Codec, model: list[float] | None = None
) -> object:
    histogram = Histogram(bins=tuple(counts), real=tuple(counts.values()), synthetic=(0,) * len(counts))
    of_model = np.full(codec.size, 1 / codec.size) if model is None else np.array(model)
    return real_share(histogram, predicates, codec=codec, shares=of_model)


@pytest.mark.parametrize(
    ("predicates", "expected"),
    [
        ([Between(high=4)], 0.25),
        ([Between(high=4, include_high=False)], 0.2),
        ([Between(low=5), Between(high=7)], 0.15),
        ([In(values=(10,))], 0.25),
        ([In(values=(3, 77))], 0.05),
        ([IsNull()], 0.25),
        ([IsNull(negated=True)], 0.75),
        ([Between(low=15)], 0.0),
    ],
)
def test_shares_of_numbers(predicates: list[Predicate], expected: float) -> None:
    assert shares({span(0, 9): 10, value(10): 5, NULL: 5}, predicates, AGES) == pytest.approx(expected)


def test_inside_a_bin_rows_lie_as_in_the_model() -> None:
    mostly_zero = [0.9, *[0.1 / 20] * 20]
    assert shares({span(0, 19): 7}, [In(values=(0,))], AGES, mostly_zero) == pytest.approx(
        0.9 / (1 - 0.1 / 20), abs=1e-3
    )


def test_shares_of_strings() -> None:
    ulm, bern, rest = value("Ulm"), value("Bern"), Bin(kind=BinKind.REST, values=2)
    assert shares({ulm: 30, bern: 10}, [In(values=("Ulm",))], CITIES) == pytest.approx(0.75)
    assert shares({ulm: 30, bern: 10}, [Prefix(text="B")], CITIES) == pytest.approx(0.25)
    assert shares({ulm: 30, rest: 10}, [In(values=("Rom",))], CITIES) == pytest.approx(0.125)
    beginning = Bin(kind=BinKind.PREFIX, low="Be")
    assert shares({ulm: 30, beginning: 10}, [In(values=("Bern",))], CITIES) == pytest.approx(0.25)


@pytest.mark.parametrize("name", ["1 to 2", "NULL", "7 other values", "length 3", "Be…", "NaN", "true"])
def test_a_string_that_reads_like_a_bin_is_a_string(name: str) -> None:
    codec = compile_codec("t.c", parse_type("VARCHAR"), nullable=True, domain=Values(values=(name, "Ulm")))
    assert shares({value(name): 30, value("Ulm"): 10}, [In(values=(name,))], codec) == pytest.approx(0.75)
    assert shares({value(name): 30, value("Ulm"): 10}, [IsNull()], codec) == 0


def test_ranges_without_an_end() -> None:
    for high in (None, "NaN", "Infinity"):
        assert shares({span(0, 9): 10, span(10, high): 10}, [Between(low=15)], AGES) == pytest.approx(0.25)
    assert shares({span("-Infinity", 9): 10, span(10, 19): 10}, [Between(high=4)], AGES) == pytest.approx(0.25)


def test_shares_that_are_not_known() -> None:
    lengths = {Bin(kind=BinKind.LENGTH, low=3, high=5): 4, Bin(kind=BinKind.LENGTH, low=6, high=6): 1}
    assert shares(lengths, [In(values=("abc",))], CITIES) is None
    assert shares({value("NaN"): 3}, [In(values=(3,))], AGES) is None
    assert shares({}, [IsNull()], AGES) is None


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_smaller_distance_is_never_graded_worse(one: float, other: float) -> None:
    order = list(Grade)
    worse, better = max(one, other), min(one, other)
    similarity = replace(TVD, best=1.0, worst=0.0, limits=Limits(close=0.95, fair=0.8))
    for floor in (None, 0.01):
        grades = [order.index(grade_measure(TVD, Measure(value=v, floor=floor))) for v in (better, worse)]
        assert grades[0] <= grades[1]
        mirrored = None if floor is None else 1 - floor
        grades = [order.index(grade_measure(similarity, Measure(value=1 - v, floor=mirrored))) for v in (better, worse)]
        assert grades[0] <= grades[1]


def test_a_metric_without_limits_is_not_graded() -> None:
    assert grade_measure(replace(TVD, limits=None), Measure(value=0.9, floor=0.1)) is Grade.UNKNOWN


def test_verdicts_say_what_is_missing() -> None:
    gone = TableResult(name="t", private=True, real_rows=3, synthetic_rows=None)
    assert judge_table(gone).word == "missing"
    assert judge_table(TableResult(name="t", private=True, real_rows=3, synthetic_rows=3)).grade is Grade.UNKNOWN
    assert judge_table(TableResult(name="t", private=False, real_rows=3, synthetic_rows=3)).word == "public"


@pytest.mark.parametrize(
    ("real", "synthetic", "told"),
    [
        (1000, 1019, None),
        (1000, 1370, "It has 37 % more rows."),
        (1000, 900, "It has 10 % fewer rows."),
        (1000, 10_000, "It has 10,000 rows instead of 1,000."),
        (1000, 0, "It has 0 rows instead of 1,000."),
        (0, 7, "It has 7 rows instead of 0."),
        (0, 0, None),
    ],
)
def test_a_verdict_tells_of_rows_too_many_or_too_few(real: int, synthetic: int, told: str | None) -> None:
    same = Distance(values=Measure(value=0.01), codes=Measure(value=0.01))
    pairs = Marginals(ways=2, counted=1, total=1, distances={m.name: same for m in distance_metrics()})
    table = TableResult(name="t", private=True, real_rows=real, synthetic_rows=synthetic, marginals=(pairs,))
    sentence = judge_table(table).sentence
    assert sentence.endswith(told) if told else "It has" not in sentence


def test_queries_are_judged_by_median_and_tail() -> None:
    def errors(median: float, p95: float) -> Quantiles:
        return Quantiles(queries=9, mean=2, median=median, p75=2, p90=2, p95=p95, p99=p95, max=p95)

    def grade(median: float, p95: float, floor: Quantiles | None = None) -> Grade:
        return judge_queries(Q_ERROR, Summary(errors=errors(median, p95), floor=floor, cardinalities=(1, 9))).grade

    assert grade(1.1, 2) is Grade.CLOSE
    assert grade(1.1, 30) is Grade.FAIR
    assert grade(1.1, 3000) is Grade.FAR
    assert grade(1.1, 2, errors(1.1, 1.9)) is Grade.FLOOR


def test_the_bars_of_the_budget_add_up(shop: Shop) -> None:
    root = budget_bars(shop.model.receipt)
    assert root.cost == Fraction(shop.model.receipt["ledger"]["total"])
    assert sum((bar.cost for bar in root.below), Fraction(0)) == root.cost
    waiting = [root]
    while waiting:
        bar = waiting.pop()
        assert sum((b.cost for b in bar.below), Fraction(0)) == bar.cost or not bar.below
        waiting += bar.below


COUNT = {"kind": "histogram", "table": "t", "counts": "rows", "axes": []}


def test_parallel_blocks_cost_their_maximum() -> None:
    def event(parent: int, epsilon: str) -> dict[str, object]:
        return {"kind": "event", "parent": parent, "query": COUNT, "epsilon": epsilon}

    nodes = [
        {"kind": "sequence", "parent": None, "label": "database", "total": "3/1"},
        {"kind": "partition", "parent": 0, "total": "3/1"},
        {"kind": "part", "parent": 1, "total": "1/1"},
        {"kind": "part", "parent": 1, "total": "3/1"},
        event(2, "1/1"),
        event(3, "1/1"),
        event(3, "2/1"),
    ]
    [blocks] = budget_bars({"ledger": {"nodes": nodes}}).below
    assert (blocks.label, blocks.cost) == ("2 blocks in parallel", 3)
    assert [(b.label, b.cost) for b in blocks.below] == [("t: number of rows × 2", 3)]


def test_a_large_network_is_cut_and_says_so() -> None:
    leaf = Leaf(column="a", counts=[1.0, 2.0])
    node: Leaf | Product | Sum = leaf
    for _ in range(9):
        node = Sum(children=(node, Leaf(column="a", counts=[1.0, 2.0])), weights=[0.5, 0.5])
    wide = Sum(
        children=tuple(Sum(children=(node, leaf), weights=[0.5, 0.5]) for _ in range(150)), weights=[1 / 150] * 150
    )
    drawn = network(wide)
    assert len(drawn) <= MAX_NODES < sum(1 for _ in walk(wide))
    assert any(n["k"] == "cut" and n["t"].endswith("more nodes") for n in drawn)
    assert all(child < len(drawn) for n in drawn for child in n.get("c", []))


def test_queries_outside_the_class_are_not_offered(shop: Shop) -> None:
    offered = {s.number for s in read_queries(shop.model, shop.result.queries) if s.query is not None}
    assert {1, 2, 3, 4} <= offered


def test_a_publishable_page_needs_a_bundle_of_the_model(shop: Shop, tmp_path: object) -> None:
    with pytest.raises(SpecError, match="no bundle"):
        read_public(str(tmp_path), model=shop.model)
