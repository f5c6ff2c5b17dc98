"""The hub of a table, its column `#activity`: how many rows a row owns at all levels. Fanouts and references follow it.

A table whose rows are owners, or referenced, through several keys gets one more column, its activity. If it pays, every
fanout and in-degree depends on it and on nothing else, by tables of their own (`coupling.py`); other columns may
depend on it as on any column. It pays where a key references the table, whose targets are then those that are active,
and where the rows of few owners decide how many rows joins have.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privbench.methods.tree.coupling import Numbers, couple, edges_of, met
from privbench.methods.tree.pairs import NoisyTable
from privbench.methods.tree.plan import divided
from privbench.methods.tree.reference_rates import MeanKeys, rates_given_activity
from privbench.methods.tree.single import Single, Singles, column_parts
from privbench.methods.tree.structure import Candidates
from privbench.methods.tree.weighed import WeighedTable
from privbench.methods.tree.zeros import coarser
from privbench.privacy.features import Activity, Axis, Fanout, Feature, InDegree, whole_axis
from privbench.spn.fanouts import bin_means

Floats = NDArray[np.float64]

HUB_SHARE = Fraction(3, 10)
"""The largest share of a table's budget, after its fanouts, for tables of the hub with each fanout and in-degree."""
KEYS_PART = Fraction(1, 40)
"""Of that, what counts the entities that have a key, for each reference."""
MOST_KEYS_PART = Fraction(1, 4)
"""The same, at most, for all references together."""
FEWEST_KEYS = 1.0
"""At least so many keys are taken to be counted."""
LEAST_BIN = 1.5
"""The last bin of a column in such a table has at least this many standard deviations of its noise."""
UNEVEN = 8.0
"""A fanout is uneven if its mean square, over all rows that have any, is this many times the square of its mean."""
UNEVEN_ROWS = 0.25
"""Without references a hub pays if tables with uneven fanouts have at least this share of the rows that are owned."""
CLEAR_FANOUT = 20.0
"""A fanout counts as uneven only if so many noise scales of entities have any row."""
LEAST_CODE = 0.7
"""The last code of a hidden tail has at least this many entities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """In-degrees that depend on a hub alone, and how many rows there are to be referenced."""

    features: tuple[Feature, ...] = ()
    rows: float = 0.0
    error: float = 0.0
    """How far means over rows may be from those in which entities weigh the same, as a share of them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HubTable:
    """A noisy table of the hub and another column, in doubling bins."""

    axes: tuple[Axis, Axis]
    table: NoisyTable


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HubTables:
    """Tables of the hub with fanouts and the like, by their places, and with the keys that reference the rows."""

    linked: Mapping[int, HubTable]
    references: tuple[HubTable, ...] = ()
    keys: tuple[MeanKeys, ...] = ()
    """Of each reference the mean number of counted keys."""


NO_HUB = HubTables(linked={})
Linked = Mapping[tuple[int, int], Floats]
"""The masses of the hub and a fanout by single codes, by their places."""


def hub_place(own: Sequence[Feature]) -> int | None:
    """Where the hub is among the columns, if there is one."""
    return next((place for place, feature in enumerate(own) if isinstance(feature.source, Activity)), None)


def linked_places(own: Sequence[Feature]) -> list[int]:
    """The fanouts, and in-degrees of which all keys count or a row has at most one."""
    return [place for place, feature in enumerate(own) if isinstance(feature.source, Fanout | InDegree)]


def is_reference(feature: Feature) -> bool:
    """Whether it counts one key of each entity, so that counts say little of a row."""
    return feature.in_degree is not None and feature.size > 2


def without_hub(own: Sequence[Feature]) -> tuple[Feature, ...]:
    """The columns of a table that has no hub."""
    return tuple(feature for feature in own if not isinstance(feature.source, Activity))


def beside_references(own: Sequence[Feature]) -> tuple[Feature, ...]:
    """The columns of a table with a hub that have a histogram of their own."""
    return tuple(feature for feature in own if not is_reference(feature))


def fanouts_first(own: Sequence[Feature], amount: Fraction, *, paired: bool) -> tuple[tuple[Feature, ...], Fraction]:
    """The fanouts of a table that may have a hub, and their part of what is for single columns."""
    plain = without_hub(own)
    parts = column_parts(plain, paired=paired)
    fanouts = [(f, part) for f, part in zip(plain, parts, strict=True) if isinstance(f.source, Fanout)]
    return tuple(f for f, _ in fanouts), amount * Fraction(sum(part for _, part in fanouts) / sum(parts))


def is_referenced(own: Sequence[Feature]) -> bool:
    """Whether keys reference rows of the table."""
    return any(isinstance(feature.source, InDegree) for feature in own)


def pays(fanouts: Sequence[Single], singles: Singles, own: Sequence[Feature]) -> bool:
    """Whether the table is referenced, or rows of few owners outweigh those of all others in much of what it owns."""
    if is_referenced(own):
        return True
    rows, uneven = 0.0, 0.0
    for single, counts in zip(fanouts, singles.counts, strict=True):
        means = bin_means(edges_of(single.feature), singles.exponents[single.feature.name])
        rows += float(counts @ means)
        if _unevenness(single, counts, means) >= UNEVEN:
            uneven += float(counts @ means)
    return uneven > 0 and uneven >= UNEVEN_ROWS * rows


