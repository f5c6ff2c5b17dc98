"""How the rows of a table are parted into disjoint blocks: by the nearest of some released centres.

Each row goes to one block by looking at that row alone, which is what lets queries on the blocks run in parallel
(docs/proofs/composition.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Centres:
    """One block per released centre: a row belongs to the nearest, the first of equals.

    A centre has integer coordinates per column: one for an ordered column, one per code for an unordered one.
    """

    table: str
    rows_per_entity: int
    centres: tuple[Mapping[str, tuple[int, ...]], ...]

    def __post_init__(self) -> None:
        if self.rows_per_entity < 1:
            raise ValueError(f"{self.table}: rows per entity must be at least 1, not {self.rows_per_entity}")
        if any(centre.keys() != self.centres[0].keys() for centre in self.centres):
            raise ValueError(f"{self.table}: all centres need the same columns")

    def __len__(self) -> int:
        return len(self.centres)

    def json(self) -> dict[str, Any]:
        """Say how the rows are parted, as the receipt does."""
        centres = [
            {"label": str(i), "at": {column: list(xs) for column, xs in centre.items()}}
            for i, centre in enumerate(self.centres)
        ]
        return {"by": "centres", "centres": centres}

    def part_json(self, at: int) -> dict[str, Any]:
        """Say which rows one part holds, as the receipt does."""
        return {"centre": str(at)}
