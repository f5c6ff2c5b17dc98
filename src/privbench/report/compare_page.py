"""A comparison of synthesizers as one page: small plots over epsilon, a line for each method, and the table below.

The page stands alone and has no script; whatever a name holds, it is shown as text.
"""

from html import escape

from privbench.evaluation.comparison import FIGURES, Q_ERRORS, SPENDING, WARNING, Comparison, Figures, Setting
from privbench.report.line_plot import Points, key, line_plot, short
from privbench.report.page import section, still_page, table

PLOTS = {
    "kld_2": "2-way KLD on codes",
    "tvd_2": "2-way TVD on codes",
    "q_mean": "Q-error, mean",
    "q_median": "Q-error, median",
    "cpu_seconds": "CPU-seconds",
    "peak_bytes": "Peak memory, MB",
}
HEADS = {"q_mean": "Q mean", "q_median": "Q median", "q_p95": "Q p95", "cpu_seconds": "CPU-s", "peak_bytes": "MB"}
MEGABYTE = 1e6


def render_comparison(comparison: Comparison) -> str:
    """The whole page as HTML. It holds exact facts of the private data, and says so first."""
    settings = comparison.settings()
    title = f"Methods on {comparison.source}"
    banner = f'<div class="banner" role="note">{escape(WARNING)} {escape(SPENDING)}</div>\n'
    header = f"<header><p>PrivBench</p><h1>{escape(title)}</h1></header>\n"
    return still_page(title, (banner, header, _plots(comparison, settings), _table(comparison, settings)))


def _plots(comparison: Comparison, settings: tuple[Setting, ...]) -> str:
    methods = tuple(dict.fromkeys(setting.method for setting in settings))
    legend = "".join(f'<span class="method">{key(at)} {escape(name)}</span>' for at, name in enumerate(methods))
    shown = [name for name in PLOTS if name not in Q_ERRORS or comparison.workload is not None]
    plots = "".join(_plot(name, methods, comparison.floor, settings) for name in shown)
    promise = "" if comparison.delta == "0" else f"Epsilon with delta {escape(comparison.delta)}. "
    lead = (
        f"{promise}Medians over runs; lower is better. The dashed line is the floor: a resample of the real data. "
        "A line has a gap where there is no figure; figures far apart have a log axis."
    )
    return section("plots", "Over epsilon", lead, f'<p class="tools">{legend}</p><div class="plots wide">{plots}</div>')


def _plot(name: str, methods: tuple[str, ...], floor: Figures, settings: tuple[Setting, ...]) -> str:
    lines: dict[str, Points] = {
        method: {found.epsilon: _scaled(found.figures, name) for found in settings if found.method == method}
        for method in methods
    }
    drawn = line_plot(PLOTS[name], lines, floor=_scaled(floor, name))
    return f'<div class="plot" id="plot-{name}"><h3>{PLOTS[name]}</h3>{drawn}</div>'


def _table(comparison: Comparison, settings: tuple[Setting, ...]) -> str:
    shown = [name for name in FIGURES if name not in Q_ERRORS or comparison.workload is not None]
    heads = [HEADS.get(name, name.upper().replace("_", " ")) for name in shown]
    rows = [
        ("floor", "", "", *_cells(comparison.floor, shown)),
        *((escape(s.method), escape(s.epsilon), str(s.runs), *_cells(s.figures, shown)) for s in settings),
    ]
    failed = "".join(
        f"<li>{escape(f'{setting.method}, epsilon {setting.epsilon}: {error}')}</li>"
        for setting in settings
        for error in setting.errors
    )
    body = table(("method", "epsilon", "runs", *heads), rows)
    lead = "KLD 2: 2-way. Runs are those that worked."
    return section("figures", "Figures", lead, body + (f"<h3>Failed</h3><ul>{failed}</ul>" if failed else ""))


def _cells(figures: Figures, shown: list[str]) -> list[str]:
    values = (_scaled(figures, name) for name in shown)
    return ["-" if value is None else short(value) for value in values]


def _scaled(figures: Figures, name: str) -> float | None:
    value = figures.get(name)
    return value / MEGABYTE if value is not None and name == "peak_bytes" else value
