"""Columns coded as differences: from the value of a base, or from the row before, and back again.

The codec of such a column is that of its differences. Differences are whole numbers in the type's own unit (days,
microseconds, the last digit of a decimal), held inside 64 bits; those of floats are floats, and what they restore is
put on the grid of the differences. Everything is total: a NULL base is a public epoch, a NULL value has its own code,
and what is restored is held inside the bounds of the type.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.codec import Codec
from privbench.encode.grid import FLOAT_TICKS, INT64, Grid, one_array, typed, whole_numbers
from privbench.encode.interval import IntervalCodec
from privbench.encode.layout import Codes
from privbench.encode.predicate import All, Predicate, parts_of
from privbench.encode.scalar import DAY, bounds_of, family_of
from privbench.schema.types import Kind, SqlType, difference_type

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]


def epoch(kind: SqlType) -> int:
    """The number that stands for a NULL base: 2000-01-01, midnight, or 0. It is public, whatever the data are."""
    return 0 if family_of(kind).numeric else int(family_of(kind).first_row)


def differences(kind: SqlType, values: pa.Array, base_type: SqlType, base: pa.Array) -> pa.Array:
    """Values minus their bases, as an array of the difference's type; NULL where a value is.

    >>> from privbench.schema.types import parse_type
    >>> date = parse_type("DATE")
    >>> differences(date, pa.array([3, 5, None], date.arrow), date, pa.array([1, 9, 9], date.arrow)).to_pylist()
    [2, -4, None]
    """
    nulls = values.is_null().to_numpy(zero_copy_only=False)
    if kind.kind is Kind.FLOAT:
        with np.errstate(over="ignore", invalid="ignore"):
            return pa.array(_floats(values) - _float_base(base), mask=nulls).cast(difference_type(kind).arrow)
    numbers = _minus(whole_numbers(kind, values), _base_numbers(kind, base_type, base))
    return _difference_array(kind, numbers, nulls)


def restored(
    kind: SqlType, differences: pa.Array, base_type: SqlType, base: pa.Array, *, step: Fraction | None = None
) -> pa.Array:
    """Bases plus differences, of exactly the column's type; NULL where the difference is.

    `step` is the grid of the differences of floats, on which their sums are put.
    """
    nulls = differences.is_null().to_numpy(zero_copy_only=False)
    if kind.kind is Kind.FLOAT:
        return _restored_floats(kind, _floats(differences), _float_base(base), nulls=nulls, step=step)
    numbers = _plus(_base_numbers(kind, base_type, base), whole_numbers(difference_type(kind), differences))
    return _typed(kind, numbers, nulls)


def step_of_codec(codec: Codec) -> Fraction | None:
    """The step of the grid of a codec's values, if it has one."""
    return codec.grid.step if isinstance(codec, IntervalCodec) else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequenceCodec:
    """Codes of a column that is relative to the row before: of first values, then of steps, then NULL.

    Which of the two a row has follows from its place alone, so that the codes of first rows and of others never mix.
    """

    where: str
    type: SqlType
    nullable: bool
    first: Codec
    """Of the values that sequences start from; without NULL."""
    steps: Codec
    """Of the differences from the row before; without NULL."""
    ordered: bool = False
    other_code: int | None = None

    @property
    def size(self) -> int:
        return self.first.size + self.steps.size + self.nullable

    @property
    def null_code(self) -> int | None:
        return self.size - 1 if self.nullable else None

    def labels(self) -> tuple[str, ...]:
        steps = (f"previous + {label}" for label in self.steps.labels())
        return (*self.first.labels(), *steps, *(("NULL",) if self.nullable else ()))

    def encode_sequences(self, values: pa.Array, owners: Numbers) -> Codes:
        """The codes of values, of which those of one owner come in their order, wherever the rows of others stand.

        A NULL is passed over; where the column has no code for it, it counts as the first value there is.
        """
        nulls = values.is_null().to_numpy(zero_copy_only=False)
        codes = np.full(len(values), 0 if self.null_code is None else self.null_code, np.int64)
        runs = np.argsort(np.where(owners < 0, -1 - np.arange(len(owners)), owners), kind="stable")
        there = runs[~nulls[runs]]
        starts, own = sequence_starts(owners[there]), values.take(pa.array(there))
        before = own.take(pa.array(np.maximum(np.arange(len(own)) - 1, 0)))
        steps = self.steps.encode(differences(self.type, own, self.type, before)).astype(np.int64)
        codes[there] = np.where(starts, self.first.encode(own).astype(np.int64), self.first.size + steps)
        return codes.astype(np.uint8 if self.size <= 2**8 else np.uint16)

    def decode_sequences(self, codes: Codes, owners: Numbers, rng: np.random.Generator) -> pa.Array:
        """Values that start anew with each owner's first row that is not NULL, and go on by steps from there.

        Rows of one owner stand in a run.
        """
        nulls = np.zeros(len(codes), bool) if self.null_code is None else codes == self.null_code
        there = np.flatnonzero(~nulls)
        starts = sequence_starts(owners[there])
        part = _of_its_kind(codes[there].astype(np.int64), starts, split=self.first.size, rng=rng)
        numbers = np.zeros(len(there), np.int64)
        first = self.first.decode(part[starts].astype(np.uint16), rng, first_row=0)
        steps = self.steps.decode((part[~starts] - self.first.size).astype(np.uint16), rng, first_row=0)
        numbers[starts] = whole_numbers(self.type, first)
        numbers[~starts] = whole_numbers(difference_type(self.type), steps)
        whole = np.zeros(len(codes), np.int64)
        whole[there] = _running_sums(numbers, starts)
        return _typed(self.type, whole, nulls)

    def encode(self, values: pa.Array | pa.ChunkedArray) -> Codes:
        """Every value as if it were a first one: rows are not known here."""
        return self.encode_sequences(one_array(values), np.arange(len(values)))

    def decode(self, codes: Codes, rng: np.random.Generator, *, first_row: int) -> pa.Array:  # noqa: ARG002
        """Every row as the first of its owner."""
        return self.decode_sequences(codes, np.arange(len(codes)), rng)

    def coverage(self, predicate: Predicate | All) -> NDArray[np.float64]:
        """Exact for NULL; what looks at values cannot be told from a code."""
        nulls, _ = parts_of(predicate)
        shares = np.ones(self.size)
        for part in nulls:
            is_null = np.arange(self.size) == (-1 if self.null_code is None else self.null_code)
            shares = shares * (is_null != part.negated)
        return shares


