"""What a statement of the source's own DDL is: exactly one statement, of exactly the kind that it claims.

Every kind has its words, in their order; what is not in this list of kinds and words is refused. `read_statement` and
the readers of the parts of a table tell what a text makes, which objects it is about, what in it is code (`beyond`: calls
of functions that are in no closed list, and the like), and how many literals it holds.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from privbench.schema.ddl_functions import CLOCK, FUNCTIONS, NEXT_NUMBER, TYPES
from privbench.schema.ddl_tokens import MYSQL, POSTGRES, DdlError, Token, TokenKind, Tokens, read_tokens

Name = tuple[str, ...]
"""The name of an object in its parts, without quotes; without the schema `public`."""
CODE_KINDS = ("function", "extension")
"""Kinds that are code, whatever they hold."""
_WORDS = (
    "SELECT FROM WHERE AND OR NOT IN ON AS ANY ALL SOME EXISTS ROW VALUES CASE WHEN THEN ELSE IS LIKE BETWEEN UNION "
    "INTERSECT EXCEPT DISTINCT BY HAVING LIMIT OFFSET USING JOIN OVER INTERVAL ESCAPE WITH "
)
_BEFORE_BRACKET = {
    POSTGRES: frozenset(
        f"{_WORDS} ARRAY ILIKE SIMILAR TO FILTER GROUP LATERAL SETS ROLLUP CUBE MATERIALIZED VARYING".split()
    ),
    MYSQL: frozenset(
        f"{_WORDS} REGEXP RLIKE DIV MOD XOR MATCH AGAINST BINARY SEPARATOR STRAIGHT_JOIN COLUMNS RANGE LIST HASH KEY "
        "THAN PARTITION".split()
    ),
}
"""Words that may stand before a bracket and call nothing."""
_NO_EXPRESSION = frozenset(
    "INTO OUTFILE DUMPFILE INFILE COPY PROGRAM EXECUTE PROCEDURE CALL GRANT REVOKE CREATE ALTER DROP TRUNCATE INSERT UPDATE "
    "DELETE MERGE RECURSIVE TABLESAMPLE OPERATOR LOCK LISTEN NOTIFY PREPARE TRIGGER LANGUAGE XMLTABLE JSON_TABLE "
    "INFORMATION_SCHEMA PERFORMANCE_SCHEMA DEFINER HANDLER".split()
)
"""Words that no plain expression or query needs."""
_VALUE_WORDS = frozenset(
    "CURRENT_USER SESSION_USER USER CURRENT_ROLE CURRENT_CATALOG CURRENT_SCHEMA SYSTEM_USER CURRENT_DATE CURRENT_TIME "
    "CURRENT_TIMESTAMP LOCALTIME LOCALTIMESTAMP".split()
)
_SERVER_SCHEMAS = frozenset(("information_schema", "performance_schema", "mysql", "sys"))
_NOT_IN_DEFAULT = frozenset("REFERENCES CHECK CONSTRAINT PRIMARY UNIQUE FOREIGN SELECT".split())
_COMMENTED = (
    ("MATERIALIZED", "VIEW"),
    *((word,) for word in "TABLE COLUMN VIEW INDEX CONSTRAINT TYPE DOMAIN SCHEMA SEQUENCE STATISTICS FUNCTION".split()),
)
_INDEX_METHODS = ("BTREE", "HASH", "GIST", "SPGIST", "GIN", "BRIN", "RTREE")
_ENGINES = ("INNODB", "MYISAM", "ARIA")
_ACTIONS = (("NO", "ACTION"), ("RESTRICT",), ("CASCADE",), ("SET", "NULL"), ("SET", "DEFAULT"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a text says."""

    makes: Name | None = None
    about: tuple[Name, ...] = ()
    """Tables and views that must be the source's own: what is altered, indexed or described."""
    types: frozenset[Name] = frozenset()
    """Types that the system does not have by itself."""
    beyond: frozenset[str] = frozenset()
    """What makes it code."""
    literals: int = 0


