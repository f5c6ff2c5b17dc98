"""What commands print: tables for people, or JSON for programs; always on stdout."""

import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text


def echo(text: str) -> None:
    """Print text that may hold names or values from a file."""
    click.echo(printable(text))


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; numbers to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    kept = [list(row) for row in rows]
    for at, name in enumerate(head):
        numeric = bool(kept) and all(isinstance(row[at], int | float) for row in kept)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in kept:
        table.add_row(*(Text(_cell(value)) for value in row))
    Console().print(table)


def printable(text: str) -> str:
    """Text with control characters made visible, so that a name from a file cannot drive the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)


def decimal(rational: str | Fraction) -> float:
    """A rational of the receipt as a number to read."""
    return float(Fraction(rational))


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))
