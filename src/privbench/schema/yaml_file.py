"""YAML of spec files: read a small, safe part of it with the line of everything, write it for people to read.

Read from parser events alone: no object is ever constructed from a tag. Tags, anchors, aliases and duplicate keys
are refused, size and depth are bounded, keys are always strings, and only plain true, false, null and decimal
numbers are not strings: dates, times, yes/no and codes like 007 stay as they are written. Written, every text that is
not a simple word is quoted, so that no name, however strange, is read as something else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privbench.deferred import yaml
from privbench.schema.domain import Scalar

MAX_BYTES = 16 * 2**20
MAX_NODES = 500_000
MAX_DEPTH = 24
MAX_DIGITS = 40

_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)

Plain = Scalar | list["Plain"] | dict[str, "Plain"] | None
Path = tuple[str | int, ...]
WIDTH = 110
_WORD = re.compile(r"[A-Za-z_]([A-Za-z0-9_./ -]*[A-Za-z0-9_])?", re.ASCII)
_TAKEN = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_LONGEST_KEY = 1000  # YAML wants "? key" beyond 1024 characters


class YamlError(ValueError):
    """What is wrong with the text, and on which line."""

    def __init__(self, message: str, *, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A value with the line it starts on; in a mapping, the line of its key."""

    line: int
    value: Scalar | list[Node] | dict[str, Node] | None

    def plain(self) -> Plain:
        """Strip the lines."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def child(self, part: str | int) -> Node | None:
        """Find the value under a key or at a place in a list, if there is one."""
        if isinstance(self.value, dict) and isinstance(part, str):
            return self.value.get(part)
        if isinstance(self.value, list) and isinstance(part, int) and part < len(self.value):
            return self.value[part]
        return None

    def line_at(self, path: Path) -> int:
        """Find the line of the value at `path`, or of the nearest value around it."""
        node = self
        for part in path:
            below = node.child(part)
            if below is None:
                break
            node = below
        return node.line


def parse_yaml(text: str) -> Node:
    """Read one document. Raises YamlError.

    >>> parse_yaml("a: [1, 007, 2020-01-01, no]").plain()
    {'a': [1, '007', '2020-01-01', 'no']}
    """
    try:
        return _Reader(text).document()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(f"{error.reason} (character {error.character!r})", line=line) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = mark.line + 1 if mark else 1
        raise YamlError(f"not valid YAML: {error.problem or error.context}.", line=where) from None


class _Reader:
    def __init__(self, text: str) -> None:
        self.events: Iterator[yaml.Event] = iter(yaml.parse(text, Loader=_loader()))
        self.nodes = 0

    def document(self) -> Node:
        next(self.events)  # start of the stream
        first = next(self.events)
        if isinstance(first, yaml.StreamEndEvent):
            raise YamlError("the file is empty.", line=1)
        root = self.node(next(self.events), depth=0)
        next(self.events)  # end of the document
        after = next(self.events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise YamlError("a second document begins here; one is enough.", line=_line(after))
        return root

    def node(self, event: yaml.Event, *, depth: int, line: int | None = None) -> Node:
        line = line or _line(event)
        self._refuse(event, depth, line)
        if isinstance(event, yaml.ScalarEvent):
            return Node(line=line, value=_scalar(event.value, line) if event.implicit[0] else event.value)
        if isinstance(event, yaml.MappingStartEvent):
            return Node(line=line, value=self.mapping(depth + 1))
        return Node(line=line, value=self.sequence(depth + 1))

    def mapping(self, depth: int) -> dict[str, Node]:
        nodes: dict[str, Node] = {}
        while not isinstance(key := next(self.events), yaml.MappingEndEvent):
            line = _line(key)
            self._refuse(key, depth, line)
            if not isinstance(key, yaml.ScalarEvent):
                raise YamlError("a list or mapping stands where a name belongs.", line=line)
            if key.value in nodes:
                raise YamlError(f"{key.value!r} is there twice; first on line {nodes[key.value].line}.", line=line)
            nodes[key.value] = self.node(next(self.events), depth=depth, line=line)
        return nodes

    def sequence(self, depth: int) -> list[Node]:
        nodes = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            nodes.append(self.node(event, depth=depth))
        return nodes

    def _refuse(self, event: yaml.Event, depth: int, line: int) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES or depth > MAX_DEPTH:
            raise YamlError("too large or too deeply nested for a spec.", line=line)
        if getattr(event, "anchor", None) is not None:
            raise YamlError(
                "anchors and aliases (& and *) are not allowed: write the value out, or quote it.", line=line
            )
        tag: str | None = getattr(event, "tag", None)
        if tag is not None:
            raise YamlError(f"the tag {tag[:60]} is not allowed: tags (!) have no meaning here.", line=line)


def _loader() -> Any:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times faster where libyaml is there


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _scalar(text: str, line: int) -> Scalar | None:
    if text in _WORDS:
        return _WORDS[text]
    number = _FLOAT.fullmatch(text)
    if number is None:
        return text
    if len(text) > MAX_DIGITS or not math.isfinite(float(text)):
        raise YamlError(f"the number {text[:20]}.. is too long or too large; quote it if it is text.", line=line)
    return int(text) if _INTEGER.fullmatch(text) else float(text)


def inline(value: Plain) -> str:
    """Write a value on one line.

    >>> inline({"a": [1, "no", "x: y"], "b": None})
    '{a: [1, "no", "x: y"], b: null}'
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} {inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(inline, value)) + "]"
    return _written(value)


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


def item(value: Mapping[str, Plain], *, indent: int = 0) -> Iterator[str]:
    r"""Write a mapping as an item of a list, a line per key; text of several lines or with quotes as a block.

    >>> print(*item({"a": 1, "b": "x\n  y"}), sep="\n")
    - a: 1
      b: |-
        x
          y
    """
    mark = "- "
    for key, inner in value.items():
        margin = " " * indent + mark
        if isinstance(inner, str) and _fits_block(inner):
            yield f"{margin}{_key(key)} |-"
            yield from (f"{' ' * (indent + 4)}{line}" if line else "" for line in inner.split("\n"))
        else:
            yield f"{margin}{_key(key)} {inline(inner)}"
        mark = "  "


def _fits_block(text: str) -> bool:
    """Whether a block is easier to read, and YAML gives it back as it is: odd characters and edges mean more there."""
    plain = all(c.isprintable() or c in "\t\n" for c in text)
    return plain and any(c in text for c in '\n"') and not text[0].isspace() and not text[-1].isspace()


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


def _written(value: Scalar | None) -> str:
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
