"""Text: free or unique text whose cells are ranges of lengths; the strings themselves are made up.

Without `distinct` each row gets a string of its own, spelled from its row number: uniqueness comes before the
length, so a string grows (at most to the VARCHAR's length) where its cell is too short for the row number. With
`distinct` strings come from a pool of about that many; a string of the pool is a function of its number, so the
pool takes no memory.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.layout import Codes, LaidOut, Layout, blank, one_array
from privbench.encode.predicate import All, OfValues, Predicate, conjunction
from privbench.encode.text import capacity, mixed, needed_length, salt_of, unique_strings, word_capacity, words
from privbench.errors import SchemaError, SpecError
from privbench.schema.domain import Text
from privbench.schema.types import SqlType

_SAMPLE = 256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LengthCodec(LaidOut):
    """Cell i holds the strings of shortest[i] .. longest[i] characters; still longer ones are in the last cell."""

    shortest: NDArray[np.int64]  # (cells,)
    longest: NDArray[np.int64]  # (cells,)
    limit: int | None
    distinct: int | None
    ordered: bool = True

    def encode(self, values: pa.Array | pa.ChunkedArray) -> Codes:
        """Return the code of each string's length."""
        lengths = pc.fill_null(one_array(pc.utf8_length(values)), 0).to_numpy(zero_copy_only=False)
        return self.layout.pack(np.searchsorted(self.shortest[1:], lengths, side="right"), values)

    def decode(self, codes: Codes, rng: np.random.Generator, *, first_row: int) -> pa.Array:
        """Make up a string of a fitting length for each code."""
        nulls = self.layout.nulls(codes)
        if self.distinct is None:
            cells = np.where(nulls, 0, codes).astype(np.int64)
            return blank(self._unique(cells, rng, first_row=first_row), nulls)
        rows = np.flatnonzero(~nulls)
        cells = codes[rows].astype(np.int64)
        places = np.zeros(len(codes), dtype=np.int64)  # where in the pooled strings each row finds its own
        places[rows[np.argsort(cells.astype(np.uint16), kind="stable")]] = np.arange(len(rows))
        before = first_row / max(len(codes), 1)  # batches of this size that came before
        return self._pooled(cells, rng, before=before, pool=self.distinct).take(pa.array(places, mask=nulls))

    def coverage(self, predicate: Predicate | All) -> NDArray[np.float64]:
        """Return the share of each cell's made-up strings that satisfies the predicate, from a fixed sample of them."""
        return self.layout.coverage(predicate, self._shares)

    def labels(self) -> tuple[str, ...]:
        """Return the lengths of each cell."""
        pairs = zip(self.shortest.tolist(), self.longest.tolist(), strict=True)
        return self.layout.labels([f"{a} characters" if a == b else f"{a} .. {b} characters" for a, b in pairs])

    def _shares(self, parts: tuple[OfValues, ...]) -> NDArray[np.float64]:
        holds = conjunction(parts, str)
        codes = np.repeat(np.arange(self.layout.cells, dtype=np.uint16), _SAMPLE)
        made = self.decode(codes, np.random.default_rng(0), first_row=0).to_pylist()
        met = np.array([holds(text) for text in made], dtype=np.float64)
        return self.layout.spread(met.reshape(-1, _SAMPLE).mean(axis=1))

    def _unique(self, cells: NDArray[np.int64], rng: np.random.Generator, *, first_row: int) -> pa.Array:
        rows = first_row + np.arange(len(cells), dtype=np.int64)
        needed = needed_length(rows)
        if self.limit is not None and len(rows) and needed[-1] > self.limit:
            raise SchemaError(
                f"{self.where}: there are not enough different strings of {self.limit} characters for the rows to be "
                "written. Use a smaller --scale or a longer VARCHAR, or write `distinct` if strings may repeat."
            )
        lengths = rng.integers(self.shortest[cells], self.longest[cells], endpoint=True)
        return unique_strings(rows, np.maximum(lengths, needed), salt=salt_of(self.where))

    def _pooled(self, cells: NDArray[np.int64], rng: np.random.Generator, *, before: float, pool: int) -> pa.Array:
        """Make up strings, cell by cell; a cell's share of the rows is its share of the pool."""
        counts = np.bincount(cells, minlength=self.layout.cells)
        parts = [pa.array([], type=pa.string())]
        for cell in np.flatnonzero(counts):
            count = int(counts[cell])
            size = max(1, round(pool * count / len(cells)))
            numbers = (int(before * count) + rng.permutation(count)) % size  # each string about equally often
            parts.append(self._spelled(numbers, int(cell), pool=pool))
        return pa.concat_arrays(parts)

    def _spelled(self, numbers: NDArray[np.int64], cell: int, *, pool: int) -> pa.Array:
        """Spell pool numbers in one cell. A number's length is fixed, and tells the pool apart if it can."""
        salt = salt_of(self.where)
        shortest, longest = int(self.shortest[cell]), int(self.longest[cell])
        spell = words if pool <= word_capacity(longest) else unique_strings
        tells = word_capacity if spell is words else capacity
        while shortest < longest and tells(shortest) < pool:
            shortest += 1
        widths = np.uint64(longest - shortest + 1)
        lengths = shortest + (mixed(numbers, salt=salt) % widths).astype(np.int64)
        return spell(numbers, lengths, salt=salt)


def length_codec(where: str, kind: SqlType, domain: Text, *, nullable: bool) -> LengthCodec:
    """Compile a domain of lengths."""
    edges = domain.text
    if edges[0] < 0 or any(a >= b for a, b in pairwise(edges)):
        raise SpecError(f"{where}: text lengths {list(edges)} must ascend from 0 or more, like [0, 8, 16, 32].")
    if kind.length is not None and edges[-2] > kind.length:
        raise SpecError(f"{where}: text length {edges[-2]} is more than {kind.sql} holds; end the lengths there.")
    longest = np.array([*(e - 1 for e in edges[1:-1]), edges[-1]], dtype=np.int64)
    return LengthCodec(
        where=where,
        layout=Layout(cells=len(edges) - 1, nullable=nullable),
        shortest=np.array(edges[:-1], dtype=np.int64),
        longest=longest if kind.length is None else np.minimum(longest, kind.length),
        limit=kind.length,
        distinct=domain.distinct,
    )
