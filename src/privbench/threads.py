"""Work in several threads, with results in their order: what comes of it does not depend on how many there are.

NumPy and Arrow let other threads work meanwhile, so that coding, counting, drawing and writing keep several cores busy.
Every generator here ends its threads when it is closed or fails. Who leaves a loop over one early, by an error or an
interrupt, closes it (`contextlib.closing`): a traceback would keep it, and its threads, alive.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(make: Callable[[T], U], items: Iterable[T], *, threads: int, spare: int = 0) -> Generator[U, None, None]:
    """What is made of each item, in the order of the items, a few of them ahead of who takes them.

    Items are taken in the caller's thread, one for each thread and `spare` more than are given: no more are in memory.

    >>> list(in_order(abs, [-3, 2, -1], threads=2))
    [3, 2, 1]
    """
    waiting: deque[Future[U]] = deque()
    with pool_of(threads) as pool:
        for item in items:
            waiting.append(pool.submit(make, item))
            if len(waiting) > threads + spare:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def ahead(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """The items of a generator, which is run in a thread of its own, one item ahead of who takes them.

    It is closed in the end, however that comes: a traceback could keep it, and threads of its own, alive.

    >>> list(ahead(item for item in "abc"))
    ['a', 'b', 'c']
    """
    end = object()
    with closing(items), pool_of(1) as pool:
        following = pool.submit(next, items, end)
        while (item := following.result()) is not end:
            following = pool.submit(next, items, end)
            yield item  # type: ignore[misc]


@contextmanager
def pool_of(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that have ended when the block does; what they have not begun by then is not done."""
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
