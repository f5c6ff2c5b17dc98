"""Turn what pydantic found wrong in a spec into lines that say where it is, what was found and what may stand there."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from privbench.schema.derived import Derived
from privbench.schema.table_spec import DOMAINS, ColumnSpec, ForeignKeySpec, IndexSpec, TableSpec, domain_tag
from privbench.schema.yaml_lines import Node, Path

MOST_SHOWN = 12
MOST_COUNTED = 20_000
NAMES = "wrong_names"
"""The type of the error that carries a list of mistakes with paths of their own."""

_TAGS = frozenset(map(domain_tag, DOMAINS))
_SCALARS = frozenset({"bool", "int", "float", "str", "constrained-float", "finite-float"})
_SAID = {
    "missing": "is missing",
    "union_tag_not_found": f"a domain is `private`, or a mapping with one of these words: {', '.join(DOMAINS)}",
    "union_tag_invalid": f"a domain is `private`, or a mapping with one of these words: {', '.join(DOMAINS)}",
    "tuple_type": "a list is wanted, in brackets: [a, b]",
    "dict_type": "a mapping is wanted (`name: value`, indented below)",
    "model_type": "a mapping is wanted (`name: value`, indented below)",
    "bool_type": "true or false is wanted",
    "string_type": "text is wanted; put it in quotes",
    "int_type": "a whole number is wanted",
    "finite_number": "a number is wanted that is neither infinite nor NaN",
    "string_too_short": "an empty name",
    "too_short": "the list is too short",
    "too_long": "the list is too long",
}


def explain(error: ValidationError, root: Node, top: type[BaseModel]) -> str:
    """Say every mistake on a line of its own, in the order of the file."""
    if error.error_count() > MOST_COUNTED:
        return f"line 1, the file: {error.error_count()} mistakes; this is no spec."
    found = dict.fromkeys(
        (root.line_at(path), ".".join(str(part)[:80] for part in path) or "the file", message)
        for details in error.errors(include_url=False)
        for path, message in _mistakes(details, top)
    )
    lines = [f"line {line}, {path}: {message}" for line, path, message in sorted(found)]
    more = [f".. and {len(lines) - MOST_SHOWN} more"] if len(lines) > MOST_SHOWN else []
    return "\n".join([*lines[:MOST_SHOWN], *more])


def _mistakes(details: ErrorDetails, top: type[BaseModel]) -> Iterator[tuple[Path, str]]:
    if details["type"] == NAMES:
        yield from details["ctx"]["mistakes"]
        return
    path = _path(details["loc"])
    if details["type"] == "extra_forbidden":
        yield path, _unknown(str(path[-1]), _words(details["loc"], top))
        return
    yield path, _said(details)


def _path(loc: tuple[int | str, ...]) -> Path:
    path = tuple(part for part in loc if part not in _TAGS and part != "[key]")
    # A value that is no scalar at all fails once for each kind of scalar; pydantic puts the kind at the end.
    return path[:-1] if path and path[-1] in _SCALARS else path


def _said(details: ErrorDetails) -> str:
    kind, context = details["type"], details.get("ctx", {})
    said = _SAID.get(kind) or (str(context["error"]) if kind == "value_error" else details["msg"])
    if kind in ("too_short", "too_long"):
        said += (
            f": at {'least' if kind == 'too_short' else 'most'} {context.get('min_length', context.get('max_length'))}"
        )
    if kind.endswith("_type") and details["loc"] and details["loc"][-1] in _SCALARS:
        said = "a single value is wanted: text, a number, true or false"
    if kind == "enum" and details["input"] is None:
        said += ', with "null" in quotes'
    found = "" if kind in ("missing", "value_error") else f"; found {_shown(details['input'])}"
    return f"{said}{found}."


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"a mapping of {', '.join(map(str, list(value)[:5]))[:60] or 'nothing'}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if value is None:
        return "nothing (null)"
    text = repr(value.value if isinstance(value, Enum) else value)
    return text if len(text) <= 60 else f"{text[:60]}.."


def _words(loc: tuple[int | str, ...], top: type[BaseModel]) -> list[str]:
    """List the words that may stand where the last part of `loc` stands."""
    model: type[BaseModel] = top
    match loc:
        case ("tables", _, "columns", _, "domain", tag, _):
            model = next(c for kind, c in DOMAINS.items() if domain_tag(kind) == tag)
        case ("tables", _, "columns", _, "derived", _):
            model = Derived
        case ("tables", _, "columns", _, _):
            model = ColumnSpec
        case ("tables", _, "indexes", _, _):
            model = IndexSpec
        case ("tables", _, "foreign_keys", _, _):
            model = ForeignKeySpec
        case ("tables", _, _):
            model = TableSpec
    return [str(field.validation_alias or name) for name, field in model.model_fields.items()]


def _unknown(word: str, words: Iterable[str]) -> str:
    words = list(words)
    near = difflib.get_close_matches(word[:100], words, n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    return f"not a word of the spec here. {hint}Allowed: {', '.join(words)}."
