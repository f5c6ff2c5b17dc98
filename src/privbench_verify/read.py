"""Reading typed values out of JSON: whatever is missing, unknown or of another type is refused with its place.

`where` is the place of a value in the file, for messages.
"""

import json
import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

from privbench_verify.strict_json import holders_by_depth, values_of

Json = Mapping[str, Any]
Place = tuple[str, str]
"""A table and a column."""
T = TypeVar("T")

MAX_RATIONAL = 400
"""The most characters of a rational."""
_LARGEST = 10**MAX_RATIONAL
_RATIONAL = re.compile(r"(?:0|[1-9][0-9]*)/[1-9][0-9]*")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_IDENTIFIER = re.compile(r"[0-9a-f]{32}")
_LONGEST_NAME = 80
_PLAIN = re.compile(r"[\w -]+")


class ReceiptError(Exception):
    """Something in the receipt or manifest is not what it should be."""


def check_values(value: object) -> None:
    """Refuse what no receipt holds: floats, huge integers, keys that are no text, values nested too deep."""
    _check_value(value)
    try:
        for item in (item for level in holders_by_depth(value) for holder in level for item in values_of(holder)):
            _check_value(item)
    except ValueError as error:
        raise ReceiptError(str(error)) from None


def _check_value(value: Any) -> None:
    kind = type(value)
    if kind is str or kind is list or value is None:
        return
    if kind is float:
        raise ReceiptError(f"{value!r} is a float; numbers are integers or rationals written as p/q")
    if kind is int and not -_LARGEST < value < _LARGEST:
        raise ReceiptError(f"an integer has more than {MAX_RATIONAL} digits")
    if kind is dict and not all(type(key) is str for key in value):
        raise ReceiptError("an object has a key that is no text")
    if kind not in (dict, int, bool):
        raise ReceiptError(f"a {kind.__name__} is no value of JSON")


def brief(value: object) -> str:
    """A value in a message, shortened."""
    return reprlib.repr(value)


def quoted(name: str) -> str:
    """A name in a sentence: as it is, or as JSON writes it if it has signs that could be taken for the sentence's own.

    >>> print(quoted("birth year"), quoted("a.b"))
    birth year "a.b"
    """
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def quoted_place(place: Place) -> str:
    """A column in a sentence.

    >>> quoted_place(("person", "city, born"))
    'person."city, born"'
    """
    return ".".join(map(quoted, place))


def shown(name: str) -> str:
    """A name in a message, shortened."""
    return quoted(name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}...")


def shown_place(place: Place) -> str:
    """A column in a message, shortened."""
    return ".".join(map(shown, place))


def listed(names: Iterable[str], most: int = 20) -> str:
    """Names in a sentence; of many only the first.

    >>> listed("abc", most=2)
    'a, b and 1 more'
    """
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def fields_of(value: object, where: str, names: Collection[str], optional: Collection[str] = ()) -> Json:
    """An object with these fields and no others."""
    if not isinstance(value, dict):
        raise ReceiptError(f"{where} is not an object")
    if missing := [name for name in names if name not in value]:
        raise ReceiptError(f"{where}: {listed(missing)} is missing")
    if len(value) == len(names):
        return value
    if unknown := [shown(name) for name in value if name not in names and name not in optional]:
        raise ReceiptError(f"{where}: unknown field {listed(unknown)}")
    return value


def list_of(value: object, where: str, read: Callable[[object, str], T]) -> list[T]:
    """A list, each item read with its place."""
    if not isinstance(value, list):
        raise ReceiptError(f"{where} is not a list")
    return [read(item, f"{where}[{at}]") for at, item in enumerate(value)]


def object_of(value: object, where: str, read: Callable[[object, str], T]) -> dict[str, T]:
    """An object whose keys are any names, each value read with its place."""
    if not isinstance(value, dict):
        raise ReceiptError(f"{where} is not an object")
    return {name: read(item, f"{where}.{shown(name)}") for name, item in value.items()}


def text_of(value: object, where: str) -> str:
    """Any text."""
    if not isinstance(value, str):
        raise ReceiptError(f"{where} is {brief(value)}, not a text")
    return value


def optional_text_of(value: object, where: str) -> str | None:
    """A text that is not empty, or null."""
    if value is not None and (not isinstance(value, str) or not value):
        raise ReceiptError(f"{where} is {brief(value)}, neither null nor a text")
    return value


def one_of(value: object, where: str, choices: Collection[str]) -> str:
    """One of some words."""
    if not isinstance(value, str) or value not in choices:
        raise ReceiptError(f"{where} is {brief(value)}, not one of: {', '.join(choices)}")
    return value


def integer_of(value: object, where: str, least: int = 0, most: int = 2**64) -> int:
    """A whole number (true and false are none)."""
    if type(value) is not int or not least <= value <= most:
        raise ReceiptError(f"{where} is {brief(value)}, not a whole number from {least} to {most}")
    return value


def flag_of(value: object, where: str) -> bool:
    """True or false."""
    if type(value) is not bool:
        raise ReceiptError(f"{where} is {brief(value)}, neither true nor false")
    return value


def names_of(value: object, where: str, least: int = 0) -> tuple[str, ...]:
    """A list of distinct names."""
    names = tuple(list_of(value, where, text_of))
    if len(names) < least or len(set(names)) < len(names):
        raise ReceiptError(f"{where} is not a list of at least {least} distinct names")
    return names


def digest_of(value: object, where: str) -> str:
    """A SHA-256 digest in lower case."""
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise ReceiptError(f"{where} is {brief(value)}, not a SHA-256 digest")
    return value


def identifier_of(value: object, where: str) -> str:
    """32 hexadecimal digits in lower case."""
    if not isinstance(value, str) or not _IDENTIFIER.fullmatch(value):
        raise ReceiptError(f"{where} is {brief(value)}, not 32 hexadecimal digits")
    return value


def rational_of(value: object, where: str) -> Fraction:
    """A rational that is not negative, written as p/q."""
    if not isinstance(value, str) or len(value) > MAX_RATIONAL or not _RATIONAL.fullmatch(value):
        raise ReceiptError(f"{where} is {brief(value)}, not a rational p/q of at most {MAX_RATIONAL} characters")
    numerator, _, denominator = value.partition("/")
    return Fraction(int(numerator), int(denominator))


def positive_of(value: object, where: str) -> Fraction:
    """A rational above 0."""
    rational = rational_of(value, where)
    if rational == 0:
        raise ReceiptError(f"{where} is 0, not positive")
    return rational


def steps_of(value: object, where: str, grid: int) -> int:
    """A rational whose denominator divides `grid`, as a number of steps of 1/grid."""
    rational = rational_of(value, where)
    steps, rest = divmod(rational.numerator * grid, rational.denominator)
    if rest:
        raise ReceiptError(f"{where} is {brief(value)}, whose denominator does not divide 2**{grid.bit_length() - 1}")
    return steps
