"""`schema.sql`: CREATE TABLE, ALTER TABLE, CREATE INDEX, enumerated types and domains of any common dialect.

`script` cuts and parses it, `ddl_types` turns the types into ours. A plain `pg_dump -s` is such a script: partitions
are part of their table, whose rule they are. Catalogues that keep the text of a statement are read by the same
functions.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from privbench.errors import SchemaError
from privbench.io.catalogue import RawTable, build_schema
from privbench.io.clustered import with_clustered
from privbench.io.ddl_types import CHANGED, typed
from privbench.io.dump import original_of_dump
from privbench.io.names import Names, find_name
from privbench.io.partitions import partition_rule
from privbench.io.script import Beside, declaring, parse_one, parse_script
from privbench.schema.domain import implied_by_type
from privbench.schema.tables import Column, ForeignKey, Index, Schema
from privbench.schema.types import any_type


def parse_ddl(text: str, *, where: str) -> Schema:
    """Read a script; `where` names it in messages.

    >>> parse_ddl("CREATE TABLE t (id INT PRIMARY KEY)", where="schema.sql").tables[0].primary_key
    ('id',)
    """
    dialect, trees = parse_script(text, where)
    script = _Script(where=where, mysql=dialect == "mysql", beside=Beside.read(text, dialect), trees=trees)
    for tree in trees:
        script.take(tree)
    script.end()
    if not script.tables:
        raise SchemaError(f"{where}: has no CREATE TABLE statement.")
    schema = with_clustered(build_schema(script.tables), text)
    return replace(schema, original=original_of_dump(text, schema))


def parse_checks(create_table: str, *, dialect: str) -> list[exp.Expr]:
    """Read the CHECK expressions of one CREATE TABLE; none if sqlglot cannot read it."""
    try:
        trees = [parse_one(s, dialect) for s in declaring(create_table, dialect)]
    except SqlglotError:
        return []
    return [c.this for tree in trees for c in tree.find_all(exp.CheckColumnConstraint)]


def parse_generated(raw: RawTable, create_table: str, *, dialect: str) -> None:
    """Enter the GENERATED columns of one CREATE TABLE; none if sqlglot cannot read it."""
    try:
        trees = [parse_one(s, dialect) for s in declaring(create_table, dialect)]
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
    return _index(parse_one(create_index, dialect))


class _Script:
    """The tables and enumerated types that the statements declare, in turn."""

    def __init__(self, *, where: str, mysql: bool, beside: Beside, trees: Iterable[exp.Expr]) -> None:
        self.where = where
        self.mysql = mysql
        self._beside = beside
        created = Counter(tree.this.this.name for tree in trees if isinstance(tree.this, exp.Schema))
        self._doubles = {name for name, times in created.items() if times > 1}
        self.tables: list[RawTable] = []
        self._names = Names()
        self._by_name: dict[str, RawTable] = {}
        self.enums: dict[str, exp.DataType] = {}

    def take(self, tree: exp.Expr) -> None:
        """Enter one statement."""
        if isinstance(tree, exp.Alter):
            self._alter(self._find(tree.this), tree.args["actions"])
        elif tree.args.get("kind") == "TYPE":
            self.enums[tree.this.name.lower()] = tree.expression
        elif tree.args.get("kind") == "INDEX":
            index, on = _index(tree), tree.this.args["table"]
            if index is not None and on.name not in self._beside.views:
                self._add_index(self._find(on), index, tree)
        else:
            self._create(tree)

    def _create(self, tree: exp.Expr) -> None:
        if not isinstance(tree.this, exp.Schema):
            raise SchemaError(f"{self.where}: CREATE TABLE {tree.this.name} lists no columns. Write them out.")
        raw = RawTable(name=self._called(tree.this.this), quoted=self._is_quoted(tree.this.this.this))
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
            case exp.UniqueColumnConstraint() if not part.args.get("nulls") or _required(
                raw, _names(part.this.expressions)
            ):
                raw.uniques.append(_names(part.this.expressions))
            case exp.ForeignKey():
                raw.foreign_keys.append(self._foreign_key(_names(part.expressions), part.args["reference"]))
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
        column = self._type(node.kind)
        column = replace(column, name=node.name, nullable=column.nullable and _nullable(node))
        raw.columns.append(replace(column, quoted=self._is_quoted(node.this)))
        raw.checks += self._domain_checks(node)
        for kind in kinds:
            match kind:
                case exp.PrimaryKeyColumnConstraint():
                    raw.primary_key = (node.name,)
                case exp.UniqueColumnConstraint():
                    raw.uniques.append((node.name,))
                case exp.Reference():
                    raw.foreign_keys.append(self._foreign_key((node.name,), kind))
                case exp.CheckColumnConstraint():
                    raw.checks.append(kind.this)
                case exp.ComputedColumnConstraint() | exp.GeneratedAsIdentityColumnConstraint():
                    _add_generated(raw, node.name, kind)

    def _type(self, kind: exp.DataType) -> Column:
        if kind.this is exp.DataType.Type.ARRAY and kind.expressions and _type_name(kind.expressions[0]):
            element = self._type(kind.expressions[0]).type
            return Column(name="", type=any_type(f"{element.sql}[]", shown=kind.sql()))
        if kind.this is exp.DataType.Type.USERDEFINED:
            name = _type_name(kind)
            if name in self._beside.domains:
                return self._domain(name)
            kind = self.enums.get(name, kind)
            if kind.this is exp.DataType.Type.USERDEFINED:
                changed = name.upper() if name.upper() in CHANGED else None
                ours = any_type(name)  # `serial` outside PostgreSQL
                return Column(name="", type=ours, implied=implied_by_type(ours), source_type=changed)
        return typed(kind, shown=kind.sql(), mysql=self.mysql)

    def _is_quoted(self, name: exp.Expr) -> bool:
        """Whether a name has its capital letters by quotes; in MySQL quotes say nothing about them."""
        return (
            isinstance(name, exp.Identifier) and bool(name.quoted) and not self.mysql and name.name != name.name.lower()
        )

    def _domain(self, name: str) -> Column:
        """The column that a domain stands for."""
        node = self._domain_node(name)
        if node is None or node.kind is None:
            return Column(name="", type=any_type(name))
        column = self._type(node.kind)
        return replace(column, nullable=column.nullable and _nullable(node))

    def _domain_node(self, name: str) -> exp.ColumnDef | None:
        """A domain, read as a column."""
        try:
            tree = parse_one(f"CREATE TABLE d (value {self._beside.domains[name]})", "postgres")
        except SqlglotError:
            return None
        return tree.find(exp.ColumnDef)

    def _domain_checks(self, node: exp.ColumnDef) -> list[exp.Expr]:
        """The CHECKs of a column's domain and those under it, about the column."""
        checks: list[exp.Expr] = []
        kind = node.kind
        while kind is not None and (name := _type_name(kind)) in self._beside.domains:
            domain = self._domain_node(name)
            found = () if domain is None else domain.find_all(exp.CheckColumnConstraint)
            checks += [about_column(check.this, node.name) for check in found]
            kind = None if domain is None or _type_name(domain.kind) == name else domain.kind
        return checks

    def end(self) -> None:
        """Take partitions out, whose rows their tables have, with the rule that they put on these."""
        self.tables = [raw for raw in self.tables if raw.name not in self._beside.children]
        for raw in self.tables:
            cut = self._beside.partitions.get(raw.name)
            rule = None if cut is None else partition_rule(cut.key, cut.bounds, [c.name for c in raw.columns])
            if rule is not None:
                raw.checks.append(sqlglot.parse_one(rule, dialect="postgres"))

    def _add_index(self, raw: RawTable, index: Index, tree: exp.Expr) -> None:
        """Enter an index; one that lets only one NULL in is no key if its columns can be NULL."""
        one_null = any(n.name == "nulls_not_distinct" for n in tree.this.args["params"].args.get("include") or ())
        if index.unique and one_null and not _required(raw, index.columns):
            return
        raw.indexes.append(index)

    def _foreign_key(self, columns: tuple[str, ...], reference: exp.Expr) -> ForeignKey:
        target = reference.this
        if isinstance(target, exp.Schema):
            return ForeignKey(columns=columns, table=self._called(target.this), references=_names(target.expressions))
        return ForeignKey(columns=columns, table=self._called(target), references=())

    def _called(self, table: exp.Expr) -> str:
        """The name of a table; with its schema where two schemas have one of that name and it is not `public`."""
        schema = table.args.get("db")
        if table.name not in self._doubles or schema is None or schema.name == "public":
            return table.name
        return f"{schema.name}.{table.name}"

    def _find(self, table: exp.Expr) -> RawTable:
        name = self._called(table)
        spelled = self._names.find(name)
        if spelled is None:
            raise SchemaError(f"{self.where}: table {name} is altered or indexed, but no CREATE TABLE comes before.")
        return self._by_name[spelled]


