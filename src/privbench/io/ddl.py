"""`schema.sql`: CREATE TABLE, ALTER TABLE, CREATE INDEX and CREATE TYPE .. AS ENUM of any common dialect.

The script is cut into statements, those that declare something are parsed with sqlglot, the rest (INSERT, SET,
COMMENT ..) is passed over. The dialect is the first of `_dialects` that all of them parse in. Types as sqlglot parses
them are turned into ours at the end of this file; the DuckDB catalogue is read with the same functions.
"""

import logging
import re
from collections.abc import Iterable
from dataclasses import replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from privbench.errors import SchemaError, first_line
from privbench.io.catalogue import RawTable, build_schema
from privbench.io.clustered import with_clustered
from privbench.io.names import Names, find_name
from privbench.schema.domain import MAX_CELLS, Domain, Values, implied_by_type
from privbench.schema.tables import Column, ForeignKey, Index, Schema
from privbench.schema.types import MAX_TYPE_TEXT, Kind, any_type

_CREATES = re.compile(
    r"CREATE\s+(OR\s+REPLACE\s+)?((GLOBAL|LOCAL|TEMP|TEMPORARY|UNLOGGED)\s+)*TABLE\b",
    re.IGNORECASE,
)
_DECLARES = re.compile(
    rf"({_CREATES.pattern}|CREATE\s+(UNIQUE\s+)?INDEX\b"
    r"|CREATE\s+TYPE\b.*\bENUM\b|ALTER\s+TABLE\b.*\b(ADD|MODIFY|SET\s+NOT\s+NULL)\b)",
    re.IGNORECASE | re.DOTALL,
)
_logger = logging.getLogger("sqlglot")
_MYSQL_WORDS = {"ENGINE", "AUTO_INCREMENT", "UNSIGNED"}
_OURS = {
    "UMEDIUMINT": "UINTEGER",
    "INT128": "HUGEINT",
    "YEAR": "SMALLINT",
    "FLOAT": "REAL",  # FLOAT with 32 bits; PostgreSQL's own FLOAT arrives as DOUBLE
    "UFLOAT": "REAL",
    "UDOUBLE": "DOUBLE",
    "UDECIMAL": "DECIMAL",
    "NAME": "VARCHAR",
    "UUID": "CHAR(36)",
    "ENUM": "VARCHAR",
    "TIMESTAMPLTZ": "TIMESTAMPTZ",
}
_CHANGED = {*_OURS, "UBIGINT", "MEDIUMINT", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"} - {"FLOAT"}
"""Types that become one of ours which is not the same: wider, narrower, or without the list of values."""
_WITH_SIZE = ("DECIMAL", "VARCHAR", "NVARCHAR", "CHAR", "NCHAR", "BPCHAR", "TEXT")


def parse_ddl(text: str, *, where: str) -> Schema:
    """Read a script; `where` names it in messages.

    >>> parse_ddl("CREATE TABLE t (id INT PRIMARY KEY)", where="schema.sql").tables[0].primary_key
    ('id',)
    """
    dialect, trees = _parse(text, where)
    script = _Script(where=where, mysql=dialect == "mysql")
    for tree in trees:
        script.take(tree)
    if not script.tables:
        raise SchemaError(f"{where}: has no CREATE TABLE statement.")
    return with_clustered(build_schema(script.tables), text)


def parse_checks(create_table: str, *, dialect: str) -> list[exp.Expr]:
    """Read the CHECK expressions of one CREATE TABLE; none if sqlglot cannot read it."""
    try:
        trees = [_parse_one(s, dialect) for s in _statements(create_table, dialect)]
    except SqlglotError:
        return []
    return [c.this for tree in trees for c in tree.find_all(exp.CheckColumnConstraint)]


def parse_generated(raw: RawTable, create_table: str, *, dialect: str) -> None:
    """Enter the GENERATED columns of one CREATE TABLE; none if sqlglot cannot read it."""
    try:
        trees = [_parse_one(s, dialect) for s in _statements(create_table, dialect)]
    except SqlglotError:
        return
    for node in (node for tree in trees for node in tree.find_all(exp.ColumnDef)):
        for kind in (c.kind for c in node.constraints):
            if isinstance(kind, exp.ComputedColumnConstraint | exp.GeneratedAsIdentityColumnConstraint):
                _add_generated(raw, node.name, kind)


def _add_generated(raw: RawTable, column: str, kind: exp.Expr) -> None:
    """Enter a GENERATED column; sqlglot has two names for one, and the second also for an identity."""
    tree = kind.this if isinstance(kind, exp.ComputedColumnConstraint) else kind.args.get("expression")
    if isinstance(tree, exp.Expr):
        raw.generated[column] = tree


def parse_index(create_index: str, *, dialect: str) -> Index | None:
    """Read one CREATE INDEX statement; None for an index on expressions or on part of the rows."""
    return _index(_parse_one(create_index, dialect))


def _parse(text: str, where: str) -> tuple[str, list[exp.Expr]]:
    """Parse all declaring statements in the first dialect that takes them all."""
    furthest, problem = -1, ""
    for dialect in _dialects(text):
        trees: list[exp.Expr] = []
        try:
            for statement in _statements(text, dialect):
                trees.append(_parse_one(statement, dialect))  # noqa: PERF401 (how far it got is needed below)
        except SqlglotError as error:
            if len(trees) > furthest:
                furthest, problem = len(trees), _explain(error)
        else:
            return dialect, trees
    raise SchemaError(f"{where}: {problem}")


def _dialects(text: str) -> tuple[str, ...]:
    """Order the dialects to try; words that only MySQL has, outside quotes, put it first."""
    try:
        tokens = sqlglot.tokenize(text, dialect="postgres")
    except SqlglotError:
        return ("mysql", "sqlite", "postgres", "duckdb")
    words = {t.text.upper() for t in tokens if t.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)}
    return ("mysql", "sqlite", "postgres") if words & _MYSQL_WORDS else ("postgres", "duckdb", "mysql", "sqlite")


