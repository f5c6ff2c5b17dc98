"""JSON that means one thing: with a key twice in an object, one reader would see the first value, another the last."""

import json
from typing import Any

from privbench.errors import ModelError


def read_json(text: str | bytes) -> Any:
    """Read JSON; ModelError if an object has a key twice, ValueError if it is not JSON."""
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ModelError(f"the key {key[:40]!r} stands twice in one JSON object.")
        found[key] = value
    return found
