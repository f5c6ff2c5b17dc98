"""Numbers spelled as strings of exact lengths: letters, digits, bits, syllables, or English words.

A string is a function of a number, its length and a salt. The digits of the number are written from the lowest up, in
blocks of letters, each block shifted by a hash of those before it. That map can be undone block by block, so two
numbers below `room(length)` never give the same string of one length.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode import wordlists
from privbench.errors import SchemaError

_BASE36 = (b"0123456789abcdefghijklmnopqrstuvwxyz",) * 2
_HEX = (b"0123456789abcdef",) * 2
_DECIMAL = (b"0123456789",) * 2
_BINARY = (b"01",) * 2
_SYLLABLES = (b"bcdfghjklmnpqrstvwxyz", b"aeiou")
_KNUTH = np.uint64(6364136223846793005)
_STRIDE = np.uint64(1_234_577)  # a prime, so that it shares no factor with the number of blocks
_LONGEST = 64
"""Longer strings tell apart no more numbers than there are."""
PHRASE = 8
"""The letters of a block of English words, the spaces between and after them included."""

_Letters = NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """One way to spell numbers at exact lengths."""

    write: Callable[[NDArray[np.int64], NDArray[np.int64], int], pa.Array]
    """From numbers, lengths and a salt."""
    capacity: Callable[[int], int]
    """How many different strings there are of a length; it never falls with the length."""

    def room(self, longest: int) -> int:
        """How many numbers, from 0 up, strings of no more than this length can tell apart."""
        return self.capacity(longest)

    def unique(
        self, numbers: NDArray[np.int64], shortest: NDArray[np.int64], longest: NDArray[np.int64], *, salt: int
    ) -> pa.Array:
        """Spell each number at a length between the two beside it, or a longer one if it would meet others there."""
        lengths = _between(numbers, shortest, longest, salt=salt)
        return self.write(numbers, np.maximum(lengths, self.needed(numbers)), salt)

    def pooled(
        self, numbers: NDArray[np.int64], bounds: tuple[int, int], *, pool: int, cell: tuple[int, int], salt: int
    ) -> pa.Array:
        """Spell numbers of a pool between two lengths, at those that tell the pool apart if they can."""
        del cell  # other cells have other lengths, so their strings are never the same
        shortest, longest = bounds
        while shortest < longest and self.capacity(shortest) < pool:
            shortest += 1
        return self.write(numbers, _between(numbers, np.int64(shortest), np.int64(longest), salt=salt), salt)

    def needed(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the shortest length, at least 1, whose strings can tell each number apart."""
        steps = [self.capacity(1)]
        while steps[-1] < 2**63:
            steps.append(self.capacity(len(steps) + 1))
        return np.searchsorted(np.array(steps[:-1], dtype=np.int64), numbers, side="right") + 1


def _between(
    numbers: NDArray[np.int64],
    shortest: NDArray[np.int64] | np.int64,
    longest: NDArray[np.int64] | np.int64,
    *,
    salt: int,
) -> NDArray[np.int64]:
    """Return a length for each number, always the same one."""
    widths = np.asarray(longest - shortest + 1).astype(np.uint64)
    return np.asarray(shortest + (mixed(numbers, salt=salt) % widths).astype(np.int64))


def salt_of(where: str) -> int:
    """Return a fixed salt for a column, so that two columns of one table do not get the same strings."""
    return zlib.crc32(where.encode("utf-8", "surrogatepass"))


def capacity(length: int) -> int:
    """How many different strings `unique_strings` has of a length.

    >>> capacity(2)
    1296
    """
    return int(36 ** min(length, _LONGEST))


def word_capacity(length: int) -> int:
    """How many different strings `words` has of a length."""
    pairs, rest = divmod(min(length, _LONGEST), 2)
    return int((21 * 5) ** pairs * 21**rest)


def _hex_capacity(length: int) -> int:
    return int(16 ** min(length, _LONGEST))


