"""How the rows of a table are parted into disjoint blocks, in terms of what is public or was released.

Both ways give each row to at most one block by looking at that row alone, which is what lets queries on the blocks
run in parallel: by boxes over public codes, or by the nearest of some released centres (docs/proofs/composition.md).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

Interval = tuple[int, int]
"""Codes from the first to the last, both included."""
Box = Mapping[str, tuple[Interval, ...]]
"""Per column the codes a row may have there; a column that is not named may have any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """One block per box; boxes must be pairwise disjoint. `rows_per_entity` bounds the rows of one entity."""

    table: str
    rows_per_entity: int
    boxes: tuple[Box, ...]

    def __post_init__(self) -> None:
        _check_rows_per_entity(self.table, self.rows_per_entity)
        for box in self.boxes:
            for column, intervals in box.items():
                _check_intervals(f"{self.table}.{column}", intervals)
        if not _disjoint(self.boxes):
            raise ValueError(f"{self.table}: two boxes overlap, so their queries cannot run in parallel")

    def __len__(self) -> int:
        return len(self.boxes)

    def json(self) -> dict[str, Any]:
        """Say how the rows are parted, as the receipt does."""
        return {"by": "boxes"}

    def part_json(self, at: int) -> dict[str, Any]:
        """Say which rows one part holds, as the receipt does."""
        return {"box": {column: [list(i) for i in intervals] for column, intervals in self.boxes[at].items()}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Centres:
    """One block per released centre: a row belongs to the nearest, the first of equals.

    A centre has integer coordinates per column: one for an ordered column, one per code for an unordered one.
    """

    table: str
    rows_per_entity: int
    centres: tuple[Mapping[str, tuple[int, ...]], ...]

    def __post_init__(self) -> None:
        _check_rows_per_entity(self.table, self.rows_per_entity)
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


def intervals(codes: Iterable[int]) -> tuple[Interval, ...]:
    """Codes as the fewest intervals.

    >>> intervals([4, 0, 1, 2])
    ((0, 2), (4, 4))
    """
    joined: list[Interval] = []
    for code in sorted(set(codes)):
        if joined and joined[-1][1] == code - 1:
            joined[-1] = (joined[-1][0], code)
        else:
            joined.append((code, code))
    return tuple(joined)


def inside(inner: Box, outer: Box) -> bool:
    """Whether every row of the inner box is in the outer one."""
    return all(
        column in inner and all(any(a <= low and high <= b for a, b in limits) for low, high in inner[column])
        for column, limits in outer.items()
    )


def _disjoint(boxes: tuple[Box, ...]) -> bool:
    if len(boxes) < 2:
        return True
    shared = frozenset.intersection(*(frozenset(box) for box in boxes))
    if any(_apart(i for box in boxes for i in box[column]) for column in shared):
        return True  # one column tells all boxes apart: no need to look at pairs
    return all(any(_apart((*a[c], *b[c])) for c in a.keys() & b.keys()) for a, b in combinations(boxes, 2))


def _apart(parts: Iterable[Interval]) -> bool:
    return all(before[1] < after[0] for before, after in pairwise(sorted(parts)))


def _check_intervals(where: str, parts: tuple[Interval, ...]) -> None:
    ordered = all(0 <= low <= high for low, high in parts)
    if not parts or not ordered or not all(a[1] + 1 < b[0] for a, b in pairwise(parts)):
        raise ValueError(f"{where}: {parts} are not ascending intervals of codes with gaps between them")


def _check_rows_per_entity(table: str, rows: int) -> None:
    if rows < 1:
        raise ValueError(f"{table}: rows per entity must be at least 1, not {rows}")
