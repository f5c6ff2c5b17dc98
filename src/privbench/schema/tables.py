"""The schema of a database as plain frozen values: tables, columns, keys and indexes.

Nothing here is private, and nothing here knows who is protected: that is `unit.py`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from privbench.errors import SchemaError
from privbench.schema.domain import Domain
from privbench.schema.expression import Expression
from privbench.schema.original import OriginalDdl
from privbench.schema.types import SqlType

Place = tuple[str, str]
"""A table and one of its columns."""


def named_twice(names: Sequence[str]) -> str | None:
    """Find the first name that stands there twice.

    >>> named_twice(["a", "b", "b"])
    'b'
    """
    return next((name for name, count in Counter(names).items() if count > 1), None)


def is_key(columns: Sequence[str], keys: Iterable[Sequence[str]]) -> bool:
    """Tell whether these columns, in any order, are one of the keys."""
    return sorted(columns) in map(sorted, keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column. `implied` is the domain that the schema itself promises (CHECK, ENUM, BOOLEAN), if any.

    `guessed` says that no schema has the type: it was guessed from the values. `computed` says what the column equals,
    if it is worked out from other columns, `generated` that the schema of the source does so. `determined_by` names the
    column of the row that it follows from, `relative_to` the one that it is coded as a difference from, `start` the one
    from which a sequence starts. `source_type` is the type in the source, where ours is another one. `quoted` says that
    the name has its case by quotes in the schema of the source; else systems may write it as they write names.
    """

    name: str
    type: SqlType
    nullable: bool = True
    implied: Domain | None = None
    guessed: bool = False
    computed: Expression | None = None
    generated: bool = False
    determined_by: str | None = None
    relative_to: str | None = None
    start: str | None = None
    source_type: str | None = None
    quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """Columns of one table whose values are a key of another (or the same) table.

    `inside` says that it references rows of the same entity.
    """

    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]
    inside: bool = False

    def __str__(self) -> str:
        return f"({', '.join(self.columns)}) -> {self.table}({', '.join(self.references)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A secondary index, kept so that plans on the synthetic database stay the same.

    `clustered` says that the source stores the table in the order of this index.
    """

    name: str
    columns: tuple[str, ...]
    unique: bool = False
    clustered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; an empty primary key means that it has none. `uniques` are UNIQUE constraints beside it.

    `checks` are the rules that every row keeps: CHECK constraints, and rules that name columns of the rows above too.
    Columns of the primary key are made NOT NULL, whatever their declaration says.
    """

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[Index, ...] = ()
    checks: tuple[Expression, ...] = ()
    list_of: tuple[str, ...] = ()
    """Of a hidden list: the tables whose rows reference its rows. It is in no source and is not published."""
    quoted: bool = False
    """Whether the name has its case by quotes in the schema of the source."""

    def __post_init__(self) -> None:
        names = [c.name for c in self.columns]
        if any("\0" in name for name in (self.name, *names)):
            shown = ", ".join(repr(name) for name in (self.name, *names) if "\0" in name)
            raise SchemaError(f"{self.name!r}: a name holds the character NUL: {shown}. Rename it in the source.")
        if not names:
            raise SchemaError(f"{self.name}: a table needs at least one column.")
        if (twice := named_twice(names)) is not None:
            raise SchemaError(f"{self.name}.{twice}: the column is declared twice.")
        if (twice := named_twice([i.name for i in self.indexes])) is not None:
            raise SchemaError(f"{self.name}: two indexes have the name {twice}.")
        self._check_keys(set(names))
        forced = tuple(replace(c, nullable=c.nullable and c.name not in self.primary_key) for c in self.columns)
        object.__setattr__(self, "columns", forced)

    def _check_keys(self, names: set[str]) -> None:
        parts = [("primary key", self.primary_key), *(("unique key", u) for u in self.uniques)]
        parts += [("foreign key", f.columns) for f in self.foreign_keys]
        parts += [(f"index {i.name}", i.columns) for i in self.indexes]
        for what, columns in parts:
            if not columns and what != "primary key":
                raise SchemaError(f"{self.name}: a {what} names no column.")
            if (twice := named_twice(columns)) is not None:
                raise SchemaError(f"{self.name}.{twice}: a {what} names it twice.")
            for name in columns:
                if name not in names:
                    raise SchemaError(f"{self.name}.{name}: named by a {what}, but there is no such column.")

    def column(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise SchemaError(f"{self.name}.{name}: no such column. Columns: {', '.join(c.name for c in self.columns)}.")

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """Every set of columns declared unique, the primary key first."""
        indexed = tuple(i.columns for i in self.indexes if i.unique)
        return ((self.primary_key,) if self.primary_key else ()) + self.uniques + indexed

    @property
    def own_checks(self) -> tuple[Expression, ...]:
        """The rules that look at the row alone, as a CHECK constraint does."""
        return tuple(check for check in self.checks if all(name.table is None for name in check.columns))

    @property
    def surrogate_columns(self) -> frozenset[str]:
        """The columns whose values mean nothing by themselves: of foreign keys, and a primary key of one column."""
        foreign = {c for key in self.foreign_keys for c in key.columns}
        return frozenset(foreign.union(self.primary_key if len(self.primary_key) == 1 else ()))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns whose values are learnt: those that are neither surrogates nor computed."""
        return tuple(c.name for c in self.columns if c.name not in self.surrogate_columns and c.computed is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """All tables of a database, in their declared order; foreign keys point at existing keys."""

    tables: tuple[Table, ...] = ()
    original: OriginalDdl | None = field(default=None, hash=False)
    """The DDL of the source as it stands there, if the source has a catalogue."""
    _by_name: Mapping[str, Table] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (twice := named_twice([t.name for t in self.tables])) is not None:
            raise SchemaError(f"{twice}: the table is declared twice.")
        object.__setattr__(self, "_by_name", {t.name: t for t in self.tables})
        for table, key in self.foreign_keys():
            self._check(table, key)

    def _check(self, table: Table, key: ForeignKey) -> None:
        where = f"{table.name}.{','.join(key.columns)}"
        if key.table not in self._by_name:
            raise SchemaError(f"{where}: references table {key.table}, which is not there.")
        target = self.table(key.table)
        if len(key.columns) != len(key.references):
            raise SchemaError(f"{where}: {len(key.columns)} columns reference {len(key.references)} columns.")
        if not is_key(key.references, target.keys):
            wanted = f"{key.table}({', '.join(key.references)})"
            known = "; ".join(", ".join(k) for k in target.keys) or "none"
            raise SchemaError(
                f"{where}: references {wanted}, which is neither a primary key nor UNIQUE. "
                f"Keys of {key.table}: {known}."
            )

    def table(self, name: str) -> Table:
        if name not in self._by_name:
            raise SchemaError(f"no table {name!r}. Tables: {', '.join(self._by_name)}.")
        return self._by_name[name]

    def published(self) -> "Schema":
        """The schema without hidden lists, the keys into them, and what names them."""
        hidden = {t.name for t in self.tables if t.list_of}
        return replace(self, tables=tuple(_without(t, hidden) for t in self.tables if t.name not in hidden))

    def foreign_keys(self) -> Iterator[tuple[Table, ForeignKey]]:
        """Every foreign key with the table that holds it."""
        for table in self.tables:
            for key in table.foreign_keys:
                yield table, key


def _without(table: Table, hidden: set[str]) -> Table:
    """A table without keys to hidden ones, and without computed columns and rules that name one."""

    def names(expression: Expression | None) -> bool:
        named = () if expression is None else (*expression.columns, *expression.aggregated)
        return any(name.table in hidden for name in named)

    return replace(
        table,
        columns=tuple(replace(c, computed=None) if names(c.computed) else c for c in table.columns),
        foreign_keys=tuple(k for k in table.foreign_keys if k.table not in hidden),
        checks=tuple(check for check in table.checks if not names(check)),
    )
