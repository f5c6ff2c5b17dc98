"""What is being done, how far it is and how long it will still take: a line on the terminal that is written over.

Where stderr is no terminal, such as in a log, a plain line comes every half minute, and none of a command that takes
less. Both show shares and times, never how many rows there are: what a publisher sees of their own data on the screen
is theirs, but a log may travel.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from typing import TextIO

from privbench.io.names import terminal
from privbench.methods.method import Progress, silent

REDRAWN, LOGGED = 0.25, 30.0
"""Seconds between two states of the line, and between two lines of a log."""
FIRST_GUESS = 3.0
"""Seconds into a step before which the time left is not guessed."""
LEAST_DONE = 0.02
"""The share of a step before which the time left is not guessed."""
NEW_WEIGHT = 0.3
"""How much the newest guess of the end counts beside those before it, so that the time left does not jump."""
_CLEAR = "\r\x1b[K"


@dataclass(slots=True, kw_only=True)
class Step:
    """One step of a command: when it began, how far it is, and when it will probably end."""

    what: str
    of: int
    began: float
    share: float = 0.0
    end: float | None = None

    def is_same(self, what: str, done: int, of: int) -> bool:
        """Whether a report is of this step: the same verb, perhaps of the next table, and no way back."""
        return what.partition(" ")[0] == self.what.partition(" ")[0] and of == self.of and done / of >= self.share

    def advance(self, what: str, done: int, of: int, now: float) -> None:
        """Take a report."""
        self.what = what
        share = min(done / of, 1.0)
        if share > self.share:
            guess = self.began + (now - self.began) / share
            self.end = guess if self.end is None else self.end + NEW_WEIGHT * (guess - self.end)
            self.share = share

    def text(self, now: float) -> str:
        """The step in one line.

        >>> Step(what="learning person", of=4, began=0.0, share=0.5, end=80.0).text(40.0)
        'learning person: 50 %, 40 s, about 40 s left'
        >>> Step(what="checking keys", of=1, began=0.0).text(75.0)
        'checking keys: 1:15 min'
        """
        gone = now - self.began
        parts = [f"{self.share:.0%}".replace("%", " %")] if self.of > 1 else []
        parts.append(duration(gone))
        if self.end is not None and self.end > now and gone >= FIRST_GUESS and self.share >= LEAST_DONE:
            parts.append(f"about {duration(_rounded(self.end - now))} left")
        return f"{terminal(self.what)}: {', '.join(parts)}"


@dataclass(slots=True, kw_only=True)
class Line:
    """The step that runs, shown now and then by a thread of its own: also while the step says nothing."""

    stream: TextIO
    over: bool
    """Whether a line is written over the one before."""
    clock: Callable[[], float] = time.monotonic
    _step: Step | None = None
    _stopped: threading.Event = field(default_factory=threading.Event)

    def report(self, what: str, done: int, of: int) -> None:
        """Take a report of progress; see `Progress`."""
        now, step = self.clock(), self._step
        if step is None or not step.is_same(what, done, max(of, 1)):
            step = Step(what=what, of=max(of, 1), began=now)
        step.advance(what, done, max(of, 1), now)
        self._step = step

    def show(self) -> None:
        """Show the step that runs."""
        if self._step is not None:
            text = self._step.text(self.clock())
            self.stream.write(f"{_CLEAR}{text[: _columns()]}" if self.over else f"{text}\n")
            self.stream.flush()

    def run(self) -> None:
        """Show it until it is stopped."""
        while not self._stopped.wait(REDRAWN if self.over else LOGGED):
            self.show()

    def stop(self) -> None:
        """Show no more, and leave an empty line."""
        self._stopped.set()
        if self.over:
            print(_CLEAR, end="", file=self.stream, flush=True)


@contextmanager
def progress_line(*, quiet: bool = False) -> Iterator[Progress]:
    """Report progress on stderr."""
    if quiet:
        yield silent
        return
    line = Line(stream=sys.stderr, over=sys.stderr.isatty())
    thread = threading.Thread(target=line.run, daemon=True)
    thread.start()
    try:
        yield line.report
    finally:
        line.stop()
        thread.join()


def duration(seconds: float) -> str:
    """A time to read.

    >>> duration(7.6), duration(75), duration(7322)
    ('8 s', '1:15 min', '2:02 h')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60}:{whole % 60:02} min" if whole < 3600 else f"{whole // 3600}:{whole // 60 % 60:02} h"


def _rounded(seconds: float) -> int:
    """A time that nobody knows exactly, to about a tenth.

    >>> [_rounded(s) for s in (2.2, 23, 340)]
    [3, 25, 360]
    """
    step = next((step for limit, step in ((10, 1), (60, 5), (600, 30)) if seconds < limit), 60)
    return ceil(seconds / step) * step


def _columns() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns - 1
