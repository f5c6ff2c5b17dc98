"""A publisher's own queries with their literals mapped to public values, so that the queries can be published.

Works on the syntax tree. Each literal is traced to the column that it is compared with, and mapped by that column's
mapper; a query with a literal that cannot be traced, or of a form that could carry other words, is left out. A literal
stays as it is only if the model, which is public, holds it: listed values, edges and heavy hitters of a domain in the
spec (also one taken from the data, which the publisher kept and the receipt names), values of public tables, ids.
"""

import io
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sqlglot import exp

from privbench.encode.interval import IntervalCodec
from privbench.encode.lengths import LengthCodec
from privbench.encode.listed import OrderedList, TextList, unlisted
from privbench.encode.scalar import number_of
from privbench.errors import SpecError
from privbench.generation.keys import KeyMaker, keeps_entity_keys
from privbench.generation.sizes import planned_rows
from privbench.model.model import Model
from privbench.model.order import is_numbered, redrawn_links
from privbench.schema.domain import Scalar
from privbench.schema.types import Kind
from privbench.schema.unit import Role
from privbench.spn.infer import marginal
from privbench.workload.form import check_form, drop_qualifiers, rename
from privbench.workload.literal import QueryDialect, like, literal_of, pattern_parts
from privbench.workload.parse import OutsideError, query_of, read_statement
from privbench.workload.public_values import Cells, Column, Listed, MadeUp, Mapper
from privbench.workload.query import Literals, Statement, Workload
from privbench.workload.resolve import Base, Derived, Resolver
from privbench.workload.usage import Found, Usage, literals_of

_CODES = 4096
"""How many codes of free text are drawn to make up strings from."""
_SHOWN = 3
"""How many reasons an error gives."""


