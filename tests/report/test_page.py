"""The page in a real browser: it stands alone, nothing in it breaks out, and its parts react."""

import re
from pathlib import Path

import pytest

from privbench.report.public import read_public
from privbench.report.report import render_public, render_report

from .browser import open_page
from .conftest import EVIL, Shop

pytestmark = pytest.mark.slow

CHOOSE = """
const choose = (id, value) => {{ const s = byId(id); s.value = value; s.dispatchEvent(new Event("change")); }};
"""


def section(dom: str, name: str) -> str:
    found = re.search(rf'<section id="{name}">.*?</section>', dom, re.DOTALL)
    assert found is not None, name
    return found[0]


def test_everything_is_drawn_without_network_and_without_errors(shop: Shop, tmp_path: Path) -> None:
    html = render_report(shop.result, model=shop.model)
    assert len(html.encode()) < 3_000_000
    dom = open_page(html, tmp_path)
    assert "not for publishing" in dom.split("<header>")[0]
    for name in ("columns", "pairs", "fanout", "queries-q_error", "heat"):
        assert "<svg" in section(dom, name), name
    assert section(dom, "columns").count('class="plot"') == 2
    assert "table customer" in section(dom, "ledger")
    assert ">age <" in section(dom, "ledger")
    assert "Blocks of disjoint rows" not in section(dom, "ledger")
    assert "--runtime auto" in section(dom, "runtime")
    assert "queries without an answer" in section(dom, "queries-q_error")


def test_the_ledger_of_the_paper(shop: Shop) -> None:
    """Budget by budget for networks and keys, and blocks that run in parallel."""
    drawn = section(render_report(shop.result, model=shop.paper), "ledger")
    assert "network of customer" in drawn
    assert "key sale.customer_id" in drawn
    assert "Blocks of disjoint rows" in drawn


@pytest.mark.parametrize("wrong", ["nothing.at.all()", "console.error('no')", "new Image().src = 'http://localhost/x'"])
def test_the_watch_sees_what_goes_wrong(wrong: str, shop: Shop, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        open_page(render_report(shop.result, model=None), tmp_path, wrong)


def test_names_and_literals_stay_text(shop: Shop, tmp_path: Path) -> None:
    html = render_report(shop.result, model=shop.model)
    assert EVIL not in html
    dom = open_page(html, tmp_path, 'document.title = document.querySelectorAll("img").length;')
    assert "<title>0</title>" in dom
    assert "&lt;/script&gt;" in section(dom, "columns")


def test_another_table_is_chosen(shop: Shop, tmp_path: Path) -> None:
    names = [t.name for t in shop.result.tables]
    sale = names.index("sale")
    script = CHOOSE.format() + f'choose("columns-table", "{sale}"); choose("pairs-table", "{sale}");'
    dom = open_page(render_report(shop.result, model=shop.model), tmp_path, script)
    assert "amount" in section(dom, "columns")
    assert "amount and kind" in section(dom, "pairs").replace("kind and amount", "amount and kind")
    assert ">age<" not in section(dom, "columns")


def test_another_query_colours_the_trees(shop: Shop, tmp_path: Path) -> None:
    html = render_report(shop.result, model=shop.model)
    script = CHOOSE.format() + 'choose("heat-query", data.heat.findIndex((q) => q.n === 2));'
    heat = section(open_page(html, tmp_path, script), "heat")
    assert "age &gt;= 6" in heat.split('class="sql"')[1]
    model, real = heat.split('class="tree"')[1:]
    # 75 % of the model's rows are of ages 4 to 8, three fifths of them from 6 on; of the real ages 0 to 8 a third.
    assert sorted(re.findall(r'data-share="([^"]*)"', model)) == ["0", "0", "0.45", "0.6", "0.6"]
    assert {round(float(s), 2) for s in re.findall(r'data-share="([^"]*)"', real)} == {0.33}
    assert "25 %" in model
    assert "exact" in real


def test_hovering_tells_counts(shop: Shop, tmp_path: Path) -> None:
    script = """document.querySelector("#columns-plots .hit").dispatchEvent(
        new MouseEvent("mousemove", {bubbles: true, clientX: 50, clientY: 50}));"""
    dom = open_page(render_report(shop.result, model=None), tmp_path, script)
    tip = re.search(r'<div id="tip"[^>]*>(.*?)</div>', dom, re.DOTALL)
    assert tip is not None
    assert re.search(r"real: \d+ \(", tip[1])
    assert re.search(r"synthetic: \d+ \(", tip[1])
    assert "--model" in section(dom, "heat")


def test_the_publishable_page_knows_only_model_and_bundle(shop: Shop, tmp_path: Path) -> None:
    public = read_public(shop.bundle, model=shop.model)
    html = render_public(public, model=shop.model)
    assert shop.result.real not in html
    dom = open_page(html, tmp_path)
    assert "not for publishing" not in dom
    assert "model and the synthetic data alone" in dom
    assert 'id="queries' not in dom
    assert "real" not in re.sub(r"[\w ]*<script.*?</script>", "", section(dom, "heat"), flags=re.DOTALL)
    assert "<svg" in section(dom, "fanout")
    rows = sum(sum(column["b"]) for column in public.tables[0]["columns"][:1])
    assert rows == public.rows["customer"]


def test_a_missing_browser_fails_where_it_is_required(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from .browser import find_browser

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PRIVBENCH_REQUIRE", "other,browser")
    with pytest.raises(pytest.fail.Exception, match="no browser"):
        find_browser()
    monkeypatch.setenv("PRIVBENCH_REQUIRE", "")
    with pytest.raises(pytest.skip.Exception, match="no browser"):
        find_browser()
