"""What values show in a notebook: a line or two and one small table of plain HTML. Every text in it is escaped."""

from collections.abc import Iterable, Sequence
from html import escape

MOST_ROWS = 30
"""Rows of a table that are shown; a line says how many more there are."""


def page(title: str, head: Sequence[str], rows: Iterable[Sequence[object]], *, notes: Iterable[str] = ()) -> str:
    """A title, notes and a table as HTML.

    >>> page("<b>", ["a"], [[1_000]])
    '<div><b>&lt;b&gt;</b><table><tr><th>a</th></tr><tr><td>1,000</td></tr></table></div>'
    """
    every = [[_cell(value) for value in row] for row in rows]
    lines = [f"<b>{escape(title)}</b>", *(f"<br>{escape(note)}" for note in notes)]
    body = [f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in every[:MOST_ROWS]]
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    table = [f"<table><tr>{names}</tr>", *body, "</table>"] if every else []
    more = [f"and {len(every) - MOST_ROWS:,} more"] if len(every) > MOST_ROWS else []
    return f"<div>{''.join([*lines, *table, *more])}</div>"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return escape(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))
