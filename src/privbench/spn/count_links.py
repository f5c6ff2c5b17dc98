"""Links with counts of their own: rows per target ("slot"), or targets by how many rows reference them ("degree").

Rows are made first, and their targets are drawn for a range of target rows at a time, so that any scale streams in
constant memory. The paper's method and method `independent` release these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.schema.unit import Link, LinkKind
from privbench.spn.feature_names import COMPONENT
from privbench.spn.infer import marginal
from privbench.spn.link import (
    NULL,
    Arrays,
    KeyShares,
    LinkColumn,
    LinkModel,
    Rng,
    RowBlock,
    Shares,
    Spread,
    TargetRows,
    Targets,
)
from privbench.spn.nodes import Node
from privbench.spn.sample import whole_rows

Parts = NDArray[np.integer]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SlotLink(LinkModel):
    """Rows by part and by the slot that their key references; column 0 counts NULL keys."""

    kind: ClassVar[str] = "slots"

    counts: Shares  # (parts, slots + 1)
    cumulated: Shares = field(init=False, repr=False)  # (slots + 1,) keys that reference the slots before each

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
        """How many rows the key can reference."""
        return int(self.counts.shape[1]) - 1

    @property
    def shares(self) -> KeyShares:
        return self

    @property
    def null_share(self) -> float:
        """The share of rows whose key is NULL.

        >>> SlotLink(counts=np.array([[1.0, 2.0, 1.0]])).null_share
        0.25
        """
        total = self.counts.sum()
        return float(self.counts[:, 0].sum() / total) if total else 0.0

    def columns(self, key: Link) -> tuple[LinkColumn, ...]:  # noqa: ARG002
        """The parts of the table."""
        return (LinkColumn(name=COMPONENT, codes=len(self.counts)),)

    def share(self, first: int, last: int, targets: int) -> float:
        if self.cumulated[-1] == 0:
            return (last - first) / targets
        keys = self._keys_before(last / targets) - self._keys_before(first / targets)
        return float(keys / self.cumulated[-1])

    def draw(self, block: RowBlock, targets: TargetRows, *, rng: Rng) -> Targets:
        """Owners of the block's range; references to all targets, or where these are limited to the block's range."""
        if targets.key.kind is LinkKind.OWNER:
            return _drawn_owners(self, block, targets, rng)
        if targets.most is not None:
            return _drawn_references(self, block, targets, rng)
        return self.anywhere(block.parts, targets.rows, rng=rng)

    def anywhere(self, parts: Parts, targets: int, *, rng: Rng) -> Targets:
        """A target row, or NULL, for each row, in proportion to the counts of its part."""
        drawn = np.full(len(parts), NULL, np.int64)
        if targets:
            self.check_parts(parts)
            for part, counts in enumerate(self.counts):
                places = np.flatnonzero(parts == part)
                drawn[places] = _draw_slots(counts, len(places), targets, rng)
        return drawn

    def over_range(self, parts: Parts, first: int, last: int, targets: int, *, rng: Rng) -> Targets:
        """Which of the target rows first .. last-1 each row has, counted from the first."""
        drawn = np.empty(len(parts), np.int64)
        for part in range(len(self.counts)):
            places = np.flatnonzero(parts == part)
            weights = self._weights(part, first, last, targets)
            rows = whole_rows(weights / weights.sum(), len(places), offset=rng.random())
            drawn[places] = np.repeat(np.arange(last - first), rows)
        return drawn

    def check_parts(self, parts: Parts) -> None:
        """Refuse parts that it has no counts of."""
        if len(parts) and not 0 <= parts.min() <= parts.max() < len(self.counts):
            raise ModelError(f"a network has parts that its link does not know: it has {len(self.counts)}.")

    def expected(self, key: Link, network: Node, *, rows: int, most: int) -> Spread:
        """Where the keys of `rows` rows point on average, part by part."""
        if not key.unique and key.kind is not LinkKind.OWNER:
            # References are drawn with their NULLs; a part without counts references all rows alike.
            filled = self.counts.copy()
            filled[~filled.any(axis=1), 1:] = 1
            shares = _normal(filled)
            return Spread(null=shares[:, 0], rows=shares[:, 1:])
        null = self.null_share if key.nullable else 0.0
        parts = marginal(network, COMPONENT) if COMPONENT in network.sizes else np.ones(1)
        capped = _capped(_normal(self.counts[:, 1:]), rows * (1 - null) * parts, most)
        return Spread(null=np.full(len(parts), null), rows=(1 - null) * capped)

    def to_json(self, where: str, arrays: Arrays) -> dict[str, Any]:
        arrays[where] = self.counts
        return {"array": where}

    @classmethod
    def from_json(cls, header: Mapping[str, Any], array: Callable[[str], NDArray[Any]]) -> Self:
        return cls(counts=array(header["array"]))

    def _keys_before(self, share: float) -> float:
        """How many keys reference the slots of the first `share` of all slots, a slot in the middle in proportion."""
        at = share * self.slots
        whole = min(int(at), self.slots - 1)
        before, after = self.cumulated[whole], self.cumulated[whole + 1]
        return float(before + (at - whole) * (after - before))

    def _weights(self, part: int, first: int, last: int, targets: int) -> Shares:
        """How likely each target row of the range is, never all zero."""
        per_slot = self.counts[part, 1:]
        weights = per_slot[(np.arange(first, last) * self.slots) // targets] if self.slots else np.zeros(last - first)
        return weights if weights.any() else np.ones(last - first)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DegreeLink(LinkModel):
    """Target rows by how many keys reference them, 0 .. cap; and the share of NULL keys."""

    kind: ClassVar[str] = "degrees"

    counts: Shares  # (cap + 1,)
    null_share: float

    def __post_init__(self) -> None:
        counts = np.array(self.counts, np.float64)
        if counts.ndim != 1 or counts.size < 1:
            raise ModelError(f"degree counts need at least one count, got shape {counts.shape}.")
        if not (np.isfinite(counts).all() and (counts >= 0).all() and 0 <= self.null_share <= 1):
            raise ModelError("degree counts hold a negative count, infinity or NaN, or a share outside 0..1.")
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)

    @property
    def shares(self) -> KeyShares:
        return self

    def columns(self, key: Link) -> tuple[LinkColumn, ...]:  # noqa: ARG002
        """None: it is the same for all rows."""
        return ()

    def share(self, first: int, last: int, targets: int) -> float:
        return (last - first) / targets

    def draw(self, block: RowBlock, targets: TargetRows, *, rng: Rng) -> Targets:
        """Owners of the block's range, or references to the rows that stand where the block stands."""
        if targets.key.kind is LinkKind.OWNER:
            return _drawn_owners(self, block, targets, rng)
        return _drawn_references(self, block, targets, rng)

    def over_range(self, parts: Parts, first: int, last: int, targets: int, *, rng: Rng) -> Targets:  # noqa: ARG002
        """Which of the target rows first .. last-1 each row has, counted from the first."""
        degrees = self._degrees_adding_to(last - first, len(parts), rng)
        return rng.permutation(np.repeat(np.arange(last - first), degrees))

    def check_parts(self, parts: Parts) -> None:
        """Any part will do."""

    def expected(self, key: Link, network: Node, *, rows: int, most: int) -> Spread:  # noqa: ARG002
        """All rows alike."""
        null = self.null_share if key.nullable else 0.0
        return Spread(null=np.full(network.sizes.get(COMPONENT, 1), null), rows=None)

    def to_json(self, where: str, arrays: Arrays) -> dict[str, Any]:
        arrays[where] = self.counts
        return {"array": where, "null_share": self.null_share}

    @classmethod
    def from_json(cls, header: Mapping[str, Any], array: Callable[[str], NDArray[Any]]) -> Self:
        return cls(counts=array(header["array"]), null_share=header["null_share"])

    def _degrees(self, span: int, rng: Rng) -> Targets:
        counts = self.counts if self.counts.any() else np.ones_like(self.counts)
        rows = whole_rows(counts / counts.sum(), span, offset=rng.random())
        return rng.permutation(np.repeat(np.arange(len(rows)), rows))

    def _degrees_adding_to(self, span: int, rows: int, rng: Rng) -> Targets:
        """Degrees of `span` rows that add up to `rows`: drawn, then evened out; unreferenced rows are left alone."""
        degrees = self._degrees(span, rng)
        while (excess := int(degrees.sum()) - rows) > 0:
            degrees[rng.permutation(np.flatnonzero(degrees))[:excess]] -= 1
        if excess < 0:
            able = rng.permutation(np.flatnonzero(degrees) if degrees.any() else np.arange(span))
            degrees[able] += -excess // len(able)
            degrees[able[: -excess % len(able)]] += 1
        return degrees


