"""Where the keys of a private table point, as the generator draws them: a share per row that a key can name."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.generation.spans import Sizes, most_rows_per_owner
from privbench.model.model import Model
from privbench.schema.unit import Link, LinkKind
from privbench.spn.infer import marginal
from privbench.spn.links import COMPONENT, DegreeCounts, SlotCounts, null_share
from privbench.spn.tree_links import counted

Shares = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """Per part of the holding table: the share of NULL keys, and of keys to each row (None: all rows alike)."""

    null: Shares  # (parts,)
    rows: Shares | None  # (parts, rows named), each with its null adding up to 1

    def weight(self, value: Shares | float) -> Shares:
        """What a key meets on average, per part, given the value of each row that it can name; NULL meets nothing."""
        if self.rows is None:
            return np.asarray((1 - self.null) * np.mean(value))
        return self.rows @ np.broadcast_to(np.asarray(value, np.float64), (self.rows.shape[1],))


def spread(model: Model, link: Link, *, sizes: Sizes) -> Spread:
    """Work out where the keys of a table point, given the rows of all tables."""
    counts = counted(model.tables[link.table].links[link.name])
    network = model.tables[link.table].network
    owner = link.kind is LinkKind.OWNER
    if isinstance(counts, SlotCounts) and not link.unique and not owner:
        return _with_nulls(counts)
    share = null_share(counts) if link.nullable else 0.0
    null = np.full(network.sizes.get(COMPONENT, 1), share)
    if isinstance(counts, DegreeCounts):
        return Spread(null=null, rows=None)
    most = most_rows_per_owner(model, link.table, sizes) if owner else 1
    parts = (
        sizes[link.table] * (1 - share) * (marginal(network, COMPONENT) if COMPONENT in network.sizes else np.ones(1))
    )
    return Spread(null=null, rows=(1 - share) * _capped(_normal(counts.counts[:, 1:]), parts, most))


def _with_nulls(counts: SlotCounts) -> Spread:
    """References are drawn with their NULLs, part by part; a part without counts names all rows alike."""
    filled = counts.counts.copy()
    filled[~filled.any(axis=1), 1:] = 1
    shares = _normal(filled)
    return Spread(null=shares[:, 0], rows=shares[:, 1:])


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
