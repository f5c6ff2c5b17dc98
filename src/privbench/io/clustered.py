"""The index in whose order a table is stored, as pg_dump writes it: `ALTER TABLE t CLUSTER ON i`."""

from dataclasses import replace

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from privbench.schema.tables import Schema, Table

_TABLE, _CLUSTER = ["ALTER", "TABLE"], ["CLUSTER", "ON"]


def with_clustered(schema: Schema, script: str) -> Schema:
    """Mark the indexes by which tables are stored, where a script says so."""
    stored = clustered_indexes(script)
    return replace(schema, tables=tuple(_marked(table, stored.get(table.name)) for table in schema.tables))


def _marked(table: Table, name: str | None) -> Table:
    return replace(table, indexes=tuple(replace(i, clustered=i.clustered or i.name == name) for i in table.indexes))


def clustered_indexes(script: str) -> dict[str, str]:
    """By table the index that it is stored by.

    >>> clustered_indexes("CREATE INDEX i ON s.t (a); ALTER TABLE ONLY s.t CLUSTER ON i; -- ALTER TABLE u CLUSTER ON j")
    {'t': 'i'}
    """
    statements: list[list[Token]] = [[]]
    try:
        tokens = sqlglot.tokenize(script, dialect="postgres")
    except SqlglotError:  # another dialect's script
        return {}
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    return {s[-4].text: s[-1].text for s in statements if _says_so(s)}


def _says_so(statement: list[Token]) -> bool:
    words = [token.text.upper() for token in statement]
    return len(words) >= 6 and words[:2] == _TABLE and words[-3:-1] == _CLUSTER
