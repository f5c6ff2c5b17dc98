"""Text: free or unique text whose cells are ranges of lengths; the strings themselves are made up, perhaps in a shape.

Without `distinct` each row gets a string of its own, spelled from its row number: uniqueness comes before the
length, so a string grows (at most to the VARCHAR's length) where its cell is too short for the row number. Where there
are fewer strings than rows, as in a CHAR(1), they repeat, unless the column is in a key. With
`distinct` strings come from a pool of about that many; a string of the pool is a function of its number, so the
pool takes no memory.

A shape comes before the length, too: a string of the shape is as near to its cell as the shape has any.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.grid import one_array
from privbench.encode.layout import Codes, LaidOut, Layout, blank
from privbench.encode.pool import draw_ranks, weights
from privbench.encode.predicate import All, OfValues, Predicate, conjunction
from privbench.encode.shapes import SHARED, Composed, Shaping, shaping
from privbench.encode.spelling import LETTERS, SYLLABLES, salt_of
from privbench.errors import SchemaError, SpecError
from privbench.schema.domain import Domain, Serial, Text, Values
from privbench.schema.types import Kind, SqlType

_SAMPLE = 256
_MANY = 10_000_000
"""Of fewer strings than this, rows may share one."""
_LENGTHS = (0, 8, 16, 32, 64, 128)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LengthCodec(LaidOut):
    """Cell i holds the strings of shortest[i] .. longest[i] characters; still longer ones are in the last cell."""

    shortest: NDArray[np.int64]  # (cells,)
    longest: NDArray[np.int64]  # (cells,)
    limit: int | None
    distinct: int | None
    skew: float
    shape: str | None
    shaping: Shaping
    ordered: bool = True
    in_key: bool = False
    """Whether no string may repeat, however many rows there are."""

    def encode(self, values: pa.Array | pa.ChunkedArray) -> Codes:
        """Return the code of each string's length."""
        lengths = pc.fill_null(one_array(pc.utf8_length(values)), 0).to_numpy(zero_copy_only=False)
        return self.layout.pack(np.searchsorted(self.shortest[1:], lengths, side="right"), values)

    def decode(self, codes: Codes, rng: np.random.Generator, *, first_row: int) -> pa.Array:
        """Make up a string of a fitting length for each code."""
        nulls = self.layout.nulls(codes)
        if self.distinct is None:
            cells = np.where(nulls, 0, codes).astype(np.int64)
            return blank(self._unique(cells, first_row=first_row), nulls)
        rows = np.flatnonzero(~nulls)
        cells = codes[rows].astype(np.int64)
        sizes = self._pool_sizes(cells, self.distinct)
        before = first_row / max(len(codes), 1)  # batches of this size that came before
        ranks = draw_ranks(cells, sizes, rng, before=before, skew=self.skew)
        places = np.zeros(len(codes), dtype=np.int64)  # where in the pooled strings each row finds its own
        made, places[rows] = self._pooled(cells, ranks, pool=self.distinct)
        return made.take(pa.array(places, mask=nulls))

    def coverage(self, predicate: Predicate | All) -> NDArray[np.float64]:
        """Return the share of each cell's made-up strings that satisfies the predicate, from a fixed sample of them."""
        return self.layout.coverage(predicate, self._shares)

    def labels(self) -> tuple[str, ...]:
        """Return the lengths of each cell."""
        pairs = zip(self.shortest.tolist(), self.longest.tolist(), strict=True)
        return self.layout.labels([f"{a} characters" if a == b else f"{a} .. {b} characters" for a, b in pairs])

    def _shares(self, parts: tuple[OfValues, ...]) -> NDArray[np.float64]:
        """Test strings of each cell: of a pool the most frequent ones, which stand for the others, too."""
        holds = conjunction(parts, str)
        pool = max(1, (self.distinct or _SAMPLE) // self.layout.cells)
        size = min(pool, _SAMPLE)
        cells = np.repeat(np.arange(self.layout.cells), size)
        ranks = np.tile(np.arange(size), self.layout.cells)
        if self.distinct is None:
            made, shares = self._unique(cells, first_row=0), np.full(size, 1 / size)
        else:
            strings, places = self._pooled(cells, ranks, pool=self.distinct)
            made, shares = strings.take(pa.array(places)), weights(pool, self.skew)[:size]
        satisfied = np.array([holds(text) for text in made.to_pylist()], dtype=np.float64)
        return self.layout.spread(satisfied.reshape(-1, size) @ (shares + (1 - shares.sum()) / size))

    @property
    def room(self) -> int | None:
        """How many rows can get a string of their own; None if any number can."""
        if self.limit is None:
            return None if self.shape is None else self.shaping.room(64)
        return self.shaping.room(self.limit)

    @property
    def kind_of_strings(self) -> str:
        """What all strings have in common, for messages."""
        return f"of {self.limit} characters" if self.shape is None else f"of the shape {self.shape!r}"

    def _unique(self, cells: NDArray[np.int64], *, first_row: int) -> pa.Array:
        rows = first_row + np.arange(len(cells), dtype=np.int64)
        if self.room is not None and len(rows) and rows[-1] >= self.room:
            if self.in_key:
                raise SchemaError(
                    f"{self.where}: there are not enough different strings {self.kind_of_strings} for the rows to be "
                    "written. Use a smaller --scale, a longer VARCHAR or no shape, or write `distinct` if strings may "
                    "repeat."
                )
            rows %= self.room
        if self.limit == 0:
            return pa.array([""] * len(cells), pa.string())
        return self.shaping.unique(rows, self.shortest[cells], self.longest[cells], salt=salt_of(self.where))

    def _pool_sizes(self, cells: NDArray[np.int64], pool: int) -> NDArray[np.int64]:
        """A cell's share of the rows is its share of the pool."""
        counts = np.bincount(cells, minlength=self.layout.cells)
        return np.maximum(np.rint(pool * counts / max(len(cells), 1)), 1).astype(np.int64)

    def _pooled(
        self, cells: NDArray[np.int64], ranks: NDArray[np.int64], *, pool: int
    ) -> tuple[pa.Array, NDArray[np.int64]]:
        """Spell the ranks that occur, and say where each row finds its string."""
        parts = [pa.array([], type=pa.string())]
        wide = int(ranks.max(initial=0)) + 1
        pairs, places = np.unique(cells * wide + ranks, return_inverse=True)
        own, numbers = np.divmod(pairs, wide)
        parts += [self._spelled(numbers[own == cell], cell, pool=pool) for cell in np.unique(own).tolist()]
        return pa.concat_arrays(parts), places

    def _spelled(self, numbers: NDArray[np.int64], cell: int, *, pool: int) -> pa.Array:
        """Spell pool numbers in one cell; without a shape in syllables, if these tell the pool apart."""
        bounds = int(self.shortest[cell]), int(self.longest[cell])
        made = self.shaping
        if self.shape is None:
            made = SYLLABLES if pool <= SYLLABLES.room(bounds[1]) else LETTERS
        return made.pooled(numbers, bounds, pool=pool, cell=(cell, self.layout.cells), salt=salt_of(self.where))


def length_codec(where: str, kind: SqlType, domain: Text, *, nullable: bool) -> LengthCodec:
    """Compile a domain of lengths."""
    edges = domain.text
    if edges[0] < 0 or any(a >= b for a, b in pairwise(edges)):
        raise SpecError(f"{where}: text lengths {list(edges)} must ascend from 0 or more, like [0, 8, 16, 32].")
    if kind.length is not None and edges[-2] > kind.length:
        raise SpecError(f"{where}: text length {edges[-2]} is more than {kind.sql} holds; end the lengths there.")
    made = shaping(where, domain.shape, kind)
    if domain.distinct is not None and isinstance(made, Composed) and domain.distinct > made.size:
        raise SpecError(
            f"{where}: `distinct` is {domain.distinct}, but there are only {made.size} strings of the shape "
            f"{domain.shape!r} in {kind.sql}. Write at most that many, or another shape."
        )
    longest = np.array([*(e - 1 for e in edges[1:-1]), edges[-1]], dtype=np.int64)
    return LengthCodec(
        where=where,
        layout=Layout(cells=len(edges) - 1, nullable=nullable),
        shortest=np.array(edges[:-1], dtype=np.int64),
        longest=longest if kind.length is None else np.minimum(longest, kind.length),
        limit=kind.length,
        distinct=domain.distinct,
        skew=domain.skew,
        shape=domain.shape,
        shaping=made,
    )


def made_up_domain(kind: SqlType, *, shape: str | None = None, unique: bool = True) -> Domain:
    """Return new numbers, or new strings of lengths that the type allows and the shape has.

    Unless they are `unique`, strings of a shape that people share, such as first names, repeat.

    >>> from privbench.schema.types import parse_type
    >>> made_up_domain(parse_type("VARCHAR(40)")).text, made_up_domain(parse_type("CHAR(2)")).text
    ((0, 8, 16, 32, 40), (2, 3))
    >>> made_up_domain(parse_type("VARCHAR(40)"), shape="uuid").text
    (36, 37)
    """
    if kind.kind is not Kind.TEXT:
        return Serial()
    if kind.labels:
        return Values(values=kind.labels)
    if shape is not None:
        return _shaped_domain(kind, shape, unique=unique)
    if kind.length is None:
        return Text(text=_LENGTHS)
    if kind.fixed:
        return Text(text=(kind.length, kind.length + 1))
    return Text(text=(*(edge for edge in _LENGTHS if edge < kind.length), kind.length))


def fixed_edges(shape: str | None, kind: SqlType) -> tuple[int, ...] | None:
    """Return the edges of the one cell that a shape needs whose strings all have the same length; None for others."""
    made = shaping("a made-up text", shape, kind)
    if not isinstance(made, Composed) or made.reach[0] != made.reach[1]:
        return None
    return made.reach[0], made.reach[0] + 1


def _shaped_domain(kind: SqlType, shape: str, *, unique: bool) -> Domain:
    made = shaping("a made-up text", shape, kind)
    room = made.room(kind.length or _LENGTHS[-1])
    few = room if not unique and room < _MANY else None
    if not isinstance(made, Composed):
        plain = made_up_domain(kind)
        return Text(text=plain.text, shape=shape, distinct=few) if isinstance(plain, Text) else plain
    shortest, longest = made.reach
    edges = (shortest, *(edge for edge in _LENGTHS if shortest < edge < longest), longest)
    shared = made.usual if not unique and shape in SHARED else few
    return Text(text=fixed_edges(shape, kind) or edges, shape=shape, distinct=shared)
