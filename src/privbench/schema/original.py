"""The source's own DDL, kept word by word, so that a sink of the same system makes the same objects again.

A `Schema` knows what generation needs: columns, keys, plain indexes, rules. A database has more: partial and
expression indexes, ON DELETE, defaults, identity, partitions, views, comments, statistics objects, storage options. A
source that has a catalogue writes them down here as text. Nothing here is private, and all of it is published: it
stands in the spec for review. What names a column or a table that is dropped is left out, and listed.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

if TYPE_CHECKING:
    from privbench.schema.tables import Schema, Table

LONGEST_NAME = 1000
LONGEST_SQL = 1_000_000
MOST_STATEMENTS = 100_000
DROPPED = "it names a table or a column that is dropped"
FOREIGN_KEY = "foreign key"
COMMENT, FUNCTION = "comment", "function"
_SERVING = ("schema", "type", "domain", "sequence", FUNCTION)
"""Kinds of statements that name no table of ours, but that tables, columns and other statements use."""
NO_KEY = "the spec has no such key or index"

_NO_NUL = r"^[^\x00]*$"
_Name = Annotated[str, Field(max_length=LONGEST_NAME, pattern=_NO_NUL)]
_Sql = Annotated[str, Field(max_length=LONGEST_SQL, pattern=_NO_NUL)]
Place = tuple[str, str]


ELSEWHERE = "only the system of the source has it"
"""Why a target of another system does not get an object."""


class SourceDialect(StrEnum):
    """The systems whose DDL can be kept; the word is the one that sqlglot uses."""

    POSTGRES = "postgres"
    MYSQL = "mysql"


class Phase(StrEnum):
    """When a statement is run: before or after the rows are loaded.

    One that comes before the rows and names tables, such as a partition, is run when these are there; one that names
    none, such as a type, before any table is made.
    """

    BEFORE = "before"
    AFTER = "after"


class _Words(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Statement(_Words):
    """One object of the source's schema besides its tables and their columns.

    `kind` is a plain word or two: "schema", "extension", "type", "domain", "function", "sequence", "primary key",
    "unique", "foreign key", "check", "exclusion", "index", "unique index", "view", "materialized view", "statistics",
    "comment", "partition", "trigger" .. `name` is what people call it; of what belongs to a table, "table.name".
    `sql` is without semicolon. The object needs `tables` and `columns` of ours, and other statements by their `title`
    (a view on a view).

    `key` lists the columns of the primary, unique or foreign key or the plain index of `Schema` that this statement
    declares, in their order; `tables[0]` is then the table that has it, `tables[-1]` the one that it references.
    Empty, as for partial indexes, it declares nothing that `Schema` knows. A key or an index of the schema that no
    statement declares is made from the schema; a statement whose key is no longer in the schema, since the owner took
    it out of the spec, is left out.
    """

    kind: _Name
    name: _Name
    sql: _Sql
    phase: Phase
    tables: tuple[_Name, ...] = ()
    columns: tuple[tuple[_Name, _Name], ...] = ()
    needs: tuple[_Name, ...] = ()
    key: tuple[_Name, ...] = ()

    @model_validator(mode="after")
    def _key_of_a_table(self) -> "Statement":
        if self.key and not self.tables:
            raise ValueError("`key` needs `tables`: the first is the one that has it")
        return self

    @property
    def places(self) -> set[Place]:
        """The columns that it needs, those of its key among them."""
        return {*self.columns, *((self.tables[0], column) for column in self.key)}

    @property
    def title(self) -> str:
        """What `needs` calls it.

        >>> Statement(kind="view", name="rich", sql="CREATE VIEW rich AS SELECT 1", phase=Phase.AFTER).title
        'view rich'
        """
        return f"{self.kind} {self.name}"


class TableDefinition(_Words):
    """How the source itself would create a table.

    `name` is its name there, quoted and qualified. `columns` says what follows the quoted name of each column (type,
    collation, default, identity, generated, storage) without NULL or NOT NULL, which the schema knows; `nullable` are
    those that may be NULL there, also where the spec says that no value is. `before` are words between CREATE and
    TABLE, such as UNLOGGED; `after` is what follows the closing parenthesis, such as PARTITION BY or ENGINE=InnoDB. The
    database fills `generated` columns itself: rows are loaded without them. `sequences` names the sequence, quoted and
    qualified, that numbers a column: it is set past the largest value when the rows are there.
    """

    name: _Sql
    columns: dict[_Name, _Sql]
    nullable: tuple[_Name, ...] = ()
    before: _Sql = ""
    after: _Sql = ""
    generated: tuple[_Name, ...] = ()
    sequences: dict[_Name, _Sql] = Field(default_factory=dict)


class LeftOut(_Words):
    """An object of the source that the synthetic database goes without, and why."""

    kind: _Name
    name: _Name = ""
    reason: _Name

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.reason}" if self.name else f"{self.kind}: {self.reason}"


def left_out_lines(left_out: Iterable[LeftOut]) -> list[str]:
    """What is left out, a line each; what has no name is counted.

    >>> left_out_lines([LeftOut(kind="index", reason="dropped")] * 2)
    ['index: dropped (2 of them)']
    """
    lines = Counter(map(str, left_out))
    return [line if count == 1 else f"{line} ({count} of them)" for line, count in lines.items()]


class OriginalDdl(_Words):
    """The DDL of a whole source: its tables by our names of them, and everything else in an order that works.

    `left_out` is what is known to be missing already: of statements that the owner dropped, the published spec keeps
    only the kind.
    """

    dialect: SourceDialect
    tables: dict[_Name, TableDefinition] = Field(default_factory=dict)
    statements: Annotated[tuple[Statement, ...], Field(max_length=MOST_STATEMENTS)] = ()
    left_out: Annotated[tuple[LeftOut, ...], Field(max_length=MOST_STATEMENTS)] = ()

    def kept(self, schema: "Schema") -> tuple[tuple[Statement, ...], tuple[LeftOut, ...]]:
        """The statements whose tables, columns, keys and needs are all there; and the others, with a reason each."""
        return self._kept(schema, ())

    def _kept(
        self, schema: "Schema", unused: Collection[Statement]
    ) -> tuple[tuple[Statement, ...], tuple[LeftOut, ...]]:
        """The same, without statements that serve nothing that is there."""
        kept: list[Statement] = []
        left_out = list(self.left_out)
        titles: set[str] = set()
        known = _Known(schema)
        for statement in self.statements:
            reason = DROPPED if statement in unused else known.reason(statement)
            reason = reason or next((_needs(t) for t in statement.needs if t not in titles), None)
            if reason is None:
                kept.append(statement)
                titles.add(statement.title)
            else:
                left_out.append(LeftOut(kind=statement.kind, name=statement.name, reason=reason[:LONGEST_NAME]))
        return tuple(kept), tuple(left_out)

    def with_nullable(self, schema: "Schema") -> "OriginalDdl":
        """The same, knowing which columns may be NULL; `schema` is the source's own."""
        nullable = {t.name: tuple(c.name for c in t.columns if c.nullable) for t in schema.tables}
        tables = {n: d.model_copy(update={"nullable": nullable.get(n, ())}) for n, d in self.tables.items()}
        return self.model_copy(update={"tables": tables})

    def published(self, schema: "Schema", *, named: Collection[Place] = ()) -> "OriginalDdl":
        """What may be published beside a schema: nothing that names what was dropped.

        Columns `named` are dropped, but not secret: what needs one of them is listed by its name.
        """
        known = _Known(schema)
        places = {*known.places, *named}
        secret = [s for s in self.statements if not (set(s.tables) <= known.tables and s.places <= places)]
        dropped = _Dropped(self, schema, secret, named)
        kept, left_out = self._kept(schema, dropped.unused)
        names = {(s.kind, s.name) for s in (*secret, *dropped.unused)}
        needs = {_needs(s.title) for s in (*secret, *dropped.unused)}
        return OriginalDdl(
            dialect=self.dialect,
            tables=dropped.tables,
            statements=kept,
            left_out=tuple(
                LeftOut(kind=each.kind, reason=DROPPED)
                if (each.kind, each.name) in names or each.reason in needs or _mentions(each.name, dropped.names)
                else each
                for each in left_out
            ),
        )


