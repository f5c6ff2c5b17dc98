"""The report: one page that shows how close a synthetic database came, or (publishable) what a model holds.

Start reading here. The text parts are HTML made in Python; the plots are drawn by `report.js` from JSON, whose keys
both pages share.
"""

from collections.abc import Mapping
from html import escape
from typing import Any

from privbench.evaluation.metrics import Plot, distance_metrics, plotted, query_metrics
from privbench.evaluation.result import ColumnResult, KeyResult, Measure, QueryResult, Result, TableResult
from privbench.model.model import Model
from privbench.report.heat import heat_data, read_queries
from privbench.report.ledger import ledger_section
from privbench.report.page import measure_data, metric_data, page, plot_data, rounded, section
from privbench.report.public import Public
from privbench.report.rules import rules_section
from privbench.report.runtime import runtime_data, runtime_section
from privbench.report.summary import BANNER, grade_measure, query_section, summary_section

_NO_MODEL = '<p class="empty">Give the model (<code>--model</code>) to see this.</p>'


def render_report(result: Result, *, model: Model | None) -> str:
    """The publisher's page: exact facts of the private data, not for publishing."""
    sections = [_header("How close is the synthetic database?", BANNER), summary_section(result), _columns(), _pairs()]
    if result.keys:
        sections.append(_fanouts())
    if result.rules:
        sections.append(rules_section(result))
    sections += [query_section(result, metric) for metric in query_metrics() if metric.name in result.workload]
    if model is None:
        sections.append(section("ledger", "Where the privacy budget went", "", _NO_MODEL))
        sections.append(section("heat", "Query heat map", "", _NO_MODEL))
    else:
        sections += [_heat(real=True), ledger_section(model.receipt)]
    sections.append(runtime_section(result.runtime))
    return page("PrivBench report (private)", sections, result_data(result, model))


def render_public(public: Public, *, model: Model) -> str:
    """The publishable page: it is made from the model and the synthetic data alone."""
    banner = (
        '<div class="banner public" role="note"><b>Made from the model and the synthetic data alone.</b> '
        "It can be published with them: nothing on this page was read from the private data.</div>"
    )
    names = ", ".join(f"{escape(name)} ({rows:,} rows)" for name, rows in public.rows.items())
    lead = f"<b>{escape(public.location)}</b> holds {names}. It was drawn from a model of {len(model.tables)} tables."
    sections = [
        _header("What the synthetic database holds", banner),
        section("summary", "In short", lead, ""),
        _columns(),
    ]
    if public.keys:
        sections.append(_fanouts(legend=""))
    sections += [_heat(real=False), ledger_section(model.receipt)]
    data = {
        "sides": ["model", "synthetic"],
        "metrics": metric_data(),
        "tables": [dict(t) for t in public.tables],
        "keys": [dict(k) for k in public.keys],
        "queries": [],
        **heat_data(model, public.statements, None),
    }
    return page("PrivBench report", sections, data)


def result_data(result: Result, model: Model | None) -> dict[str, Any]:
    """Everything that is drawn of an evaluation."""
    return {
        "sides": ["real", "synthetic"],
        "metrics": metric_data(),
        "tables": [_table(t) for t in result.tables if t.columns],
        "keys": [_key(k) for k in result.keys],
        "queries": [_query(q) for q in result.queries if q.error is None],
        **({} if model is None else _heat_of(result, model)),
        **runtime_data(result.runtime),
    }


def _heat_of(result: Result, model: Model) -> dict[str, Any]:
    """The networks and queries, with what the evaluation says of these."""
    data = heat_data(model, read_queries(model, result.queries), result)
    by_number = {q.number: q for q in result.queries}
    for heat in data["heat"]:
        query = by_number[heat["n"]]
        if len(heat["trees"]) == 1 and query.joins == 0:
            heat["trees"][0]["truth"] = _share(result, heat["trees"][0]["table"], query.real)
        heat.update(_query(query))
    return data


