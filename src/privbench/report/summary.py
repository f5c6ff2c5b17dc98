"""The parts of the page that are text: the banner, the verdicts, the figures, and the queries that went worst.

A verdict judges figures beside their floor, what a resample of the real data would score. It goes by the metrics that
have limits; all metrics are listed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from html import escape

from privbench.evaluation.metrics import (
    Limits,
    Metric,
    Plot,
    QueryMetric,
    Unit,
    distance_metrics,
    query_metrics,
)
from privbench.evaluation.result import Measure, QueryResult, Result, Summary, TableResult
from privbench.report.page import section, table

WORST = 15
FAILED = 20

BANNER = (
    '<div class="banner" role="alert"><b>Contains exact facts of the private data, not for publishing.</b> '
    "Counts, value ranges and literals of queries on this page are real. "
    "<code>--publishable</code> writes a page that you can give away.</div>"
)


class Grade(Enum):
    """How good a figure is; the value is a class of the style sheet."""

    FLOOR = "best"
    CLOSE = "good"
    FAIR = "fair"
    FAR = "poor"
    UNKNOWN = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A grade, its word, and the sentence that explains it."""

    grade: Grade
    word: str
    sentence: str


WORDS = {
    Grade.FLOOR: "at its floor",
    Grade.CLOSE: "close",
    Grade.FAIR: "recognisable",
    Grade.FAR: "far off",
    Grade.UNKNOWN: "not measured",
}
_NEAR_FLOOR = 1.5
"""Up to this many times the floor, a figure cannot be told from sampling noise."""
_WORTH_A_WORD, _WORTH_A_FACTOR = 0.02, 2
"""Up to this share of rows too many or too few nothing is said of it; from this factor on, both numbers."""
_ORDER = (Grade.UNKNOWN, Grade.FLOOR, Grade.CLOSE, Grade.FAIR, Grade.FAR)
_JUDGED = {1: "single columns", 2: "pairs of columns"}


def summary_section(result: Result) -> str:
    """Verdicts in words, one for each table, the keys and the queries."""
    lead = (
        f"<b>{escape(result.synthetic)}</b> beside <b>{escape(result.real)}</b>. Each figure stands beside its floor: "
        "what a resample of the real data itself would score. A figure near its floor cannot be told from chance."
    )
    cards = [verdict_card(f"table {t.name}", _rows(t), judge_table(t)) for t in result.tables]
    if (keys := judge_keys(result)) is not None:
        cards.append(verdict_card("Keys between tables", _many(len(result.keys), "foreign key"), keys))
    for metric in query_metrics():
        summary = result.workload.get(metric.name)
        if summary is not None and summary.all is not None and metric.limits is not None:
            failed = f", {summary.failed} failed" if summary.failed else ""
            about = f"{summary.all.errors.queries:,} answered{failed}"
            cards.append(verdict_card(f"Queries, {metric.label}", about, judge_queries(metric, summary.all)))
    body = f'<div class="cards">{"".join(cards)}</div>{_figures(result)}{_skips(result)}'
    return section("summary", "In short", lead, body)


def query_section(result: Result, metric: QueryMetric) -> str:
    """One metric of queries: a place for its plot, the table by joins, and the worst queries."""
    summary = result.workload[metric.name]
    lead = (
        f"{escape(metric.label)}: {escape(metric.description)}; {shown(metric, metric.best)} is perfect. "
        "A curve that rises earlier is better. The dashed one is a resample of the real data."
    )
    parts = (
        {"all": summary.all} | {_many(n, "join"): s for n, s in summary.by_joins.items()} | dict(summary.by_cardinality)
    )
    head = ("queries", "number", "median", "p75", "p90", "p95", "p99", "max", "mean", "median of a resample")
    by_part = table(head, [_quantiles(metric, name, part) for name, part in parts.items() if part is not None])
    listed = table(
        ("#", escape(metric.label), "resample", "real", "synthetic", "query"),
        [
            (
                str(q.number),
                shown(metric, q.figures[metric.name].value),
                shown(metric, q.figures[metric.name].floor),
                _count(q.real),
                _count(q.synthetic),
                _code(q.sql),
            )
            for q in worst_first(result.queries, metric)[:WORST]
        ],
        numbers=0,
    )
    curves = f'<div class="curves" data-metric="{metric.name}"></div>' if Plot.CURVES in metric.plots else ""
    body = f'{curves}{by_part}<h3>The worst queries</h3><div class="worst">{listed}</div>{_failed(result.queries)}'
    return section(f"queries-{metric.name}", f"Do queries count the same? {metric.label}", lead, body)


