"""Shell of the page: style and script inline, data as JSON, every text escaped; nothing is loaded from elsewhere.

Names and values reach a page in two ways: as HTML through `html.escape`, or as JSON through `json_in_html`, from which
the script makes text nodes and attributes, never HTML.
"""

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from privbench.evaluation.metrics import distance_metrics, query_metrics
from privbench.evaluation.result import Histogram

STILL_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""A browser that opens the page loads nothing from anywhere, whatever a name in it says."""
POLICY = f"{STILL_POLICY}; script-src 'unsafe-inline'"
EXACT_IN_SCRIPT = 2**53
"""Larger whole numbers go to the script as text, since it would round them."""


def page(title: str, sections: Iterable[str], data: Any) -> str:
    """The whole page. `sections` are HTML, `data` is what the script draws."""
    drawing = f"""<div id="tip" role="status" hidden></div>
<script type="application/json" id="data">{json_in_html(data)}</script>
<script>
{_asset("report.js")}{_asset("runtime.js")}{_asset("trees.js")}</script>
"""
    return _document(title, "".join(sections) + "\n" + drawing, policy=POLICY)


def still_page(title: str, sections: Iterable[str]) -> str:
    """A whole page without a script, which none can enter either. `sections` are HTML."""
    return _document(title, "".join(sections), policy=STILL_POLICY)


def section(name: str, title: str, lead: str, body: str) -> str:
    """One part of the page; `lead` and `body` are HTML."""
    return f'<section id="{name}"><h2>{escape(title)}</h2><p class="lead">{lead}</p>{body}</section>\n'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int = 1) -> str:
    """A table of HTML cells; columns from `numbers` on are set to the right."""

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(f"<{tag}{' class=n' if at >= numbers else ''}>{cell}</{tag}>" for at, cell in enumerate(row))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{cells("th", head)}</tr></thead><tbody>{body}</tbody></table></div>'


def metric_data() -> list[dict[str, Any]]:
    """What the script knows of the metrics."""
    return [
        {
            "name": m.name,
            "label": m.label,
            "unit": m.unit.value,
            "best": m.best,
            "reading": m.reading,
            "plots": [plot.value for plot in m.plots],
        }
        for m in (*distance_metrics(), *query_metrics())
    ]


def plot_data(
    name: str, histogram: Histogram, *, about: str, ordered: bool, measures: dict[str, Any]
) -> dict[str, Any]:
    """A histogram of two sides, its bins as bounds, and the figures beside it by metric."""
    return {
        "name": name,
        "about": about,
        "ordered": ordered,
        "bins": [_exact(each.to_json()) for each in histogram.bins],
        "a": list(histogram.real),
        "b": list(histogram.synthetic),
        "measures": measures,
    }


def measure_data(value: float | None, floor: float | None, grade: str) -> dict[str, Any]:
    """A figure beside a plot."""
    return {"value": rounded(value), "floor": rounded(floor), "grade": grade}


def rounded(value: float | None) -> float | None:
    """Four digits are enough for a picture."""
    return None if value is None else float(f"{value:.4g}")


def _exact(bounds: dict[str, Any]) -> dict[str, Any]:
    return {
        name: str(bound) if isinstance(bound, int) and abs(bound) > EXACT_IN_SCRIPT else bound
        for name, bound in bounds.items()
    }


def json_in_html(data: Any) -> str:
    r"""JSON that can stand inside a script element: no text in it can end the element or start a comment.

    >>> json_in_html("</script>")
    '"\\u003c/script>"'
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in ("<", "\u2028", "\u2029"):
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _document(title: str, body: str, *, policy: str) -> str:
    text = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{escape(title)}</title>
<style>
{_asset("report.css")}</style>
</head>
<body>
{body}</body>
</html>
"""
    # A lone surrogate, as in the name of a file, cannot be written as UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8")


def _asset(name: str) -> str:
    return (files("privbench.report") / name).read_text("utf-8")
