"""What can be wrong in a spec, as lines that say where it is, what was found and what may stand there.

`wrong_names` checks that every name exists (columns in keys, tables in references, the unit); `explain` turns these
mistakes and pydantic's into lines of the file.
"""

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from privbench.errors import SchemaError, SpecError
from privbench.schema.choices import closest
from privbench.schema.csv_options import CsvOptions
from privbench.schema.relative import quoted
from privbench.schema.release import Release
from privbench.schema.rules import spelled, wrong_names_in
from privbench.schema.table_spec import DOMAINS, ColumnSpec, ForeignKeySpec, IndexSpec, RuleSpec, TableSpec, domain_tag
from privbench.schema.tables import is_key
from privbench.schema.yaml_file import Node, Path

MOST_SHOWN = 12
MOST_COUNTED = 20_000
NAMES = "wrong_names"
"""The type of the error that carries a list of mistakes with paths of their own."""

_TAGS = frozenset(map(domain_tag, DOMAINS))
_SCALARS = frozenset({"bool", "int", "float", "str", "constrained-float", "finite-float"})
_MESSAGES = {
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
Mistake = tuple[Path, str]


def explain(error: ValidationError, root: Node, top: type[BaseModel]) -> str:
    """Say every mistake on a line of its own, in the order of the file."""
    if error.error_count() > MOST_COUNTED:
        return f"line 1, the file: {error.error_count()} mistakes; this is no spec."
    mistakes = dict.fromkeys(
        (root.line_at(path), ".".join(str(part)[:80] for part in path) or "the file", message)
        for details in error.errors(include_url=False)
        for path, message in _mistakes(details, top)
    )
    lines = [f"line {line}, {path}: {message}" for line, path, message in sorted(mistakes)]
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
    message = _MESSAGES.get(kind) or (str(context["error"]) if kind == "value_error" else details["msg"])
    if kind in ("too_short", "too_long"):
        message += (
            f": at {'least' if kind == 'too_short' else 'most'} {context.get('min_length', context.get('max_length'))}"
        )
    if kind.endswith("_type") and details["loc"] and details["loc"][-1] in _SCALARS:
        message = "a single value is wanted: text, a number, true or false"
    if kind == "enum" and details["input"] is None:
        message += ', with "null" in quotes'
    shown = "" if kind in ("missing", "value_error") else f"; found {_shown(details['input'])}"
    return f"{message}{shown}."


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
        case ("releases", _, _):
            model = Release
        case ("csv", _):
            model = CsvOptions
        case ("tables", _, "columns", _, "domain", tag, _):
            model = next(c for kind, c in DOMAINS.items() if domain_tag(kind) == tag)
        case ("tables", _, "columns", _, _):
            model = ColumnSpec
        case ("tables", _, "indexes", _, _):
            model = IndexSpec
        case ("tables", _, "foreign_keys", _, _):
            model = ForeignKeySpec
        case ("tables", _, "rules", _, _):
            model = RuleSpec
        case ("tables", _, _):
            model = TableSpec
    return [str(field.validation_alias or name) for name, field in model.model_fields.items()]


def _unknown(word: str, words: Iterable[str]) -> str:
    words = list(words)
    near = difflib.get_close_matches(word[:100], words, n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    return f"not a word of the spec here. {hint}Allowed: {', '.join(words)}."


def wrong_names(
    tables: Mapping[str, TableSpec], unit: str | None, releases: Sequence[Release] = ()
) -> Iterator[Mistake]:
    """Find every name that is not there, and every type that cannot be read; dropped tables are not looked at."""
    if unit is not None and unit not in tables:
        yield ("unit",), f"there is no table {unit!r}. {closest(unit, tables)}"
    for name, table in tables.items():
        if not table.drop:
            for path, message in _in_table(tables, name, table):
                yield ("tables", name, *path), message
    if unit is not None and unit in tables and tables[unit].rows_per_entity is not None:
        yield ("tables", unit, "rows_per_entity"), "the unit table has one row per entity: take this out."
    yield from _in_releases(tables, releases)


def _in_releases(tables: Mapping[str, TableSpec], releases: Sequence[Release]) -> Iterator[Mistake]:
    listed = [release.receipt for release in releases]
    for i, digest in enumerate(listed):
        if digest in listed[:i]:
            yield ("releases", i, "receipt"), "this release is listed twice."
    for name, table in tables.items():
        for column, spec in table.columns.items():
            if spec.release is not None and spec.release not in listed:
                path = ("tables", name, "columns", column, "release")
                yield path, "no release of this digest stands under `releases`, with what it cost. Add it there."


def _in_table(tables: Mapping[str, TableSpec], name: str, table: TableSpec) -> Iterator[Mistake]:
    columns = table.columns
    lists: list[tuple[Path, Sequence[str]]] = [(("key",), table.key), (("owner",), table.owner or ())]
    lists += [(("order",), table.order or ())]
    lists += [(("clustered_by",), [level.column for level in table.clustered_by])]
    lists += [(("unique", i), u) for i, u in enumerate(table.unique)]
    lists += [(("indexes", n, "columns"), i.columns) for n, i in table.indexes.items()]
    lists += [(("foreign_keys", i, "columns"), k.columns) for i, k in enumerate(table.foreign_keys)]
    for path, names in lists:
        yield from _in_list(path, names, name, columns)
    for i, key in enumerate(table.foreign_keys):
        yield from _in_key(("foreign_keys", i), key, tables)
    if table.owner and not any(set(table.owner) == set(k.columns) for k in table.foreign_keys):
        keys = "; ".join(str(list(k.columns)) for k in table.foreign_keys) or "none"
        yield ("owner",), f"these are not the columns of a foreign key of {name}. Its foreign keys: {keys}."
    if table.numbered_by is not None and table.numbered_by not in columns:
        yield ("numbered_by",), f"{name} has no column {table.numbered_by!r}. {closest(table.numbered_by, columns)}"
    if table.owned_by is not None and table.owned_by not in tables:
        yield ("owned_by",), f"there is no table {table.owned_by!r}. {closest(table.owned_by, tables)}"
    for i, member in enumerate(table.list_of or ()):
        if member not in tables:
            yield ("list_of", i), f"there is no table {member!r}. {closest(member, tables)}"
    yield from _in_pairs(tables, name, table)
    yield from _in_rules(tables, name, table)
    for column, spec in table.columns.items():
        if not spec.drop:
            try:
                spec.sql_type(f"{name}.{column}")
            except SchemaError as error:
                yield ("columns", column, "type"), str(error)


def _in_pairs(tables: Mapping[str, TableSpec], name: str, table: TableSpec) -> Iterator[Mistake]:
    places = [(t, c) for t, words in tables.items() if table.pairs for c in words.columns]
    plain = [*table.columns, *(f"{t}.{c}" for t, c in places if t != name)]
    known = {*plain, *(text for t, c in places for text in (f"{t}.{c}", quoted(t, c)))}
    sets = [frozenset(pair) for pair in table.pairs]
    for i, pair in enumerate(table.pairs):
        for side, column in enumerate(pair):
            if column not in known:
                yield ("pairs", i, side), f"there is no column {column!r}. {closest(column, plain)}"
        if sets[i] in sets[:i]:
            yield ("pairs", i), "this pair is listed twice. Take one of them out."


def _in_rules(tables: Mapping[str, TableSpec], name: str, table: TableSpec) -> Iterator[Mistake]:
    columns = {other: list(words.columns) for other, words in tables.items()}
    for i, rule in enumerate(table.rules):
        if rule.left_out is None:
            try:
                expression = spelled(rule.expression(rule.check[:80]), name, columns)
            except SpecError as error:
                yield ("rules", i), str(error)
            else:
                yield from ((("rules", i), message) for message in wrong_names_in(expression, name, columns))


def _in_list(path: Path, names: Sequence[str], table: str, columns: Collection[str]) -> Iterator[Mistake]:
    for i, column in enumerate(names):
        if column not in columns:
            yield (*path, i), f"{table} has no column {column!r}. {closest(column, columns)}"
        elif column in names[:i]:
            yield (*path, i), f"{column!r} is listed twice."


def _in_key(path: Path, key: ForeignKeySpec, tables: Mapping[str, TableSpec]) -> Iterator[Mistake]:
    target = tables.get(key.table)
    if target is None:
        yield (*path, "table"), f"there is no table {key.table!r}. {closest(key.table, tables)}"
        return
    if len(key.columns) != len(key.references):
        yield (*path, "references"), f"{len(key.columns)} columns reference {len(key.references)}."
    if target.drop:
        return
    keys = [target.key, *target.unique, *(i.columns for i in target.indexes.values() if i.unique)]
    if not is_key(key.references, keys):
        known = "; ".join(str(list(k)) for k in keys if k) or "none"
        yield (*path, "references"), f"not a key of {key.table} (`key` or `unique` there). Its keys: {known}."
