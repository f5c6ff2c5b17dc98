"""What commands print: tables for people, or JSON for programs, on stdout; warnings on stderr."""

import json
import shlex
import shutil
import sys
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import Any

import click

from privbench.io.names import terminal

LEAST_WIDTH = 12
"""No column of text is made narrower than this."""
SHOWN = 4
"""Names shown of a long list."""
REPLACING = {"replace": "replacing", "add-remove": "adding or removing"}
"""What neighbours differ in, in words."""


def echo(text: str) -> None:
    """Print text that may hold names or values from a file."""
    click.echo(printable(text))


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def error_json(kind: str, message: str, code: int) -> dict[str, Any]:
    """An error as `--json` prints it: its class, its message and the exit code."""
    return {"error": {"class": kind, "message": message, "exit": code}}


def print_table(head: Sequence[str], rows: Iterable[Sequence[object]], *, right: Collection[str] = ()) -> None:
    """Print a table; numbers to the right, and columns named in `right`."""
    kept = [list(row) for row in rows]
    columns = [[name, *(_cell(row[at]) for row in kept)] for at, name in enumerate(head)]
    numbers = [bool(kept) and all(isinstance(row[at], int | float) for row in kept) for at in range(len(head))]
    to_right = [name in right or number for name, number in zip(head, numbers, strict=True)]
    widths = _fitting(columns, fixed=to_right)
    for at, cells in enumerate(zip(*columns, strict=True)):
        folded = [_fold(cell, width) for cell, width in zip(cells, widths, strict=True)]
        for parts in zip_longest(*folded, fillvalue=""):
            spaces = [" " * (width - _width(part)) for part, width in zip(parts, widths, strict=True)]
            padded = (s + part if end else part + s for part, s, end in zip(parts, spaces, to_right, strict=True))
            line = "  ".join(padded).rstrip()
            click.echo(line if at else click.style(line, bold=True))


def _fitting(columns: Sequence[Sequence[str]], *, fixed: Sequence[bool]) -> list[int]:
    """Widths that the terminal has room for.

    Heads are folded first, then texts, where they have spaces; only then is a word broken. Numbers never are.
    """
    widths = [max(map(_width, column)) for column in columns]
    room = shutil.get_terminal_size().columns - 2 * (len(widths) - 1)
    heads = [max(_longest_word(head), *map(_width, cells), 0) for head, *cells in columns]
    words = [max(map(_longest_word, column)) for column in columns]
    for wanted in (heads, words, [LEAST_WIDTH] * len(widths)):
        least = [h if is_fixed else min(h, w) for h, w, is_fixed in zip(heads, wanted, fixed, strict=True)]
        _narrow(widths, least, room)
    return widths


def _narrow(widths: list[int], least: Sequence[int], room: int) -> None:
    """Make the widest columns narrower until there is room, none more than it may be."""
    while sum(widths) > room and (wide := [at for at, width in enumerate(widths) if width > least[at]]):
        widths[max(wide, key=widths.__getitem__)] -= 1


def _longest_word(text: str) -> int:
    return max(map(_width, text.split()), default=0)


def _fold(cell: str, width: int) -> list[str]:
    return [cell] if _width(cell) <= width else wrap(cell, width)


def warn(warnings: Iterable[str]) -> None:
    """Print warnings on stderr, a line each."""
    for warning in warnings:
        click.echo(f"warning: {printable(warning)}", err=True)


def listed(names: Iterable[str]) -> str:
    """Names with commas between, each on one line whatever it holds."""
    return ", ".join(map(terminal, names))


def few(names: Sequence[str]) -> str:
    """The first few of some names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return listed(names[:SHOWN]) + more


def program() -> str:
    """How to call this program from where the user is: by name if that is found, else as it was called now."""
    return "privbench" if shutil.which("privbench") else shlex.quote(sys.argv[0])


def shell(path: Path) -> str:
    """A path as one types it in a shell."""
    return shlex.quote(str(path))


def shortened(condition: str) -> str:
    """The condition of a receipt with the first few of a long list of domains.

    >>> shortened("these domains are public: " + ", ".join("abcdefg"))
    'these domains are public: a, b, c, d and 3 more, which `--json` lists'
    """
    what, _, listed = condition.partition(": ")
    names = listed.split(", ")
    few = len(names) <= SHOWN + 1
    return (
        condition if few else f"{what}: {', '.join(names[:SHOWN])} and {len(names) - SHOWN} more, which `--json` lists"
    )


def printable(text: str) -> str:
    """Text with control characters made visible, so that a name from a file cannot drive the terminal.

    Lines stay apart, but those after the first are set in: what a name holds cannot pass for another message.
    """
    first, *more = map(terminal, text.split("\n"))
    return "\n".join([first, *(f"  {line}" if line else "" for line in more)])


def decimal(rational: str | Fraction) -> float:
    """A rational of the receipt as a number to read."""
    return float(Fraction(rational))


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else terminal(str(value))


def _width(text: str) -> int:
    """How many columns of a terminal a text takes: letters of East Asia take two, accents on letters none."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum((unicodedata.east_asian_width(c) in "WF") + (unicodedata.combining(c) == 0) for c in text)
