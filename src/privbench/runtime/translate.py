"""Queries of a workload in the words of PostgreSQL, with names as the schema spells them.

PostgreSQL folds names to lower case and other systems ignore their case, so each name of a table or column that a
query means is put into quotes as the schema has it. SQL that is not understood goes to the server as it is.
"""

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from privbench.io.names import Names
from privbench.schema.tables import Schema
from privbench.workload.table_names import plain_sql


def postgres_sql(sql: str, schema: Schema) -> str:
    """Translate one query.

    >>> from privbench.schema.tables import Column, Table
    >>> from privbench.schema.types import parse_type
    >>> track = Table(name="Track", columns=(Column(name="Bytes", type=parse_type("INTEGER")),))
    >>> postgres_sql("SELECT count(*) FROM track t WHERE t.bytes > 1", Schema(tables=(track,)))
    'SELECT COUNT(*) FROM "Track" AS t WHERE t."Bytes" > 1'
    """
    names = Names(name for table in schema.tables for name in (table.name, *(c.name for c in table.columns)))
    try:
        tree = sqlglot.parse_one(plain_sql(sql, schema), read="duckdb")
    except SqlglotError:
        return sql
    for identifier in tree.find_all(exp.Identifier):
        spelled = names.find(identifier.this)
        if spelled is not None:
            identifier.replace(exp.to_identifier(spelled, quoted=True))
    return tree.sql("postgres")
