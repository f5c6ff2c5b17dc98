"""Read DDL token by token: names, types, lists, options, and expressions with what they call.

What the readers of kinds of statements (`ddl_postgres`, `ddl_mysql`) share. An expression is looked through, not
parsed: a server will say whether it is one. What it calls that is in no closed list makes it code.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from privbench.schema.ddl_functions import FUNCTIONS, TYPES
from privbench.schema.ddl_tokens import MYSQL, POSTGRES, DdlError, Token, TokenKind, Tokens, word_set

Name = tuple[str, ...]
"""The name of an object in its parts, without quotes; without the schema `public`."""
_WORDS = """
SELECT FROM WHERE AND OR NOT IN ON AS ANY ALL SOME EXISTS ROW VALUES CASE WHEN THEN ELSE IS LIKE BETWEEN UNION
INTERSECT EXCEPT DISTINCT BY HAVING LIMIT OFFSET USING JOIN OVER INTERVAL ESCAPE WITH
"""
_BEFORE_BRACKET = {
    POSTGRES: word_set(_WORDS + "ARRAY ILIKE SIMILAR TO FILTER GROUP LATERAL SETS ROLLUP CUBE MATERIALIZED VARYING"),
    MYSQL: word_set(
        _WORDS
        + """REGEXP RLIKE DIV MOD XOR MATCH AGAINST BINARY SEPARATOR STRAIGHT_JOIN COLUMNS RANGE LIST HASH KEY THAN
        PARTITION"""
    ),
}
"""Words that may stand before a bracket and call nothing."""
_NO_EXPRESSION = word_set(
    """INTO OUTFILE DUMPFILE INFILE COPY PROGRAM EXECUTE PROCEDURE CALL GRANT REVOKE CREATE ALTER DROP TRUNCATE INSERT
    UPDATE DELETE MERGE TABLE RECURSIVE TABLESAMPLE OPERATOR LOCK LISTEN NOTIFY PREPARE TRIGGER LANGUAGE XMLTABLE
    JSON_TABLE INFORMATION_SCHEMA PERFORMANCE_SCHEMA DEFINER HANDLER"""
)
"""Words that no plain expression or query needs."""
_VALUE_WORDS = word_set(
    """CURRENT_USER SESSION_USER USER CURRENT_ROLE CURRENT_CATALOG CURRENT_SCHEMA SYSTEM_USER CURRENT_DATE CURRENT_TIME
    CURRENT_TIMESTAMP LOCALTIME LOCALTIMESTAMP"""
)
_SERVER_SCHEMAS = frozenset(("information_schema", "performance_schema", "mysql", "sys"))
INDEX_METHODS = ("BTREE", "HASH", "GIST", "SPGIST", "GIN", "BRIN", "RTREE")
_ACTIONS = (("NO", "ACTION"), ("RESTRICT",), ("CASCADE",), ("SET", "NULL"), ("SET", "DEFAULT"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a text says."""

    makes: Name | None = None
    about: tuple[Name, ...] = ()
    """Tables and views that must be the source's own: what is altered, indexed or described."""
    alters: Name | None = None
    """The sequence or statistics object that is altered, which must be the source's own too."""
    reads: frozenset[Name] = frozenset()
    """Tables and views in a schema that is named, from which a query selects."""
    types: frozenset[Name] = frozenset()
    """Types that the system does not have by itself."""
    beyond: frozenset[str] = frozenset()
    """What makes it code."""
    literals: int = 0


