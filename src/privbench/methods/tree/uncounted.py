"""How often rows are named by keys that were not counted.

Of each entity one key is counted, so that one entity moves the counts by little. Where entities have many keys, most
rows show a count of 0 although some key names them. Rates are taken as Gamma distributed and counted keys as Poisson:
the mean count and the share of rows without one give the shape, and what was not counted of a row follows from counts.
All of it is post-processing of noisy numbers.
"""

import numpy as np

from privbench.spn.links import Rates
from privbench.spn.reference_link import EVEN, MOST_MORE

LEAST_SHAPE = 1e-4
"""Nearly all keys name a few rows."""
DOUBT = 2.0
"""Rates are as even as the share of rows without a count lets them be, less so many standard deviations."""
ROUNDS = 60


def counted_keys(found: float, *, keys: float, entities: float, named: float) -> float:
    """How many keys were counted, one of each entity that has any.

    `found` is what the rows that are named say. No more than there are keys, or entities with rows; no fewer than
    these entities times the share of their keys that name a row.
    """
    return min(max(found, named * entities, 1.0), max(entities, 1.0), max(keys, 1.0))


def rates(*, mean: float, none: float, deviation: float, keys: float, counted: float) -> Rates:
    """The rates of keys that were not counted.

    `mean` is that of counts, `none` the share of rows without one, known up to a standard deviation.
    """
    more = min(max(keys / counted - 1, 0.0), MOST_MORE)
    return Rates(shape=_shape(mean, none - DOUBT * deviation), more=more)


def _shape(mean: float, none: float) -> float:
    """The shape of a Gamma of rates with that mean, such that a Poisson draw is 0 with that probability."""
    wanted = -np.log(min(max(none, 1e-9), 1.0))
    low, high = LEAST_SHAPE, EVEN
    if high * np.log1p(mean / high) <= wanted:
        return EVEN
    for _ in range(ROUNDS):
        middle = float(np.sqrt(low * high))
        if middle * np.log1p(mean / middle) < wanted:
            low = middle
        else:
            high = middle
    return low
