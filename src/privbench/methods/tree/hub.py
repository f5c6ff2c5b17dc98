"""The hub of a table: how many rows a row owns at all levels, on which its fanouts and in-degrees depend.

A table whose rows are owners, or referenced, through several keys gets one more column, its activity. If it pays, every
fanout and in-degree depends on it and on nothing else, by tables of their own (`coupling.py`); other columns may
depend on it as on any column. It pays where a key references the table, whose targets are then those that are active,
and where the rows of few owners decide how many rows joins have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privbench.methods.tree.coupling import Numbers, couple, met
from privbench.methods.tree.pairs import NoisyTable
from privbench.methods.tree.plan import divided
from privbench.methods.tree.single import Single, Singles
from privbench.methods.tree.structure import Candidates
from privbench.methods.tree.weighed import WeighedTable
from privbench.methods.tree.zeros import coarser
from privbench.privacy.features import Activity, Axis, Fanout, Feature, InDegree, whole_axis
from privbench.spn.fanouts import bin_means

Floats = NDArray[np.float64]

HUB_SHARE = Fraction(3, 10)
"""Share of a table's budget, after its fanouts, for tables of the hub with each fanout and in-degree."""
LEAST_BIN = 3.0
"""The last bin of a column in such a table has at least this many standard deviations of its noise."""
UNEVEN = 8.0
"""A hub pays if the mean square of a fanout, over all rows that have any, is this many times the square of its mean."""
CLEAR_FANOUT = 20.0
"""A fanout counts as uneven only if so many noise scales of entities have any row."""
LEAST_CODE = 0.7
"""The last code of a hidden tail has at least this many entities."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HubTable:
    """A noisy table of the hub and another column, in doubling bins."""

    axes: tuple[Axis, Axis]
    table: NoisyTable


HubTables = Mapping[int, HubTable]
"""By place of the fanout or in-degree."""
Linked = Mapping[tuple[int, int], Floats]
"""The masses of the hub and a fanout or in-degree by single codes, by their places."""


def hub_place(own: Sequence[Feature]) -> int | None:
    """Where the hub is among the columns, if there is one."""
    return next((place for place, feature in enumerate(own) if isinstance(feature.source, Activity)), None)


def linked_places(own: Sequence[Feature]) -> list[int]:
    """The fanouts and in-degrees."""
    return [place for place, feature in enumerate(own) if isinstance(feature.source, Fanout | InDegree)]


def pays(fanouts: Sequence[Single], singles: Singles, own: Sequence[Feature]) -> bool:
    """Whether the table is referenced, or the rows of few owners outweigh those of all others."""
    if any(isinstance(feature.source, InDegree) for feature in own):
        return True
    return any(
        _unevenness(single, counts, singles.exponents[single.feature.name]) >= UNEVEN
        for single, counts in zip(fanouts, singles.counts, strict=True)
    )


def _unevenness(single: Single, counts: Floats, exponent: float) -> float:
    some = counts[1:].sum()
    if not isinstance(single.feature.source, Fanout) or some <= CLEAR_FANOUT * single.pooled_noise.scale:
        return 0.0
    means = bin_means(single.feature.source.edges, exponent)
    return float(counts @ means**2 * some) / max(float(counts @ means), 1e-9) ** 2


def measure_hub(table: WeighedTable, own: Sequence[Feature], singles: Singles, *, amount: Fraction) -> HubTables:
    """Noisy tables of the hub with each fanout and in-degree, all with about the same noise."""
    hub = hub_place(own)
    if hub is None:
        return {}
    places = linked_places(own)
    parts = divided(amount, [float(own[place].sensitivity_factor) for place in places])
    axes = []
    for place, part in zip(places, parts, strict=True):
        least = LEAST_BIN * float(np.sqrt(table.noise([own[hub], own[place]], part).variance))
        axes.append(
            (_doubling(own[hub], singles.counts[hub], least), _doubling(own[place], singles.counts[place], least))
        )
    measured = table.measure_all(list(zip(axes, parts, strict=True)))
    return {
        place: HubTable(axes=pair, table=NoisyTable(cells=answer.counts, variance=answer.noise.variance))
        for place, pair, answer in zip(places, axes, measured, strict=True)
    }


def _doubling(feature: Feature, counts: Floats, least: float) -> Axis:
    """Bins that double, the last one heavy enough."""
    low = _edges(feature)[:-1]
    bins = np.where(low == 0, 0, 1 + np.floor(np.log2(np.maximum(low, 1))).astype(np.int64))
    last = int(bins.max())
    while last > 2 and counts[bins >= last].sum() < least:
        last -= 1
    _, bins = np.unique(np.minimum(bins, last), return_inverse=True)
    return Axis(feature, bins)


def fit_hub(
    own: Sequence[Feature],
    measured: Sequence[Single],
    singles: Singles,
    tables: HubTables,
    *,
    most: Mapping[str, float],
) -> tuple[Linked, Singles]:
    """The masses of the hub and each fanout and in-degree by single codes, and counts with ends that follow the hub.

    `most` are the largest possible means, by name.
    """
    hub = hub_place(own)
    if hub is None:
        return {}, singles
    counts = list(singles.counts)
    counts[hub] = _trimmed(counts[hub], singles.clear[own[hub].name])
    activity = _numbers(measured[hub], counts[hub], singles)
    linked = {}
    for place, noisy in tables.items():
        name = own[place].name
        within = not isinstance(own[place].source, InDegree)
        numbers = replace(_numbers(measured[place], counts[place], singles), most=most.get(name), within=within)
        masses = couple(activity, numbers, noisy.axes, noisy.table)
        end = _end(masses.sum(axis=0), numbers, own=within)
        masses = met(masses, masses.sum(axis=1), _trimmed(end, numbers.clear))
        counts[place] = masses.sum(axis=0) * (singles.total / masses.sum())
        linked[hub, place] = masses
    return linked, replace(singles, counts=tuple(counts))


def _numbers(single: Single, counts: Floats, singles: Singles) -> Numbers:
    return Numbers(
        edges=_edges(single.feature),
        counts=counts,
        clear=singles.clear[single.feature.name],
        noisy=single.noisy.sum(axis=0),
        scale=single.pooled_noise.scale,
    )


def _end(implied: Floats, numbers: Numbers, *, own: bool) -> Floats:
    """What the hub says of a hidden end; of fanouts the geometric mean of that and what their own counts say."""
    hidden = numbers.groups[-1]
    if not own:
        return implied
    both = np.sqrt(np.maximum(numbers.counts[hidden:], 1e-9) * np.maximum(implied[hidden:], 1e-9))
    return np.append(implied[:hidden], both * (implied[hidden:].sum() / both.sum()))


def _trimmed(counts: Floats, clear: int) -> Floats:
    """Counts of which the end of a hidden tail, where less than one row is expected, is put where one is."""
    if clear >= len(counts):
        return counts
    beyond = np.cumsum(counts[::-1])[::-1]
    last = int(np.flatnonzero(beyond >= LEAST_CODE).max(initial=0))
    return np.append(counts[:last], [beyond[last], *np.zeros(len(counts) - last - 1)])


def refined(candidates: Candidates) -> Candidates:
    """The same columns, the hub and those that are linked to it in single codes, those of rules in fine bins."""
    zeros, codes = candidates.zeros, (candidates.hub, *candidates.linked)
    fine = tuple(
        whole_axis(axis.feature) if place in codes else zeros.axes.get(place, axis)
        for place, axis in enumerate(candidates.axes)
    )
    masses = tuple(zeros.masses.get(place, masses) for place, masses in enumerate(candidates.masses))
    return replace(candidates, axes=fine, masses=masses)


def expanded(
    masses: Floats, pair: tuple[int, int], coarse: Candidates, fine: Candidates, margins: Sequence[Floats]
) -> Floats:
    """A table in coarse bins by finer ones, as if these were independent inside a coarse bin."""
    for side, place in enumerate(pair):
        if fine.axes[place] is not coarse.axes[place]:
            bins = coarser(fine.axes[place], coarse.axes[place])
            share = margins[place] / np.maximum(np.bincount(bins, weights=margins[place]), 1e-300)[bins]
            masses = np.take(masses, bins, axis=side) * (share[:, None] if side == 0 else share)
    return masses


def _edges(feature: Feature) -> NDArray[np.int64]:
    source = feature.source
    if not isinstance(source, Fanout | InDegree | Activity):
        raise ValueError(f"{feature.name}: has no numbers of rows")
    return source.edges
