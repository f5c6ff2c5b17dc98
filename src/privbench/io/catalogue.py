"""What a catalogue or a CREATE TABLE script declares, gathered piece by piece and then checked as one Schema.

Systems differ in how strictly names must match, so references are resolved here, exactly first and then
without regard to case. A FOREIGN KEY without a column list means the primary key. Every CHECK is kept as an
expression; those that list the values of a column, or bound it on both sides, give the column's domain.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from privbench.deferred import exp
from privbench.errors import SchemaError, SpecError
from privbench.io.names import Names
from privbench.schema.check_facts import facts_of, implied_domain
from privbench.schema.expression import ColumnName, Expression, expression_of
from privbench.schema.tables import Column, ForeignKey, Index, Schema, Table

_logger = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class RawTable:
    """A table as it is being read: names are not resolved yet."""

    name: str
    quoted: bool = False
    columns: list[Column] = field(default_factory=list)
    primary_key: tuple[str, ...] = ()
    foreign_keys: list[ForeignKey] = field(default_factory=list)  # no references: the primary key
    uniques: list[tuple[str, ...]] = field(default_factory=list)
    indexes: list[Index] = field(default_factory=list)
    checks: list[exp.Expr] = field(default_factory=list)
    generated: dict[str, exp.Expr] = field(default_factory=dict)
    """The expressions of GENERATED columns."""


class _Known:
    """A raw table with its columns ready to be found."""

    def __init__(self, raw: RawTable) -> None:
        self.raw = raw
        self._columns = Names(c.name for c in raw.columns)

    def spell(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Spell the names as the columns are; a name that is not there stays, for Table to refuse."""
        return tuple(self._columns.find(n) or n for n in names)

    def checks(self) -> Iterator[Expression]:
        """Give the CHECKs, with columns spelled as they are; not those that look beyond the row."""
        for check in self.raw.checks:
            try:
                yield expression_of(check.unnest(), where=self.raw.name).spelled(self._column)
            except SpecError:  # no system takes such a CHECK
                continue

    def generated(self, column: str) -> Expression | None:
        """Give the expression of a GENERATED column, with columns spelled as they are; None for any other column."""
        tree = self.raw.generated.get(column)
        try:
            return None if tree is None else expression_of(tree.unnest(), where=column).spelled(self._column)
        except SpecError:  # no system takes such a column
            return None

    def _column(self, name: ColumnName) -> ColumnName | None:
        spelled = self._columns.find(name.column)
        own = name.table is None or name.table.casefold() == self.raw.name.casefold()
        return ColumnName(None, spelled) if own and spelled is not None else None


def warn_of_unread(location: str, objects: Iterable[str]) -> None:
    """Say what a file holds beside tables, which no synthetic database has."""
    if names := [*objects]:
        _logger.warning(
            "%s: tables are read, but not these, which no synthetic database has: %s.", location, ", ".join(names)
        )


def build_schema(raw_tables: Sequence[RawTable]) -> Schema:
    """Resolve names, give columns the domains that CHECKs imply, and check the whole."""
    tables = [_Known(raw) for raw in raw_tables]
    by_name = {t.raw.name: t for t in tables}
    names = Names(by_name)
    keys = [tuple(dict.fromkeys(_key(t, k, names, by_name) for k in t.raw.foreign_keys)) for t in tables]
    targets: dict[str, set[frozenset[str]]] = {name: set() for name in by_name}
    for key in chain.from_iterable(keys):
        targets[key.table].add(frozenset(key.references))
    return Schema(tables=tuple(_table(t, ks, targets[t.raw.name]) for t, ks in zip(tables, keys, strict=True)))


def _table(known: _Known, foreign_keys: tuple[ForeignKey, ...], targets: Collection[frozenset[str]]) -> Table:
    """Make the table; `targets` are the sets of its columns that foreign keys reference."""
    raw = known.raw
    primary_key = known.spell(raw.primary_key)
    uniques = [known.spell(u) for u in raw.uniques]
    indexes = [replace(i, columns=known.spell(i.columns)) for i in raw.indexes]
    declared = [frozenset(k) for k in (primary_key, *uniques)]
    needed = [i.columns for i in indexes if i.unique and frozenset(i.columns) in targets]
    uniques += [c for c in needed if frozenset(c) not in declared]  # a foreign key needs a constraint
    kept = tuple(i for i in indexes if not (i.unique and i.columns in uniques))
    checks = tuple(dict.fromkeys(known.checks()))
    return Table(
        name=raw.name,
        columns=_columns(known, primary_key, checks),
        primary_key=primary_key,
        foreign_keys=foreign_keys,
        uniques=tuple(u for u in dict.fromkeys(uniques) if u != primary_key),
        indexes=kept,
        checks=checks,
        quoted=raw.quoted,
    )


def _columns(known: _Known, primary_key: tuple[str, ...], checks: Sequence[Expression]) -> tuple[Column, ...]:
    facts = facts_of(checks)
    columns = []
    for column in known.raw.columns:
        fact = facts.get(column.name)
        implied = column.implied or (implied_domain(fact, column.type) if fact else None)
        nullable = column.nullable and column.name not in primary_key and not (fact and fact.required)
        computed = known.generated(column.name)
        columns.append(
            replace(column, implied=implied, nullable=nullable, computed=computed, generated=computed is not None)
        )
    return tuple(columns)


def _key(known: _Known, key: ForeignKey, names: Names, by_name: Mapping[str, _Known]) -> ForeignKey:
    where = f"{known.raw.name}.{','.join(key.columns)}"
    spelled = names.find(key.table)
    if spelled is None:
        raise SchemaError(f"{where}: references table {key.table}, which is not there.")
    target = by_name[spelled]
    if not key.references and not target.raw.primary_key:
        raise SchemaError(f"{where}: references {spelled} without naming columns, but {spelled} has no primary key.")
    references = target.spell(key.references or target.raw.primary_key)
    return ForeignKey(columns=known.spell(key.columns), table=spelled, references=references)
