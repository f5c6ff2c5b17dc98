"""DECIMAL columns as int64 arrays and back, without a Python object per value.

Arrow keeps a decimal128 as two 64-bit limbs. Up to 18 digits the lower limb is the value; wider ones are divided
by a power of ten, rounding down, and held at the ends of int64, so that any of 38 digits has a place in order.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

INT64 = np.iinfo(np.int64)
INT64_DIGITS = 18
_CHUNK = 9
_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def unscaled(values: pa.Array, *, drop: int = 0) -> NDArray[np.int64]:
    """Return the unscaled integers of decimals without their last `drop` digits, rounded down; junk where NULL."""
    if len(values) == 0:
        return np.empty(0, dtype=np.int64)
    limbs = np.frombuffer(values.buffers()[1], dtype=np.int64, count=2 * (values.offset + len(values)))
    limbs = limbs.reshape(-1, 2)[values.offset :]
    sign = limbs[:, 1] >> 63  # 0 or -1; x ^ -1 is -1 - x, which turns floors of negatives into floors of positives
    low = (limbs[:, 0] ^ sign).view(np.uint64)
    high = (limbs[:, 1] ^ sign).view(np.uint64)
    for start in range(0, drop, _CHUNK):
        high, low = _divide(high, low, 10 ** min(_CHUNK, drop - start))
    fits = (high == 0) & (low <= np.uint64(INT64.max))
    held = np.where(fits, low, np.uint64(INT64.max)).view(np.int64)
    return np.asarray(held ^ sign)


def decimals(numbers: NDArray[np.int64], *, nulls: NDArray[np.bool_], kind: pa.DataType, drop: int = 0) -> pa.Array:
    """Build a decimal128 array from unscaled integers that lack their last `drop` digits."""
    limbs = np.empty((len(numbers), 2), dtype=np.int64)
    limbs[:, 0] = np.where(nulls, 0, numbers)
    limbs[:, 1] = limbs[:, 0] >> 63
    valid = pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None
    made = pa.decimal128(38, kind.scale - drop) if drop else kind
    return pa.Array.from_buffers(made, len(numbers), [valid, pa.py_buffer(limbs)]).cast(kind)


def _divide(
    high: NDArray[np.uint64], low: NDArray[np.uint64], divisor: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Long division of 128-bit numbers by a divisor below 2**32, in digits of 32 bits."""
    by = np.uint64(divisor)
    upper, rest = np.divmod(high, by)
    middle, rest = np.divmod((rest << _HALF) | (low >> _HALF), by)
    lower = ((rest << _HALF) | (low & _MASK)) // by
    return upper, (middle << _HALF) | lower
