"""What is given of the rows of a table before they are drawn, in a fixed sample of synthetic rows; and strata.

A row weighs one over the rows of its entity, so histograms describe entities, not rows. Strata are bins of how many
rows an entity has in a table: within a stratum of entities of about the same size both are the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.methods.tree.sampled import SampledRows
from privbench.methods.tree.siblings import Siblings
from privbench.privacy.features import Axis, Feature, entity_rows
from privbench.spn.fanouts import bin_of, size_edges

FEWEST = 200.0
"""A stratum has at least this many entities."""
NOISE_UNITS = 80.0
"""A stratum has at least this many times the noise that an even split gives to each column."""
LEAST_SHARE = 0.2
"""A stratum has at least this share of all entities."""
APART = 0.4
"""About how far the columns of entities with few and with many rows are apart, in total variation."""
CODE_NOISE = 3.0
"""How far columns and their pairs are off for each code of a column, with noise of scale 1 and one entity."""
MOST_CODES = 64
"""Further codes of a column are made of what neighbours share."""
MOST_DOUBLINGS = 10
NEARLY = 0.8
"""A stratum is closed only if at least this part of the least stratum is left for the next."""


def best_full_rows(rows: SampledRows, own: Sequence[Feature], noise: float, *, scale: float, strata: bool) -> int:
    """From how many rows on an entity should count fully in histograms of own columns, for noise of that scale.

    The more, the nearer histograms are to those of rows, and the less the table weighs, which noise makes up for. The
    sample stands for `scale` times as many entities. Strata, where they are used, undo what weights distort between
    them; inside a stratum entities are the more alike, the more strata there are.
    """
    each = rows.rows_by_entity
    sizes = bin_of(each, size_edges())
    codes = sum(min(feature.size, MOST_CODES) for feature in own) / len(own)

    def error(full_rows: int) -> float:
        axis = strata_axis(rows, noise, full_rows=full_rows) if strata else None
        stratum = np.zeros(len(each), np.int64) if axis is None else axis.bins[sizes]
        counted = np.minimum(each, full_rows) / full_rows
        shown = counted * (np.bincount(stratum, weights=each) / np.bincount(stratum, weights=counted))[stratum]
        bias = np.abs(shown - each).sum() / (2 * each.sum())
        noisy = CODE_NOISE * codes * noise / max(scale * counted.sum(), 1.0)
        return float((APART * bias / (stratum.max() + 1)) ** 2 + noisy**2)

    return int(min((2**power for power in range(MOST_DOUBLINGS + 1)), key=error))


def strata_axis(rows: SampledRows, noise: float, *, full_rows: int) -> Axis | None:
    """Strata that stand out of noise of that scale, from a sample of synthetic rows; None if there is only one."""
    feature = entity_rows(size_edges())
    masses = np.bincount(rows.entity_rows(), weights=rows.weights(full_rows), minlength=feature.size)
    least = max(FEWEST, NOISE_UNITS * noise, LEAST_SHARE * masses.sum())
    bins = np.zeros(feature.size, np.int64)
    current, gathered, left = 0, 0.0, masses.sum()
    for code, mass in enumerate(masses.tolist()):
        if gathered >= least and left >= NEARLY * least:
            current, gathered = current + 1, 0.0
        bins[code] = current
        gathered += mass
        left -= mass
    return Axis(feature, bins) if current else None


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Surroundings:
    """What is given of each row: features, and their codes in a sample of synthetic rows, each with its weight."""

    features: tuple[Feature, ...]
    codes: tuple[NDArray[np.integer], ...]
    weights: Floats
    strata: Axis | None = None
    """Bins of one more feature by which all histograms are measured, to undo the weights."""
    strata_codes: NDArray[np.integer] | None = None
    entity_weight: float = 1.0
    """What a typical entity weighs."""
    siblings: Siblings | None = None
    """What may be given of the first row of the same owner."""

    def counts(self, total: float) -> list[Floats]:
        """The masses of the codes of each feature in the sample, scaled to a total."""
        scale = total / self.weights.sum()
        return [
            np.bincount(codes, weights=self.weights, minlength=feature.size) * scale
            for feature, codes in zip(self.features, self.codes, strict=True)
        ]


NOTHING = Surroundings(features=(), codes=(), weights=np.ones(1))
