"""What a library need not load when a command starts."""

import sys
from collections.abc import Callable
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any


def without_pandas(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command, run when Arrow has been told that there is no pandas.

    Arrow loads it, if it is installed, as soon as a list becomes an array, only to ask whether that is a Series: a
    quarter of a second. No command has a Series. A method of another package may still import pandas.
    """

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        if "pandas" not in sys.modules:
            hidden = _Hidden()
            sys.meta_path.insert(0, hidden)
            try:
                import pyarrow as pa

                pa.array([0])
            finally:
                sys.meta_path.remove(hidden)
        return command(*arguments, **options)

    return run


class _Hidden(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(self, fullname: str, *_: Any) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)
        return None
