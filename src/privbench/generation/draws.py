"""The rows of a private table as codes and row numbers, block by block: all of a synthetic row but its values.

A block is a range of owner rows with the rows they own, so that rows come out grouped by owner, and each block has
its own random stream. `private_rows` makes values of them; estimates need no values.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privbench.generation.children_of_owners import Broods
from privbench.generation.conditioning import given_codes
from privbench.generation.derived import counted_keys
from privbench.generation.references import NamedKeys
from privbench.generation.spans import Sizes, Span, born_spans, most_rows_per_owner, spans
from privbench.generation.spools import Spools
from privbench.model.model import Model
from privbench.schema.unit import Link, LinkKind
from privbench.spn.links import COMPONENT, LinkCounts, draw_owners, draw_references
from privbench.spn.sample import sample
from privbench.spn.siblings import first_codes, sample_siblings
from privbench.spn.tree_links import Blocks, Fanouts, Named, slots_of

Rng = np.random.Generator
Rows = NDArray[np.int64]
Codes = NDArray[np.uint16]

APART = 2**31
"""The number of no block: streams of keys that go on from block to block have it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Rows of a table."""

    first_row: int
    rows: int
    codes: dict[str, Codes]
    """By column of the network."""
    given: dict[str, Codes] | None
    """What was known of the rows before they were drawn; None where it was drawn with them."""
    targets: dict[str, Rows]
    """By key: the row that it names, -1 for NULL."""
    local: frozenset[str]
    """The keys that name places of this block, not rows of the table."""
    counts: dict[str, Rows]
    """By owner key into the table: how many rows will be born with each, where a derived column says so."""
    entities: Rows
    rng: Rng


class Draws:
    """Draws the rows of one private table."""

    def __init__(
        self,
        model: Model,
        name: str,
        *,
        rows: int,
        scale: float,
        sizes: Sizes,
        spools: Spools,
        seed: int,
        exact: bool = False,
        known: Mapping[str, Codes] | None = None,
    ) -> None:
        """`rows` are planned; `exact` says that no other number will do, since keys were drawn into the table.

        `known` holds given columns that are public, for all rows.
        """
        self._table = model.protection.schema.table(name)
        self._model = model.tables[name]
        self._links = [link for link in model.protection.links if link.table == name]
        self._owner = next((link for link in self._links if link.kind is LinkKind.OWNER), None)
        self._spools = spools
        self._known = known or {}
        self._most = most_rows_per_owner(model, name, sizes)
        self._counted = counted_keys(model, name, sizes)
        self._seed = (seed, [t.name for t in model.protection.schema.tables].index(name))
        self._alone = 0
        self._broods = self._find_broods(rows, scale, exact=exact)
        self.rows = rows if self._broods is None else self._broods.rows + self._alone
        self._sizes = {**sizes, name: self.rows}
        self._named = {
            link.name: self._named_key(place, link, named)
            for place, link in enumerate(self._links)
            if isinstance(named := self._model.links[link.name], Named)
        }

    def blocks(self) -> Iterator[Block]:
        """The table, one block after the other."""
        if self._broods is None:
            found = spans(self._model, self._owner, self.rows, self._sizes, most=self._most)
        else:
            found = born_spans(self._broods, self._alone)
        for place, span in enumerate(found):
            yield self._draw(span, _stream(*self._seed, place))

    def redraw(self, block: Block, places: Rows) -> dict[str, Codes]:
        """New codes for some rows of a block."""
        given = None if block.given is None else {name: codes[places] for name, codes in block.given.items()}
        return sample(self._model.network, len(places), block.rng, given=given)

    def _find_broods(self, rows: int, scale: float, *, exact: bool) -> Broods | None:
        if self._owner is None or not isinstance(link := self._model.links[self._owner.name], Fanouts):
            return None
        nullable = self._owner.nullable
        owners = self._spools.of(self._owner.key.table)
        if nullable:
            self._alone = round(link.unowned * scale)
        if exact:
            self._alone = rows if nullable and not owners.rows else min(self._alone, rows)
        return Broods(owners, self._owner, most=self._most, wanted=rows - self._alone if exact else None)

    def _named_key(self, place: int, link: Link, model: Named) -> NamedKeys:
        return NamedKeys(
            link,
            model,
            self._model.network,
            unique=link.unique,
            rows=self.rows,
            targets=self._sizes[link.key.table],
            spools=self._spools,
            rng=_stream(*self._seed, APART, place),
        )

    def _draw(self, span: Span, rng: Rng) -> Block:
        owners = self._spools.of(self._owner.key.table) if self._owner and self._broods else None
        given = given_codes(self._model.network, span, owners=owners, known=self._known)
        firsts = np.full(span.rows, -1, np.int64) if span.brood is None else span.brood.firsts()
        codes = sample_siblings(self._model.network, span.rows, rng, given=given, firsts=firsts)
        if given is not None:
            given |= first_codes(self._model.network, codes, firsts)
        parts = codes.pop(COMPONENT, np.zeros(span.rows, np.uint16)).astype(np.int64)
        block = Block(
            first_row=span.first_row,
            rows=span.rows,
            codes=codes,
            given=given,
            targets={link.name: self._targets(link, span, codes, parts, rng) for link in self._links},
            local=frozenset(k.name for k in self._links if k.name in self._named and k.key.table == k.table),
            counts={counted.link.name: counted.draw(codes, rng) for counted in self._counted},
            entities=self._entities(span),
            rng=rng,
        )
        unordered = self._owner is not None and span.owners is not None and span.brood is None
        return _grouped(block, self._owner.name) if unordered and self._owner else block

    def _entities(self, span: Span) -> Rows:
        """Of owned rows their owner's; any other row is an entity of its own."""
        if span.brood is not None:
            return np.repeat(span.brood.entities, span.brood.fanouts)
        own = np.arange(span.first_row, span.first_row + span.rows)
        return own if self._broods is None else -1 - own

    def _targets(self, link: Link, span: Span, codes: dict[str, Codes], parts: Rows, rng: Rng) -> Rows:
        model = self._model.links[link.name]
        if isinstance(model, Fanouts):
            return self._born_of(link, span)
        if isinstance(model, Named):
            return self._named[link.name].draw(span, codes, rng=rng)
        if isinstance(model, Blocks):
            return _public_rows(model, codes[model.column], self._sizes[link.key.table], rng)
        if link.kind is LinkKind.OWNER:
            return self._owned_by(link, model, span, parts, rng)
        return self._referring_to(link, model, span, parts, rng)

    def _born_of(self, link: Link, span: Span) -> Rows:
        if span.brood is None:
            return np.full(span.rows, -1, np.int64)
        numbers = self._spools.of(link.key.table).row_numbers(span.brood.first, span.brood.last)
        return np.repeat(numbers, span.brood.fanouts)

    def _owned_by(self, link: Link, model: LinkCounts, span: Span, parts: Rows, rng: Rng) -> Rows:
        if span.owners is None:
            return np.full(span.rows, -1, np.int64)
        return draw_owners(model, parts, *span.owners, self._sizes[link.key.table], most=self._most, rng=rng)

    def _referring_to(self, link: Link, model: LinkCounts, span: Span, parts: Rows, rng: Rng) -> Rows:
        unique = link.unique
        targets = self._sizes[link.key.table]
        first = span.first_row * targets // max(self.rows, 1)
        last = (span.first_row + span.rows) * targets // max(self.rows, 1)
        if not unique:
            first, last = min(first, max(targets - 1, 0)), max(last, min(first + 1, targets))
        return draw_references(model, parts, first, last, targets, most=1 if unique else None, rng=rng)


def _stream(*entropy: int) -> Rng:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))


def _public_rows(model: Blocks, codes: Codes, rows: int, rng: Rng) -> Rows:
    """Rows of a public table, which may have fewer rows now than it had slots."""
    slots = slots_of(model, codes.astype(np.int64), rng=rng)
    return np.where(slots < 0, -1, slots * rows // max(model.slots, 1)) if rows else np.full(len(codes), -1, np.int64)


def _grouped(block: Block, owner: str) -> Block:
    """Rows in the order of their owners."""
    order = np.argsort(block.targets[owner], kind="stable")
    return replace(
        block,
        codes={name: codes[order] for name, codes in block.codes.items()},
        targets={name: targets[order] for name, targets in block.targets.items()},
    )
