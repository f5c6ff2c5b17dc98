"""The statements of MySQL's and MariaDB's DDL that are made again: for each kind its words, in their order."""

from collections.abc import Callable

from privbench.schema.ddl_functions import CLOCK, FUNCTIONS, NEXT_NUMBER, TYPES
from privbench.schema.ddl_reader import INDEX_METHODS, Name, Reader
from privbench.schema.ddl_tokens import MYSQL, DdlError, TokenKind, word_set

_ENGINES = ("INNODB", "MYISAM", "ARIA")
_COLUMN_WORDS = word_set("UNSIGNED SIGNED ZEROFILL AUTO_INCREMENT STORED VIRTUAL PERSISTENT INVISIBLE UNIQUE NULL")
_PARTITION_WORDS = word_set(
    """PARTITION PARTITIONS BY RANGE LIST HASH KEY LINEAR COLUMNS SUBPARTITION SUBPARTITIONS VALUES LESS THAN MAXVALUE
    IN ENGINE COMMENT DEFAULT ALGORITHM NULL INTERVAL DAY MONTH YEAR"""
)


def _added(reader: Reader) -> None:
    reader.must("ALTER", "TABLE")
    reader.about.append(reader.name())
    reader.must("ADD")
    if reader.may("CONSTRAINT"):
        reader.part()


def _key(*words: str) -> Callable[[Reader], None]:
    def read(reader: Reader) -> None:
        _added(reader)
        reader.must(*words)
        _parts(reader)

    return read


def _index(reader: Reader) -> None:
    _added(reader)
    reader.one_of((("UNIQUE",), ("FULLTEXT",), ("SPATIAL",), ("VECTOR",)))
    reader.must("KEY")
    _parts(reader)


def _parts(reader: Reader) -> None:
    """The columns of a key, with prefixes and orders, or expressions."""
    if not reader.has_sign("("):
        reader.part()
    inner = Reader(reader.group(), reader.dialect)
    while True:
        if inner.has_sign("("):
            reader.expression(inner.group())
        else:
            inner.part()
            if inner.has_sign("("):
                inner.size()
        inner.one_of((("ASC",), ("DESC",)))
        if not inner.may_sign(","):
            break
    inner.end()
    while reader.next is not None:
        if reader.may("USING"):
            if not reader.one_of((method,) for method in INDEX_METHODS):
                raise DdlError("a known index method is expected after USING")
        elif reader.may("COMMENT"):
            reader.token(TokenKind.STRING)
            reader.literals += 1
        elif reader.may("KEY_BLOCK_SIZE"):
            reader.must_sign("=")
            reader.token(TokenKind.NUMBER)
        elif not reader.one_of((("INVISIBLE",), ("VISIBLE",), ("IGNORED",))):
            reader.end()


def _foreign_key(reader: Reader) -> None:
    _added(reader)
    reader.must("FOREIGN", "KEY")
    if not reader.has_sign("("):
        reader.part()
    reader.names_list()
    reader.references()


def _check(reader: Reader) -> None:
    _added(reader)
    reader.check()
    reader.may("NOT", "ENFORCED")


def _partition(reader: Reader) -> None:
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


def _view(reader: Reader) -> Name:
    reader.must("CREATE", "VIEW")
    name = reader.name()
    reader.query(CLOCK)
    return name


def read_column(reader: Reader) -> None:
    """What follows the name of a column in CREATE TABLE."""
    name = reader.part().lower()
    if name not in TYPES[MYSQL]:
        raise DdlError(f"{name} is no known type")
    if reader.may("PRECISION") or name not in ("enum", "set"):
        if reader.has_sign("("):
            reader.size()
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
            _default(reader)
        elif not (reader.next.word in _COLUMN_WORDS and reader.may(reader.next.word)):
            reader.end()


def _default(reader: Reader) -> None:
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


def read_options(reader: Reader) -> None:
    """What follows the columns of a table."""
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


KINDS: dict[str, Callable[[Reader], Name | None]] = {
    "primary key": _key("PRIMARY", "KEY"),
    "unique": _key("UNIQUE", "KEY"),
    "index": _index,
    "foreign key": _foreign_key,
    "check": _check,
    "partition": _partition,
    "view": _view,
}
