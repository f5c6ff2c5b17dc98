"""Evaluation bins: a common coarse domain of a column, made from the real values alone.

All values if there are few of them; else 32 ranges of about equally many real rows; text with mostly distinct
values goes by its length. NULL is a bin of its own, and so are values that the real column does not have.
The values come as a dictionary: codes 0..n-1 in the order of the values, NULL as the last code n.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.evaluation.result import Histogram

FEW_VALUES = 50
MANY_TEXTS = 2000
RANGES = 32
PLOTTED = 40
_LABEL = 30  # letters of a value that are shown

Counts = NDArray[np.int64]
Texts = Callable[[Sequence[int]], list[str]]
"""The values of some codes as text."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dictionary:
    """The distinct values of a column: how often each side has them; `lengths` of texts only."""

    real: Counts
    synthetic: Counts
    """Both with the count of NULLs as the last element."""
    ordered: bool
    lengths: Counts | None
    texts: Texts

    @property
    def values(self) -> int:
        """How many distinct values there are, NULL aside."""
        return len(self.real) - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bins:
    """`of_code[c]` is the bin of code c; NULL is the last but one bin, values unknown to the real side the last."""

    of_code: NDArray[np.uint16]
    labels: tuple[str, ...]
    ordered: bool

    @property
    def size(self) -> int:
        """How many bins there are."""
        return len(self.labels)

    @property
    def one_to_one(self) -> bool:
        """Whether no two values share a bin."""
        return len(np.unique(self.of_code)) == len(self.of_code)


def make_bins(dictionary: Dictionary) -> Bins:
    """Choose the bins of a column."""
    real = dictionary.real[:-1]
    known = np.flatnonzero(real)
    if dictionary.lengths is not None and len(known) > min(MANY_TEXTS, real.sum() // 2):
        return _by_length(dictionary, dictionary.lengths)
    if dictionary.ordered and len(known) > FEW_VALUES:
        return _by_range(dictionary, real)
    of_code = np.full(dictionary.values, len(known) + 1, np.uint16)
    of_code[known] = np.arange(len(known))
    return _bins(of_code, _texts(dictionary, known.tolist()), ordered=dictionary.ordered)


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
        labels=tuple(_label(bins, group) for group in groups),
        real=tuple(int(real[g].sum()) for g in groups),
        synthetic=tuple(int(synthetic[g].sum()) for g in groups),
    )


def _by_range(dictionary: Dictionary, real: Counts) -> Bins:
    of_code = _equal_shares(real)
    firsts = np.flatnonzero(np.diff(of_code, prepend=-1))
    lasts = np.append(firsts[1:], dictionary.values) - 1
    texts = _texts(dictionary, [*firsts.tolist(), *lasts.tolist()])
    labels = [_range(a, b) for a, b in zip(texts[: len(firsts)], texts[len(firsts) :], strict=True)]
    return _bins(of_code, labels, ordered=True)


def _by_length(dictionary: Dictionary, lengths: Counts) -> Bins:
    real = np.bincount(lengths, weights=dictionary.real[:-1]).astype(np.int64)
    of_length = _equal_shares(real)
    firsts = np.flatnonzero(np.diff(of_length, prepend=-1))
    lasts = np.append(firsts[1:], len(real)) - 1
    labels = [f"length {_range(str(a), str(b))}" for a, b in zip(firsts, lasts, strict=True)]
    return _bins(of_length[lengths], labels, ordered=True)


def _equal_shares(real: Counts) -> NDArray[np.int64]:
    """The range of each position, such that each range has about the same sum and none has none."""
    total = np.cumsum(real)
    steps = np.arange(1, RANGES) * (total[-1] / RANGES)
    starts = np.unique(np.searchsorted(total, steps, side="right"))
    starts = starts[total[starts] > real[starts]]  # the first range starts at the first position
    return np.searchsorted(starts, np.arange(len(real)), side="right")


def _bins(of_code: NDArray[np.integer], labels: list[str], *, ordered: bool) -> Bins:
    with_null = np.append(of_code, len(labels)).astype(np.uint16)
    return Bins(of_code=with_null, labels=(*labels, "NULL", "not in the real data"), ordered=ordered)


def _neighbours(known: int) -> list[list[int]]:
    return [part.tolist() for part in np.array_split(np.arange(known), PLOTTED - 2)]


def _frequent(real: Counts) -> list[list[int]]:
    order = np.argsort(-real, kind="stable")
    return [*([at] for at in sorted(order[: PLOTTED - 3].tolist())), order[PLOTTED - 3 :].tolist()]


def _label(bins: Bins, group: list[int]) -> str:
    if len(group) == 1:
        return bins.labels[group[0]]
    if not bins.ordered:
        return f"{len(group)} other values"
    return _range(bins.labels[group[0]].split(" to ")[0], bins.labels[group[-1]].split(" to ")[-1])


def _texts(dictionary: Dictionary, codes: Sequence[int]) -> list[str]:
    return [text if len(text) <= _LABEL else f"{text[: _LABEL - 1]}…" for text in dictionary.texts(codes)]


def _range(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"
