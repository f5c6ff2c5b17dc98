"""Find in the data which column of a row is never above another: hits and at bats, rented and returned.

Pairs are of one kind: numbers of one row; dates, times and years of one row or of it and a row above. They are tried on
a sample and then on all rows; a rule may have few exceptions, as real data do. One that would hold anyway,
because one column lies above the other whatever the row, says nothing and is left out, as is one that follows from two
others, or that the table has already: what the schema says needs no condition.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from privbench.deferred import exp
from privbench.fitting.tables_in_sql import Join, Seen, TablesInSql, needed
from privbench.schema.expression import DIALECT, Expression, expression_of
from privbench.schema.tables import Table
from privbench.schema.types import Kind
from privbench.schema.unit import Protection

BROKEN_BY_CHANCE = 0.1
"""A rule is worth stating if at least this share of rows would break it with the other column of another row."""
FEWEST_ROWS = 200
"""Rows in which both columns have a value: fewer say little about the next one."""
EXCEPTIONS, OF_LIST = 0.001, 0.005
"""The share of rows that may break a rule, which will hold in all synthetic rows; of hidden lists, which have rows of
several tables, more of them: a player may be paid after the last game, and yet bats before it."""
FEWEST_STRICT = 1_000
"""Rows without a single tie that make a rule strict."""
YEARS = (1500, 2200)
"""A column of whole numbers between these may hold years."""
MOST_RULES = 12
"""Of one table, those first that chance breaks most often."""
_KINDS = ((Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT), (Kind.DATE, Kind.TIMESTAMP))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRule:
    """A rule that hardly any row of a table breaks, and how many do."""

    table: str
    expression: Expression
    breaking: int


def find_rules(tables: TablesInSql, protection: Protection) -> Iterator[FoundRule]:
    """The rules of private tables."""
    for name in protection.order:
        table = protection.schema.table(name)
        own = [tables.seen(table, table.column(c), "r", own=True) for c in protection.attributes(name)]
        joins, above = tables.above(protection, table, public=False)
        pairs = [*_pairs(own, above), *_year_pairs(tables, table, own, above)]
        stated = set(_stated(table))
        for rule in (r for r in _reduced(_held(tables, table, joins, pairs)) if not stated & r.at_least_as_strong):
            comparison = exp.LT if rule.strict else exp.LTE
            written = comparison(this=rule.low.written.copy(), expression=rule.high.written.copy())
            yield FoundRule(table=name, expression=expression_of(written, where=name), breaking=rule.breaking)


Pair = tuple[Seen, Seen]
_Order = tuple[str, str, bool]
"""What is below, what is above, and whether they are never equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    low: Seen
    high: Seen
    strict: bool
    breaking: int

    @property
    def at_least_as_strong(self) -> set[_Order]:
        """The orders from which it follows."""
        low, high = (seen.written.sql(DIALECT) for seen in (self.low, self.high))
        return {(low, high, True), (low, high, self.strict)}


def _stated(table: Table) -> Iterator[_Order]:
    """The orders of columns that rules of a table state."""
    for check in table.checks:
        terms = check.tree.flatten() if isinstance(check.tree, exp.And) else [check.tree]
        for term in (t.unnest() for t in terms):
            strict = isinstance(term, exp.LT | exp.GT)
            if isinstance(term, exp.LT | exp.LTE):
                yield term.left.sql(DIALECT), term.right.sql(DIALECT), strict
            elif isinstance(term, exp.GT | exp.GTE):
                yield term.right.sql(DIALECT), term.left.sql(DIALECT), strict


def _pairs(own: Sequence[Seen], above: Sequence[Seen]) -> Iterator[Pair]:
    for kinds in _KINDS:
        mine = [s for s in own if s.type.kind in kinds]
        yield from permutations(mine, 2)
        if kinds == _KINDS[1]:
            for other in (s for s in above if s.type.kind in kinds):
                yield from ((other, s) for s in mine)
                yield from ((s, other) for s in mine)


