"""How much memory a fit may take, and where its coded rows go: into memory, or into files if they are too many.

All of it is worked out before a row is read, from the numbers of rows that the source tells and from the codecs.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from privbench.encode.codec import Codecs
from privbench.errors import SpecError
from privbench.fitting.free_memory import ROOT, free_memory, room_in_container
from privbench.fitting.gathering import Stripes
from privbench.io.base import Source
from privbench.model.order import ids_are_public
from privbench.schema.tables import Table
from privbench.schema.types import Kind, SqlType
from privbench.schema.unit import LinkKind, Protection, Role
from privbench.threads import cores

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?I?)B?\s*", re.IGNORECASE)
BASE = 130 * 10**6
"""What the program takes without any rows: Python and its libraries. Set by a fit of `adult` in bench/scale.py."""
_ON_THE_WAY = 40
"""What a row takes that has been read and is not yet coded."""
_MOST_ON_THE_WAY = 120 * 10**6
"""More are not read before others are coded. Set, with what counting takes, by fits of the large cases."""
_TEXT = 24
"""What a text takes that is kept until its column has a domain, or is looked up."""
_POSITION = 4
_HASH = 8
_COUNTING = 40
"""What counting takes for each row of a part that is being counted."""
_BUFFERS = 64 * 10**6
"""Rows that wait for their file take at least so much, or files are written in too many pieces."""


def parse_memory(size: str | int | None) -> int | None:
    """A size in bytes, as people write it. Raises SpecError where it is none.

    >>> parse_memory("2GB"), parse_memory("512 MiB"), parse_memory("1.5g"), parse_memory(None)
    (2000000000, 536870912, 1500000000, None)
    """
    if size is None or isinstance(size, int):
        return size
    match = _SIZE.fullmatch(size)
    if match is None or float(match[1]) == 0:
        raise SpecError(f"--memory {size}: is not a size. Write it as `2GB`, `512MB` or `1GiB`.")
    return int(float(match[1]) * _UNITS[match[2].upper()])


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """The bytes that a fit takes, before it is decided where its rows go."""

    fixed: int
    """The program, rows that are being read, and indexes of keys."""
    coded: int
    """All rows when they are coded."""
    counting: int
    """The parts that are counted at the same time."""
    stripes: Stripes

    @property
    def in_memory(self) -> int:
        """All of it, if rows are in memory."""
        return self.fixed + self.coded + self.counting

    @property
    def in_files(self) -> int:
        """What is needed at least, if rows are in files."""
        return self.fixed + self.counting + _BUFFERS


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePlan:
    """How a fit will hold its rows."""

    rows: Mapping[str, int]
    """By table, as the source tells."""
    stripes: Stripes
    in_files: bool
    buffers: int
    """So many bytes of rows may wait for their files."""
    expected: int
    """About so many bytes of memory the fit will take."""

    def __str__(self) -> str:
        place = "in files" if self.in_files else "in memory"
        return f"about {self.expected / 10**6:,.0f} MB of memory, rows {place}"


def plan_store(
    source: Source,
    protection: Protection,
    codecs: Codecs,
    *,
    memory: int | None,
    in_one_part: bool,
    root: Path = ROOT,
) -> StorePlan:
    """Decide where the rows go. Raises SpecError if `memory` is too small, which says what is enough.

    `root` is where the machine tells what is free.
    """
    rows = {t.name: protection.made_up.get(t.name) or source.rows(t.name) for t in protection.schema.tables}
    needed = needed_memory(rows, protection, codecs, in_one_part=in_one_part)
    whole, allowed = _is_whole(protection, in_one_part=in_one_part), allowed_memory(memory, root)
    if needed.in_memory <= allowed or (memory is None and whole):
        return StorePlan(rows=rows, stripes=needed.stripes, in_files=False, buffers=0, expected=needed.in_memory)
    if whole or needed.in_files > allowed:
        least = needed.in_memory if whole else min(needed.in_files, needed.in_memory)
        raise SpecError(_too_small(memory, allowed, least, whole=whole))
    spare = (allowed - needed.in_files) // 4
    return StorePlan(
        rows=rows, stripes=needed.stripes, in_files=True, buffers=_BUFFERS + spare, expected=needed.in_files + spare
    )


def needed_memory(rows: Mapping[str, int], protection: Protection, codecs: Codecs, *, in_one_part: bool) -> Needed:
    """What a fit takes of a database of so many rows by table; columns without a codec get theirs later."""
    private = sum(rows[name] for name in protection.order)
    whole = _is_whole(protection, in_one_part=in_one_part)
    stripes = Stripes(0) if whole else Stripes.of(private, rows[protection.entity])
    widths = {name: _row_bytes(protection, name, codecs) for name in protection.order}
    part = private / stripes.parts * (_COUNTING + max(widths.values()))
    return Needed(
        fixed=BASE + min(private * _ON_THE_WAY, _MOST_ON_THE_WAY) + _index_bytes(protection, rows),
        coded=sum(rows[name] * widths[name] for name in protection.order),
        counting=int(part * min(stripes.parts, cores())),
        stripes=stripes,
    )


def allowed_memory(memory: int | None, root: Path = ROOT) -> int:
    """The bytes that a fit may take: as many as the caller says and its container has left, or half of what is free."""
    if memory is None:
        return free_memory(root) // 2
    room = room_in_container(root)
    return memory if room is None else min(memory, room)


def _is_whole(protection: Protection, *, in_one_part: bool) -> bool:
    """Whether all rows are needed at once."""
    return in_one_part or bool(protection.lookups)


def _too_small(memory: int | None, allowed: int, least: int, *, whole: bool) -> str:
    needed = _rounded_up(-(-least // 10**6))
    why = " Its method, or a table that is owned by rows that reference it, needs all rows at once." if whole else ""
    if memory is None:
        return f"this database takes about {needed:,} MB of memory, and less than half of that is free.{why}"
    if allowed < memory:
        return (
            f"this database takes at least about {needed:,} MB of memory, and the container that this runs in has "
            f"{allowed / 10**6:,.4g} MB left. Give it a higher limit.{why}"
        )
    return (
        f"--memory {memory / 10**6:,.4g} MB: is too small for this database, which takes at least about {needed:,} MB: "
        f"say `--memory {needed}MB`.{why}"
    )


def _rounded_up(number: int) -> int:
    """A whole number to two digits, not less than it: it follows from the rows of private tables.

    >>> _rounded_up(386), _rounded_up(12001), _rounded_up(7)
    (390, 13000, 7)
    """
    step = int(10 ** max(len(str(number)) - 2, 0))
    return -(-number // step) * step


def _row_bytes(protection: Protection, name: str, codecs: Codecs) -> int:
    """What a row of a table takes while it is gathered."""
    table = protection.schema.table(name)
    known = codecs[name]
    codes = sum(1 if codec.size <= 2**8 else 2 for codec in known.values())
    values = sum(
        _value_bytes(table.column(column).type) for column in protection.attributes(name) if column not in known
    )
    links = protection.links_of(name)
    keys = sum(_POSITION for link in links if link.target != protection.entity or link.kind is not LinkKind.OWNER)
    order = 0 if table.primary_key or name == protection.entity else _HASH
    return codes + values + keys + order + 2 * _POSITION


def _value_bytes(kind: SqlType) -> int:
    """What a value takes that is kept until its column has a domain: twice, while it is put into its part."""
    return 2 * _TEXT if kind.kind is Kind.TEXT else 2 * kind.arrow.bit_width // 8 + 1


def _index_bytes(protection: Protection, rows: Mapping[str, int]) -> int:
    """What indexes of keys take that others reference, and the entities of rows that own others."""
    referenced = {link.target for link in protection.keys}
    owners = {key.table for key in protection.owners.values()} - {protection.entity}
    indexes = sum(rows[name] * _key_bytes(protection, protection.schema.table(name)) for name in referenced)
    return indexes + sum(rows[name] * _POSITION for name in owners)


def _key_bytes(protection: Protection, table: Table) -> int:
    whole = protection.roles[table.name] is Role.PUBLIC or (
        table.name == protection.entity and ids_are_public(protection)
    )
    numbered = len(table.primary_key) == 1 and table.column(table.primary_key[0]).type.kind is Kind.INTEGER
    return 3 * _POSITION if numbered and not whole else _TEXT + _HASH + _POSITION