def about_column(check: exp.Expr, column: str) -> exp.Expr:
    """The CHECK of a domain about a column instead of VALUE."""

    def named(node: exp.Expr) -> exp.Expr:
        is_value = isinstance(node, exp.Column) and node.name.lower() == "value" and not node.this.quoted
        return exp.column(column, quoted=True) if is_value else node

    return check.transform(named)


def _type_name(kind: exp.DataType | None) -> str:
    """The name of a type that the script declares; empty for others."""
    if kind is None or kind.this is not exp.DataType.Type.USERDEFINED:
        return ""
    return str(kind.args.get("kind")).split(".")[-1].strip('"').lower()


def _required(raw: RawTable, names: tuple[str, ...]) -> bool:
    known = {c.name: c.nullable and c.name not in raw.primary_key for c in raw.columns}
    return not any(known.get(name, True) for name in names)


def _names(nodes: Iterable[exp.Expr]) -> tuple[str, ...]:
    return tuple(n.name or n.this.name for n in nodes)


def _index(tree: exp.Expr) -> Index | None:
    params = tree.this.args["params"]
    nodes = [_unordered(c) for c in params.args.get("columns") or ()]
    method = params.args.get("using")
    if method is not None and method.name.lower() not in ("btree", "hash"):
        return None
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
