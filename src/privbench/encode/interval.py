"""Range and Bins: ordered columns whose cells are intervals of ticks, and how a declaration becomes such cells.

The outer cells are open when encoding: what lies below or above goes to the nearest one. Decoding draws between
the outer edges as declared (held inside the type's bounds): uniform on the grid, log-uniform where a cell of
positive numbers spans more than a factor of 2.5. With `distinct`, it draws from a pool of so many values instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.grid import FLOAT_EXPONENTS, INT64_DIGITS, Grid, float_exponent, one_array
from privbench.encode.layout import Codes, LaidOut, Layout, looked_up
from privbench.encode.number_pool import NumberPool, number_pool
from privbench.encode.pool import draw_ranks
from privbench.encode.predicate import All, Between, OfValues, Predicate, Prefix
from privbench.encode.scalar import MICROSECONDS, counts_microseconds, family_of, number_of, step_of
from privbench.encode.spelling import salt_of
from privbench.errors import SpecError
from privbench.schema.domain import MAX_CELLS, Bins, Range, Scalar
from privbench.schema.types import Kind, SqlType

LOG_RATIO = 2.5
LONG_RANGE = 256
"""A range of more than 4,096 days or times is cut into no more cells than this: more drown in noise (decision 0068)."""
_MONTHS = (1, 3, 12, 60, 120, 1200)
_YEAR_0 = 1970 * 12
_SECONDS = (1, 5, 15, 60, 300, 900, 3_600, 21_600, 86_400)
_ROUND_TIMES = (1, 10, 100, 1_000, 10_000, 100_000, *(n * MICROSECONDS["s"] for n in _SECONDS))
_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntervalCodec(LaidOut):
    """Cell i holds the ticks first[i] .. last[i]; the next cell starts right after. Compiled by `codec`."""

    grid: Grid
    first: NDArray[np.int64]  # (cells,)
    last: NDArray[np.int64]  # (cells,)
    pool: NumberPool | None = None
    ordered: bool = True

    def encode(self, values: pa.Array | pa.ChunkedArray) -> Codes:
        ticks = self.grid.ticks(one_array(values))
        if self._value_by_value:
            cells = np.clip(ticks, self.first[0], self.last[-1]) - self.first[0]
        else:
            cells = np.searchsorted(self.first[1:], ticks, side="right")
        return self.layout.pack(cells, values)

    def decode(self, codes: Codes, rng: np.random.Generator, *, first_row: int) -> pa.Array:
        if self._value_by_value and self.pool is None:
            return looked_up(self.grid.values(self.first), codes)
        nulls = self.layout.nulls(codes)
        cells = np.where(nulls, 0, codes)
        if self.pool is not None:
            before = first_row / max(len(codes), 1)  # batches of this size that came before
            return self.grid.values(self._pooled(self.pool, cells.astype(np.int64), rng, before=before), nulls=nulls)
        return self.grid.values(self.ticks_at(cells, rng.random(len(cells))), nulls=nulls)

    def coverage(self, predicate: Predicate | All) -> NDArray[np.float64]:
        return self.layout.coverage(predicate, self._shares)

    def at(self, cell: int, share: float) -> Scalar:
        """Return the value below which that share of a cell's values lies, by the law that decode draws from."""
        if self.pool is not None:
            return self.grid.scalar(self.pool.at(cell, share))
        return self.grid.scalar(int(self.ticks_at(np.array([cell]), np.array([share]))[0]))

    @property
    def values_in(self) -> NDArray[np.float64]:
        """How many different values each cell decodes to."""
        return self._spans.astype(np.float64) + 1 if self.pool is None else self.pool.sizes.astype(np.float64)

    def draws(self, tick: int) -> bool:
        """Tell whether a tick between the outer edges is ever decoded to."""
        return self.pool is None or self.pool.holds(tick)

    def labels(self) -> tuple[str, ...]:
        """Return a value, or an interval, per code."""
        starts, ends = self._strings(self.first), self._strings(self.last)
        names = [a if a == b else f"{a} .. {b}" for a, b in zip(starts, ends, strict=True)]
        return self.layout.labels(names)

    def ticks_at(self, cells: NDArray[np.int_], shares: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the ticks below which these shares of cells lie, where all of the grid is drawn from."""
        ticks = self.first[cells].view(np.uint64) + self._offsets(cells, shares)
        return np.asarray(ticks.view(np.int64))

    def _pooled(
        self, pool: NumberPool, cells: NDArray[np.int64], rng: np.random.Generator, *, before: float
    ) -> NDArray[np.int64]:
        ranks = draw_ranks(cells, pool.sizes, rng, before=before, skew=pool.skew)
        return np.asarray(pool.ticks[pool.starts[cells] + ranks])

    def cell_values(self) -> pa.Array | None:
        """The value of each cell; None if some cell has several."""
        cells = np.arange(self.layout.cells).astype(np.uint16)
        return self.decode(cells, np.random.default_rng(0), first_row=0) if self._value_by_value else None

    @property
    def _value_by_value(self) -> bool:
        return bool(np.array_equal(self.first, self.last))

    @property
    def _spans(self) -> NDArray[np.uint64]:
        """Ticks of each cell beyond its first; unsigned, because a cell may span more than half of int64."""
        return np.asarray(self.last.view(np.uint64) - self.first.view(np.uint64))

    @property
    def _logs(self) -> NDArray[np.float64]:
        """log(end / start) of the cells that are drawn log-uniformly, 0 for the others."""
        starts = np.maximum(self.first, 1).astype(np.float64)
        ratios = (self.last.astype(np.float64) + 1) / starts
        chosen = (self.first > 0) & (ratios > LOG_RATIO) & family_of(self.grid.type).numeric
        return np.log(np.where(chosen, ratios, 1.0))

    def _offsets(self, cells: NDArray[np.int_], share: NDArray[np.float64]) -> NDArray[np.uint64]:
        spans, logs = self._spans, self._logs
        offsets = share * (spans.astype(np.float64) + 1)[cells]
        bent = logs[cells] > 0
        if bent.any():
            chosen = cells[bent]
            offsets[bent] = self.first[chosen] * np.expm1(share[bent] * logs[chosen])
        return np.minimum(offsets.astype(np.uint64), spans[cells])

    def _shares(self, parts: tuple[OfValues, ...]) -> NDArray[np.float64]:
        runs: set[tuple[int, int]] = {(int(self.first[0]), int(self.last[-1]))}
        for part in parts:
            overlaps = ((max(a, c), min(b, d)) for a, b in runs for c, d in self._runs(part))
            runs = {(low, high) for low, high in overlaps if low <= high}
        return self.layout.spread(sum((self._share(a, b) for a, b in runs), np.zeros(len(self.first))))

    def _runs(self, predicate: OfValues) -> Sequence[tuple[int, int]]:
        """Return the runs of ticks that satisfy the predicate, first and last included; no two of them meet."""
        low, high = int(self.first[0]), int(self.last[-1])
        if isinstance(predicate, Prefix):
            return []
        if isinstance(predicate, Between):
            if predicate.low is not None:
                low = max(low, _at_least(self.grid.position(self.where, predicate.low), predicate.include_low))
            if predicate.high is not None:
                high = min(high, -_at_least(-self.grid.position(self.where, predicate.high), predicate.include_high))
            return [(low, high)] if low <= high else []
        places = {self.grid.position(self.where, v) for v in predicate.values}
        return [(int(p), int(p)) for p in places if p.denominator == 1 and low <= p <= high]

    def _share(self, low: int, high: int) -> NDArray[np.float64]:
        """Return the share of each cell that a run of ticks covers, by the law that decode draws from."""
        if self.pool is not None:
            return self.pool.share(low, high)
        a = np.clip(self.first, low, None)
        b = np.clip(self.last, None, high)
        overlap = a <= b
        counts = np.where(overlap, b.view(np.uint64) - a.view(np.uint64), 0).astype(np.float64) + overlap
        logs = self._logs
        bent = overlap & (logs > 0)
        shares = counts / (self._spans.astype(np.float64) + 1)
        ends = np.where(bent, b, 1).astype(np.float64) + 1
        return np.where(bent, np.log(ends / np.where(bent, a, 1)) / np.where(bent, logs, 1), shares)

    def _strings(self, ticks: NDArray[np.int64]) -> list[str]:
        if self.grid.type.kind is Kind.DURATION:
            return [str(self.grid.scalar(int(tick))) for tick in ticks]
        values = self.grid.values(ticks)
        strings: list[str] = values.cast(pa.string()).to_pylist()
        return strings


def _at_least(place: Fraction, inclusive: bool) -> int:
    """Return the first tick at or above (or, exclusive, above) a place."""
    return ceil(place) if inclusive else floor(place) + 1


def range_codec(where: str, kind: SqlType, domain: Range, *, nullable: bool) -> IntervalCodec:
    """Every value from the first to the last, in steps, is a cell; of many times, every hour, day or month."""
    grid = _grid(where, kind, domain.range, step=domain.step, coarsest=0)
    first, last = (grid.tick(where, v) for v in domain.range)
    if last < first:
        raise SpecError(f"{where}: range {list(domain.range)} runs backwards; write the smaller value first.")
    if first < grid.low or last > grid.high:
        raise SpecError(f"{where}: range {list(domain.range)} does not fit {kind.sql}; keep to what it can hold.")
    if last - first >= MAX_CELLS and kind.kind in (Kind.DATE, Kind.TIME, Kind.TIMESTAMP):
        starts = _long_starts(grid, first, last)
    else:
        _check_count(where, last - first + 1)
        starts = list(range(first, last + 1))
    return _codec(where, grid, np.array(starts, dtype=np.int64), last=last, nullable=nullable)


def _long_starts(grid: Grid, first: int, last: int) -> list[int]:
    """Where the cells of a long range of times begin: the narrowest of equal, round width that are not too many."""
    times = [] if grid.type.kind is Kind.DATE else [time for time in _ROUND_TIMES if time % grid.step == 0]
    for width in (time // int(grid.step) for time in times):
        if last // width - first // width < LONG_RANGE:
            return [first, *range((first // width + 1) * width, last + 1, width)]
    return next(starts for n in _MONTHS if len(starts := _month_starts(grid, first, last, n)) <= LONG_RANGE)


def _month_starts(grid: Grid, first: int, last: int, months: int) -> list[int]:
    """The first tick, and those at which so many months begin, counted from year 0."""
    unit = "D" if grid.type.kind is Kind.DATE else "us"
    ends = [int(grid.anchor + tick * grid.step) for tick in (first, last)]
    low, high = (int(m) + _YEAR_0 for m in np.array(ends, f"datetime64[{unit}]").astype("datetime64[M]").astype(int))
    begun = np.arange((low // months + 1) * months, high + 1, months) - _YEAR_0
    days = begun.astype("datetime64[M]").astype(f"datetime64[{unit}]").astype(np.int64)
    ticks = {ceil((number - grid.anchor) / grid.step) for number in days.tolist()}
    return sorted({first, *(tick for tick in ticks if first < tick <= last)})


def bins_codec(where: str, kind: SqlType, domain: Bins, *, nullable: bool) -> IntervalCodec:
    """Cells between edges; a heavy hitter cuts the cell around it, so that all cells stay in order."""
    ends = (number_of(where, kind, domain.bins[0]), number_of(where, kind, domain.bins[-1]))
    declared = (*domain.bins, *domain.heavy_hitters)
    grid = _grid(where, kind, declared, step=domain.step, coarsest=float_exponent(*ends, bits=kind.bits))
    edges = [grid.tick(where, e) for e in domain.bins]
    if any(a >= b for a, b in pairwise(edges)):
        raise SpecError(f"{where}: edges {_shown(domain.bins)} must ascend; sort them and leave out repeats.")
    start, end = max(edges[0], grid.low), min(edges[-1], grid.high + 1)
    inner = edges[1:-1]
    if any(a >= b for a, b in pairwise([start, *inner, end])):
        raise SpecError(
            f"{where}: edges {_shown(domain.bins)} go beyond {kind.sql} on this grid; only the outer two may. "
            "Move the inner ones inside, or write a coarser step."
        )
    heavy_hitters = [grid.tick(where, s) for s in domain.heavy_hitters]
    for value, heavy_hitter in zip(domain.heavy_hitters, heavy_hitters, strict=True):
        if not start <= heavy_hitter < end:
            raise SpecError(
                f"{where}: the heavy hitter {value!r} lies outside the edges; widen the outer edge around it."
            )
    starts = sorted({start, *inner, *heavy_hitters, *(s + 1 for s in heavy_hitters if s + 1 < end)})
    _check_count(where, len(starts))
    codec = _codec(where, grid, np.array(starts, dtype=np.int64), last=end - 1, nullable=nullable)
    return codec if domain.distinct is None else _with_pool(codec, domain.distinct, skew=domain.skew)


def _with_pool(codec: IntervalCodec, distinct: int, *, skew: float) -> IntervalCodec:
    """Let a codec draw from a fixed pool, the same at every seed; as it is if there are not more values than that."""
    if codec.values_in.sum() <= distinct:
        return codec
    pool = number_pool(
        codec.first,
        codec.values_in,
        lambda cell, shares: codec.ticks_at(np.full(len(shares), cell), shares),
        units=_round_units(codec.grid),
        distinct=distinct,
        skew=skew,
        salt=salt_of(codec.where),
    )
    return replace(codec, pool=pool)


def _round_units(grid: Grid) -> Sequence[int]:
    """Return how many ticks make a round number or a round time, each number a multiple of those before it."""
    if not counts_microseconds(grid.type):
        return [n * 10**e for e in range(INT64_DIGITS) for n in (1, 5)]
    return [time // int(grid.step) for time in MICROSECONDS.values() if time % grid.step == 0]


def _grid(where: str, kind: SqlType, declared: Sequence[Scalar], *, step: Scalar | None, coarsest: int) -> Grid:
    """Return the grid of the declared step, else the type's own; for floats a power of ten that all values share."""
    numbers = [number_of(where, kind, v) for v in declared]
    size = Fraction(1)
    if step is not None:
        size = step_of(where, kind, step)
    elif kind.kind is Kind.FLOAT:
        size = _shared_power(numbers, coarsest, finest=FLOAT_EXPONENTS[kind.bits][0])
    if kind.kind is Kind.FLOAT:
        low, high = (Fraction(10) ** e for e in FLOAT_EXPONENTS[kind.bits])
        if not low <= size <= high:
            raise SpecError(f"{where}: step {step!r} is too fine or too coarse for {kind.sql}.")
    return Grid(type=kind, step=size, anchor=numbers[0] % size)


def _shared_power(numbers: Sequence[Fraction], exponent: int, *, finest: int) -> Fraction:
    while exponent > finest and any(n % Fraction(10) ** exponent for n in numbers):
        exponent -= 1
    return Fraction(10) ** exponent


def _codec(where: str, grid: Grid, starts: NDArray[np.int64], *, last: int, nullable: bool) -> IntervalCodec:
    return IntervalCodec(
        where=where,
        layout=Layout(cells=len(starts), nullable=nullable),
        grid=grid,
        first=starts,
        last=np.append(starts[1:] - 1, np.int64(last)),
    )


def _check_count(where: str, cells: int) -> None:
    if cells > MAX_CELLS:
        raise SpecError(
            f"{where}: {cells} cells, at most {MAX_CELLS} are allowed. Write fewer edges or a coarser step."
        )


def _shown(values: Sequence[Scalar]) -> str:
    head = ", ".join(str(v) for v in values[:_SHOWN])
    return f"[{head}, ...]" if len(values) > _SHOWN else f"[{head}]"
