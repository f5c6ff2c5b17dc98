"""The rows of a private table as codes and row numbers, block by block: all of a synthetic row but its values.

A block is a range of owner rows with the rows they own, so that rows come out grouped by owner, and each block has
its own random stream. `rows` makes values of them; estimates need no values.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privbench.generation.blocks import OwnerBlocks, Span, child_spans, given_codes, spans
from privbench.generation.carried import ENTITY, LONE, Spools, number
from privbench.generation.computed import counted_keys
from privbench.generation.keys import keeps_entity_keys
from privbench.generation.partition import WHOLE, Partition, is_shared, merged_ranks, partition_rows, rows_before
from privbench.generation.sizes import (
    Sizes,
    is_counted,
    most_rows_per_owner,
    planned_rows,
    rows_without_owner,
    within_reach,
)
from privbench.generation.totals import Scaling, scaling, tally
from privbench.model.model import Model, has_child_rows
from privbench.model.order import generation_order, links_ahead, referenced_ahead
from privbench.model.public_counts import public_counts
from privbench.schema.unit import Link, LinkKind
from privbench.spn.feature_names import COMPONENT
from privbench.spn.link import Points, RowBlock, TargetRows
from privbench.spn.sample import asks_first_rows, draw_within_bins, first_codes, sample, sample_siblings
from privbench.threads import cores, in_order

Rng = np.random.Generator
Rows = NDArray[np.int64]
Codes = NDArray[np.uint16]

APART = 2**31
"""The number of no block: streams of keys that go on from block to block have it."""
ROUNDING = APART + 1
"""The number of no block: streams that say which owners' numbers of rows are rounded up have it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Rows of a table."""

    first_row: int
    """Its number in the table, over all partitions."""
    rows: int
    codes: dict[str, Codes]
    """By column of the network."""
    given: dict[str, Codes] | None
    """What was known of the rows before they were drawn; None where it was drawn with them."""
    targets: dict[str, Rows]
    """By key: the row that it references, -1 for NULL."""
    local: frozenset[str]
    """The keys whose targets are places of this block, not rows of the table."""
    counts: dict[str, Rows]
    """By owner key into the table: how many child rows come with each row, where a computed column says so."""
    entities: Callable[[], Rows]
    """Works out the entity of each row, for the few that ask."""
    further_up: Rows | None
    """Of rows without owner, the row that their nearest implied key references; None: they have owners, or no such key.
    """
    rng: Rng

    def features(self, names: set[str], kept: Rows | None = None) -> dict[str, Codes]:
        """The codes of some features, own or given, of all rows or of those kept."""
        codes = self.codes | (self.given or {})
        return {name: codes[name] if kept is None else codes[name][kept] for name in names}


class _Codes(NamedTuple):
    """What networks say of a block's rows: codes by column, given ones, and numbers of child rows by owner key."""

    codes: dict[str, Codes]
    given: dict[str, Codes] | None
    counts: dict[str, Rows]


class DrawRun:
    """What all tables of one run share: the order in which they are made, their sizes, and what their rows carry."""

    def __init__(
        self,
        model: Model,
        *,
        scale: float,
        seed: int,
        folder: Path,
        partition: Partition = WHOLE,
        threads: int | None = None,
    ) -> None:
        """What rows carry is kept in `folder`, which the caller removes; `threads` is by default the cores."""
        self._model = model
        self._scale = scale
        self._seed = seed
        self._partition = partition
        self._threads = threads or cores()
        self.keeps_entity_keys = keeps_entity_keys(model, scale)
        self.spools = Spools(model, folder)
        owners_first = has_child_rows(model)
        self.order = generation_order(model.spec, model.protection, owners_first=owners_first)
        self.ahead = links_ahead(model.protection, self.order)
        """Keys that are drawn before the rows that they reference."""
        promised = referenced_ahead(model.protection, self.order) if owners_first else frozenset()
        self.totals = within_reach(model, planned_rows(model, scale), promised)
        """How many rows each table is to have in all partitions."""
        self.planned = partition_rows(model, self.totals, scale, partition)
        """How many rows each table is to have here."""
        self.first = rows_before(model, self.totals, scale, partition)
        """The number of each private table's first row."""
        owners = [link for name in model.protection.order if (link := model.protection.owner_link(name))]
        self._alone = {
            link.table: partition.share(rows_without_owner(model, link, rows=self.totals[link.table], scale=scale))
            for link in owners
        }

    def draws(self, name: str, sizes: Sizes) -> "Draws":
        """Draw the rows of a private table; `sizes` are those of the tables so far, and planned ones."""
        return Draws(
            self._model,
            name,
            rows=self.planned[name],
            first=self.first[name],
            alone=self._alone,
            sizes=sizes,
            spools=self.spools,
            seed=self._stream_of(name),
            known=self._known(name),
            threads=self._threads,
        )

    def key_numbers(self, name: str, ranks: Rows) -> Rows:
        """The numbers over all partitions of keys that are numbered by a column, given their ranks in this one."""
        if self._partition.count == 1 or is_shared(self._model, name):
            return ranks
        count = self._partition.count
        each = [Partition(number=number, count=count) for number in range(count)]
        sizes = [partition_rows(self._model, self.totals, self._scale, one)[name] for one in each]
        return merged_ranks(ranks, sizes, self._partition.number)

    def _stream_of(self, name: str) -> tuple[int, ...]:
        """What the random streams of a table begin with: another one in each partition, unless all make the same."""
        own = (self._seed, [t.name for t in self._model.protection.schema.tables].index(name))
        divided = self._partition.count > 1 and not is_shared(self._model, name)
        return (*own, self._partition.count, self._partition.number) if divided else own

    def _known(self, name: str) -> dict[str, Codes]:
        """What is public of the rows of a table."""
        if not self.keeps_entity_keys:
            return {}
        here = slice(self.first[name], self.first[name] + self.planned[name])
        return {column: codes[here] for column, codes in public_counts(self._model, name).items()}


