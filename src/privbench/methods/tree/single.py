"""Histograms of single columns: measured by stratum, pooled to a total, denoised."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privbench.methods.denoise import denoise, weighted_mean
from privbench.methods.tree.fanout import ROWS_WEIGHT, fanout_shares
from privbench.methods.tree.plan import divided
from privbench.methods.tree.weighed import WeighedTable
from privbench.privacy.calibrate import Noise
from privbench.privacy.features import (
    Activity,
    Axis,
    Fanout,
    Feature,
    InDegree,
    KeyBlock,
    NullKey,
    Own,
    OwnKey,
    whole_axis,
)

Floats = NDArray[np.float64]

MOST_CODES = 64
"""Columns with more codes than this get no larger part of the budget."""
FANOUT_PART = 2.0
"""Fanouts get this many times the part of another column: rows of other tables follow from them."""
ACTIVITY_PART = 6.0
"""The same of the activity of rows, on which all fanouts and in-degrees depend."""
LINKED_PART = 3.0
"""The same of fanouts and in-degrees of a table with such a column, times the root of the root of how far an entity
moves them."""
DENSE_ROWS_WEIGHT = 0.5
"""Long tails count less against a law where most rows have a number, or a hub says which have a large one."""
DENSE = 0.7
"""Most rows have a number if at most this share has none."""
CLEAR_OWN = 3.0
"""Keys to the row above, and NULLs, are taken as none below this many noise scales: where none are, one looks odd."""
MOST_UNCLEAR = 0.1
"""Where so many noise scales are more than this share of all, a count of NULLs says nothing, and is denoised."""
LEAST_STRATUM = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Single:
    """A noisy histogram of one column by stratum, in entities, and the noise of a cell."""

    feature: Feature
    noisy: Floats  # (strata, codes)
    noise: Noise

    @property
    def pooled_noise(self) -> Noise:
        """The noise of a count over all strata; nearly normal if there are many."""
        return replace(self.noise, scale=self.noise.scale * float(np.sqrt(len(self.noisy))))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Singles:
    """All columns of a table: entities by stratum, counts by code that add up to their number, exponents of fanouts."""

    strata: Floats
    error: float
    """The expected relative standard error of their sum: 0 where that is public."""
    counts: tuple[Floats, ...]
    exponents: Mapping[str, float]
    deviations: Mapping[str, float]
    """Of the shares of fanouts, by name: the standard deviation of their noise."""
    clear: Mapping[str, int]
    """Of fanouts, by name: how many bins stand out of the noise."""

    @property
    def total(self) -> float:
        """About how many entities have rows in the table."""
        return float(self.strata.sum())


def column_parts(features: Sequence[Feature], *, paired: bool) -> list[float]:
    """What the budgets of columns are in proportion to, by their numbers of codes.

    1/2 is best for the sum of distances where codes stand out of the noise. Where there is too little even for pairs,
    columns of many codes are made of what neighbours share anyway, and those of few gain more.
    """
    power = 1 / 2 if paired else 1 / 3
    hub = any(isinstance(f.source, Activity) for f in features)
    return [min(f.size, MOST_CODES) ** power * _importance(f, hub=hub) for f in features]


def measure_singles(
    table: WeighedTable, features: Sequence[Feature], strata: Axis | None, *, amount: Fraction, paired: bool
) -> list[Single]:
    """A noisy histogram of each column, all for that amount; `paired` if tables of pairs are measured, too."""
    by_stratum = [] if strata is None else [strata]
    parts = divided(amount, column_parts(features, paired=paired))
    requests = [([*by_stratum, whole_axis(feature)], part) for feature, part in zip(features, parts, strict=True)]
    return [
        Single(feature=feature, noisy=measured.counts.reshape(-1, feature.size), noise=measured.noise)
        for feature, measured in zip(features, table.measure_all(requests), strict=True)
    ]


def averaged(first: Sequence[Single], second: Sequence[Single]) -> list[Single]:
    """Two measurements of the same columns as one, weighted by their precision."""
    means = [weighted_mean((a.noisy, a.noise), (b.noisy, b.noise)) for a, b in zip(first, second, strict=True)]
    return [replace(a, noisy=noisy, noise=noise) for a, (noisy, noise) in zip(first, means, strict=True)]


def estimate(singles: Sequence[Single], *, entities: float | None, means: Mapping[str, float]) -> Singles:
    """Denoised counts. `entities` is their public number, if any; `means` the public means of fanouts by name."""
    strata, variance = _strata_totals(singles)
    if entities is not None:
        strata *= entities / strata.sum()
    total = float(strata.sum())
    error = math.sqrt(variance * len(strata)) / total if entities is None else 0.0
    counts, exponents, deviations, clear = [], {}, {}, {}
    hub = any(isinstance(single.feature.source, Activity) for single in singles)
    for single in singles:
        feature, noisy, noise = single.feature, single.noisy.sum(axis=0), single.pooled_noise
        if isinstance(feature.source, Fanout | InDegree | Activity):
            edges, mean = feature.source.edges, means.get(feature.name)
            rows_weight = _rows_weight(feature, noisy, total, hub=hub)
            fitted = fanout_shares(noisy, noise, edges, total=total, mean=mean, rows_weight=rows_weight)
            exponents[feature.name] = fitted.exponent
            clear[feature.name] = fitted.clear
            deviations[feature.name] = float(np.sqrt(noise.variance)) / max(total, 1.0)
            counts.append(_one_by_one(feature, noisy, noise, fitted.shares * total))
        else:
            counts.append(_denoised(feature, noisy, noise, total))
    return Singles(
        strata=strata, error=error, counts=tuple(counts), exponents=exponents, deviations=deviations, clear=clear
    )


def _rows_weight(feature: Feature, noisy: Floats, total: float, *, hub: bool) -> float:
    """How much rows count against a law of the feature's tail."""
    dense = hub and isinstance(feature.source, Fanout) and noisy[0] < DENSE * total
    return DENSE_ROWS_WEIGHT if dense or isinstance(feature.source, Activity) else ROWS_WEIGHT


