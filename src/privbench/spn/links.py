"""How the rows of a table are linked to the rows their keys name: noisy counts, and the draw of targets.

`SlotCounts` holds a count for each row that a key can name (per part of the referencing table), `DegreeCounts`
how many rows are named how often. Both are released values; drawing from them is post-processing. Rows are
drawn for a range of target rows at a time, so that any scale streams in constant memory.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.sample import whole_rows

COMPONENT = "#part"
"""The pseudo column of a network that says which part of the table a row comes from."""
NULL = -1
"""The target of a NULL key."""

Targets = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SlotCounts:
    """Rows by part and by the slot that their key names; column 0 counts NULL keys."""

    counts: NDArray[np.float64]  # (parts, slots + 1)

    def __post_init__(self) -> None:
        counts = np.array(self.counts, np.float64)
        if counts.ndim != 2 or counts.shape[0] < 1 or counts.shape[1] < 1:
            raise ModelError(f"slot counts need parts and slots, got shape {counts.shape}.")
        if not (np.isfinite(counts).all() and (counts >= 0).all()):
            raise ModelError("slot counts hold a negative count, infinity or NaN.")
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)

    @property
    def slots(self) -> int:
        """How many rows the key can name."""
        return int(self.counts.shape[1]) - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DegreeCounts:
    """Named rows by how many keys name them, 0 .. cap; and the share of NULL keys."""

    counts: NDArray[np.float64]  # (cap + 1,)
    null_share: float

    def __post_init__(self) -> None:
        counts = np.array(self.counts, np.float64)
        if counts.ndim != 1 or counts.size < 1:
            raise ModelError(f"degree counts need at least one count, got shape {counts.shape}.")
        if not (np.isfinite(counts).all() and (counts >= 0).all() and 0 <= self.null_share <= 1):
            raise ModelError("degree counts hold a negative count, infinity or NaN, or a share outside 0..1.")
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)


LinkCounts = SlotCounts | DegreeCounts


def null_share(link: LinkCounts) -> float:
    """The share of rows whose key is NULL.

    >>> null_share(SlotCounts(counts=np.array([[1.0, 2.0, 1.0]])))
    0.25
    """
    if isinstance(link, DegreeCounts):
        return link.null_share
    total = link.counts.sum()
    return float(link.counts[:, 0].sum() / total) if total else 0.0


def expected_share(link: LinkCounts, first: int, last: int, targets: int) -> float:
    """The share of the non-NULL keys that name the target rows first .. last-1 of `targets`."""
    if isinstance(link, DegreeCounts):
        return (last - first) / targets
    per_slot = np.append(0.0, np.cumsum(link.counts[:, 1:].sum(axis=0)))
    if per_slot[-1] == 0:
        return (last - first) / targets
    at = np.interp([first, last], np.linspace(0, targets, link.slots + 1), per_slot)
    return float((at[1] - at[0]) / per_slot[-1])


def draw_owners(
    link: LinkCounts,
    parts: NDArray[np.integer],
    first: int,
    last: int,
    targets: int,
    *,
    unique: bool,
    rng: np.random.Generator,
) -> Targets:
    """An owner among the target rows first .. last-1 for each row; `parts` says which part each row is of.

    Raises ModelError if there are too few target rows, or parts that the link does not know.
    """
    span = last - first
    _check_draw(link, parts, span, unique=unique)
    if unique:
        return first + _distinct(_weights(link, None, first, last, targets, rng), len(parts), rng)
    if isinstance(link, DegreeCounts):
        degrees = _degrees_adding_to(link, span, len(parts), rng)
        return first + rng.permutation(np.repeat(np.arange(span), degrees))
    owners = np.empty(len(parts), np.int64)
    for part in range(len(link.counts)):
        mine = np.flatnonzero(parts == part)
        weights = _weights(link, part, first, last, targets, rng)
        rows = whole_rows(weights / weights.sum(), len(mine), offset=rng.random())
        owners[mine] = first + np.repeat(np.arange(span), rows)
    return owners


def draw_references(
    link: LinkCounts,
    parts: NDArray[np.integer],
    first: int,
    last: int,
    targets: int,
    *,
    unique: bool,
    rng: np.random.Generator,
) -> Targets:
    """A target row, or NULL, for each row.

    Slot counts reach all targets; degree counts the rows first .. last-1, so that the degrees come out right
    without a view of all rows.
    """
    found = np.full(len(parts), NULL, np.int64)
    if targets == 0:
        return found
    _check_parts(link, parts)
    if isinstance(link, SlotCounts) and not unique:
        for part in range(len(link.counts)):
            mine = np.flatnonzero(parts == part)
            found[mine] = _draw_slots(link.counts[part], len(mine), targets, rng)
        return found
    named = np.flatnonzero(rng.permutation(len(parts)) >= round(null_share(link) * len(parts)))
    if unique and len(named) > last - first:
        named = rng.permutation(named)[: last - first]
    found[named] = draw_owners(link, parts[named], first, last, targets, unique=unique, rng=rng)
    return found


def _check_draw(link: LinkCounts, parts: NDArray[np.integer], span: int, *, unique: bool) -> None:
    _check_parts(link, parts)
    if len(parts) > (span if unique else len(parts) * span):
        raise ModelError(f"{len(parts)} rows need an owner, but there are only {span} rows that they can name.")


def _check_parts(link: LinkCounts, parts: NDArray[np.integer]) -> None:
    if isinstance(link, SlotCounts) and len(parts) and not 0 <= parts.min() <= parts.max() < len(link.counts):
        raise ModelError(f"a network has parts that its link does not know: it has {len(link.counts)}.")


def _draw_slots(counts: NDArray[np.float64], rows: int, targets: int, rng: np.random.Generator) -> Targets:
    """Slots in proportion to their counts, NULL first, spread over the target rows that stand for each."""
    weights = counts if counts.any() else np.append(0.0, np.ones(len(counts) - 1))
    cumulated = np.cumsum(weights)
    at = (np.arange(rows) + rng.random()) / max(rows, 1) * cumulated[-1]
    slots = rng.permutation(np.minimum(np.searchsorted(cumulated, at, side="right"), len(weights) - 1)) - 1
    spread = ((slots + rng.random(rows)) * (targets / (len(counts) - 1 or 1))).astype(np.int64)
    return np.where(slots < 0, NULL, np.minimum(spread, targets - 1))


def _weights(
    link: LinkCounts, part: int | None, first: int, last: int, targets: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """How likely each target row of the range is, never all zero."""
    span = last - first
    if isinstance(link, DegreeCounts):
        weights = _degrees(link, span, rng).astype(np.float64)
    else:
        per_slot = link.counts[:, 1:].sum(axis=0) if part is None else link.counts[part, 1:]
        weights = per_slot[(np.arange(first, last) * link.slots) // targets] if link.slots else np.zeros(span)
    return weights if weights.any() else np.ones(span)


def _degrees(link: DegreeCounts, span: int, rng: np.random.Generator) -> NDArray[np.int64]:
    counts = link.counts if link.counts.any() else np.ones_like(link.counts)
    rows = whole_rows(counts / counts.sum(), span, offset=rng.random())
    return rng.permutation(np.repeat(np.arange(len(rows)), rows))


def _degrees_adding_to(link: DegreeCounts, span: int, rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Degrees of `span` rows that add up to `rows`: drawn, then mended evenly, rows that nothing names left alone."""
    degrees = _degrees(link, span, rng)
    while (excess := int(degrees.sum()) - rows) > 0:
        degrees[rng.permutation(np.flatnonzero(degrees))[:excess]] -= 1
    if excess < 0:
        able = rng.permutation(np.flatnonzero(degrees) if degrees.any() else np.arange(span))
        degrees[able] += -excess // len(able)
        degrees[able[: -excess % len(able)]] += 1
    return degrees


def _distinct(weights: NDArray[np.float64], rows: int, rng: np.random.Generator) -> Targets:
    """Distinct places in proportion to their weights, as far as there are enough with weight."""
    keys = np.log(rng.random(len(weights))) / np.maximum(weights, 1e-12)
    return np.sort(np.argpartition(-keys, rows - 1)[:rows]) if 0 < rows < len(weights) else np.arange(rows)
