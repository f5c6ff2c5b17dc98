"""Keys made of drawn values are kept unique: repeated rows are drawn again, and dropped if that does not help.

Keys are compared by fingerprints of 64 bits, in sorted arrays: equal keys have equal fingerprints, so that no key can
repeat. Different keys with one fingerprint (about n * n / 2**65 pairs of n keys) are only drawn once more than needed.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

ROUNDS = 12
"""How often repeated keys are drawn again before their rows are dropped."""
TEXT_BYTES = 2**22
"""Bytes of text whose fingerprints are worked out at once."""

Redraw = Callable[[NDArray[np.int64], int], dict[str, pa.Array]]
"""New values of the key's columns for the rows at these places, in the given round."""
Words = NDArray[np.uint64]


def deduplicated(
    values: dict[str, pa.Array], keep: NDArray[np.bool_], keys: Sequence["Uniqueness"]
) -> tuple[dict[str, pa.Array], NDArray[np.bool_]]:
    """The rows to keep of a block in which no key repeats, and which these are: to repair one key may break another."""
    for key in keys:
        keep = keep & ~key.repeated(values)
    if not keep.all():
        values = {name: array.filter(pa.array(keep)) for name, array in values.items()}
    for key in keys:
        key.remember(values)
    return values, keep


class Uniqueness:
    """Watches over one key of a table. `local` keys hold their owner, so that only rows of one block can repeat."""

    def __init__(self, columns: Sequence[str], *, local: bool) -> None:
        self.columns = tuple(columns)
        self._seen = None if local else _SortedRuns()

    @property
    def is_local(self) -> bool:
        """Whether rows of other blocks never repeat it."""
        return self._seen is None

    def repaired(self, values: dict[str, pa.Array], redraw: Redraw) -> dict[str, pa.Array]:
        """Values with repeated keys drawn again; some may still repeat. Rows whose key is their own keep it."""
        keys = self._keys(values)
        repeated = keys.repeated()
        places, taken = np.flatnonzero(repeated), _SortedRuns()
        if len(places):
            taken.add(keys.words[~repeated & ~keys.null])
        for attempt in range(ROUNDS):
            if not len(places):
                break
            values = values | replaced(values, places, redraw(places, attempt))
            drawn = self._keys({c: values[c].take(pa.array(places)) for c in self.columns})
            repeated = drawn.repeated() | (taken.holds(drawn.words) & ~drawn.null)
            taken.add(drawn.words[~repeated & ~drawn.null])
            places = places[repeated]
        return values

    def remember(self, values: dict[str, pa.Array]) -> None:
        """Keep the keys of rows that stay, for blocks to come."""
        if self._seen is not None:
            words, null = _fingerprints([values[c] for c in self.columns])
            self._seen.add(words[~null])

    def repeated(self, values: dict[str, pa.Array]) -> NDArray[np.bool_]:
        """Rows whose key stands in an earlier row; a key with a NULL repeats nothing."""
        return self._keys(values).repeated()

    def _keys(self, values: dict[str, pa.Array]) -> "_BlockKeys":
        words, null = _fingerprints([values[c] for c in self.columns])
        seen = np.zeros(len(words), bool) if self._seen is None else self._seen.holds(words)
        return _BlockKeys(words, null, seen)


class _BlockKeys(NamedTuple):
    """The keys of a block: their fingerprints, which have a NULL, which stand in an earlier block."""

    words: Words
    null: NDArray[np.bool_]
    seen: NDArray[np.bool_]

    def repeated(self) -> NDArray[np.bool_]:
        whole = np.flatnonzero(~self.null)
        _, first = np.unique(self.words[whole], return_index=True)
        repeated = ~self.null
        repeated[whole[first]] = self.seen[whole[first]]
        return repeated


class _SortedRuns:
    """A growing set of words: sorted runs, each at least twice as long as the next, so that few are ever merged."""

    def __init__(self) -> None:
        self._runs: list[Words] = []

    def add(self, words: Words) -> None:
        self._runs.append(np.sort(words))
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last = self._runs.pop()
            self._runs[-1] = np.concatenate([self._runs[-1], last])
            self._runs[-1].sort(kind="stable")  # which merges what is sorted in runs

    def holds(self, words: Words) -> NDArray[np.bool_]:
        order = np.argsort(words)  # neighbours are looked up near each other
        held = np.zeros(len(words), bool)
        for run in self._runs:
            if len(run):
                at = np.minimum(np.searchsorted(run, words[order]), len(run) - 1)
                held[order] |= run[at] == words[order]
        return held


def _fingerprints(columns: Sequence[pa.Array]) -> tuple[Words, NDArray[np.bool_]]:
    """A fingerprint of each row of a key's columns, and which rows have a NULL."""
    words, null = np.zeros(len(columns[0]), np.uint64), np.zeros(len(columns[0]), bool)
    for array in columns:
        null |= array.is_null().to_numpy(zero_copy_only=False)
        words = _mixed(_mixed(words) + _words(array))
    return words, null


def _mixed(words: Words) -> Words:
    """Words that differ in all bits where the given ones differ in any (the finalizer of splitmix64): one to one."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _words(array: pa.Array) -> Words:
    """A word for each value; equal values have equal words. What a NULL has does not matter."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if pa.types.is_floating(kind):
        numbers = array.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 becomes 0.0
        return np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    if pa.types.is_decimal128(kind):
        halves = np.frombuffer(array.buffers()[1], np.uint64).reshape(-1, 2)[array.offset :][: len(array)]
        return _mixed(halves[:, 0]) + halves[:, 1]
    if pa.types.is_boolean(kind):
        array = array.cast(pa.uint8())
    elif pa.types.is_temporal(kind):
        array = array.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    if pa.types.is_integer(array.type):
        numbers = array.fill_null(0).to_numpy(zero_copy_only=False)
        words: Words = numbers.astype(np.int64 if numbers.dtype.kind == "i" else np.uint64).view(np.uint64)
        return words
    return _words_of_texts(array.cast(pa.large_binary()))


def _words_of_texts(array: pa.Array) -> Words:
    """Sums of a word for each byte at each place."""
    _, ends, content = array.buffers()
    edges = np.frombuffer(ends, np.int64)[array.offset :][: len(array) + 1]
    letters = np.empty(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)
    words = np.zeros(len(array), np.uint64)
    for first, last in _stretches(edges):
        own = edges[first : last + 1]
        place = np.arange(own[0], own[-1]) - np.repeat(own[:-1], np.diff(own))
        terms = _mixed((place.astype(np.uint64) << np.uint64(8)) | letters[own[0] : own[-1]])
        summed = np.append(np.uint64(0), np.cumsum(terms, dtype=np.uint64))
        words[first:last] = np.diff(summed[own - own[0]])
    return words + np.diff(edges).astype(np.uint64)


def _stretches(edges: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of texts of about TEXT_BYTES each, or of one text that is longer."""
    first, count = 0, len(edges) - 1
    while first < count:
        fitting = int(np.searchsorted(edges, edges[first] + TEXT_BYTES, side="right")) - 1
        last = min(max(fitting, first + 1), count)
        yield first, last
        first = last


def replaced(values: dict[str, pa.Array], places: NDArray[np.int64], new: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """The columns that have new values at some places."""
    columns = {}
    for name, array in new.items():
        at = np.arange(len(values[name]))
        at[places] = len(at) + np.arange(len(places))
        columns[name] = pa.concat_arrays([values[name], array]).take(pa.array(at))
    return columns
