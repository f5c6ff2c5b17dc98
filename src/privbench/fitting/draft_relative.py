"""Which columns of a drafted spec are better coded as differences, by the data: those that lie close to another column.

A column is coded against the base from which its differences spread least, where that is at most a quarter of how far
its own values spread; otherwise it keeps its absolute values. It reads private values: what it says is marked as taken
from the data.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.grid import whole_numbers
from privbench.encode.keys import MISSING, KeyIndex, rows_led_to
from privbench.encode.relative import differences
from privbench.encode.suggest import suggest_differences
from privbench.errors import DataError
from privbench.io.base import Source, read_whole
from privbench.rules.candidates import relative_candidates
from privbench.schema.domain import Origin
from privbench.schema.relative import Base, base_words, comparable
from privbench.schema.table_spec import ColumnSpec, TableSpec
from privbench.schema.tables import Place
from privbench.schema.types import difference_type
from privbench.schema.unit import Protection

Tell = Callable[[Place, str], None]
"""Takes a note on a column that is for the publisher alone: how many rows disagree with what was found."""

NARROW = 0.25
"""Differences that spread no more than this part of the values are learnt better than the values (decision 0034)."""
ENDS = (0.05, 0.95)
"""Between these quantiles lies what counts as the spread."""
MOST_UNKNOWN = 0.05
"""Share of values without a base, from which on a base is of no use: such values are not restored well."""
FEWEST = 20
"""Values below which nothing is suggested: any few lie close to each other."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Close:
    """A column that lies close to a base."""

    column: str
    base: Base
    spread: float
    values: pa.Array
    """The differences."""


def with_relative(
    source: Source,
    protection: Protection,
    tables: Mapping[str, TableSpec],
    *,
    entities: int,
    tell: Tell,
) -> dict[str, TableSpec]:
    """The tables of a drafted spec with `relative_to` where it pays. `tell` hears how many rows come before their base.

    Only columns whose domain was taken from the data are looked at.
    """
    reader = _Reader(source, protection)
    made = dict(tables)
    for name in protection.order:
        wanted = [c for c in protection.attributes(name) if _is_free(tables[name].columns[c])]
        close = [c for column in wanted for c in _close_bases(reader, protection, name, column)]
        columns = dict(tables[name].columns)
        for chosen in _without_circles(close):
            where, kind = f"{name}.{chosen.column}", protection.schema.table(name).column(chosen.column).type
            domain = suggest_differences(where, difference_type(kind), chosen.values, entities=entities)
            words = base_words(protection, name, chosen.base)
            update = {"relative_to": words, "domain": domain}
            columns[chosen.column] = columns[chosen.column].model_copy(update=update)
            tell((name, chosen.column), _told(chosen, words))
        made[name] = tables[name].model_copy(update={"columns": columns})
    return made


def _is_free(column: ColumnSpec) -> bool:
    """Whether nothing else is said of a column whose domain was taken from the data."""
    return column.origin is Origin.DATA and column.determined_by is None


def _told(chosen: _Close, words: str) -> str:
    numbers = chosen.values.drop_null().to_numpy(zero_copy_only=False)
    before = int((numbers < 0).sum())
    return f"{before:,} of {len(numbers):,} values lie before {words} (for you alone: not published)"


def _close_bases(reader: "_Reader", protection: Protection, table: str, column: str) -> Iterator[_Close]:
    candidates = list(relative_candidates(protection, table, column))
    if not candidates:
        return
    column_there = protection.schema.table(table).column(column)
    kind, values = column_there.type, reader.column(table, column)
    numbers = whole_numbers(kind, values.drop_null())
    if len(numbers) < FEWEST or not (own := _spread(numbers)):
        return
    for base in candidates:
        base_column = protection.schema.table(base.table).column(base.column)
        base_type = base_column.type
        bases = reader.column(table, base.column, above=base.table)
        known = np.asarray((values.is_valid().to_numpy(False)) & (bases.is_valid().to_numpy(False)))
        if known.sum() < (1 - MOST_UNKNOWN) * len(numbers):
            continue
        mask = pa.array(known)
        made = differences(kind, values.filter(mask), base_type, bases.filter(mask))
        steps = whole_numbers(difference_type(kind), made)
        is_later = float(np.median(steps)) > 0 or (np.median(steps) == 0 and steps.mean() >= 0)
        spread = _spread(steps)
        one_way = base.table != table or not comparable(base_column, column_there)  # else the later of two is relative
        if spread <= NARROW * own and (is_later or one_way):
            yield _Close(column=column, base=base, spread=spread, values=made)


def _without_circles(close: list[_Close]) -> list[_Close]:
    """For each column the closest base that does not lead back to it."""
    chosen: dict[str, _Close] = {}
    for candidate in sorted(close, key=lambda c: c.spread):
        if candidate.column not in chosen and not _leads_to(candidate, chosen):
            chosen[candidate.column] = candidate
    return list(chosen.values())


def _leads_to(candidate: _Close, chosen: Mapping[str, _Close]) -> bool:
    """Whether the base of a candidate is itself, in the same row, worked out from the candidate's column."""
    base, seen = candidate.base, [candidate.base]
    while base.column in chosen and chosen[base.column].base.table == candidate.base.table:
        base = chosen[base.column].base
        if base in seen:
            break
        seen.append(base)
    return any(b.column == candidate.column for b in seen if b.table == candidate.base.table)


def _spread(numbers: NDArray[np.int64]) -> float:
    low, high = np.quantile(numbers, ENDS)
    return float(high - low)


class _Reader:
    """Reads columns of tables and of the rows above them, each once."""

    def __init__(self, source: Source, protection: Protection) -> None:
        self._source = source
        self._protection = protection
        self._read: dict[Place, pa.Array] = {}
        self._owners: dict[str, NDArray[np.int64]] = {}

    def column(self, table: str, column: str, *, above: str | None = None) -> pa.Array:
        """The values of a column of a table's rows, or of the rows above them."""
        if above is None or above == table:
            if (table, column) not in self._read:
                wanted = self._protection.schema.table(table).column(column)
                self._read[table, column] = read_whole(self._source, table, [wanted]).column(0).combine_chunks()
            return self._read[table, column]
        owners = [self._rows(below) for below in self._protection.up_to(table, above)]
        rows = rows_led_to(np.arange(len(owners[0])), owners)
        return self.column(above, column).take(pa.array(np.maximum(rows, 0), mask=rows < 0))

    def _rows(self, table: str) -> NDArray[np.int64]:
        """The owner of each row; -1 where there is none."""
        if table not in self._owners:
            key = self._protection.owners[table]
            target = [pa.chunked_array([self.column(key.table, c)]) for c in key.references]
            own = [pa.chunked_array([self.column(table, c)]) for c in key.columns]
            try:
                found = KeyIndex(f"{key.table}({', '.join(key.references)})", target, nullable=True).find(own)
            except DataError:  # what is wrong with keys is told by `fit`
                found = np.full(len(own[0]), MISSING, np.int64)
            self._owners[table] = np.maximum(found, -1)
        return self._owners[table]
