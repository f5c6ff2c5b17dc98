"""Types of MySQL and MariaDB: what each becomes here, and how ours are declared there.

A MySQL TIMESTAMP is an instant, so it is a TIMESTAMPTZ; a DATETIME is what a clock shows, a TIMESTAMP here. TINYINT(1)
is how MySQL keeps a BOOLEAN. An ENUM is a list of strings, and so is a SET of few members: one string per subset.
"""

import re
from dataclasses import dataclass
from itertools import chain, combinations

from privbench.schema.domain import MAX_CELLS, Domain, Values, implied_by_type
from privbench.schema.tables import Column
from privbench.schema.types import MAX_TYPE_TEXT, Kind, SqlType, any_type, parse_type

MOST_SET_MEMBERS = 6
"""A SET of so many members has 64 subsets, few enough to be listed as values."""
INDEXED_TEXT = 255
"""The length that text without one gets in a key or an index: MySQL indexes none without a length."""

_NAMES = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "mediumint": "INTEGER",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "tinyint unsigned": "UTINYINT",
    "smallint unsigned": "USMALLINT",
    "mediumint unsigned": "UINTEGER",
    "int unsigned": "UINTEGER",
    "bigint unsigned": "HUGEINT",
    "float": "REAL",
    "double": "DOUBLE",
    "year": "SMALLINT",
    "date": "DATE",
    "time": "TIME",
    "datetime": "TIMESTAMP",
    "timestamp": "TIMESTAMPTZ",
    "tinytext": "VARCHAR",
    "text": "VARCHAR",
    "mediumtext": "VARCHAR",
    "longtext": "VARCHAR",
    "enum": "VARCHAR",
    "set": "VARCHAR",
    "uuid": "CHAR(36)",
}
_CHANGED = {"mediumint", "mediumint unsigned", "bigint unsigned", "year", "enum", "set", "uuid", "bit"}
"""Types that become one of ours which is not the same."""
_SIZED = ("decimal", "char", "varchar")
_BINARY = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_QUOTED = (*_BINARY, "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json")
_BITS = ((1, "BOOLEAN"), (8, "UTINYINT"), (16, "USMALLINT"), (32, "UINTEGER"), (63, "BIGINT"), (64, "HUGEINT"))
_DECLARED = {
    "UTINYINT": "TINYINT UNSIGNED",
    "USMALLINT": "SMALLINT UNSIGNED",
    "UINTEGER": "INT UNSIGNED",
    "REAL": "FLOAT",
    "TIMESTAMP": "DATETIME(6)",
    "TIMESTAMPTZ": "DATETIME(6)",  # in UTC: a TIMESTAMP begins in 1970 and ends in 2038
    "TIME": "TIME(6)",
}
_ESCAPED = {"n": "\n", "r": "\r", "0": "\0", "Z": "\x1a"}
_LONGEST_VARCHAR = 16_000
"""Characters of four bytes that a VARCHAR may have, less than 64 KB in a row; longer ones are LONGTEXT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredType:
    """A type as the catalogue of the server has it: `int`, and in full `int(10) unsigned zerofill`."""

    name: str
    full: str

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers in parentheses.

        >>> StoredType(name="decimal", full="decimal(10,2) unsigned").sizes
        (10, 2)
        """
        match = re.match(r"\w+\((\d+)(?:,(\d+))?\)", self.full)
        return tuple(int(size) for size in match.groups() if size is not None) if match else ()

    @property
    def members(self) -> tuple[str, ...]:
        """The strings of an ENUM or a SET.

        >>> StoredType(name="enum", full="enum('a','it''s','x,y')").members
        ('a', "it's", 'x,y')
        """
        return tuple(unquoted(part) for part in re.findall(r"'(?:[^'\\]|''|\\.)*'", self.full))

    def as_text(self, column: str) -> str:
        """The SQL that gives a value of this type as text which loses nothing; `column` is a quoted name."""
        if self.name in ("bit", "float") or "zerofill" in self.full:
            return f"{column} + {'0e0' if self.name == 'float' else '0'}"  # a FLOAT would be shown with 6 digits
        return column

    @property
    def quoted(self) -> bool:
        """Whether the text of a value may hold any character, so that it stands in quotes in CSV."""
        return self.name in _QUOTED


def unquoted(literal: str) -> str:
    r"""Read a string as the server writes it.

    >>> unquoted(r"'it''s \\ a\nline'")
    "it's \\ a\nline"
    """
    inner = literal[1:-1].replace("''", "'")
    return re.sub(r"\\(.)", lambda match: _ESCAPED.get(match[1], match[1]), inner)


def column_type(stored: StoredType) -> Column:
    """Turn a type into a column without a name: our type, and the domain that the type implies."""
    ours = _ours(stored)
    changed = ours.kind is not Kind.OTHER and (stored.name in _CHANGED or _unsigned(stored) in _CHANGED)
    implied = _listed(stored) if stored.name in ("enum", "set") else implied_by_type(ours.kind)
    return Column(name="", type=ours, implied=implied, source_type=stored.full[:MAX_TYPE_TEXT] if changed else None)


def declare(of: SqlType, *, indexed: bool = False) -> str:
    """Write one of our types as MySQL declares it; text without a length gets one where it is `indexed`.

    >>> declare(parse_type("VARCHAR")), declare(parse_type("VARCHAR"), indexed=True), declare(parse_type("UINTEGER"))
    ('LONGTEXT', 'VARCHAR(255)', 'INT UNSIGNED')
    """
    if of.kind is Kind.TEXT and not indexed and (of.length is None or of.length > _LONGEST_VARCHAR):
        return "LONGTEXT"
    if of.kind is Kind.TEXT and of.length is None:
        return f"VARCHAR({INDEXED_TEXT})"
    if of.kind is Kind.TEXT and of.sql.startswith("CHAR") and (of.length or 0) > 255:
        return f"VARCHAR({of.length})"
    return _DECLARED.get(of.sql, of.sql)


def _ours(stored: StoredType) -> SqlType:
    if stored.full.startswith("tinyint(1)") and "unsigned" not in stored.full:
        return parse_type("BOOLEAN")
    if stored.name == "bit":
        width = (stored.sizes or (1,))[0]
        return parse_type(next(name for bits, name in _BITS if width <= bits))
    if stored.name in _SIZED:
        return any_type(f"{stored.name}({','.join(map(str, stored.sizes))})", shown=stored.full)
    return any_type(_NAMES.get(_unsigned(stored), "") or f"mysql {stored.name}", shown=stored.full)


def _unsigned(stored: StoredType) -> str:
    """The name of a type, with `unsigned` if that makes it another one."""
    name = f"{stored.name} unsigned" if "unsigned" in stored.full else stored.name
    return name if name in _NAMES else stored.name


def _listed(stored: StoredType) -> Domain | None:
    values = stored.members
    if stored.name == "set":
        few = values if len(values) <= MOST_SET_MEMBERS else ()
        subsets = chain.from_iterable(combinations(few, size) for size in range(len(few) + 1))
        values = tuple(",".join(subset) for subset in subsets) if few else ()
    return Values(values=values) if 0 < len(set(values)) == len(values) <= MAX_CELLS else None