def _explain(error: SqlglotError) -> str:
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        near = f"{first['start_context']}{first['highlight']}{first['end_context']}"[-80:]
        return f"{first['description']} near: {' '.join(near.split())}"
    return first_line(error)


def _parse_one(statement: str, dialect: str) -> exp.Expr:
    _logger.disabled = True  # sqlglot logs what it cannot read; we raise instead
    try:
        tree = sqlglot.parse_one(statement, dialect=dialect)
    finally:
        _logger.disabled = False
    if isinstance(tree, exp.Command):
        raise SqlglotError(f"cannot read: {' '.join(statement.split())[:80]}")
    return tree


def _statements(text: str, dialect: str) -> list[str]:
    """Cut at semicolons outside quotes and comments, and keep what declares something."""
    parts: list[list[Token]] = [[]]
    for token in sqlglot.tokenize(text, dialect=dialect):
        if token.token_type is TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    statements = [(p, text[p[0].start : p[-1].end + 1]) for p in parts if p]
    return [_tidy(text, p, statement) for p, statement in statements if _DECLARES.match(statement)]


def _tidy(text: str, tokens: list[Token], statement: str) -> str:
    """Leave out what sqlglot stumbles over: how a table is stored, and that a CHECK may go without a name."""
    if not _CREATES.match(statement):
        return re.sub(r"\bADD\s+CHECK\b", "ADD CONSTRAINT c CHECK", statement, flags=re.IGNORECASE)
    depth = 0
    for token in tokens:
        if depth == 0 and token.token_type is TokenType.ALIAS:  # CREATE TABLE .. AS SELECT
            return statement
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 0 and token.token_type is TokenType.R_PAREN:
            return text[tokens[0].start : token.end + 1]
    return statement


