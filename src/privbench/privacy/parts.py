"""The private database in parts: each has the rows of some entities, so that all but in-degrees is local to a part.

What is counted is a sum over entities, so what counters say of their parts adds up to what the database says. Where the
parts are, in memory, in files or on other machines, is the business of `Parts`; the engine maps work over them.
"""

from collections.abc import Callable, Generator, Sequence
from typing import NoReturn, Protocol, TypeVar

from privbench.encode.coded import CodedDatabase
from privbench.privacy.part import Part, RawColumns
from privbench.privacy.part_counter import PartCounter
from privbench.threads import cores, in_order

T = TypeVar("T")


class Parts(Protocol):
    """All parts of a private database, wherever they are."""

    def __len__(self) -> int:
        """How many parts there are."""
        ...

    def map(self, work: Callable[[PartCounter], T]) -> Generator[T, None, None]:
        """What some work gives for each part, in any order. Work can be pickled, parts cannot."""
        ...

    def rewrite(self, work: Callable[[Part], Part]) -> None:
        """Put another part in the place of each."""
        ...


class MemoryParts:
    """Parts in memory, counted by threads; what counters remember they keep."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._counters = [PartCounter(part) for part in parts]

    def __repr__(self) -> str:
        return "<private tables>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private data cannot be pickled")

    def __len__(self) -> int:
        return len(self._counters)

    def map(self, work: Callable[[PartCounter], T]) -> Generator[T, None, None]:
        """What some work gives for each part."""
        if len(self._counters) == 1:
            yield work(self._counters[0])
            return
        yield from in_order(work, self._counters, threads=cores())

    def rewrite(self, work: Callable[[Part], Part]) -> None:
        """Put another part in the place of each as soon as it is there."""

        def renew(place: int) -> None:
            self._counters[place] = PartCounter(work(self._counters[place].part))

        list(in_order(renew, range(len(self._counters)), threads=cores()))


def one_part(tables: CodedDatabase, raw: RawColumns | None = None) -> MemoryParts:
    """A database as a single part."""
    return MemoryParts([Part(tables=tables, raw=raw or {})])
