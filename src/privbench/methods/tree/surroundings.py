"""What is given of the rows of a table before they are drawn, in a fixed sample of synthetic rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.methods.tree.siblings import Siblings
from privbench.privacy.features import Axis, Feature

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
