"""Write plain values as YAML that people like to read and `yaml_lines` reads back the same.

Short values stand on one line, long mappings open up, long lists are wrapped. Every text that is not a simple word
is quoted, so that no name, however strange, is read as something else.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from privbench.schema.domain import Scalar
from privbench.schema.yaml_lines import Plain

WIDTH = 110
_WORD = re.compile(r"[A-Za-z_]([A-Za-z0-9_./ -]*[A-Za-z0-9_])?", re.ASCII)
_TAKEN = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_LONGEST_KEY = 1000  # YAML wants "? key" beyond 1024 characters


def inline(value: Plain) -> str:
    """Write a value on one line.

    >>> inline({"a": [1, "no", "x: y"], "b": None})
    '{a: [1, "no", "x: y"], b: null}'
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} {inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(inline, value)) + "]"
    return _scalar(value)


def entry(key: str, value: Plain, *, indent: int = 0) -> Iterator[str]:
    """Write `key: value` as lines, opened up or wrapped where it is too long for one."""
    margin = " " * indent
    head = margin + _key(key, between=f"\n{margin}")
    line = f"{head} {inline(value)}"
    if len(line) <= WIDTH or not isinstance(value, Mapping | list) or not value:
        yield line
    elif isinstance(value, Mapping):
        yield head
        for below, inner in value.items():
            yield from entry(below, inner, indent=indent + 2)
    else:
        yield f"{head} ["
        yield from _wrapped([inline(v) for v in value], indent=indent + 2)
        yield f"{margin}  ]"


def _wrapped(items: list[str], *, indent: int) -> Iterator[str]:
    line = " " * indent
    for item in items:
        if len(line) + len(item) + 1 > WIDTH and line.strip():
            yield line.rstrip()
            line = " " * indent
        line += f"{item}, "
    yield line.rstrip(" ,")


def _key(name: str, *, between: str = " ") -> str:
    text = name if _WORD.fullmatch(name) else _quoted(name)
    return f"{text}:" if len(text) < _LONGEST_KEY else f"? {text}{between}:"


def _scalar(value: Scalar | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, str) else repr(value)


def _text(text: str) -> str:
    return text if _WORD.fullmatch(text) and text.lower() not in _TAKEN else _quoted(text)


def _quoted(text: str) -> str:
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