def _one_by_one(feature: Feature, noisy: Floats, noise: Noise, counts: Floats) -> Floats:
    """Counts of a fanout; where its numbers matter one by one, those with bins of their own need not fall."""
    if not (isinstance(feature.source, Fanout) and feature.source.link.counted):
        return counts
    alone = int(np.argmax(np.append(np.diff(feature.source.edges), 2) > 1))
    return np.append(denoise(noisy[:alone], noise, float(counts[:alone].sum()), smooth=True), counts[alone:])


def _denoised(feature: Feature, noisy: Floats, noise: Noise, total: float) -> Floats:
    """Counts of a column; NULL, which is no neighbour of any value, on its own."""
    if isinstance(feature.source, OwnKey) and noisy[1] <= CLEAR_OWN * noise.scale:
        return np.insert(denoise(np.delete(noisy, 1), noise, total, smooth=False), 1, 0.0)
    if _has_no_nulls(feature, noisy, noise, total):
        return np.append(denoise(noisy[:-1], noise, total, smooth=feature.ordered), 0.0)
    smooth = feature.ordered
    if not (smooth and feature.apart and feature.size > 2):
        return denoise(noisy, noise, total, smooth=smooth)
    null = float(noisy[-1] + (total - noisy.sum()) / feature.size)  # what is missing is shared by all codes alike
    null = float(denoise(np.array([total - null, null]), noise, total, smooth=False)[1])
    return np.append(denoise(noisy[:-1], noise, total - null, smooth=True), null)


def _has_no_nulls(feature: Feature, noisy: Floats, noise: Noise, total: float) -> bool:
    """Whether the NULLs of a column or a key do not stand out of the noise, though many would."""
    nullable = isinstance(feature.source, NullKey) or (feature.apart and isinstance(feature.source, Own | KeyBlock))
    unclear = CLEAR_OWN * noise.scale
    return nullable and feature.size > 1 and unclear <= MOST_UNCLEAR * total and noisy[-1] <= unclear


def _importance(feature: Feature, *, hub: bool) -> float:
    if isinstance(feature.source, Activity):
        return ACTIVITY_PART
    if not isinstance(feature.source, Fanout | InDegree):
        return 1.0
    return LINKED_PART * float(feature.sensitivity_factor) ** 0.25 if hub else FANOUT_PART


def _strata_totals(singles: Sequence[Single]) -> tuple[Floats, float]:
    """Entities by stratum, and the variance of each: the mean over columns, by the precision of their totals."""
    precision = np.array([1 / (single.noisy.shape[1] * single.noise.variance) for single in singles])
    totals = np.stack([single.noisy.sum(axis=1) for single in singles])
    pooled: Floats = np.maximum(precision @ totals / precision.sum(), LEAST_STRATUM)
    return pooled, float(1 / precision.sum())
