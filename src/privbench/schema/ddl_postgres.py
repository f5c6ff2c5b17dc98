"""The statements of PostgreSQL's DDL that are made again: for each kind its words, in their order."""

from collections.abc import Callable

from privbench.schema.ddl_functions import CLOCK, NEXT_NUMBER
from privbench.schema.ddl_reader import INDEX_METHODS, Name, Reader
from privbench.schema.ddl_tokens import DdlError, TokenKind, Tokens, word_set

_NOT_IN_DEFAULT = word_set("REFERENCES CHECK CONSTRAINT PRIMARY UNIQUE FOREIGN SELECT")
_COMMENTED = (
    ("MATERIALIZED", "VIEW"),
    *((word,) for word in ("TABLE", "COLUMN", "VIEW", "INDEX", "CONSTRAINT", "TYPE", "DOMAIN", "SCHEMA", "SEQUENCE")),
    *((word,) for word in ("STATISTICS", "FUNCTION")),
)


def _schema(reader: Reader) -> Name:
    reader.must("CREATE", "SCHEMA")
    reader.may("IF", "NOT", "EXISTS")
    return (reader.part(),)


def _extension(reader: Reader) -> Name:
    reader.must("CREATE", "EXTENSION")
    reader.may("IF", "NOT", "EXISTS")
    name = reader.part()
    reader.may("WITH")
    if reader.may("SCHEMA"):
        reader.part()
    return (name,)


def _type(reader: Reader) -> Name:
    reader.must("CREATE", "TYPE")
    name = reader.name()
    reader.must("AS")
    if reader.may("ENUM"):
        labels = reader.group()
        if any(t.kind is not TokenKind.STRING and not t.is_sign(",") for t in labels):
            raise DdlError("something else than labels stands in an ENUM")
        reader.literals += sum(t.kind is TokenKind.STRING for t in labels)
        return name
    inner = Reader(reader.group(), reader.dialect)
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


def _domain(reader: Reader) -> Name:
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


def _default(reader: Reader, tokens: Tokens) -> None:
    depth = 0
    for token in tokens:
        depth += token.is_sign("(") + token.is_sign("[") - token.is_sign(")") - token.is_sign("]")
        if token.word in _NOT_IN_DEFAULT or (depth == 0 and token.is_sign(",")):
            raise DdlError("a default holds more than an expression")
    reader.expression(tokens, CLOCK | NEXT_NUMBER)
    if any(token.text.lower() == "nextval" for token in tokens):
        reader.literals -= 1  # the name of a sequence


def _sequence(reader: Reader) -> Name:
    reader.must("CREATE", "SEQUENCE")
    name = reader.name()
    if reader.may("AS"):
        reader.type()
    reader.counting()
    return name


def _sequence_owner(reader: Reader) -> None:
    reader.must("ALTER", "SEQUENCE")
    reader.alters = reader.name()
    reader.must("OWNED", "BY")
    reader.about.append(reader.name()[:-1])


def _function(reader: Reader) -> Name:
    reader.must("CREATE")
    reader.may("OR", "REPLACE")
    reader.must("FUNCTION")
    name = reader.name()
    reader.group()
    reader.must("RETURNS")
    kinds = (TokenKind.STRING, TokenKind.NUMBER, TokenKind.BODY)
    reader.literals += sum(token.kind in kinds for token in reader.rest())
    return name


def _partition(reader: Reader) -> Name:
    reader.must("CREATE")
    reader.may("UNLOGGED")
    reader.must("TABLE")
    name = reader.name()
    reader.must("PARTITION", "OF")
    reader.about.append(reader.name())
    if not reader.may("DEFAULT"):
        reader.must("FOR", "VALUES")
        if reader.may("FROM"):
            reader.expression(reader.group())
            reader.must("TO")
        elif not (reader.may("IN") or reader.may("WITH")):
            raise DdlError("the bound of a partition is expected after VALUES")
        reader.expression(reader.group())
    read_table_tail(reader)
    return name


def read_table_tail(reader: Reader) -> None:
    """What follows the columns of a table, or the bound of a partition."""
    if reader.may("INHERITS"):
        inner = Reader(reader.group(), reader.dialect)
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


