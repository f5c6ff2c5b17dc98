"""The share of a real column's rows that satisfy predicates, from the bins of its histogram.

How many rows are in each bin is real; where they lie inside a bin is taken from the model. Bins are read from their
labels. Where a label cannot be read (lengths of texts), the share is not known.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privbench.encode.codec import Codec
from privbench.encode.predicate import All, Between, In, IsNull, Predicate, Prefix
from privbench.errors import PrivBenchError
from privbench.evaluation.result import Histogram
from privbench.schema.domain import Scalar

_FAINT = 1e-12
"""Added to the model's shares: in a bin where it has no rows, they count as spread evenly."""


def real_share(
    histogram: Histogram, predicates: Sequence[Predicate], *, codec: Codec, shares: NDArray[np.float64]
) -> float | None:
    """The share of the real rows that satisfy all predicates; None if it cannot be told.

    `shares` is the model's probability of each code.
    """
    total = sum(histogram.real)
    known = [_bin(label, ordered=codec.ordered) for label in histogram.labels]
    try:
        inside = [
            count * _covered(at, known, predicates, codec, shares + _FAINT)
            for at, count in enumerate(histogram.real)
            if count
        ]
    except (PrivBenchError, _UnreadableError):
        return None
    return min(1.0, sum(inside) / total) if total else None


class _UnreadableError(Exception):
    """A bin whose label does not say which values are in it."""


def _covered(
    at: int,
    bins: Sequence[Predicate | None],
    predicates: Sequence[Predicate],
    codec: Codec,
    shares: NDArray[np.float64],
) -> float:
    """The share of one bin that satisfies the predicates, by the model."""
    within = bins[at]
    if within is None:
        # "7 other values": all that no other bin holds.
        listed = [codec.coverage(b) for b in bins if b is not None]
        if codec.ordered or len(listed) < len(bins) - 1:
            raise _UnreadableError
        rest = shares * np.clip(1 - sum(listed, np.zeros(codec.size)), 0, 1) * codec.coverage(IsNull(negated=True))
        return float(rest @ codec.coverage(All(parts=tuple(predicates))) / max(rest.sum(), _FAINT))
    both = shares @ codec.coverage(All(parts=(within, *predicates)))
    return float(both / max(float(shares @ codec.coverage(within)), _FAINT))


def _bin(label: str, *, ordered: bool) -> Predicate | None:
    if label == "NULL":
        return IsNull()
    if label.startswith("length ") or label.endswith(" other values"):
        return None
    if not ordered:
        return Prefix(text=label[:-1]) if label.endswith("…") else In(values=(label,))
    ends = [_scalar(part) for part in label.split(" to ")]
    return In(values=(ends[0],)) if len(ends) == 1 else Between(low=ends[0], high=ends[-1])


def _scalar(text: str) -> Scalar:
    """A value of a number, a date or a boolean column from its text."""
    if text in ("true", "false"):
        return text == "true"
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
