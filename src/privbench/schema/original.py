"""The source's own DDL, kept word by word, so that a sink of the same system makes the same objects again.

A `Schema` knows what generation needs: columns, keys, plain indexes, rules. A database has more: partial and
expression indexes, ON DELETE, defaults, identity, partitions, views, comments, statistics objects, storage options. A
source that has a catalogue writes them down here as text. Nothing here is private, and all of it is published: it
stands in the spec for review. What names a column or a table that is dropped is left out, and listed.

The text goes to servers and into scripts, and a model may come from anyone. So each text is read when it is loaded
(`ddl_grammar`), and is refused unless it is exactly one statement of the kind that it claims; what is code (functions,
extensions, what calls functions that are in no closed list) is held back (`without_code`) until someone asks for it.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from privbench.schema.ddl_grammar import read_column, read_name, read_statement, read_table_words
from privbench.schema.ddl_reader import Name, Reading
from privbench.schema.ddl_tokens import DdlError

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
COLUMN, TABLE_OPTIONS = "column definition", "table options"
UNREADABLE = "is not one statement of its kind"
CODE = "it is code of the source, which only `--original-code` runs"

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


class OriginalUse(StrEnum):
    """What of the source's own DDL a database is made with: what is not code, nothing, or all of it."""

    CHECKED = "checked"
    NONE = "none"
    CODE = "code"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnDdl:
    """How many statements of the source's own DDL run, by kind; which among them are code; what is held back.

    What is held back is code, which runs only if whoever generates asks for it.
    """

    runs: Mapping[str, int] = field(default_factory=dict)
    code: Mapping[str, int] = field(default_factory=dict)
    held: Mapping[str, int] = field(default_factory=dict)

    def line(self) -> str:
        """A sentence of it.

        >>> OwnDdl(runs={"view": 2}, held={"function": 1}).line()
        "2 statements of the source's own DDL run (view 2); code of it is left out (function 1)"
        """
        words = [f"{sum(self.runs.values())} statements of the source's own DDL run{_counts(self.runs)}"]
        words += [f"CODE of the source is among what runs{_counts(self.code)}"] if self.code else []
        words += [f"code of it is left out{_counts(self.held)}"] if self.held else []
        return "; ".join(words)


def _counts(kinds: Mapping[str, int]) -> str:
    return f" ({', '.join(f'{kind} {count}' for kind, count in kinds.items())})" if kinds else ""


class OriginalDdl(_Words):
    """The DDL of a whole source: its tables by our names of them, and everything else in an order that works.

    `left_out` is what is known to be missing already: of statements that the owner dropped, the published spec keeps
    only the kind.
    """

    dialect: SourceDialect
    tables: dict[_Name, TableDefinition] = Field(default_factory=dict)
    statements: Annotated[tuple[Statement, ...], Field(max_length=MOST_STATEMENTS)] = ()
    left_out: Annotated[tuple[LeftOut, ...], Field(max_length=MOST_STATEMENTS)] = ()

    @model_validator(mode="after")
    def _is_what_it_claims(self) -> "OriginalDdl":
        for refused in _Read(self).refused.values():
            raise ValueError(f"{refused}. Take it out; of a model, ask who made it")
        return self

    @classmethod
    def of_source(
        cls,
        *,
        dialect: SourceDialect,
        tables: Mapping[str, TableDefinition],
        statements: Iterable[Statement],
        left_out: Iterable[LeftOut],
    ) -> "OriginalDdl":
        """What a source writes, without texts that nobody could load: they are listed as left out."""
        read = _Read(
            cls.model_construct(
                dialect=dialect, tables=dict(tables), statements=tuple(statements), left_out=tuple(left_out)
            )
        )
        return cls(dialect=dialect, **read.without(read.refused))

    def without_code(self) -> "OriginalDdl":
        """What may be run of a text that anyone may have written; what is code is listed as left out."""
        read = _Read(self)
        code = read.code()
        return self.model_copy(update=read.without(code)) if code else self

    def runs(self, schema: "Schema") -> "OwnDdl":
        """What of it a database of a schema is made with."""
        kept = self.kept(schema)[0]
        held = Counter(each.kind for each in self.left_out if each.reason == CODE)
        code = Counter(each.kind for each in _Read(self).code().values())
        return OwnDdl(runs=dict(Counter(s.kind for s in kept)), code=dict(code), held=dict(held))

    def literals(self) -> list[tuple[str, str, int]]:
        """Every definition that holds a literal: its kind, its name, and how many it holds."""
        read = _Read(self)
        return [(*read.title(key), reading.literals) for key, reading in read.readings.items() if reading.literals > 0]

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
        listed = tuple(
            LeftOut(kind=each.kind, reason=DROPPED)
            if (each.kind, each.name) in names or each.reason in needs or _mentions(each.name, dropped.names)
            else each
            for each in left_out
        )
        read = _Read(self.model_copy(update={"tables": dropped.tables, "statements": kept, "left_out": listed}))
        gone = {key: LeftOut(kind=each.kind, reason=DROPPED) for key, each in read.refused.items()}
        return OriginalDdl(dialect=self.dialect, **read.without(gone))


