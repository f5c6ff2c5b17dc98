"""Read what SHOW CREATE TABLE and SHOW CREATE VIEW print: the server's own text, cut into the parts it is made of.

The text of each part is kept, so that indexes on prefixes, ON DELETE, comments and defaults can be made again word by
word. Only this much is understood: which part is a column, a key, an index or a CHECK, and which columns it names.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

_NAME = r"`((?:[^`]|``)+)`"
_QUOTED = re.compile(r"'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\"|`(?:[^`]|``)*`", re.DOTALL)
_PLAIN_LIST = re.compile(rf"\s*{_NAME}\s*(,\s*{_NAME}\s*)*")
_OPTIONS = re.compile(
    r"\b(ENGINE|DEFAULT CHARSET|COLLATE|ROW_FORMAT|KEY_BLOCK_SIZE|COMMENT)=('(?:[^'\\]|''|\\.)*'|\S+)", re.DOTALL
)
"""The options of a table that are made again. Others tell of rows (AUTO_INCREMENT), paths or other servers."""
_KEPT_ENGINES = ("innodb", "myisam", "aria")


class PartKind(Enum):
    """What a part of CREATE TABLE declares."""

    COLUMN = "column"
    PRIMARY_KEY = "primary key"
    UNIQUE = "unique"
    INDEX = "index"
    SPECIAL_INDEX = "special index"
    FOREIGN_KEY = "foreign key"
    CHECK = "check"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One column, key, index or CHECK. `text` is all of it; of a column, what follows the name."""

    kind: PartKind
    name: str
    text: str
    columns: tuple[str, ...] = ()
    """The columns of a key or an index, in their order; none where it is on an expression."""
    plain: bool = True
    """Of a key or an index: it is on whole columns in ascending order."""
    target: tuple[str, ...] = ()
    """What a foreign key references: a table, or a database and a table of it."""
    references: tuple[str, ...] = ()

    @property
    def named_by_server(self) -> bool:
        """Whether a key has the name that the server gives by itself: that of its first column, or numbered."""
        return re.fullmatch(rf"{re.escape(self.columns[0])}(_\d+)?", self.name) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """A table in its parts, and what follows them, as far as it is made again: `options`, and `PARTITION BY ..`."""

    parts: tuple[Part, ...] = field(default=())
    options: str = ""
    partition: str = ""

    def of(self, *kinds: PartKind) -> Iterator[Part]:
        """The parts of some kinds."""
        return (part for part in self.parts if part.kind in kinds)

    def made_for_keys(self) -> list[Part]:
        """The indexes that the server made for foreign keys by itself, as far as their names tell."""
        keys: dict[tuple[str, ...], set[str]] = {}
        for key in self.of(PartKind.FOREIGN_KEY):
            keys.setdefault(key.columns, set()).add(key.name)
        indexes = [part for part in self.of(PartKind.INDEX) if part.columns in keys]
        return [part for part in indexes if part.named_by_server or part.name in keys[part.columns]]


def read_table(text: str) -> CreateTable:
    """Cut the text of SHOW CREATE TABLE into parts.

    >>> [p.name for p in read_table("CREATE TABLE `t` (`a` int, KEY `k` (`a`)) ENGINE=InnoDB AUTO_INCREMENT=7").parts]
    ['a', 'k']
    """
    masked = _masked(text)
    start = masked.index("(")
    cuts, end = _cuts(masked, start)
    edges = [start, *cuts, end]
    parts = [text[a + 1 : b].strip() for a, b in pairwise(edges)]
    partition = re.search(r"(/\*!\d+ )?PARTITION BY", masked[end:])
    tail = end + partition.start() if partition else len(text)
    return CreateTable(
        parts=tuple(map(_part, parts)),
        options=_kept_options(text[end + 1 : tail]),
        partition=text[tail:].strip() if "DIRECTORY" not in masked[tail:] else "",
    )


def view_query(text: str) -> str:
    """The SELECT of a view, without who made it and how it is run.

    >>> view_query("CREATE ALGORITHM=UNDEFINED DEFINER=`a`@`b` SQL SECURITY DEFINER VIEW `v` AS select 1 AS `x`")
    'select 1 AS `x`'
    """
    masked = _masked(text)
    match = re.search(r"\bVIEW\s+\S+?(\s+\([^)]*\))?\s+AS\s+", masked)
    return text[match.end() :] if match else text


def names_in(text: str) -> tuple[str, ...]:
    """All quoted names in a text, in their order."""
    return tuple(_unquoted(name[1:-1]) for name in _QUOTED.findall(text) if name.startswith("`"))


