"""Threads of a generation: they have ended when who takes their results has, however it ended."""

from collections.abc import Generator
from contextlib import closing

import pytest

from privbench.generation.threads import ahead


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