@dataclass(slots=True)
class _Reader:
    """Takes the tokens of a text one after the other."""

    tokens: Tokens
    dialect: str
    at: int = 0
    about: list[Name] = field(default_factory=list)
    types: set[Name] = field(default_factory=set)
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
            if at + 1 < len(tokens) and tokens[at + 1].is_sign("(") and not _is_call_of(tokens, at, allowed, self.dialect):
                self.beyond.add(token.text)

    def names_list(self) -> None:
        """Plain names in brackets."""
        inner = _Reader(self.group(), self.dialect)
        inner.part()
        while inner.may_sign(","):
            inner.part()
        inner.end()

    def options(self) -> None:
        """Storage options in brackets: names with a plain value each."""
        inner = _Reader(self.group(), self.dialect)
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
                self.one_of((("YEAR", "TO", "MONTH"), ("DAY", "TO", "HOUR"), ("DAY", "TO", "MINUTE"), ("DAY", "TO", "SECOND")))
                self.one_of((("HOUR", "TO", "MINUTE"), ("HOUR", "TO", "SECOND"), ("MINUTE", "TO", "SECOND")))
                self.one_of((("YEAR",), ("MONTH",), ("DAY",), ("HOUR",), ("MINUTE",), ("SECOND",)))
        elif name not in (("pg_catalog", "char"), ("char",)):
            self.types.add(name)
        if self.has_sign("("):
            self._size()
        self.one_of((("WITH", "TIME", "ZONE"), ("WITHOUT", "TIME", "ZONE")))
        while self.may_sign("["):
            if not self.has_sign("]"):
                self.token(TokenKind.NUMBER)
            self.must_sign("]")

    def _size(self) -> None:
        inner = _Reader(self.group(), self.dialect)
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


def _is_size(tokens: Tokens, at: int) -> bool:
    """Whether a number is the size of a type: `numeric(10,2)`, `varying(20)`."""
    if tokens[at].kind is not TokenKind.NUMBER:
        return False
    while at and (tokens[at].kind is TokenKind.NUMBER or tokens[at].is_sign(",")):
        at -= 1
    return at > 0 and tokens[at].is_sign("(") and tokens[at - 1].text.lower() in _SIZED


_SIZED = frozenset("numeric decimal varchar character varying char bit binary varbinary time timestamp interval".split())


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


# -- PostgreSQL --------------------------------------------------------------------------------------------------------


def _schema(reader: _Reader) -> Name:
    reader.must("CREATE", "SCHEMA")
    reader.may("IF", "NOT", "EXISTS")
    return (reader.part(),)


def _extension(reader: _Reader) -> Name:
    reader.must("CREATE", "EXTENSION")
    reader.may("IF", "NOT", "EXISTS")
    name = reader.part()
    reader.may("WITH")
    if reader.may("SCHEMA"):
        reader.part()
    return (name,)


def _type(reader: _Reader) -> Name:
    reader.must("CREATE", "TYPE")
    name = reader.name()
    reader.must("AS")
    if reader.may("ENUM"):
        labels = reader.group()
        if any(t.kind is not TokenKind.STRING and not t.is_sign(",") for t in labels):
            raise DdlError("something else than labels stands in an ENUM")
        reader.literals += sum(t.kind is TokenKind.STRING for t in labels)
        return name
    inner = _Reader(reader.group(), reader.dialect)
    while True:
        inner.part()
        inner.type()
        if inner.may("COLLATE"):
            inner.name()
        if not inner.may_sign(","):
            break
    inner.end()
    reader.types |= inner.types
    return name


def _domain(reader: _Reader) -> Name:
    reader.must("CREATE", "DOMAIN")
    name = reader.name()
    reader.must("AS")
    reader.type()
    if reader.may("COLLATE"):
        reader.name()
    if reader.may("DEFAULT"):
        _default(reader, reader.until("NOT", "CONSTRAINT", "CHECK"))
    reader.may("NOT", "NULL")
    while reader.next is not None:
        if reader.may("CONSTRAINT"):
            reader.part()
        reader.check()
        reader.may("NOT", "VALID")
    return name


def _default(reader: _Reader, tokens: Tokens) -> None:
    if any(t.word in _NOT_IN_DEFAULT or (t.is_sign(",") and _depth(tokens, at) == 0) for at, t in enumerate(tokens)):
        raise DdlError("a default holds more than an expression")
    reader.expression(tokens, CLOCK | NEXT_NUMBER)
    if any(token.text.lower() == "nextval" for token in tokens):
        reader.literals -= 1  # the name of a sequence


def _depth(tokens: Tokens, at: int) -> int:
    return sum(t.is_sign("(") + t.is_sign("[") - t.is_sign(")") - t.is_sign("]") for t in tokens[:at])


def _sequence(reader: _Reader) -> Name:
    reader.must("CREATE", "SEQUENCE")
    name = reader.name()
    if reader.may("AS"):
        reader.type()
    reader.counting()
    return name


