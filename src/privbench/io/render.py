"""Schemas as SQL text, in the words of each system, with what a system cannot hold left out and named.

Tables come out parents first. A foreign key that closes a cycle is added by ALTER TABLE afterwards where the
system can; DuckDB cannot, and checks self references row by row, so there both are left out.
"""

from enum import Enum

from privbench.errors import SchemaError
from privbench.io.names import quote_duckdb, quote_sql, quote_sqlite
from privbench.schema.model import ForeignKey, Schema, Table
from privbench.schema.types import Kind, SqlType

TableKey = tuple[str, ForeignKey]
"""A foreign key with the name of the table that holds it."""


class Dialect(Enum):
    """The systems that `schema.sql` is written for; ANSI is what most others take."""

    DUCKDB = "duckdb"
    SQLITE = "sqlite"
    POSTGRES = "postgres"
    ANSI = "ansi"


_STANDARD = {
    "TINYINT": "SMALLINT",
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INTEGER",
    "UINTEGER": "BIGINT",
    "DOUBLE": "DOUBLE PRECISION",
    "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE",
}
_QUOTES = {Dialect.DUCKDB: quote_duckdb, Dialect.SQLITE: quote_sqlite}


def render_ddl(schema: Schema, dialect: Dialect = Dialect.DUCKDB) -> str:
    """Write the whole schema as a script; see `omitted_keys` for what it may leave out."""
    return "\n".join([*create_tables(schema, dialect), *late_keys(schema, dialect), *create_indexes(schema, dialect)])


def omitted_keys(schema: Schema, dialect: Dialect) -> tuple[TableKey, ...]:
    """List the foreign keys that the system cannot hold: in DuckDB those in cycles and those that join two types."""
    if dialect is not Dialect.DUCKDB:
        return ()
    _, late = plan(schema)
    return tuple(
        (table.name, key)
        for table in schema.tables
        for key in table.foreign_keys
        if (table.name, key) in late or key.table == table.name or not _same_types(schema, table, key)
    )


def plan(schema: Schema) -> tuple[tuple[Table, ...], tuple[TableKey, ...]]:
    """Order tables so that those referenced come first; the keys that no order satisfies come second."""
    waiting = list(schema.tables)
    order: list[Table] = []
    late: list[TableKey] = []
    while waiting:
        names = {t.name for t in waiting}
        free = [t for t in waiting if not any(k.table in names - {t.name} for k in t.foreign_keys)]
        if not free:
            free = waiting[:1]
            late += [(free[0].name, k) for k in free[0].foreign_keys if k.table in names - {free[0].name}]
        order += free
        waiting = [t for t in waiting if t not in free]
    return tuple(order), tuple(late)


def create_tables(schema: Schema, dialect: Dialect) -> list[str]:
    """Write CREATE TABLE statements, in an order that the system takes."""
    check_names(schema, dialect)
    order, late = plan(schema)
    elsewhere = {*omitted_keys(schema, dialect), *(() if dialect is Dialect.SQLITE else late)}
    return [_create(table, schema, dialect, elsewhere) for table in order]


def late_keys(schema: Schema, dialect: Dialect) -> list[str]:
    """Write ALTER TABLE statements for the keys that close a cycle; SQLite declares them with their table."""
    if dialect in (Dialect.DUCKDB, Dialect.SQLITE):
        return []
    return [f"ALTER TABLE {_quote(t, dialect)} ADD {_foreign_key(k, dialect)};" for t, k in plan(schema)[1]]


def create_indexes(schema: Schema, dialect: Dialect) -> list[str]:
    """Write CREATE INDEX statements; a name used twice in the database gets its table's name in front."""
    taken = {t.name.casefold() for t in schema.tables}
    statements = []
    for table in schema.tables:
        for index in table.indexes:
            name = index.name
            while name.casefold() in taken:
                name = f"{table.name}_{name}"
            taken.add(name.casefold())
            unique = "UNIQUE " if index.unique else ""
            columns = _list(index.columns, dialect)
            statements.append(
                f"CREATE {unique}INDEX {_quote(name, dialect)} ON {_quote(table.name, dialect)} ({columns});"
            )
    return statements


def check_names(schema: Schema, dialect: Dialect) -> None:
    """Refuse names that differ in case only where the system ignores case."""
    if dialect not in (Dialect.DUCKDB, Dialect.SQLITE):
        return
    _check_apart("tables", [t.name for t in schema.tables], dialect)
    for table in schema.tables:
        _check_apart(f"columns of {table.name}:", [c.name for c in table.columns], dialect)


def _check_apart(what: str, names: list[str], dialect: Dialect) -> None:
    seen: dict[str, str] = {}
    for name in names:
        twin = seen.setdefault(name.casefold(), name)
        if twin != name:
            raise SchemaError(
                f"{what} {twin} and {name} differ in case only, which {dialect.value} cannot hold. "
                "Write Parquet or CSV instead."
            )


def _create(table: Table, schema: Schema, dialect: Dialect, elsewhere: set[TableKey]) -> str:
    lines = [
        f"{_quote(c.name, dialect)} {_type(c.type, dialect)}{'' if c.nullable else ' NOT NULL'}" for c in table.columns
    ]
    if table.primary_key:
        lines.append(f"PRIMARY KEY ({_list(table.primary_key, dialect)})")
    lines += [f"UNIQUE ({_list(u, dialect)})" for u in table.uniques]
    keys = [k for k in table.foreign_keys if (table.name, k) not in elsewhere]
    lines += [_foreign_key(_in_key_order(k, schema) if dialect is Dialect.DUCKDB else k, dialect) for k in keys]
    return f"CREATE TABLE {_quote(table.name, dialect)} (\n  " + ",\n  ".join(lines) + "\n);"


def _foreign_key(key: ForeignKey, dialect: Dialect) -> str:
    target = f"{_quote(key.table, dialect)} ({_list(key.references, dialect)})"
    return f"FOREIGN KEY ({_list(key.columns, dialect)}) REFERENCES {target}"


def _in_key_order(key: ForeignKey, schema: Schema) -> ForeignKey:
    """List the columns in the order of the key they reference, as DuckDB wants them."""
    columns = dict(zip(key.references, key.columns, strict=True))
    order = next(k for k in schema.table(key.table).keys if set(k) == set(key.references))
    return ForeignKey(columns=tuple(columns[c] for c in order), table=key.table, references=order)


def _type(of: SqlType, dialect: Dialect) -> str:
    if dialect in (Dialect.DUCKDB, Dialect.SQLITE):
        return of.sql
    return _STANDARD.get(of.sql, of.sql)


def _same_types(schema: Schema, table: Table, key: ForeignKey) -> bool:
    target = schema.table(key.table)
    pairs = ((table.column(a).type, target.column(b).type) for a, b in zip(key.columns, key.references, strict=True))
    return all(a.arrow == b.arrow and (a.kind is Kind.TEXT or a.sql == b.sql) for a, b in pairs)


def _quote(name: str, dialect: Dialect) -> str:
    return _QUOTES.get(dialect, quote_sql)(name)


def _list(names: tuple[str, ...], dialect: Dialect) -> str:
    return ", ".join(_quote(n, dialect) for n in names)
