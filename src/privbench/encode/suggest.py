"""Suggest a domain from the data, for the publisher to review and keep as public.

Narrow columns are listed value by value, wide ones cut into bins on the coarsest grid that all values lie on, with the
number of different values where that is far smaller than the grid would give. Short lists of strings are kept as they
are, of longer ones the frequent strings if they cover enough; other text is kept only by its lengths, its shape and how
it repeats. It reads private values: what it returns makes the guarantee conditional until the publisher declares it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.codec import compile_codec
from privbench.encode.counted import Counted, count_values, quantiles, summed
from privbench.encode.grid import INT64_DIGITS, Grid, bins_on, float_exponent, range_on, typed
from privbench.encode.guess import shape_of_values
from privbench.encode.interval import bins_codec
from privbench.encode.pool import fit_skew
from privbench.encode.scalar import MICROSECONDS, counts_microseconds, family_of
from privbench.encode.shapes import ROOMY, shaping
from privbench.encode.text import fixed_edges, made_up_domain
from privbench.schema.domain import MOST_OTHERS, Bins, Domain, Serial, Text, Values, implied_by_type
from privbench.schema.types import Kind, SqlType

NARROW = 256
"""A column with no more ticks than this from first to last gets a cell for each."""
MAX_LISTED = 256
"""A column with no more different values than this gets a cell for each, if they are frequent enough."""
ENTITIES_PER_LISTED = 8
"""A list has at most one value for this number of entities, so that few of its values belong to one entity alone."""
_COVERED = 0.5
"""The frequent strings of a longer list are kept if at least this share of the rows has one of them."""
_FAR_FEWER = 0.7
"""A column has few different values if there are fewer than this share of what drawing from its cells would give."""
_ROWS_PER_LISTED_NUMBER = 16
FEW_LENGTHS = 8
"""Strings of no more different lengths than this, from the shortest to the longest, get a cell for each length."""
_LENGTHS = (0, 1, *(n for i in range(31) for n in (2 * 2**i, 3 * 2**i)))
_NO_TEXT = (0, 8)
_TIME_STEPS = tuple(sorted([*MICROSECONDS.values(), 15 * MICROSECONDS["min"]], reverse=True))
_ROUND_TIMES = tuple(n * unit for unit in MICROSECONDS.values() for n in (1, 2, 5, 10, 30, 100, 1000))
_ROUND_NUMBERS = tuple(n * 10**e for e in range(18) for n in (1, 2, 5))
_MAX_DECIMALS = 9
_MAX_ZEROS = 2
_TAIL = 0.001
_FEW = 3
MOSTLY_ZERO = 0.9
"""Share of differences that are 0 from which on all others need but one cell on each side (decision 0034)."""
MAX_BINS = 64
MAX_HEAVY_HITTERS = 32
"""A heavy hitter cuts a cell in up to three, so that there are at most 64 + 2 * 32 = 128 cells."""
_HEAVY_SHARE = 1 / 64
_MIN_ROWS = 16


def suggest_domain(
    where: str,
    type: SqlType,  # noqa: A002
    values: pa.ChunkedArray | Counted,
    *,
    unique: bool,
    entities: int | None = None,
    guess: str | None = None,
) -> Domain:
    """Suggest a domain for the column `where`: a valid one for any data, empty or all NULL included.

    `entities` is how many there are in the whole database; without it every row counts as one. `guess` is the shape
    that the column's name and type suggest.

    >>> from privbench.schema.types import parse_type
    >>> suggest_domain("t.age", parse_type("INTEGER"), pa.chunked_array([[3, 1, None, 2]], pa.int32()), unique=False)
    Range(range=(1, 3), step=None)
    """
    counted = values if isinstance(values, Counted) else count_values(values)
    holders = counted.rows if entities is None else entities
    listable = min(MAX_LISTED, holders // ENTITIES_PER_LISTED)
    domain = implied_by_type(type)
    if domain is not None:
        return domain
    if type.kind is Kind.TEXT:
        least = ENTITIES_PER_LISTED * max(1.0, counted.rows / max(holders, 1))
        domain = _text(type, counted, unique=unique, listable=listable, least=least, guess=guess)
    elif unique:
        domain = Serial()
    else:
        domain = _ordered(where, type, counted, listable=listable)
    compile_codec(where, type, nullable=True, domain=domain)
    return domain


def suggest_differences(where: str, type: SqlType, values: pa.Array, *, entities: int) -> Domain:  # noqa: A002
    """Suggest a domain for differences of the type: 0 is a cell of its own, negative ones have cells if they occur.

    >>> from privbench.schema.types import difference_type, parse_type
    >>> days = pa.array([0] * 97 + [1, 30, 400])
    >>> suggest_differences("t.c", difference_type(parse_type("DATE")), days, entities=10).bins
    (0, 1, 401)
    """
    counted = count_values(pa.chunked_array([values]))
    domain = suggest_domain(where, type, counted, unique=False, entities=entities)
    zeros = pc.sum(pc.equal(values, pa.scalar(0).cast(values.type))).as_py() or 0
    if not isinstance(domain, Bins) or not zeros:
        return domain
    grid = coarsest_grid(type, counted.values, counted.counts)
    ends = pc.min_max(grid.ticks(counted.values)).as_py()
    if zeros >= MOSTLY_ZERO * len(values):
        return bins_on(grid, {ends["min"], 0, 1, ends["max"] + 1}, [0])
    return domain.model_copy(update={"heavy_hitters": tuple({*domain.heavy_hitters, grid.scalar(0)})})


def _ordered(where: str, kind: SqlType, counted: Counted, *, listable: int) -> Domain:
    if kind.kind is Kind.FLOAT:
        counted = counted.only(pc.is_finite(counted.values))
    if len(counted.values) == 0:
        counted = count_values(pa.chunked_array([_stand_in(kind)]))
    grid = coarsest_grid(kind, counted.values, counted.counts)
    drawn = grid.ticks(counted.values)
    ticks, counts = summed(np.clip(drawn, grid.low, grid.high), counted.counts)
    first, last = int(ticks[0]), int(ticks[-1])
    if last - first < NARROW:
        return range_on(grid, first, last)
    if len(ticks) <= listable and counts.sum() >= _ROWS_PER_LISTED_NUMBER * len(ticks):
        return Values(values=tuple(grid.scalar(int(t)) for t in ticks))
    cuts = cut(ticks, counts, units=round_units(grid))
    return _repeating(where, kind, bins_on(grid, cuts.edges, cuts.heavy_hitters), *summed(drawn, counted.counts))


def _repeating(where: str, kind: SqlType, bins: Bins, ticks: NDArray[np.int64], counts: NDArray[np.int64]) -> Bins:
    """Add how many different values there are and how they repeat, where the cells alone would give far more."""
    codec = bins_codec(where, kind, bins, nullable=False)
    cells = np.searchsorted(codec.first[1:], ticks, side="right")
    rows = np.bincount(cells, weights=counts, minlength=len(codec.first))
    expected = float((-codec.values_in * np.expm1(-rows / codec.values_in)).sum())
    if len(ticks) >= _FAR_FEWER * expected:
        return bins
    starts = np.searchsorted(cells, np.arange(1, len(codec.first)))
    skew = fit_skew([part for part in np.split(counts, starts) if len(part) > 1])
    return bins.model_copy(update={"distinct": _two_digits(len(ticks)), "skew": skew})


def _stand_in(kind: SqlType) -> pa.Array:
    """Return a single value for a column that has none."""
    return typed(kind, np.zeros(1, dtype=np.int64), nulls=np.zeros(1, dtype=bool))


def _text(kind: SqlType, counted: Counted, *, unique: bool, listable: int, least: float, guess: str | None) -> Domain:
    """Suggest a domain of strings; `least` rows have to have one for it to be kept beside OTHER."""
    distinct, counts = counted.values, counted.counts
    if len(distinct) == 0 and kind.syntax is not None:  # a rare value that is not NULL must be one of the type
        return made_up_domain(kind, shape=guess, unique=unique)
    if len(distinct) == 0:
        return Text(text=_NO_TEXT, distinct=None if unique else 1)
    if not unique and 2 * len(distinct) < counted.known:
        listed = _listed(kind, distinct, counts, listable=listable, least=least, guess=guess)
        if listed is not None:
            return listed
    shape = shape_of_values(guess, kind, distinct, unique=unique)
    lengths = pc.utf8_length(distinct)
    ends = pc.min_max(lengths).as_py()
    edges = fixed_edges(shape, kind) or _length_edges(ends["min"], ends["max"], limit=kind.length)
    if unique:
        return Text(text=edges, shape=shape)
    return Text(text=edges, shape=shape, distinct=_two_digits(len(distinct)), skew=_skew_by(lengths, counts))


def _listed(
    kind: SqlType, distinct: pa.Array, counts: NDArray[np.int64], *, listable: int, least: float, guess: str | None
) -> Values | None:
    """List all strings if they are few, else the frequent ones if they cover enough; None if it is no list."""
    strings = [text for text in distinct.to_pylist() if kind.length is None or len(text) <= kind.length]
    if len(distinct) <= listable:
        return Values(values=tuple(sorted(strings))) if strings else None
    frequent = np.argsort(-counts, kind="stable")[:listable]
    frequent = frequent[counts[frequent] >= least]
    kept = [text for text in distinct.take(pa.array(frequent)).to_pylist() if len(text) <= (kind.length or len(text))]
    if not kept or counts[frequent].sum() < _COVERED * counts.sum():
        return None
    rest = np.setdiff1d(np.arange(len(distinct)), frequent)
    shape = shape_of_values(guess, kind, distinct, unique=False)
    room = shaping("", shape, kind).room(ROOMY if kind.length is None else kind.length) - len(kept)
    others = min(_two_digits(len(rest)), room, MOST_OTHERS)
    if others < 1:
        return None
    skew = fit_skew([counts[rest]])
    return Values(values=tuple(sorted(kept)), other=True, others=others, shape=shape, skew=skew)


def _skew_by(lengths: pa.Array, counts: NDArray[np.int64]) -> float:
    """Fit the skew of strings that are drawn from a pool for each length."""
    by_length = lengths.to_numpy(zero_copy_only=False)
    return fit_skew([counts[by_length == length] for length in np.unique(by_length)])


def _length_edges(shortest: int, longest: int, *, limit: int | None) -> tuple[int, ...]:
    """Return edges around the lengths, none beyond the VARCHAR's own length (the last edge is included).

    >>> _length_edges(12, 15, limit=None), _length_edges(11, 72, limit=None)
    ((12, 13, 14, 15, 16), (8, 12, 16, 24, 32, 48, 64, 96))
    """
    most = _LENGTHS[-1] if limit is None else limit
    shortest, longest = min(shortest, most), min(longest, most)
    if longest - shortest < FEW_LENGTHS:
        return tuple(range(shortest, longest + 2))
    start = max(n for n in _LENGTHS if n <= shortest)
    end = min(n for n in _LENGTHS if n > longest)
    return tuple(sorted({min(n, most) for n in _LENGTHS if start <= n <= end}))


def _two_digits(count: int) -> int:
    return int(float(f"{count:.1e}"))


def coarsest_grid(kind: SqlType, values: pa.Array, counts: NDArray[np.int64]) -> Grid:
    """Return the coarsest grid of round steps that all values (at least one, no NULL, finite) lie on."""
    if kind.kind is Kind.FLOAT:
        numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
        base = Grid(type=kind, step=_float_step(kind, numbers, counts))
    else:
        base = Grid(type=kind, step=Fraction(10 ** _excess_digits(kind, values)))
    ticks = base.ticks(values)
    if counts_microseconds(kind):
        return Grid(type=kind, step=Fraction(next(s for s in _TIME_STEPS if not (ticks % s).any())))
    if not family_of(kind).numeric or len(np.unique(ticks)) < _FEW:
        return base
    return Grid(type=kind, step=base.step * _round_divisor(ticks, zeros=kind.scale + _MAX_ZEROS))


def round_units(grid: Grid) -> Sequence[int]:
    """Return how many ticks make a round number or a round time."""
    if not counts_microseconds(grid.type):
        return _ROUND_NUMBERS
    return [time // int(grid.step) for time in _ROUND_TIMES if time % grid.step == 0]


def _round_divisor(ticks: NDArray[np.int64], *, zeros: int) -> int:
    """Return the largest power of ten with at most `zeros` zeros, or five times it, that divides all ticks."""
    divisor = 1
    for _ in range(min(zeros, INT64_DIGITS - 1)):
        if (ticks % (10 * divisor)).any():
            break
        divisor *= 10
    return divisor if (ticks % (5 * divisor)).any() else 5 * divisor


def _excess_digits(kind: SqlType, values: pa.Array) -> int:
    """Return how many digits of the widest decimal do not fit int64; they are rounded away."""
    if kind.kind is not Kind.DECIMAL or kind.precision <= INT64_DIGITS:
        return 0
    digits = max(len(v.as_tuple().digits) for v in pc.min_max(values).as_py().values())
    return max(0, digits - INT64_DIGITS)


def _float_step(kind: SqlType, numbers: NDArray[np.float64], counts: NDArray[np.int64]) -> Fraction:
    """Return 1, 0.1, 0.01 .. where all numbers lie on it, else a power of ten fine enough for their bulk."""
    for decimals in range(_MAX_DECIMALS + 1):
        step = Fraction(1, 10**decimals)
        if Grid(type=kind, step=step).lies_on(numbers).all():
            return step
    low, high = quantiles(numbers, counts, (_TAIL, 1 - _TAIL))
    return Fraction(10) ** float_exponent(Fraction(low), Fraction(high), bits=kind.bits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Ascending edges, the last one beyond the largest tick, and heavy hitters between them."""

    edges: tuple[int, ...]
    heavy_hitters: tuple[int, ...]


