"""Evaluation bins: a common coarse domain of a column, made from the real values alone.

All values if there are few of them; else 32 ranges of about equally many real rows; text with mostly distinct
values goes by its length. NULL is a bin of its own, and so are values that the real column does not have.
The values come as a dictionary: codes 0..n-1 in the order of the values, NULL as the last code n. A bin is known by
its bounds; whoever shows it writes the label.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.evaluation.result import Bin, BinKind, Histogram
from privbench.schema.domain import Scalar

FEW_VALUES = 50
"""Up to this many values each is a bin."""
MANY_STRINGS = 2000
"""Text with more distinct values goes by its length."""
RANGES = 32
PLOTTED = 40
"""A histogram has at most this many bins."""
MAX_TEXT = 30
"""Of a longer string the beginning is kept."""

Counts = NDArray[np.int64]
ReadValues = Callable[[Sequence[int]], list[Scalar]]
"""The values of some codes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dictionary:
    """The distinct values of a column: how often each side has them; `lengths` of text only."""

    real: Counts
    synthetic: Counts
    """Both with the count of NULLs as the last element."""
    ordered: bool
    lengths: Counts | None
    read: ReadValues

    @property
    def values(self) -> int:
        """How many distinct values there are, NULL aside."""
        return len(self.real) - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bins:
    """`of_code[c]` is the bin of code c; NULL is the last but one bin, values unknown to the real side the last."""

    of_code: NDArray[np.uint16]
    bins: tuple[Bin, ...]
    ordered: bool

    @property
    def size(self) -> int:
        """How many bins there are."""
        return len(self.bins)

    @property
    def one_to_one(self) -> bool:
        """Whether no two values share a bin."""
        return len(np.unique(self.of_code)) == len(self.of_code)


def make_bins(dictionary: Dictionary) -> Bins:
    """Choose the bins of a column."""
    real = dictionary.real[:-1]
    known = np.flatnonzero(real)
    if dictionary.lengths is not None and len(known) > min(MANY_STRINGS, real.sum() // 2):
        return _by_length(dictionary, dictionary.lengths)
    if dictionary.ordered and len(known) > FEW_VALUES:
        return _by_range(dictionary, real)
    of_code = np.full(dictionary.values, len(known) + 1, np.uint16)
    of_code[known] = np.arange(len(known))
    bins = [_of_value(value) for value in dictionary.read(known.tolist())]
    return _with_others(of_code, bins, ordered=dictionary.ordered)


def histogram(bins: Bins, dictionary: Dictionary) -> Histogram:
    """Counts of both sides in bins for a plot: neighbours are joined if ordered, else the rare ones."""
    real = np.bincount(bins.of_code, weights=dictionary.real, minlength=bins.size).astype(np.int64)
    synthetic = np.bincount(bins.of_code, weights=dictionary.synthetic, minlength=bins.size).astype(np.int64)
    known = bins.size - 2
    groups = [[at] for at in range(known)]
    if known > PLOTTED - 2:
        groups = _neighbours(known) if bins.ordered else _frequent(real[:known])
    groups += [[at] for at in (known, known + 1) if real[at] or synthetic[at]]
    return Histogram(
        bins=tuple(_joined([bins.bins[at] for at in group], ordered=bins.ordered) for group in groups),
        real=tuple(int(real[g].sum()) for g in groups),
        synthetic=tuple(int(synthetic[g].sum()) for g in groups),
    )


def range_bin(low: Scalar, high: Scalar | None, kind: BinKind = BinKind.RANGE) -> Bin:
    """The bin of the values from low to high, both included; without high there is no end."""
    if kind is BinKind.RANGE and low == high:
        return Bin(kind=BinKind.VALUE, low=low)
    return Bin(kind=kind, low=low, high=high)


def _by_range(dictionary: Dictionary, real: Counts) -> Bins:
    of_code = _equal_shares(real)
    firsts = np.flatnonzero(np.diff(of_code, prepend=-1))
    lasts = np.append(firsts[1:], dictionary.values) - 1
    ends = dictionary.read([*firsts.tolist(), *lasts.tolist()])
    pairs = zip(ends[: len(firsts)], ends[len(firsts) :], strict=True)
    return _with_others(of_code, [range_bin(low, high) for low, high in pairs], ordered=True)


def _by_length(dictionary: Dictionary, lengths: Counts) -> Bins:
    real = np.bincount(lengths, weights=dictionary.real[:-1]).astype(np.int64)
    of_length = _equal_shares(real)
    firsts = np.flatnonzero(np.diff(of_length, prepend=-1))
    lasts = np.append(firsts[1:], len(real)) - 1
    pairs = zip(firsts.tolist(), lasts.tolist(), strict=True)
    bins = [range_bin(shortest, longest, BinKind.LENGTH) for shortest, longest in pairs]
    return _with_others(of_length[lengths], bins, ordered=True)


def _equal_shares(real: Counts) -> NDArray[np.int64]:
    """The range of each position, such that each range has about the same sum and none has none."""
    total = np.cumsum(real)
    steps = np.arange(1, RANGES) * (total[-1] / RANGES)
    starts = np.unique(np.searchsorted(total, steps, side="right"))
    starts = starts[total[starts] > real[starts]]  # the first range starts at the first position
    return np.searchsorted(starts, np.arange(len(real)), side="right")


def _of_value(value: Scalar) -> Bin:
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return Bin(kind=BinKind.PREFIX, low=value[: MAX_TEXT - 1])
    return Bin(kind=BinKind.VALUE, low=value)


def _with_others(of_code: NDArray[np.integer], bins: list[Bin], *, ordered: bool) -> Bins:
    """The bins, then those of NULL and of unknown values."""
    with_null = np.append(of_code, len(bins)).astype(np.uint16)
    others = (Bin(kind=BinKind.NULL), Bin(kind=BinKind.UNKNOWN))
    return Bins(of_code=with_null, bins=(*bins, *others), ordered=ordered)


def _neighbours(known: int) -> list[list[int]]:
    return [part.tolist() for part in np.array_split(np.arange(known), PLOTTED - 2)]


def _frequent(real: Counts) -> list[list[int]]:
    order = np.argsort(-real, kind="stable")
    return [*([at] for at in sorted(order[: PLOTTED - 3].tolist())), order[PLOTTED - 3 :].tolist()]


def _joined(group: list[Bin], *, ordered: bool) -> Bin:
    first, last = group[0], group[-1]
    if len(group) == 1:
        return first
    if not ordered or first.low is None or last.low is None:
        return Bin(kind=BinKind.REST, values=len(group))
    kind = BinKind.LENGTH if first.kind is BinKind.LENGTH else BinKind.RANGE
    return range_bin(first.low, last.low if last.kind is BinKind.VALUE else last.high, kind)
