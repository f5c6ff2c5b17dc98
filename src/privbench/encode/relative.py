"""Columns coded as differences: from the value of a base, or from the row before, and back again.

The codec of such a column is that of its differences. Differences are whole numbers in the type's own unit (days,
microseconds, the last digit of a decimal), held inside 64 bits; those of floats are floats, and what they restore is
put on the grid of the differences. Everything is total: a NULL base counts as a public value, a NULL value has its own
code, and what is restored is held inside the bounds of the type.
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
from privbench.encode.listed import OrderedList
from privbench.encode.predicate import All, Predicate, parts_of
from privbench.encode.scalar import DAY, bounds_of, family_of, number_of
from privbench.schema.domain import Bins, Domain, Origin, Range, Values
from privbench.schema.relative import Base, base_of, values_needed
from privbench.schema.spec import Spec
from privbench.schema.types import Kind, SqlType, difference_type
from privbench.schema.unit import Protection

Numbers = NDArray[np.int64]
FLOAT_DIGITS = {32: 6, 64: 15}
"""Decimal digits that a float of so many bits keeps."""
EPOCH_YEAR = 1970
"""The year from which NumPy counts years."""
Mask = NDArray[np.bool_]


def stand_ins(spec: Spec, protection: Protection) -> dict[Base, pa.Scalar]:
    """What stands for NULL in each base of a relative column."""
    bases = {Base(*place) for table in protection.order for place in values_needed(protection, table)}
    return {base: _stand_in(spec, protection, base) for base in bases}


def _stand_in(spec: Spec, protection: Protection, base: Base) -> pa.Scalar:
    """What stands for a NULL in a base: the middle of what the spec says of its values, and else an epoch.

    It is public, and the same before and after a fit: a domain that is found with budget is not looked at.
    """
    kind = protection.schema.table(base.table).column(base.column).type
    low, high = bounds_of(kind)
    number = np.array([min(max(_middle(spec, protection, base), low), high)])
    if kind.kind is Kind.FLOAT:
        return pa.array(number.astype(np.float64)).cast(kind.arrow)[0]
    return typed(kind, number.astype(np.int64), nulls=np.zeros(1, bool))[0]


def _middle(spec: Spec, protection: Protection, base: Base) -> int:
    """A number in the middle of a column's values; a relative one's are in the middle of its differences from there."""
    kind, words = protection.schema.table(base.table).column(base.column).type, spec.column(base.table, base.column)
    where, above = f"{base.table}.{base.column}", base_of(protection, base.table, base.column)
    if above is None or above.previous:
        domain = words.domain if above is None else words.first if words.start is None else None
        return epoch(kind) if words.origin is Origin.PRIVATE else int(_centre(where, kind, domain) or epoch(kind))
    over = protection.schema.table(above.table).column(above.column).type
    middle = _in_unit(kind, over, np.array([_middle(spec, protection, above)]))[0]
    if words.origin is Origin.PRIVATE:
        return int(middle)
    return int(middle) + int(_centre(where, difference_type(kind), words.domain) or 0)


def _centre(where: str, kind: SqlType, domain: Domain | None) -> Fraction | None:
    match domain:
        case Range():
            return sum((number_of(where, kind, v) for v in domain.range), Fraction(0)) / 2
        case Bins():
            return number_of(where, kind, domain.bins[len(domain.bins) // 2])
        case Values():
            return sorted(number_of(where, kind, v) for v in domain.values)[len(domain.values) // 2]
        case _:
            return None


def epoch(kind: SqlType) -> int:
    """The number that stands for a base of which nothing is known: 2000-01-01, midnight, or 0."""
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
        return pa.array(_float_differences(kind, _floats(values), _float_base(base)), mask=nulls).cast(kind.arrow)
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
    """Codes of a column that is relative to the row before: of steps, then of first values, then NULL.

    Which of the two a row has follows from its place alone. Steps come first, since large ones are rare: where codes
    are measured in runs of neighbours, hardly any row is in the run where the two meet.
    """

    where: str
    type: SqlType
    nullable: bool
    has_start: bool
    """Whether first rows are coded against a base, too."""
    first: Codec
    """Of first rows: of their values, which no value leaves, or of differences from a base. Without NULL."""
    steps: Codec
    """Of the differences from the row before; without NULL."""
    ordered: bool = True
    other_code: int | None = None

    @property
    def size(self) -> int:
        return self.first.size + self.steps.size + self.nullable

    @property
    def null_code(self) -> int | None:
        return self.size - 1 if self.nullable else None

    def labels(self) -> tuple[str, ...]:
        steps = (f"previous + {label}" for label in self.steps.labels())
        return (*steps, *self.first.labels(), *(("NULL",) if self.nullable else ()))

    def encode_sequences(self, values: pa.Array, owners: Numbers, start: pa.Array | None = None) -> Codes:
        """The codes of values, of which those of one owner come in their order, wherever the rows of others stand.

        A NULL is passed over; where the column has no code for it, it counts as the first value there is. `start` are
        the differences of values from the base of first rows, if there is one.
        """
        nulls = values.is_null().to_numpy(zero_copy_only=False)
        codes = np.full(len(values), 0 if self.null_code is None else self.null_code, np.int64)
        runs = np.argsort(np.where(owners < 0, -1 - np.arange(len(owners)), owners), kind="stable")
        there = runs[~nulls[runs]]
        starts, own = sequence_starts(owners[there]), values.take(pa.array(there))
        before = own.take(pa.array(np.maximum(np.arange(len(own)) - 1, 0)))
        steps = self.steps.encode(differences(self.type, own, self.type, before)).astype(np.int64)
        first = self.first.encode(own if start is None else start.take(pa.array(there))).astype(np.int64)
        codes[there] = np.where(starts, self.steps.size + first, steps)
        return codes.astype(np.uint8 if self.size <= 2**8 else np.uint16)

    def decode_sequences(
        self, codes: Codes, owners: Numbers, rng: np.random.Generator, start: tuple[SqlType, pa.Array] | None = None
    ) -> pa.Array:
        """Values that start anew with each owner's first row that is not NULL, and go on by steps from there.

        Rows of one owner stand in a run. `start` is the base of first rows, with its type, if there is one.
        """
        nulls = np.zeros(len(codes), bool) if self.null_code is None else codes == self.null_code
        there = np.flatnonzero(~nulls)
        starts = sequence_starts(owners[there])
        part = _of_its_kind(codes[there].astype(np.int64), starts, split=self.steps.size, rng=rng)
        numbers = np.zeros(len(there), np.int64)
        first = self.first.decode((part[starts] - self.steps.size).astype(np.uint16), rng, first_row=0)
        steps = self.steps.decode(part[~starts].astype(np.uint16), rng, first_row=0)
        of = difference_type(self.type)
        numbers[starts] = whole_numbers(of if self.has_start else self.type, first)
        numbers[~starts] = whole_numbers(of, steps)
        if start is not None:
            bases = _base_numbers(self.type, start[0], start[1].take(pa.array(there)))
            numbers[starts] = _plus(numbers[starts], bases[starts])
        ends = bounds_of(self.type) if self.has_start else ends_of(self.first)
        whole = np.zeros(len(codes), np.int64)
        whole[there] = _moved_inside(_running_sums(numbers, starts), starts, *ends)
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


def ends_of(codec: Codec) -> tuple[int, int]:
    """The smallest and the largest number that an ordered codec decodes to."""
    if isinstance(codec, IntervalCodec):
        grid = codec.grid
        return int(grid.anchor + int(codec.first[0]) * grid.step), int(grid.anchor + int(codec.last[-1]) * grid.step)
    assert isinstance(codec, OrderedList)  # noqa: S101  others are refused for sequences
    return int(codec.numbers[0]), int(codec.numbers[-1])


def _moved_inside(numbers: Numbers, starts: Mask, low: int, high: int) -> Numbers:
    """Sequences that end beyond the highest value start earlier, so that their steps stay; then all are held inside."""
    if not len(numbers):
        return numbers
    beyond = np.maximum(np.maximum.reduceat(numbers, np.flatnonzero(starts)) - high, 0)
    inside: Numbers = np.clip(numbers - beyond[np.cumsum(starts) - 1], low, high)
    return inside


def _of_its_kind(codes: Numbers, starts: Mask, *, split: int, rng: np.random.Generator) -> Numbers:
    """Codes in which first rows have codes of first values and others of steps; where noise mixed them up, drawn anew.

    They are drawn among the rows of their kind that are right; where there is none, any code of the kind will do.
    """
    wrong = starts != (codes >= split)
    for kind in (True, False):
        places = np.flatnonzero(wrong & (starts == kind))
        right = codes[~wrong & (starts == kind)]
        if len(places):
            codes[places] = rng.choice(right, len(places)) if len(right) else (split if kind else 0)
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
    numbers = _in_unit(kind, base_type, whole_numbers(base_type, base))
    return np.where(base.is_null().to_numpy(zero_copy_only=False), epoch(kind), numbers)


def _in_unit(kind: SqlType, base_type: SqlType, numbers: Numbers) -> Numbers:
    """Numbers of one type in the unit of another."""
    if kind.kind is Kind.INTEGER and base_type.kind in (Kind.DATE, Kind.TIMESTAMP):
        days = numbers if base_type.kind is Kind.DATE else numbers // DAY
        return days.astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64) + EPOCH_YEAR
    if kind.kind is Kind.DATE and base_type.kind is Kind.TIMESTAMP:
        return numbers // DAY
    if kind.kind is Kind.TIMESTAMP and base_type.kind is Kind.DATE:
        low, high = bounds_of(kind)
        return np.clip(numbers, low // DAY, high // DAY) * DAY
    return numbers


def _float_differences(kind: SqlType, numbers: NDArray[np.float64], base: NDArray[np.float64]) -> NDArray[np.float64]:
    """Differences without the digits that the type cannot tell: 0.15 - 0.14 is 0.01."""
    with np.errstate(all="ignore"):
        made = numbers - base
        digits = FLOAT_DIGITS[kind.bits] - 1 - np.floor(np.log10(np.maximum(np.abs(numbers), np.abs(base))))
        rounded = np.rint(made * 10.0**digits) / 10.0**digits
    return np.where(np.isfinite(rounded), rounded, made)


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