def cut(ticks: NDArray[np.int64], counts: NDArray[np.int64], *, units: Sequence[int]) -> Cuts:
    """Cut distinct ascending ticks with their counts; edges are rounded to the largest of the units that suits."""
    heavy = _heavy_hitters(counts)
    edges = [int(ticks[0]), *_quantiles(ticks[~heavy], counts[~heavy]), int(ticks[-1]) + 1]
    rounded = _round(sorted(set(edges)), units)
    return Cuts(edges=tuple(rounded), heavy_hitters=tuple(ticks[heavy].tolist()))


def _heavy_hitters(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the ticks that hold a large share of the rows that more frequent ticks leave over."""
    most = np.argsort(-counts, kind="stable")[:MAX_HEAVY_HITTERS]
    held = counts[most]
    left = counts.sum() - np.cumsum(held) + held
    large = (held >= _MIN_ROWS) & (held >= _HEAVY_SHARE * left)
    heavy = np.zeros(len(counts), dtype=bool)
    heavy[most] = np.logical_and.accumulate(large)
    return heavy


def _quantiles(ticks: NDArray[np.int64], counts: NDArray[np.int64]) -> list[int]:
    """Return inner edges that leave about the same number of rows between them."""
    total = int(counts.sum())
    bins = min(MAX_BINS, max(1, total // _MIN_ROWS))
    ranks = np.arange(1, bins) * (total / bins)
    places = np.searchsorted(np.cumsum(counts), ranks, side="right")
    return [int(t) for t in ticks[places]]


def _round(edges: list[int], units: Sequence[int]) -> list[int]:
    """Round each edge by at most a quarter of the way to its neighbours, the outer two outwards."""
    gaps = [b - a for a, b in pairwise(edges)]
    first, last = edges[0], edges[-1]
    low = first - first % _unit(gaps[0], units)
    inner = [_nearest(e, _unit(min(sides), units)) for e, sides in zip(edges[1:-1], pairwise(gaps), strict=True)]
    return [first if low <= 0 < first else low, *inner, last + -last % _unit(gaps[-1], units)]


def _nearest(edge: int, unit: int) -> int:
    return (edge + unit // 2) // unit * unit


def _unit(gap: int, units: Sequence[int]) -> int:
    return max((u for u in units if 2 * u <= gap), default=1)