class CountLink(Protocol):
    """What both kinds of counts can do: share rows out over a range of target rows."""

    @property
    def null_share(self) -> float:
        """The share of NULL keys."""

    def check_parts(self, parts: Parts) -> None:
        """Refuse parts that it has no counts of."""

    def over_range(self, parts: Parts, first: int, last: int, targets: int, *, rng: Rng) -> Targets:
        """Which of the target rows first .. last-1 each row has, counted from the first."""


def draw_owners(link: CountLink, parts: Parts, first: int, last: int, targets: int, *, most: int, rng: Rng) -> Targets:
    """An owner among the target rows first .. last-1 for each row, at most `most` rows for each owner.

    `parts` says which part each row is of. Raises ModelError if there are too few target rows, or unknown parts.
    """
    span = last - first
    link.check_parts(parts)
    if len(parts) == 0:
        return np.empty(0, np.int64)
    if len(parts) > span * most:
        raise ModelError(f"{len(parts)} rows need an owner, but {span} rows can own at most {most} each.")
    return first + _with_room(link.over_range(parts, first, last, targets, rng=rng), span, most, rng)


def draw_references(
    link: CountLink, parts: Parts, first: int, last: int, targets: int, *, most: int | None, rng: Rng
) -> Targets:
    """One of the target rows first .. last-1, or NULL, for each row, at most `most` rows for each target.

    So no view of all rows is needed. None for `most`: any number.
    """
    drawn = np.full(len(parts), NULL, np.int64)
    if targets == 0:
        return drawn
    link.check_parts(parts)
    most = len(parts) if most is None else most
    holders = np.flatnonzero(rng.permutation(len(parts)) >= round(link.null_share * len(parts)))
    holders = rng.permutation(holders)[: (last - first) * most]
    drawn[holders] = draw_owners(link, parts[holders], first, last, targets, most=most, rng=rng)
    return drawn


