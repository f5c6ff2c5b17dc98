"""The catalogue of a MySQL or MariaDB database: our schema of it, its types as stored, and its own DDL.

Columns come from `information_schema`, everything else from SHOW CREATE, which a user who may only read may ask for
too. The right to see a view's text is another one (SHOW VIEW): views without it are listed as left out.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from privbench.errors import SchemaError, SourceError
from privbench.io.catalogue import RawTable, build_schema
from privbench.io.ddl import parse_checks, parse_generated
from privbench.io.mysql.connection import fetch, quote_name
from privbench.io.mysql.show_create import (
    CreateTable,
    Part,
    PartKind,
    cut_check,
    names_in,
    read_table,
    view_query,
    without_nulls,
)
from privbench.io.mysql.types import StoredType, column_type
from privbench.schema.original import LeftOut, OriginalDdl, Phase, SourceDialect, Statement, TableDefinition
from privbench.schema.tables import ForeignKey, Index, Schema

_TABLES = (
    "SELECT t.TABLE_NAME, t.TABLE_TYPE, e.TRANSACTIONS FROM information_schema.TABLES t "
    "LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE WHERE t.TABLE_SCHEMA = DATABASE() "
    "ORDER BY t.TABLE_NAME"
)
_COLUMNS = (
    "SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, GENERATION_EXPRESSION, EXTRA "
    "FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME, ORDINAL_POSITION"
)
_OTHERS = (
    "SELECT 'trigger', CONCAT(EVENT_OBJECT_TABLE, '.', TRIGGER_NAME) FROM information_schema.TRIGGERS "
    "WHERE TRIGGER_SCHEMA = DATABASE() "
    "UNION ALL SELECT LOWER(ROUTINE_TYPE), ROUTINE_NAME FROM information_schema.ROUTINES "
    "WHERE ROUTINE_SCHEMA = DATABASE() "
    "UNION ALL SELECT 'event', EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE()"
)
_BASE = ("BASE TABLE", "SYSTEM VERSIONED")
_NOT_MADE = "code is not made again"
_NO_SEQUENCE = "sequences of this system are not made again"
_NO_TEXT = "the user has no right to see its text (SHOW VIEW)"
_UNREADABLE = "its text cannot be read"
_ELSEWHERE = "it names another database or a function"
_NOT_UNIQUE = "it references columns that are not unique"
_JSON_CHECK = re.compile(r"json_valid\(`(?:[^`]|``)+`\)", re.IGNORECASE)


@dataclass(slots=True, kw_only=True)
class StoredTable:
    """A table as the server stores it. `snapshot`: what is read of it does not change while others write."""

    name: str
    snapshot: bool
    types: dict[str, StoredType] = field(default_factory=dict)
    nullable: dict[str, bool] = field(default_factory=dict)
    generated: dict[str, str] = field(default_factory=dict)
    create: CreateTable = field(default_factory=CreateTable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """What a database holds, for those who read it."""

    schema: Schema
    tables: Mapping[str, StoredTable]


def read_catalogue(connection: Any, location: str) -> Catalogue:
    """Ask the server for everything that is declared in the database of the session."""
    tables, others = _stored_tables(connection)
    if not tables:
        raise SourceError(f"{location}: has no table that this user may read.")
    for table in tables.values():
        [row] = fetch(connection, f"SHOW CREATE TABLE {quote_name(table.name)}")
        table.create = read_table(row[1])
        for name in _json_columns(table.create):
            table.types[name] = StoredType(name="json", full="json")
    left_out: list[LeftOut] = []
    raw = [_raw_table(table, tables, left_out) for table in tables.values()]
    schema = build_schema(_with_unique_targets(raw, left_out))
    views = [_view(connection, name, tables) for name, kind in others.items() if kind == "VIEW"]
    known = {view.title for view in views if isinstance(view, Statement)}
    left_out += [view for view in views if isinstance(view, LeftOut)]
    sequences = [name for name in others if others[name] == "SEQUENCE"]
    left_out += [LeftOut(kind="sequence", name=name, reason=_NO_SEQUENCE) for name in sequences]
    left_out += [LeftOut(kind=kind, name=name, reason=_NOT_MADE) for kind, name in fetch(connection, _OTHERS)]
    statements = [s for table in tables.values() for s in _statements(table, schema)]
    original = OriginalDdl.of_source(
        dialect=SourceDialect.MYSQL,
        tables={table.name: _definition(table) for table in tables.values()},
        statements=(*statements, *_in_order([v for v in views if isinstance(v, Statement)], known)),
        left_out=tuple(left_out),
    )
    return Catalogue(schema=replace(schema, original=original), tables=tables)


def _stored_tables(connection: Any) -> tuple[dict[str, StoredTable], dict[str, str]]:
    """The tables with their columns, and the kinds of everything else that is listed beside them."""
    tables: dict[str, StoredTable] = {}
    others: dict[str, str] = {}
    for name, kind, transactions in fetch(connection, _TABLES):
        if kind in _BASE:
            tables[name] = StoredTable(name=name, snapshot=transactions == "YES")
        else:
            others[name] = kind
    for name, column, data_type, full, nullable, expression, extra in fetch(connection, _COLUMNS):
        if name in tables and "SYSTEM" not in extra.upper().split():
            tables[name].types[column] = StoredType(name=data_type.lower(), full=full)
            tables[name].nullable[column] = nullable == "YES"
            if expression:
                tables[name].generated[column] = expression
    return tables, others


def _raw_table(table: StoredTable, tables: Mapping[str, StoredTable], left_out: list[LeftOut]) -> RawTable:
    raw = RawTable(name=table.name)
    for name, stored in table.types.items():
        raw.columns.append(replace(column_type(stored), name=name, nullable=table.nullable[name]))
    for name, expression in table.generated.items():
        parse_generated(
            raw, f"CREATE TABLE t ({quote_name(name)} INT GENERATED ALWAYS AS ({expression}))", dialect="mysql"
        )
    for part in table.create.parts:
        match part.kind:
            case PartKind.PRIMARY_KEY:
                raw.primary_key = part.columns
            case PartKind.UNIQUE if part.plain and part.named_by_server:
                raw.uniques.append(part.columns)
            case PartKind.UNIQUE | PartKind.INDEX if _is_index(part, table):
                raw.indexes.append(Index(name=part.name, columns=part.columns, unique=part.kind is PartKind.UNIQUE))
            case PartKind.FOREIGN_KEY:
                _add_foreign_key(raw, part, tables, left_out)
            case PartKind.CHECK:
                raw.checks += parse_checks(f"CREATE TABLE t (c INT, {part.text})", dialect="mysql")
            case PartKind.COLUMN if (check := _own_check(part)) is not None:
                raw.checks += parse_checks(f"CREATE TABLE t (c INT, CHECK ({check}))", dialect="mysql")
    return raw


def _json_columns(create: CreateTable) -> list[str]:
    """The columns that MariaDB calls text, though they were declared JSON."""
    checks = [(part.name, cut_check(part.text)[1]) for part in create.of(PartKind.COLUMN)]
    return [name for name, check in checks if check is not None and _JSON_CHECK.fullmatch(check)]


def _own_check(part: Part) -> str | None:
    """The CHECK in the text of a column, unless it is how MariaDB writes JSON."""
    check = cut_check(part.text)[1]
    return None if check is None or _JSON_CHECK.fullmatch(check) else check


def _is_index(part: Part, table: StoredTable) -> bool:
    """Whether our schema can hold an index, and it was not made for a foreign key, with which it comes again."""
    if part.kind is not PartKind.INDEX:
        return part.kind is PartKind.UNIQUE and part.plain
    if not part.columns:
        return False
    return part not in table.create.made_for_keys()


def _in_schema(part: Part, table: StoredTable) -> bool:
    """Whether our schema holds the key or the index that a part declares."""
    return part.kind in (PartKind.PRIMARY_KEY, PartKind.FOREIGN_KEY) or _is_index(part, table)


def _add_foreign_key(raw: RawTable, part: Part, tables: Mapping[str, StoredTable], left_out: list[LeftOut]) -> None:
    if len(part.target) > 1:
        left_out.append(LeftOut(kind="foreign key", name=f"{raw.name}.{part.name}", reason=_ELSEWHERE))
        return
    target = next((name for name in tables if name.lower() == part.target[0].lower()), None)
    if target is None:
        raise SchemaError(
            f"{raw.name}.{','.join(part.columns)}: references table {part.target[0]}, which is not there or which this "
            f"user may not read. GRANT SELECT on it, or drop the key {part.name}."
        )
    raw.foreign_keys.append(ForeignKey(columns=part.columns, table=target, references=part.references))


def _with_unique_targets(tables: Sequence[RawTable], left_out: list[LeftOut]) -> Sequence[RawTable]:
    """Leave out foreign keys to columns that are not unique, which InnoDB allows."""
    keys = {t.name: [t.primary_key, *t.uniques, *(i.columns for i in t.indexes if i.unique)] for t in tables}
    for table in tables:
        for key in tuple(table.foreign_keys):
            if sorted(key.references) not in map(sorted, keys[key.table]):
                table.foreign_keys.remove(key)
                left_out.append(LeftOut(kind="foreign key", name=f"{table.name} {key}", reason=_NOT_UNIQUE))
    return tables


# -- the server's own DDL ----------------------------------------------------------------------------------------------


def _definition(table: StoredTable) -> TableDefinition:
    columns = {part.name: _column_text(part) for part in table.create.of(PartKind.COLUMN) if part.name in table.types}
    return TableDefinition(
        name=quote_name(table.name),
        columns=columns,
        after=table.create.options,
        generated=tuple(table.generated),
    )


def _column_text(part: Part) -> str:
    """What declares a column, but for NULL and its CHECK; MariaDB writes JSON as text with a CHECK."""
    text, check = cut_check(part.text)
    if check is not None and _JSON_CHECK.fullmatch(check):
        text = re.sub(r"^longtext( CHARACTER SET \w+)?( COLLATE \w+)?", "json", text)
    return without_nulls(text)


def _statements(table: StoredTable, schema: Schema) -> list[Statement]:
    """The keys, indexes and CHECKs of a table, as the server would add them to it."""
    known = schema.table(table.name)
    statements = []
    for part in table.create.parts:
        text = _check_text(part)
        if text is None:
            continue
        if part.kind is PartKind.FOREIGN_KEY and not any(k.columns == part.columns for k in known.foreign_keys):
            continue
        tables = (table.name, *(_spelled(schema, part.target[-1:])))
        named = [name for name in names_in(part.text) if name in table.types]
        columns = [*((table.name, name) for name in dict.fromkeys(named)), *((tables[-1], c) for c in part.references)]
        statements.append(
            Statement(
                kind=_word(part),
                name=f"{table.name}.{part.name or part.kind.value}",
                sql=f"ALTER TABLE {quote_name(table.name)} ADD {text}",
                phase=Phase.BEFORE if part.kind is PartKind.PRIMARY_KEY else Phase.AFTER,
                tables=tables,
                columns=tuple(dict.fromkeys(columns)),
                key=part.columns if _in_schema(part, table) else (),
            )
        )
    if table.create.partition:
        statements.append(_partition(table))
    order = (PartKind.FOREIGN_KEY.value, PartKind.CHECK.value)
    return sorted(statements, key=lambda s: order.index(s.kind) if s.kind in order else -1)


def _partition(table: StoredTable) -> Statement:
    named = dict.fromkeys(name for name in names_in(table.create.partition) if name in table.types)
    return Statement(
        kind="partition",
        name=table.name,
        sql=f"ALTER TABLE {quote_name(table.name)} {table.create.partition}",
        phase=Phase.BEFORE,
        tables=(table.name,),
        columns=tuple((table.name, name) for name in named),
    )


def _check_text(part: Part) -> str | None:
    """What ADD takes of a part; None for a column without a CHECK of its own."""
    if part.kind is PartKind.COLUMN:
        check = _own_check(part)
        return None if check is None else f"CHECK ({check})"
    return None if part.kind is PartKind.OTHER else part.text


def _word(part: Part) -> str:
    if part.kind is PartKind.COLUMN:
        return PartKind.CHECK.value
    return "index" if part.kind is PartKind.SPECIAL_INDEX else part.kind.value


def _spelled(schema: Schema, names: Sequence[str]) -> list[str]:
    return [t.name for name in names for t in schema.tables if t.name.lower() == name.lower()][:1]


def _view(connection: Any, name: str, tables: Mapping[str, StoredTable]) -> Statement | LeftOut:
    import pymysql  # noqa: PLC0415  an extra

    try:
        [row] = fetch(connection, f"SHOW CREATE VIEW {quote_name(name)}")
    except pymysql.MySQLError as error:
        # The server's own words name who made the view and on which host.
        return LeftOut(kind="view", name=name, reason=_NO_TEXT if error.args[0] == 1142 else _UNREADABLE)
    query = view_query(row[1])
    try:
        tree = sqlglot.parse_one(query, dialect="mysql")
    except SqlglotError:
        return LeftOut(kind="view", name=name, reason=_UNREADABLE)
    if any(t.db for t in tree.find_all(exp.Table)) or re.search(r"`\s*\(", query):
        return LeftOut(kind="view", name=name, reason=_ELSEWHERE)
    used = {t.alias_or_name: t.name for t in tree.find_all(exp.Table)}
    read = [(used[c.table], c.name) for c in tree.find_all(exp.Column) if used.get(c.table) in tables]
    return Statement(
        kind="view",
        name=name,
        sql=f"CREATE VIEW {quote_name(name)} AS {query}",
        phase=Phase.AFTER,
        tables=tuple(dict.fromkeys(t for t in used.values() if t in tables)),
        columns=tuple(dict.fromkeys((t, c) for t, c in read if c in tables[t].types)),
        needs=tuple(dict.fromkeys(f"view {t}" for t in used.values() if t not in tables)),
    )


def _in_order(views: Sequence[Statement], known: set[str]) -> list[Statement]:
    """Views after those that they read."""
    waiting, ordered = list(views), list[Statement]()
    made: set[str] = set()
    while waiting:
        ready = [v for v in waiting if not (set(v.needs) & known) - made]
        ordered += ready or waiting
        made |= {v.title for v in ready}
        waiting = [v for v in waiting if v not in ready] if ready else []
    return ordered
