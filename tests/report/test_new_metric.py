"""A made-up metric is one value in the registry: result.json, floors, verdicts, page and comparison have it."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pytest

from privbench.evaluation import metrics
from privbench.evaluation.compare import compare, comparison_csv, comparison_json
from privbench.evaluation.evaluate import evaluate
from privbench.evaluation.measured_run import Cost
from privbench.evaluation.metrics import DistanceMetric, FloorRule, Limits, Plot, QueryMetric, Unit
from privbench.evaluation.result import Result, result_json
from privbench.report.compare_page import render_comparison
from privbench.report.report import render_report

from .browser import open_page

OVERLAP = DistanceMetric(
    name="overlap",
    label="Overlap",
    description="the share of rows that both sides have in common",
    reading="{value} of {what} are on both sides",
    unit=Unit.SHARE,
    best=1.0,
    worst=0.0,
    plots=(Plot.BARS, Plot.MATRIX),
    limits=Limits(close=0.95, fair=0.8),
    function=lambda real, other: float(np.minimum(real, other).sum()),
)
MISS = QueryMetric(
    name="miss",
    label="Miss",
    description="rows too many or too few",
    reading="off by {value} rows",
    unit=Unit.NUMBER,
    best=0.0,
    worst=float("inf"),
    plots=(Plot.CURVES,),
    limits=Limits(close=2, fair=10),
    floor=FloorRule.NONE,
    function=lambda real, other: float(abs(real - other)),
    compared_as="miss",
)
SHOP = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, city VARCHAR, age INTEGER);
CREATE TABLE sale (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer (id), kind VARCHAR);
INSERT INTO customer SELECT i, ['Ulm', 'Bern', NULL][1 + i % 3], i % {ages} FROM range(60) t(i);
INSERT INTO sale SELECT i, (i * i) % 60, ['a', 'b'][1 + i % 2] FROM range({sales}) t(i);
"""


@dataclass(frozen=True)
class Pair:
    real: Path
    synthetic: Path
    workload: Path
    result: Result


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    monkeypatch.setattr(metrics, "METRICS", (*metrics.METRICS, OVERLAP, MISS))
    paths = []
    for name, (ages, sales) in {"real": (7, 200), "synthetic": (9, 230)}.items():
        paths.append(tmp_path / f"{name}.duckdb")
        with duckdb.connect(str(paths[-1])) as connection:
            connection.execute(SHOP.format(ages=ages, sales=sales))
    workload = tmp_path / "q.sql"
    workload.write_text("SELECT COUNT(*) FROM customer WHERE age = 3;\nSELECT COUNT(*) FROM sale;\n")
    result = evaluate(*paths, workload=workload, lambdas=(1, 2, 3), cache=tmp_path / "cache")
    again = evaluate(*paths, workload=workload, lambdas=(1, 2, 3), cache=tmp_path / "cache")
    assert again.marginals == result.marginals  # from the floor that was kept
    return Pair(real=paths[0], synthetic=paths[1], workload=workload, result=result)


def test_it_is_in_the_result(pair: Pair) -> None:
    written = result_json(pair.result)
    for ways in ("1", "2"):
        for on in ("values", "codes"):
            assert written["overlap"][ways][on] == pytest.approx(1 - written["tvd"][ways][on])
            assert written["overlap"][ways]["floor"][on] == pytest.approx(1 - written["tvd"][ways]["floor"][on])
    assert written["cross_overlap"]["codes"] == pytest.approx(1 - written["cross_tvd"]["codes"])
    assert written["fanout_overlap"]["floor"] == pytest.approx(1 - written["fanout_tvd"]["floor"])
    [customer, _] = written["tables"]
    assert customer["pair_overlap"][0][1] == pytest.approx(1 - customer["pair_tvd"][0][1])
    assert customer["columns"][0]["distances"]["overlap"]["codes"] == pytest.approx(1)
    assert [q["miss"] for q in written["queries"]] == [2, 30]
    assert written["queries"][0]["floor"]["miss"] is None
    assert written["queries"][0]["floor"]["q_error"] is not None
    assert written["miss"]["max"] == 30
    assert written["miss"]["floor"] is None


def test_it_is_on_the_page(pair: Pair, tmp_path: Path) -> None:
    script = """
const choose = (id, value) => { const s = byId(id); s.value = value; s.dispatchEvent(new Event("change")); };
choose("pairs-metric", "1");"""
    dom = open_page(render_report(pair.result, model=None), tmp_path, script)
    parts = dict(re.findall(r'<section id="([^"]*)">(.*?)</section>', dom, re.DOTALL))
    assert "Single columns: 9" in parts["summary"]
    assert "of rows are on both sides" in parts["summary"]
    assert "2-way Overlap" in parts["summary"]
    assert "Queries, Miss" in parts["summary"]
    assert re.search(r'class="chip best"[^>]*>Overlap 100 %<', parts["columns"])
    assert "Overlap: " in parts["pairs"]
    assert re.search(r"of parents are on both sides", parts["fanout"])
    assert "<svg" in parts["queries-miss"]
    assert "Miss up to" in parts["queries-miss"]


@dataclass(frozen=True)
class Copier:
    database: Path
    name: str = "copier"

    def __call__(self, *_: object, out: Path, **__: object) -> Cost:
        shutil.copy(self.database, out)
        return Cost(cpu_seconds=1.0, peak_bytes=1)


def test_it_is_compared(pair: Pair) -> None:
    comparison = compare(
        pair.real,
        methods=[Copier(pair.synthetic)],
        epsilons=[1],
        runs=1,
        workload=pair.workload,
        unit="customer",
        domains="data",
    )
    written = comparison_json(comparison)
    [setting] = written["settings"]
    assert setting["figures"]["overlap_2"] == pytest.approx(1 - setting["figures"]["tvd_2"])
    assert setting["figures"]["miss_mean"] == 16
    assert written["floor"]["overlap_1"] == pytest.approx(1 - written["floor"]["tvd_1"])
    assert "overlap_2" in comparison_csv(comparison).splitlines()[0]
    page = render_comparison(comparison)
    for name in ("overlap_2", "fanout_overlap", "miss_mean"):
        assert f'id="plot-{name}"' in page
    assert "2-way Overlap on codes (higher is better)" in page


def test_names_are_keys() -> None:
    names = [metric.name for metric in metrics.METRICS]
    assert len(set(names)) == len(names)
    with pytest.raises(ValueError, match="Bad name"):
        DistanceMetric(
            name="Bad name",
            label="",
            description="",
            reading="",
            unit=Unit.NUMBER,
            best=0.0,
            worst=1.0,
            function=lambda *_: 0.0,
        )
