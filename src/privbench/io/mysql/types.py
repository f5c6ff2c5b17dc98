"""Types of MySQL and MariaDB: what each becomes here, and how ours are declared there.

A MySQL TIMESTAMP is an instant, so it is a TIMESTAMPTZ; a DATETIME is what a clock shows, a TIMESTAMP here. TINYINT(1)
is how MySQL keeps a BOOLEAN. A SET of few members lists its values: one string per subset. UUID, JSON, bytes, bits,
addresses and points travel as the text that `schema.types` says, so each is asked for and written by an expression.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, combinations

from privbench.schema.domain import MAX_CELLS, Domain, Values, implied_by_type
from privbench.schema.tables import Column
from privbench.schema.types import MAX_TYPE_TEXT, Kind, SqlType, any_type, enum_type, parse_type

MOST_SET_MEMBERS = 6
"""A SET of so many members has 64 subsets, few enough to be listed as values."""
MOST_DIGITS = 38
"""A DECIMAL of more digits is read as a DOUBLE."""
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
    "set": "VARCHAR",
    "json": "JSON",
    "uuid": "UUID",
    "inet4": "INET",
    "inet6": "INET",
    "point": "WKT",
    "geometry": "WKT",
    "tinyblob": "BLOB",
    "blob": "BLOB",
    "mediumblob": "BLOB",
    "longblob": "BLOB",
}
_CHANGED = {"mediumint", "mediumint unsigned", "bigint unsigned", "year", "set", "point", "geometry"}
"""Types that become one of ours which is not the same."""
_SIZED = ("decimal", "char", "varchar", "binary", "varbinary", "bit")
_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json")
Bound = int | datetime | None
_BOUNDS: dict[str, tuple[Bound, Bound]] = {
    "mediumint": (-(2**23), 2**23 - 1),
    "mediumint unsigned": (0, 2**24 - 1),
    "bigint unsigned": (0, 2**64 - 1),
    "year": (1901, 2155),
    "timestamp": (datetime(1970, 1, 1, 0, 0, 1), datetime(2038, 1, 19, 3, 14, 7)),  # UTC
}
_ADDRESSES = ("uuid", "inet4", "inet6")
_DECLARED = {
    "UUID": "CHAR(36)",  # MySQL has no UUID, INET or arrays
    "JSONB": "JSON",
    "WKT": "GEOMETRY",
    "BLOB": "LONGBLOB",
    "INTERVAL": "TIME(6)",
    "MONEY": "DECIMAL(19,2)",
    "UTINYINT": "TINYINT UNSIGNED",
    "USMALLINT": "SMALLINT UNSIGNED",
    "UINTEGER": "INT UNSIGNED",
    "REAL": "FLOAT",
    "TIMESTAMP": "DATETIME(6)",
    "TIMESTAMPTZ": "DATETIME(6)",  # in UTC: a TIMESTAMP begins in 1970 and ends in 2038
    "TIME": "TIME(6)",
}
_ESCAPED = {"n": "\n", "r": "\r", "0": "\0", "Z": "\x1a"}
_TYPE = re.compile(r"\w+(\((?:'(?:[^'\\]|''|\\.)*'|[\d,\s])*\))?( unsigned)?( zerofill)?", re.DOTALL)
_OWN = ("JSON", "JSONB", "BLOB", "WKT", "BIT", "BINARY", "VARBINARY")
"""Types of ours with a syntax that MySQL has too."""
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
        """The SQL that gives a value as the text in which it travels; `column` is a quoted name."""
        if self.name in _BYTES:
            return f"CONCAT('\\\\x', LOWER(HEX({column})))"
        if self.name in _TEXTS:
            return f"CONVERT({column} USING utf8mb4)"
        if self.name in _ADDRESSES:
            return f"CAST({column} AS CHAR)"
        if self.name == "bit":
            return f"LPAD(BIN({column} + 0), {(self.sizes or (1,))[0]}, '0')"
        if self.name in ("point", "geometry"):
            return f"ST_AsText({column})"
        if self.name == "float" or "zerofill" in self.full:
            return f"{column} + {'0e0' if self.name == 'float' else '0'}"  # a FLOAT would be shown with 6 digits
        return column

    def of_text(self, value: str) -> str:
        """The SQL that makes a value of this type from the text in which it travels; `value` is SQL too."""
        if self.name in _BYTES:
            return f"UNHEX(SUBSTR({value}, 3))"
        if self.name == "bit":
            return f"CAST(CONV({value}, 2, 10) AS UNSIGNED)"
        if self.name in ("point", "geometry"):
            return f"ST_GeomFromText({value})"
        if self.name == "inet6":  # made-up addresses are of the older kind
            return f"IF({value} LIKE '%:%', {value}, CONCAT('::ffff:', {value}))"
        return value

    @property
    def bounds(self) -> tuple[Bound, Bound] | None:
        """The smallest and largest value, where ours is a wider type; None for no such bound.

        >>> StoredType(name="mediumint", full="mediumint(9) unsigned").bounds
        (0, 16777215)
        """
        if "unsigned" in self.full and self.name in ("decimal", "float", "double"):
            return 0, None
        return _BOUNDS.get(_unsigned(self)) or _BOUNDS.get(self.name)

    @property
    def quoted(self) -> bool:
        """Whether the text of a value may hold any character, so that it stands in quotes in CSV."""
        return self.name in _TEXTS


def unquoted(literal: str) -> str:
    r"""Read a string as the server writes it.

    >>> unquoted(r"'it''s \\ a\nline'")
    "it's \\ a\nline"
    """
    inner = literal[1:-1].replace("''", "'")
    return re.sub(r"\\(.)", lambda match: _ESCAPED.get(match[1], match[1]), inner)


def quoted_text(text: str) -> str:
    r"""Write a string as SQL.

    >>> quoted_text("it's a \\")
    "'it''s a \\\\'"
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def declared_type(text: str) -> StoredType:
    """Read the type at the beginning of what declares a column.

    >>> declared_type("int(10) unsigned DEFAULT 7 COMMENT 'not zerofill'").full
    'int(10) unsigned'
    """
    match = _TYPE.match(text)
    full = match[0] if match else text
    return StoredType(name=full.partition("(")[0].partition(" ")[0].lower(), full=full)


