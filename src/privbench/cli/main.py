"""Where the program starts: signals and errors become one line and an exit code; the commands are loaded inside.

This module imports nothing heavy, so that an interrupt finds its handler from the first moment. Exit 0: good;
1: a check failed; 2: wrong use or bad input; 130: interrupted (Ctrl-C); 143: terminated.
"""

import signal
import sys

from privbench.cli.interrupt import Interrupt
from privbench.errors import PrivBenchError

NOTHING_LEFT = "nothing half-written was left behind."


def main() -> None:
    """Run the command line."""
    interrupt = Interrupt()
    try:
        from privbench.cli.commands import run

        run()
    except SystemExit:
        raise
    except BaseException as error:
        # A signal inside a C library may surface as any error.
        if interrupt.number or isinstance(error, KeyboardInterrupt):
            print("interrupted:", *getattr(error, "__notes__", [NOTHING_LEFT]), file=sys.stderr)
            sys.exit(128 + (interrupt.number or signal.SIGINT))
        if isinstance(error, PrivBenchError):
            from privbench.cli.output import printable

            print(f"error: {printable(str(error))}", file=sys.stderr)
            sys.exit(2)
        raise
    finally:
        interrupt.arrived()