def _drawn_owners(link: CountLink, block: RowBlock, targets: TargetRows, rng: Rng) -> Targets:
    if block.owners is None:
        return np.full(block.rows, NULL, np.int64)
    most = block.rows if targets.most is None else targets.most
    return draw_owners(link, block.parts, *block.owners, targets.rows, most=most, rng=rng)


def _drawn_references(link: CountLink, block: RowBlock, targets: TargetRows, rng: Rng) -> Targets:
    first, last = targets.standing_at(block)
    if targets.most is None:
        first, last = min(first, max(targets.rows - 1, 0)), max(last, min(first + 1, targets.rows))
    return draw_references(link, block.parts, first, last, targets.rows, most=targets.most, rng=rng)


def _with_room(owners: Targets, span: int, most: int, rng: Rng) -> Targets:
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


def _draw_slots(counts: Shares, rows: int, targets: int, rng: Rng) -> Targets:
    """Slots in proportion to their counts, NULL first, spread over the target rows that stand for each."""
    weights = counts if counts.any() else np.append(0.0, np.ones(len(counts) - 1))
    cumulated = np.cumsum(weights)
    at = (np.arange(rows) + rng.random()) / max(rows, 1) * cumulated[-1]
    slots = rng.permutation(np.minimum(np.searchsorted(cumulated, at, side="right"), len(weights) - 1)) - 1
    spread = ((slots + rng.random(rows)) * (targets / (len(counts) - 1 or 1))).astype(np.int64)
    return np.where(slots < 0, NULL, np.minimum(spread, targets - 1))


def _normal(counts: Shares) -> Shares:
    filled = np.where(counts.any(axis=1, keepdims=True), counts, 1.0)
    totals = filled.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(filled, totals, out=np.zeros_like(filled), where=totals > 0))


def _capped(shares: Shares, parts: Shares, most: int) -> Shares:
    """The shares after rows beyond the most that one row can have went to rows with room, those with rows first."""
    counts = parts @ shares
    if counts.max(initial=0.0) <= most:
        return shares
    kept = shares * np.minimum(1.0, most / np.maximum(counts, most))
    moved = 1 - kept.sum(axis=1, keepdims=True)  # (parts, 1)
    room = np.maximum(most - counts, 0.0)
    first = np.where(counts > 0, room, 0.0)
    excess = float(np.maximum(counts - most, 0.0).sum())
    second = np.where(counts > 0, 0.0, room)
    taken = first if first.sum() >= excess else first + second * (excess - first.sum()) / max(second.sum(), 1e-12)
    return np.asarray(kept + moved * taken / max(float(taken.sum()), 1e-12))
