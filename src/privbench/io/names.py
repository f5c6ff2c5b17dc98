"""Names from untrusted files: quoted in SQL, escaped where they are shown, and turned into safe names of files.

A name may hold anything: quotes, line ends, markup. Each place has one function that makes it harmless there:
`quote_sql` in a statement, `sql_comment` behind `--`, `markdown` in a README, `terminal` on the screen.
`quote_text` does it for a value in a statement.
File names are percent-encoded, so the name of the table can be read back from the name of its file. Of two
tables that differ in case only, the second is encoded letter by letter, as some file systems ignore case.
"""

import re
from collections.abc import Iterable
from urllib.parse import quote as percent_encode
from urllib.parse import unquote

from privbench.errors import SchemaError

_MARKUP = re.compile(r"[\\`*\[\]<>&|#!~$]|(?<![^\W_])_|_(?![^\W_])|(?<=www)\.|:(?=//)|^[-+=]", re.IGNORECASE)
"""What means something in Markdown; an underscore inside a word does not, nor does most punctuation."""


def quote_sql(name: str) -> str:
    """Quote an identifier the standard way, which DuckDB, SQLite and PostgreSQL take.

    >>> quote_sql('a"b')
    '"a""b"'
    """
    if not name or "\0" in name:
        raise SchemaError(f"{name!r} cannot be a name in a database: it is empty or holds a NUL character.")
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Quote a string the standard way; MySQL, where a backslash is no letter, has its own.

    >>> quote_text("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def terminal(text: str) -> str:
    r"""Write text so that it stays on one line of a terminal and cannot drive it.

    >>> terminal("a\nb\x1b[2J [red]")
    'a\\nb\\x1b[2J [red]'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def sql_comment(text: str) -> str:
    r"""Write text as a comment of one line, which nothing in it can end.

    >>> sql_comment("a\nDROP TABLE b; --")
    '-- a\\nDROP TABLE b; --'
    """
    return f"-- {terminal(text)}"


def markdown(text: str) -> str:
    r"""Write text in one line of Markdown so that it is shown as it is: no markup, links, tables or HTML in it.

    >>> markdown("order_items"), markdown("a|b <b>*c*\n# d")
    ('order_items', 'a\\|b \\<b\\>\\*c\\*\\\\n\\# d')
    """
    escaped = _MARKUP.sub(r"\\\g<0>", terminal(text))
    return re.sub(r"^(\d+)([.)])", r"\1\\\2", escaped)  # no numbered list


def file_stems(tables: Iterable[str]) -> dict[str, str]:
    """Give each table a file name without its suffix; all differ even where case is ignored.

    >>> file_stems(["order", "Order", "../x"])
    {'order': 'order', 'Order': '%4F%72%64%65%72', '../x': '%2E%2E%2Fx'}
    """
    stems: dict[str, str] = {}
    taken: set[str] = set()
    for name in tables:
        stem = percent_encode(name, safe=" ").replace(".", "%2E").replace("~", "%7E")
        if stem.casefold() in taken:
            stem = "".join(f"%{byte:02X}" for byte in name.encode())
        taken.add(stem.casefold())
        stems[name] = stem
    return stems


def table_name(stem: str) -> str:
    """Read the name of a table back from the name of its file."""
    return unquote(stem, errors="surrogateescape")


class Names:
    """Names to look one up in: exactly or else, if only one fits, without regard to case."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._exact: set[str] = set()
        self._folded: dict[str, str | None] = {}
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        """Take in one more name."""
        if name not in self._exact:
            self._exact.add(name)
            folded = name.casefold()
            self._folded[folded] = None if folded in self._folded else name

    def find(self, wanted: str) -> str | None:
        """Find the name as it is spelled here."""
        return wanted if wanted in self._exact else self._folded.get(wanted.casefold())


def find_name(wanted: str, names: Iterable[str]) -> str | None:
    """Find one name among others as `Names` does."""
    return Names(names).find(wanted)
