"""The original DDL in a plain `pg_dump -s`: what the script says besides what our schema knows, statement by statement.

A dump has no catalogue, so what a statement needs is told by the names in it: every table of ours that it names, and
every name in it that is a column of one of these. That is careful: it may need more than it does, never less.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from privbench.io.script import NAME, cut, last_part
from privbench.schema.original import LeftOut, OriginalDdl, Phase, SourceDialect, Statement, TableDefinition, names_word
from privbench.schema.tables import Schema, Table

_HEADER = "PostgreSQL database dump"
_FLAGS = re.IGNORECASE | re.DOTALL
_BEFORE = re.compile(
    rf"CREATE (?:OR REPLACE )?(SCHEMA|EXTENSION|TYPE|DOMAIN|FUNCTION|SEQUENCE) (?:IF NOT EXISTS )?{NAME}(\([^)]*\))?",
    _FLAGS,
)
_TABLE = re.compile(rf"CREATE (?:(UNLOGGED) )?TABLE {NAME}\s*\(", _FLAGS)
_IDENTITY = re.compile(
    rf"ALTER TABLE {NAME} ALTER COLUMN {NAME} ADD (GENERATED .+? AS IDENTITY) \(\s*SEQUENCE NAME {NAME}", _FLAGS
)
_DEFAULT = re.compile(rf"ALTER TABLE (?:ONLY )?{NAME} ALTER COLUMN {NAME} SET (DEFAULT .+)", _FLAGS)
_NEXT = re.compile(r"nextval\('([^']+)'")
_ATTACH = re.compile(rf"ALTER TABLE (?:ONLY )?{NAME} ATTACH PARTITION {NAME} (.+)", _FLAGS)
_ADDED = re.compile(
    rf"ALTER TABLE (?:ONLY )?{NAME}\s+ADD CONSTRAINT {NAME} (PRIMARY KEY|UNIQUE|FOREIGN KEY|CHECK|EXCLUDE)(.*)", _FLAGS
)
_OPTION = re.compile(
    rf"ALTER TABLE (?:ONLY )?{NAME} (?:ALTER COLUMN {NAME} SET (STATISTICS|STORAGE)|CLUSTER ON {NAME})", _FLAGS
)
_INDEX = re.compile(rf"CREATE (UNIQUE )?INDEX {NAME} ON (?:ONLY )?{NAME} ", _FLAGS)
_AFTER = re.compile(rf"CREATE (?:OR REPLACE )?(VIEW|MATERIALIZED VIEW|STATISTICS) {NAME}", _FLAGS)
_OWNED = re.compile(rf"ALTER SEQUENCE {NAME} OWNED BY {NAME}", _FLAGS)
_COMMENT = re.compile(r"COMMENT ON (?!EXTENSION|SCHEMA public\b)(.+?) IS ", _FLAGS)
_LEFT_OUT = re.compile(
    rf"CREATE (?:OR REPLACE )?(?:CONSTRAINT )?(TRIGGER|POLICY|RULE) {NAME}.*? (?:ON|TO) {NAME}", _FLAGS
)
_PARTS = ("CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "EXCLUDE", "LIKE")
_NOT_UNIQUE = "made as an index that is not unique: rows are not made with it in mind"
_NOT_MADE = "is not made in a synthetic database"


def original_of_dump(text: str, schema: Schema) -> OriginalDdl | None:
    """Read the statements of a dump; None for any other script."""
    if _HEADER not in text:
        return None
    dump = _Dump(schema)
    for tokens, statement in cut(text, SourceDialect.POSTGRES.value):
        dump.take(tokens, statement, text)
    return OriginalDdl.of_source(
        dialect=SourceDialect.POSTGRES,
        tables={name: dump.definition(name) for name in dump.found},
        statements=tuple(dump.ordered()),
        left_out=tuple(dump.left_out),
    )


class _Found:
    """A CREATE TABLE, to which later statements add defaults and identities."""

    def __init__(self, name: str, before: str) -> None:
        self.name = name
        self.before = before
        self.after = ""
        self.columns: dict[str, str] = {}
        self.sequences: dict[str, str] = {}


class _Dump:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.found: dict[str, _Found] = {}
        self.left_out: list[LeftOut] = []
        self._statements: list[Statement] = []
        self._views: dict[str, str] = {}
        self._cut_again: dict[str, str] = {}
        self._attached: list[tuple[str, str, str]] = []

    def ordered(self) -> Iterator[Statement]:
        """Keys before foreign keys and all else, which is in the order of the script."""
        keys = [s for s in self._statements if s.kind in ("primary key", "unique")]
        yield from (s for s in self._statements if s.phase is Phase.BEFORE)
        yield from self._partitions()
        yield from keys
        yield from (s for s in self._statements if s.phase is Phase.AFTER and s not in keys)

    def definition(self, name: str) -> TableDefinition:
        found = self.found[name]
        generated = tuple(c for c, words in found.columns.items() if re.search(r"\bGENERATED ALWAYS AS \(", words))
        return TableDefinition(
            name=found.name,
            columns=found.columns,
            before=found.before,
            after=found.after,
            generated=generated,
            sequences=found.sequences,
        )

    def take(self, tokens: list[Token], statement: str, text: str) -> None:
        """Enter one statement, if it is of a kind that is kept."""
        if match := _TABLE.match(statement):
            self._create(match, tokens, text)
        elif match := _BEFORE.match(statement):
            self._before(match, statement)
        elif (match := _IDENTITY.match(statement)) and (found := self._found(match[1])):
            column = last_part(match[2])
            found.columns[column] += f" {match[3]}"
            found.sequences[column] = match[4]
        elif (match := _DEFAULT.match(statement)) and (found := self._found(match[1])):
            self._default(found, last_part(match[2]), match[3])
        elif match := _ATTACH.match(statement):
            self._attached.append((match[1], match[2], match[3]))
        elif match := _ADDED.match(statement):
            self._constraint(match, tokens, statement)
        elif match := _INDEX.match(statement):
            self._index(match, tokens, statement)
        else:
            self._other(tokens, statement)

    def _other(self, tokens: list[Token], statement: str) -> None:
        if match := _AFTER.match(statement):
            kind, name = match[1].lower(), _called(match[2])
            needs = [title for view, title in self._views.items() if view in _names(tokens)]
            self._after(kind, name, statement.removesuffix("WITH NO DATA").rstrip(), tokens, needs=needs)
            if kind != "statistics":
                self._views[last_part(match[2])] = f"{kind} {name}"
        elif (match := _OPTION.match(statement)) and (table := self._table(match[1])) is not None:
            kind = f"column {match[3].lower()}" if match[3] else "cluster"
            self._after(kind, f"{table.name}.{last_part(match[2] or match[4])}", statement, tokens)
        elif match := _OWNED.match(statement):
            self._after("sequence owner", _called(match[1]), statement, tokens)
        elif match := _COMMENT.match(statement):
            word, _, on = " ".join(match[1].split()).replace('"', "").partition(" ")
            self._after("comment", f"{word.lower()} {on.removeprefix('public.')}", statement, tokens)
        elif match := _LEFT_OUT.match(statement):
            self.left_out.append(
                LeftOut(kind=match[1].lower(), name=f"{_called(match[3])}.{last_part(match[2])}", reason=_NOT_MADE)
            )

    def _create(self, match: re.Match[str], tokens: list[Token], text: str) -> None:
        table = self._table(match[2])
        parts, end = _parts(tokens)
        after = " ".join(text[end.end + 1 : tokens[-1].end + 1].split())
        if table is None:  # a partition
            self._cut_again[match[2]] = after
            return
        found = _Found(match[2], (match[1] or "").upper())
        self.found[table.name] = found
        found.after = after
        for part in parts:
            words = text[part[0].start : part[-1].end + 1]
            if part[0].text.upper() in _PARTS and part[0].token_type is not TokenType.IDENTIFIER:
                self.take(part, f"ALTER TABLE ONLY {found.name} ADD {words}", text)
            else:
                found.columns[part[0].text] = ""
                self._default(found, part[0].text, _without_not_null(part[1:], text))

    def _before(self, match: re.Match[str], statement: str) -> None:
        if (match[1].upper(), match[2]) != ("SCHEMA", "public"):
            sql = re.sub("^CREATE SCHEMA (?!IF)", "CREATE SCHEMA IF NOT EXISTS ", statement)
            name = f"{_called(match[2])}{match[3] or ''}"
            self._statements.append(Statement(kind=match[1].lower(), name=name, sql=sql, phase=Phase.BEFORE))

    def _default(self, found: _Found, column: str, words: str) -> None:
        found.columns[column] = f"{found.columns[column]} {words}".strip()
        if sequence := _NEXT.search(words):
            found.sequences[column] = sequence[1]

    def _partitions(self) -> Iterator[Statement]:
        """Partitions, those that are cut again before their own."""
        roots: dict[str, tuple[str, tuple[str, ...]]] = {
            parent: (table.name, ()) for parent, _, _ in self._attached if (table := self._table(parent)) is not None
        }
        waiting = self._attached
        while ready := [one for one in waiting if one[0] in roots]:
            for parent, child, bound in ready:
                root, needs = roots[parent]
                cut = self._cut_again.get(child, "")
                keys = f"{cut} {self._cut_again.get(parent) or self.found[root].after}"
                made = Statement(
                    kind="partition",
                    name=_called(child),
                    sql=f"CREATE TABLE {child} PARTITION OF {parent} {bound} {cut}".rstrip(),
                    phase=Phase.BEFORE,
                    tables=(root,),
                    columns=tuple((root, c) for c in self.found[root].columns if names_word(keys, c)),
                    needs=needs,
                )
                roots[child] = (root, (made.title,))
                yield made
            waiting = [one for one in waiting if one not in ready]

    def _constraint(self, match: re.Match[str], tokens: list[Token], statement: str) -> None:
        table, kind = self._table(match[1]), match[3].lower()
        if table is None:
            return
        name = f"{table.name}.{last_part(match[2])}"
        columns = _listed(match[4])
        if kind == "exclude" or (kind == "unique" and columns not in table.keys):
            self.left_out.append(LeftOut(kind=kind.replace("exclude", "exclusion"), name=name, reason=_NOT_MADE))
            return
        target = re.search(rf"REFERENCES {NAME}\s*\(", match[4]) if kind == "foreign key" else None
        other = self._table(target[1]) if target else None
        tables = (table.name, other.name) if other is not None else (table.name,)
        self._after(kind, name, statement, tokens, key=() if kind == "check" else columns, tables=tables)

    def _index(self, match: re.Match[str], tokens: list[Token], statement: str) -> None:
        table, view = self._table(match[3]), self._views.get(last_part(match[3]))
        if table is None and view is None:  # of a partition, which gets it with its table
            return
        owner = table.name if table is not None else last_part(match[3])
        name, sql = f"{owner}.{last_part(match[2])}", statement.replace(" ON ONLY ", " ON ", 1)
        known = {i.name: i.columns for i in table.indexes} if table is not None else {}
        key = known.get(last_part(match[2]), ())
        kind = "unique index" if match[1] else "index"
        if match[1] and not key and table is not None:
            kind, sql = "index", sql.replace("UNIQUE ", "", 1).replace(" NULLS NOT DISTINCT", "", 1)
            self.left_out.append(LeftOut(kind="unique index", name=name, reason=_NOT_UNIQUE))
        tables = (table.name,) if table is not None else ()
        self._after(kind, name, sql, tokens, key=key, tables=tables, needs=[view] if view else [])

    def _after(
        self,
        kind: str,
        name: str,
        sql: str,
        tokens: list[Token],
        *,
        key: tuple[str, ...] = (),
        tables: tuple[str, ...] = (),
        needs: Iterable[str] = (),
    ) -> None:
        names = _names(tokens)
        named = [t for t in self._schema.tables if t.name in tables or (not tables and last_part(_quoted(t)) in names)]
        columns = tuple((t.name, c.name) for t in named for c in t.columns if c.name in names)
        self._statements.append(
            Statement(
                kind=kind,
                name=name,
                sql=sql,
                phase=Phase.AFTER,
                tables=tables or tuple(t.name for t in named),
                columns=columns,
                needs=tuple(needs),
                key=key,
            )
        )

    def _table(self, name: str) -> Table | None:
        """Our table of a name in the script."""
        plain, full = last_part(name), _called(name)
        return next((t for wanted in (full, plain) for t in self._schema.tables if t.name == wanted), None)

    def _found(self, name: str) -> _Found | None:
        table = self._table(name)
        return None if table is None else self.found.get(table.name)


def _quoted(table: Table) -> str:
    """A name of ours in the script's spelling; `app.orders` is the table orders of the schema app."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in table.name.split("."))