def _sequence_owner(reader: _Reader) -> None:
    reader.must("ALTER", "SEQUENCE")
    reader.name()
    reader.must("OWNED", "BY")
    reader.about.append(reader.name()[:-1])


def _function(reader: _Reader) -> Name:
    reader.must("CREATE")
    reader.may("OR", "REPLACE")
    reader.must("FUNCTION")
    name = reader.name()
    reader.group()
    reader.must("RETURNS")
    kinds = (TokenKind.STRING, TokenKind.NUMBER, TokenKind.BODY)
    reader.literals += sum(token.kind in kinds for token in reader.rest())
    return name


def _partition(reader: _Reader) -> Name:
    reader.must("CREATE")
    reader.may("UNLOGGED")
    reader.must("TABLE")
    name = reader.name()
    reader.must("PARTITION", "OF")
    reader.about.append(reader.name())
    if not reader.may("DEFAULT"):
        reader.must("FOR", "VALUES")
        bound = reader.until("PARTITION", "USING") if not reader.has("WITH") else ()
        options = next((at for at, t in enumerate(bound) if t.word == "WITH" and _is_options(bound[at + 1 :])), None)
        if options is not None:
            reader.at -= len(bound) - options
            bound = bound[:options]
        if not bound or bound[0].word not in ("IN", "FROM", "WITH"):
            raise DdlError("the bound of a partition is expected")
        reader.expression(bound)
    _table_tail(reader)
    return name


def _is_options(tokens: Tokens) -> bool:
    """Whether these are storage options, not the bound of a partition by hash."""
    return len(tokens) > 1 and tokens[1].word not in ("MODULUS", "REMAINDER")


def _table_tail(reader: _Reader) -> None:
    """What follows the columns of a table, or the bound of a partition."""
    if reader.may("INHERITS"):
        inner = _Reader(reader.group(), reader.dialect)
        reader.about.append(inner.name())
        while inner.may_sign(","):
            reader.about.append(inner.name())
        inner.end()
    if reader.may("PARTITION", "BY"):
        if not reader.one_of((("RANGE",), ("LIST",), ("HASH",))):
            raise DdlError("RANGE, LIST or HASH is expected after PARTITION BY")
        reader.expression(reader.group())
    reader.may("USING", "HEAP")
    if reader.may("WITH"):
        reader.options()


def _altered(reader: _Reader) -> None:
    reader.must("ALTER", "TABLE")
    reader.may("ONLY")
    reader.about.append(reader.name())


def _added(reader: _Reader) -> None:
    _altered(reader)
    reader.must("ADD")
    if reader.may("CONSTRAINT"):
        reader.part()


def _primary_key(reader: _Reader) -> None:
    _added(reader)
    reader.must("PRIMARY", "KEY")
    _key_tail(reader)


def _unique(reader: _Reader) -> None:
    _added(reader)
    reader.must("UNIQUE")
    reader.one_of((("NULLS", "NOT", "DISTINCT"), ("NULLS", "DISTINCT")))
    _key_tail(reader)


def _key_tail(reader: _Reader) -> None:
    reader.names_list()
    if reader.may("INCLUDE"):
        reader.names_list()
    if reader.may("WITH"):
        reader.options()
    reader.deferring()


def _foreign_key(reader: _Reader) -> None:
    _added(reader)
    reader.must("FOREIGN", "KEY")
    reader.names_list()
    reader.references()
    reader.deferring()


def _check(reader: _Reader) -> None:
    _added(reader)
    reader.check()
    reader.deferring()


def _column_statistics(reader: _Reader) -> None:
    _altered(reader)
    reader.must("ALTER", "COLUMN")
    reader.part()
    reader.must("SET", "STATISTICS")
    reader.token(TokenKind.NUMBER)


def _column_storage(reader: _Reader) -> None:
    _altered(reader)
    reader.must("ALTER", "COLUMN")
    reader.part()
    reader.must("SET", "STORAGE")
    if not reader.one_of((("PLAIN",), ("EXTERNAL",), ("EXTENDED",), ("MAIN",), ("DEFAULT",))):
        raise DdlError("a way of storage is expected")


def _cluster(reader: _Reader) -> None:
    _altered(reader)
    reader.must("CLUSTER", "ON")
    reader.part()


def _index(reader: _Reader) -> Name:
    reader.must("CREATE")
    reader.may("UNIQUE")
    return _index_on(reader)


def _unique_index(reader: _Reader) -> Name:
    reader.must("CREATE", "UNIQUE")
    return _index_on(reader)


