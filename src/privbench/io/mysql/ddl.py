"""A schema as MySQL and MariaDB take it: what makes the tables, and what comes when their rows are there.

Where the schema has the DDL of a MySQL or MariaDB source, that is used word by word: column by column where the type is
still the source's, statement by statement where all that it names is there. The rest is made from the schema.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from privbench.deferred import sql_errors
from privbench.io.mysql.connection import quote_name
from privbench.io.mysql.show_create import names_in, quoted_list
from privbench.io.mysql.types import StoredType, column_type, declare, declared_type
from privbench.io.times import comparable_times
from privbench.schema.ddl_grammar import unwrapped
from privbench.schema.ddl_tokens import MYSQL, check_statement, is_one_text
from privbench.schema.expression import Expression
from privbench.schema.original import (
    ELSEWHERE,
    LeftOut,
    OriginalDdl,
    Phase,
    SourceDialect,
    Statement,
    TableDefinition,
)
from privbench.schema.portable import spoken
from privbench.schema.tables import Column, ForeignKey, Schema, Table
from privbench.schema.types import Kind

_OPTIONS = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
"""Text is compared letter by letter, as elsewhere; two strings that differ in case stay two keys."""
_LONGEST_NAME = 64
_NOT_NUMBERED = "AUTO_INCREMENT needs a column that comes first in the primary key"
_OTHER_TYPE = "it joins two types, which MySQL does not"
_NOT_WRITTEN = "MySQL has no words for it"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewColumn:
    """A column as it is declared: the SQL behind its name, and the type that the server stores."""

    name: str
    sql: str
    stored: StoredType
    generated: bool = False
    """The server fills it: rows come without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """A table to be made, and the statements that follow before its rows come."""

    name: str
    columns: tuple[NewColumn, ...]
    create: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """All statements for a database: tables, what comes before the rows, what comes after, and what is left out.

    What the schema does not know of (a view, a CHECK, an index on a prefix) has no `key`; a sink may go without it.
    """

    tables: tuple[NewTable, ...]
    before: tuple[Statement, ...]
    after: tuple[Statement, ...]
    left_out: tuple[LeftOut, ...]


def write_script(schema: Schema) -> Script:
    """Write everything that makes the database of a schema."""
    original = schema.original if schema.original and schema.original.dialect is SourceDialect.MYSQL else None
    kept, left_out = original.kept(schema) if original else ((), _of_another_system(schema))
    missing = list(left_out)
    tables = tuple(_new_table(table, original, missing) for table in schema.tables)
    before = tuple(s for s in kept if s.phase is Phase.BEFORE and s.kind != "primary key")
    own = [s for s in kept if s.phase is Phase.AFTER]
    declared = {_identity(s) for s in own if s.key}
    made = [s for s in _from_schema(schema, missing, checks=original is None) if _identity(s) not in declared]
    order = {"foreign key": 1, "check": 2, "view": 3}
    after = sorted([*own, *made], key=lambda s: order.get(s.kind, 0))
    texts = [*((f"table {t.name}", t.create) for t in tables), *((s.title, s.sql) for s in (*before, *after))]
    for title, sql in texts:
        check_statement(unwrapped(sql), MYSQL, what=title)
    return Script(tables=tables, before=before, after=tuple(after), left_out=tuple(missing))


def _of_another_system(schema: Schema) -> tuple[LeftOut, ...]:
    """What a source of another system has, but for what is made from the schema: tables, keys, indexes and CHECKs."""
    if schema.original is None:
        return ()
    kept, left_out = schema.original.kept(schema)
    others = [s for s in kept if not s.key and s.kind != "check"]
    return (*left_out, *(LeftOut(kind=s.kind, name=s.name, reason=ELSEWHERE) for s in others))


def _identity(statement: Statement) -> tuple[str, str, frozenset[str]]:
    """What two statements share that declare the same key or index."""
    kind = f"to {statement.tables[-1]}" if statement.kind == "foreign key" else "index"
    return statement.tables[0], kind, frozenset(statement.key)


# -- tables ------------------------------------------------------------------------------------------------------------


def _new_table(table: Table, original: OriginalDdl | None, left_out: list[LeftOut]) -> NewTable:
    definition = original.tables.get(table.name) if original else None
    keys = [*table.keys, *(i.columns for i in table.indexes), *(k.columns for k in table.foreign_keys)]
    indexed = {name for key in keys for name in key}
    columns = tuple(_new_column(c, table, definition, left_out, indexed=c.name in indexed) for c in table.columns)
    lines = [f"{quote_name(c.name)} {c.sql}" for c in columns]
    if table.primary_key:
        lines.append(f"PRIMARY KEY {quoted_list(table.primary_key)}")
    options = definition.after if definition else _OPTIONS
    create = f"CREATE TABLE {quote_name(table.name)} (\n  " + ",\n  ".join(lines) + f"\n) {options}"
    return NewTable(name=table.name, columns=columns, create=create)


