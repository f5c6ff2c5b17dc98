"""Made-up strings: text columns publish no string of the source, only strings spelled from a number.

A string is a function of a number, its length and a salt. The digits of the number are written from the lowest
up, in blocks of four letters, each block shifted by a hash of those before it. That map can be undone block by
block, so two numbers below `capacity(length)` never give the same string of one length.
"""

import zlib
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.errors import SchemaError

_BASE36 = (b"0123456789abcdefghijklmnopqrstuvwxyz",) * 2
_SYLLABLES = (b"bcdfghjklmnpqrstvwxyz", b"aeiou")
_KNUTH = np.uint64(6364136223846793005)
_STRIDE = np.uint64(1_234_577)  # shares no factor with the size of a block
_BLOCK = 4


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
