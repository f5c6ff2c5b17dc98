"""Rows of a CSV file that are shorter than its first line, made as long: their last values are NULL.

The copy is written row by row to a private folder, as the other streams of a CSV file are Arrow's own.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa

from privbench.io.staging import private_folder

_READ = 1 << 20
_QUOTED = re.compile(rb'(?:[^"]|"")*+"')
"""A quoted value behind its first quote, up to the last one; two quotes stand for one."""


@contextmanager
def padded(opened: pa.NativeFile, *, separator: str, columns: int) -> Iterator[pa.NativeFile]:
    """Give the file with all rows at least as long as so many columns."""
    with private_folder() as folder:
        target = folder / "padded.csv"
        with target.open("wb") as file:
            _pad(opened, file, separator.encode(), columns)
        with pa.OSFile(str(target)) as copy:
            yield copy


def _pad(opened: pa.NativeFile, file: BinaryIO, separator: bytes, columns: int) -> None:
    rest_of_value = re.compile(rb"[^%b]*(%b|\Z)" % ((re.escape(separator),) * 2))
    found, in_quotes = 0, False
    for line in _lines(opened):
        body = line.rstrip(b"\r\n")
        if not in_quotes and b'"' not in body:
            found = body.count(separator) + 1
        else:
            found, in_quotes = _values(body, found, rest_of_value, in_quotes=in_quotes)
        missing = columns - found if body and not in_quotes else 0
        file.write(body + separator * missing + line[len(body) :])
        found = found if in_quotes else 0


def _values(body: bytes, found: int, rest_of_value: re.Pattern[bytes], *, in_quotes: bool) -> tuple[int, bool]:
    """How many values a row has up to the end of this line, and whether the last one is quoted and goes on."""
    at, more = 0, True
    while more:
        found += not in_quotes
        if in_quotes or body[at : at + 1] == b'"':
            quoted = _QUOTED.match(body, at if in_quotes else at + 1)
            if quoted is None:
                return found, True
            at, in_quotes = quoted.end(), False
        rest = rest_of_value.match(body, at)
        at, more = (rest.end(), bool(rest[1])) if rest else (at, False)
    return found, False


def _lines(opened: pa.NativeFile) -> Iterator[bytes]:
    """The lines with their ends; one that a block cuts comes whole."""
    rest = b""
    while block := opened.read(_READ):
        *lines, rest = (rest + block).splitlines(keepends=True)
        yield from lines
    yield from rest.splitlines(keepends=True)
