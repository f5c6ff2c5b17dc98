"""Real key values to row positions and entity numbers, before anything is spent.

A key is replaced by the position of the row it references, an owner by its entity's number. What is wrong with the keys
of the real data is found here and told to the publisher; positions alone go on to the vault.

An index of whole numbers that lie close together is an array of positions; where they count up row by row it is two
numbers. Any other key is found by a hash, and then compared.
"""

from collections.abc import Iterable, Sequence
from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.grid import one_array
from privbench.encode.hashing import hash_rows
from privbench.errors import DataError

Positions = NDArray[np.signedinteger]
NULL = -1
"""The position of a NULL key."""
MISSING = -2
"""The position of a key that references no row."""
_SPARSE = 4
"""Whole numbers are looked up in an array if it has at most so many places for each of them."""
_SMALL = 2**16
"""An array of so many places is small enough for any number of rows."""


class KeyIndex:
    """The rows of one table by the values of one of its keys.

    >>> index = KeyIndex("t(id)", [pa.chunked_array([[7, 5]])])
    >>> index.find([pa.chunked_array([[5, None, 9, 7]])]).tolist()
    [1, -1, -2, 0]
    """

    def __init__(self, where: str, columns: Sequence[pa.Array | pa.ChunkedArray], *, nullable: bool = False) -> None:
        self.rows = len(columns[0])
        self._where = where
        self._columns = [comparable(c) for c in columns]
        nulls = any_null(self._columns)
        if nulls.any() and not nullable:
            raise null_keys(where, int(nulls.sum()))
        self._numbers = _dense(where, self._columns, nulls)
        self._by_hash: dict[tuple[pa.DataType, ...], _HashedKeys] = {}
        if self._numbers is None:
            self._hashed(tuple(c.type for c in self._columns))  # which finds keys that are there twice
        else:
            self._columns = []

    @classmethod
    def counting(cls, where: str, first: int, rows: int) -> "KeyIndex":
        """The index of a key that counts up from row to row."""
        index = cls(where, [pa.array([], pa.int64())])
        index.rows, index._numbers = rows, _Numbers(first, rows, None)
        return index

    def find(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> Positions:
        """The position of the row that each key references; NULL or MISSING where there is none."""
        if self._numbers is not None and pa.types.is_integer(columns[0].type):
            return self._numbers.find(one_array(columns[0]))
        wanted = [comparable(c) for c in columns]
        positions = self._hashed(tuple(c.type for c in wanted)).find(wanted)
        positions[any_null(wanted)] = NULL
        return positions

    def _hashed(self, types: tuple[pa.DataType, ...]) -> "_HashedKeys":
        """The rows by a hash, of columns that can be compared with such of these types."""
        if types not in self._by_hash:
            own = self._columns if self._numbers is None else [self._numbers.values()]
            alike = [c if c.type == kind else c.cast(_TEXT) for c, kind in zip(own, types, strict=True)]
            self._by_hash[types] = _HashedKeys(self._where, alike)
        return self._by_hash[types]


_TEXT = pa.large_string()


class SpreadIndex:
    """The rows of a made-up table, which real keys do not name: a fixed public hash says which row stands for a key.

    Where a key goes depends on its own value alone, whatever other rows there are (docs/proofs/coding.md).

    >>> index = SpreadIndex(3)
    >>> first, null, again = index.find([pa.array([7, None, 7])]).tolist()
    >>> (first == again, null, [first] == index.find([pa.array([7])]).tolist())
    (True, -1, True)
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def find(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> Positions:
        """The position of the row that stands for each key; NULL for a NULL key."""
        wanted = [comparable(c) for c in columns]
        positions = (hash_rows(wanted) % np.uint64(self.rows)).astype(np.int64)
        positions[any_null(wanted)] = NULL
        return positions


AnyIndex = KeyIndex | SpreadIndex


class IndexBuilder:
    """Makes an index of keys that come batch by batch. Of keys that count up nothing is held."""

    def __init__(self, where: str, types: Sequence[pa.DataType], *, nullable: bool) -> None:
        self._where = where
        self._types = types
        self._nullable = nullable
        self._first: int | None = None
        self._rows = 0
        self._counts_up = len(types) == 1 and pa.types.is_integer(types[0])
        self._held: list[Sequence[pa.Array]] = []

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Take the keys of some more rows."""
        if self._counts_up and len(columns[0]):
            self._first = columns[0][0].as_py() if self._first is None else self._first
            self._counts_up = self._first is not None and _counts_up(columns[0], self._first + self._rows)
            if not self._counts_up and self._rows:
                before = np.arange(self._first, self._first + self._rows)
                self._held.append([pa.array(before, self._types[0])])
        if not self._counts_up:
            self._held.append(columns)
        self._rows += len(columns[0])

    def index(self) -> KeyIndex:
        """The index of all keys. Raises DataError if they are not unique, or NULL where they may not be."""
        if self._counts_up:
            return KeyIndex.counting(self._where, self._first or 0, self._rows)
        columns = [pa.chunked_array([c[at] for c in self._held], kind) for at, kind in enumerate(self._types)]
        self._held = []
        return KeyIndex(self._where, columns, nullable=self._nullable)


def _counts_up(keys: pa.Array, first: int) -> bool:
    if keys.null_count or keys[0].as_py() != first or keys[-1].as_py() != first + len(keys) - 1:
        return False
    numbers = keys.to_numpy()
    return bool((numbers[1:] - numbers[:-1] == 1).all())


def ascend(columns: Sequence[pa.Array]) -> bool:
    """Whether the rows are in strictly ascending order: numbers by value, texts by code points, column by column.

    >>> ascend([pa.array([1, 1, 2]), pa.array(["a", "b", "a"])]), ascend([pa.array([1, 1, 2])])
    (True, False)
    """
    rows = len(columns[0])
    if rows < 2:
        return not any(c.null_count for c in columns)
    later: pa.Array | None = None
    for column in reversed(columns):
        before, after = column.slice(0, rows - 1), column.slice(1)
        try:
            less = pc.less(before, after)
            later = less if later is None else pc.or_(less, pc.and_(pc.equal(before, after), later))
        except pa.ArrowNotImplementedError:  # a type without an order
            return False
    return not any(c.null_count for c in columns) and bool(pc.all(later).as_py())


class _Numbers:
    """The rows of keys that are whole numbers from a first one on: by an array, or none where they count up."""

    def __init__(self, first: int, size: int, rows: Positions | None) -> None:
        self._first = first
        self._size = size
        self._rows = rows

    def find(self, wanted: pa.Array) -> Positions:
        nulls = wanted.is_null().to_numpy(zero_copy_only=False) if wanted.null_count else None
        numbers = (wanted if nulls is None else wanted.fill_null(0)).to_numpy(zero_copy_only=False)
        kind = np.iinfo(numbers.dtype)
        if self._first < kind.min or self._first + self._size - 1 > kind.max:  # else they could wrap round to a key
            numbers = numbers.astype(np.int64)
        with np.errstate(over="ignore"):  # below the first they wrap round, to beyond the last
            places = (numbers - numbers.dtype.type(self._first)).view(f"u{numbers.dtype.itemsize}")
        beyond = places >= self._size if len(places) and int(places.max()) >= self._size else None
        if beyond is not None:
            places = np.where(beyond, places.dtype.type(0), places)
        counted = places.astype(position_type(self._size))
        found: Positions = counted if self._rows is None or not self._size else self._rows[places]
        if beyond is not None:
            found[beyond] = MISSING
        if nulls is not None:
            found[nulls] = NULL
        return found

    def values(self) -> pa.Array:
        """The keys in the order of their rows; NULL for rows without a key."""
        if self._rows is None:
            return pa.array(np.arange(self._first, self._first + self._size, dtype=np.int64))
        there = np.flatnonzero(self._rows >= 0)
        held = np.zeros(int(self._rows.max(initial=-1)) + 1, np.int64)
        known = np.zeros(len(held), bool)
        held[self._rows[there]], known[self._rows[there]] = self._first + there, True
        return pa.array(held, mask=~known)


def _dense(where: str, columns: Sequence[pa.Array], nulls: NDArray[np.bool_]) -> _Numbers | None:
    """An array of positions, where a key is one column of whole numbers that lie close together."""
    if len(columns) > 1 or columns[0].type != pa.int64():
        return None
    rows = np.flatnonzero(~nulls)
    values = columns[0].drop_null().to_numpy(zero_copy_only=False)
    if not len(values):
        return _Numbers(0, 0, None)
    first, last = int(values.min()), int(values.max())
    size = last - first + 1
    if size > max(_SPARSE * len(values), _SMALL):
        return None
    kind = position_type(len(nulls))
    places = values - first
    if len(values) == len(nulls) == size and np.array_equal(places, np.arange(size)):
        return _Numbers(first, size, None)
    found = np.full(size, MISSING, kind)
    found[places] = rows
    _refuse_repeated(where, int(np.count_nonzero(found[places] != rows)))
    return _Numbers(first, size, found)


class _HashedKeys:
    """The rows of any keys, in the order of a hash."""

    def __init__(self, where: str, columns: Sequence[pa.Array]) -> None:
        self._columns = columns
        rows = np.flatnonzero(~any_null(columns)).astype(position_type(len(columns[0])))
        for salt in count():  # until no two keys have the same hash
            hashes = hash_rows(columns, salt=salt)[rows]
            order = np.argsort(hashes, kind="stable")
            self._salt, self._order, self._sorted = salt, rows[order], hashes[order]
            same = np.flatnonzero(self._sorted[1:] == self._sorted[:-1])
            if not len(same):
                return
            alike = self._order[np.unique(np.concatenate([same, same + 1]))]
            _refuse_repeated(where, repeated([c.take(pa.array(alike)) for c in columns]))

    def find(self, wanted: Sequence[pa.Array]) -> Positions:
        wanted = [w if w.type == own.type else w.cast(_TEXT) for w, own in zip(wanted, self._columns, strict=True)]
        if not len(self._sorted):
            return np.full(len(wanted[0]), MISSING, self._order.dtype)
        hashes = hash_rows(wanted, salt=self._salt)
        at = np.minimum(np.searchsorted(self._sorted, hashes), len(self._sorted) - 1)
        rows = self._order[at]
        found = self._sorted[at] == hashes
        places = pa.array(rows)
        for column, own in zip(wanted, self._columns, strict=True):
            found &= pc.equal(column, own.take(places)).fill_null(False).to_numpy(zero_copy_only=False)
        return np.where(found, rows, rows.dtype.type(MISSING))


def position_type(rows: int) -> np.dtype[np.signedinteger]:
    """The integers that hold positions of so many rows."""
    return np.dtype(np.int32 if rows < 2**31 else np.int64)


def smallest_type(rows: int) -> np.dtype[np.signedinteger]:
    """The smallest integers that hold positions of so many rows, and one more."""
    kinds = (np.int8, np.int16, np.int32, np.int64)
    return next(np.dtype(kind) for kind in kinds if rows < np.iinfo(kind).max)


def null_keys(where: str, rows: int) -> DataError:
    """Say that rows have no key."""
    return DataError(f"{where}: {rows} rows have a NULL in the key. Fill or remove them, or declare the right key.")


def _refuse_repeated(where: str, rows: int) -> None:
    if rows:
        raise repeated_keys(where, rows)


def repeated_keys(where: str, rows: int) -> DataError:
    """Say that keys are not unique; their values are nobody's business."""
    return DataError(
        f"{where}: {rows} rows repeat the key of another row. Remove the duplicates, or declare the right key."
    )


def repeated(columns: Sequence[pa.Array]) -> int:
    """How many rows repeat the key of another one."""
    names = [str(at) for at in range(len(columns))]
    different: int = pa.table(list(columns), names).group_by(names).aggregate([]).num_rows
    return len(columns[0]) - different


def missing_rows(positions: Positions, columns: Sequence[pa.Array | pa.ChunkedArray]) -> NDArray[np.int64]:
    """Number the different keys among those that reference no row; -1 for the others.

    >>> missing_rows(np.array([-2, 0, -2, -2]), [pa.chunked_array([[9, 1, 8, 9]])]).tolist()
    [0, -1, 1, 0]
    """
    groups = np.full(len(positions), -1, np.int64)
    lost = np.flatnonzero(positions == MISSING)
    if len(lost):
        parts = [comparable(c).take(pa.array(lost)).dictionary_encode().indices for c in columns]
        _, groups[lost] = np.unique(np.stack([p.to_numpy() for p in parts]), axis=1, return_inverse=True)
    return groups


def comparable(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column in a type that keys of either side share: all integers as 64 bits, the rest as text.

    Decimals and floats lose the zeros at their end, so that 5.00 references 5.
    """
    column = one_array(column)
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    text = column.cast(_TEXT)
    if pa.types.is_decimal(column.type) or pa.types.is_floating(column.type):
        return pc.replace_substring_regex(text, pattern=r"(?:\.|(\.[0-9]*[1-9]))0*$", replacement=r"\1")
    return text


def any_null(columns: Sequence[pa.Array]) -> NDArray[np.bool_]:
    """Which rows have a NULL in some column."""
    null = np.zeros(len(columns[0]), bool)
    for column in columns:
        if column.null_count:
            null |= column.is_null().to_numpy(zero_copy_only=False)
    return null


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


def rows_led_to(rows: Positions, keys: Iterable[Positions]) -> Positions:
    """The rows that keys lead to from some rows, one key after the other; NULL where one of them leads nowhere.

    >>> rows_led_to(np.arange(3), [np.array([1, MISSING, 0]), np.array([5, 6])]).tolist()
    [6, -1, 5]
    """
    for targets in keys:
        rows = np.maximum(np.append(targets, NULL)[rows], NULL)
    return rows
