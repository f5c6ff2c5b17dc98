"""Progress on the terminal: one line that says what is being done, how far it is and how long it will take."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from privbench.io.names import terminal
from privbench.methods.method import Progress as Report
from privbench.methods.method import silent


@contextmanager
def progress_line(*, quiet: bool = False) -> Iterator[Report]:
    """Report progress on stderr; silent where that is no terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield silent
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)
        shown = ""

        def report(what: str, done: int, of: int) -> None:
            nonlocal shown
            if what != shown:
                bar.reset(task, total=of, description=terminal(what))
                shown = what
            bar.update(task, completed=done, total=of)

        yield report
