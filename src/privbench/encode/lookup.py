"""Coding by look-up: whole numbers and dates that lie close together have their codes in a small array.

A codec works out ticks and cells of every value. A column of whole numbers has few different ones: each is coded once,
by the codec itself, and rows look it up.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.codec import Codec
from privbench.encode.layout import Codes

_PLACES = 2**16
"""An array of codes has at most so many places, which stay in the cache."""


class LookedUp:
    """Codes of a column's values, the same as the codec's.

    >>> from privbench.encode.codec import compile_codec
    >>> from privbench.schema.domain import Range
    >>> from privbench.schema.types import parse_type
    >>> codec = compile_codec("t.age", parse_type("SMALLINT"), nullable=True, domain=Range(range=(0, 99)))
    >>> LookedUp(codec).encode(pa.array([42, 120, None], pa.int16())).tolist()
    [42, 99, 100]
    """

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._held: tuple[int, Codes] = (0, np.zeros(0, np.uint8))

    def encode(self, values: pa.Array) -> Codes:
        """The code of each value."""
        numbers = _whole(values)
        if numbers is None or len(values) < 2:
            return self._codec.encode(values)
        bounds = pc.min_max(numbers).as_py()
        low, high = bounds["min"], bounds["max"]
        if low is None or high - low >= _PLACES:
            return self._codec.encode(values)
        first, codes = self._covering(low, high, values.type)
        found: Codes = codes[_places(numbers, first)]
        if numbers.null_count:
            null = self._codec.encode(pa.nulls(1, values.type))[0]
            found[numbers.is_null().to_numpy(zero_copy_only=False)] = null
        return found

    def _covering(self, low: int, high: int, kind: pa.DataType) -> tuple[int, Codes]:
        """The codes of all numbers from a first one on, low and high among them."""
        first, codes = self._held
        if not first <= low <= high < first + len(codes):
            wider = (min(low, first), max(high, first + len(codes) - 1)) if len(codes) else (low, high)
            low, high = wider if wider[1] - wider[0] < _PLACES else (low, high)
            self._held = first, codes = self._code(low, high, kind)
        return first, codes

    def _code(self, low: int, high: int, kind: pa.DataType) -> tuple[int, Codes]:
        numbers = pa.array(low + np.arange(high - low + 1), pa.int32() if pa.types.is_date32(kind) else kind)
        return low, self._codec.encode(numbers.cast(kind))


def _whole(values: pa.Array) -> pa.Array | None:
    """The values as whole numbers, where that costs nothing."""
    if pa.types.is_date32(values.type):
        return values.view(pa.int32())
    return values if pa.types.is_signed_integer(values.type) else None


def _places(numbers: pa.Array, first: int) -> NDArray[np.integer]:
    """How far after the first each number is; anything where it is NULL."""
    held = (numbers.fill_null(first) if numbers.null_count else numbers).to_numpy(zero_copy_only=False)
    if held.dtype.itemsize < 4:
        held = held.astype(np.int32)
    places: NDArray[np.integer] = held - held.dtype.type(first) if first else held
    return places