_Key = tuple[int | str, ...]
"""A definition: the number of a statement, the name of a table, or that of a table and of a column."""
_RELATIONS = ("view", "materialized view", "partition")
_TYPES = ("type", "domain")


class _Read:
    """The texts of a DDL, read: which cannot be, which are code, and which hold literals."""

    def __init__(self, original: OriginalDdl) -> None:
        self._original = original
        self._dialect = original.dialect.value
        self._relations: set[Name] = set()
        self._types: set[Name] = set()
        self._made: set[Name] = set()
        self._titles: dict[_Key, tuple[str, str]] = {}
        self.readings: dict[_Key, Reading] = {}
        self.refused: dict[_Key, LeftOut] = {}
        for name, table in original.tables.items():
            self._take_name((name,), table.name)
        for number, each in enumerate(original.statements):
            self._titles[number,] = each.kind, each.name
            self._take((number,), partial(read_statement, self._dialect, each.kind, each.sql))
        for name, table in original.tables.items():
            self._take((name,), partial(read_table_words, self._dialect, table.before, table.after))
            for column, sql in table.columns.items():
                self._take((name, column), partial(read_column, self._dialect, sql))
            for column, sequence in table.sequences.items():
                self._take((name, column), partial(read_name, self._dialect, sequence))

    def title(self, key: _Key) -> tuple[str, str]:
        """The kind and the name of a definition."""
        name = ".".join(map(str, key))
        return self._titles[key] if key in self._titles else (COLUMN if len(key) > 1 else TABLE_OPTIONS, name)

    def code(self) -> dict[_Key, LeftOut]:
        """What may not run by itself."""
        held = [key for key, reading in self.readings.items() if self._is_code(reading)]
        return {key: self._left_out(key, CODE) for key in held}

    def without(self, gone: Mapping[_Key, LeftOut]) -> dict[str, Any]:
        """The parts of the DDL without these definitions, which are listed."""
        original = self._original
        return {
            "tables": {name: _without_texts(name, table, gone) for name, table in original.tables.items()},
            "statements": tuple(s for number, s in enumerate(original.statements) if (number,) not in gone),
            "left_out": (*original.left_out, *gone.values()),
        }

    def _take_name(self, key: _Key, sql: str) -> None:
        ours = str(key[0])
        try:
            name = read_name(self._dialect, sql)
        except DdlError as error:
            raise ValueError(f"table {ours[:200]}: its name {error}") from None
        if not ".".join(name).casefold().endswith(ours.casefold().removeprefix("public.")):
            raise ValueError(f"table {ours[:200]}: its name in the source is {'.'.join(name)[:200]}, another one")
        self._relations |= self._names(name)

    def _take(self, key: _Key, read: Callable[[], Reading | Name]) -> None:
        try:
            reading = read()
        except DdlError as error:
            self.refused[key] = self._left_out(key, f"{UNREADABLE}: {error}")
            return
        if not isinstance(reading, Reading):
            return
        others = [each for each in reading.about if self._plain(each) not in self._relations]
        others += [reading.alters] if reading.alters is not None and reading.alters not in self._made else []
        for other in others[:1]:
            reason = f"it is about {'.'.join(other)}, which is none of its own objects"
            self.refused[key] = self._left_out(key, reason)
            return
        kind = self._titles[key][0] if key in self._titles else ""
        if reading.makes is not None:
            self._made |= self._names(reading.makes)
            self._relations |= self._names(reading.makes) if kind in _RELATIONS else set()
            self._types |= self._names(reading.makes) if kind in _TYPES and not self._is_code(reading) else set()
        self.readings[key] = reading

    def _left_out(self, key: _Key, reason: str) -> LeftOut:
        kind, name = self.title(key)
        return LeftOut(kind=kind, name=name[:LONGEST_NAME], reason=reason[:LONGEST_NAME])

    def _is_code(self, reading: Reading) -> bool:
        """A type that is not there is that of an extension, or of a statement that is code."""
        reads = {self._plain(name) for name in reading.reads}
        return bool(reading.beyond or reading.types - self._types or reads - self._relations)

    def _names(self, name: Name) -> set[Name]:
        """A name with its schema and without: a source leaves out a schema that is on its search path."""
        return {self._plain(name), self._plain(name[-1:])}

    def _plain(self, name: Name) -> Name:
        return tuple(part.casefold() for part in name) if self._original.dialect is SourceDialect.MYSQL else name


def _without_texts(name: str, table: TableDefinition, gone: Collection[_Key]) -> TableDefinition:
    """A table without the texts of some of its columns, and without its options if those go."""
    columns = {column: sql for column, sql in table.columns.items() if (name, column) not in gone}
    update: dict[str, object] = {
        "columns": columns,
        "generated": tuple(column for column in table.generated if column in columns),
        "sequences": {column: sequence for column, sequence in table.sequences.items() if column in columns},
    }
    if (name,) in gone:
        update |= {"before": "", "after": ""}
    return table.model_copy(update=update)


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
