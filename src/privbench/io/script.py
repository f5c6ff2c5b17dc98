"""A script of SQL, cut into statements and parsed in the dialect that fits, whichever that is.

Statements that declare something are parsed with sqlglot; the rest (INSERT, SET, COMMENT ..) is passed over, also what
numbers a column. What sqlglot does not read, domains, views and partitions, is gathered `Beside`.
"""

import logging
import re
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from privbench.errors import SchemaError, first_line

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
_ONE_NULL = re.compile(r"\s+NULLS\s+NOT\s+DISTINCT\b", re.IGNORECASE)
_DECLARES = re.compile(
    rf"({CREATES.pattern}|CREATE\s+(UNIQUE\s+)?INDEX\b"
    r"|CREATE\s+TYPE\b.*\bENUM\b|ALTER\s+TABLE\b.*\b(ADD|MODIFY|SET\s+NOT\s+NULL)\b)",
    re.IGNORECASE | re.DOTALL,
)
_logger = logging.getLogger("sqlglot")
_MYSQL_WORDS = {"AUTO_INCREMENT", "UNSIGNED"}
_NUMBERS = re.compile(r"ALTER\s+TABLE\b.*\bALTER\s+(COLUMN\s+)?\S+\s+ADD\s+GENERATED\b", re.IGNORECASE | re.DOTALL)


def parse_script(text: str, where: str) -> tuple[str, list[exp.Expr]]:
    """Parse all declaring statements in the first dialect that takes them all."""
    furthest, problem = -1, ""
    for dialect in _dialects(text):
        trees: list[exp.Expr] = []
        try:
            for statement in declaring(text, dialect):
                trees.append(parse_one(statement, dialect))  # noqa: PERF401 (how far it got is needed below)
        except SqlglotError as error:
            if len(trees) > furthest:
                furthest, problem = len(trees), _explain(error)
        else:
            return dialect, trees
    raise SchemaError(f"{where}: {problem}")


def _dialects(text: str) -> tuple[str, ...]:
    """Order the dialects to try; words that only MySQL has put it first."""
    try:
        tokens = sqlglot.tokenize(text, dialect="postgres")
    except SqlglotError:
        return ("mysql", "sqlite", "postgres", "duckdb")
    return ("mysql", "sqlite", "postgres") if _is_mysql(tokens) else ("postgres", "duckdb", "mysql", "sqlite")


def _is_mysql(tokens: list[Token]) -> bool:
    """Whether a column is AUTO_INCREMENT or UNSIGNED, or a table has an ENGINE; columns may be called so anywhere."""
    depth = 0
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            continue
        word = token.text.upper()
        if word == "ENGINE" and depth == 0 and after and after.token_type is TokenType.EQ:
            return True
        if word in _MYSQL_WORDS and before and before.token_type not in (TokenType.L_PAREN, TokenType.COMMA):
            return True
    return False


def _explain(error: SqlglotError) -> str:
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        near = f"{first['start_context']}{first['highlight']}{first['end_context']}"[-80:]
        return f"{first['description']} near: {' '.join(near.split())}"
    return first_line(error)


def parse_one(statement: str, dialect: str) -> exp.Expr:
    """Parse one statement. Raises SqlglotError, also for what sqlglot would pass on unread."""
    _logger.disabled = True  # sqlglot logs what it cannot read; we raise instead
    try:
        tree = sqlglot.parse_one(statement, dialect=dialect)
    finally:
        _logger.disabled = False
    if isinstance(tree, exp.Command):
        raise SqlglotError(f"cannot read: {' '.join(statement.split())[:80]}")
    return tree


def declaring(text: str, dialect: str) -> list[str]:
    """Keep the statements that declare something."""
    return [
        _tidy(text, tokens, statement)
        for tokens, statement in cut(text, dialect)
        if _DECLARES.match(statement) and not _numbers_or_parts(statement)
    ]


def _tidy(text: str, tokens: list[Token], statement: str) -> str:
    """Leave out what sqlglot stumbles over: how a table is stored, and that a CHECK may go without a name."""
    if not CREATES.match(statement):
        named = re.sub(r"\bADD\s+CHECK\b", "ADD CONSTRAINT c CHECK", statement, flags=re.IGNORECASE)
        if re.match(r"CREATE\s+(UNIQUE\s+)?INDEX\b", statement, re.IGNORECASE):
            named = re.sub(r"\sON\s+ONLY\s", " ON ", named, count=1, flags=re.IGNORECASE)
            named = _ONE_NULL.sub(" INCLUDE (nulls_not_distinct)", named)
        return named
    depth = 0
    for token in tokens:
        if depth == 0 and token.token_type is TokenType.ALIAS:  # CREATE TABLE .. AS SELECT
            return statement
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 0 and token.token_type is TokenType.R_PAREN:
            return _sized_bits(text[tokens[0].start : token.end + 1])
    return statement


def _sized_bits(create_table: str) -> str:
    return re.sub(r"\bbit\s+varying\b", "varbit", create_table, flags=re.IGNORECASE)


def _numbers_or_parts(statement: str) -> bool:
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


def name_parts(name: str) -> list[str]:
    """The parts of a qualified name, without their quotes.

    >>> name_parts('app."Odd ""name"')
    ['app', 'Odd "name']
    """
    return [inner.replace('""', '"') or plain for inner, plain in _PART.findall(name)]


def last_part(name: str) -> str:
    """The name of a table without its schema."""
    return name_parts(name)[-1]
