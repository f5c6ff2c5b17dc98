"""Where the program starts: signals and errors become one line and an exit code; the commands are loaded inside.

This module imports nothing heavy, so that an interrupt finds its handler from the first moment. Exit 0: good;
1: a check failed; 2: wrong use or bad input; 130: interrupted (Ctrl-C); 143: terminated.
"""

import signal
import sys
from types import FrameType

from privbench.errors import PrivBenchError

NOTHING_LEFT = "nothing half-written was left behind."


def main() -> None:
    """Run the command line."""
    received = _listen()
    try:
        from privbench.cli.commands import run

        run()
    except SystemExit:
        raise
    except BaseException as error:
        # A signal inside a C library may surface as any error.
        if received or isinstance(error, KeyboardInterrupt):
            print("interrupted:", *getattr(error, "__notes__", [NOTHING_LEFT]), file=sys.stderr)
            sys.exit(128 + (received or [signal.SIGINT])[0])
        if isinstance(error, PrivBenchError):
            from privbench.cli.output import printable

            print(f"error: {printable(str(error))}", file=sys.stderr)
            sys.exit(2)
        raise


def _listen() -> list[int]:
    """Let SIGTERM do what Ctrl-C does; returns the list in which the signals are kept that come."""
    received: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, stop)
    return received
