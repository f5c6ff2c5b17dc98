"""Real key values to row positions and entity numbers, before anything is spent.

A key is replaced by the position of the row it references, an owner by its entity's number. What is wrong with the keys
of the real data is found here and told to the publisher; positions alone go on to the vault.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.grid import one_array
from privbench.errors import DataError

Positions = NDArray[np.int64]
NULL = -1
"""The position of a NULL key."""
MISSING = -2
"""The position of a key that references no row."""


class KeyIndex:
    """The rows of one table by the values of one of its keys.

    >>> index = KeyIndex("t(id)", [pa.chunked_array([[7, 5]])])
    >>> index.find([pa.chunked_array([[5, None, 9, 7]])]).tolist()
    [1, -1, -2, 0]
    """

    def __init__(self, where: str, columns: Sequence[pa.ChunkedArray], *, nullable: bool = False) -> None:
        columns = [_comparable(c) for c in columns]
        nulls = _any_null(columns)
        if nulls.any() and not nullable:
            raise DataError(
                f"{where}: {nulls.sum()} rows have a NULL in the key. Fill or remove them, or declare the right key."
            )
        self._values = [pc.unique(c).drop_null() for c in columns]
        packed = self._pack(columns)
        rows = np.flatnonzero(~nulls)
        self._order = rows[np.argsort(packed[rows], kind="stable")]
        self._sorted = packed[self._order]
        twice = int(np.count_nonzero(np.diff(self._sorted) == 0))
        if twice:
            raise DataError(
                f"{where}: {twice} rows repeat the key of another row. Remove the duplicates, or declare the right key."
            )

    def find(self, columns: Sequence[pa.ChunkedArray]) -> Positions:
        """The position of the row that each key references; NULL or MISSING where there is none."""
        packed = self._pack([_comparable(c) for c in columns])
        positions = np.full(len(packed), MISSING, np.int64)
        if len(self._sorted):
            at = np.minimum(np.searchsorted(self._sorted, packed), len(self._sorted) - 1)
            positions = np.where((self._sorted[at] == packed) & (packed >= 0), self._order[at], MISSING)
        positions[_any_null(columns)] = NULL
        return positions

    def _pack(self, columns: Sequence[pa.ChunkedArray]) -> Positions:
        """One number per key, the same for equal keys; -1 if a part is in no key of the table."""
        packed = np.zeros(len(columns[0]), np.int64)
        known = np.ones(len(packed), bool)
        size = 1
        for column, values in zip(columns, self._values, strict=True):
            alike = column.type == values.type
            part = (
                pc.index_in(
                    column if alike else column.cast(pa.string()),
                    value_set=values if alike else values.cast(pa.string()),
                )
                .combine_chunks()
                .fill_null(-1)
                .to_numpy(zero_copy_only=False)
            )
            known &= part >= 0
            size *= max(len(values), 1)
            if size > 2**62:
                raise DataError("a composite key has too many combinations of parts to index; use a single-column key.")
            packed = packed * max(len(values), 1) + part
        return np.where(known, packed, -1)


def missing_rows(positions: Positions, columns: Sequence[pa.ChunkedArray]) -> Positions:
    """Number the different keys among those that reference no row; -1 for the others.

    >>> missing_rows(np.array([-2, 0, -2, -2]), [pa.chunked_array([[9, 1, 8, 9]])]).tolist()
    [0, -1, 1, 0]
    """
    groups = np.full(len(positions), -1, np.int64)
    lost = np.flatnonzero(positions == MISSING)
    if len(lost):
        parts = [_comparable(c).take(pa.array(lost)).combine_chunks().dictionary_encode().indices for c in columns]
        _, groups[lost] = np.unique(np.stack([p.to_numpy() for p in parts]), axis=1, return_inverse=True)
    return groups


def rows_named(keys: Sequence[pa.Array], referenced: Sequence[pa.Array]) -> NDArray[np.int64]:
    """Find for each key, given column by column, the row that it references; -1 for none."""
    packed_keys = np.zeros(len(keys[0]), np.int64)
    packed_rows = np.zeros(len(referenced[0]), np.int64)
    missing = np.zeros(len(keys[0]), bool)
    for key, target in zip(map(one_array, keys), map(one_array, referenced), strict=True):
        values = target.unique()
        at = pc.index_in(key.cast(values.type), value_set=values)
        missing |= ~(at.is_valid() if key.null_count == 0 else pc.and_(at.is_valid(), key.is_valid())).to_numpy(
            zero_copy_only=False
        )
        radix = len(values) + 1
        packed_keys = packed_keys * radix + at.fill_null(0).to_numpy(zero_copy_only=False)
        packed_rows = packed_rows * radix + pc.index_in(target, value_set=values).to_numpy(zero_copy_only=False)
        both, inverse = np.unique(np.concatenate([packed_keys, packed_rows]), return_inverse=True)
        assert len(both) < np.iinfo(np.int64).max  # noqa: S101  renumbered, so that the next column cannot overflow
        packed_keys, packed_rows = inverse[: len(packed_keys)], inverse[len(packed_keys) :]
    order = np.argsort(packed_rows, kind="stable")
    if not len(order):
        return np.full(len(packed_keys), -1, np.int64)
    places = np.minimum(np.searchsorted(packed_rows[order], packed_keys), len(order) - 1)
    rows = order[places]
    return np.where(missing | (packed_rows[rows] != packed_keys), -1, rows)


def own_entities(rows: int) -> Positions:
    """Entity numbers of the entity table: each row is one."""
    return np.arange(rows, dtype=np.int64)


def entities_by_owner(owner: Positions, owner_entities: Positions, *, next_entity: int) -> tuple[Positions, int]:
    """Entity numbers of rows that reach their entity through `owner`; rows without an owner get new numbers.

    Returns the numbers and the next free one.

    >>> entities_by_owner(np.array([1, -1, 0]), np.array([4, 5]), next_entity=9)
    (array([5, 9, 4]), 10)
    """
    entities = np.empty(len(owner), np.int64)
    alone = owner < 0
    entities[~alone] = owner_entities[owner[~alone]]
    entities[alone] = next_entity + np.arange(int(alone.sum()))
    return entities, next_entity + int(alone.sum())


def owners_of_lookup(references: Positions, rows: int) -> Positions:
    """For each row of a lookup, the first row that references it (NULL where none does).

    >>> owners_of_lookup(np.array([2, 0, 2]), 3).tolist()
    [1, -1, 0]
    """
    owners = np.full(rows, NULL, np.int64)
    holders = np.flatnonzero(references >= 0)[::-1]
    owners[references[holders]] = holders
    return owners


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in a type that keys of either side share: all integers as 64 bits, the rest as text.

    Decimals and floats lose the zeros at their end, so that 5.00 references 5.
    """
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    text = column.cast(pa.string())
    if pa.types.is_decimal(column.type) or pa.types.is_floating(column.type):
        return pc.replace_substring_regex(text, pattern=r"(?:\.|(\.[0-9]*[1-9]))0*$", replacement=r"\1")
    return text


def _any_null(columns: Sequence[pa.ChunkedArray]) -> NDArray[np.bool_]:
    null = np.zeros(len(columns[0]), bool)
    for column in columns:
        null |= column.is_null().combine_chunks().to_numpy(zero_copy_only=False)
    return null


def rows_led_to(rows: Positions, keys: Iterable[Positions]) -> Positions:
    """The rows that keys lead to from some rows, one key after the other; NULL where one of them leads nowhere.

    >>> rows_led_to(np.arange(3), [np.array([1, MISSING, 0]), np.array([5, 6])]).tolist()
    [6, -1, 5]
    """
    for targets in keys:
        rows = np.maximum(np.append(targets, NULL)[rows], NULL)
    return rows
