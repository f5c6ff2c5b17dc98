"""How the rows of a table are divided into blocks, and how many rows an owner may have.

A block is a range of owner rows with the rows they own. An owner has at most as many rows as an entity may have, and
no more than its keys can tell apart; both are public or follow from the spec.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

from privbench.generation.child_rows import Brood
from privbench.methods.method import TableModel
from privbench.model.model import Model
from privbench.schema.domain import Range, Values
from privbench.schema.unit import Link, LinkKind
from privbench.spn.fanouts import MANY
from privbench.spn.links import expected_share, null_share
from privbench.spn.tree_links import counted

BLOCK_ROWS = 65_536
"""About how many rows a block has."""

Sizes = Mapping[str, int]
"""How many rows each table has or will have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A block to be made: its rows, and the range of owner rows that they are spread over (none: no owner)."""

    first_row: int
    rows: int
    owners: tuple[int, int] | None
    brood: Brood | None = None
    """The owners with how many rows each has, where rows are born with their owner."""


def spans(model: TableModel, owner: Link | None, rows: int, sizes: Sizes, *, most: int) -> Iterator[Span]:
    """Divide the rows of a table into blocks; rows with an owner first, by ranges of owners, then those without."""
    if owner is None:
        yield from _unowned(0, rows)
        return
    counts = counted(model.links[owner.name])
    nullable = owner.nullable
    owners = sizes[owner.key.table]
    alone = round(rows * null_share(counts)) if nullable else 0
    if owners == 0:
        alone = rows if nullable else 0
    owned = rows - alone if owners else 0
    step = max(1, -(-owners * BLOCK_ROWS // max(owned, 1)))
    done = 0
    for first in range(0, owners if owned else 0, step):
        last = min(first + step, owners)
        due = round(owned * expected_share(counts, 0, last, owners))
        mine = min(due - done, (last - first) * most)
        yield Span(first_row=done, rows=mine, owners=(first, last))
        done += mine
    yield from _unowned(done, alone)


def born_spans(broods: Iterable[Brood], alone: int) -> Iterator[Span]:
    """The blocks of a table whose rows are born with their owners, then those without one."""
    done = 0
    for brood in broods:
        rows = int(brood.fanouts.sum())
        yield Span(first_row=done, rows=rows, owners=(brood.first, brood.last), brood=brood)
        done += rows
    yield from _unowned(done, alone)


def most_rows_per_owner(model: Model, name: str, sizes: Sizes) -> int:
    """The most rows of a table that one owner row may have: by the cap, and by each key that holds the owner key."""
    table = model.protection.schema.table(name)
    owner = next((k for k in model.protection.links if k.table == name and k.kind is LinkKind.OWNER), None)
    if owner is None:
        return MANY
    limits = [
        prod(_different(model, name, c, sizes) for c in key if c not in owner.key.columns)
        for key in table.keys
        if set(owner.key.columns) <= set(key)
    ]
    cap = model.receipt["unit"]["tables"][name]["rows_per_entity"]  # null: an entity may have any number
    return max(1, min([MANY if cap is None else int(cap), *limits]))


def _different(model: Model, name: str, column: str, sizes: Sizes) -> int:
    """About how many different values a column of a key can have."""
    for link in model.protection.links:
        if link.table == name and column in link.key.columns:
            return sizes[link.key.table]
    said = model.protection.schema.table(name).column(column)
    if said.derived is not None and said.derived.rank is not None:
        return said.type.bounds[1] - said.derived.rank + 1
    codec = model.codecs[name].get(column)
    listed = isinstance(model.spec.column(name, column).domain, Range | Values)
    return codec.size - (codec.null_code is not None) if codec is not None and listed else MANY


def _unowned(first: int, rows: int) -> Iterator[Span]:
    for start in range(0, rows, BLOCK_ROWS):
        yield Span(first_row=first + start, rows=min(BLOCK_ROWS, rows - start), owners=None)
