"""A schema as PostgreSQL takes it: what to run before the rows are loaded, and what after.

Where the schema has the DDL of a PostgreSQL source (`schema.original`), that is used as it stands; what it does not say
is made from the schema. The sink runs the steps, a bundle has them as `pre-data.sql` and `post-data.sql`.

Names: with the source's own DDL, as it has them. Else a name is given as PostgreSQL has it from a statement without
quotes (`Customer` becomes `customer`), so that the owner's queries run as they are, unless it was quoted in the schema
of the source, cannot go without quotes, or would then be another's.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from privbench.errors import SchemaError
from privbench.io.names import quote_sql, quote_text
from privbench.io.render import Dialect, check_text, plan, type_text
from privbench.schema.ddl_grammar import read_name, read_statement
from privbench.schema.ddl_reader import Name
from privbench.schema.ddl_tokens import POSTGRES, check_statement
from privbench.schema.original import (
    ELSEWHERE,
    FOREIGN_KEY,
    LeftOut,
    OriginalDdl,
    Phase,
    SourceDialect,
    Statement,
    TableDefinition,
)
from privbench.schema.tables import Column, ForeignKey, Index, Schema, Table

PRIMARY_KEY, UNIQUE, INDEX, UNIQUE_INDEX, CHECK, TABLE = (
    "primary key",
    "unique",
    "index",
    "unique index",
    "check",
    "table",
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*", re.ASCII)
_LONGEST_NAME = 63
"""In bytes of UTF-8; what is longer is cut off by the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One statement. Without a `required` one there is no such database; others can be left out."""

    kind: str
    name: str
    sql: str
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What to run before and after the rows, and what of the source is in neither."""

    before: tuple[Step, ...]
    after: tuple[Step, ...]
    left_out: tuple[LeftOut, ...]


class DatabaseNames:
    """The names of tables and columns in the database, quoted."""

    def __init__(self, schema: Schema) -> None:
        self.own = _own(schema)
        tables = _distinct({t.name: t.quoted for t in schema.tables})
        columns = {t.name: _distinct({c.name: c.quoted for c in t.columns}) for t in schema.tables}
        self._tables = {name: quote_sql(spelled) for name, spelled in tables.items()}
        self._columns = {
            table: {n: quote_sql(n if table in self.own else s) for n, s in spelled.items()}
            for table, spelled in columns.items()
        }
        self._spelled = {name: (spelled, *columns[name].values()) for name, spelled in tables.items()}

    def table(self, name: str) -> str:
        """The name of a table, qualified if the source's own is."""
        return self.own[name].name if name in self.own else self._tables[name]

    def column(self, table: str, name: str) -> str:
        """The name of a column."""
        return self._columns[table][name]

    def columns(self, table: str, names: tuple[str, ...]) -> str:
        """The names of columns, with commas between."""
        return ", ".join(self.column(table, name) for name in names)

    def sequences(self, schema: Schema) -> dict[str, list[tuple[str, str]]]:
        """The columns that each sequence of the source numbers, with their tables."""
        places: dict[str, list[tuple[str, str]]] = {}
        made = _made_sequences(schema)
        for table in (t for t in schema.tables if t.name in self.own):
            own = self.own[table.name]
            numbered = {c: s for c, s in own.sequences.items() if _is_own(s, own.columns.get(c, ""), made)}
            for column in (c.name for c in table.columns if c.name in numbered):
                place = (self.table(table.name), self.column(table.name, column))
                places.setdefault(numbered[column], []).append(place)
        return places

    def check_lengths(self) -> None:
        """Refuse names that PostgreSQL would cut off."""
        for table, names in self._spelled.items():
            for name in names:
                if table not in self.own and len(name.encode()) > _LONGEST_NAME:
                    raise SchemaError(
                        f"{table}: the name {name} has more than {_LONGEST_NAME} bytes: PostgreSQL would cut it off. "
                        "Drop it, or write another format."
                    )


def _made_sequences(schema: Schema) -> set[Name | None]:
    statements = schema.original.statements if schema.original is not None else ()
    return {read_statement(POSTGRES, s.kind, s.sql).makes for s in statements if s.kind == "sequence"}