def _altered(reader: Reader) -> None:
    reader.must("ALTER", "TABLE")
    reader.may("ONLY")
    reader.about.append(reader.name())


def _added(reader: Reader) -> None:
    _altered(reader)
    reader.must("ADD")
    if reader.may("CONSTRAINT"):
        reader.part()


def _primary_key(reader: Reader) -> None:
    _added(reader)
    reader.must("PRIMARY", "KEY")
    _key_tail(reader)


def _unique(reader: Reader) -> None:
    _added(reader)
    reader.must("UNIQUE")
    reader.one_of((("NULLS", "NOT", "DISTINCT"), ("NULLS", "DISTINCT")))
    _key_tail(reader)


def _key_tail(reader: Reader) -> None:
    reader.names_list()
    if reader.may("INCLUDE"):
        reader.names_list()
    if reader.may("WITH"):
        reader.options()
    reader.deferring()


def _foreign_key(reader: Reader) -> None:
    _added(reader)
    reader.must("FOREIGN", "KEY")
    reader.names_list()
    reader.references()
    reader.deferring()


def _check(reader: Reader) -> None:
    _added(reader)
    reader.check()
    reader.deferring()


def _column_statistics(reader: Reader) -> None:
    _altered(reader)
    reader.must("ALTER", "COLUMN")
    reader.part()
    reader.must("SET", "STATISTICS")
    reader.token(TokenKind.NUMBER)


def _column_storage(reader: Reader) -> None:
    _altered(reader)
    reader.must("ALTER", "COLUMN")
    reader.part()
    reader.must("SET", "STORAGE")
    if not reader.one_of((("PLAIN",), ("EXTERNAL",), ("EXTENDED",), ("MAIN",), ("DEFAULT",))):
        raise DdlError("a way of storage is expected")


def _cluster(reader: Reader) -> None:
    _altered(reader)
    reader.must("CLUSTER", "ON")
    reader.part()


def _index(reader: Reader) -> Name:
    reader.must("CREATE")
    reader.may("UNIQUE")
    return _index_on(reader)


def _unique_index(reader: Reader) -> Name:
    reader.must("CREATE", "UNIQUE")
    return _index_on(reader)


def _index_on(reader: Reader) -> Name:
    reader.must("INDEX")
    name = reader.name()
    reader.must("ON")
    reader.may("ONLY")
    reader.about.append(reader.name())
    if reader.may("USING") and not reader.one_of((method,) for method in INDEX_METHODS):
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


def _view(reader: Reader) -> Name:
    reader.must("CREATE", "VIEW")
    name = reader.name()
    if reader.has_sign("("):
        reader.names_list()
    if reader.may("WITH"):
        reader.options()
    reader.query(CLOCK)
    return name


def _materialized_view(reader: Reader) -> Name:
    reader.must("CREATE", "MATERIALIZED", "VIEW")
    name = reader.name()
    if reader.has_sign("("):
        reader.names_list()
    if reader.may("WITH"):
        reader.options()
    reader.query(frozenset())
    return name


def _statistics(reader: Reader) -> Name:
    reader.must("CREATE", "STATISTICS")
    name = reader.name()
    if reader.has_sign("("):
        reader.names_list()
    reader.must("ON")
    reader.expression(reader.until("FROM"))
    reader.must("FROM")
    reader.about.append(reader.name())
    return name


def _statistics_target(reader: Reader) -> None:
    reader.must("ALTER", "STATISTICS")
    reader.alters = reader.name()
    reader.must("SET", "STATISTICS")
    reader.token(TokenKind.NUMBER)


def _comment(reader: Reader) -> None:
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


def read_column(reader: Reader) -> None:
    """What follows the name of a column in CREATE TABLE."""
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
                inner = Reader(reader.group(), reader.dialect)
                inner.counting()
                inner.end()
                reader.literals += inner.literals
        else:
            reader.expression(reader.group())
            reader.one_of((("STORED",), ("VIRTUAL",)))


KINDS: dict[str, Callable[[Reader], Name | None]] = {
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
}
