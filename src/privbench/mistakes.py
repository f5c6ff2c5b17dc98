"""Errors that are not of our tree, mistakes of ours: what they are about, in words that hold nothing of the data.

What Python or a library says of such an error may quote a private value. Its class and place do not.
"""

import os
from typing import Any, NamedTuple


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
