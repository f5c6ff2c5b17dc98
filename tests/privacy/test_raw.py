"""One entity, with all its rows, moves every raw query by at most UNITS in L1, and only by adding."""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privbench.privacy.raw import RawColumn

from privbench.encode.grid import Grid
from privbench.privacy.events import UNITS
from privbench.schema.types import parse_type

VALUES: dict[str, list[Any]] = {
    "INTEGER": [0, 1, -1, 5, 100, 2**31 - 1, -(2**31), None],
    "BIGINT": [0, 7, 2**63 - 1, -(2**63), None],
    "DOUBLE": [0.0, 0.5, -1e300, 1e-300, 0.01, float("nan"), float("inf"), None],
    "DECIMAL(38,2)": [Decimal("0.01"), Decimal(10) ** 35, Decimal(-5), None],
    "DATE": [date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31), None],
    "TIMESTAMP": [datetime(2020, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 1), None],
}
Rows = list[tuple[int, Any]]
"""An entity and a value each."""


def _column(name: str, rows: Rows) -> RawColumn:
    kind = parse_type(name)
    entities = np.unique([e for e, _ in rows], return_inverse=True)[1].astype(np.int64)
    return RawColumn(kind, pa.array([v for _, v in rows], kind.arrow), entities)


def _queries(name: str) -> list[Callable[[RawColumn], dict[int, int]]]:
    grid = Grid(type=parse_type(name), step=Fraction(1))

    def dense(counts: np.ndarray) -> dict[int, int]:
        return dict(enumerate(counts.tolist()))

    return [
        lambda column: dense(column.magnitudes()),
        lambda column: dense(column.steps()),
        lambda column: dense(column.cells(grid, [-(10**6), -3, 0, 1, 50], 10**9, ())),
        lambda column: dense(column.cells(grid, [-3, 0], 3, (0, 2))),
        lambda column: dict(zip(*(a.tolist() for a in column.ticks(grid, -(10**12), 10**12)), strict=True)),
    ]


def _rows() -> st.SearchStrategy[tuple[str, Rows]]:
    def of(name: str) -> st.SearchStrategy[tuple[str, Rows]]:
        row = st.tuples(st.integers(0, 3), st.sampled_from(VALUES[name]))
        return st.tuples(st.just(name), st.lists(row, min_size=1, max_size=9))

    return st.sampled_from(sorted(VALUES)).flatmap(of)


@given(_rows())
@settings(max_examples=60, deadline=None)
def test_an_entity_adds_at_most_its_units(case: tuple[str, Rows]) -> None:
    name, rows = case
    for query in _queries(name):
        whole = query(_column(name, rows))
        for entity in {e for e, _ in rows}:
            left = [row for row in rows if row[0] != entity]
            without = query(_column(name, left)) if left else {}
            added = {cell: whole.get(cell, 0) - without.get(cell, 0) for cell in {*whole, *without}}
            assert all(count >= 0 for count in added.values())
            assert sum(added.values()) <= UNITS


def test_the_bound_is_reached_however_many_rows_an_entity_has() -> None:
    column = _column("INTEGER", [(0, 5)] * 3 + [(1, 0)])
    assert int(column.magnitudes().sum()) == UNITS + 3 * (UNITS // 3)
    assert _column("INTEGER", [(0, 5)] * (2 * UNITS)).magnitudes().sum() == 0  # rows that weigh nothing


def test_queries_count_what_they_say() -> None:
    column = _column("INTEGER", [(0, 0), (1, 100), (2, 30), (3, 7), (4, None), (5, 105)])
    assert {int(i): int(c) // UNITS for i, c in enumerate(column.magnitudes()) if c} == {32: 1, 35: 1, 37: 1, 39: 2}
    assert (column.steps() // UNITS).tolist() == [1, 1, 1, 1]  # 100: hundreds, 30: tens, 105: fives, 7: none
    grid = Grid(type=parse_type("INTEGER"), step=Fraction(1))
    assert (column.cells(grid, [0, 7, 31], 104, (30,)) // UNITS).tolist() == [1, 1, 1]
    places, counts = column.ticks(grid, 1, 104)
    assert (places.tolist(), (counts // UNITS).tolist()) == ([7, 30, 100], [1, 1, 1])


def test_raw_values_do_not_print_and_cannot_be_pickled() -> None:
    column = _column("INTEGER", [(0, 123456)])
    assert "123456" not in repr(column)
    with pytest.raises(TypeError, match="cannot be pickled"):
        column.__reduce__()
