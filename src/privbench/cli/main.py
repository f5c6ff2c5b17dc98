"""Where the program starts: signals and errors become one line and an exit code; the commands are loaded inside.

This module imports nothing heavy, so that an interrupt finds its handler from the first moment. Exit 0: good;
1: a check failed; 2: wrong use or bad input; 70: a mistake in PrivBench; 130: interrupted (Ctrl-C); 143: terminated.
With `--json` every error is printed on stdout as {"error": {"class": .., "message": .., "exit": ..}}, and nothing else
is. What Python says of a mistake of ours goes to a file: it may quote private values.
"""

import atexit
import gc
import os
import signal
import sys
from types import FrameType

from privbench.errors import PrivBenchError

NOTHING_LEFT = (
    "nothing half-written was left behind. What was finished before stays, and `privbench budget` shows what was spent."
)
MISTAKE = 70
"""The exit code of a mistake of ours, as sysexits.h has it."""
AGAIN = 0.2
"""Seconds after which a lost interrupt is raised again."""


class Interrupt:
    """Makes a KeyboardInterrupt of Ctrl-C and SIGTERM that gets through; `number` is the signal that came.

    Python raises it wherever the program happens to be. Where that is a destructor, a callback of a weak reference
    (each import has one) or a library that catches everything, the exception is dropped and the program would work on.
    So it is raised again, several times a second, until the program says that it has arrived.
    """

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


def main() -> None:
    """Run the command line."""
    interrupt = Interrupt()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads spin from the start; those of a fit are its own
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # else it asks all packages whether they are one
    gc.set_threshold(500_000, 20, 100)  # what is loaded is no garbage: to look through it takes long and finds nothing
    atexit.register(_leave)
    try:
        from privbench.cli.commands import run

        run()
    except SystemExit:
        raise
    except BaseException as error:
        # A signal inside a C library may surface as any error.
        if interrupt.number or isinstance(error, KeyboardInterrupt):
            notes = _notes(error) or NOTHING_LEFT
            _fail("interrupted", "Interrupted", notes, code=128 + (interrupt.number or signal.SIGINT))
        if isinstance(error, PrivBenchError):
            _fail("error", type(error).__name__, f"{error} {_notes(error)}".rstrip(), code=2)
        _fail_if_usage(error)
        _fail("internal error", "InternalError", _internal(error), code=MISTAKE)
    finally:
        interrupt.arrived()


def _notes(error: BaseException) -> str:
    return " ".join(getattr(error, "__notes__", ()))


def _internal(error: BaseException) -> str:
    """What to say of a mistake of ours: where it is, what is left, and where its details are kept."""
    from privbench.mistakes import mistake

    return f"{mistake(error)} {_notes(error) or NOTHING_LEFT} {_kept_details(error)}"


def _kept_details(error: BaseException) -> str:
    """Write what Python says of an error to a file that nobody else can read; say where."""
    import tempfile
    import traceback

    from privbench import __version__

    head = "Keep this file private: what Python says of an error may quote values of your data.\n"
    versions = f"privbench {__version__}, Python {sys.version.split()[0]}\n\n"
    try:
        handle, path = tempfile.mkstemp(prefix="privbench-error-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(head + versions + "".join(traceback.format_exception(error)))
    except OSError as failed:
        return f"Please report it. Its details could not be kept ({failed.strerror})."
    return f"Please report it; details for that are in {path}. Look through them first: they may quote private values."


def _leave() -> None:
    """Let all that is loaded go with the process: to look through it for garbage once more takes a tenth of a second.

    DuckDB complains on stderr of what is not freed. Where it is loaded, Python ends in its usual way.
    """
    if "duckdb" not in sys.modules:
        gc.freeze()


def _fail(word: str, kind: str, message: str, *, code: int) -> None:
    """Tell an error, to people on stderr or to programs on stdout, and end the program."""
    if _wants_json():
        from privbench.cli.output import error_json, print_json

        print_json(error_json(kind, message, code))
    elif word == "interrupted":  # what was being loaded may be what was interrupted
        print(f"{word}: {message}", file=sys.stderr)
    else:
        from privbench.cli.output import printable

        print(f"{word}: {printable(message)}", file=sys.stderr)
    sys.exit(code)


def _fail_if_usage(error: BaseException) -> None:
    """Tell of wrong use: click shows how the command is called."""
    from click import ClickException

    if isinstance(error, ClickException):
        if not _wants_json():
            error.show()
            sys.exit(2)
        _fail("error", type(error).__name__, error.format_message(), code=2)


def _wants_json() -> bool:
    return "--json" in sys.argv[1:]