class _Dropped:
    """What was dropped, and what served nothing else: its name, its labels or its body would tell of it.

    Of a type, a sequence, a function or a schema nothing says which columns it is for. So it goes if its name stands in
    what is dropped and nowhere in what is kept; and a function goes if it names what is dropped.
    """

    def __init__(
        self, original: OriginalDdl, schema: "Schema", secret: Collection[Statement], named: Collection[Place]
    ) -> None:
        places = {(name, column) for name, table in original.tables.items() for column in table.columns}
        places -= {*_Known(schema).places, *named}
        kept = {t.name: t for t in schema.tables}
        absent = [name for name in original.tables if name not in kept]
        self.names = {*absent, *(_last(name) for name in absent), *(c for t, c in places if t in kept)}
        self.unused: list[Statement] = [
            s for s in original.statements if s.kind == FUNCTION and _mentions(s.sql, self.names)
        ]
        gone = [_text(original.tables[name]) for name in absent]
        gone += [original.tables[t].columns[c] for t, c in places if t in kept]
        gone += [s.sql for s in secret]
        while True:
            left = [s for s in original.statements if s not in secret and s not in self.unused]
            words = [_last(s.name) for s in self.unused]
            self.tables = {n: _cut(original.tables[n], t, words) for n, t in kept.items() if n in original.tables}
            more = list(self._more(left, [*gone, *(s.sql for s in self.unused)], words))
            if not more:
                return
            self.unused += more

    def _more(self, left: list[Statement], gone: list[str], words: list[str]) -> Iterator[Statement]:
        """What goes next: what needs something that goes, or serves only that."""
        there = [_text(table) for table in self.tables.values()]
        for statement in left:
            if statement.kind == COMMENT and not (statement.tables or statement.columns):
                if _mentions(statement.name, words):
                    yield statement
            elif statement.kind in _SERVING:
                others = (s.sql for s in left if s is not statement and s.kind != COMMENT)
                name = [_last(statement.name)]
                was_used = any(_mentions(text, name) for text in gone)
                only_there = was_used and not any(_mentions(text, name) for text in (*there, *others))
                if only_there or _mentions(statement.sql, words):
                    yield statement


