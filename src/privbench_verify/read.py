"""Reading values out of a receipt, for the verifier. Like all of it: the standard library and nothing else."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

_RATIONAL = re.compile(r"-?[0-9]{1,1000}/[1-9][0-9]{0,999}")

Json = Mapping[str, Any]


class ReceiptError(Exception):
    """Something in the receipt is not what it should be."""


def object_of(holder: Json, key: str, where: str) -> Json:
    """Read an object out of a receipt."""
    value = holder.get(key)
    if not isinstance(value, dict):
        raise ReceiptError(f"{where}.{key} is not an object")
    return value


def rational_of(holder: Json, key: str, where: str) -> Fraction:
    """Read a rational, written as p/q."""
    value = holder.get(key)
    if not isinstance(value, str) or not _RATIONAL.fullmatch(value):
        raise ReceiptError(f"{where}: {key} is {value!r}, not a rational written as p/q")
    return Fraction(value)


def positive_of(holder: Json, key: str, where: str) -> Fraction:
    """Read a positive rational."""
    value = rational_of(holder, key, where)
    if value <= 0:
        raise ReceiptError(f"{where}: {key} is {holder[key]}, not positive")
    return value


def flag_of(holder: Json, key: str, where: str, *, default: bool | None = None) -> bool:
    """Read true or false; receipts from before a flag was there may lack one that has a default."""
    value = holder.get(key, default)
    if type(value) is not bool:
        raise ReceiptError(f"{where}: {key} is {value!r}, neither true nor false")
    return value