@dataclass(slots=True)
class Reader:
    """Takes the tokens of a text one after the other."""

    tokens: Tokens
    dialect: str
    at: int = 0
    about: list[Name] = field(default_factory=list)
    types: set[Name] = field(default_factory=set)
    alters: Name | None = None
    reads: set[Name] = field(default_factory=set)
    beyond: set[str] = field(default_factory=set)
    literals: int = 0

    @property
    def next(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def has(self, *words: str) -> bool:
        """Whether these words come next."""
        return tuple(t.word for t in self.tokens[self.at : self.at + len(words)]) == words

    def may(self, *words: str) -> bool:
        """Take these words if they come next."""
        found = self.has(*words)
        self.at += len(words) if found else 0
        return found

    def must(self, *words: str) -> None:
        if not self.may(*words):
            raise DdlError(f"{' '.join(words)} is expected {self._where()}")

    def one_of(self, choices: Iterable[tuple[str, ...]]) -> bool:
        return any(self.may(*words) for words in choices)

    def has_sign(self, text: str) -> bool:
        return self.next is not None and self.next.is_sign(text)

    def may_sign(self, text: str) -> bool:
        found = self.has_sign(text)
        self.at += found
        return found

    def must_sign(self, text: str) -> None:
        if not self.may_sign(text):
            raise DdlError(f"{text} is expected {self._where()}")

    def part(self) -> str:
        """One name; without quotes it is in small letters, as PostgreSQL takes it."""
        token = self.next
        if token is None or token.kind not in (TokenKind.WORD, TokenKind.NAME):
            raise DdlError(f"a name is expected {self._where()}")
        self.at += 1
        return token.text if token.kind is TokenKind.NAME or self.dialect == MYSQL else token.text.lower()

    def name(self) -> Name:
        """A name, perhaps qualified."""
        parts = [self.part()]
        while self.may_sign("."):
            parts.append(self.part())
        return tuple(parts[1:] if len(parts) > 1 and parts[0] == "public" else parts)

    def token(self, kind: TokenKind) -> Token:
        token = self.next
        if token is None or token.kind is not kind:
            raise DdlError(f"a {kind.value} is expected {self._where()}")
        self.at += 1
        return token

    def group(self) -> Tokens:
        """What stands in the brackets that open next."""
        start = self.at
        self.must_sign("(")
        depth = 1
        while depth:
            token = self.tokens[self.at]
            depth += token.is_sign("(") - token.is_sign(")")
            self.at += 1
        return self.tokens[start + 1 : self.at - 1]

    def rest(self) -> Tokens:
        rest, self.at = self.tokens[self.at :], len(self.tokens)
        return rest

    def until(self, *words: str) -> Tokens:
        """Tokens up to one of these words outside brackets, or up to the end."""
        start, depth = self.at, 0
        while (token := self.next) is not None and not (depth == 0 and token.word in words):
            depth += (token.text in ("(", "[")) - (token.text in (")", "]")) if token.kind is TokenKind.SIGN else 0
            self.at += 1
        return self.tokens[start : self.at]

    def end(self) -> None:
        if self.next is not None:
            raise DdlError(f"nothing is expected {self._where()}")

    def _where(self) -> str:
        before = " ".join(t.text for t in self.tokens[max(self.at - 3, 0) : self.at])
        return f"after {before[-60:]}" if before else "at the start"

    # -- parts that many statements have -------------------------------------------------------------------------------

    def expression(self, tokens: Tokens, more: frozenset[str] = frozenset()) -> None:
        """Look through an expression or a query: what it calls that is in no list makes it code."""
        if not tokens:
            raise DdlError(f"an expression is expected {self._where()}")
        allowed = FUNCTIONS[self.dialect] | more
        for at, token in enumerate(tokens):
            self.literals += token.kind in (TokenKind.STRING, TokenKind.NUMBER) and not _is_size(tokens, at)
            if token.kind is TokenKind.BODY or (token.kind is TokenKind.SIGN and token.text.startswith("$")):
                raise DdlError("dollar quotes stand in an expression")
            if token.word in _NO_EXPRESSION or _is_server_name(token, tokens[at + 1 : at + 2]):
                self.beyond.add(token.text)
            if token.word in _VALUE_WORDS and token.text.lower() not in more and not _is_qualified(tokens, at):
                self.beyond.add(token.text)
            opens = at + 1 < len(tokens) and tokens[at + 1].is_sign("(")
            if opens and not _is_call_of(tokens, at, allowed, self.dialect):
                self.beyond.add(token.text)

    def names_list(self) -> None:
        """Plain names in brackets."""
        inner = Reader(self.group(), self.dialect)
        inner.part()
        while inner.may_sign(","):
            inner.part()
        inner.end()

    def options(self) -> None:
        """Storage options in brackets: names with a plain value each."""
        inner = Reader(self.group(), self.dialect)
        while True:
            inner.name()
            if inner.may_sign("=") and (inner.next is None or inner.next.kind is TokenKind.SIGN):
                inner.may_sign("-")
                inner.token(TokenKind.NUMBER)
            elif inner.at and inner.tokens[inner.at - 1].is_sign("="):
                inner.at += 1
            if not inner.may_sign(","):
                break
        inner.end()

    def type(self) -> None:
        """A type with its size."""
        token = self.next
        name = self.name()
        if token is not None and len(name) == 1 and token.kind is TokenKind.WORD and name[0] in TYPES[POSTGRES]:
            self.one_of((("VARYING",), ("PRECISION",)))
            if name[0] == "interval":
                self._fields()
        elif name not in (("pg_catalog", "char"), ("char",)):
            self.types.add(name)
        if self.has_sign("("):
            self.size()
        self.one_of((("WITH", "TIME", "ZONE"), ("WITHOUT", "TIME", "ZONE")))
        while self.may_sign("["):
            if not self.has_sign("]"):
                self.token(TokenKind.NUMBER)
            self.must_sign("]")

    def _fields(self) -> None:
        """What an interval holds: `DAY TO SECOND`."""
        units = tuple((unit,) for unit in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"))
        if self.one_of(units) and self.may("TO") and not self.one_of(units):
            raise DdlError("the fields of an interval are expected")

    def size(self) -> None:
        """The sizes of a type, or of the prefix of a column."""
        inner = Reader(self.group(), self.dialect)
        while True:
            inner.may_sign("-")
            if inner.next is not None and inner.next.kind is TokenKind.WORD:
                inner.at += 1  # such as geometry(Point,4326)
            else:
                inner.token(TokenKind.NUMBER)
            if not inner.may_sign(","):
                break
        inner.end()

    def deferring(self) -> None:
        self.one_of((("NOT", "DEFERRABLE"), ("DEFERRABLE",)))
        self.one_of((("INITIALLY", "DEFERRED"), ("INITIALLY", "IMMEDIATE")))
        self.one_of((("NOT", "VALID"), ("NO", "INHERIT")))
        self.one_of((("NOT", "VALID"), ("NOT", "ENFORCED"), ("ENFORCED",)))

    def check(self) -> None:
        self.must("CHECK")
        self.expression(self.group())

    def references(self) -> None:
        self.must("REFERENCES")
        self.about.append(self.name())
        if self.has_sign("("):
            self.names_list()
        self.one_of((("MATCH", "FULL"), ("MATCH", "SIMPLE"), ("MATCH", "PARTIAL")))
        while self.may("ON"):
            if not (self.may("DELETE") or self.may("UPDATE")) or not self.one_of(_ACTIONS):
                raise DdlError(f"what to do is expected {self._where()}")
            if self.has_sign("("):
                self.names_list()

    def query(self, more: frozenset[str]) -> None:
        """The query of a view, up to the end."""
        self.must("AS")
        if not (self.has("SELECT") or self.has("WITH") or self.has("VALUES") or self.has_sign("(")):
            raise DdlError("a query is expected after AS")
        tokens = self.rest()
        self.expression(tokens, more)
        self.reads |= set(_selected_from(tokens, self.dialect))

    def counting(self) -> None:
        """How a sequence counts; its numbers are literals unless they are those that every sequence has."""
        while True:
            if self.may("NO", "MINVALUE") or self.may("NO", "MAXVALUE") or self.may("NO", "CYCLE") or self.may("CYCLE"):
                continue
            word = next((w for w in ("INCREMENT", "MINVALUE", "MAXVALUE", "START", "CACHE") if self.may(w)), None)
            if word is None:
                return
            self.one_of((("BY",), ("WITH",)))
            sign = "-" if self.may_sign("-") else ""
            number = sign + self.token(TokenKind.NUMBER).text
            self.literals += word != "CACHE" and number not in _USUAL_BOUNDS


_USUAL_BOUNDS = ("1", *(str(2**bits - 1) for bits in (15, 31, 63)))


_AFTER_FROM = word_set(
    "WHERE GROUP HAVING ORDER LIMIT OFFSET UNION INTERSECT EXCEPT WINDOW FETCH FOR SELECT WITH VALUES"
)
_FROM_INSIDE = word_set("EXTRACT SUBSTRING TRIM OVERLAY POSITION")
"""Functions in whose brackets FROM stands before a value."""


def _selected_from(tokens: Tokens, dialect: str) -> Iterator[Name]:
    """The qualified names that stand where a table does: behind FROM, JOIN, or a comma between tables."""
    lists, inside, wanted = [False], [False], False  # by bracket: between tables; in a function with FROM; a table next
    for at, token in enumerate(tokens):
        word, before = token.word, tokens[at - 1].word if at else ""
        if token.is_sign("("):
            lists.append(wanted)
            inside.append(before in _FROM_INSIDE or (at > 0 and tokens[at - 1].text.upper() in _FROM_INSIDE))
        elif token.is_sign(")"):
            lists, inside, wanted = lists[:-1] or [False], inside[:-1] or [False], False
        elif word == "FROM":
            compares = before == "DISTINCT" and at > 1 and tokens[at - 2].word in ("IS", "NOT")
            if not compares and not inside[-1]:
                lists[-1] = wanted = True
        elif word.endswith("JOIN"):
            wanted = True
        elif word in _AFTER_FROM:
            lists[-1] = inside[-1] = wanted = False
        elif token.is_sign(","):
            wanted = lists[-1]
        elif wanted and word not in ("ONLY", "LATERAL"):
            wanted = False
            if token.kind in (TokenKind.WORD, TokenKind.NAME) and at + 1 < len(tokens) and tokens[at + 1].is_sign("."):
                yield Reader(tokens[at : at + 6], dialect).name()


def _is_size(tokens: Tokens, at: int) -> bool:
    """Whether a number is the size of a type: `numeric(10,2)`, `varying(20)`."""
    if tokens[at].kind is not TokenKind.NUMBER:
        return False
    opened = at - 1 if not tokens[at - 1].is_sign(",") else at - 3
    return opened > 0 and tokens[opened].is_sign("(") and tokens[opened - 1].text.lower() in _SIZED


_SIZED = word_set("numeric decimal varchar character varying char bit binary varbinary time timestamp interval")


def _is_server_name(token: Token, then: Tokens) -> bool:
    """Whether it names what belongs to the server, not to a database: its catalogue, its files and sessions."""
    if token.kind not in (TokenKind.WORD, TokenKind.NAME):
        return False
    text = token.text.lower()
    if text == "pg_catalog":  # before a function, a type, an operator or a collation that is looked up by itself
        return False
    return text.startswith("pg_") or (text in _SERVER_SCHEMAS and bool(then) and then[0].is_sign("."))


def _is_qualified(tokens: Tokens, at: int) -> bool:
    return at > 0 and tokens[at - 1].is_sign(".")


def _is_call_of(tokens: Tokens, at: int, allowed: frozenset[str], dialect: str) -> bool:
    """Whether what stands before a bracket is no call, or one of these functions."""
    token = tokens[at]
    if token.kind not in (TokenKind.WORD, TokenKind.NAME):
        return True
    if _is_qualified(tokens, at):
        builtin = at > 1 and tokens[at - 2].text == "pg_catalog" and not _is_qualified(tokens, at - 2)
        return builtin and token.text.lower() in allowed
    if at > 0 and (tokens[at - 1].word == "AS" or tokens[at - 1].is_sign(")")):  # a type, or an alias with its columns
        return True
    if token.kind is TokenKind.NAME:
        return dialect == POSTGRES and token.text in allowed
    is_word = token.word in _BEFORE_BRACKET[dialect] or token.text.lower() in TYPES[dialect]
    return is_word or token.text.lower() in allowed