def _index_on(reader: _Reader) -> Name:
    reader.must("INDEX")
    name = reader.name()
    reader.must("ON")
    reader.may("ONLY")
    reader.about.append(reader.name())
    if reader.may("USING") and not reader.one_of((method,) for method in _INDEX_METHODS):
        raise DdlError("a known index method is expected after USING")
    reader.expression(reader.group())
    if reader.may("INCLUDE"):
        reader.names_list()
    reader.one_of((("NULLS", "NOT", "DISTINCT"), ("NULLS", "DISTINCT")))
    if reader.may("WITH"):
        reader.options()
    if reader.may("WHERE"):
        reader.expression(reader.rest())
    return name


def _query(reader: _Reader, more: frozenset[str]) -> None:
    reader.must("AS")
    if not (reader.has("SELECT") or reader.has("WITH") or reader.has("VALUES") or reader.has_sign("(")):
        raise DdlError("a query is expected after AS")
    reader.expression(reader.rest(), more)


def _view(reader: _Reader) -> Name:
    reader.must("CREATE", "VIEW")
    name = reader.name()
    if reader.has_sign("("):
        reader.names_list()
    if reader.may("WITH"):
        reader.options()
    _query(reader, CLOCK)
    return name


def _materialized_view(reader: _Reader) -> Name:
    reader.must("CREATE", "MATERIALIZED", "VIEW")
    name = reader.name()
    if reader.has_sign("("):
        reader.names_list()
    if reader.may("WITH"):
        reader.options()
    _query(reader, frozenset())
    return name


def _statistics(reader: _Reader) -> Name:
    reader.must("CREATE", "STATISTICS")
    name = reader.name()
    if reader.has_sign("("):
        reader.names_list()
    reader.must("ON")
    reader.expression(reader.until("FROM"))
    reader.must("FROM")
    reader.about.append(reader.name())
    return name


def _statistics_target(reader: _Reader) -> None:
    reader.must("ALTER", "STATISTICS")
    reader.name()
    reader.must("SET", "STATISTICS")
    reader.token(TokenKind.NUMBER)


def _comment(reader: _Reader) -> None:
    reader.must("COMMENT", "ON")
    word = next((words for words in _COMMENTED if reader.may(*words)), None)
    if word is None:
        raise DdlError("COMMENT ON something else than an object of a schema")
    name = reader.name()
    if word in (("TABLE",), ("COLUMN",)):
        reader.about.append(name if word == ("TABLE",) else name[:-1])
    elif word == ("CONSTRAINT",):
        reader.must("ON")
        reader.about.append(reader.name())
    elif word == ("FUNCTION",):
        reader.group()
    reader.must("IS")
    if not reader.may("NULL"):
        reader.token(TokenKind.STRING)
        reader.literals += 1


# -- MySQL and MariaDB -------------------------------------------------------------------------------------------------

_COLUMN_WORDS = frozenset("UNSIGNED SIGNED ZEROFILL AUTO_INCREMENT STORED VIRTUAL PERSISTENT INVISIBLE UNIQUE NULL".split())
_PARTITION_WORDS = frozenset(
    "PARTITION PARTITIONS BY RANGE LIST HASH KEY LINEAR COLUMNS SUBPARTITION SUBPARTITIONS VALUES LESS THAN MAXVALUE IN "
    "ENGINE COMMENT DEFAULT ALGORITHM NULL INTERVAL DAY MONTH YEAR".split()
)


def _mysql_added(reader: _Reader) -> None:
    reader.must("ALTER", "TABLE")
    reader.about.append(reader.name())
    reader.must("ADD")
    if reader.may("CONSTRAINT"):
        reader.part()


def _mysql_key(*words: str) -> Callable[[_Reader], None]:
    def read(reader: _Reader) -> None:
        _mysql_added(reader)
        reader.must(*words)
        _mysql_parts(reader)

    return read


def _mysql_index(reader: _Reader) -> None:
    _mysql_added(reader)
    reader.one_of((("UNIQUE",), ("FULLTEXT",), ("SPATIAL",), ("VECTOR",)))
    reader.must("KEY")
    _mysql_parts(reader)