def sequence_order(kind: SqlType, values: pa.Array, owners: Numbers) -> Numbers:
    """The rows of each owner in ascending order of a column, NULL last, on the places that its rows have.

    Rows without an owner, -1, stay where they are. An owner's rows alone decide where they stand.

    >>> from privbench.schema.types import parse_type
    >>> values = pa.array([7, 3, 5, 1], pa.int32())
    >>> sequence_order(parse_type("INTEGER"), values, np.array([0, 1, 0, 1])).tolist()
    [2, 3, 0, 1]
    """
    rows = np.arange(len(owners))
    nulls = values.is_null().to_numpy(zero_copy_only=False)
    numbers = _floats(values) if kind.kind is Kind.FLOAT else whole_numbers(kind, values)
    groups = np.where(owners < 0, -1 - rows, owners)
    order = np.empty(len(owners), np.int64)
    order[np.lexsort((rows, groups))] = np.lexsort((rows, numbers, nulls, groups))
    return order


def sequence_starts(owners: Numbers) -> Mask:
    """Which rows are the first of their owner's, whose rows stand in a run; a row without an owner, -1, is one."""
    return np.asarray((np.diff(owners, prepend=-2) != 0) | (owners < 0))


def _of_its_kind(codes: Numbers, starts: Mask, *, split: int, rng: np.random.Generator) -> Numbers:
    """Codes in which first rows have codes of first values and others of steps; where noise mixed them up, drawn anew.

    They are drawn among the rows of their kind that are right; where there is none, any code of the kind will do.
    """
    wrong = starts != (codes < split)
    for kind in (True, False):
        places = np.flatnonzero(wrong & (starts == kind))
        right = codes[~wrong & (starts == kind)]
        if len(places):
            codes[places] = rng.choice(right, len(places)) if len(right) else (0 if kind else split)
    return codes


