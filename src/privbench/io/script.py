"""A script of SQL cut into statements, and what it declares that sqlglot does not read: domains, views, partitions."""

import re
from dataclasses import dataclass

import sqlglot
from sqlglot.tokenizer_core import Token, TokenType

CREATES = re.compile(
    r"CREATE\s+(OR\s+REPLACE\s+)?((GLOBAL|LOCAL|TEMP|TEMPORARY|UNLOGGED)\s+)*TABLE\b",
    re.IGNORECASE,
)
NAME = r'((?:"(?:[^"]|"")+"|[\w$]+)(?:\.(?:"(?:[^"]|"")+"|[\w$]+))*)'
_PART = re.compile(r'"((?:[^"]|"")+)"|([\w$]+)')
_DOMAIN = re.compile(rf"CREATE\s+DOMAIN\s+{NAME}\s+(?:AS\s+)?(.+)", re.IGNORECASE | re.DOTALL)
_VIEW = re.compile(
    rf"CREATE\s+(?:OR\s+REPLACE\s+)?(?:MATERIALIZED\s+)?VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?{NAME}", re.IGNORECASE
)
_ATTACHED = re.compile(
    rf"ALTER\s+TABLE\s+(?:ONLY\s+)?{NAME}\s+ATTACH\s+PARTITION\s+{NAME}\s+(.+)", re.IGNORECASE | re.DOTALL
)
_PARTITION_OF = re.compile(
    rf"{CREATES.pattern}\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<child>{NAME})\s+PARTITION\s+OF\s+(?P<parent>{NAME})"
    r"\s+(?P<bound>(?:FOR\s+VALUES\s.+|DEFAULT))",
    re.IGNORECASE | re.DOTALL,
)
_PARTITIONED = re.compile(
    rf"{CREATES.pattern}\s+(?P<name>{NAME}).*\)\s*PARTITION\s+BY\s+(?P<key>\w+\s*\(.+\))", re.I | re.S
)
_NUMBERS = re.compile(r"ALTER\s+TABLE\b.*\bALTER\s+(COLUMN\s+)?\S+\s+ADD\s+GENERATED\b", re.IGNORECASE | re.DOTALL)


def numbers_or_parts(statement: str) -> bool:
    """Tell whether a statement only numbers a column, or makes a partition, which is part of another table."""
    return any(pattern.match(statement) for pattern in (_NUMBERS, _ATTACHED, _PARTITION_OF))


def cut(text: str, dialect: str) -> list[tuple[list[Token], str]]:
    """Cut at semicolons outside quotes and comments."""
    parts: list[list[Token]] = [[]]
    for token in sqlglot.tokenize(text, dialect=dialect):
        if token.token_type is TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    return [(p, text[p[0].start : p[-1].end + 1]) for p in parts if p]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Partitions:
    """The partitions of one table: how it is cut, and the bounds of each."""

    key: str
    bounds: list[str]


class Beside:
    """What a script declares that sqlglot does not read: domains, views and partitions."""

    def __init__(self) -> None:
        self.domains: dict[str, str] = {}
        self.views: set[str] = set()
        self.children: set[str] = set()
        self.partitions: dict[str, _Partitions] = {}

    @classmethod
    def read(cls, text: str, dialect: str) -> "Beside":
        beside = cls()
        for _, statement in cut(text, dialect):
            beside._take(statement)
        return beside

    def _take(self, statement: str) -> None:
        if found := _DOMAIN.match(statement):
            self.domains[last_part(found[1]).lower()] = found[2]
        elif found := _VIEW.match(statement):
            self.views.add(last_part(found[1]))
        elif found := _ATTACHED.match(statement):
            self._attach(found[1], found[2], found[3])
        elif found := _PARTITION_OF.match(statement):
            self._attach(found["parent"], found["child"], found["bound"])
        elif found := _PARTITIONED.match(statement):
            key = " ".join(found["key"].split())
            self.partitions[last_part(found["name"])] = _Partitions(key=key, bounds=[])

    def _attach(self, parent: str, child: str, bound: str) -> None:
        self.children.add(last_part(child))
        if last_part(parent) in self.partitions:
            self.partitions[last_part(parent)].bounds.append(" ".join(bound.split()))


def last_part(name: str) -> str:
    """The name of a table without its schema and its quotes.

    >>> last_part('app."Odd ""name"')
    'Odd "name'
    """
    inner, plain = map(str, _PART.findall(name)[-1])
    return inner.replace('""', '"') or plain
