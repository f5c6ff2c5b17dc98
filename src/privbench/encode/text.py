"""Text: free or unique text whose cells are ranges of lengths; the strings themselves are made up.

Without `distinct` each row gets a string of its own, spelled from its row number: uniqueness comes before the
length, so a string grows (at most to the VARCHAR's length) where its cell is too short for the row number. With
`distinct` strings come from a pool of about that many; a string of the pool is a function of its number, so the
pool takes no memory.

A string is a function of a number, its length and a salt. The digits of the number are written from the lowest
up, in blocks of four letters, each block shifted by a hash of those before it. That map can be undone block by
block, so two numbers below `capacity(length)` never give the same string of one length.
"""

import zlib
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.grid import one_array
from privbench.encode.layout import Codes, LaidOut, Layout, blank
from privbench.encode.predicate import All, OfValues, Predicate, conjunction
from privbench.errors import SchemaError, SpecError
from privbench.schema.domain import Domain, Serial, Text
from privbench.schema.types import Kind, SqlType

_SAMPLE = 256
_BASE36 = (b"0123456789abcdefghijklmnopqrstuvwxyz",) * 2
_SYLLABLES = (b"bcdfghjklmnpqrstvwxyz", b"aeiou")
_KNUTH = np.uint64(6364136223846793005)
_STRIDE = np.uint64(1_234_577)  # shares no factor with the size of a block
_BLOCK = 4
_LENGTHS = (0, 8, 16, 32, 64, 128)


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
        satisfied = np.array([holds(text) for text in made], dtype=np.float64)
        return self.layout.spread(satisfied.reshape(-1, _SAMPLE).mean(axis=1))

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


def salt_of(where: str) -> int:
    """Return a fixed salt for a column, so that two columns of one table do not get the same strings."""
    return zlib.crc32(where.encode("utf-8", "surrogatepass"))


def capacity(length: int) -> int:
    """How many different strings `unique_strings` has of a length.

    >>> capacity(2)
    1296
    """
    return int(36 ** min(length, 64))


def word_capacity(length: int) -> int:
    """How many different strings `words` has of a length."""
    pairs, rest = divmod(min(length, 64), 2)
    return int((21 * 5) ** pairs * 21**rest)


