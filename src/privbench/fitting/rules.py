"""Rules before anything is spent: whether they can be worked out, whether rows can keep them, whether the real rows do.

What cannot be met would be found when rows are generated, too late: so rows are drawn from the domains alone, and a
rule that none of them keeps is refused here. Real rows that break a rule are counted for the publisher alone.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.codec import Codec, Codecs
from privbench.encode.coded import CodedDatabase
from privbench.encode.keys import rows_led_to
from privbench.encode.narrow import narrowed, ruled_codec, rules_about, widest_domain
from privbench.errors import DataError, SpecError
from privbench.methods.domains.coarse import coarse_domain
from privbench.model.schedule import Ready, Schedule, schedule
from privbench.rules.computed import stored
from privbench.rules.evaluate import Evaluator
from privbench.rules.row_rules import RowRules, joined, types_in
from privbench.schema.domain import implied_by_type
from privbench.schema.expression import ColumnName, Expression
from privbench.schema.lists import listed_columns
from privbench.schema.spec import Spec
from privbench.schema.tables import Column, Place, Table
from privbench.schema.types import Kind
from privbench.schema.unit import Protection, key_name

BY_NUMBERS = (
    "rows are numbered anew, from 1 and after all else is drawn, and no key that the rule names can be NULL instead"
)
BY_NO_ROW = "no row that is made up from the domains of its columns keeps it"
DRAWS = 2**14
"""How many rows are drawn to see whether any keeps a rule. Generation draws a row again some dozens of times."""
_KEYS = 100
"""Numbered keys are drawn from so many values."""
Suggested = Collection[tuple[str, str]]
"""Rules that were taken from the data, each after its table."""
_logger = logging.getLogger(__name__)


def check_rules_can_hold(spec: Spec, protection: Protection, codecs: Codecs) -> None:
    """Refuse rules that no row can keep. Raises SpecError naming the rule and the remedy.

    `codecs` are those of the columns whose domain is known.
    """
    known = schedule(spec, protection)
    for table in (protection.schema.table(name) for name in protection.order):
        if table.checks:
            _check_wanted(protection, table, codecs[table.name])
            for rule in broken_by_numbers(known, table, codecs):
                raise SpecError(f"tables.{table.name}.rules: {rule}: cannot be kept: {BY_NUMBERS}. Take the rule out.")
            _check_draws(known, table, _Draws(protection, codecs))


def _check_wanted(protection: Protection, table: Table, codecs: Mapping[str, Codec]) -> None:
    """Refuse rules about one column that leave no value of its type."""
    for column in (c for c in protection.attributes(table.name) if c not in codecs):
        _codec_of_type(table, column)


def _codec_of_type(table: Table, column: str) -> Codec:
    """A codec for a column whose domain is not known yet: that of its type."""
    where, kind, rules = f"{table.name}.{column}", table.column(column).type, rules_about(table, column)
    domain = implied_by_type(kind) or coarse_domain(kind)
    if kind.kind is not Kind.TEXT and narrowed(where, kind, domain, rules) is None:
        domain = widest_domain(kind)
    return ruled_codec(where, kind, nullable=table.column(column).nullable, domain=domain, rules=rules)


def broken_by_numbers(known: Schedule, table: Table, codecs: Codecs) -> Iterator[Expression]:
    """The rules over row numbers that some rows break, also if they reference nothing."""
    for ready in (Ready.NUMBERED, Ready.RENUMBERED):
        rules = [rule for rule in known.rules(table, ready) if rule in table.own_checks]
        yield from (rule for rule in known.rules(table, ready) if rule not in rules)
        if rules:
            nulled = known.nulled_columns(table, rules)
            draws = _Draws(known.protection, codecs, null=[(table.name, column) for column in nulled])
            with RowRules.of(table, known.protection.schema, rules) as asked:
                broken = asked.broken({name: draws.values(table, name) for name in asked.columns})
            yield from (rule for rule, some in zip(rules, broken, strict=True) if some.any())


def kept_by_no_row(known: Schedule, table: Table, codecs: Codecs) -> list[Expression]:
    """The rules that none of many rows keeps, drawn from the domains."""
    return _asked_of_draws(known, table, _Draws(known.protection, codecs))[2]


def _asked_of_draws(
    known: Schedule, table: Table, draws: "_Draws"
) -> tuple[list[Expression], dict[ColumnName, pa.Array], list[Expression]]:
    """The rules over what is drawn, the rows, and the rules that none of them keeps."""
    drawn = known.rules(table, Ready.DRAWN)
    rules = [rule for rule in drawn if all(draws.knows(table, name) for name in rule.columns)]
    if not rules:
        return [], {}, []
    rows = {name: draws.values(table, name) for name in dict.fromkeys(n for rule in rules for n in rule.columns)}
    types = types_in(rules, table, known.protection.schema)
    with Evaluator(rules, types, where=table.name) as evaluator:
        kept = [values.fill_null(False).to_numpy(zero_copy_only=False) for values in evaluator.values(rows)]
    return rules, rows, [rule for rule, holds in zip(rules, kept, strict=True) if not holds.any()]


def _check_draws(known: Schedule, table: Table, draws: "_Draws") -> None:
    """Refuse rules that none of many rows keeps, drawn from the domains."""
    rules, rows, never = _asked_of_draws(known, table, draws)
    if never:
        raise SpecError(_never(table, never[:1]))
    if not rules:
        return
    with RowRules.of(table, known.protection.schema, rules) as asked:
        broken = asked.broken(rows)
    for places, _ in joined(rules):
        if broken[places].any(axis=0).all():
            raise SpecError(_never(table, [rules[place] for place in places]))


def _never(table: Table, rules: list[Expression]) -> str:
    said = " AND ".join(f"({rule})" for rule in rules) if len(rules) > 1 else str(rules[0])
    together = "no row keeps all of these" if len(rules) > 1 else "no row keeps it"
    return (
        f"tables.{table.name}.rules: {said}: {together}, of {DRAWS:,} that were drawn from the domains of its columns. "
        "Correct the domains so that rows can keep it, or take the rule out; text in a regular expression cannot be "
        "made up, and a column that equals an expression is better declared so than ruled."
    )


class _Draws:
    """Rows drawn from domains alone, in which every code is as likely; a column has the same values all the time."""

    def __init__(self, protection: Protection, codecs: Codecs, *, null: Collection[Place] = ()) -> None:
        """The columns `null` have no values."""
        self._protection = protection
        self._codecs = codecs
        self._rng = np.random.default_rng(0)
        self._null = null
        self._drawn: dict[Place, pa.Array] = {}

    def knows(self, table: Table, name: ColumnName) -> bool:
        """Whether the values of a column are drawn as they will be: not of a difference, or of what waits for rows."""
        owner, column = self._found(table, name)
        if column.name in owner.surrogate_columns:
            return column.type.kind is Kind.INTEGER
        if column.computed is not None:
            return self._is_row(column) and all(self.knows(owner, n) for n in column.computed.columns)
        return column.relative_to is None

    def values(self, table: Table, name: ColumnName) -> pa.Array:
        """Values of a column; half of the rows have none that is NULL. What is not known has any value of its type."""
        owner, column = self._found(table, name)
        place = owner.name, column.name
        if place not in self._drawn:
            kind = column.type.arrow
            self._drawn[place] = pa.nulls(DRAWS, kind) if place in self._null else self._values(owner, column.name)
        return self._drawn[place]

    def _is_row(self, column: Column) -> bool:
        """Whether a column is computed from its row and rows above alone."""
        computed, private = column.computed, self._protection.order
        if computed is None or computed.aggregated or not computed.columns:
            return False
        return all(name.table is None or name.table in private for name in computed.columns)

    def _values(self, owner: Table, name: str) -> pa.Array:
        column = owner.column(name)
        if name in owner.surrogate_columns and column.type.kind in (Kind.INTEGER, Kind.TEXT):
            return pa.array(self._rng.integers(1, _KEYS, DRAWS)).cast(column.type.arrow)
        if self._is_row(column):
            rows = {n: self.values(owner, n) for n in stored(column).columns}
            types = {n: values.type for n, values in rows.items()}
            with Evaluator([stored(column)], types, where=f"{owner.name}.{name}") as evaluator:
                return evaluator.values(rows)[0].cast(column.type.arrow)
        codec = None if column.relative_to is not None else self._codecs[owner.name].get(name)
        codec = codec or _codec_of_type(owner, name)
        values = codec.size - (codec.null_code is not None)
        codes = self._rng.integers(0, values, DRAWS)
        codes[DRAWS // 2 :] = self._rng.integers(0, codec.size, DRAWS - DRAWS // 2)
        return codec.decode(codes.astype(np.uint16), self._rng, first_row=0)

    def _found(self, table: Table, name: ColumnName) -> tuple[Table, Column]:
        """The column that a rule of a table names, and its table: of one that a hidden list has, the list's."""
        schema = self._protection.schema
        owner = table if name.table is None else schema.table(name.table)
        listed = listed_columns(self._protection, owner.name).get(name.column)
        if listed is not None:
            owner = schema.table(self._protection.owners[owner.name].table)
        return owner, owner.column(listed or name.column)