class _Script:
    """The tables and enumerated types that the statements declare, in turn."""

    def __init__(self, *, where: str, mysql: bool) -> None:
        self.where = where
        self.mysql = mysql
        self.tables: list[RawTable] = []
        self._names = Names()
        self._by_name: dict[str, RawTable] = {}
        self.enums: dict[str, exp.DataType] = {}

    def take(self, tree: exp.Expr) -> None:
        """Enter one statement."""
        if isinstance(tree, exp.Alter):
            self._alter(self._find(tree.this.name), tree.args["actions"])
        elif tree.args.get("kind") == "TYPE":
            self.enums[tree.this.name.lower()] = tree.expression
        elif tree.args.get("kind") == "INDEX":
            index = _index(tree)
            if index is not None:
                self._find(tree.this.args["table"].name).indexes.append(index)
        else:
            self._create(tree)

    def _create(self, tree: exp.Expr) -> None:
        if not isinstance(tree.this, exp.Schema):
            raise SchemaError(f"{self.where}: CREATE TABLE {tree.this.name} lists no columns. Write them out.")
        raw = RawTable(name=tree.this.this.name)
        self.tables.append(raw)
        self._names.add(raw.name)
        self._by_name[raw.name] = raw
        for part in tree.this.expressions:
            self._part(raw, part)

    def _alter(self, raw: RawTable, actions: Iterable[exp.Expr]) -> None:
        for action in actions:
            if isinstance(action, exp.AddConstraint):
                for part in action.expressions:
                    self._part(raw, part)
            elif isinstance(action, exp.ColumnDef):
                self._column(raw, action)
            elif isinstance(action, exp.AlterColumn) and action.args.get("allow_null") is False:
                _not_null(raw, action.name)
            elif isinstance(action, exp.ModifyColumn) and not _nullable(action.this):
                _not_null(raw, action.this.name)

    def _part(self, raw: RawTable, part: exp.Expr) -> None:
        """Enter a column or a table constraint."""
        match part:
            case exp.ColumnDef():
                self._column(raw, part)
            case exp.Identifier():
                raise SchemaError(f"{raw.name}.{part.name}: has no type in {self.where}. Give it one.")
            case exp.Constraint():
                for inner in part.expressions:
                    self._part(raw, inner)
            case exp.PrimaryKey():
                raw.primary_key = _names(part.expressions)
            case exp.UniqueColumnConstraint():
                raw.uniques.append(_names(part.this.expressions))
            case exp.ForeignKey():
                raw.foreign_keys.append(_foreign_key(_names(part.expressions), part.args["reference"]))
            case exp.CheckColumnConstraint():
                raw.checks.append(part.this)
            case exp.IndexColumnConstraint() if not part.args.get("kind"):
                columns = _names(part.expressions)
                raw.indexes.append(Index(name=part.name or f"{raw.name}_{'_'.join(columns)}", columns=columns))

    def _column(self, raw: RawTable, node: exp.ColumnDef) -> None:
        where = f"{raw.name}.{node.name}"
        if node.kind is None:
            raise SchemaError(f"{where}: has no type in {self.where}. Give it one.")
        kinds = [c.kind for c in node.constraints]
        raw.columns.append(replace(self._type(node.kind), name=node.name, nullable=_nullable(node)))
        for kind in kinds:
            match kind:
                case exp.PrimaryKeyColumnConstraint():
                    raw.primary_key = (node.name,)
                case exp.UniqueColumnConstraint():
                    raw.uniques.append((node.name,))
                case exp.Reference():
                    raw.foreign_keys.append(_foreign_key((node.name,), kind))
                case exp.CheckColumnConstraint():
                    raw.checks.append(kind.this)
                case exp.ComputedColumnConstraint() | exp.GeneratedAsIdentityColumnConstraint():
                    _add_generated(raw, node.name, kind)

    def _type(self, kind: exp.DataType) -> Column:
        if kind.this is exp.DataType.Type.USERDEFINED:
            name = str(kind.args.get("kind")).split(".")[-1].strip('"').lower()
            kind = self.enums.get(name, kind)
            if kind.this is exp.DataType.Type.USERDEFINED:
                changed = name.upper() if name.upper() in _CHANGED else None
                return Column(name="", type=any_type(name), source_type=changed)  # `serial` outside PostgreSQL
        return typed(kind, shown=kind.sql(), mysql=self.mysql)

    def _find(self, name: str) -> RawTable:
        spelled = self._names.find(name)
        if spelled is None:
            raise SchemaError(f"{self.where}: table {name} is altered or indexed, but no CREATE TABLE comes before.")
        return self._by_name[spelled]


