"""Threads: they have ended when who takes their results has, however it ended."""

from collections.abc import Generator, Iterator
from contextlib import closing
from threading import Event

import pytest

from privbench.threads import ahead, in_order


@pytest.mark.parametrize("where", ["taking", "making"])
def test_what_runs_ahead_is_closed_though_a_traceback_keeps_it(where: str) -> None:
    """An interrupt between two items: work files are removed next, which no thread may be writing any more."""
    ended = []

    def numbers() -> Generator[int, None, None]:
        try:
            yield 1
            if where == "making":
                raise KeyboardInterrupt
            yield 2
        finally:
            ended.append(True)

    def take(items: Generator[int, None, None]) -> None:
        with closing(items):
            next(items)
            if where == "taking":
                raise KeyboardInterrupt
            next(items)

    source = numbers()  # held, as a traceback would hold it
    with pytest.raises(KeyboardInterrupt):
        take(ahead(source))
    assert ended


@pytest.mark.parametrize("spare", [0, 2])
def test_items_are_taken_only_a_few_ahead_of_results(spare: int) -> None:
    taken = []

    def items() -> Iterator[int]:
        for item in range(100):
            taken.append(item)
            yield item

    with closing(in_order(str, items(), threads=3, spare=spare)) as results:
        assert [next(results) for _ in range(5)] == ["0", "1", "2", "3", "4"]
        assert len(taken) == 5 + 3 + spare


def test_closing_waits_for_work_that_is_begun_and_begins_no_other() -> None:
    begun, ended, go_on = [], [], Event()

    def work(item: int) -> int:
        begun.append(item)
        if item:
            go_on.wait()
        ended.append(item)
        return item

    results = in_order(work, range(4), threads=1, spare=2)
    assert next(results) == 0
    go_on.set()
    results.close()
    assert begun == ended
    assert list(results) == []


def test_an_error_comes_where_its_item_would() -> None:
    results = in_order(lambda item: 1 // item, [1, 0, 1], threads=2)
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert list(results) == []
