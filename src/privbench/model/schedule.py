"""When each column of a private table gets its last value, and so where each rule is kept.

Rows are drawn, and drawn again to keep rules; those that stay are numbered; when all rows are there, keys of tables
with `numbered_by` are numbered again; then rows below are added up. A rule is kept where the last of its columns is
known:

| last column | where the rule is kept |
|---|---|
| DRAWN | rows that break it are drawn again |
| NUMBERED | a key that may be NULL is made so when rows are numbered |
| RENUMBERED | the same, when all rows are there |
| SUMMED | nowhere: it must follow from the domains of what is added up |
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from math import inf

from privbench.errors import SpecError
from privbench.model.numbering import renumbered_columns
from privbench.model.order import colliding_keys, is_numbered
from privbench.rules.implied import Bounds, always_holds, bounds_of
from privbench.schema.check_facts import facts_of
from privbench.schema.computed import (
    computed_from,
    computed_order,
    equal_columns,
    late_columns,
    named_place,
    public_paths,
)
from privbench.schema.domain import Bins, Range, Values
from privbench.schema.expression import ColumnName, Expression
from privbench.schema.spec import Spec
from privbench.schema.tables import Place, Table
from privbench.schema.types import Kind
from privbench.schema.unit import LinkKind, Protection


class Ready(IntEnum):
    """The earliest point at which a value is the last one."""

    DRAWN = 1
    """Drawn, restored, copied or worked out from such values; again whenever one of them is drawn again."""
    NUMBERED = 2
    """Own numbers, keys to the own table, and what is worked out from them: when it is known which rows stay."""
    RENUMBERED = 3
    """Keys of tables with `numbered_by`, and what is worked out from them: when all rows are there."""
    SUMMED = 4
    """What is worked out from rows below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When the columns of all private tables are ready."""

    protection: Protection
    columns: Mapping[Place, Ready]

    def rule(self, table: str, rule: Expression) -> Ready:
        """When a rule of a table can be asked."""
        return max((self._seen(table, name) for name in rule.columns), default=Ready.DRAWN)

    def rules(self, table: Table, ready: Ready) -> list[Expression]:
        """The rules of a table that are asked at some point."""
        return [rule for rule in table.checks if self.rule(table.name, rule) is ready]

    def formulas(self, table: str, *ready: Ready) -> tuple[str, ...]:
        """The columns of a table that are worked out at some points, in a fitting order; no plain cases."""
        plain = equal_columns(self.protection, table)
        order = computed_order(self.protection)
        return tuple(c for t, c in order if t == table and c not in plain and self.columns[t, c] in ready)

    def sums(self) -> tuple[Place, ...]:
        """The columns that are worked out from rows below, in a fitting order."""
        return tuple(place for place in computed_order(self.protection) if self.columns[place] is Ready.SUMMED)

    def early_sums(self) -> set[Place]:
        """The columns over rows below that are known before keys are numbered again."""
        found: set[Place] = set()
        for table, column in self.sums():
            needs = computed_from(self.protection)[table, column]
            ready = {place: self.columns.get(place, Ready.DRAWN) for place in needs}
            if all(r < Ready.RENUMBERED or (r is Ready.SUMMED and p in found) for p, r in ready.items()):
                found.add((table, column))
        return found

    def nulled_columns(self, table: Table, rules: list[Expression]) -> tuple[str, ...]:
        """The columns of foreign keys that rules name and that can be NULL: with NULL, most rules hold.

        Not of keys that say whose a row is, nor of those by which columns are worked out from public rows.
        """
        names = {name.column for rule in rules for name in rule.columns if name.table is None}
        paths = public_paths(self.protection, table.name)
        looked_up = {n.table for c in table.columns if c.computed is not None for n in c.computed.columns}
        used = {path[0].key for target, path in paths.items() if target in looked_up}
        keys = [
            link.key.columns
            for link in self.protection.links_of(table.name)
            if link.kind is not LinkKind.OWNER and link.key not in used and set(link.key.columns) & names
        ]
        return tuple(dict.fromkeys(c for columns in keys for c in columns if table.column(c).nullable))

    def why_not(self, spec: Spec, table: Table, rule: Expression) -> str | None:
        """Say why a rule cannot be kept, since a column that it names is known too late; None if it can."""
        ready = self.rule(table.name, rule)
        if ready < Ready.RENUMBERED or (ready is Ready.SUMMED and _follows(spec, self.protection, table.name, rule)):
            return None
        late = next(name for name in rule.columns if self._seen(table.name, name) is ready)
        if ready is Ready.SUMMED:
            return f"{late} adds up rows below, which are made later, and the domains of these do not imply the rule"
        apart = next((name for name in rule.columns if name.table not in (None, table.name)), None)
        if apart is None:
            return None
        return f"{late} is numbered when all rows are there, and rows above, such as {apart}, are not looked at then"

    def _seen(self, table: str, name: ColumnName) -> Ready:
        """When a column is ready that a row of a table names: tables above are made and numbered by then."""
        if name.table in (None, table):
            return self.columns[table, name.column]
        above = self.columns.get((name.table, name.column), Ready.DRAWN)
        return Ready.DRAWN if above is Ready.NUMBERED else above


def schedule(spec: Spec, protection: Protection) -> Schedule:
    """When all columns of private tables are ready."""
    renumbered = renumbered_columns(spec, protection)
    columns: dict[Place, Ready] = {}
    for made in map(protection.schema.table, protection.order):
        own = set(_own_keys(made))
        columns |= {(made.name, c.name): Ready.NUMBERED if c.name in own else Ready.DRAWN for c in made.columns}
    columns |= dict.fromkeys((place for place in renumbered if place in columns), Ready.RENUMBERED)
    late = set(late_columns(protection))
    known = Schedule(protection=protection, columns=columns)
    plain = {(t, c): equals for t in protection.order for c, equals in equal_columns(protection, t).items()}
    counted = {place: equals.rows for place, equals in plain.items() if equals.rows is not None}
    named = {place for places in computed_from(protection).values() for place in places} if counted else set()
    named |= {(n.table or t.name, n.column) for t in protection.schema.tables for r in t.checks for n in r.columns}
    late |= {place for place, child in counted.items() if place not in named and may_lose_rows(spec, protection, child)}
    for table, column in computed_order(protection):
        expression = protection.schema.table(table).column(column).computed
        if (table, column) in late:
            columns[table, column] = Ready.SUMMED
        elif expression is not None and (table, column) not in plain:
            columns[table, column] = max(columns[table, column], known.rule(table, expression))
    return known


def _own_keys(table: Table) -> Iterator[str]:
    """The columns of a table's own number, and of keys to its own rows."""
    if is_numbered(table, table.primary_key):
        yield from table.primary_key
    yield from (c for key in table.foreign_keys if key.table == table.name for c in key.columns)


