"""What a catalogue or a CREATE TABLE script says, gathered piece by piece and then checked as one Schema.

Systems differ in how strictly names must match, so references are resolved here, exactly first and then
without regard to case. A FOREIGN KEY without a column list means the primary key.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from privbench.errors import SchemaError
from privbench.io.checks import facts_of, implied_domain
from privbench.io.names import find_name
from privbench.schema.model import Column, ForeignKey, Index, Schema, Table


@dataclass(slots=True, kw_only=True)
class RawTable:
    """A table as it is being read: names are not resolved yet."""

    name: str
    columns: list[Column] = field(default_factory=list)
    primary_key: tuple[str, ...] = ()
    foreign_keys: list[ForeignKey] = field(default_factory=list)  # no references: the primary key
    uniques: list[tuple[str, ...]] = field(default_factory=list)
    indexes: list[Index] = field(default_factory=list)
    checks: list[exp.Expr] = field(default_factory=list)


def build_schema(raw_tables: Sequence[RawTable]) -> Schema:
    """Resolve names, give columns the domains that CHECKs imply, and check the whole."""
    return Schema(tables=tuple(_table(raw, raw_tables) for raw in raw_tables))


def _table(raw: RawTable, all_tables: Sequence[RawTable]) -> Table:
    primary_key = _resolve(raw, raw.primary_key)
    uniques = [_resolve(raw, u) for u in raw.uniques]
    indexes = [replace(i, columns=_resolve(raw, i.columns)) for i in raw.indexes]
    targets = {frozenset(r) for t in all_tables for r in _references_to(raw, t, all_tables)}
    declared = [frozenset(k) for k in (primary_key, *uniques)]
    needed = [i.columns for i in indexes if i.unique and frozenset(i.columns) in targets]
    uniques += [c for c in needed if frozenset(c) not in declared]  # a foreign key needs a constraint
    kept = tuple(i for i in indexes if not (i.unique and i.columns in uniques))
    return Table(
        name=raw.name,
        columns=_columns(raw, primary_key),
        primary_key=primary_key,
        foreign_keys=tuple(dict.fromkeys(_key(raw, k, all_tables) for k in raw.foreign_keys)),
        uniques=tuple(u for u in dict.fromkeys(uniques) if u != primary_key),
        indexes=kept,
    )


def _columns(raw: RawTable, primary_key: tuple[str, ...]) -> tuple[Column, ...]:
    facts = facts_of(raw.checks)
    columns = []
    for column in raw.columns:
        fact = facts.get(column.name.lower())
        implied = column.implied or (implied_domain(fact, column.type) if fact else None)
        nullable = column.nullable and column.name not in primary_key
        columns.append(replace(column, implied=implied, nullable=nullable))
    return tuple(columns)


def _references_to(raw: RawTable, table: RawTable, all_tables: Sequence[RawTable]) -> list[tuple[str, ...]]:
    keys = (_key(table, k, all_tables) for k in table.foreign_keys)
    return [k.references for k in keys if k.table == raw.name]


def _key(raw: RawTable, key: ForeignKey, all_tables: Sequence[RawTable]) -> ForeignKey:
    where = f"{raw.name}.{','.join(key.columns)}"
    found = find_name(key.table, (t.name for t in all_tables))
    if found is None:
        raise SchemaError(f"{where}: references table {key.table}, which is not there.")
    target = next(t for t in all_tables if t.name == found)
    if not key.references and not target.primary_key:
        raise SchemaError(f"{where}: references {found} without naming columns, but {found} has no primary key.")
    references = _resolve(target, key.references or target.primary_key)
    return ForeignKey(columns=_resolve(raw, key.columns), table=found, references=references)


def _resolve(raw: RawTable, names: tuple[str, ...]) -> tuple[str, ...]:
    """Spell the names as the columns are; a name that is not there stays, for Table to refuse."""
    return tuple(find_name(n, (c.name for c in raw.columns)) or n for n in names)
