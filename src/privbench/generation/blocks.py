"""How the rows of a table are divided into blocks, and what is known of a block's rows before they are drawn.

A block is a range of owner rows with the rows they own. Where child rows come with their owners, the numbers of rows
that were drawn with the owners are scaled to the rows that the table is to have (`totals`). A block then has about as
many rows as any other and is cut only between entities, so that everything about an entity's rows in the table is known
inside its block. Otherwise rows are shared out over ranges of owners, by the counts of the owner key's link.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.generation.carried import ENTITY, Carried, feature, number
from privbench.generation.sizes import Sizes
from privbench.generation.totals import scaling, tally
from privbench.methods.method import TableModel
from privbench.schema.unit import Link
from privbench.spn.fanouts import bin_of, rank_codes, size_edges
from privbench.spn.feature_names import FIRST, OWNER, RANK, STRATUM
from privbench.spn.nodes import Node, given_columns
from privbench.spn.sample import first_rows

BLOCK_ROWS = 131_072
"""About how many rows a block has."""
MOST_OWNERS = 4
"""Owner rows of a block, in multiples of the rows that a block should have: few owners may have rows."""
FEWEST_OWNERS = 1_024
"""At least so many owners are looked at to find the end of a block."""

Codes = NDArray[np.uint16]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnerBlock:
    """The owner rows first .. last-1 with their numbers of child rows and their entities."""

    first: int
    last: int
    fanouts: Numbers  # (owner rows,)
    entities: Numbers  # (owner rows,)

    def ranks(self) -> Codes:
        """The bin of each child row's rank among its owner's."""
        return rank_codes(self.fanouts)

    def firsts(self) -> Numbers:
        """The place of the first row of each child row's owner; -1 for first rows."""
        return first_rows(np.repeat(np.arange(len(self.fanouts)), self.fanouts))

    def sizes(self) -> Codes:
        """The bin of each child row's number of rows of its entity."""
        entity = np.cumsum(np.diff(self.entities, prepend=self.entities[:1]) != 0)
        rows = np.bincount(entity, self.fanouts).astype(np.int64)
        return np.repeat(bin_of(rows, size_edges())[entity], self.fanouts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A block to be made: its rows, and the range of owner rows that they are spread over (none: no owner)."""

    first_row: int
    rows: int
    owners: tuple[int, int] | None
    owner_block: OwnerBlock | None = None
    """The owners with how many rows each has, where child rows come with their owner."""

    def firsts(self) -> Numbers:
        """The place of the first row of each row's owner; -1 for first rows, and where owners are not known yet."""
        return np.full(self.rows, -1, np.int64) if self.owner_block is None else self.owner_block.firsts()


def spans(model: TableModel, owner: Link | None, rows: int, sizes: Sizes, *, most: int) -> Iterator[Span]:
    """Divide the rows of a table into blocks; rows with an owner first, by ranges of owners, then those without."""
    if owner is None:
        yield from _unowned(0, rows)
        return
    shares = model.links[owner.name].shares
    if shares is None:
        raise ModelError(f"{owner.name}: the link of an owner key says neither how many rows an owner has nor whose.")
    owners = sizes[owner.target]
    alone = round(rows * shares.null_share) if owner.nullable else 0
    if owners == 0:
        alone = rows if owner.nullable else 0
    owned = rows - alone if owners else 0
    step = max(1, -(-owners * BLOCK_ROWS // max(owned, 1)))
    done = 0
    for first in range(0, owners if owned else 0, step):
        last = min(first + step, owners)
        due = round(owned * shares.share(0, last, owners))
        fitting = min(due - done, (last - first) * most)
        yield Span(first_row=done, rows=fitting, owners=(first, last))
        done += fitting
    yield from _unowned(done, alone)


def child_spans(blocks: Iterable[OwnerBlock], alone: int) -> Iterator[Span]:
    """The blocks of a table whose rows come with their owners, then those without one."""
    done = 0
    for block in blocks:
        rows = int(block.fanouts.sum())
        yield Span(first_row=done, rows=rows, owners=(block.first, block.last), owner_block=block)
        done += rows
    yield from _unowned(done, alone)


def _unowned(first: int, rows: int) -> Iterator[Span]:
    for start in range(0, rows, BLOCK_ROWS):
        yield Span(first_row=first + start, rows=min(BLOCK_ROWS, rows - start), owners=None)


def given_codes(
    network: Node, span: Span, *, owners: Carried | None, known: Mapping[str, Codes]
) -> dict[str, Codes] | None:
    """The codes of all given columns, row by row; None where they are not known and must be drawn, too.

    `owners` is what the owner table carries, `known` are public codes of all rows of the table. What the first row of
    an owner is like is not known yet: here all rows are first.
    """
    codes: dict[str, Codes] = {}
    for column in given_columns(network):
        name = column.column
        if name in known:
            codes[name] = known[name][span.first_row : span.first_row + span.rows]
        elif owners is None:
            return None
        elif span.owner_block is None or name.startswith(FIRST):
            code = len(column.bins) - 1 if name.startswith((OWNER, FIRST)) else 0
            codes[name] = np.full(span.rows, code, np.uint16)
        else:
            codes[name] = _of_owner(name, owners, span.owner_block)
    return codes or None


def _of_owner(name: str, owners: Carried, block: OwnerBlock) -> Codes:
    if name == RANK:
        return block.ranks()
    if name == STRATUM:
        return block.sizes()
    return np.repeat(owners.read(feature(name.removeprefix(OWNER)), block.first, block.last), block.fanouts)


class OwnerBlocks:
    """The owners of one table whose rows come with them, block by block; the same blocks each time."""

    def __init__(
        self,
        owners: Carried,
        link: Link,
        *,
        most: int,
        wanted: int | None,
        stream: Callable[[int], np.random.Generator],
    ) -> None:
        """An owner has at most `most` rows.

        `wanted` is how many rows there are to be in all; None: what was drawn is final. `stream` draws for the block
        that begins with an owner.
        """
        self._owners = owners
        self._column = number(link)
        self._most = most
        self._stream = stream
        drawn = sum((tally(self._fanouts(first, last)) for first, last in self._ranges()), Counter[int]())
        total = sum(fanout * alike for fanout, alike in drawn.items())
        self._scaling = scaling(drawn, wanted=total if wanted is None else wanted, most=most)
        self.rows = self._scaling.rows

    def __iter__(self) -> Iterator[OwnerBlock]:
        first, left = 0, self._scaling.start
        while first < self._owners.rows:
            drawn, entities = self._next(first, left)
            fanouts, left = self._scaling.scaled(drawn, left, rng=self._stream(first))
            yield OwnerBlock(first=first, last=first + len(drawn), fanouts=fanouts, entities=entities)
            first += len(drawn)

    def _ranges(self) -> Iterator[tuple[int, int]]:
        step = MOST_OWNERS * BLOCK_ROWS
        for first in range(0, self._owners.rows, step):
            yield first, min(first + step, self._owners.rows)

    def _fanouts(self, first: int, last: int) -> Numbers:
        return np.asarray(np.minimum(self._owners.read(self._column, first, last), self._most))

    def _next(self, first: int, left: int) -> tuple[Numbers, Numbers]:
        """Drawn numbers and entities of the block that begins there.

        It ends where there are enough rows or owners, and the next owner is of another entity.
        """
        all_rows = self._owners.rows
        window = min(max(BLOCK_ROWS * all_rows * 5 // 4 // max(self.rows, 1), FEWEST_OWNERS), MOST_OWNERS * BLOCK_ROWS)
        while True:
            last = min(first + window, all_rows)
            fanouts, entities = self._fanouts(first, last), self._owners.read(ENTITY, first, last)
            enough = int(np.searchsorted(self._scaling.sums(fanouts, left), BLOCK_ROWS))
            enough = min(enough, MOST_OWNERS * BLOCK_ROWS // 2)
            ends = np.flatnonzero(np.append(np.diff(entities[enough:]) != 0, last == all_rows))
            if len(ends):
                end = enough + int(ends[0]) + 1
                return fanouts[:end], entities[:end]
            window *= 2