class Draws:
    """Draws the rows of one private table."""

    def __init__(
        self,
        model: Model,
        name: str,
        *,
        rows: int,
        first: int,
        alone: Sizes,
        sizes: Sizes,
        spools: Spools,
        seed: tuple[int, ...],
        known: Mapping[str, Codes],
        threads: int,
    ) -> None:
        """`rows` are planned, numbered from `first`, and `sizes` the rows of all tables, made or planned.

        `alone` are rows without owner, by table. `known` holds given columns that are public, for all rows.
        """
        self._model = model.tables[name]
        self._links = model.protection.links_of(name)
        self.owner = model.protection.owner_link(name)
        self._implied = model.protection.implied_of(name)
        self._spools = spools
        self._threads = threads
        self._known = known
        self._first = first
        self._most = most_rows_per_owner(model, name, sizes)
        self._seed = seed
        self._alone = 0
        self._owner_blocks = self._find_owner_blocks(rows, alone, final=is_counted(model, name))
        self.rows = rows if self._owner_blocks is None else self._owner_blocks.rows + self._alone
        self._sizes = {**sizes, name: self.rows}
        self._targets = {link.name: self._target_rows(place, link) for place, link in enumerate(self._links)}
        self._local = frozenset(
            k.name for k in self._links if k.target == k.table and self._model.links[k.name].places_in_block
        )
        self._asked_above = {k.target for k in self._links if self._model.links[k.name].knows_above}
        self._counted = counted_keys(model, name, self._sizes, alone=alone)

    def blocks(self) -> Iterator[Block]:
        """The table, one block after the other."""
        scalings = self._scale_counts() if self._counted else {}
        left = {name: own.start for name, own in scalings.items()}
        for span, drawn, rng in self._codes_of_blocks():
            for name, own in scalings.items():
                drawn.counts[name], left[name] = own.scaled(drawn.counts[name], left[name], rng=rng)
            yield self._draw(span, drawn, rng)

    def redraw(self, block: Block, places: Rows, columns: Collection[str] | None = None) -> dict[str, Codes]:
        """New codes for some rows of a block, of all columns or of some."""
        given = None if block.given is None else {name: codes[places] for name, codes in block.given.items()}
        return sample(self._model.network, len(places), block.rng, given=given, wanted=columns)

    def redraw_within(self, block: Block, places: Rows, columns: Collection[str]) -> dict[str, Codes]:
        """Other codes for some columns of some rows of a block, of the bins that they are in, where these have any."""
        known = {name: block.codes[name][places] for name in columns}
        return draw_within_bins(self._model.network, known, block.rng)

    def _find_owner_blocks(self, rows: int, alone: Sizes, *, final: bool) -> OwnerBlocks | None:
        """The owners of rows that come with them; `final` says that a column of theirs holds the number drawn."""
        children = None if self.owner is None else self._model.links[self.owner.name].with_owner
        if self.owner is None or children is None:
            return None
        owners = self._spools.of(self.owner.target)
        if self.owner.nullable:
            self._alone = min(alone[self.owner.table], rows) if owners.rows else rows
        return OwnerBlocks(
            owners,
            self.owner,
            most=self._most,
            wanted=None if final else rows - self._alone,
            stream=partial(_stream, *self._seed, ROUNDING),
        )

    def _spans(self) -> Iterator[Span]:
        if self._owner_blocks is None:
            return spans(self._model, self.owner, self.rows, self._sizes, most=self._most)
        return child_spans(self._owner_blocks, self._alone)

    def _codes_of_blocks(self) -> Iterator[tuple[Span, _Codes, Rng]]:
        """The codes of one block after the other, drawn in several threads, each block by its own stream."""

        def draw(block: tuple[int, Span]) -> tuple[Span, _Codes, Rng]:
            place, span = block
            rng = _stream(*self._seed, place)
            return span, self._draw_codes(span, rng), rng

        return in_order(draw, enumerate(self._spans()), threads=self._threads)

    def _scale_counts(self) -> dict[str, Scaling]:
        """How numbers of child rows that columns hold are scaled: all are drawn once before, since all must add up."""
        drawn = {counted.link.name: Counter[int]() for counted in self._counted}
        for _, codes, _ in self._codes_of_blocks():
            for name, numbers in codes.counts.items():
                drawn[name] += tally(numbers)
        return {c.link.name: scaling(drawn[c.link.name], wanted=c.wanted, most=c.most) for c in self._counted}

    def _target_rows(self, place: int, link: Link) -> TargetRows:
        most = self._most if link.kind is LinkKind.OWNER else 1 if link.unique else None
        return TargetRows(
            key=link,
            rows=self._sizes[link.target],
            holders=self.rows,
            most=most,
            network=self._model.network,
            carried=self._spools.of(link.target) if self._spools.is_made(link.target) else None,
            number=number(link),
            entity=ENTITY,
            points=Points(_stream(*self._seed, APART, place).random()),
        )

    def _draw_codes(self, span: Span, rng: Rng) -> _Codes:
        owners = self._spools.of(self.owner.target) if self.owner and self._owner_blocks is not None else None
        given = given_codes(self._model.network, span, owners=owners, known=self._known)
        if given is None or not asks_first_rows(self._model.network):
            codes = sample(self._model.network, span.rows, rng, given=given)
        else:
            firsts = span.firsts()
            codes = sample_siblings(self._model.network, span.rows, rng, given=given, firsts=firsts)
            given |= first_codes(self._model.network, codes, firsts)
        return _Codes(codes, given, {counted.link.name: counted.draw(codes, rng) for counted in self._counted})

    def _draw(self, span: Span, drawn: _Codes, rng: Rng) -> Block:
        codes = dict(drawn.codes)
        parts = codes.pop(COMPONENT, np.zeros(span.rows, np.uint8))
        further_up = None
        entities = own = partial(self._entities, span)
        if self._implied and span.owner_block is None and self._sizes[self._implied[0].target]:
            above = self._spools.of(self._implied[0].target)
            places = rng.integers(0, above.rows, span.rows)
            further_up, own = places, partial(above.mapped(ENTITY).take, places)
        block = Block(
            first_row=self._first + span.first_row,
            rows=span.rows,
            codes=codes,
            given=drawn.given,
            targets=self._draw_targets(span, codes, parts, own, rng),
            local=self._local,
            counts=drawn.counts,
            entities=entities,
            further_up=further_up,
            rng=rng,
        )
        unordered = self.owner is not None and span.owners is not None and span.owner_block is None
        return _grouped(block, self.owner.name) if unordered and self.owner else block

    def _draw_targets(
        self, span: Span, codes: dict[str, Codes], parts: Codes, entities: Callable[[], Rows], rng: Rng
    ) -> dict[str, Rows]:
        """The row that each key references, -1 for NULL."""
        block = RowBlock(
            first_row=span.first_row,
            rows=span.rows,
            codes=codes,
            parts=parts,
            owners=span.owners,
            fanouts=None if span.owner_block is None else span.owner_block.fanouts,
            entities=entities,
            above={table: self._above(span, table) for table in self._asked_above},
        )
        return {name: self._model.links[name].draw(block, rows, rng=rng) for name, rows in self._targets.items()}

    def _above(self, span: Span, table: str) -> Rows:
        """The row of a table above each row of a block, -1 for none."""
        if self.owner is None or span.owner_block is None:
            return np.full(span.rows, -1, np.int64)
        owners = np.repeat(np.arange(span.owner_block.first, span.owner_block.last), span.owner_block.fanouts)
        return self._spools.rows_above(self.owner.target, owners, table)

    def _entities(self, span: Span) -> Rows:
        """Of owned rows their owner's; any other row counts as an entity of its own."""
        if span.owner_block is not None:
            return np.repeat(span.owner_block.entities, span.owner_block.fanouts)
        own = np.arange(span.first_row, span.first_row + span.rows)
        return own if self._owner_blocks is None else LONE + own


def _stream(*entropy: int) -> Rng:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))


def _grouped(block: Block, owner: str) -> Block:
    """Rows in the order of their owners."""
    order = np.argsort(block.targets[owner], kind="stable")
    return replace(
        block,
        codes={name: codes[order] for name, codes in block.codes.items()},
        targets={name: targets[order] for name, targets in block.targets.items()},
    )
