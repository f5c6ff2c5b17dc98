"""The rows of a private table, block by block: sampled codes, owners, references, values.

A block is a range of owner rows with the rows they own, so that rows come out grouped by owner, and no block
needs to know another: each has its own random stream, and any scale streams in constant memory.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.methods.base import TableModel
from privbench.pipeline.keymaker import KeyMaker
from privbench.pipeline.model import Model
from privbench.pipeline.order import colliding_keys, is_numbered
from privbench.pipeline.spans import Sizes, Span, key_is_unique, most_rows_per_owner, spans
from privbench.pipeline.unique import ROUNDS, Uniqueness, settled
from privbench.schema.unit import Link, LinkKind
from privbench.spn.links import COMPONENT, draw_owners, draw_references
from privbench.spn.sample import sample

Rng = np.random.Generator


@dataclass(slots=True, kw_only=True)
class _Drawn:
    """Codes by column and target rows by key name."""

    codes: dict[str, NDArray[np.uint16]]
    targets: dict[str, NDArray[np.int64]]


class PrivateRows:
    """Makes the rows of one private table."""

    def __init__(self, model: Model, name: str, *, rows: int, sizes: Sizes, keys: KeyMaker, seed: int) -> None:
        self._table = model.protection.schema.table(name)
        self._model: TableModel = model.tables[name]
        self._codecs = model.codecs[name]
        self._links = [link for link in model.protection.links if link.table == name]
        self._rows = rows
        self._sizes = sizes
        self._keys = keys
        self._most = most_rows_per_owner(model, name, sizes)
        self._seed = (seed, [t.name for t in model.protection.schema.tables].index(name))
        self._unique = [
            Uniqueness(key, local=self._holds_owner(key)) for key in colliding_keys(model.spec, self._table)
        ]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The table, at most a few blocks in memory."""
        written = 0
        schema = pa.schema([pa.field(c.name, c.type.arrow) for c in self._table.columns])
        owner = self._owner()
        for number, span in enumerate(spans(self._table, self._model, owner, self._rows, self._sizes, most=self._most)):
            rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((*self._seed, number))))
            values = self._block(span, written, rng)
            count = len(next(iter(values.values())))
            written += count
            if count:
                yield pa.RecordBatch.from_arrays([values[f.name] for f in schema], schema=schema)

    def _block(self, span: Span, written: int, rng: Rng) -> dict[str, pa.Array]:
        drawn = self._draw(span, rng)
        values = self._values(drawn, span, rng)
        for unique in self._unique:
            values = unique.mend(values, partial(self._redraw, unique, drawn, span, rng))
        values, keep = settled(values, self._complete(values, span.rows), self._unique)
        if self._unique:
            values |= self._within(drawn, keep, written)
        if is_numbered(self._table, self._table.primary_key):
            rows = np.arange(written, written + int(keep.sum()))
            values[self._table.primary_key[0]] = self._keys.own_key(self._table, rows)
        return values

    def _within(self, drawn: _Drawn, keep: NDArray[np.bool_], written: int) -> dict[str, pa.Array]:
        """Keys to the table's own rows, moved to rows that are there for sure, since rows may be lost."""
        there = written + int(keep.sum())
        values: dict[str, pa.Array] = {}
        for link in (k for k in self._links if k.key.table == self._table.name):
            targets = drawn.targets[link.name][keep]
            in_key = any(set(link.key.columns) & set(unique.columns) for unique in self._unique)
            moved = np.where(targets < there, targets, -1 if in_key else targets % max(there, 1))
            values |= self._key_values(link, moved)
        return values

    def _draw(self, span: Span, rng: Rng) -> _Drawn:
        codes = sample(self._model.network, span.rows, rng)
        parts = codes.pop(COMPONENT).astype(np.int64)
        targets: dict[str, NDArray[np.int64]] = {}
        for link in self._links:
            name = link.name
            if link.kind is LinkKind.OWNER:
                targets[name] = self._draw_owners(link, span, parts, rng)
            else:
                targets[name] = self._draw_references(link, span, parts, rng)
        drawn = _Drawn(codes=codes, targets=targets)
        return _grouped(drawn, owner) if (owner := self._owner()) and span.owners else drawn

    def _draw_owners(self, link: Link, span: Span, parts: NDArray[np.int64], rng: Rng) -> NDArray[np.int64]:
        if span.owners is None:
            return np.full(span.rows, -1, np.int64)
        counts = self._model.links[link.name]
        return draw_owners(counts, parts, *span.owners, self._sizes[link.key.table], most=self._most, rng=rng)

    def _draw_references(self, link: Link, span: Span, parts: NDArray[np.int64], rng: Rng) -> NDArray[np.int64]:
        counts = self._model.links[link.name]
        unique = key_is_unique(self._table, link)
        targets = self._sizes[link.key.table]
        first = span.first_row * targets // max(self._rows, 1)
        last = (span.first_row + span.rows) * targets // max(self._rows, 1)
        if not unique:
            first, last = min(first, max(targets - 1, 0)), max(last, min(first + 1, targets))
        return draw_references(counts, parts, first, last, targets, most=1 if unique else None, rng=rng)

    def _values(self, drawn: _Drawn, span: Span, rng: Rng) -> dict[str, pa.Array]:
        values: dict[str, pa.Array] = {}
        for name, codec in self._codecs.items():
            values[name] = codec.decode(drawn.codes[name], rng, first_row=span.first_row)
        for link in self._links:
            values |= self._key_values(link, drawn.targets[link.name])
        return values

    def _key_values(self, link: Link, targets: NDArray[np.int64]) -> dict[str, pa.Array]:
        """The values of a key. Where only some of its columns may be NULL, the others of a NULL key have any value."""
        columns = [self._table.column(c) for c in link.key.columns]
        partly = any(c.nullable for c in columns) and self._sizes[link.key.table] > 0
        anywhere = np.where(targets < 0, np.arange(len(targets)) % max(self._sizes[link.key.table], 1), targets)
        values = {}
        for column, reference in zip(columns, link.key.references, strict=True):
            rows = anywhere if partly and not column.nullable else targets
            values[column.name] = self._keys.values(link.key.table, reference, rows).cast(column.type.arrow)
        return values

    def _complete(self, values: Mapping[str, pa.Array], rows: int) -> NDArray[np.bool_]:
        """Rows that have all they must have: a NOT NULL key whose target table is empty cannot be filled."""
        keep = np.ones(rows, bool)
        for link in self._links:
            for name in link.key.columns:
                if not self._table.column(name).nullable:
                    keep &= values[name].is_valid().to_numpy(zero_copy_only=False)
        return keep

    def _redraw(
        self, unique: Uniqueness, drawn: _Drawn, span: Span, rng: Rng, places: NDArray[np.int64], attempt: int
    ) -> dict[str, pa.Array]:
        """New values for a key's own columns: first from the network, then, if that keeps repeating, from anywhere."""
        values: dict[str, pa.Array] = {}
        codes = sample(self._model.network, len(places), rng)
        for name in (c for c in unique.columns if c in self._codecs):
            codec = self._codecs[name]
            if attempt >= ROUNDS // 3:
                codes[name] = rng.integers(0, codec.size - (codec.null_code is not None), len(places)).astype(np.uint16)
            values[name] = codec.decode(codes[name], rng, first_row=span.first_row)
        for link in self._links:
            if link.kind is not LinkKind.OWNER and set(link.key.columns) & set(unique.columns):
                targets = drawn.targets[link.name]
                anew = rng.integers(0, max(self._sizes[link.key.table], 1), len(places))
                targets[places] = np.where(targets[places] < 0, -1, anew)
                values |= self._key_values(link, targets[places])
        return values

    def _owner(self) -> Link | None:
        return next((link for link in self._links if link.kind is LinkKind.OWNER), None)

    def _holds_owner(self, key: tuple[str, ...]) -> bool:
        owner = self._owner()
        return owner is not None and set(owner.key.columns) <= set(key)


def _grouped(drawn: _Drawn, owner: Link) -> _Drawn:
    """Rows in the order of their owners."""
    order = np.argsort(drawn.targets[owner.name], kind="stable")
    return _Drawn(
        codes={name: codes[order] for name, codes in drawn.codes.items()},
        targets={name: targets[order] for name, targets in drawn.targets.items()},
    )
