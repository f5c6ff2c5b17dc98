"""The page of a comparison: well formed, complete, escaped, with gaps where runs failed."""

import re
from collections.abc import Mapping
from html import escape
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from privbench.evaluation.compare import Comparison, Run, compared_figures
from privbench.report.compare_page import render_comparison

from .conftest import EVIL

EPSILONS = ("0.1", "0.4", "1.6", "16/5", "10")
SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "br"}


class Watch(HTMLParser):
    """Fails on elements that are not closed in order; keeps tags, names of attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def comparison(
    *, methods: tuple[str, ...] = ("paper", EVIL), failed: str | None = None, value: float = 0.5, workload: bool = True
) -> Comparison:
    def run(method: str, epsilon: str) -> Run:
        if epsilon == failed and method == methods[0]:
            return Run(method=method, epsilon=epsilon, number=1, figures={}, error=f"broke {EVIL}")
        figures = {f.name: None if f.of_queries and not workload else value for f in compared_figures()}
        return Run(method=method, epsilon=epsilon, number=1, figures=figures)

    return Comparison(
        source=f"shop {EVIL}",
        delta="1e-9",
        workload="q.sql" if workload else None,
        seed=0,
        runs=tuple(run(method, epsilon) for method in methods for epsilon in EPSILONS),
        floor={"kld_2": 0.01, "tvd_2": 0.02, "q_mean": 1.0 if workload else None},
    )


def plots(page: str) -> Mapping[str, ElementTree.Element]:
    found = re.findall(r'id="plot-(\w+)"><h3>[^<]*</h3>(<svg.*?</svg>)', page)
    return {name: ElementTree.fromstring(svg) for name, svg in found}  # noqa: S314  (it is our own)


def test_the_page_is_well_formed_and_complete_and_names_are_text() -> None:
    page = render_comparison(comparison())
    watch = Watch()
    watch.feed(page)
    watch.close()
    assert watch.open == []
    assert not watch.tags & {"script", "img", "link"}
    assert not {name for name in watch.attributes if name.startswith("on") or name in {"src", "href"}}
    assert EVIL not in page
    assert "not for publishing" in page.split("<header>")[0]
    for said in ("paper", EVIL, *EPSILONS):
        assert said in watch.text
    rows = re.findall(r"<tr><td>(.*?)</td><td class=n>(.*?)</td>", page)
    assert rows == [("floor", ""), *((escape(method), e) for method in ("paper", EVIL) for e in EPSILONS)]


def test_every_plot_has_a_line_for_each_method_and_the_floor_where_there_is_one() -> None:
    drawn = plots(render_comparison(comparison()))
    keys = ["cross_tvd", "fanout_tvd"]
    assert list(drawn) == ["kld_2", "tvd_2", *keys, "q_mean", "q_median", "cpu_seconds", "peak_bytes"]
    for name, svg in drawn.items():
        lines = svg.findall(f"{SVG}polyline")
        assert [len(line.attrib["points"].split()) for line in lines] == [5, 5], name
        assert len(svg.findall(f"{SVG}line[@class='floor']")) == (name in {"kld_2", "tvd_2", "q_mean"}), name


def test_without_a_workload_there_is_no_q_error() -> None:
    page = render_comparison(comparison(workload=False))
    assert list(plots(page)) == ["kld_2", "tvd_2", "cross_tvd", "fanout_tvd", "cpu_seconds", "peak_bytes"]
    assert "Q mean" not in page


def test_a_failed_run_is_a_gap_and_says_why() -> None:
    page = render_comparison(comparison(failed="1.6"))
    pieces = [line.attrib["points"].split() for line in plots(page)["kld_2"].findall(f"{SVG}polyline")]
    assert [len(piece) for piece in pieces] == [2, 2, 5]
    assert pieces[0] + pieces[1] == [point for at, point in enumerate(pieces[2]) if at != 2]
    assert "<td>paper</td><td class=n>1.6</td><td class=n>0</td><td class=n>-</td>" in page
    assert escape(f"paper, epsilon 1.6: broke {EVIL}") in page


def test_epsilon_stands_on_a_log_axis() -> None:
    line = plots(render_comparison(comparison()))["kld_2"].find(f"{SVG}polyline")
    assert line is not None
    x = [float(point.split(",")[0]) for point in line.attrib["points"].split()]
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.2)
    assert (x[3] - x[2]) * 2 == pytest.approx(x[1] - x[0], abs=0.3)


@pytest.mark.parametrize("value", [0.0, 1e-12, 1.0, 7e11])
def test_all_values_stay_inside_the_plot(value: float) -> None:
    for svg in plots(render_comparison(comparison(value=value))).values():
        _, _, width, height = (float(part) for part in svg.attrib["viewBox"].split())
        for line in svg.findall(f"{SVG}polyline"):
            for point in line.attrib["points"].split():
                x, y = (float(part) for part in point.split(","))
                assert 0 < x < width
                assert 0 < y < height


def test_nothing_that_worked_still_gives_a_page() -> None:
    runs = (Run(method="paper", epsilon="1", number=1, figures={}, error="broke"),)
    page = render_comparison(Comparison(source="shop", delta="0", workload=None, seed=0, runs=runs, floor={}))
    assert all(svg.find(f"{SVG}polyline") is None for svg in plots(page).values())
    assert "paper, epsilon 1: broke" in page