class RealRows:
    """Counts the real rows of a table that break its rules over one row, batch by batch."""

    def __init__(self, protection: Protection, table: Table, suggested: Suggested) -> None:
        self._table = table
        self._suggested = suggested
        self._rules = RowRules.of(table, protection.schema, table.own_checks) if table.own_checks else None
        self._broken = np.zeros(len(table.own_checks), np.int64)

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at some rows."""
        if self._rules is not None:
            self._broken += self._rules.broken(_named(self._rules, batch)).sum(axis=1)

    def check(self) -> None:
        """Refuse rules that rows break. Raises DataError that says how many."""
        if self._rules is not None:
            self._rules.close()
            refuse_broken(self._table, self._rules.rules, self._broken, self._suggested)


def _named(rules: RowRules, batch: pa.RecordBatch) -> dict[ColumnName, pa.Array]:
    return {name: batch.column(name.column) for name in rules.columns}


def refuse_broken(table: Table, rules: tuple[Expression, ...], broken: NDArray[np.int64], suggested: Suggested) -> None:
    """Refuse rules that some rows break. Raises DataError that says how many.

    A rule that was suggested by the data may have exceptions: the publisher is told how many, and keeps it or not.
    """
    lines = []
    for rule, count in zip(rules, broken, strict=True):
        line = f"{table.name}: {count:,} rows break the rule {rule}"
        if count and (table.name, rule.sql) in suggested:
            _logger.warning("%s. In synthetic rows it always holds. This number is for you alone.", line)
        elif count:
            lines.append(line)
    if lines:
        raise DataError(
            f"{'; '.join(lines)}. Repair these rows, or take the rule out of `rules` under {table.name} in the spec: "
            "it is then neither kept nor published."
        )


def columns_for_rules_above(protection: Protection, table: str) -> set[str]:
    """The columns of a table whose values rules over rows above need, its own rules or those of tables below."""
    needed: set[str] = set()
    for below in protection.order:
        if below == table or table in protection.above(below):
            for name in _names_above(protection.schema.table(below)):
                if (name.table or below) == table:
                    needed.add(name.column)
    return needed


Broken = Mapping[str, NDArray[np.int64]]
"""How many rows of each table break each of its rules over rows above."""


def broken_above(
    protection: Protection, values: Mapping[str, Mapping[str, pa.Array]], rows: CodedDatabase
) -> dict[str, NDArray[np.int64]]:
    """How many rows break rules over rows above. `values` are those of the rows, of the columns that rules name."""
    broken = {}
    for table in (protection.schema.table(name) for name in protection.order):
        rules = _rules_above(table)
        if rules:
            named = {name: _looked_up(protection, table.name, name, values, rows) for name in _names_above(table)}
            with RowRules.of(table, protection.schema, rules) as asked:
                broken[table.name] = asked.broken(named).sum(axis=1)
    return broken


def check_rules_above(protection: Protection, broken: Iterable[Broken], suggested: Suggested) -> None:
    """Refuse rules over rows above that real rows break, given how many do in each part."""
    parts = list(broken)
    for table in (protection.schema.table(name) for name in protection.order):
        rules = _rules_above(table)
        if rules:
            refuse_broken(table, rules, np.sum([part[table.name] for part in parts], axis=0), suggested)


def _looked_up(
    protection: Protection,
    table: str,
    name: ColumnName,
    values: Mapping[str, Mapping[str, pa.Array]],
    rows: CodedDatabase,
) -> pa.Array:
    """The values of a column for each row of a table, of the row or of one above; NULL where there is no such row."""
    there = name.table or table
    if there == table:
        return values[there][name.column]
    owners = (rows[t].keys[key_name(t, protection.owners[t])] for t in protection.up_to(table, there))
    above = rows_led_to(np.arange(len(rows[table].entities)), owners)
    return values[there][name.column].take(pa.array(above, mask=above < 0))


def _rules_above(table: Table) -> tuple[Expression, ...]:
    """The rules that look at rows above, too."""
    return tuple(rule for rule in table.checks if rule not in table.own_checks)


def _names_above(table: Table) -> Iterator[ColumnName]:
    """The columns that rules over rows above name."""
    yield from dict.fromkeys(name for rule in _rules_above(table) for name in rule.columns)