def without_nulls(text: str) -> str:
    """Leave NULL, NOT NULL and DEFAULT NULL out of the text of a column.

    >>> without_nulls("varchar(9) NOT NULL DEFAULT 'a NOT NULL' COMMENT 'x'")
    "varchar(9) DEFAULT 'a NOT NULL' COMMENT 'x'"
    """
    masked = _masked(text, parentheses=True)
    for match in reversed([*re.finditer(r"\s+(NOT NULL|DEFAULT NULL|NULL)\b", masked)]):
        text = text[: match.start()] + text[match.end() :]
    return text


def cut_check(text: str) -> tuple[str, str | None]:
    """Cut the CHECK off the text of a column: the rest, and the expression if there is one."""
    match = re.search(r"\s*\bCHECK\s*\(", _masked(text, parentheses=True))
    if match is None:
        return text, None
    _, end = _cuts(_masked(text), match.end() - 1)
    return text[: match.start()] + text[end + 1 :], text[match.end() : end]


def _masked(text: str, *, parentheses: bool = False) -> str:
    """The text with what stands in quotes blanked out, so that signs and words can be found; the length is the same."""
    masked = _QUOTED.sub(lambda match: "_" * len(match[0]), text)
    if not parentheses:
        return masked
    depth, signs = 0, []
    for sign in masked:
        depth -= sign == ")"
        signs.append(sign if depth == 0 else "_")
        depth += sign == "("
    return "".join(signs)


def _cuts(masked: str, start: int) -> tuple[list[int], int]:
    """Find the commas between the parentheses that open at `start`, and where these close."""
    depth = 0
    cuts: list[int] = []
    for at in range(start, len(masked)):
        depth += (masked[at] == "(") - (masked[at] == ")")
        if depth == 0:
            return cuts, at
        if depth == 1 and masked[at] == ",":
            cuts.append(at)
    return cuts, len(masked)


def _part(text: str) -> Part:
    if match := re.match(rf"{_NAME} ?", text):
        return Part(kind=PartKind.COLUMN, name=_unquoted(match[1]), text=text[match.end() :])
    if match := re.match(rf"(?:CONSTRAINT {_NAME} )?FOREIGN KEY", text):
        return _foreign_key(text, match[1])
    if match := re.match(rf"(?:CONSTRAINT {_NAME} )?CHECK", text):
        return Part(kind=PartKind.CHECK, name=_unquoted(match[1] or ""), text=text)
    if match := re.match(rf"(PRIMARY KEY|UNIQUE KEY|KEY|\w+ KEY)(?: {_NAME})?", text):
        kinds = {"PRIMARY KEY": PartKind.PRIMARY_KEY, "UNIQUE KEY": PartKind.UNIQUE, "KEY": PartKind.INDEX}
        columns, plain = _indexed(text)
        return Part(
            kind=kinds.get(match[1], PartKind.SPECIAL_INDEX),
            name=_unquoted(match[2] or ""),
            text=text,
            columns=columns,
            plain=plain and match[1] in kinds,
        )
    return Part(kind=PartKind.OTHER, name="", text=text)


def _foreign_key(text: str, name: str | None) -> Part:
    lists = [match[1] for match in re.finditer(r"\(([^()]*)\)", text)]
    match = re.search(rf"REFERENCES (?:{_NAME}\.)?{_NAME}", text)
    target = tuple(_unquoted(part) for part in match.groups() if part) if match else ()
    return Part(
        kind=PartKind.FOREIGN_KEY,
        name=_unquoted(name or ""),
        text=text,
        columns=names_in(lists[0]),
        target=target,
        references=names_in(lists[1]),
    )


def _indexed(text: str) -> tuple[tuple[str, ...], bool]:
    """The columns of an index, and whether it is on nothing but these: no prefix, no order, no expression."""
    masked = _masked(text)
    start = masked.index("(")
    cuts, end = _cuts(masked, start)
    edges = [start, *cuts, end]
    listed = [text[a + 1 : b].strip() for a, b in pairwise(edges)]
    matches = [re.match(_NAME, item) for item in listed]
    if not all(matches):
        return (), False
    return tuple(_unquoted(m[1]) for m in matches if m), _PLAIN_LIST.fullmatch(text[start + 1 : end]) is not None


def _kept_options(text: str) -> str:
    """The options of a table that are made again."""
    return " ".join(f"{name}={_engine(value) if name == 'ENGINE' else value}" for name, value in _OPTIONS.findall(text))


def _engine(name: str) -> str:
    return name if name.lower() in _KEPT_ENGINES else "InnoDB"


def _unquoted(name: str) -> str:
    return name.replace("``", "`")


def quoted_list(names: Iterable[str]) -> str:
    """Names as a list in parentheses.

    >>> quoted_list(["a", "b`c"])
    '(`a`, `b``c`)'
    """
    return "(" + ", ".join("`" + name.replace("`", "``") + "`" for name in names) + ")"