def _text(definition: TableDefinition) -> str:
    return " ".join((definition.name, *definition.columns.values(), definition.after, *definition.sequences.values()))


def _last(name: str) -> str:
    """What an object is called inside its schema, without the arguments of a function.

    >>> _last("app.grade(score integer, of app.mood)")
    'grade'
    """
    return name.partition("(")[0].rpartition(".")[2]


def _mentions(text: str, names: Iterable[str]) -> bool:
    return any(names_word(text, name) for name in names)


def names_word(text: str, name: str) -> bool:
    """Whether a name stands in a text as a word of its own.

    >>> names_word("RANGE (paid_on)", "paid_on"), names_word("RANGE (paid_on)", "paid")
    (True, False)
    """
    return name in text and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


class _Known:
    """The tables, columns and keys of a schema, to look statements up in."""

    def __init__(self, schema: "Schema") -> None:
        self.tables = {t.name for t in schema.tables}
        self.places = {(t.name, c.name) for t in schema.tables for c in t.columns}
        self._keys = {(t.name, frozenset(key)) for t in schema.tables for key in t.keys}
        self._keys |= {(t.name, frozenset(i.columns)) for t in schema.tables for i in t.indexes}
        self._foreign = {(t.name, frozenset(k.columns), k.table) for t, k in schema.foreign_keys()}

    def reason(self, statement: Statement) -> str | None:
        """Why a statement cannot be kept, but for its needs."""
        if not set(statement.tables) <= self.tables or not statement.places <= self.places:
            return DROPPED
        return None if self._has_key(statement) else NO_KEY

    def _has_key(self, statement: Statement) -> bool:
        if not statement.key:
            return True
        columns = frozenset(statement.key)
        if statement.kind == FOREIGN_KEY:
            return (statement.tables[0], columns, statement.tables[-1]) in self._foreign
        return (statement.tables[0], columns) in self._keys


def _needs(title: str) -> str:
    return f"it needs {title}, which is not there"


def _cut(definition: TableDefinition, table: "Table", gone: Collection[str] = ()) -> TableDefinition:
    """A definition without what the table has not: such columns, what is worked out from them or names `gone`."""
    names = {c.name for c in table.columns}
    dropped = [*(name for name in definition.columns if name not in names), *gone]
    kept = {n: sql for n, sql in definition.columns.items() if n in names and not _mentions(sql, dropped)}
    return definition.model_copy(
        update={
            "columns": kept,
            "nullable": tuple(name for name in definition.nullable if name in names),
            "after": "" if _mentions(definition.after, dropped) else definition.after,
            "generated": tuple(name for name in definition.generated if name in kept),
            "sequences": {n: s for n, s in definition.sequences.items() if n in names and not _mentions(s, gone)},
        }
    )