def _names(nodes: Iterable[exp.Expr]) -> tuple[str, ...]:
    return tuple(n.name or n.this.name for n in nodes)


def _foreign_key(columns: tuple[str, ...], reference: exp.Expr) -> ForeignKey:
    target = reference.this
    if isinstance(target, exp.Schema):
        return ForeignKey(columns=columns, table=target.this.name, references=_names(target.expressions))
    return ForeignKey(columns=columns, table=target.name, references=())


def _index(tree: exp.Expr) -> Index | None:
    params = tree.this.args["params"]
    nodes = [_unordered(c) for c in params.args.get("columns") or ()]
    if params.args.get("where") is not None or not all(isinstance(n, (exp.Column, exp.Identifier)) for n in nodes):
        return None
    columns = tuple(n.name for n in nodes)
    name = tree.this.name or f"{tree.this.args['table'].name}_{'_'.join(columns)}"
    return Index(name=name, columns=columns, unique=bool(tree.args.get("unique")))


def _unordered(node: exp.Expr) -> exp.Expr:
    while isinstance(node, (exp.Ordered, exp.Paren)):
        node = node.this
    return node


def _nullable(node: exp.ColumnDef) -> bool:
    kinds = [c.kind for c in node.constraints]
    return not any(isinstance(k, exp.NotNullColumnConstraint) and not k.args.get("allow_null") for k in kinds)


def _not_null(raw: RawTable, name: str) -> None:
    spelled = find_name(name, (c.name for c in raw.columns))
    raw.columns = [replace(c, nullable=False) if c.name == spelled else c for c in raw.columns]


def typed(kind: exp.DataType, *, shown: str, mysql: bool = False) -> Column:
    """Turn a parsed type into a column without a name: our type, and the domain that the type implies.

    A type without a codec is OTHER, named `shown`; one that becomes another is kept as `source_type`.
    """
    ours = any_type(_spelled(kind, mysql=mysql), shown=shown)
    domain = _enum_domain(kind) if kind.this is exp.DataType.Type.ENUM else implied_by_type(ours.kind)
    changed = ours.kind is not Kind.OTHER and (_name(kind) in _CHANGED or _lacks_digits(kind))
    return Column(name="", type=ours, implied=domain, source_type=shown[:MAX_TYPE_TEXT] if changed else None)


def named_type(text: str, *, dialect: str) -> Column:
    """Read the type of a catalogue entry, as a column without a name."""
    return typed(exp.DataType.build(text, dialect=dialect, udt=True), shown=text)


def _name(kind: exp.DataType) -> str:
    return kind.this.name if isinstance(kind.this, exp.DataType.Type) else str(kind.this)


def _lacks_digits(kind: exp.DataType) -> bool:
    """Whether a DECIMAL does not say how many digits it has, so that ours has fewer."""
    return _name(kind) == "DECIMAL" and not kind.expressions


def _spelled(kind: exp.DataType, *, mysql: bool) -> str:
    name = _name(kind)
    if mysql and name == "TIMESTAMPTZ":  # MySQL shows its TIMESTAMP without a zone
        name = "TIMESTAMP"
    name = _OURS.get(name, name)
    sizes = [e.name for e in kind.expressions if isinstance(e, exp.DataTypeParam)] if name in _WITH_SIZE else []
    return f"{name}({','.join(sizes)})" if sizes and all(map(str.isdigit, sizes)) else name


def _enum_domain(kind: exp.DataType) -> Domain | None:
    labels = tuple(e.name for e in kind.expressions)
    return Values(values=labels) if 0 < len(set(labels)) == len(labels) <= MAX_CELLS else None