def may_lose_rows(spec: Spec, protection: Protection, name: str) -> bool:
    """Whether rows of a table may be left out, to keep a key unique or a rule that is no matter of one domain."""
    table = protection.schema.table(name)
    learnt = {c for c in protection.attributes(name) if table.column(c).relative_to is None}
    joint = [check for check in table.checks if not (len(check.columns) == 1 and {*_own_names(check)} <= learnt)]
    needed = any(link.kind is LinkKind.INSIDE and not link.nullable for link in protection.links_of(name))
    return bool(joint or needed or colliding_keys(spec, table))


def _own_names(check: Expression) -> Iterator[str | None]:
    yield from (name.column if name.table is None else None for name in check.columns)


def _follows(spec: Spec, protection: Protection, table: str, rule: Expression) -> bool:
    """Whether a rule follows from the domains of what is added up."""

    def bounds(place: Place) -> Bounds:
        owner = protection.schema.table(place[0])
        column = owner.column(place[1])
        if column.type.kind not in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT) or place[1] in owner.surrogate_columns:
            return Bounds()
        if column.computed is None:
            return declared_bounds(spec, owner, place[1])
        inner = bounds_of(column.computed.tree, lambda name: bounds((name.table or place[0], name.column)))
        inner = inner if column.nullable else inner.with_zero()
        return inner if column.type.kind is Kind.FLOAT else inner.rounded()

    return always_holds(rule, lambda name: bounds((name.table or table, name.column)))


def declared_bounds(spec: Spec, table: Table, column: str) -> Bounds:
    """The bounds of a column of numbers by its domain and the rules about it alone."""
    domain = spec.column(table.name, column).domain
    ends: list[Bounds] = []
    if table.column(column).relative_to is not None:
        return Bounds()
    if isinstance(domain, Range | Bins):
        edges = domain.range if isinstance(domain, Range) else domain.bins
        heavy = () if isinstance(domain, Range) else domain.heavy_hitters
        numbers = [float(str(value)) for value in (*edges, *heavy)]
        ends.append(Bounds(min(numbers), max(numbers)))
    elif isinstance(domain, Values):
        listed = [float(str(value)) for value in domain.values]
        ends.append(Bounds(min(listed), max(listed)))
    facts = facts_of(check for check in table.checks if check.columns == (ColumnName(None, column),)).get(column)
    if facts is not None:
        ends += [Bounds(low=float(str(low))) for low, _ in facts.low]
        ends += [Bounds(high=float(str(high))) for high, _ in facts.high]
    return Bounds(max((b.low for b in ends), default=-inf), min((b.high for b in ends), default=inf))


def check_schedule(spec: Spec, protection: Protection) -> None:
    """Refuse rules, numbering and computed columns for which a value is known too late. Raises SpecError."""
    known = schedule(spec, protection)
    for name in protection.order:
        table = protection.schema.table(name)
        for rule in table.checks:
            if (why := known.why_not(spec, table, rule)) is not None:
                raise SpecError(
                    f"tables.{name}.rules: {rule}: cannot be kept: {why}. Take the rule out, or write `left_out` "
                    "beside it."
                )
        _check_numbered_by(spec, known, name)
    _check_formulas(spec, known)


def _check_numbered_by(spec: Spec, known: Schedule, table: str) -> None:
    column = spec.tables[table].numbered_by
    if column is not None and not can_number(known, (table, column)):
        raise SpecError(
            f"{table}: numbered_by: {column}: is computed from keys that are numbered when all rows are there. Name "
            "another column, or take it out."
        )


def can_number(known: Schedule, place: Place) -> bool:
    """Whether a column is known before keys are numbered again."""
    return known.columns[place] < Ready.RENUMBERED or place in known.early_sums()


def _check_formulas(spec: Spec, known: Schedule) -> None:
    """What is worked out when all rows are there names its own row and rows below: nothing else is looked at then."""
    copied = renumbered_columns(spec, known.protection)
    for table, column in (place for place in computed_order(known.protection) if place not in copied):
        expression = known.protection.schema.table(table).column(column).computed
        named = () if expression is None else expression.columns
        places = [p for p in (named_place(known.protection, table, name) for name in named) if p and p[0] != table]
        waits = known.columns[table, column] >= Ready.RENUMBERED
        if other := next((p for p in places if waits or known.columns.get(p, Ready.DRAWN) >= Ready.RENUMBERED), None):
            raise SpecError(
                f"tables.{table}.columns.{column}.computed: is known only when all rows are there and numbered, as a "
                f"key or a sum that it names is, and {'.'.join(other)} of another table is not "
                "looked at then. Take this out, or compute a column of the own row from it first."
            )
