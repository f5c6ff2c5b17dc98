"""Public hashes of values: 64 bits per row, the same for equal values wherever and in whatever order they are read.

They find keys in an index, put rows without a primary key into an order, and tell rows that changed. Nothing hangs on
their being secret, and where two values may have the same hash the values themselves are compared.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
_PLACES = 64
"""Bytes of a text that have a random word of their own at each place; later ones share these."""
_NULL = np.uint64(0x5851F42D4C957F2D)


def hash_rows(columns: Sequence[pa.Array], *, salt: int = 0) -> Hashes:
    """A hash of each row; rows that are equal in all columns have the same.

    >>> hashes = hash_rows([pa.array([1, 1, None]), pa.array(["a", "b", "a"])])
    >>> len(set(hashes.tolist())), hashes[0] == hash_rows([pa.array([1]), pa.array(["a"])])[0]
    (3, np.True_)
    """
    mixed = np.full(len(columns[0]), salt, np.uint64)
    for column in columns:
        mixed = mix(mixed ^ _hash_column(column))
    return mixed


def fingerprint(columns: Sequence[pa.Array]) -> int:
    """A number by which rows are known again, in whatever order they come; those of several lots add up modulo 2**64.

    >>> both = fingerprint([pa.array([1, 2])])
    >>> both == fingerprint([pa.array([2, 1])]), both == fingerprint([pa.array([2, 2])])
    (True, False)
    """
    return int(hash_rows(columns).sum(dtype=np.uint64))


def mix(x: Hashes) -> Hashes:
    """A public bijection of 64-bit words with good avalanche (splitmix64)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _hash_column(values: pa.Array) -> Hashes:
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    if pa.types.is_integer(values.type) or pa.types.is_timestamp(values.type) or pa.types.is_time64(values.type):
        whole = values.cast(pa.int64()).fill_null(0)
        hashes: Hashes = whole.to_numpy(zero_copy_only=False).view(np.uint64)
    else:
        hashes = _hash_texts(values.cast(pa.large_string()))
    if values.null_count:
        hashes = np.where(values.is_null().to_numpy(zero_copy_only=False), _NULL, hashes)
    return hashes


def _hash_texts(texts: pa.Array) -> Hashes:
    """The sum of a random word for each byte and its place, so that one pass over all bytes is enough."""
    _, offsets, content = texts.buffers()
    if content is None or not len(texts):
        return np.zeros(len(texts), np.uint64)
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    lengths = np.diff(ends)
    letters = np.frombuffer(content, np.uint8)[ends[0] : ends[-1]]
    places = np.arange(len(letters)) - np.repeat(ends[:-1] - ends[0], lengths)
    words = _WORDS[(places % _PLACES) * 256 + letters]
    far = np.flatnonzero(places >= _PLACES) if lengths.max() > _PLACES else places[:0]
    words[far] *= mix((places[far] // _PLACES).astype(np.uint64)) | np.uint64(1)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(words, dtype=np.uint64)])
    return mix(sums[ends[1:] - ends[0]] - sums[ends[:-1] - ends[0]] + lengths.astype(np.uint64))


_WORDS = mix(np.arange(_PLACES * 256, dtype=np.uint64))
