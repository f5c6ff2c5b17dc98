"""Numbers of rows made from a known law: activity, a number that depends on it, and noisy tables of both."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.methods.tree.coupling import Numbers, edges_of
from privbench.methods.tree.pairs import NoisyTable
from privbench.privacy.facts import LinkFacts
from privbench.privacy.features import Axis, Feature, activity, fanout, in_degree
from privbench.schema.unit import LinkKind
from privbench.spn.fanouts import bin_of, fanout_edges

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROWS = 60_000
OWNER = LinkFacts(
    name="post.author",
    table="post",
    columns=("author",),
    target="users",
    kind=LinkKind.OWNER,
    slots=None,
    nullable=False,
    unique=False,
)
REFERENCE = LinkFacts(
    name="post.editor",
    table="post",
    columns=("editor",),
    target="users",
    kind=LinkKind.REFERENCE,
    slots=None,
    nullable=True,
    unique=False,
)
ACTIVITY: Feature = activity((OWNER,), fanout_edges(2**14 - 1))
FANOUT: Feature = fanout(OWNER, fanout_edges(2**11 - 1))
IN_DEGREE: Feature = in_degree(REFERENCE, fanout_edges(2**9 - 1))


def edges(feature: Feature) -> Ints:
    """The edges of the bins of a feature."""
    return edges_of(feature)


def doubling(feature: Feature) -> Axis:
    """0, then bins that double."""
    low = edges(feature)[:-1]
    bins = np.where(low == 0, 0, 1 + np.floor(np.log2(np.maximum(low, 1))).astype(np.int64))
    return Axis(feature, np.unique(bins, return_inverse=True)[1])


def short(axis: Axis, feature: Feature, last: int) -> Axis:
    """The same bins, but all numbers from `last` on share one."""
    first = axis.bins[code_of(feature, last)]
    return Axis(feature, np.minimum(axis.bins, first))


def code_of(feature: Feature, number: int) -> int:
    """The code of a number."""
    return int(bin_of(np.array([number]), edges(feature))[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Made:
    """An activity and a number of each row."""

    activity: Ints
    number: Ints

    def codes(self, feature: Feature) -> tuple[Ints, Ints]:
        """The codes of both."""
        active, number = bin_of(self.activity, edges(ACTIVITY)), bin_of(self.number, edges(feature))
        return active.astype(np.int64), number.astype(np.int64)

    def cells(self, feature: Feature) -> Floats:
        """Rows by single codes."""
        found = np.zeros((ACTIVITY.size, feature.size))
        np.add.at(found, self.codes(feature), 1.0)
        return found


def in_degree_up_to(most: int) -> Feature:
    """How many keys reference a row, up to so many."""
    return in_degree(REFERENCE, fanout_edges(most))


def pareto(rng: np.random.Generator, rows: int = ROWS) -> Ints:
    """Activities of which the largest few are most of all."""
    return np.minimum(np.floor(rng.pareto(0.9, rows)), 2**13).astype(np.int64)


def coupled(seed: int = 1, *, slope: float = 1.0, level: float = -1.5, spread: float = 0.8) -> Made:
    """log2 of the number is normal around a line in log2 of the activity; it is a part of the activity."""
    rng = np.random.default_rng(seed)
    active = pareto(rng)
    log = level + slope * np.log2(np.maximum(active, 0.5)) + spread * rng.normal(size=len(active))
    return Made(activity=active, number=np.minimum(np.floor(2**log), active).astype(np.int64))


def apart(seed: int = 1) -> Made:
    """A number that has nothing to do with the activity."""
    rng = np.random.default_rng(seed)
    return Made(activity=pareto(rng), number=np.minimum(np.floor(rng.pareto(1.2, ROWS)), 2**10).astype(np.int64))


def numbers(feature: Feature, cells: Floats, rng: np.random.Generator, *, scale: float, within: bool = True) -> Numbers:
    """A column as a fit knows it: the counts of codes that stand out of the noise, and a power law beyond these."""
    noisy = cells + rng.laplace(0, max(scale, 1e-9), len(cells))
    hidden = np.flatnonzero(noisy < 6 * scale)
    clear = int(hidden[0]) if len(hidden) else len(cells)
    counts = np.maximum(noisy, 0.0)
    if clear < len(cells):
        tail = 0.5 ** np.arange(len(cells) - clear)
        counts[clear:] = max(noisy[clear:].sum(), 1.0) * tail / tail.sum()
    counts *= cells.sum() / max(counts.sum(), 1e-9)
    return Numbers(edges=edges(feature), counts=counts, clear=clear, noisy=noisy, scale=max(scale, 1e-6), within=within)


def noisy_table(cells: Floats, axes: tuple[Axis, Axis], rng: np.random.Generator, *, scale: float) -> NoisyTable:
    """The table of both in the bins of axes."""
    rows, columns = (np.eye(axis.size)[axis.bins] for axis in axes)
    grouped = rows.T @ cells @ columns
    return NoisyTable(cells=grouped + rng.laplace(0, scale, grouped.shape) if scale else grouped, variance=2 * scale**2)
