"""Ctrl-C and SIGTERM become a KeyboardInterrupt that gets through.

Python raises it wherever the program happens to be. Where that is a destructor, a callback of a weak reference (each
import has one) or a library that catches everything, the exception is dropped and the program would work on. So it
is raised again, several times a second, until the program says that it has arrived.
"""

import signal
import sys
from types import FrameType

AGAIN = 0.2
"""Seconds after which a lost interrupt is raised again."""


class Interrupt:
    """What came, if anything did; listens from its birth."""

    def __init__(self) -> None:
        self.number: int | None = None
        sys.unraisablehook = _unraisable
        signal.signal(signal.SIGTERM, self._stop)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._stop)
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, self._again)

    def arrived(self) -> None:
        """Raise it no more."""
        _every(0)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        first = self.number is None
        self.number = number
        if first:
            _every(AGAIN)
            raise KeyboardInterrupt
        self._again(number, frame)

    def _again(self, _number: int, _frame: FrameType | None) -> None:
        if sys.exception() is None:  # else it is on its way, and what is cleaned up meanwhile shall not be disturbed
            raise KeyboardInterrupt


def _every(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)


def _unraisable(dropped: "sys.UnraisableHookArgs") -> None:
    """Say nothing of a dropped interrupt, since it comes again."""
    if not issubclass(dropped.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