def _year_pairs(tables: TablesInSql, table: Table, own: Sequence[Seen], above: Sequence[Seen]) -> Iterator[Pair]:
    """Columns that hold years against the years of dates, and against years of the rows above."""
    numbers = [s for s in own if s.type.kind is Kind.INTEGER]
    if not numbers:
        return
    values = tables.numbers([s.sql for s in numbers], table.name, [])
    inside = (values >= YEARS[0]) & (values <= YEARS[1])
    is_year = (inside | np.isnan(values)).all(axis=0) & inside.any(axis=0)
    years = [numbers[i] for i in np.flatnonzero(is_year)]
    dates = [s for s in (*own, *above) if s.type.kind in _KINDS[1]]
    for year in years:
        for other in map(_year_of, dates):
            yield from permutations((year, other), 2)
        for other in (s for s in above if s.type == year.type and "year" in s.column.lower()):
            yield from permutations((year, other), 2)


def _year_of(date: Seen) -> Seen:
    return replace(date, sql=f"YEAR({date.sql})", is_year=True)


def _held(tables: TablesInSql, table: Table, joins: Sequence[Join], pairs: Sequence[Pair]) -> list[_Rule]:
    """The pairs that keep their order in all rows, those first that chance would break most often."""
    likely = _likely(tables, table, joins, pairs)
    if not likely:
        return []
    orders = (f"{low.sql} {sign} {high.sql}" for low, high in likely for sign in (">", "=", "<"))
    counts = [f"COUNT(*) FILTER (WHERE {order})" for order in orders]
    sure = tables.ask(counts, table.name, needed(joins, " ".join(counts)))
    return [
        _Rule(low=low, high=high, strict=not equal and below >= FEWEST_STRICT, breaking=above)
        for (low, high), above, equal, below in zip(likely, sure[::3], sure[1::3], sure[2::3], strict=True)
        if equal + below >= FEWEST_ROWS and above <= _exceptions(table) * (equal + below)
    ]


def _exceptions(table: Table) -> float:
    return OF_LIST if table.list_of else EXCEPTIONS


def _likely(tables: TablesInSql, table: Table, joins: Sequence[Join], pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs that keep their order in a sample, those first that break it most often with a value of the row before.

    A wide table has tens of thousands of pairs, so they are compared outside of SQL.
    """
    names = list(dict.fromkeys(seen.sql for pair in pairs for seen in pair))
    if not names:
        return []
    values = tables.numbers(names, table.name, joins)
    at = {name: i for i, name in enumerate(names)}
    by_low: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_low.setdefault(pair[0].sql, []).append(pair)
    broken_by_chance: list[tuple[float, Pair]] = []
    for low, of in by_low.items():
        lows, highs = values[:, [at[low]]], values[:, [at[high.sql] for _, high in of]]
        broken = (lows > highs).sum(axis=0)
        by_chance = (lows[1:] > highs[:-1]).sum(axis=0)
        rows = (~np.isnan(highs[:-1])).sum(axis=0)
        shares = by_chance / np.maximum(rows, 1)
        kept = np.flatnonzero((broken <= 2 * _exceptions(table) * len(values)) & (shares > BROKEN_BY_CHANCE))
        broken_by_chance += [(float(shares[i]), of[i]) for i in kept]
    ranked = sorted(broken_by_chance, key=lambda found: -found[0])
    return [pair for _, pair in ranked[: 4 * MOST_RULES]]


def _reduced(rules: Sequence[_Rule]) -> list[_Rule]:
    """Without those that follow from two others."""
    held = {(rule.low.sql, rule.high.sql) for rule in rules}
    middles = {name for pair in held for name in pair}

    def follows(rule: _Rule) -> bool:
        low, high = rule.low.sql, rule.high.sql
        return any((low, m) in held and (m, high) in held and (m, low) not in held for m in middles)

    return [rule for rule in rules if not follows(rule)][:MOST_RULES]
