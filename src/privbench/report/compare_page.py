"""A comparison of synthesizers as one page: small plots over epsilon, a line for each method, and the table below.

The page stands alone and has no script; whatever a name holds, it is shown as text. A plot is SVG: log axis of
epsilon, a gap where a value is missing, a dashed floor; values have a log axis where they are all above zero and far
apart, else an axis from zero.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape

from privbench.evaluation.compare import SPENDING, WARNING, Comparison, Figure, Figures, Setting
from privbench.report.page import section, still_page, table

WIDTH, HEIGHT = 340, 210
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 12, 38
FAR_APART = 20
"""Ratio of the largest value to the smallest from which on values have a log axis."""
CHARACTER = 6.5
"""Width of a character of a label, about."""
COLOURS = 6
MARKS = (
    "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0",
    "M-3 -3h6v6h-6z",
    "M0 -4.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z",
    "M0 -4l4 7h-8z",
)

Scale = Callable[[float], float]
Points = Mapping[str, float | None]
"""Values by epsilon as it was given; None where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """Where a value stands, and the values that are labelled."""

    place: Scale
    ticks: tuple[float, ...]
    log: bool


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
    plots = "".join(
        _plot(figure, methods, comparison.floor, settings) for figure in comparison.shown() if figure.plotted
    )
    promise = "" if comparison.delta == "0" else f"Epsilon with delta {escape(comparison.delta)}. "
    lead = (
        f"{promise}Medians over runs; lower is better where nothing else is written. The dashed line is the floor: a "
        "resample of the real data. A line has a gap where there is no figure; figures far apart have a log axis."
    )
    return section("plots", "Over epsilon", lead, f'<p class="tools">{legend}</p><div class="plots wide">{plots}</div>')


def _plot(figure: Figure, methods: tuple[str, ...], floor: Figures, settings: tuple[Setting, ...]) -> str:
    lines: dict[str, Points] = {
        method: {each.epsilon: _scaled(each.figures, figure) for each in settings if each.method == method}
        for method in methods
    }
    title = figure.title if figure.lower_is_better else f"{figure.title} (higher is better)"
    drawn = line_plot(title, lines, floor=_scaled(floor, figure))
    return f'<div class="plot" id="plot-{escape(figure.name)}"><h3>{escape(title)}</h3>{drawn}</div>'


def _table(comparison: Comparison, settings: tuple[Setting, ...]) -> str:
    shown = comparison.shown()
    rows = [
        ("floor", "", "", *_cells(comparison.floor, shown)),
        *((escape(s.method), escape(s.epsilon), str(s.runs), *_cells(s.figures, shown)) for s in settings),
    ]
    failed = "".join(
        f"<li>{escape(f'{setting.method}, epsilon {setting.epsilon}: {error}')}</li>"
        for setting in settings
        for error in setting.errors
    )
    body = table(("method", "epsilon", "runs", *(escape(figure.head) for figure in shown)), rows)
    lead = "KLD 2: 2-way. Runs are those that worked."
    return section("figures", "Figures", lead, body + (f"<h3>Failed</h3><ul>{failed}</ul>" if failed else ""))


def _cells(figures: Figures, shown: Sequence[Figure]) -> list[str]:
    values = (_scaled(figures, figure) for figure in shown)
    return ["-" if value is None else short(value) for value in values]


def _scaled(figures: Figures, figure: Figure) -> float | None:
    value = figures.get(figure.name)
    return None if value is None else value / figure.scale


def line_plot(title: str, lines: Mapping[str, Points], *, floor: float | None) -> str:
    """An SVG element: one line for each name, in the order of `lines`."""
    values = [value for points in lines.values() for value in points.values() if value is not None]
    epsilons = sorted({epsilon for points in lines.values() for epsilon in points}, key=_log)
    across = _across(epsilons)
    axis = _axis([*values, *([] if floor is None else [floor])])
    drawn = "".join(_line(at, name, lines[name], across, axis.place) for at, name in enumerate(lines))
    label = escape(f"{title} over epsilon, {'log' if axis.log else 'linear'} axis")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
        f"{_grid(axis)}{_epsilon_labels(epsilons, across)}{_floor(floor, axis.place)}{drawn}</svg>"
    )


def key(at: int) -> str:
    """The mark of the line at a place of the order, for a legend."""
    return f'<svg class="mark" viewBox="-6 -6 12 12" width="14" height="14">{_mark(at)}</svg>'