def worst_first(queries: Iterable[QueryResult], metric: QueryMetric) -> list[QueryResult]:
    """The answered queries, those that are furthest from the best figure first."""
    answered = [(metric.excess(value), q) for q in queries if (value := q.figures[metric.name].value) is not None]
    return [q for _, q in sorted(answered, key=lambda pair: -pair[0])]


def judge_table(result: TableResult) -> Verdict:
    """The verdict on one table: the worst of its single columns and its pairs of columns."""
    if result.synthetic_rows is None:
        return Verdict(grade=Grade.FAR, word="missing", sentence="The synthetic database does not have this table.")
    if not result.private:
        return Verdict(grade=Grade.FLOOR, word="public", sentence="A public table, which is not protected.")
    by_ways = {m.ways: m.distances for m in result.marginals}
    judged = [
        (name, metric, by_ways[ways][metric.name].codes)
        for ways, name in _JUDGED.items()
        for metric in distance_metrics()
        if ways in by_ways and metric.limits is not None
    ]
    known = [(name, metric, measure) for name, metric, measure in judged if measure.value is not None]
    if not known:
        return Verdict(grade=Grade.UNKNOWN, word=WORDS[Grade.UNKNOWN], sentence="It has no columns to compare.")
    grade = _worst(grade_measure(metric, measure) for _, metric, measure in known)
    sentences = [_sentence(name, metric, measure, what="rows") for name, metric, measure in known]
    sentences += _row_difference(result.real_rows, result.synthetic_rows)
    return Verdict(grade=grade, word=WORDS[grade], sentence=" ".join(sentences))


def judge_keys(result: Result) -> Verdict | None:
    """The verdict on the numbers of children per parent; None without keys."""
    judged = [
        (metric, measure)
        for metric in distance_metrics()
        if metric.limits is not None and (measure := result.fanouts[metric.name]).value is not None
    ]
    if not judged:
        return None
    grade = _worst(grade_measure(metric, measure) for metric, measure in judged)
    sentences = [_sentence("children per parent", metric, measure, what="parents") for metric, measure in judged]
    return Verdict(grade=grade, word=WORDS[grade], sentence=" ".join(sentences))


def judge_queries(metric: QueryMetric, summary: Summary) -> Verdict:
    """The verdict on a workload, by the median and the 95th percentile of a metric."""
    errors, floor = summary.errors, summary.floor
    if floor is not None and _near_floor(metric, errors.p95, floor.p95):
        grade = Grade.FLOOR
    else:
        grade = _worst((_within(metric, metric.limits, errors.median), _within(metric, metric.tail_limits, errors.p95)))
    best = "" if floor is None else f" (a resample: {shown(metric, floor.median)} and {shown(metric, floor.p95)})"
    median = metric.reading.format(value=shown(metric, errors.median), what="rows")
    return Verdict(
        grade=grade,
        word=WORDS[grade],
        sentence=f"Half of the {errors.queries:,} queries are {median}, the {metric.label} of 95 % is at most "
        f"{shown(metric, errors.p95)}{best}, that of the worst is {shown(metric, errors.max)}.",
    )


def grade_measure(metric: Metric, measure: Measure) -> Grade:
    """The grade of a figure; unknown for a metric without limits.

    >>> tvd = next(m for m in distance_metrics() if m.name == "tvd")
    >>> grade_measure(tvd, Measure(value=0.03, floor=0.001)), grade_measure(tvd, Measure(value=0.03, floor=0.025))
    (<Grade.CLOSE: 'good'>, <Grade.FLOOR: 'best'>)
    """
    if measure.value is None or metric.limits is None:
        return Grade.UNKNOWN
    if measure.floor is not None and _near_floor(metric, measure.value, measure.floor):
        return Grade.FLOOR
    return _within(metric, metric.limits, measure.value)


def _near_floor(metric: Metric, value: float, floor: float) -> bool:
    return metric.excess(value) <= _NEAR_FLOOR * metric.excess(floor)


def _within(metric: Metric, limits: Limits | None, value: float) -> Grade:
    if limits is None:
        return Grade.UNKNOWN
    excess = metric.excess(value)
    if excess <= metric.excess(limits.close):
        return Grade.CLOSE
    return Grade.FAIR if excess <= metric.excess(limits.fair) else Grade.FAR


def _worst(grades: Iterable[Grade]) -> Grade:
    return max(grades, key=_ORDER.index)


