"""What a statement of the source's own DDL is: exactly one statement, of exactly the kind that it claims.

Every kind has its words, in their order; what is not in the lists of kinds and words is refused. `read_statement` and
the readers of the parts of a table tell what a text makes, which objects it is about, what in it is code (`beyond`:
calls of functions that are in no closed list, and the like), and how many literals it holds.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from privbench.schema import ddl_mysql, ddl_postgres
from privbench.schema.ddl_reader import Name, Reader, Reading
from privbench.schema.ddl_tokens import MYSQL, POSTGRES, DdlError, read_tokens

CODE_KINDS = ("function", "extension")
"""Kinds that are code, whatever they hold."""
_KINDS = {POSTGRES: ddl_postgres.KINDS, MYSQL: ddl_mysql.KINDS}
_COLUMN = {POSTGRES: ddl_postgres.read_column, MYSQL: ddl_mysql.read_column}
_TAIL = {POSTGRES: ddl_postgres.read_table_tail, MYSQL: ddl_mysql.read_options}


def _read(dialect: str, sql: str, grammar: Callable[[Reader], Name | None]) -> Reading:
    reader = Reader(read_tokens(sql, dialect), dialect)
    makes = grammar(reader)
    reader.end()
    return Reading(
        makes=makes,
        about=tuple(reader.about),
        alters=reader.alters,
        reads=frozenset(reader.reads),
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
    return replace(reading, beyond=frozenset((kind,))) if kind in CODE_KINDS else reading


def unwrapped(sql: str) -> str:
    """A partition without the comment that MySQL writes around it, which every version since 5.1 runs."""
    start, end = " /*!50100 PARTITION BY ", " */"
    return sql.replace(start, " PARTITION BY ", 1).removesuffix(end) if start in sql and sql.endswith(end) else sql


@lru_cache(maxsize=65_536)
def read_column(dialect: str, sql: str) -> Reading:
    """Read what follows the name of a column in CREATE TABLE: its type, collation, default and so on."""
    return _read(dialect, sql, _COLUMN[dialect])


def read_table_words(dialect: str, before: str, after: str) -> Reading:
    """Read what stands between CREATE and TABLE, and behind the columns."""
    if before and (dialect == MYSQL or before != "UNLOGGED"):
        raise DdlError(f"{before[:40]} is not expected before TABLE")
    return _read(dialect, after, _TAIL[dialect])


@lru_cache(maxsize=65_536)
def read_name(dialect: str, sql: str) -> Name:
    """Read the name of a table or a sequence."""
    makes = _read(dialect, sql, Reader.name).makes
    if makes is None or len(makes) > 2:  # a schema and a name
        raise DdlError("is no name of a table or a sequence")
    return makes