def short(value: float) -> str:
    """A number of three digits, without an exponent where that is short.

    >>> short(12345.0), short(0.01234), short(2.5e-9)
    ('12,345', '0.0123', '2.5e-09')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"


def _log(epsilon: str) -> float:
    # Whole numbers have a logarithm even where the fraction does not fit a float.
    exact = Fraction(epsilon)
    return math.log10(exact.numerator) - math.log10(exact.denominator)


def _across(epsilons: Sequence[str]) -> Mapping[str, float]:
    logs = {epsilon: _log(epsilon) for epsilon in epsilons}
    low, high = min(logs.values(), default=0), max(logs.values(), default=0)
    inner = WIDTH - LEFT - RIGHT - 20
    return {
        epsilon: LEFT + 10 + inner * ((at - low) / (high - low) if high > low else 0.5) for epsilon, at in logs.items()
    }


def _axis(values: Sequence[float]) -> _Axis:
    if values and min(values) > 0 and max(values) / min(values) > FAR_APART:
        return _log_axis(min(values), max(values))
    return _linear_axis(max(values, default=0) or 1)


def _linear_axis(high: float) -> _Axis:
    power = 10.0 ** math.floor(math.log10(high / 4))
    step = next(step for step in (power, 2 * power, 5 * power, 10 * power) if step * 5 >= high)
    ticks = tuple(step * number for number in range(math.ceil(high / step) + 1))
    return _Axis(place=_between(0, ticks[-1]), ticks=ticks, log=False)


def _log_axis(low: float, high: float) -> _Axis:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = math.ceil((last - first) / 5)
    place = _between(first, last)
    ticks = tuple(10.0**power for power in range(first, last + 1, every))
    return _Axis(place=lambda value: place(math.log10(value)), ticks=ticks, log=True)


def _between(low: float, high: float) -> Scale:
    return lambda value: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low)


def _grid(axis: _Axis) -> str:
    return "".join(
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{axis.place(tick):.1f}" y2="{axis.place(tick):.1f}"/>'
        f'<text x="{LEFT - 6}" y="{axis.place(tick) + 4:.1f}" text-anchor="end">{short(tick)}</text>'
        for tick in axis.ticks
    )


def _epsilon_labels(epsilons: Sequence[str], across: Mapping[str, float]) -> str:
    """A tick for each epsilon, and its label where the one before leaves room."""
    base, free, drawn = HEIGHT - BOTTOM, 0.0, []
    for epsilon in epsilons:
        x, half = across[epsilon], CHARACTER * len(epsilon) / 2
        drawn.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{base}" y2="{base + 4}"/>')
        if x - half >= free:
            drawn.append(f'<text x="{x:.1f}" y="{base + 16}" text-anchor="middle">{escape(epsilon)}</text>')
            free = x + half + CHARACTER
    middle = (LEFT + WIDTH - RIGHT) / 2
    return "".join(drawn) + f'<text x="{middle}" y="{HEIGHT - 5}" text-anchor="middle">epsilon</text>'


def _floor(floor: float | None, place: Scale) -> str:
    if floor is None:
        return ""
    y = f"{place(floor):.1f}"
    tip = f"<title>floor: {short(floor)}</title>"
    return f'<line class="floor" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}">{tip}</line>'


def _line(at: int, name: str, points: Points, across: Mapping[str, float], place: Scale) -> str:
    """Pieces between gaps, then a mark with a tooltip for each value."""
    pieces: list[list[str]] = [[]]
    marks = []
    for epsilon in sorted(points, key=_log):
        value = points[epsilon]
        if value is None:
            pieces.append([])
            continue
        x, y = f"{across[epsilon]:.1f}", f"{place(value):.1f}"
        pieces[-1].append(f"{x},{y}")
        tip = escape(f"{name}, epsilon {epsilon}: {short(value)}")
        marks.append(f'<g transform="translate({x} {y})"><title>{tip}</title>{_mark(at)}</g>')
    drawn = [
        f'<polyline class="line" style="stroke: {_colour(at)}" points="{" ".join(piece)}"/>'
        for piece in pieces
        if len(piece) > 1
    ]
    return "".join((*drawn, *marks))


def _mark(at: int) -> str:
    return f'<path style="fill: {_colour(at)}" d="{MARKS[at % len(MARKS)]}"/>'


def _colour(at: int) -> str:
    return f"var(--s{at % COLOURS})"