def _running_sums(numbers: Numbers, starts: Mask) -> Numbers:
    """Sums that start anew, held inside 64 bits."""
    sums = np.cumsum(numbers.astype(np.float64))
    if len(sums) and np.abs(sums).max() >= 2.0**62:
        numbers = np.clip(numbers, -(2**40), 2**40)
    whole = np.cumsum(numbers)
    before = (whole - numbers)[np.maximum.accumulate(np.where(starts, np.arange(len(numbers)), 0))]
    return np.asarray(whole - before)


def _base_numbers(kind: SqlType, base_type: SqlType, base: pa.Array) -> Numbers:
    """The numbers behind bases in the unit of another type: days of moments, midnights of days."""
    numbers = whole_numbers(base_type, base)
    if kind.kind is Kind.DATE and base_type.kind is Kind.TIMESTAMP:
        numbers = numbers // DAY
    elif kind.kind is Kind.TIMESTAMP and base_type.kind is Kind.DATE:
        low, high = bounds_of(kind)
        numbers = np.clip(numbers, low // DAY, high // DAY) * DAY
    return np.where(base.is_null().to_numpy(zero_copy_only=False), epoch(kind), numbers)


def _float_base(base: pa.Array) -> NDArray[np.float64]:
    numbers = _floats(base)
    return np.where(np.isfinite(numbers), numbers, 0.0)


def _floats(values: pa.Array) -> NDArray[np.float64]:
    """Floats, NaN where NULL."""
    return np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False))


def _restored_floats(
    kind: SqlType, steps: NDArray[np.float64], base: NDArray[np.float64], *, nulls: Mask, step: Fraction | None
) -> pa.Array:
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.nan_to_num(base + steps)
    if step is not None:
        grid = Grid(type=kind, step=step)
        with np.errstate(over="ignore"):
            ticks = np.rint(sums / float(step))
        exact = np.abs(ticks) < FLOAT_TICKS[kind.bits]
        on_grid = grid.values(np.where(exact, ticks, 0).astype(np.int64), nulls=nulls)
        sums = np.where(exact, _floats(pc.fill_null(on_grid, 0)), sums)
    largest = float(bounds_of(kind)[1])
    return pa.array(np.clip(sums, -largest, largest), mask=nulls).cast(kind.arrow)


def _difference_array(kind: SqlType, numbers: Numbers, nulls: Mask) -> pa.Array:
    of = difference_type(kind)
    low, high = bounds_of(of)
    return typed(of, np.clip(numbers, low, high), nulls=nulls)


def _typed(kind: SqlType, numbers: Numbers, nulls: Mask) -> pa.Array:
    """Values of the type, the nearest ones that it can hold."""
    low, high = bounds_of(kind)
    return typed(kind, np.clip(numbers, max(low, INT64.min), min(high, INT64.max)), nulls=nulls)


def _minus(numbers: Numbers, others: Numbers) -> Numbers:
    """The difference, held inside 64 bits."""
    made = numbers - others
    return np.where(((numbers ^ others) & (numbers ^ made)) < 0, np.where(numbers < 0, INT64.min, INT64.max), made)


def _plus(numbers: Numbers, others: Numbers) -> Numbers:
    """The sum, held inside 64 bits."""
    made = numbers + others
    return np.where(((numbers ^ made) & (others ^ made)) < 0, np.where(numbers < 0, INT64.min, INT64.max), made)
