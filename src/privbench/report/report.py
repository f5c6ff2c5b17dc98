"""The report: one page that shows how close a synthetic database came, or (publishable) what a model holds.

Start reading here. The text parts are HTML made in Python, the plots are drawn by `report.js` from JSON.
"""

from html import escape

from privbench.evaluation.result import Result
from privbench.model.model import Model
from privbench.report.data import heat_data, result_data
from privbench.report.ledger import ledger_section
from privbench.report.page import page, section
from privbench.report.public import Public
from privbench.report.summary import BANNER, query_section, summary_section

RUNTIME = section("runtime", "How fast do queries run?", "Runtime: not measured yet.", "")
_NO_MODEL = '<p class="empty">Give the model (<code>--model</code>) to see this.</p>'


def render_report(result: Result, *, model: Model | None) -> str:
    """The publisher's page: exact facts of the private data, not for publishing."""
    sections = [_header("How close is the synthetic database?", BANNER), summary_section(result), _columns(), _pairs()]
    if result.keys:
        sections.append(_fanouts())
    if result.q_errors is not None:
        sections.append(query_section(result.queries, result.q_errors))
    if model is None:
        sections.append(section("ledger", "Where the privacy budget went", "", _NO_MODEL))
        sections.append(section("heat", "Query heat map", "", _NO_MODEL))
    else:
        sections += [_heat(real=True), ledger_section(model.receipt)]
    return page("PrivBench report (private)", [*sections, RUNTIME], result_data(result, model))


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
        "tables": [dict(t) for t in public.tables],
        "keys": [dict(k) for k in public.keys],
        "queries": [],
        **heat_data(model, public.statements, None),
    }
    return page("PrivBench report", [*sections, RUNTIME], data)


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
    lead = "How far the joint distributions of two columns are apart (total variation distance, 0 to 100 %)."
    body = '<div class="tools"><label>table <select id="pairs-table"></select></label></div><div id="pairs-map"></div>'
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
