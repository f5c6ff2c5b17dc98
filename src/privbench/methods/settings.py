"""Settings of a method as a spec declares them: checked names and types, shares read exactly."""

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any, TypeVar

from privbench.errors import SpecError

S = TypeVar("S")


def declared_settings(kind: type[S], method: str, declared: Mapping[str, Any]) -> S:
    """Make settings of a kind (a dataclass whose fields have defaults) from what a spec declares under `method`."""
    known = {f.name: type(f.default) for f in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(declared) - set(known))
    if unknown:
        raise SpecError(f"method.{unknown[0]}: the method {method} has no such setting. Settings: {', '.join(known)}.")
    return kind(**{name: _read(name, value, known[name]) for name, value in declared.items()})


def check_share(name: str, share: Fraction) -> None:
    """Refuse a share that leaves nothing for one of two parts."""
    if not 0 < share < 1:
        raise SpecError(f"method.{name} is {float(share)}: it must lie between 0 and 1.")


def _read(name: str, value: Any, kind: type) -> Any:
    if kind is Fraction and isinstance(value, int | float) and not isinstance(value, bool):
        return Fraction(str(value))
    if type(value) is not kind:
        wanted = "float" if kind is Fraction else kind.__name__
        raise SpecError(f"method.{name} is {value!r}: it must be of type {wanted}.")
    return value