def _called(name: str) -> str:
    """What people call an object of the script: without the schema `public` and without quotes."""
    schema, dot, _ = name.partition(".")
    plain = last_part(name)
    return plain if not dot or schema == "public" else f"{schema}.{plain}"


def _names(tokens: Iterable[Token]) -> set[str]:
    return {token.text for token in tokens if token.token_type is not TokenType.STRING}


def _listed(text: str) -> tuple[str, ...]:
    """The names in the first brackets."""
    inner = re.search(r"\(([^)]*)\)", text)
    return tuple(last_part(part) for part in inner[1].split(",")) if inner else ()


def _parts(tokens: list[Token]) -> tuple[list[list[Token]], Token]:
    """What stands between the commas of a CREATE TABLE, and the bracket that closes it."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 0 and token.token_type is TokenType.R_PAREN:
            return [part for part in parts if part], token
        if depth == 1 and token.token_type is TokenType.COMMA:
            parts.append([])
        elif depth and not (depth == 1 and token.token_type is TokenType.L_PAREN and parts == [[]]):
            parts[-1].append(token)
    return [part for part in parts if part], tokens[-1]


def _without_not_null(tokens: list[Token], text: str) -> str:
    """What is said of a column, but for NOT NULL, with or without a name."""
    end = tokens[-1].end + 1
    for at, (first, second) in enumerate(pairwise(tokens)):
        if first.token_type is TokenType.NOT and second.token_type is TokenType.NULL:
            named = at >= 2 and tokens[at - 2].token_type is TokenType.CONSTRAINT
            start = tokens[at - 2].start if named else first.start
            return " ".join((text[tokens[0].start : start] + text[second.end + 1 : end]).split())
    return " ".join(text[tokens[0].start : end].split())
