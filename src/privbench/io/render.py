"""Schemas as SQL text, in the words of each system, with what a system cannot hold left out and named.

Tables come out parents first. A foreign key that closes a cycle is added by ALTER TABLE afterwards where the
system can; DuckDB cannot, and checks self references row by row, so there both are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from enum import Enum

from privbench.deferred import exp, sql_errors, sqlite3
from privbench.errors import SchemaError
from privbench.io.names import quote_sql, sql_comment
from privbench.io.stored import is_array
from privbench.io.times import comparable_times
from privbench.schema.ddl_tokens import FILE, POSTGRES, check_statement, is_one_text
from privbench.schema.expression import ColumnName, Expression
from privbench.schema.portable import spoken
from privbench.schema.tables import Column, ForeignKey, Schema, Table
from privbench.schema.types import SYNTAXES, Kind, SqlType, parse_type

TableKey = tuple[str, ForeignKey]
"""A foreign key with the name of the table that holds it."""


class Dialect(Enum):
    """The systems that `schema.sql` is written for; ANSI is what PostgreSQL and most others take."""

    DUCKDB = "duckdb"
    SQLITE = "sqlite"
    ANSI = "ansi"


_SQLGLOT = {Dialect.DUCKDB: "duckdb", Dialect.SQLITE: "sqlite", Dialect.ANSI: "postgres"}
"""How sqlglot calls the systems."""
_QUOTES = {Dialect.DUCKDB: FILE, Dialect.SQLITE: FILE, Dialect.ANSI: POSTGRES}
"""How strings and names are told from the rest."""
_WORDS = {
    Dialect.DUCKDB: {
        "JSONB": "JSON",
        "VARBIT": "BIT",
        "BINARY": "BLOB",
        "VARBINARY": "BLOB",
        "MONEY": "DECIMAL(19,2)",
        **{name: name for name in ("UUID", "JSON", "BLOB", "BIT", "ENUM")},
    },
    Dialect.SQLITE: {
        "MONEY": "DECIMAL(19,2)",
        "BINARY": "BLOB",
        "VARBINARY": "BLOB",
        **{name: name for name in SYNTAXES},
    },
    Dialect.ANSI: {
        "TINYINT": "SMALLINT",
        "UTINYINT": "SMALLINT",
        "USMALLINT": "INTEGER",
        "UINTEGER": "BIGINT",
        "DOUBLE": "DOUBLE PRECISION",
        "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE",
        "VARBIT": "BIT VARYING",
        "BLOB": "BYTEA",
        "BINARY": "BYTEA",
        "VARBINARY": "BYTEA",
        **{name: name for name in (*SYNTAXES, "BIT") if name not in ("BLOB", "WKT")},
    },
}
"""What a type is called where our name for it is not known. A type that travels as text and is not here is text."""
_UNSIZED = ("BLOB", "BYTEA")


def render_ddl(schema: Schema, dialect: Dialect = Dialect.DUCKDB) -> str:
    """Write the whole schema as a script; see `omitted_keys` for what it may leave out."""
    return "\n".join([*create_tables(schema, dialect), *late_keys(schema, dialect), *create_indexes(schema)])


def omitted_keys(schema: Schema, dialect: Dialect) -> tuple[TableKey, ...]:
    """List the foreign keys that the system cannot hold: in DuckDB those in cycles and those that join two types."""
    if dialect is not Dialect.DUCKDB:
        return ()
    closing = set(plan(schema)[1])
    return tuple(
        (table.name, key)
        for table, key in schema.foreign_keys()
        if (table.name, key) in closing or key.table == table.name or not _same_types(schema, table, key)
    )


def plan(schema: Schema) -> tuple[tuple[Table, ...], tuple[TableKey, ...]]:
    """Order tables so that those referenced come first; the keys that no order satisfies come second."""
    place = {t.name: i for i, t in enumerate(schema.tables)}
    needs = {t.name: {k.table for k in t.foreign_keys} - {t.name} for t in schema.tables}
    users: dict[str, list[str]] = {name: [] for name in place}
    for name, targets in needs.items():
        for target in targets:
            users[target].append(name)
    order: dict[str, Table] = {}
    late: list[TableKey] = []
    free = [name for name in place if not needs[name]]
    waiting = iter(schema.tables)
    while len(order) < len(schema.tables):
        if not free:  # all that wait are in cycles, or use one that is
            first = next(t for t in waiting if t.name not in order)
            late += [(first.name, k) for k in first.foreign_keys if k.table in needs[first.name]]
            free = [first.name]
        order |= {name: schema.table(name) for name in free}
        used = [(user, name) for name in free for user in users[name]]
        for user, name in used:
            needs[user].discard(name)
        free = sorted({user for user, _ in used if not needs[user] and user not in order}, key=place.__getitem__)
    return tuple(order.values()), tuple(late)


def is_generated(column: Column) -> bool:
    """Tell whether DuckDB can compute a column by itself: as the source did, of its own row alone, and NULL at need.

    Other systems would work out other values from the same text, so that they get the values.
    """
    if column.computed is None or not column.generated or not column.nullable:
        return False
    return all(name.table is None for name in (*column.computed.columns, *column.computed.aggregated))


def computed_notes(schema: Schema) -> list[str]:
    """Say which columns follow from others, and how."""
    columns = [(t.name, c) for t in schema.tables for c in t.columns if c.computed is not None]
    equals = [c.computed if c.determined_by is None else f"map of {c.determined_by}" for _, c in columns]
    return [sql_comment(f"{t}.{c.name} = {shown}") for (t, c), shown in zip(columns, equals, strict=True)]


def create_tables(schema: Schema, dialect: Dialect, *, generated: bool = False) -> list[str]:
    """Write CREATE TABLE statements, in an order that the system takes; columns are GENERATED if that is asked for."""
    check_names(schema, dialect)
    order, late = plan(schema)
    elsewhere = {*omitted_keys(schema, dialect), *(() if dialect is Dialect.SQLITE else late)}
    return [_create(table, schema, dialect, elsewhere, generated=generated) for table in order]


def late_keys(schema: Schema, dialect: Dialect) -> list[str]:
    """Write ALTER TABLE statements for the keys that close a cycle; SQLite declares them with their table."""
    if dialect in (Dialect.DUCKDB, Dialect.SQLITE):
        return []
    return [f"ALTER TABLE {quote_sql(t)} ADD {_foreign_key(k)};" for t, k in plan(schema)[1]]


def create_indexes(schema: Schema) -> list[str]:
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
            columns = _list(index.columns)
            statements.append(f"CREATE {unique}INDEX {quote_sql(name)} ON {quote_sql(table.name)} ({columns});")
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


def _create(table: Table, schema: Schema, dialect: Dialect, elsewhere: set[TableKey], *, generated: bool) -> str:
    lines = [_column(c, dialect, generated=generated and is_generated(c)) for c in table.columns]
    if table.primary_key:
        lines.append(f"PRIMARY KEY ({_list(table.primary_key)})")
    lines += [f"UNIQUE ({_list(u)})" for u in table.uniques]
    keys = [k for k in table.foreign_keys if (table.name, k) not in elsewhere]
    lines += [_foreign_key(_in_key_order(k, schema) if dialect is Dialect.DUCKDB else k) for k in keys]
    checks = (check_text(check, table, dialect) for check in table.own_checks)
    lines += [f"CHECK ({text})" for text in checks if text is not None]
    sql = f"CREATE TABLE {quote_sql(table.name)} (\n  " + ",\n  ".join(lines) + "\n)"
    check_statement(sql, _QUOTES[dialect], what=f"table {table.name}")
    return f"{sql};"


def check_text(
    check: Expression, table: Table, dialect: Dialect, spelled: Callable[[ColumnName], str] = lambda name: name.column
) -> str | None:
    """A rule as a CHECK of a system, its columns spelled as there; None where its words have no translation there."""
    named = check.renamed(spelled)
    tree = comparable_times(named, table, "sqlite") if dialect is Dialect.SQLITE else named
    if tree is None:
        return None
    try:
        words = spoken(tree, _SQLGLOT[dialect])
        text: str = words.sql(_SQLGLOT[dialect], unsupported_level=sql_errors.ErrorLevel.RAISE)
    except sql_errors.SqlglotError:
        return None
    if not is_one_text(text, _QUOTES[dialect]) or (dialect is Dialect.SQLITE and not _is_known_to_sqlite(words, text)):
        return None
    return f"({text})" if dialect is Dialect.SQLITE else text  # without, SQLite's messages name its first word alone


def _is_known_to_sqlite(words: exp.Expr, text: str) -> bool:
    """Whether SQLite can work out an expression: it has few functions, and takes no row for a CHECK with another."""
    names = sorted({node.name for node in words.find_all(exp.Column)})
    columns = ", ".join(f"NULL AS {quote_sql(name)}" for name in names) or "NULL"
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(f"EXPLAIN SELECT {text} FROM (SELECT {columns})")
        except sqlite3.Error:
            return False
    return True


def _column(column: Column, dialect: Dialect, *, generated: bool) -> str:
    declared = f"{quote_sql(column.name)} {type_text(column.type, dialect)}"
    if generated:
        return f"{declared} GENERATED ALWAYS AS (TRY({column.computed}))"
    return declared if column.nullable else f"{declared} NOT NULL"


def _foreign_key(key: ForeignKey) -> str:
    target = f"{quote_sql(key.table)} ({_list(key.references)})"
    return f"FOREIGN KEY ({_list(key.columns)}) REFERENCES {target}"


def _in_key_order(key: ForeignKey, schema: Schema) -> ForeignKey:
    """List the columns in the order of the key they reference, as DuckDB wants them."""
    columns = dict(zip(key.references, key.columns, strict=True))
    order = next(k for k in schema.table(key.table).keys if set(k) == set(key.references))
    return ForeignKey(columns=tuple(columns[c] for c in order), table=key.table, references=order)


def type_text(of: SqlType, dialect: Dialect) -> str:
    """Name a type in the words of a system; text for one that the system lacks."""
    if is_array(of):
        element = type_text(parse_type(of.sql.removesuffix("[]")), dialect)
        return of.sql if dialect is Dialect.SQLITE else f"{element}[]"
    name, bracket, size = of.sql.partition("(")
    word = _WORDS[dialect].get(name)
    if word is None:
        return "VARCHAR" if of.syntax is not None or of.labels else of.sql
    return word if word in _UNSIZED or (word, dialect) == ("BIT", Dialect.DUCKDB) else f"{word}{bracket}{size}"


def _same_types(schema: Schema, table: Table, key: ForeignKey) -> bool:
    target = schema.table(key.table)
    pairs = ((table.column(a).type, target.column(b).type) for a, b in zip(key.columns, key.references, strict=True))
    return all(a.arrow == b.arrow and ((_is_plain(a) and _is_plain(b)) or a.sql == b.sql) for a, b in pairs)


def _is_plain(of: SqlType) -> bool:
    return of.kind is Kind.TEXT and of.syntax is None and not of.labels


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(map(quote_sql, names))


def written_column(column: Column) -> str:
    """How DuckDB inserts a column from its Parquet file."""
    name, of = quote_sql(column.name), column.type
    if is_array(of):
        inner = f"trim({name}, '{{}}')"
        return f"CASE WHEN {inner} = '' THEN [] ELSE string_split({inner}, ',') END"
    return f"to_microseconds({name})" if of.kind is Kind.DURATION else name