def column_type(stored: StoredType) -> Column:
    """Turn a type into a column without a name: our type, and the domain that the type implies."""
    ours = _ours(stored)
    unlisted = stored.name == "enum" and not ours.labels
    other = unlisted or stored.name in _CHANGED or _unsigned(stored) in _CHANGED or _too_long(stored)
    changed = other and ours.kind is not Kind.OTHER
    implied = _listed(stored) if stored.name == "set" or unlisted else implied_by_type(ours)
    return Column(name="", type=ours, implied=implied, source_type=stored.full[:MAX_TYPE_TEXT] if changed else None)


def declare(of: SqlType, *, indexed: bool = False) -> str:
    """Write one of our types as MySQL declares it; text without a length gets one where it is `indexed`.

    >>> declare(parse_type("VARCHAR")), declare(parse_type("VARCHAR"), indexed=True), declare(parse_type("UINTEGER"))
    ('LONGTEXT', 'VARCHAR(255)', 'INT UNSIGNED')
    """
    if of.labels:
        return f"ENUM({', '.join(map(quoted_text, of.labels))})"
    if of.sql.partition("(")[0] in _OWN or (of.syntax is not None and of.sql in _DECLARED):
        return _DECLARED.get(of.sql, of.sql)
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
    if stored.name == "enum":
        return enum_type(stored.members)
    if _too_long(stored):
        return parse_type("DOUBLE")
    if stored.name in _SIZED:
        return any_type(f"{stored.name}({','.join(map(str, stored.sizes))})", shown=stored.full)
    return any_type(_NAMES.get(_unsigned(stored), "") or f"mysql {stored.name}", shown=stored.full)


def _too_long(stored: StoredType) -> bool:
    return stored.name == "decimal" and stored.sizes[0] > MOST_DIGITS


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
