"""How the rows of a table are linked to the rows their keys name: noisy counts, and the draw of targets.

`SlotCounts` holds a count for each row that a key can name (per part of the referencing table), `DegreeCounts`
how many rows are named how often. Both are released values; drawing from them is post-processing. Rows are
drawn for a range of target rows at a time, so that any scale streams in constant memory.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.rounding import whole_rows

COMPONENT = "#part"
"""The pseudo column of a network that says which part of the table a row comes from."""
NULL = -1
"""The target of a NULL key."""

Targets = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SlotCounts:
    """Rows by part and by the slot that their key names; column 0 counts NULL keys."""

    counts: NDArray[np.float64]  # (parts, slots + 1)
    cumulated: NDArray[np.float64] = field(init=False, repr=False)  # (slots + 1,) keys that name the slots before each

    def __post_init__(self) -> None:
        counts = np.array(self.counts, np.float64)
        if counts.ndim != 2 or counts.shape[0] < 1 or counts.shape[1] < 1:
            raise ModelError(f"slot counts need parts and slots, got shape {counts.shape}.")
        if not (np.isfinite(counts).all() and (counts >= 0).all()):
            raise ModelError("slot counts hold a negative count, infinity or NaN.")
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "cumulated", np.append(0.0, np.cumsum(counts[:, 1:].sum(axis=0))))

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
    if isinstance(link, DegreeCounts) or link.cumulated[-1] == 0:
        return (last - first) / targets
    return float((_keys_before(link, last / targets) - _keys_before(link, first / targets)) / link.cumulated[-1])


def _keys_before(link: SlotCounts, share: float) -> float:
    """How many keys name the slots of the first so-many-th part of all, a slot in the middle in proportion."""
    at = share * link.slots
    whole = min(int(at), link.slots - 1)
    before, after = link.cumulated[whole], link.cumulated[whole + 1]
    return float(before + (at - whole) * (after - before))


def draw_owners(
    link: LinkCounts,
    parts: NDArray[np.integer],
    first: int,
    last: int,
    targets: int,
    *,
    most: int,
    rng: np.random.Generator,
) -> Targets:
    """An owner among the target rows first .. last-1 for each row, at most `most` rows for each owner.

    `parts` says which part each row is of. Raises ModelError if there are too few target rows, or unknown parts.
    """
    span = last - first
    _check_parts(link, parts)
    if len(parts) == 0:
        return np.empty(0, np.int64)
    if len(parts) > span * most:
        raise ModelError(f"{len(parts)} rows need an owner, but {span} rows can own at most {most} each.")
    if isinstance(link, DegreeCounts):
        degrees = _degrees_adding_to(link, span, len(parts), rng)
        owners = rng.permutation(np.repeat(np.arange(span), degrees))
    else:
        owners = np.empty(len(parts), np.int64)
        for part in range(len(link.counts)):
            mine = np.flatnonzero(parts == part)
            weights = _weights(link, part, first, last, targets)
            rows = whole_rows(weights / weights.sum(), len(mine), offset=rng.random())
            owners[mine] = np.repeat(np.arange(span), rows)
    return first + _with_room(owners, span, most, rng)


def draw_references(
    link: LinkCounts,
    parts: NDArray[np.integer],
    first: int,
    last: int,
    targets: int,
    *,
    most: int | None,
    rng: np.random.Generator,
) -> Targets:
    """A target row, or NULL, for each row, at most `most` rows for each target (None: any number).

    Slot counts reach all targets; degree counts, and limited ones, the rows first .. last-1, so that no view of all
    rows is needed.
    """
    found = np.full(len(parts), NULL, np.int64)
    if targets == 0:
        return found
    _check_parts(link, parts)
    if isinstance(link, SlotCounts) and most is None:
        for part in range(len(link.counts)):
            mine = np.flatnonzero(parts == part)
            found[mine] = _draw_slots(link.counts[part], len(mine), targets, rng)
        return found
    most = len(parts) if most is None else most
    named = np.flatnonzero(rng.permutation(len(parts)) >= round(null_share(link) * len(parts)))
    named = rng.permutation(named)[: (last - first) * most]
    found[named] = draw_owners(link, parts[named], first, last, targets, most=most, rng=rng)
    return found


def _with_room(owners: Targets, span: int, most: int, rng: np.random.Generator) -> Targets:
    """Owners with at most `most` rows each: rows above that go to owners with room, to those with rows first."""
    counts = np.bincount(owners, minlength=span)
    if counts.max(initial=0) <= most:
        return owners
    order = np.argsort(owners, kind="stable")
    starts = np.cumsum(counts) - counts
    over = order[np.arange(len(owners)) - starts[owners[order]] >= most]
    room = np.maximum(most - counts, 0)
    some = rng.permutation(np.repeat(np.arange(span), np.where(counts > 0, room, 0)))
    none = rng.permutation(np.repeat(np.arange(span), np.where(counts > 0, 0, room)))
    moved = owners.copy()
    moved[over] = np.concatenate([some, none])[: len(over)]
    return moved


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


def _weights(link: SlotCounts, part: int, first: int, last: int, targets: int) -> NDArray[np.float64]:
    """How likely each target row of the range is, never all zero."""
    per_slot = link.counts[part, 1:]
    weights = per_slot[(np.arange(first, last) * link.slots) // targets] if link.slots else np.zeros(last - first)
    return weights if weights.any() else np.ones(last - first)


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
