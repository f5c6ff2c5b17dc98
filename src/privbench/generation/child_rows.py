"""Owner rows of one block with the rows that are born with them: how many, of which rank, in how large an entity."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.spn.fanouts import bin_of, rank_codes, size_edges
from privbench.spn.siblings import first_rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Brood:
    """The owner rows first .. last-1 with their numbers of rows and their entities."""

    first: int
    last: int
    fanouts: NDArray[np.int64]  # (owner rows,)
    entities: NDArray[np.int64]  # (owner rows,)

    def ranks(self) -> NDArray[np.uint16]:
        """The bin of each row's rank among its owner's."""
        return rank_codes(self.fanouts)

    def firsts(self) -> NDArray[np.int64]:
        """The place of the first row of each row's owner; -1 for first rows."""
        return first_rows(np.repeat(np.arange(len(self.fanouts)), self.fanouts))

    def sizes(self) -> NDArray[np.uint16]:
        """The bin of each row's number of rows of its entity."""
        entity = np.cumsum(np.diff(self.entities, prepend=self.entities[:1]) != 0)
        rows = np.bincount(entity, self.fanouts).astype(np.int64)
        return np.repeat(bin_of(rows, size_edges())[entity], self.fanouts)