def _mysql_parts(reader: _Reader) -> None:
    """The columns of a key, with prefixes and orders, or expressions."""
    if not reader.has_sign("("):
        reader.part()
    inner = _Reader(reader.group(), reader.dialect)
    while True:
        if inner.has_sign("("):
            reader.expression(inner.group())
        else:
            inner.part()
            if inner.has_sign("("):
                inner._size()  # noqa: SLF001  of a prefix
        inner.one_of((("ASC",), ("DESC",)))
        if not inner.may_sign(","):
            break
    inner.end()
    while reader.next is not None:
        if reader.may("USING"):
            if not reader.one_of((method,) for method in _INDEX_METHODS):
                raise DdlError("a known index method is expected after USING")
        elif reader.may("COMMENT"):
            reader.token(TokenKind.STRING)
            reader.literals += 1
        elif reader.may("KEY_BLOCK_SIZE"):
            reader.must_sign("=")
            reader.token(TokenKind.NUMBER)
        elif not reader.one_of((("INVISIBLE",), ("VISIBLE",), ("IGNORED",))):
            reader.end()


def _mysql_foreign_key(reader: _Reader) -> None:
    _mysql_added(reader)
    reader.must("FOREIGN", "KEY")
    if not reader.has_sign("("):
        reader.part()
    reader.names_list()
    reader.references()


def _mysql_check(reader: _Reader) -> None:
    _mysql_added(reader)
    reader.check()
    reader.may("NOT", "ENFORCED")


def _mysql_partition(reader: _Reader) -> None:
    reader.must("ALTER", "TABLE")
    reader.about.append(reader.name())
    if not reader.has("PARTITION", "BY"):
        raise DdlError("PARTITION BY is expected")
    tokens = reader.rest()
    for at, token in enumerate(tokens):
        named = token.word in _PARTITION_WORDS or token.text.lower() in FUNCTIONS[MYSQL]
        is_engine = token.word in _ENGINES and at > 0 and tokens[at - 1].is_sign("=")
        if token.word and not named and not is_engine:
            raise DdlError(f"{token.text} is not expected in PARTITION BY")
    reader.expression(tokens)


def _mysql_view(reader: _Reader) -> Name:
    reader.must("CREATE", "VIEW")
    name = reader.name()
    _query(reader, CLOCK)
    return name


def _mysql_column(reader: _Reader) -> None:
    name = reader.part().lower()
    if name not in TYPES[MYSQL]:
        raise DdlError(f"{name} is no known type")
    if reader.may("PRECISION") or name not in ("enum", "set"):
        if reader.has_sign("("):
            reader._size()  # noqa: SLF001
    else:
        labels = reader.group()
        if any(t.kind is not TokenKind.STRING and not t.is_sign(",") for t in labels):
            raise DdlError("something else than labels stands in an ENUM")
        reader.literals += sum(t.kind is TokenKind.STRING for t in labels)
    while reader.next is not None:
        if reader.one_of((("CHARACTER", "SET"), ("CHARSET",), ("COLLATE",))):
            reader.token(TokenKind.WORD)
        elif reader.may("COMMENT"):
            reader.token(TokenKind.STRING)
            reader.literals += 1
        elif reader.may("GENERATED", "ALWAYS", "AS") or reader.may("AS"):
            reader.expression(reader.group())
        elif reader.may("DEFAULT") or reader.may("ON", "UPDATE"):
            _mysql_default(reader)
        elif not (reader.next.word in _COLUMN_WORDS and reader.may(reader.next.word)):
            reader.end()


def _mysql_default(reader: _Reader) -> None:
    """One value: a literal, an expression in brackets, or a call."""
    start = reader.at
    if reader.has_sign("("):
        reader.group()
    else:
        if not reader.may_sign("-"):
            reader.may_sign("+")
        reader.at += 1
        if reader.tokens[reader.at - 1 : reader.at] and reader.tokens[reader.at - 1].text.startswith("_"):
            reader.at += 1  # a character set before a string
        if reader.has_sign("("):
            reader.group()
    reader.expression(reader.tokens[start : reader.at], CLOCK | NEXT_NUMBER)


def _mysql_options(reader: _Reader) -> None:
    while reader.next is not None:
        if reader.may("ENGINE"):
            reader.must_sign("=")
            if not reader.one_of((engine,) for engine in _ENGINES):
                raise DdlError("ENGINE is not one that keeps its rows to itself")
        elif reader.one_of((("DEFAULT", "CHARSET"), ("COLLATE",), ("ROW_FORMAT",))):
            reader.must_sign("=")
            reader.token(TokenKind.WORD)
        elif reader.may("KEY_BLOCK_SIZE"):
            reader.must_sign("=")
            reader.token(TokenKind.NUMBER)
        else:
            reader.must("COMMENT")
            reader.must_sign("=")
            reader.token(TokenKind.STRING)
            reader.literals += 1