def _new_column(
    column: Column, table: Table, definition: TableDefinition | None, left_out: list[LeftOut], *, indexed: bool
) -> NewColumn:
    null = "NULL" if column.nullable or (definition and column.name in definition.nullable) else "NOT NULL"
    text = _original_text(column, table, definition)
    if text is None or definition is None:
        sql = declare(column.type, indexed=indexed)
        return NewColumn(name=column.name, sql=f"{sql} {null}", stored=declared_type(sql.lower()))
    if column.name in definition.generated:  # MariaDB takes no NOT NULL there
        return NewColumn(name=column.name, sql=text, stored=declared_type(text), generated=True)
    if "AUTO_INCREMENT" in text and table.primary_key[:1] != (column.name,):
        text = text.replace(" AUTO_INCREMENT", "")
        left_out.append(LeftOut(kind="default", name=f"{table.name}.{column.name}", reason=_NOT_NUMBERED))
    return NewColumn(name=column.name, sql=f"{text} {null}", stored=declared_type(text))


def _original_text(column: Column, table: Table, definition: TableDefinition | None) -> str | None:
    """The source's words for a column, if its type is still that of the source and all that they name is there."""
    text = definition.columns.get(column.name) if definition else None
    if text is None or column_type(declared_type(text)).type != column.type:
        return None
    return text if set(names_in(text)) <= {c.name for c in table.columns} else None


# -- keys, indexes and CHECKs that no statement of the source declares ------------------------------------------------


def _from_schema(schema: Schema, left_out: list[LeftOut], *, checks: bool) -> Iterator[Statement]:
    for table in schema.tables:
        for number, columns in enumerate(table.uniques):
            yield _add(table, "unique", f"unique {number}", f"UNIQUE KEY {quoted_list(columns)}", columns)
        for index in table.indexes:
            unique = "UNIQUE " if index.unique else ""
            name = quote_name(index.name[:_LONGEST_NAME])
            yield _add(table, "index", index.name, f"{unique}KEY {name} {quoted_list(index.columns)}", index.columns)
        for key in table.foreign_keys:
            if _same_types(schema, table, key):
                target = f"{quote_name(key.table)} {quoted_list(key.references)}"
                sql = f"FOREIGN KEY {quoted_list(key.columns)} REFERENCES {target}"
                yield _add(table, "foreign key", str(key), sql, key.columns, target=key.table)
            else:
                left_out.append(LeftOut(kind="foreign key", name=f"{table.name} {key}", reason=_OTHER_TYPE))
        for number, check in enumerate(table.own_checks if checks else ()):
            text = _check_text(check, table)
            if text is None:
                left_out.append(LeftOut(kind="check", name=f"{table.name}: {check}"[:200], reason=_NOT_WRITTEN))
            else:
                yield _add(table, "check", f"check {number}", f"CHECK ({text})", ())


def _add(table: Table, kind: str, name: str, sql: str, key: tuple[str, ...], *, target: str | None = None) -> Statement:
    return Statement(
        kind=kind,
        name=f"{table.name}.{name}",
        sql=f"ALTER TABLE {quote_name(table.name)} ADD {sql}",
        phase=Phase.AFTER,
        tables=(table.name, *((target,) if target else ())),
        key=key,
    )


def _same_types(schema: Schema, table: Table, key: ForeignKey) -> bool:
    target = schema.table(key.table)
    pairs = [(table.column(a).type, target.column(b).type) for a, b in zip(key.columns, key.references, strict=True)]
    return all(a.sql == b.sql or (a.kind is b.kind is Kind.TEXT and a.syntax == b.syntax) for a, b in pairs)


def _check_text(check: Expression, table: Table) -> str | None:
    tree = comparable_times(check.renamed(lambda name: name.column), table, "mysql")
    if tree is None:
        return None
    try:
        text: str = spoken(tree, "mysql").sql("mysql", identify=True, unsupported_level=sql_errors.ErrorLevel.RAISE)
    except sql_errors.SqlglotError:
        return None
    text = re.sub(r"\s+", " ", text) if "'" not in text else text
    return text if is_one_text(text, MYSQL) else None