def _title_capacity(length: int) -> int:
    return int(len(_phrases()) ** (max(min(length, 8 * _LONGEST) - 1, 0) // PHRASE))


def _sentence_capacity(length: int) -> int:
    return _title_capacity(length - 1)


def unique_strings(numbers: NDArray[np.int64], lengths: NDArray[np.int64], salt: int = 0) -> pa.Array:
    """Spell numbers in letters and digits; different numbers below the capacity of their length never meet."""
    return _spell(numbers, lengths, blocks=_blocks(_BASE36), salt=salt)


def words(numbers: NDArray[np.int64], lengths: NDArray[np.int64], salt: int = 0) -> pa.Array:
    """Spell numbers in syllables, which read well but tell fewer numbers apart."""
    return _spell(numbers, lengths, blocks=_blocks(_SYLLABLES), salt=salt)


def _hexadecimal(numbers: NDArray[np.int64], lengths: NDArray[np.int64], salt: int) -> pa.Array:
    return _spell(numbers, lengths, blocks=_blocks(_HEX), salt=salt)


def _bits(numbers: NDArray[np.int64], lengths: NDArray[np.int64], salt: int) -> pa.Array:
    return _spell(numbers, lengths, blocks=_blocks(_BINARY), salt=salt)


def _digits(numbers: NDArray[np.int64], lengths: NDArray[np.int64], salt: int) -> pa.Array:
    return _spell(numbers, lengths, blocks=_blocks(_DECIMAL), salt=salt)


def _name(numbers: NDArray[np.int64], lengths: NDArray[np.int64], salt: int) -> pa.Array:
    return pc.utf8_capitalize(words(numbers, lengths, salt))


def _title(numbers: NDArray[np.int64], lengths: NDArray[np.int64], salt: int) -> pa.Array:
    return pc.utf8_title(_spell(numbers, lengths, blocks=_phrases(), salt=salt, tails=_tails()))


def _sentence(numbers: NDArray[np.int64], lengths: NDArray[np.int64], salt: int) -> pa.Array:
    spelled = _spell(numbers, np.maximum(lengths - 1, 0), blocks=_phrases(), salt=salt, tails=_tails())
    stops = pa.array(["", "."]).take(pa.array(np.minimum(lengths, 1)))
    return pc.binary_join_element_wise(pc.utf8_capitalize(spelled), stops, "")


LETTERS = Spelling(write=unique_strings, capacity=capacity)
SYLLABLES = Spelling(write=words, capacity=word_capacity)
HEXADECIMAL = Spelling(write=_hexadecimal, capacity=_hex_capacity)
NAME = Spelling(write=_name, capacity=word_capacity)
TITLE = Spelling(write=_title, capacity=_title_capacity)
SENTENCE = Spelling(write=_sentence, capacity=_sentence_capacity)


BITS = Spelling(write=_bits, capacity=lambda length: int(2 ** min(length, _LONGEST)))
DIGITS = Spelling(write=_digits, capacity=lambda length: int(10 ** min(length, _LONGEST)))


def enclosed(before: str, spelling: Spelling, after: str, *, shortest: str) -> Spelling:
    """Spell between two texts, as a syntax wants it; where there is no room for both, `shortest` stands alone.

    >>> wrapped = enclosed('{"value": "', SYLLABLES, '"}', shortest="{}")
    >>> wrapped.write(np.array([7, 7]), np.array([20, 3]), 0).to_pylist()[1], wrapped.capacity(12)
    ('{}', 0)
    """
    around = len(before) + len(after)

    def write(numbers: NDArray[np.int64], lengths: NDArray[np.int64], salt: int) -> pa.Array:
        inner = spelling.write(numbers, np.maximum(lengths - around, 0), salt)
        whole = pc.binary_join_element_wise(before, inner, after, "")
        return pc.if_else(pa.array(lengths > around), whole, shortest)

    return Spelling(write=write, capacity=lambda length: spelling.capacity(length - around) if length > around else 0)


def in_groups(spelling: Spelling, size: int) -> Spelling:
    """Spell with a comma after each `size` letters; a string is shorter by one where it would end with a comma."""

    def letters(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        return lengths - lengths // (size + 1)

    def write(numbers: NDArray[np.int64], lengths: NDArray[np.int64], salt: int) -> pa.Array:
        plain = spelling.write(numbers, letters(lengths), salt)
        cut = pc.replace_substring_regex(plain, pattern=f"(.{{{size}}})", replacement=r"\1,")
        return pc.utf8_rtrim(cut, ",")

    return Spelling(write=write, capacity=lambda length: spelling.capacity(length - length // (size + 1)))


def in_pairs(spelling: Spelling) -> Spelling:
    """Spell an even number of letters."""
    return Spelling(
        write=lambda numbers, lengths, salt: spelling.write(numbers, lengths // 2 * 2, salt),
        capacity=lambda length: spelling.capacity(length // 2 * 2),
    )


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


def mixed(numbers: NDArray[np.int64] | NDArray[np.uint64], *, salt: int) -> NDArray[np.uint64]:
    """Return a fixed pseudo-random 32-bit number for each number."""
    state = (numbers.astype(np.uint64) + np.uint64(salt + 1)) * _KNUTH
    state = (state ^ (state >> np.uint64(29))) * _KNUTH
    return np.asarray(state >> np.uint64(32))


def _spell(
    numbers: NDArray[np.int64],
    lengths: NDArray[np.int64],
    *,
    blocks: _Letters,
    salt: int,
    tails: Sequence[_Letters] = (),
) -> pa.Array:
    """Spell numbers in blocks of letters; `tails`, if any, are blocks to end with, by how many letters are kept."""
    base, width = np.uint64(len(blocks)), blocks.dtype.itemsize
    counts = (lengths + width - 1) // width
    ends = np.cumsum(counts, dtype=np.int64)
    letters = np.empty(int(ends[-1]) if len(ends) else 0, dtype=blocks.dtype)  # a block of letters each
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
    for kept, tail in enumerate(tails, start=1):
        last = np.flatnonzero((lengths > 0) & ((lengths - kept) % width == 0))
        letters[ends[last] - 1] = tail[(mixed(numbers[last], salt=salt) % np.uint64(len(tail))).astype(np.int64)]
    return _strings(letters.view(np.uint8)[_kept(lengths, ends, width)], lengths)


@cache
def _blocks(alphabets: tuple[bytes, bytes]) -> NDArray[np.uint32]:
    """Every block of letters, the first letter counting fastest: cut short, a block still tells low digits apart."""
    even, odd = (np.frombuffer(a, dtype=np.uint8) for a in alphabets)
    grids = np.meshgrid(odd, even, odd, even, indexing="ij")
    return np.stack([g.ravel() for g in reversed(grids)], axis=1).view(np.uint32).ravel()


@cache
def _phrases() -> NDArray[np.uint64]:
    """Blocks of one or two words, each with a space after it."""
    two, three, four = wordlists.WORDS_OF_TWO, wordlists.WORDS_OF_THREE, wordlists.WORDS_OF_FOUR
    phrases = [f"{word} " for word in wordlists.WORDS_OF_SEVEN]
    phrases += [f"{word} a " for word in wordlists.WORDS_OF_FIVE]
    phrases += [f"{a} {b} " for a in three for b in three if a != b]
    phrases += [f"{a} {b} " for a in four for b in two] + [f"{a} {b} " for a in two for b in four]
    return _as_blocks(phrases)


@cache
def _tails() -> tuple[NDArray[np.uint64], ...]:
    """The words that a text can end with, by their length."""
    lists = (
        ("a",),
        wordlists.WORDS_OF_TWO,
        wordlists.WORDS_OF_THREE,
        wordlists.WORDS_OF_FOUR,
        wordlists.WORDS_OF_FIVE,
        wordlists.WORDS_OF_SIX,
        wordlists.WORDS_OF_SEVEN,
        wordlists.WORDS_OF_EIGHT,
    )
    return tuple(_as_blocks(listed) for listed in lists)


def _as_blocks(phrases: Sequence[str]) -> NDArray[np.uint64]:
    return np.frombuffer("".join(phrase.ljust(PHRASE) for phrase in phrases).encode(), dtype=np.uint64)


def _kept(lengths: NDArray[np.int64], ends: NDArray[np.int64], width: int) -> NDArray[np.bool_]:
    """Which letters stay when each row's last block is cut to the row's length."""
    kept = np.ones(width * int(ends[-1]) if len(ends) else 0, dtype=bool)
    excess = -lengths % width
    for cut in range(1, width):
        kept[width * ends[excess >= cut] - cut] = False
    return kept


def _strings(letters: NDArray[np.uint8], lengths: NDArray[np.int64]) -> pa.Array:
    """Arrow strings from their letters, laid end to end."""
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])
    wide = pa.LargeStringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(letters))
    return wide.cast(pa.string())