_KINDS: dict[str, dict[str, Callable[[_Reader], Name | None]]] = {
    POSTGRES: {
        "schema": _schema,
        "extension": _extension,
        "type": _type,
        "domain": _domain,
        "sequence": _sequence,
        "sequence owner": _sequence_owner,
        "function": _function,
        "partition": _partition,
        "primary key": _primary_key,
        "unique": _unique,
        "foreign key": _foreign_key,
        "check": _check,
        "column statistics": _column_statistics,
        "column storage": _column_storage,
        "cluster": _cluster,
        "index": _index,
        "unique index": _unique_index,
        "view": _view,
        "materialized view": _materialized_view,
        "statistics": _statistics,
        "statistics target": _statistics_target,
        "comment": _comment,
    },
    MYSQL: {
        "primary key": _mysql_key("PRIMARY", "KEY"),
        "unique": _mysql_key("UNIQUE", "KEY"),
        "index": _mysql_index,
        "foreign key": _mysql_foreign_key,
        "check": _mysql_check,
        "partition": _mysql_partition,
        "view": _mysql_view,
    },
}


def _read(dialect: str, sql: str, grammar: Callable[[_Reader], Name | None]) -> Reading:
    reader = _Reader(read_tokens(sql, dialect), dialect)
    makes = grammar(reader)
    reader.end()
    return Reading(
        makes=makes,
        about=tuple(reader.about),
        types=frozenset(reader.types),
        beyond=frozenset(reader.beyond),
        literals=reader.literals,
    )


@lru_cache(maxsize=65_536)
def read_statement(dialect: str, kind: str, sql: str) -> Reading:
    """Read one statement of a kind. Raises DdlError if it is anything else.

    >>> read_statement("postgres", "view", "CREATE VIEW v AS SELECT pg_sleep(9)").beyond
    frozenset({'pg_sleep'})
    """
    if kind not in _KINDS[dialect]:
        raise DdlError(f"{kind} is no kind of object that is made")
    if dialect == MYSQL and kind == "partition":
        sql = unwrapped(sql)
    reading = _read(dialect, sql, _KINDS[dialect][kind])
    return Reading(makes=reading.makes, beyond=frozenset((kind,)), literals=reading.literals) if kind in CODE_KINDS else reading


def unwrapped(sql: str) -> str:
    """A partition without the comment that MySQL writes around it, which every version since 5.1 runs."""
    start, end = " /*!50100 PARTITION BY ", " */"
    return sql.replace(start, " PARTITION BY ", 1).removesuffix(end) if start in sql and sql.endswith(end) else sql


@lru_cache(maxsize=65_536)
def read_column(dialect: str, sql: str) -> Reading:
    """Read what follows the name of a column in CREATE TABLE: its type, collation, default and so on."""
    return _read(dialect, sql, _mysql_column if dialect == MYSQL else _column)


def _column(reader: _Reader) -> None:
    reader.type()
    if reader.may("COLLATE"):
        reader.name()
    if reader.may("DEFAULT"):
        _default(reader, reader.until("GENERATED"))
    if reader.may("GENERATED"):
        if not (reader.may("ALWAYS") or reader.may("BY", "DEFAULT")):
            raise DdlError("ALWAYS or BY DEFAULT is expected after GENERATED")
        reader.must("AS")
        if reader.may("IDENTITY"):
            if reader.has_sign("("):
                inner = _Reader(reader.group(), reader.dialect)
                inner.counting()
                inner.end()
                reader.literals += inner.literals
        else:
            reader.expression(reader.group())
            reader.one_of((("STORED",), ("VIRTUAL",)))


def read_table_words(dialect: str, before: str, after: str) -> Reading:
    """Read what stands between CREATE and TABLE, and behind the columns."""
    if before and (dialect == MYSQL or before != "UNLOGGED"):
        raise DdlError(f"{before[:40]} is not expected before TABLE")
    return _read(dialect, after, _mysql_options if dialect == MYSQL else _table_tail)


@lru_cache(maxsize=65_536)
def read_name(dialect: str, sql: str) -> Name:
    """Read the name of a table or a sequence."""
    makes = _read(dialect, sql, _Reader.name).makes
    if makes is None or len(makes) > 2:  # noqa: PLR2004  a schema and a name
        raise DdlError("is no name of a table or a sequence")
    return makes
