"""What a computed column would be, and where a column equals it. Exact, for the engine alone.

All of it is a function of the rows of the row's own entity: its value, the rows that it owns, its owner row, its
place among the rows of the same owner (docs/proofs/tree.md). Two NULLs are the same; a row without owner has nothing
to copy and no place.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.grid import held_numbers, held_validity, one_array
from privbench.privacy.exact import Codes

Integers = NDArray[np.int64]

AGREES, DIFFERS, IDLE = range(3)
"""The codes of rows: `IDLE` ones agree in what most unrelated columns would agree in, too, and say little."""


def ranks(owners: Integers, places: Codes, *, first: int) -> pa.Array:
    """The place of each row among those of its owner, counted from `first`.

    >>> ranks(np.array([7, 5, 7, -1]), np.array([0, 0, 1, 0]), first=1).to_pylist()
    [1, 1, 2, None]
    """
    unowned = owners < 0
    return pa.array(places.astype(np.int64) + first, mask=unowned if unowned.any() else None)


def owners_values(owners: Integers, above: pa.Array) -> pa.Array:
    """What a column says of the owner of each row; a text as its place in a list, however long it is.

    >>> owners_values(np.array([1, 1, -1]), pa.array(["b", "a"])).to_pylist()
    ['a', 'a', None]
    """
    listed = above.dictionary_encode() if pa.types.is_string(above.type) else above
    return listed.take(pa.array(owners, mask=owners < 0))


def compared(values: pa.Array, expected: pa.Array, *, plain: float | None = None) -> NDArray[np.uint8]:
    """Whether a value is the expected one; if so, whether that is NULL or the plain number, which says little.

    >>> compared(pa.array([1, 2, 0, None, None]), pa.array([1, 3, 0, None, 4]), plain=0).tolist()
    [0, 1, 2, 2, 1]
    """
    if pa.types.is_integer(values.type) and pa.types.is_integer(expected.type):
        return _compared_numbers(values, expected, plain)
    both = idle = pc.and_(values.is_null(), expected.is_null())
    if plain is not None:
        idle = pc.or_(both, pc.equal(values, pa.scalar(plain, values.type)).fill_null(False))
    if isinstance(expected, pa.DictionaryArray):
        values, expected = pc.index_in(values, value_set=expected.dictionary), expected.indices
    same = one_array(pc.equal(values.cast(expected.type), expected)).fill_null(False)
    codes = pc.if_else(pc.or_(same, both), pc.if_else(idle, IDLE, AGREES), DIFFERS).cast(pa.uint8())
    return np.asarray(one_array(codes).to_numpy(zero_copy_only=False), np.uint8)


def _compared_numbers(values: pa.Array, expected: pa.Array, plain: float | None) -> NDArray[np.uint8]:
    """The same for whole numbers, without a pass for every step."""
    numbers, others = held_numbers(values), held_numbers(expected)
    same = numbers == others
    idle = np.zeros(len(same), bool) if plain is None else numbers == plain
    if values.null_count or expected.null_count:
        missing, missing_too = _nulls(values), _nulls(expected)
        both = missing & missing_too
        same = (same & ~(missing | missing_too)) | both
        idle = (idle & ~missing) | both
    codes: NDArray[np.uint8] = ~same * np.uint8(DIFFERS) + (same & idle) * np.uint8(IDLE)  # not a choice for each row
    return codes


def _nulls(values: pa.Array) -> NDArray[np.bool_]:
    return held_validity(values) == 0 if values.null_count else np.zeros(len(values), bool)
