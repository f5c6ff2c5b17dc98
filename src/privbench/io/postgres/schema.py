"""What the catalogue of a PostgreSQL database means for us: tables with our types, keys, rules and plain indexes.

A partial or expression index is no key and no index of ours; `postgres.original` keeps its text. A UNIQUE that lets
only one NULL in (NULLS NOT DISTINCT) is a key if none of its columns can be NULL. The bounds of partitions, where there
is no default partition, are a rule that rows keep, like a CHECK.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from privbench.io.catalogue import RawTable
from privbench.io.ddl import about_column, parse_checks
from privbench.io.partitions import partition_rule
from privbench.io.postgres.catalogue import Catalogue, Row, Stored, StoredColumn, StoredType
from privbench.schema.domain import MAX_CELLS, Values, implied_by_type
from privbench.schema.tables import Column, ForeignKey, Index
from privbench.schema.types import MAX_TYPE_TEXT, Kind, SqlType, any_type, enum_type, parse_type

_PRECISION = re.compile(r"^(timestamp|time)\(\d\)")
_NUMERIC = re.compile(r"^numeric\((\d+),(-?\d+)\)$")
_SCHEMA = re.compile(r'^(?:"(?:[^"]|"")+"|[a-z_][a-z0-9_$]*)\.')
_OWN_NAMES = {'"char"': "VARCHAR", "name": "VARCHAR", "oid": "BIGINT", "xid": "BIGINT", "cid": "BIGINT"}
_MOST_DIGITS = 38
_PLAIN = ("btree", "hash")


def raw_tables(catalogue: Catalogue) -> list[RawTable]:
    """Gather the tables, in the order in which they were made."""
    tables = {oid: _raw(table) for oid, table in catalogue.by_oid.items()}
    for constraint in catalogue.constraints:
        if constraint["table_oid"] in tables:
            _add_constraint(tables[constraint["table_oid"]], constraint, catalogue)
    for index, columns in plain_indexes(catalogue):
        raw = tables[index["table_oid"]]
        raw.indexes.append(
            Index(name=index["name"], columns=columns, unique=index["is_unique"], clustered=index["is_clustered"])
        )
    for oid, raw in tables.items():
        raw.checks += _partition_rule(catalogue, catalogue.by_oid[oid])
    return list(tables.values())


def plain_indexes(catalogue: Catalogue) -> Iterator[tuple[Row, tuple[str, ...]]]:
    """The indexes that our schema knows, with their columns: of whole columns and all rows, behind no constraint."""
    behind = {c["index_oid"] for c in catalogue.constraints if c["kind"] in ("p", "u", "x")}
    for index in catalogue.indexes:
        table = catalogue.by_oid.get(index["table_oid"])
        if table is None or index["oid"] in behind or index["is_partial"] or index["has_expressions"]:
            continue
        columns = table.names(index["columns"][: index["keys"]])
        if index["method"] in _PLAIN and len(set(columns)) == index["keys"] and not lets_one_null(index, table):
            yield index, columns


def lets_one_null(index: Row, table: Stored) -> bool:
    """Tell whether a UNIQUE index forbids a second NULL that its columns could have."""
    columns = table.names(index["columns"][: index["keys"]])
    return bool(index["one_null"]) and any(table.columns[c].row["nullable"] for c in columns)


def _raw(table: Stored) -> RawTable:
    raw = RawTable(name=table.name)
    for name, column in table.columns.items():
        raw.columns.append(_column(name, column))
        raw.checks += _domain_checks(name, column.stored)
        if column.row["generated"] and (tree := _expression(column.row["default"])) is not None:
            raw.generated[name] = tree
    return raw


def _column(name: str, column: StoredColumn) -> Column:
    nullable = column.row["nullable"] and not column.stored.required
    known = our_column(column.stored)
    return replace(known, name=name, nullable=nullable)


def our_column(stored: StoredType) -> Column:
    """The type of ours for one of PostgreSQL's, as a column without a name.

    >>> our_column(StoredType(base="timestamp(3) with time zone")).type.sql
    'TIMESTAMPTZ'
    """
    ours, changed = _our_type(stored)
    implied = implied_by_type(ours)
    if stored.labels and not ours.labels and ours.syntax is None:
        implied = Values(values=stored.labels) if len(stored.labels) <= MAX_CELLS else None
        changed = True
    return Column(name="", type=ours, implied=implied, source_type=stored.base[:MAX_TYPE_TEXT] if changed else None)


def _our_type(stored: StoredType) -> tuple[SqlType, bool]:
    """Our type, and whether it is another one."""
    shown = _SCHEMA.sub("", stored.base)
    if stored.labels:
        element = enum_type(stored.labels)
        return (any_type(f"{element.sql}[]"), False) if shown.endswith("[]") else (element, False)
    if not stored.known:
        return SqlType(kind=Kind.OTHER, sql=shown[:MAX_TYPE_TEXT]), False
    if shown in _OWN_NAMES:
        return parse_type(_OWN_NAMES[shown]), shown == "xid"
    if shown.startswith("interval") and not shown.endswith("[]"):
        return parse_type("INTERVAL"), False
    if shown == "numeric" or ((digits := _NUMERIC.match(shown)) and not _holds(int(digits[1]), int(digits[2]))):
        return parse_type("DOUBLE"), True
    return any_type(_PRECISION.sub(r"\1", shown.removesuffix("[]")) + ("[]" if shown.endswith("[]") else "")), False


def _holds(precision: int, scale: int) -> bool:
    return precision <= _MOST_DIGITS and 0 <= scale <= precision


def _domain_checks(column: str, stored: StoredType) -> list[exp.Expr]:
    """The CHECKs of a column's domains, about the column instead of VALUE."""
    tables = [f"CREATE TABLE t (c INT, {text})" for text in stored.checks]
    return [about_column(tree, column) for table in tables for tree in parse_checks(table, dialect="postgres")]


