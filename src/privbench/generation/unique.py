"""Keys made of drawn values are kept unique: repeated rows are drawn again, and dropped if that does not help."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

ROUNDS = 12
"""How often repeated keys are drawn again before their rows are dropped."""

Redraw = Callable[[NDArray[np.int64], int], dict[str, pa.Array]]
"""New values of the key's columns for the rows at these places, in the given round."""


def settled(
    values: dict[str, pa.Array], keep: NDArray[np.bool_], keys: Sequence["Uniqueness"]
) -> tuple[dict[str, pa.Array], NDArray[np.bool_]]:
    """The rows to keep of a block in which no key repeats, and which these are. Mending one key may break another."""
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
        self._seen: set[tuple[object, ...]] | None = None if local else set()

    def mend(self, values: dict[str, pa.Array], redraw: Redraw) -> dict[str, pa.Array]:
        """Values with repeated keys drawn again; some may still repeat."""
        for attempt in range(ROUNDS):
            places = np.flatnonzero(self.repeated(values))
            if not len(places):
                break
            values = values | _replaced(values, places, redraw(places, attempt))
        return values

    def remember(self, values: dict[str, pa.Array]) -> None:
        """Keep the keys of rows that stay, for blocks to come."""
        if self._seen is not None:
            self._seen.update(_tuples(values, self.columns))

    def repeated(self, values: dict[str, pa.Array]) -> NDArray[np.bool_]:
        """Rows whose key stands in an earlier row; a key with a NULL repeats nothing."""
        rows = len(values[self.columns[0]])
        null, packed = np.zeros(rows, bool), np.zeros(rows, np.int64)
        for array in (values[c] for c in self.columns):
            null |= array.is_null().to_numpy(zero_copy_only=False)
            codes = array.dictionary_encode().indices.fill_null(0).to_numpy(zero_copy_only=False)
            _, packed = np.unique(packed * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
        whole = np.flatnonzero(~null)
        _, first = np.unique(packed[whole], return_index=True)
        repeated = ~null
        repeated[whole[first]] = False
        if self._seen:
            for place, key in enumerate(_tuples(values, self.columns)):
                repeated[place] |= key in self._seen
        return repeated


def _replaced(values: dict[str, pa.Array], places: NDArray[np.int64], new: dict[str, pa.Array]) -> dict[str, pa.Array]:
    mended = {}
    for name, array in new.items():
        at = np.arange(len(values[name]))
        at[places] = len(at) + np.arange(len(places))
        mended[name] = pa.concat_arrays([values[name], array]).take(pa.array(at))
    return mended


def _tuples(values: dict[str, pa.Array], columns: Sequence[str]) -> list[tuple[object, ...]]:
    return list(zip(*(values[c].to_pylist() for c in columns), strict=True))
