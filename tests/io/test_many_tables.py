"""Databases of hundreds of tables: the work grows with the number of tables, not with its square."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from privbench.io.catalogue import RawTable, build_schema
from privbench.io.names import Names, find_name
from privbench.io.render import Dialect, plan, render_ddl
from privbench.schema.tables import Column, ForeignKey, Index, Schema
from privbench.schema.types import parse_type

INTEGER = parse_type("INTEGER")


def steps(work: Callable[[], object]) -> int:
    """Count the lines of Python that run, each turn of a loop included."""
    count = 0

    def trace(_frame: FrameType, _event: str, _arg: Any) -> Callable[..., Any]:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def chain(tables: int, *, closed: bool = False) -> list[RawTable]:
    """Each table references the one after it, spelled in another case; the last the first, if closed."""
    return [
        RawTable(
            name=f"t{i}",
            columns=[Column(name=c, type=INTEGER) for c in ("id", "code", "next")],
            primary_key=("ID",),
            foreign_keys=[ForeignKey(columns=("Next",), table=f"T{(i + 1) % tables}", references=("CODE",))]
            if closed or i + 1 < tables
            else [],
            indexes=[Index(name=f"i{i}", columns=("code",), unique=True)],
        )
        for i in range(tables)
    ]


@pytest.mark.parametrize("closed", [False, True])
def test_reading_and_writing_500_tables_takes_four_times_the_work_of_125(closed: bool) -> None:
    def work(tables: int) -> int:
        raw = chain(tables, closed=closed)
        return steps(lambda: [render_ddl(build_schema(raw), dialect) for dialect in Dialect])

    assert work(500) < 4.5 * work(125)


def test_the_counter_sees_a_square() -> None:
    def work(size: int) -> int:
        return steps(lambda: [find_name("x", (str(i) for i in range(size))) for _ in range(size)])

    assert work(60) > 9 * work(15)


def test_referenced_tables_come_first_and_a_cycle_is_broken_at_its_first_table() -> None:
    schema = build_schema(chain(4))
    order, late = plan(schema)
    assert [t.name for t in order] == ["t3", "t2", "t1", "t0"]
    assert late == ()
    order, late = plan(build_schema(chain(4, closed=True)))
    assert [t.name for t in order] == ["t0", "t3", "t2", "t1"]
    assert [(name, key.table) for name, key in late] == [("t0", "t1")]


def test_only_the_tables_of_cycles_wait() -> None:
    pair = [RawTable(name=n, columns=[Column(name="id", type=INTEGER)], primary_key=("id",)) for n in "abcd"]
    for user, target in ("ab", "ba", "da"):
        raw = next(t for t in pair if t.name == user)
        raw.foreign_keys.append(ForeignKey(columns=("id",), table=target, references=()))
    order, late = plan(build_schema(pair))
    assert [t.name for t in order] == ["c", "a", "b", "d"]
    assert [name for name, _ in late] == ["a"]


def test_no_table_at_all() -> None:
    assert plan(Schema()) == ((), ())


def test_names_are_found_exactly_or_by_the_only_one_in_another_case() -> None:
    names = Names(["a", "B", "b", "B"])
    assert [names.find(n) for n in ("a", "A", "B", "b", "c")] == ["a", "a", "B", "b", None]
    assert Names(["B", "b", "bB"]).find("BB") == "bB"
    assert Names(["ß", "ss"]).find("SS") is None