def _query(query: QueryResult) -> dict[str, Any]:
    return {
        "n": query.number,
        "joins": query.joins,
        "real": query.real,
        "synthetic": query.synthetic,
        "values": {name: rounded(measure.value) for name, measure in query.figures.items()},
        "floors": {name: rounded(measure.floor) for name, measure in query.figures.items()},
    }


def _table(table: TableResult) -> dict[str, Any]:
    return {
        "name": table.name,
        "columns": [_column(c) for c in table.columns],
        "pairs": {name: [[rounded(v) for v in row] for row in matrix] for name, matrix in table.pairs.items()},
    }


def _column(column: ColumnResult) -> dict[str, Any]:
    same = column.real_type == column.synthetic_type
    kind = column.real_type if same else f"{column.real_type} / {column.synthetic_type}"
    distinct = f"{column.real_distinct:,} / {column.synthetic_distinct:,} distinct"
    on_codes = {name: distance.codes for name, distance in column.distances.items()}
    return plot_data(
        column.name,
        column.histogram,
        about=f"{kind} · {distinct}",
        ordered=column.ordered,
        measures=_graded(on_codes),
    )


def _key(key: KeyResult) -> dict[str, Any]:
    about = f"rows of {key.table} per row of {key.parent}"
    return plot_data(key.name, key.fanout, about=about, ordered=True, measures=_graded(key.fanouts))


def _graded(measures: Mapping[str, Measure]) -> dict[str, Any]:
    """The figures that stand beside a histogram."""
    shown = [(metric, measures[metric.name]) for metric in plotted(distance_metrics(), Plot.BARS)]
    return {m.name: measure_data(each.value, each.floor, grade_measure(m, each).value) for m, each in shown}


def _share(result: Result, table: str, rows: int | None) -> float | None:
    """The share of a real table's rows."""
    total = sum(t.real_rows for t in result.tables if t.name.casefold() == table.casefold())
    return rounded(rows / total) if rows is not None and total else None


def _header(title: str, banner: str) -> str:
    return f"{banner}<header><p>PrivBench</p><h1>{title}</h1></header>\n"


def _columns() -> str:
    lead = "Share of rows by value or range of values. Hover over a bar for its counts."
    body = (
        '<div class="tools"><label>table <select id="columns-table"></select></label>'
        '<label>order <select id="columns-order"><option value="table">as in the table</option>'
        '<option value="worst">worst first</option></select></label><span class="legend"></span></div>'
        '<div id="columns-plots" class="plots"></div>'
    )
    return section("columns", "Columns, one by one", lead, body)


def _pairs() -> str:
    metrics = plotted(distance_metrics(), Plot.MATRIX)
    about = "; ".join(f"{escape(m.label)}: {escape(m.description)}" for m in metrics)
    lead = f"How far the joint distributions of two columns are apart, on codes. {about}."
    choice = '<label>metric <select id="pairs-metric"></select></label>' if len(metrics) > 1 else ""
    body = (
        f'<div class="tools"><label>table <select id="pairs-table"></select></label>{choice}</div>'
        '<div id="pairs-map"></div>'
    )
    return section("pairs", "Columns, two by two", lead, body)


def _fanouts(legend: str = '<div class="tools"><span class="legend"></span></div>') -> str:
    lead = "How many rows belong to one row of the parent table: share of parents by number of children."
    return section("fanout", "Rows per parent", lead, f'{legend}<div id="fanout-plots" class="plots"></div>')


def _heat(*, real: bool) -> str:
    lead = (
        "The network of each table that a query touches. A node's colour is the share of its rows that satisfy the "
        "query; a sum (+) splits rows, with their shares on its edges; a product (×) splits columns. Below a clique "
        "tree (→) each column hangs from the last one it depends on, and shows what it and those above it leave."
    )
    if real:
        lead += (
            " Left: what the model says. Right: the same tree with the share of the <i>whole real column</i> at each "
            "leaf. Which real rows belong below a sum is not known, so inner nodes show what the columns imply, with "
            "the model's dependence in a clique tree; the root of a query of one table shows the exact share."
        )
    body = '<div class="tools"><label>query <select id="heat-query"></select></label></div><div id="heat-view"></div>'
    return section("heat", "Query heat map", lead, body)
