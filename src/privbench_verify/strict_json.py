"""JSON that means one thing: with a key twice in an object, one reader would see the first value, another the last."""

import json
from typing import Any


def read_json(text: str | bytes) -> Any:
    """Read JSON; ValueError if it is not JSON, or an object has a key twice."""
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:40]!r} stands twice in one JSON object.")
        found[key] = value
    return found
