"""The methods by name: those of PrivBench, and those that other packages offer by the entry point `privbench.methods`.

An entry point names a `Method`; it is loaded when its name is asked for.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from privbench.errors import SpecError
from privbench.methods.method import Method

GROUP = "privbench.methods"
DEFAULT = "tree"
BUILT_IN: dict[str, str | Method[Any]] = {
    DEFAULT: "privbench.methods.tree.method:TREE",
    "paper": "privbench.methods.paper.method:PAPER",
    "independent": "privbench.methods.independent:INDEPENDENT",
}
"""The methods of PrivBench, or where they are, as an entry point says it."""


def method_names() -> tuple[str, ...]:
    """The names of all methods, those of PrivBench first."""
    return (*BUILT_IN, *(name for name in sorted(_offered()) if name not in BUILT_IN))


def find_method(name: str) -> Method[Any]:
    """The method of that name; SpecError if there is none, or if what another package offers is no method."""
    if name in BUILT_IN:
        method = BUILT_IN[name]
        return _loaded(EntryPoint(name, method, GROUP)) if isinstance(method, str) else method
    if name not in _offered():
        raise SpecError(f"method {name!r}: there is no such method. Methods: {', '.join(method_names())}.")
    return _loaded(_offered()[name])


@cache
def _loaded(point: EntryPoint) -> Method[Any]:
    try:
        method = point.load()
    except Exception as error:  # whatever the other package raises
        raise SpecError(
            f"method {point.name!r}: {point.value} cannot be loaded ({type(error).__name__}: {error}). Repair the "
            "package that offers it, or remove it."
        ) from error
    if not isinstance(method, Method) or method.name != point.name:
        raise SpecError(f"method {point.name!r}: {point.value} is not a method of that name.")
    return method


def _offered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}
