"""SQL that a caller gives as text, or as the path of a file with it."""

import os
from pathlib import Path

from privbench.errors import SourceError


def is_text(given: str) -> bool:
    """Tell SQL from the name of a file: it has a space, and does not end in `.sql`.

    >>> is_text("SELECT COUNT(*) FROM a"), is_text("my queries.sql"), is_text("q")
    (True, False, False)
    """
    return len(given.split()) > 1 and not given.strip().lower().endswith(".sql")


def text_of(given: str | os.PathLike[str], *, where: str) -> tuple[str, str]:
    """The text, and where it is from, for messages: the file, or `where`.

    Line ends stay as they are, since a quoted
    name may hold one.

    >>> text_of("CREATE TABLE a (b INTEGER)", where="schema")
    ('CREATE TABLE a (b INTEGER)', 'schema')
    """
    words = os.fspath(given)
    if isinstance(given, str) and is_text(given):
        return words, where
    try:
        return Path(words).read_bytes().decode("utf-8-sig"), Path(words).name
    except (OSError, ValueError) as error:
        problem = "is not text in UTF-8" if isinstance(error, UnicodeError) else "cannot be read"
        raise SourceError(f"{words}: {problem} ({getattr(error, 'strerror', None) or error}).") from error
