"""The panel of runtimes: its verdict, its figures, and its plots in a real browser."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from privbench.report.report import render_report
from privbench.report.runtime import judge_runtime, runtime_section
from privbench.report.summary import Grade
from privbench.runtime.result import Comparison, Runtime, RuntimeColumn, RuntimeQuery, Spread
from privbench.runtime.session import Clock
from privbench.runtime.statistics import ColumnStatistics

from .browser import open_page
from .conftest import EVIL, Shop

VARIANTS = ("real", "again", "resample", "synthetic")


def spread(mean: float) -> Spread:
    return Spread(mean=mean, median=mean / 2, p75=mean, max=3 * mean)


def comparison(*, plans: float, buffers: float, times: float) -> Comparison:
    return Comparison(
        same_plans=plans,
        buffers=spread(buffers),
        total_buffers=1 + buffers,
        discrepancy=spread(times),
        interval=(times, times),
        same_plan_discrepancy=times,
        changed_plan_discrepancy=None,
        total_time=1,
        time_factor=1,
        cost_factor=1.5,
        estimate_factor=None,
        pages=0.01,
    )


def query(number: int, *, changed: bool = False, error: str | None = None) -> RuntimeQuery:
    names = () if error else VARIANTS
    return RuntimeQuery(
        number=number,
        sql=f"SELECT '{EVIL}', {number}",
        times={name: number + at / 10 for at, name in enumerate(names)},
        buffers={name: 10 * number + at for at, name in enumerate(names)},
        plans={name: EVIL if changed and name == "synthetic" else "Seq Scan" for name in names},
        costs=dict.fromkeys(names),
        estimated={},
        actual={},
        errors={"synthetic": error} if error else {},
    )


def known(distinct: int) -> dict[str, ColumnStatistics]:
    """Ten distinct values in the real column."""
    return {
        name: ColumnStatistics(nulls=0, width=4, distinct=10 if name == "real" else distinct, correlation=0)
        for name in VARIANTS
    }


def runtime(synthetic: Comparison, resample: Comparison) -> Runtime:
    return Runtime(
        system="PostgreSQL 15",
        clock=Clock.CPU,
        rounds=5,
        load_average=1.5,
        comparisons={
            "again": comparison(plans=1, buffers=0, times=0.021),
            "resample": resample,
            "synthetic": synthetic,
        },
        estimate_errors=dict.fromkeys(VARIANTS, 1.25),
        queries=(query(1), query(2, changed=True), query(3, error=EVIL)),
        columns=tuple(RuntimeColumn(table="t", column=f"{EVIL}{n}", statistics=known(n)) for n in (10, 50)),
        notes=("a note",),
    )


RESAMPLE = comparison(plans=0.99, buffers=0.03, times=0.03)


@pytest.mark.parametrize(
    ("plans", "buffers", "grade"),
    [
        (1, 0.04, Grade.FLOOR),
        (0.98, 0.04, Grade.CLOSE),
        (1, 0.06, Grade.FAIR),
        (0.95, 0.01, Grade.FAIR),
        (0.89, 0.01, Grade.FAR),
        (1, 0.3, Grade.FAR),
    ],
)
def test_verdicts_go_by_plans_and_buffers(plans: float, buffers: float, grade: Grade) -> None:
    for times in (0.01, 9.0):
        verdict = judge_runtime(runtime(comparison(plans=plans, buffers=buffers, times=times), RESAMPLE))
        assert verdict is not None
        assert verdict.grade is grade


def test_what_it_says() -> None:
    html = runtime_section(runtime(comparison(plans=0.5, buffers=0.25, times=0.07), RESAMPLE))
    for words in ("2 queries on PostgreSQL 15", "the real database from itself: 2.1 %", "1 query with another plan"):
        assert words in html
    assert "<td>same plans</td><td class=n>50 %</td><td class=n>99 %</td><td class=n>100 %</td>" in html
    assert "estimated rows" not in html  # nobody knows them here
    assert "1 of 2 columns look different to the planner" in html
    assert "distinct values 10 -&gt; 50" in html
    assert "a note." in html
    assert EVIL not in html


def test_nothing_ran_on_all() -> None:
    nothing = replace(runtime(RESAMPLE, RESAMPLE), comparisons={}, queries=(query(1, error="no"),))
    assert judge_runtime(nothing) is None
    assert "1 query that failed" in runtime_section(nothing)


@pytest.mark.slow
def test_the_plots(shop: Shop, tmp_path: Path) -> None:
    result = replace(shop.result, runtime=runtime(comparison(plans=0.5, buffers=0.25, times=0.07), RESAMPLE))
    dom = open_page(render_report(result, model=shop.model), tmp_path)
    found = re.search(r'<section id="runtime">.*?</section>', dom, re.DOTALL)
    assert found is not None
    panel = found[0]
    assert panel.count("<svg") == 2
    assert panel.count("<circle") == 2 * 2 * 3  # plots, queries that ran, variants
    assert panel.count("another plan") >= 3  # of each plot, and the legend
    assert "synthetic: 2.3 ms" in panel
    assert "synthetic: 23 pages" in panel
