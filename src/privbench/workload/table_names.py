"""Tables of a statement that are named with their schema, called as the database calls them: `FROM sales.customer`.

A source calls a table of another schema `sales.customer`, in one name, and one that is found without its schema
`customer`; a bundle, a model and an evaluation have it under that name. All that reads statements calls
`plain_tables` first and then sees tables with one name each. For servers, which have schemas, `qualified_tables` is
the way back.
"""

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from privbench.io.names import Names
from privbench.schema.tables import Schema
from privbench.workload.literal import QueryDialect

USUAL = ("public", "main")
"""Schemas that a table is in if nobody names one."""
WITH_SCHEMAS = (QueryDialect.POSTGRES, QueryDialect.MYSQL)
"""Systems in which a table of a bundle is in its schema; in others its name holds it."""


class OutsideError(Exception):
    """A statement is outside the class; its text says why."""


def plain_tables(tree: exp.Expr, schema: Schema | None) -> bool:
    """Give each table of a statement one name, and columns its alias before them; tells whether any had a schema.

    `schema` has the tables; without it a table is called by its schema and its name. OutsideError if it is not there.

    >>> tree = sqlglot.parse_one("SELECT 1 FROM sales.t JOIN u ON sales.t.id = u.id WHERE t.x > 1")
    >>> plain_tables(tree, None), tree.sql()
    (True, 'SELECT 1 FROM "sales.t" AS t JOIN u ON t.id = u.id WHERE t.x > 1')
    """
    tables = list(tree.find_all(exp.Table))
    qualified = [node for node in tables if node.db]
    columns = [node for node in tree.find_all(exp.Column) if node.args.get("db")]
    shared = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    places = {(node.alias_or_name.casefold(), _place(node)) for node in tables}
    aliases: dict[_Place, str] = {}
    for node in qualified:
        if node.name.casefold() in shared:
            raise OutsideError("has a WITH query of the same name as a table")
        place, name = _place(node), _called(node.db, node.name, schema)
        if not node.alias:
            is_only = all(other == place for alias, other in places if alias == place[1])
            aliases[place] = node.name if is_only else name
            if aliases[place] != name:
                node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name)))
        _rename(node, "this", name)
    for column in columns:
        alias = aliases.get((column.db.casefold(), column.table.casefold()))
        if alias is None:
            raise OutsideError(f"names a table {column.db}.{column.table} that it does not select from")
        _rename(column, "table", alias)
    return bool(qualified or columns)


def plain_sql(sql: str, schema: Schema) -> str:
    """A statement in DuckDB's words in which tables have one name each; as it is if it cannot be read, or names none.

    >>> plain_sql("SELECT 1 FROM t; -- as it is", Schema(tables=()))
    'SELECT 1 FROM t; -- as it is'
    """
    try:
        tree = sqlglot.parse_one(sql, dialect=QueryDialect.DUCKDB.value)
        return tree.sql(QueryDialect.DUCKDB.value) if plain_tables(tree, schema) else sql
    except (SqlglotError, RecursionError, OutsideError):
        return sql


def qualified_tables(tree: exp.Expr, dialect: QueryDialect) -> exp.Expr:
    """A copy of a statement in which tables that have a schema in their name are written with it, for a server.

    >>> qualified_tables(sqlglot.parse_one('SELECT "a.t".x FROM "a.t", u'), QueryDialect.POSTGRES).sql()
    'SELECT "a"."t".x FROM "a"."t", u'
    """
    made = tree.copy()
    if dialect not in WITH_SCHEMAS:
        return made
    aliases = {alias.name.casefold() for alias in made.find_all(exp.TableAlias)}
    for node in made.find_all(exp.Table, exp.Column):
        key, whole = ("table", node.table) if isinstance(node, exp.Column) else ("this", node.name)
        schema, dot, name = whole.partition(".")
        if schema and dot and name and (key == "this" or f"{schema}.{name}".casefold() not in aliases):
            node.set(key, exp.to_identifier(name, quoted=True))
            node.set("db", exp.to_identifier(schema, quoted=True))
    return made


_Place = tuple[str, str]


def _place(node: exp.Table) -> _Place:
    return node.db.casefold(), node.name.casefold()


def _called(place: str, name: str, schema: Schema | None) -> str:
    """What the database calls a table of a schema."""
    full = f"{place}.{name}"
    if schema is None:
        return name if place.casefold() in USUAL else full
    names = Names(table.name for table in schema.tables)
    if (found := names.find(full)) is not None:
        return found
    bare = names.find(name)
    elsewhere = None if bare is None else _schema_of(bare, schema)
    if bare is None or (elsewhere is not None and elsewhere.casefold() != place.casefold()):
        raise OutsideError(f"selects from {full}, which is not in the database")
    return bare


def _schema_of(table: str, schema: Schema) -> str | None:
    """The schema that a table is in, where the source's own DDL says so."""
    original = schema.original
    made = None if original is None else original.tables.get(table)
    return exp.to_table(made.name, dialect=original.dialect.value).db or None if original and made else None


def _rename(node: exp.Expr, key: str, name: str) -> None:
    """Give a table, or the table of a column, a name without a schema."""
    if node.args[key].name != name:
        node.set(key, exp.to_identifier(name, quoted=True))
    node.set("db", None)
    node.set("catalog", None)
