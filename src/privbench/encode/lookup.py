"""Coding by look-up: whole numbers and dates that lie close together have their codes in a small array.

A codec works out ticks and cells of every value. A column of whole numbers has few different ones: each is coded once,
by the codec itself, and rows look it up.
"""

from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.codec import Codec
from privbench.encode.grid import held_numbers, held_validity
from privbench.encode.layout import Codes

Whole = TypeVar("Whole", bound=np.integer)

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
        whole = _whole(values)
        if whole is None or len(values) - values.null_count < 2:
            return self._codec.encode(values)
        numbers, valid = held_numbers(whole), held_validity(whole) if whole.null_count else None
        if valid is not None:
            numbers = _blended(numbers, valid, numbers[valid.argmax()])
        low, high = int(numbers.min()), int(numbers.max())
        if high - low >= _PLACES:
            return self._codec.encode(values)
        first, codes = self._covering(low, high, values.type)
        found: Codes = codes[numbers.astype(np.intp) - first]
        if valid is not None:
            found = _blended(found, valid, self._codec.encode(pa.nulls(1, values.type))[0])
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


def _blended(numbers: NDArray[Whole], valid: NDArray[np.uint8], other: Any) -> NDArray[Whole]:
    """The numbers where they are valid, else another; worked out, since a choice for each row is slow.

    >>> _blended(np.array([7, 8], np.uint8), np.array([1, 0], np.uint8), np.uint8(9))
    array([7, 9], dtype=uint8)
    """
    blended = numbers.copy()
    blended *= valid
    blended += (valid ^ np.uint8(1)) * other
    return blended