def needed_length(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the shortest length, at least 1, whose strings can tell each number apart."""
    steps = np.array([capacity(n) for n in range(1, 13)], dtype=np.int64)  # 36**13 is beyond int64
    return np.searchsorted(steps, numbers, side="right") + 1


def unique_strings(numbers: NDArray[np.int64], lengths: NDArray[np.int64], *, salt: int = 0) -> pa.Array:
    """Spell numbers in letters and digits; different numbers below the capacity of their length never meet."""
    return _spell(numbers, lengths, alphabets=_BASE36, salt=salt)


def words(numbers: NDArray[np.int64], lengths: NDArray[np.int64], *, salt: int = 0) -> pa.Array:
    """Spell numbers in syllables, which read well but tell fewer numbers apart."""
    return _spell(numbers, lengths, alphabets=_SYLLABLES, salt=salt)


def key_strings(row_numbers: NDArray[np.int64], length: int) -> pa.Array:
    """Return unique keys of one length for a natural text key: a function of row number and length alone.

    Raises SchemaError if there are not enough strings of that length; ask `capacity` first to name the column.
    """
    if len(row_numbers) and int(row_numbers.max()) >= capacity(length):
        raise SchemaError(
            f"a text key of {length} characters has {capacity(length)} values, fewer than the rows to be written. "
            "Use a smaller --scale or a longer VARCHAR."
        )
    return unique_strings(row_numbers, np.full(len(row_numbers), length, dtype=np.int64))


def key_numbers(keys: pa.Array, length: int) -> NDArray[np.int64]:
    """Return the row numbers that `key_strings` spelled with this length.

    >>> key_numbers(key_strings(np.array([0, 7, 1295]), 2), 2).tolist()
    [0, 7, 1295]
    """
    letters = np.frombuffer(b"".join(keys.cast(pa.binary()).to_pylist()), np.uint8).reshape(-1, length)
    values = np.zeros(256, np.uint64)
    values[np.frombuffer(_BASE36[0], np.uint8)] = np.arange(36, dtype=np.uint64)
    base, inverse = 36**_BLOCK, pow(int(_STRIDE), -1, 36**_BLOCK)
    state = np.full(len(letters), np.uint64(1) * _KNUTH, np.uint64)
    numbers, worth = np.zeros(len(letters), np.uint64), 1
    for start in range(0, length, _BLOCK):
        block = letters[:, start : start + _BLOCK]
        shifted = values[block] @ (np.uint64(36) ** np.arange(block.shape[1], dtype=np.uint64))
        size = 36 ** block.shape[1]  # of a block cut short the low digits are known, and there are no others
        digits = (shifted + np.uint64(base) - (state >> np.uint64(40)) % np.uint64(base)) * np.uint64(inverse)
        digits %= np.uint64(size)
        numbers += digits * np.uint64(worth)
        state = (state ^ digits) * _KNUTH + np.uint64(1)
        worth = worth * size % 2**64
    return numbers.view(np.int64)


def mixed(numbers: NDArray[np.int64], *, salt: int) -> NDArray[np.uint64]:
    """Return a fixed pseudo-random 32-bit number for each number."""
    state = (numbers.astype(np.uint64) + np.uint64(salt + 1)) * _KNUTH
    state = (state ^ (state >> np.uint64(29))) * _KNUTH
    return np.asarray(state >> np.uint64(32))


def _spell(
    numbers: NDArray[np.int64], lengths: NDArray[np.int64], *, alphabets: tuple[bytes, bytes], salt: int
) -> pa.Array:
    blocks = _blocks(alphabets)
    base = np.uint64(len(blocks))
    counts = (lengths + _BLOCK - 1) // _BLOCK
    ends = np.cumsum(counts, dtype=np.int64)
    letters = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.uint32)  # a block of letters each
    rows = np.flatnonzero(counts)  # rows that still lack letters
    places, left = (ends - counts)[rows], counts[rows]
    rest = numbers.astype(np.uint64)[rows]
    state = np.full(len(rows), salt + 1, dtype=np.uint64) * _KNUTH
    while len(left):
        digits = rest % base
        shifted = ((state >> np.uint64(40)) + digits * _STRIDE) % base
        letters[places] = blocks[shifted.astype(np.int64)]
        more = np.flatnonzero(left > 1)
        state = ((state ^ digits) * _KNUTH + np.uint64(1))[more]
        places, left, rest = places[more] + 1, left[more] - 1, (rest // base)[more]
    return _strings(letters.view(np.uint8)[_kept(lengths, ends)], lengths)


@cache
def _blocks(alphabets: tuple[bytes, bytes]) -> NDArray[np.uint32]:
    """Every block of letters, the first letter counting fastest: cut short, a block still tells low digits apart."""
    even, odd = (np.frombuffer(a, dtype=np.uint8) for a in alphabets)
    grids = np.meshgrid(odd, even, odd, even, indexing="ij")
    return np.stack([g.ravel() for g in reversed(grids)], axis=1).view(np.uint32).ravel()


def _kept(lengths: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which letters stay when each row's last block is cut to the row's length."""
    kept = np.ones(_BLOCK * int(ends[-1]) if len(ends) else 0, dtype=bool)
    excess = -lengths % _BLOCK
    for cut in range(1, _BLOCK):
        kept[_BLOCK * ends[excess >= cut] - cut] = False
    return kept


def _strings(letters: NDArray[np.uint8], lengths: NDArray[np.int64]) -> pa.Array:
    """Arrow strings from their letters, laid end to end."""
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])
    wide = pa.LargeStringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(letters))
    return wide.cast(pa.string())


def made_up_domain(kind: SqlType) -> Domain:
    """Return new numbers, or new strings of lengths that the type allows.

    >>> from privbench.schema.types import parse_type
    >>> made_up_domain(parse_type("VARCHAR(40)")).text, made_up_domain(parse_type("CHAR(2)")).text
    ((0, 8, 16, 32, 40), (2, 3))
    """
    if kind.kind is not Kind.TEXT:
        return Serial()
    if kind.length is None:
        return Text(text=_LENGTHS)
    if kind.sql.startswith("CHAR"):
        return Text(text=(kind.length, kind.length + 1))
    return Text(text=(*(edge for edge in _LENGTHS if edge < kind.length), kind.length))