def _unevenness(single: Single, counts: Floats, means: Floats) -> float:
    some = counts[1:].sum()
    if some <= CLEAR_FANOUT * single.pooled_noise.scale:
        return 0.0
    return float(counts @ means**2 * some) / max(float(counts @ means), 1e-9) ** 2


def hub_share(own: Sequence[Feature], references: Sequence[Feature], *, measured: int, single_share: float) -> Fraction:
    """The share of a table's budget for tables of the hub: their noise is no less than that of single columns.

    So many of these are measured, for that share of what is left.
    """
    tables = [*(own[place] for place in linked_places(own)), *references]
    moved = sum(feature.sensitivity_factor for feature in tables) * Fraction(single_share)
    return min(HUB_SHARE, moved / (moved + max(measured, 1)))


def measure_hub(
    table: WeighedTable, own: Sequence[Feature], references: References, singles: Singles, *, amount: Fraction
) -> HubTables:
    """Noisy tables of the hub with each fanout and reference, all with about the same noise."""
    hub = hub_place(own)
    if hub is None:
        return NO_HUB
    counting = amount * min(KEYS_PART, MOST_KEYS_PART / max(len(references.features), 1))
    keys = tuple(_mean_keys(table, feature, references, counting) for feature in references.features)
    amount -= counting * len(keys)
    places = linked_places(own)
    features = [*(own[place] for place in places), *references.features]
    parts = divided(amount, [float(feature.sensitivity_factor) for feature in features])
    axes = []
    for feature, part in zip(features, parts, strict=True):
        least = LEAST_BIN * float(np.sqrt(table.noise([own[hub], feature], part).variance))
        axes.append(
            (_doubling(own[hub], singles.counts[hub], least), _doubling(feature, _counts(feature, own, singles), least))
        )
    measured = table.measure_all(list(zip(axes, parts, strict=True)))
    tables = [
        HubTable(axes=pair, table=NoisyTable(cells=answer.counts, variance=answer.noise.variance))
        for pair, answer in zip(axes, measured, strict=True)
    ]
    linked = dict(zip(places, tables, strict=False))
    return HubTables(linked=linked, references=tuple(tables[len(places) :]), keys=keys)


def _mean_keys(table: WeighedTable, feature: Feature, references: References, amount: Fraction) -> MeanKeys:
    """Of each entity that has a key one is counted: so many keys for each row."""
    if feature.in_degree is None:
        raise ValueError(f"{feature.name}: counts no keys of other entities")
    counted = table.entities_with_key(feature.in_degree, amount)
    keys = max(counted.total, FEWEST_KEYS)
    noise = float(np.sqrt(counted.noise.variance)) / keys
    return MeanKeys(mean=keys / max(references.rows, 1.0), error=math.hypot(noise, references.error))


def _counts(feature: Feature, own: Sequence[Feature], singles: Singles) -> Floats:
    """The counts of a column by code; of keys that were not counted yet, as if each code had half of the one before."""
    if feature in own:
        return singles.counts[own.index(feature)]
    return np.asarray(singles.total * 0.5 ** np.arange(feature.size), np.float64)


def _doubling(feature: Feature, counts: Floats, least: float) -> Axis:
    """Bins that double, the last one heavy enough."""
    low = edges_of(feature)[:-1]
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
) -> tuple[Linked, Singles]:
    """The masses of the hub and each fanout by single codes, and counts with ends that follow the hub."""
    hub = hub_place(own)
    if hub is None:
        return {}, singles
    counts = list(singles.counts)
    counts[hub] = _trimmed(counts[hub], singles.clear[own[hub].name])
    activity = _numbers(measured[hub], counts[hub], singles)
    linked = {}
    for place, noisy in tables.linked.items():
        within = not isinstance(own[place].source, InDegree)
        numbers = replace(_numbers(measured[place], counts[place], singles), within=within)
        masses = couple(activity, numbers, noisy.axes, noisy.table)
        end = _end(masses.sum(axis=0), numbers, own=within)
        masses = met(masses, masses.sum(axis=1), _trimmed(end, numbers.clear))
        counts[place] = masses.sum(axis=0) * (singles.total / masses.sum())
        linked[hub, place] = masses
    return linked, replace(singles, counts=tuple(counts))


def fit_references(own: Sequence[Feature], singles: Singles, tables: HubTables) -> list[tuple[Axis, Floats]]:
    """For each reference its rates, as an axis of their bins, and the masses of the hub and these."""
    hub = hub_place(own)
    if hub is None:
        return []
    fitted = []
    for noisy, keys in zip(tables.references, tables.keys, strict=True):
        feature = noisy.axes[1].feature
        masses = rates_given_activity(
            edges_of(own[hub]),
            singles.counts[hub],
            noisy.axes,
            noisy.table,
            edges_of(feature),
            keys=keys,
        )
        fitted.append((whole_axis(replace(feature, size=masses.shape[1])), masses))
    return fitted


def _numbers(single: Single, counts: Floats, singles: Singles) -> Numbers:
    return Numbers(
        edges=edges_of(single.feature),
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
    """Counts of which the end of a hidden tail, where hardly an entity is expected, is put into the code before."""
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
