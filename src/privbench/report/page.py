"""Shell of the page: style and script inline, data as JSON, every text escaped; nothing is loaded from elsewhere."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any

STILL_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""A browser that opens the page loads nothing from anywhere, whatever a name in it says."""
POLICY = f"{STILL_POLICY}; script-src 'unsafe-inline'"


def page(title: str, sections: Iterable[str], data: Any) -> str:
    """The whole page. `sections` are HTML, `data` is what the script draws."""
    drawing = f"""<div id="tip" role="status" hidden></div>
<script type="application/json" id="data">{json_in_html(data)}</script>
<script>
{_asset("report.js")}{_asset("trees.js")}</script>
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


def json_in_html(data: Any) -> str:
    r"""JSON that can stand inside a script element: no text in it can end the element or start a comment.

    >>> json_in_html("</script>")
    '"\\u003c/script>"'
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in ("<", "\u2028", "\u2029"):
        text = text.replace(character, f"\\u{ord(character):04x}")
    # A lone surrogate cannot be written as UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8")


def _document(title: str, body: str, *, policy: str) -> str:
    return f"""<!doctype html>
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


def _asset(name: str) -> str:
    return (files("privbench.report") / name).read_text("utf-8")
