"""Names of tables, columns, keys, methods and databases are text on every page, whatever they hold."""

import json
import re
from html import escape
from pathlib import Path

import duckdb
import pytest

from privbench.evaluation.compare import Comparison, Run, compared_figures
from privbench.evaluation.evaluate import evaluate
from privbench.evaluation.result import Result
from privbench.io.names import quote_sql
from privbench.report.compare_page import render_comparison
from privbench.report.ledger import ledger_section
from privbench.report.page import page, still_page
from privbench.report.report import render_report

from .browser import open_page

NAMES = {
    "quotes": "a\"b'c`d",
    "script": "</script><img src=x onerror=alert(1)><!--",
    "lines": "first\nsecond\n\tthird",
    "unicode": "Größe ☃ \u2028 \u202e rtl \U0001f600",
    "entity": "&lt;b&gt; &amp; ${1} {value} \\u003c",
    "object": "__proto__",
}
LABELS = list(NAMES.values())


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """Two databases for each name, which their tables, columns, key and values have."""
    return {kind: evaluated(tmp_path_factory.mktemp(kind), name) for kind, name in NAMES.items()}


def evaluated(folder: Path, name: str) -> Result:
    parent, child, column = (quote_sql(f"{name}{part}") for part in ("", " child", " column"))
    value = name.replace("'", "''")
    paths = [folder / f"{side}.duckdb" for side in ("real", "synthetic")]
    for at, path in enumerate(paths):
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"""
CREATE TABLE {parent} (id INTEGER PRIMARY KEY, {column} VARCHAR, {quote_sql(name)} INTEGER);
CREATE TABLE {child} ({quote_sql(name)} INTEGER REFERENCES {parent} (id), {column} INTEGER);
INSERT INTO {parent} SELECT i, ['{value}', 'x'][1 + i % 2], i % {5 + at} FROM range(30) t(i);
INSERT INTO {child} SELECT i % 30, i % {3 + at} FROM range(90) t(i);""")
    workload = folder / "q.sql"
    workload.write_text(f"SELECT COUNT(*) FROM {parent} WHERE {column} = '{value}';\nSELECT {parent};", "utf-8")
    return evaluate(*paths, workload=workload, lambdas=(1, 2))


@pytest.mark.parametrize("kind", NAMES)
def test_the_report_shows_names_as_text(kind: str, results: dict[str, Result], tmp_path: Path) -> None:
    result, name = results[kind], NAMES[kind]
    expected = [f"{name} column", name]
    script = f"""
        const texts = (where) => [...document.querySelectorAll(where)].map((e) => e.textContent);
        const wanted = {json.dumps(expected).replace("<", chr(92) + "u003c")};
        const shown = texts("#columns-plots h3 span:first-child");
        if (JSON.stringify(shown) !== JSON.stringify(wanted)) problems.push("columns " + JSON.stringify(shown));
        const tables = texts("#columns-table option");
        if (tables[0] !== wanted[1]) problems.push("tables " + JSON.stringify(tables));
        if (!texts(".card h3").includes("table " + wanted[1])) problems.push("cards");
        if (!texts("#fanout-plots .note")[0].includes(wanted[1] + " child")) problems.push("keys");
        const quoted = wanted[0].replaceAll('"', '""');
        if (!texts(".worst code").some((sql) => sql.includes(quoted))) problems.push("queries");
        if (document.querySelectorAll("img, section section").length) problems.push("elements");
    """
    dom = open_page(render_report(result, model=None), tmp_path, script)
    assert "<img" not in re.sub(r"<script.*?</script>", "", dom, flags=re.DOTALL)


def comparison(name: str) -> Comparison:
    runs = [
        Run(method=name, epsilon="1", number=1, figures={f.name: 0.5 for f in compared_figures()}),
        Run(method=name, epsilon="2", number=1, figures={}, error=f"broke {name}"),
    ]
    return Comparison(source=f"db {name}", delta=name, workload=name, seed=0, runs=tuple(runs), floor={})


@pytest.mark.parametrize("name", LABELS, ids=NAMES)
def test_the_comparison_shows_names_as_text(name: str, tmp_path: Path) -> None:
    html = render_comparison(comparison(name))
    # The page lets no script run: take its policy away to look at it with one.
    watched = re.sub(r"<meta http-equiv=[^>]*>", "", html)
    wanted = json.dumps(name).replace("<", "\\u003c")
    script = f"""
        const name = {wanted};
        const text = (where) => document.querySelector(where).textContent;
        if (text("h1") !== "Methods on db " + name) problems.push("title " + JSON.stringify(text("h1")));
        if (!text(".method").endsWith(name)) problems.push("method");
        if (!text("li").endsWith("broke " + name)) problems.push("error");
        if (!text("#plot-kld_2 g title").startsWith(name)) problems.push("svg");
        if (document.querySelectorAll("img").length) problems.push("img");
    """
    assert "<img" not in open_page(watched, tmp_path, script)


@pytest.mark.parametrize("name", LABELS, ids=NAMES)
def test_the_ledger_shows_names_as_text(name: str) -> None:
    feature = {"kind": "column", "column": name}
    query = {"kind": "histogram", "table": name, "counts": "rows", "axes": [{"bins": 2, "feature": feature}]}
    nodes = [
        {"kind": "sequence", "parent": None, "label": name, "total": "1/1"},
        {"kind": "event", "parent": 0, "query": query, "epsilon": "1/1"},
    ]
    receipt = {
        "epsilon": "1/1",
        "delta": "0/1",
        "neighbours": "add-remove",
        "stamp": name,
        "condition": name,
        "budget": {"measure": "epsilon", "amount": "1/1"},
        "ledger": {"nodes": nodes},
    }
    drawn = ledger_section(receipt)
    assert escape(name) in drawn
    assert "<img" not in drawn
    assert not re.search(r'data-tip="[^"]*"[^ >]', drawn)


def test_a_name_that_is_no_unicode_does_not_stop_a_page() -> None:
    for html in (page("a\udcff", ["b\udcff"], ["c\udcff"]), still_page("a\udcff", ["b\udcff"])):
        assert html.encode("utf-8")
