"""The parts of the page that are text: the banner, the verdicts, the figures, and the queries that went worst."""

from collections.abc import Iterator
from html import escape

from privbench.evaluation.result import Measure, QErrors, QueryResult, Result, Summary, TableResult
from privbench.report.page import section, table
from privbench.report.verdict import Verdict, judge_fanout, judge_queries, judge_table, times

WORST = 15
FAILED = 20

BANNER = (
    '<div class="banner" role="alert"><b>Contains exact facts of the private data, not for publishing.</b> '
    "Counts, value ranges and literals of queries on this page are real. "
    "<code>--publishable</code> writes a page that you can give away.</div>"
)


def summary_section(result: Result) -> str:
    """Verdicts in words, one for each table, the keys and the queries."""
    lead = (
        f"<b>{escape(result.synthetic)}</b> beside <b>{escape(result.real)}</b>. Each figure stands beside its floor: "
        "what a resample of the real data itself would score. A figure near its floor cannot be told from chance."
    )
    cards = [_card(f"table {t.name}", _rows(t), judge_table(t)) for t in result.tables]
    if (fanout := judge_fanout(result)) is not None:
        cards.append(_card("Keys between tables", _many(len(result.keys), "foreign key"), fanout))
    if result.q_errors is not None and result.q_errors.all is not None:
        failed = f", {result.q_errors.failed} failed" if result.q_errors.failed else ""
        about = f"{result.q_errors.all.errors.queries:,} answered{failed}"
        cards.append(_card("Queries", about, judge_queries(result.q_errors.all)))
    body = f'<div class="cards">{"".join(cards)}</div>{_figures(result)}{_skips(result)}'
    return section("summary", "In short", lead, body)


def query_section(queries: tuple[QueryResult, ...], errors: QErrors) -> str:
    """Q-errors: a place for the plot, the table by joins, and the worst queries."""
    lead = (
        "The Q-error of a query is how many times its count is too large or too small; 1 is perfect. "
        "A curve that rises earlier is better. The dashed one is a resample of the real data."
    )
    parts = (
        {"all": errors.all} | {_many(n, "join"): s for n, s in errors.by_joins.items()} | dict(errors.by_cardinality)
    )
    head = ("queries", "number", "median", "p75", "p90", "p95", "p99", "max", "mean", "median of a resample")
    by_part = table(head, [_quantiles(name, s) for name, s in parts.items() if s is not None])
    worst = sorted((q for q in queries if q.q_error is not None), key=lambda q: -(q.q_error or 0))[:WORST]
    listed = table(
        ("#", "Q-error", "resample", "real", "synthetic", "query"),
        [
            (str(q.number), times(q.q_error or 1), _times(q.floor), _count(q.real), _count(q.synthetic), _code(q.sql))
            for q in worst
        ],
        numbers=0,
    )
    body = (
        f'<div id="ecdf"></div>{by_part}<h3>The worst queries</h3><div class="worst">{listed}</div>{_failed(queries)}'
    )
    return section("queries", "Do queries count the same?", lead, body)


def _failed(queries: tuple[QueryResult, ...]) -> str:
    failed = [q for q in queries if q.error is not None]
    if not failed:
        return ""
    rows = [(str(q.number), escape(q.error or ""), _code(q.sql)) for q in failed[:FAILED]]
    more = f" ({FAILED} are shown)" if len(failed) > FAILED else ""
    inner = table(("#", "why", "query"), rows, numbers=9)
    return f"<details><summary>{len(failed)} queries without an answer on both sides{more}</summary>{inner}</details>"


def _card(name: str, about: str, verdict: Verdict) -> str:
    return (
        f'<div class="card {verdict.grade.value}"><h3>{escape(name)}</h3>'
        f'<span class="chip">{escape(verdict.word)}</span>'
        f'<p>{escape(verdict.sentence)}</p><p class="note">{escape(about)}</p></div>'
    )


def _rows(found: TableResult) -> str:
    other = "not there" if found.synthetic_rows is None else f"{found.synthetic_rows:,}"
    return f"{found.real_rows:,} real rows, synthetic: {other}"


def _figures(result: Result) -> str:
    rows = [(escape(name), *cells) for name, *cells in _measures(result)]
    head = ("figure", "on codes", "floor", "on values", "floor")
    return f"<details><summary>All figures</summary>{table(head, rows)}</details>"


def _measures(result: Result) -> Iterator[tuple[str, str, str, str, str]]:
    for ways, found in result.marginals.items():
        yield (f"{ways}-way KLD (nats)", *_cells(found.kld_codes), *_cells(found.kld_values))
        yield (f"{ways}-way TVD", *_cells(found.tvd_codes), *_cells(found.tvd_values))
    if result.keys:
        yield ("parent-child KLD (nats)", *_cells(result.cross.kld_codes), *_cells(result.cross.kld_values))
        yield ("parent-child TVD", *_cells(result.cross.tvd_codes), *_cells(result.cross.tvd_values))
        yield ("fanout KLD (nats)", *_cells(result.fanout_kld), "", "")
        yield ("fanout TVD", *_cells(result.fanout_tvd), "", "")


def _cells(measure: Measure) -> tuple[str, str]:
    return _figure(measure.value), _figure(measure.floor)


def _skips(result: Result) -> str:
    if not result.skips:
        return ""
    items = "".join(f"<li><b>{escape(s.what)}</b>: {escape(s.reason)}</li>" for s in result.skips)
    return f"<details><summary>Left out, or good to know ({len(result.skips)})</summary><ul>{items}</ul></details>"


def _quantiles(name: str, summary: Summary) -> tuple[str, ...]:
    e = summary.errors
    figures = [times(v) for v in (e.median, e.p75, e.p90, e.p95, e.p99, e.max, e.mean)]
    return (escape(name), f"{e.queries:,}", *figures, "–" if summary.floor is None else times(summary.floor.median))


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _code(sql: str) -> str:
    return f"<code>{escape(sql)}</code>"


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _times(value: float | None) -> str:
    return "–" if value is None else times(value)


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
