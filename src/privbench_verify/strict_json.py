"""JSON that means one thing and is read in bounded time and memory, whoever wrote it.

Used for receipts, manifests and the headers of models. With a key twice in an object one reader would see the first
value and another the last; huge integers take quadratic time; small texts can hold very many or deeply nested values.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

MAX_BYTES = 2**28
MAX_DEPTH = 64
MAX_DIGITS = 400
MAX_VALUES = 20_000_000
"""How many commas and opening brackets a text may have: about what it can take in memory."""


def read_json(text: str | bytes) -> Any:
    """Read JSON in UTF-8; ValueError if it is not JSON, means two things, or is too large, too deep or too long."""
    if len(text) > MAX_BYTES:
        raise ValueError(f"the JSON is larger than {MAX_BYTES // 2**20} MB.")
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    if sum(text.count(mark) for mark in ",[{") > MAX_VALUES:
        raise ValueError(f"the JSON holds more than {MAX_VALUES} values.")
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
        )
    except RecursionError:
        raise ValueError(_too_deep()) from None
    for _ in holders_by_depth(value):
        pass
    return value


def holders_by_depth(value: object) -> Iterator[list[Any]]:
    """Give the lists and objects in a value, level by level; ValueError if there are more than MAX_DEPTH levels.

    Each comes once per level, lest an object that holds itself twice doubles with every level.
    """
    level: list[Any] = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return
        yield level
        inner = (item for holder in level for item in values_of(holder) if isinstance(item, dict | list))
        level = list({id(item): item for item in inner}.values())
    if level:
        raise ValueError(_too_deep())


def values_of(holder: dict[str, Any] | list[Any]) -> Iterable[Any]:
    """The values in a list or an object."""
    return holder.values() if isinstance(holder, dict) else holder


def _too_deep() -> str:
    return f"the JSON is nested more than {MAX_DEPTH} deep."


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {key[:40]!r} stands twice in one JSON object.")
    return values


def _integer(text: str) -> int:
    _check_length(text)
    return int(text)


def _float(text: str) -> float:
    _check_length(text)
    if math.isinf(value := float(text)):
        raise ValueError(f"the number {text[:40]} is too large.")
    return value


def _check_length(text: str) -> None:
    if len(text) > MAX_DIGITS + 1:
        raise ValueError(f"a number has more than {MAX_DIGITS} digits.")


def _constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON.")