def _is_own(sequence: str, column: str, made: set[Name | None]) -> bool:
    """Whether a sequence is one that is made here; another's in the target must not be set."""
    return read_name(POSTGRES, sequence) in made or "AS IDENTITY" in column


def _own(schema: Schema) -> dict[str, TableDefinition]:
    """The tables that come with PostgreSQL's own DDL."""
    original = schema.original
    return original.tables if original is not None and original.dialect is SourceDialect.POSTGRES else {}


def _distinct(names: dict[str, bool]) -> dict[str, str]:
    """How names are spelled, given which were quoted; those that would become the same stay as they are."""
    folded = {n: n if quoted or not _PLAIN.fullmatch(n) else _fold(n) for n, quoted in names.items()}
    taken = Counter(folded.values())
    return {name: spelled if taken[spelled] == 1 else name for name, spelled in folded.items()}


def _fold(name: str) -> str:
    """A name as it is without quotes: A to Z in lower case, in any language."""
    return "".join(c.lower() if c.isascii() else c for c in name)


def write_script(schema: Schema) -> Script:
    """Write everything that makes the database of a schema."""
    return _Writer(schema).script()


class _Writer:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._names = DatabaseNames(schema)
        original = schema.original or OriginalDdl(dialect=SourceDialect.POSTGRES)
        self._kept, left_out = original.kept(schema)
        if original.dialect is not SourceDialect.POSTGRES:
            missing = [s for s in self._kept if not s.key]
            self._kept = ()
            left_out = (*left_out, *(LeftOut(kind=s.kind, name=s.name, reason=ELSEWHERE) for s in missing))
        self._left_out = left_out

    def script(self) -> Script:
        before = [s for s in self._kept if s.phase is Phase.BEFORE]
        after = [s for s in self._kept if s.phase is Phase.AFTER]
        script = Script(
            before=(
                *(_step(s) for s in before if not s.tables),
                *(self._create(table) for table in plan(self._schema)[0]),
                *(_step(s) for s in before if s.tables),
            ),
            after=(*self._keys(), *map(_step, after), *self._indexes(), *self._foreign_keys()),
            left_out=self._left_out,
        )
        for step in (*script.before, *script.after):
            check_statement(step.sql, POSTGRES, what=f"{step.kind} {step.name}")
        return script

    def _create(self, table: Table) -> Step:
        own = self._names.own.get(table.name)
        lines = ",\n  ".join(self._column(table, column, own) for column in table.columns)
        head = f"CREATE {own.before} TABLE" if own and own.before else "CREATE TABLE"
        tail = f" {own.after}" if own and own.after else ""
        sql = f"{head} {self._names.table(table.name)} (\n  {lines}\n){tail}"
        return Step(kind=TABLE, name=table.name, sql=sql, required=True)

    def _column(self, table: Table, column: Column, own: TableDefinition | None) -> str:
        declared = own.columns.get(column.name) if own else None
        text = f"{self._names.column(table.name, column.name)} {declared or type_text(column.type, Dialect.ANSI)}"
        free = own is not None and column.name in (*own.generated, *own.nullable)
        return text if column.nullable or free else f"{text} NOT NULL"

    def _keys(self) -> Iterator[Step]:
        """Primary and unique keys that no statement of the source declares, and CHECKs of tables without any."""
        for table in self._schema.tables:
            if table.primary_key and not self._declared(table.name, table.primary_key, PRIMARY_KEY):
                yield self._added(table.name, PRIMARY_KEY, f"PRIMARY KEY ({self._list(table, table.primary_key)})")
            for unique in table.uniques:
                if not self._declared(table.name, unique, UNIQUE, UNIQUE_INDEX):
                    yield self._added(table.name, UNIQUE, f"UNIQUE ({self._list(table, unique)})")
            if table.name not in self._names.own:
                yield from self._checks(table)

    def _checks(self, table: Table) -> Iterator[Step]:
        spelled = {c.name: self._names.column(table.name, c.name) for c in table.columns}
        bare = {name: text[1:-1].replace(text[0] * 2, text[0]) for name, text in spelled.items()}
        for check in table.own_checks:
            text = check_text(check, table, Dialect.ANSI, lambda name: bare.get(name.column, name.column))
            if text is not None:
                yield self._added(table.name, CHECK, f"CHECK ({text})", required=False)

    def _indexes(self) -> Iterator[Step]:
        taken = {_fold(t.name) for t in self._schema.tables}
        taken |= {_fold(s.name.rpartition(".")[2]) for s in self._kept}
        for table in self._schema.tables:
            for index in table.indexes:
                if not self._declared(table.name, index.columns, INDEX, UNIQUE_INDEX):
                    yield self._index(table, index, taken)

    def _index(self, table: Table, index: Index, taken: set[str]) -> Step:
        name = _fold(index.name) if _PLAIN.fullmatch(index.name) else index.name
        while name in taken or len(name.encode()) > _LONGEST_NAME:
            name = f"{name.encode()[: _LONGEST_NAME - 8].decode(errors='ignore')}_{len(taken)}"
        taken.add(name)
        unique = "UNIQUE " if index.unique else ""
        columns = self._list(table, index.columns)
        sql = f"CREATE {unique}INDEX {quote_sql(name)} ON {self._names.table(table.name)} ({columns})"
        kind = UNIQUE_INDEX if index.unique else INDEX
        return Step(kind=kind, name=f"{table.name}.{index.name}", sql=sql, required=index.unique)

    def _foreign_keys(self) -> Iterator[Step]:
        for table, key in self._schema.foreign_keys():
            if not self._declared(table.name, key.columns, FOREIGN_KEY, target=key.table):
                yield self._added(table.name, FOREIGN_KEY, self._reference(table, key))

    def _reference(self, table: Table, key: ForeignKey) -> str:
        target = f"{self._names.table(key.table)} ({self._names.columns(key.table, key.references)})"
        return f"FOREIGN KEY ({self._list(table, key.columns)}) REFERENCES {target}"

    def _added(self, table: str, kind: str, text: str, *, required: bool = True) -> Step:
        sql = f"ALTER TABLE {self._names.table(table)} ADD {text}"
        return Step(kind=kind, name=f"{table} {text[text.index('(') :]}", sql=sql, required=required)

    def _declared(self, table: str, columns: tuple[str, ...], *kinds: str, target: str | None = None) -> bool:
        """Whether a statement of the source declares a key or an index."""
        wanted = (table, frozenset(columns))
        return any(
            (s.tables[0], frozenset(s.key)) == wanted and s.kind in kinds and (target is None or s.tables[-1] == target)
            for s in self._by_table.get(table, ())
        )

    @cached_property
    def _by_table(self) -> dict[str, list[Statement]]:
        found: dict[str, list[Statement]] = {}
        for statement in self._kept:
            if statement.key:
                found.setdefault(statement.tables[0], []).append(statement)
        return found

    def _list(self, table: Table, columns: tuple[str, ...]) -> str:
        return self._names.columns(table.name, columns)


def _step(statement: Statement) -> Step:
    """The step of a statement of the source. Keys hold for the rows that were made; whether others do, they show."""
    required = bool(statement.key) and statement.kind != INDEX
    return Step(kind=statement.kind, name=statement.name, sql=statement.sql, required=required)


def past_largest(places: list[tuple[str, str]], sequence: str) -> str:
    """Set a sequence to the largest number in the columns, each with its table, so that the next one is free."""
    numbers = " UNION ALL ".join(f"SELECT max({column}) AS n FROM {table}" for table, column in places)
    [(table, column), *_] = places
    bare = quote_text(column[1:-1].replace('""', '"'))
    of_column = f"pg_get_serial_sequence({quote_text(table)}, {bare})::regclass"
    found = f"COALESCE({of_column}, to_regclass({quote_text(sequence)}))"
    largest = f"SELECT max(n) AS largest FROM ({numbers}) AS numbers"
    return f"SELECT setval({found}, largest)::text FROM ({largest}) AS past WHERE largest > 0"


def script_text(steps: tuple[Step, ...]) -> str:
    """Steps as a file that clients run. Whatever the server is set to, strings end where they end here."""
    return "SET standard_conforming_strings = on;\n" + "".join(f"{step.sql};\n" for step in steps)