def shown(metric: Metric, value: float | None) -> str:
    """A figure as people read it."""
    if value is None:
        return "–"
    match metric.unit:
        case Unit.SHARE:
            return percent(value)
        case Unit.FACTOR:
            return times(value)
        case _:
            return f"{value:.4g}"


def percent(share: float) -> str:
    """A share as people read it.

    >>> percent(0.1234), percent(0.00056), percent(0.0)
    ('12 %', '0.056 %', '0 %')
    """
    return f"{100 * share:.2g} %" if share < 0.0995 else f"{100 * share:.0f} %"


def times(factor: float) -> str:
    """A factor with as many digits as matter."""
    return f"{factor:.2f}" if factor < 10 else f"{factor:,.0f}"


def _row_difference(real: int, synthetic: int) -> list[str]:
    """How many rows there are too many or too few, where that is worth mentioning."""
    if abs(synthetic - real) <= _WORTH_A_WORD * real:
        return []
    if not real or not _WORTH_A_FACTOR > synthetic / real > 1 / _WORTH_A_FACTOR:
        return [f"It has {synthetic:,} rows instead of {real:,}."]
    return [f"It has {percent(abs(synthetic / real - 1))} {'more' if synthetic > real else 'fewer'} rows."]


def _sentence(name: str, metric: Metric, measure: Measure, *, what: str) -> str:
    best = "" if measure.floor is None else f" ({shown(metric, measure.floor)} in a resample)"
    return f"{name.capitalize()}: {metric.reading.format(value=shown(metric, measure.value), what=what)}{best}."


def _failed(queries: tuple[QueryResult, ...]) -> str:
    failed = [q for q in queries if q.error is not None]
    if not failed:
        return ""
    rows = [(str(q.number), escape(q.error or ""), _code(q.sql)) for q in failed[:FAILED]]
    more = f" ({FAILED} are shown)" if len(failed) > FAILED else ""
    inner = table(("#", "why", "query"), rows, numbers=9)
    return f"<details><summary>{len(failed)} queries without an answer on both sides{more}</summary>{inner}</details>"


def verdict_card(name: str, about: str, verdict: Verdict) -> str:
    """A verdict with its name above and what it is about below."""
    return (
        f'<div class="card {verdict.grade.value}"><h3>{escape(name)}</h3>'
        f'<span class="chip">{escape(verdict.word)}</span>'
        f'<p>{escape(verdict.sentence)}</p><p class="note">{escape(about)}</p></div>'
    )


def _rows(result: TableResult) -> str:
    other = "not there" if result.synthetic_rows is None else f"{result.synthetic_rows:,}"
    return f"{result.real_rows:,} real rows, synthetic: {other}"


def _figures(result: Result) -> str:
    rows = [(escape(name), *cells) for name, *cells in _measures(result)]
    head = ("figure", "on codes", "floor", "on values", "floor")
    return f"<details><summary>All figures</summary>{table(head, rows)}</details>"


def _measures(result: Result) -> Iterator[tuple[str, str, str, str, str]]:
    labels = {m.name: f"{m.label} (nats)" if m.unit is Unit.NATS else m.label for m in distance_metrics()}
    for ways, distances in result.marginals.items():
        for name, distance in distances.items():
            yield (f"{ways}-way {labels[name]}", *_cells(distance.codes), *_cells(distance.values))
    if result.keys:
        for name, distance in result.cross.items():
            yield (f"parent-child {labels[name]}", *_cells(distance.codes), *_cells(distance.values))
        for name, measure in result.fanouts.items():
            yield (f"fanout {labels[name]}", *_cells(measure), "", "")


def _cells(measure: Measure) -> tuple[str, str]:
    return _figure(measure.value), _figure(measure.floor)


def _skips(result: Result) -> str:
    if not result.skips:
        return ""
    items = "".join(f"<li><b>{escape(s.what)}</b>: {escape(s.reason)}</li>" for s in result.skips)
    return f"<details><summary>Left out, or good to know ({len(result.skips)})</summary><ul>{items}</ul></details>"


def _quantiles(metric: QueryMetric, name: str, summary: Summary) -> tuple[str, ...]:
    e = summary.errors
    figures = [shown(metric, v) for v in (e.median, e.p75, e.p90, e.p95, e.p99, e.max, e.mean)]
    floor = shown(metric, None if summary.floor is None else summary.floor.median)
    return (escape(name), f"{e.queries:,}", *figures, floor)


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _code(sql: str) -> str:
    return f"<code>{escape(sql)}</code>"


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
