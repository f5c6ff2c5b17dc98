"""Strata: bins of how many rows an entity has in a table, by which histograms are measured to undo the weights.

A row weighs one over the rows of its entity, so histograms describe entities, not rows. Within a stratum of entities
of about the same size both are the same.
"""

import numpy as np

from privbench.methods.tree.sampled import SampledRows
from privbench.privacy.features import Axis, entity_rows
from privbench.spn.fanouts import size_edges

FEWEST = 200.0
"""A stratum has at least so many entities,"""
NOISE_UNITS = 80.0
"""and so many times the noise that an even split gives to each column,"""
LEAST_SHARE = 0.2
"""and this share of all entities."""
NEARLY = 0.8


def strata_axis(rows: SampledRows, noise: float) -> Axis | None:
    """Strata that stand out of noise of that scale, from a sample of synthetic rows; None if there is only one."""
    feature = entity_rows(size_edges())
    masses = np.bincount(rows.entity_rows(), weights=rows.weights, minlength=feature.size)
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
