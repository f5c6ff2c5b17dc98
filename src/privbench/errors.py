"""Every error PrivBench raises on purpose, as one tree.

    PrivBenchError                what a caller may catch; the command line prints it and exits 2
    ├── SpecError                 the spec file or a flag is wrong: says where and what to write instead
    ├── SchemaError               the schema cannot be protected or written as it stands
    ├── DataError                 the private data break the schema; for the publisher's eyes only
    ├── SourceError               a database or file could not be read
    ├── TargetError               the output could not be written; nothing half-written is left
    ├── StoreError                work files of a fit could not be written, or were changed by somebody
    ├── ServerError               a database server could not be found, started or used
    ├── BudgetError               a query would spend more privacy than there is; nothing was drawn
    ├── RehearsalError            the walk fails on made-up rows, as it would on real ones; nothing was drawn
    └── ModelError                a model or bundle file is not one of ours, or is damaged

A failed check of a receipt is a result, not an error: see `privbench_verify.receipt`. Any other exception is a mistake
of ours; `whereabouts` says what it was about.
"""

import os
from typing import Any, NamedTuple


class PrivBenchError(Exception):
    """Say what was found, where, and what to do about it."""


class SpecError(PrivBenchError):
    """The spec file or a flag is wrong."""


class SchemaError(PrivBenchError):
    """The schema cannot be protected or written as it stands."""


class DataError(PrivBenchError):
    """The private data break the schema. Its text never enters a published file."""


class SourceError(PrivBenchError):
    """A database or file could not be read."""


class TargetError(PrivBenchError):
    """The output could not be written; nothing half-written is left."""


class StoreError(PrivBenchError):
    """Work files of a fit could not be written, or were changed by somebody."""


class ServerError(PrivBenchError):
    """A database server could not be found, started or used."""


class BudgetError(PrivBenchError):
    """A query would spend more privacy than there is; nothing was drawn."""


class RehearsalError(PrivBenchError):
    """The walk fails on made-up rows, as it would on real ones; nothing was drawn."""


class ModelError(PrivBenchError):
    """A model or bundle file is not one of ours, or is damaged."""


def first_line(error: Exception) -> str:
    r"""Quote another library's error inside one of ours, without its hints and traces.

    >>> first_line(ValueError("no such table\nLINE 1: SELECT ..")), first_line(ValueError())
    ('no such table', 'ValueError')
    """
    return next(iter(str(error).splitlines()), type(error).__name__)


class Whereabouts(NamedTuple):
    """Where an error came up: the table and column that were worked on, and the line of the code."""

    table: str | None
    column: str | None
    line: str

    @property
    def words(self) -> str:
        """The place in the database, to begin a message with."""
        return ".".join(name for name in (self.table, self.column) if name) or "the database"


def whereabouts(error: BaseException) -> Whereabouts:
    """Say where an error came up, from the names that our functions worked on. Looks at names, never at rows.

    >>> def learn(table, column): return {}[column]
    >>> try: learn("visit", "cost")
    ... except KeyError as error: whereabouts(error).words
    'visit.cost'
    """
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    names: dict[str, str] = {}
    for frame, _ in reversed(frames):
        for kind in ("column", "table"):
            found = _name(frame.f_locals.get(kind))
            if found is not None and "table" not in names:
                names.setdefault(kind, found)
    files = [(frame.f_code.co_filename.split(os.sep), number) for frame, number in frames]
    ours = [(path, number) for path, number in files if "privbench" in path] or files or [(["?"], 0)]
    line = f"{'/'.join(ours[-1][0][-2:])}:{ours[-1][1]}"
    return Whereabouts(table=names.get("table"), column=names.get("column"), line=line)


def mistake(error: BaseException) -> str:
    """Say what an error that is not of the tree is about. What it says itself may quote a private value."""
    place = whereabouts(error)
    return f"{place.words}: {type(error).__name__} in {place.line}, which is a mistake in PrivBench."


def _name(value: Any) -> str | None:
    """The name that a table, a column or a text is; None of anything else."""
    name = value if isinstance(value, str) else getattr(value, "name", None)
    return name if isinstance(name, str) else None