def _expression(text: str | None) -> exp.Expr | None:
    try:
        return None if text is None else sqlglot.parse_one(text, dialect="postgres")
    except SqlglotError:
        return None


def _add_constraint(raw: RawTable, constraint: Row, catalogue: Catalogue) -> None:
    table = catalogue.by_oid[constraint["table_oid"]]
    columns = table.names(constraint["columns"])
    match constraint["kind"]:
        case "p":
            raw.primary_key = columns
        case "u" if is_key(constraint, catalogue):
            raw.uniques.append(columns)
        case "f" if is_foreign_key(constraint, catalogue):
            target = catalogue.by_oid[constraint["target_oid"]]
            references = target.names(constraint["references"])
            raw.foreign_keys.append(ForeignKey(columns=columns, table=target.name, references=references))
        case "c":
            text = constraint["definition"].removesuffix(" NOT VALID").removesuffix(" NO INHERIT")
            raw.checks += parse_checks(f"CREATE TABLE t (c INT, {text})", dialect="postgres")


def is_key(constraint: Row, catalogue: Catalogue) -> bool:
    """Tell whether a UNIQUE constraint is one of ours: of no period, and with as many NULLs as there are."""
    index = next((i for i in catalogue.indexes if i["oid"] == constraint["index_oid"]), None)
    table = catalogue.by_oid[constraint["table_oid"]]
    return not constraint["period"] and not (index is not None and lets_one_null(index, table))


def is_foreign_key(constraint: Row, catalogue: Catalogue) -> bool:
    """Tell whether a foreign key is one of ours: not part of another one, between tables that are read."""
    return not constraint["inherited"] and not constraint["period"] and constraint["target_oid"] in catalogue.by_oid


def _partition_rule(catalogue: Catalogue, table: Stored) -> list[exp.Expr]:
    bounds = [
        row["bound"] for row in catalogue.relations.values() if row["parent"] == table.row["oid"] and row["bound"]
    ]
    rule = partition_rule(table.row["partition_key"] or "", bounds, table.columns)
    tree = _expression(rule)
    return [] if tree is None else [tree]
