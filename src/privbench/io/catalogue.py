"""What a catalogue or a CREATE TABLE script declares, gathered piece by piece and then checked as one Schema.

Systems differ in how strictly names must match, so references are resolved here, exactly first and then
without regard to case. A FOREIGN KEY without a column list means the primary key. The second half reads CHECK
constraints: a term that lists literals or bounds a column gives the column's domain; what is neither (a function,
two columns, NOT) is passed over, which only makes the domain wider.
"""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from itertools import chain

from sqlglot import exp

from privbench.errors import SchemaError
from privbench.io.names import Names
from privbench.schema.domain import MAX_CELLS, Domain, Range, Scalar, Values
from privbench.schema.tables import Column, ForeignKey, Index, Schema, Table
from privbench.schema.types import Kind, SqlType

Literal = str | Decimal | bool
_EXACT = Context(prec=100)
_EPOCH = dt.date(1970, 1, 1)


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


class _Known:
    """A raw table with its columns ready to be found."""

    def __init__(self, raw: RawTable) -> None:
        self.raw = raw
        self._columns = Names(c.name for c in raw.columns)

    def spell(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Spell the names as the columns are; a name that is not there stays, for Table to refuse."""
        return tuple(self._columns.find(n) or n for n in names)


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
    return Table(
        name=raw.name,
        columns=_columns(raw, primary_key),
        primary_key=primary_key,
        foreign_keys=foreign_keys,
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


@dataclass(slots=True)
class Facts:
    """What the CHECKs of a table say about one column."""

    values: list[Literal] | None = None
    low: list[tuple[Literal, bool]] = field(default_factory=list)  # bound, inclusive
    high: list[tuple[Literal, bool]] = field(default_factory=list)


def facts_of(checks: Iterable[exp.Expr]) -> dict[str, Facts]:
    """Collect what the CHECK expressions of a table say, by column name in lower case."""
    facts: dict[str, Facts] = {}
    for check in checks:
        for term in _terms(check):
            _note(term, facts)
    return facts


def implied_domain(facts: Facts, of: SqlType) -> Domain | None:
    """Find the domain that the facts give a column of this type, if they give one."""
    if facts.values is not None:
        scalars = [_scalar(v, of) for v in facts.values]
        known = tuple(s for s in dict.fromkeys(scalars) if s is not None)
        complete = None not in scalars and 0 < len(set(map(str, known))) == len(known) <= MAX_CELLS
        return Values(values=known) if complete else None
    if not facts.low or not facts.high:
        return None
    lows = [_units(v, of, up=True, strict=not inclusive) for v, inclusive in facts.low]
    highs = [_units(v, of, up=False, strict=not inclusive) for v, inclusive in facts.high]
    low = max((u for u in lows if u is not None), default=None)
    high = min((u for u in highs if u is not None), default=None)
    if low is None or high is None or not 0 <= high - low < MAX_CELLS:
        return None
    return Range(range=(_of_units(low, of), _of_units(high, of)))


def _terms(node: exp.Expr) -> list[exp.Expr]:
    node = _bare(node)
    if isinstance(node, exp.And):
        return _terms(node.left) + _terms(node.right)
    return [node]


def _bare(node: exp.Expr) -> exp.Expr:
    """Take off brackets and casts; PostgreSQL writes `(x)::text = 'a'::text` for `x = 'a'`."""
    while isinstance(node, (exp.Paren, exp.Cast)):
        node = node.this
    return node


def _note(term: exp.Expr, facts: dict[str, Facts]) -> None:
    listed = _listed(term)
    if listed is not None and listed[1]:
        facts.setdefault(listed[0], Facts()).values = listed[1]
        return
    for column, value, below, inclusive in _bounds(term):
        fact = facts.setdefault(column, Facts())
        (fact.low if below else fact.high).append((value, inclusive))


def _listed(term: exp.Expr) -> tuple[str, list[Literal]] | None:
    """Read a term that lists the values of one column; `x IS NULL` adds none, as NULL passes any CHECK."""
    term = _bare(term)
    if isinstance(term, exp.Or):
        left, right = _listed(term.left), _listed(term.right)
        return (left[0], left[1] + right[1]) if left and right and left[0] == right[0] else None
    column = _column(term.this) if isinstance(term, (exp.In, exp.EQ, exp.Is)) else None
    if column is None:
        return None
    if isinstance(term, exp.Is):
        return (column, []) if isinstance(term.expression, exp.Null) else None
    nodes = _literal_nodes(term)
    values = [_literal(n) for n in nodes]
    known = [v for v in values if v is not None]
    return (column, known) if nodes and len(known) == len(nodes) else None


def _literal_nodes(term: exp.Expr) -> list[exp.Expr]:
    if isinstance(term, exp.In):
        return list(term.expressions)
    other = _bare(term.expression)
    if not isinstance(other, exp.Any):
        return [other]
    array = _bare(other.this)  # x = ANY (ARRAY['a', 'b'])
    return list(array.expressions) if isinstance(array, exp.Array) else []


def _bounds(term: exp.Expr) -> list[tuple[str, Literal, bool, bool]]:
    """Read bounds as (column, value, is it a lower one, inclusive)."""
    if isinstance(term, exp.Between):
        sides = [(term.this, term.args["low"], True, True), (term.this, term.args["high"], False, True)]
    elif isinstance(term, (exp.GT, exp.GTE, exp.LT, exp.LTE)):
        below, inclusive = isinstance(term, (exp.GT, exp.GTE)), isinstance(term, (exp.GTE, exp.LTE))
        sides = [(term.left, term.right, below, inclusive), (term.right, term.left, not below, inclusive)]
    else:
        return []
    bounds = []
    for column_side, value_side, below, inclusive in sides:
        column, value = _column(column_side), _literal(value_side)
        if column is not None and value is not None:
            bounds.append((column, value, below, inclusive))
    return bounds


def _column(node: exp.Expr) -> str | None:
    node = _bare(node)
    return node.name.lower() if isinstance(node, exp.Column) else None


def _literal(node: exp.Expr) -> Literal | None:
    node = _bare(node)
    if isinstance(node, exp.Neg):
        value = _literal(node.this)
        return -value if isinstance(value, Decimal) else None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if not isinstance(node, exp.Literal):
        return None
    return str(node.this) if node.is_string else Decimal(node.this)


def _scalar(value: Literal, of: SqlType) -> Scalar | None:
    """Write a literal as the spec writes a value of that type; None if it is not one."""
    if of.kind is Kind.TEXT:
        return value if isinstance(value, str) else None
    if of.kind is Kind.BOOLEAN:
        return value if isinstance(value, bool) else None
    if of.kind is Kind.FLOAT:
        return float(value) if isinstance(value, Decimal) else None
    units = _units(value, of, up=True, strict=False)
    return None if units is None or units != _units(value, of, up=False, strict=False) else _of_units(units, of)


def _units(value: Literal, of: SqlType, *, up: bool, strict: bool) -> int | None:
    """Count the type's smallest steps in a value, rounded inwards; None for types without such a step."""
    if isinstance(value, bool):
        return None
    try:
        if of.kind is Kind.DATE:
            exact = Decimal((dt.date.fromisoformat(str(value)) - _EPOCH).days)
        elif of.kind in (Kind.INTEGER, Kind.DECIMAL):
            exact = Decimal(value).scaleb(of.scale, _EXACT)
        else:
            return None
    except (ValueError, InvalidOperation):
        return None
    whole = int(exact.to_integral_value(ROUND_CEILING if up else ROUND_FLOOR))
    return whole + (1 if up else -1) if strict and whole == exact else whole


def _of_units(units: int, of: SqlType) -> Scalar:
    if of.kind is Kind.DATE:
        return (_EPOCH + dt.timedelta(days=units)).isoformat()
    return units if of.kind is Kind.INTEGER else f"{Decimal(units).scaleb(-of.scale, _EXACT):f}"