class Outcome(Enum):
    """What became of a literal, or of a whole statement."""

    KEPT = "kept: it is public"
    MAPPED = "mapped"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One literal of one statement, before and after; or a statement that was left out, and why.

    Holds original literals: the list of changes is for the publisher only.
    """

    statement: int
    outcome: Outcome
    column: str | None = None
    before: str | None = None
    after: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traced:
    """A statement whose literals were all traced to columns."""

    statement: Statement
    tree: exp.Expr
    literals: tuple[tuple[Found, Base], ...]


def translate(
    workload: Workload, model: Model, *, dialect: QueryDialect = QueryDialect.DUCKDB, seed: int | None = None
) -> tuple[Workload, tuple[Change, ...]]:
    """Map every literal to a public value. Returns what can be published, and the changes, which cannot.

    Stated cardinalities and comments are left out: they are facts of the private data. The secret that picks made-up
    values is fresh unless there is a seed; who knows the seed can test guesses of the original literals. SpecError if
    every statement is left out.
    """
    mappers = _Mappers(model, seed=seed, dialect=dialect)
    traced: list[_Traced] = []
    changes: list[Change] = []
    for statement in workload.statements:
        try:
            item = _trace(statement, model, dialect)
            mappers.admit(item.literals)
            traced.append(item)
        except (OutsideError, SpecError) as error:
            changes.append(_left_out(statement, error))
    published: list[Statement] = []
    for item in traced:
        try:
            made = [mappers.apply(item.statement.number, found, base) for found, base in item.literals]
            published.append(_rewritten(item, model, dialect))
            changes += made
        except (OutsideError, SpecError) as error:
            changes.append(_left_out(item.statement, error))
    changes.sort(key=lambda change: change.statement)
    if not published:
        raise SpecError(_nothing_left(changes))
    return Workload(statements=tuple(published), literals=Literals.SYNTHETIC), tuple(changes)


def _left_out(statement: Statement, error: Exception) -> Change:
    return Change(statement=statement.number, outcome=Outcome.LEFT_OUT, before=statement.sql, reason=str(error))


def _nothing_left(changes: Sequence[Change]) -> str:
    reasons = "; ".join(f"statement {c.statement} {c.reason}".rstrip(".") for c in changes[:_SHOWN])
    return f"no query is left to publish: {len(changes)} left out ({reasons}{'; ..' if len(changes) > _SHOWN else ''})."


def _trace(statement: Statement, model: Model, dialect: QueryDialect) -> _Traced:
    tree = read_statement(statement.sql, dialect)
    drop_qualifiers(tree)
    resolver = Resolver(tree, model.protection.schema)
    for node in tree.find_all(exp.Column):
        if not node.is_star:
            resolver.resolve(node)
    literals: list[tuple[Found, Base]] = []
    for found in literals_of(tree):
        base = resolver.resolve(found.column)
        if isinstance(base, Derived):
            raise OutsideError(f"compares a literal with {found.column.name}, which the query computes")
        literals.append((found, base))
    check_form(tree)
    rename(tree, model.protection.schema)
    return _Traced(statement=statement, tree=tree, literals=tuple(literals))


def _rewritten(item: _Traced, model: Model, dialect: QueryDialect) -> Statement:
    sql = item.tree.sql(dialect=dialect.value, comments=False)
    try:
        query, reason = query_of(read_statement(sql, dialect), dialect, model.protection.schema), None
    except OutsideError as error:
        query, reason = None, str(error)
    return replace(item.statement, sql=sql, query=query, reason=reason, cardinality=None)


class _Mappers:
    """The mapper of each column that the workload compares with a literal."""

    def __init__(self, model: Model, *, seed: int | None, dialect: QueryDialect) -> None:
        self._model = model
        self._dialect = dialect
        self._secret = secrets.token_bytes(32) if seed is None else seed.to_bytes(32)
        self._rows = planned_rows(model, 1.0)
        self._kept = keeps_entity_keys(model, 1.0)
        self._keys = KeyMaker(model, keep_entity_keys=self._kept, folder=Path())
        self._stale = redrawn_links(model.protection, keep_entity_keys=self._kept)
        self._literals: dict[Base, set[Scalar]] = {}
        self._made: dict[Base, Mapper] = {}

    def admit(self, literals: Sequence[tuple[Found, Base]]) -> None:
        """Take in the literals of one statement, all or none: SpecError if one does not fit its column."""
        compared = [(self._origin(*base), f.value) for f, base in literals if f.usage is not Usage.PATTERN]
        for (table, name), value in compared:
            column = self._model.protection.schema.table(table).column(name)
            if column.type.kind is not Kind.TEXT:
                number_of(f"{table}.{name}", column.type, value)
        for origin, value in compared:
            self._literals.setdefault(origin, set()).add(value)

    def apply(self, number: int, found: Found, base: Base) -> Change:
        """Replace a literal in its tree."""
        mapper = self._mapper(self._origin(*base))
        before = found.node.sql(dialect=self._dialect.value)
        if found.usage is Usage.PATTERN:
            new = self._pattern(found, mapper)
        else:
            value = mapper.value(found.value, found.usage)
            new = None if value is None else literal_of(value)
            if new is not None:
                found.node.replace(new)
        outcome = Outcome.KEPT if new is None else Outcome.MAPPED
        after = before if new is None else new.sql(dialect=self._dialect.value)
        return Change(statement=number, outcome=outcome, column=".".join(base), before=before, after=after)

    def _pattern(self, found: Found, mapper: Mapper) -> exp.Expr | None:
        """Replace a LIKE by one with a public prefix; None if the pattern is public."""
        test = found.node.parent
        assert test is not None  # noqa: S101  a pattern stands in a LIKE
        declared = test.parent if isinstance(test.parent, exp.Escape) else None
        escape = declared.expression.name if declared else "\\" if self._dialect.backslash else None
        parts = pattern_parts(str(found.value), escape)
        if any(wild for _, wild in parts[:-1]) or parts[-1:] != [("%", True)]:
            pieces = "".join("\0" if wild else c for c, wild in parts).split("\0")
            if not mapper.knows(pieces):
                raise OutsideError("has a LIKE whose pattern is neither a prefix nor part of a public value")
            return None
        text = "".join(c for c, _ in parts[:-1])
        prefix = mapper.prefix(text)
        if prefix is None:
            return None
        new = like(found.column.copy(), prefix)
        (declared or test).replace(new)
        return new.find(exp.Literal)

    def _origin(self, table: str, column: str) -> Base:
        """The column whose values a foreign key's, or a copy's, are."""
        public = self._model.protection.roles[table] is Role.PUBLIC
        said = self._model.protection.schema.table(table).column(column).derived
        if said is not None and said.owner is not None:
            return self._origin(self._model.protection.owners[table].table, said.owner)
        for link in self._model.protection.links:
            if link.table == table and column in link.key.columns and (not public or link in self._stale):
                return self._origin(link.key.table, link.key.references[link.key.columns.index(column)])
        return table, column

    def _mapper(self, base: Base) -> Mapper:
        if base not in self._made:
            self._made[base] = self._make(*base)
        return self._made[base]

    def _make(self, table: str, name: str) -> Mapper:
        declared = self._model.protection.schema.table(table)
        column = Column(
            where=f"{table}.{name}",
            type=declared.column(name).type,
            secret=self._secret,
            literals=tuple(self._literals.get((table, name), ())),
        )
        if self._model.protection.roles[table] is Role.PUBLIC:
            content = pq.read_table(io.BytesIO(self._model.public[table]), columns=[name])
            return _listed(column, content.column(0))
        said = declared.column(name).derived
        if said is not None:  # a number of rows, or one of them: the model holds where bins of fanouts begin
            links = self._model.tables[said.rows or table].links.values()
            edges = next(link.with_owner.edges for link in links if link.with_owner is not None)
            return Listed(column=column, values=pa.array(edges[:-1]), others=())
        if name not in self._model.codecs[table]:
            if not is_numbered(declared, (name,)):
                raise OutsideError(f"compares with {table}.{name}, whose values are not known")
            if self._kept and table == self._model.protection.entity:
                return _listed(column, self._model.entity_keys.column(name))  # type: ignore[union-attr]
            return MadeUp(column=column, rows=self._rows[table], make=lambda row: self._key(table, row))
        return self._modelled(column, table, name)

    def _modelled(self, column: Column, table: str, name: str) -> Mapper:
        codec, rows = self._model.codecs[table][name], self._rows[table]
        if isinstance(codec, IntervalCodec):
            return Cells(column=column, codec=codec)
        if isinstance(codec, OrderedList | TextList):
            others = codec.others.to_pylist() if isinstance(codec, TextList) else []
            return Listed(column=column, values=codec.points, others=others)
        first = np.zeros(1, np.uint8)
        shares = marginal(self._model.tables[table].network, name)
        if isinstance(codec, LengthCodec):
            codes = np.random.default_rng(0).choice(len(shares), size=_CODES, p=shares)
            codes = np.where(codes == codec.null_code, 0, codes)
            return MadeUp(
                column=column,
                rows=rows,
                make=lambda row: _text(codec, int(codes[row % len(codes)]), row),
                codec=codec,
                shares=shares.tolist(),
            )
        return MadeUp(
            column=column,
            rows=rows,
            make=lambda row: _one(codec.decode(first, np.random.default_rng(0), first_row=row)),
        )

    def _key(self, table: str, row: int) -> object:
        return _one(self._keys.own_key(self._model.protection.schema.table(table), np.array([row])))


def _text(codec: LengthCodec, code: int, row: int) -> object:
    return _one(codec.decode(np.array([code], np.uint16), np.random.default_rng(row), first_row=row))


def _one(values: pa.Array) -> object:
    return values[0].as_py()


def _listed(column: Column, values: pa.ChunkedArray) -> Listed:
    """Public values as they stand in a table; text that is not among them is made up."""
    found = pc.unique(values).drop_null()
    ordered = found.take(pc.array_sort_indices(found))
    others = unlisted(column.type, set(found.to_pylist())) if column.type.kind is Kind.TEXT else []
    return Listed(column=column, values=ordered, others=others)
