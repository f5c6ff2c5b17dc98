"""Blocks of child rows that come with their owners: whole entities, all rows once, promised numbers kept."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.generation import blocks
from privbench.generation.blocks import OwnerBlock, OwnerBlocks
from privbench.generation.carried import ENTITY, Carried, number
from privbench.schema.tables import ForeignKey
from privbench.schema.unit import Link, LinkKind
from privbench.spn.fanouts import bin_of, size_edges
from privbench.spn.link import Points
from privbench.spn.reference_link import draw_anywhere, draw_carried, draw_once, draw_weighted

LINK = Link(
    table="b",
    key=ForeignKey(columns=("a",), table="a", references=("id",)),
    kind=LinkKind.OWNER,
    nullable=False,
    unique=False,
)


def carried(folder: Path, fanouts: list[int], entities: list[int]) -> Carried:
    made = Carried(folder, {number(LINK): np.int64, ENTITY: np.int64})
    half = len(fanouts) // 2
    for part in (slice(None, half), slice(half, None)):
        columns = {number(LINK): np.array(fanouts[part], np.int64), ENTITY: np.array(entities[part], np.int64)}
        made.write(columns, len(fanouts[part]))
    made.finish()
    return made


@given(
    entities=st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=4), max_size=30),
    block=st.integers(1, 20),
    most=st.integers(1, 7),
    wanted=st.one_of(st.none(), st.integers(0, 80)),
)
@settings(max_examples=200)
def test_blocks_hold_whole_entities(
    entities: list[list[int]], block: int, most: int, wanted: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fanouts = [n for entity in entities for n in entity]
    numbers = [i for i, entity in enumerate(entities) for _ in entity]
    owners = carried(tmp_path_factory.mktemp("owners") / "a", fanouts, numbers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_ROWS", block)
        owner_blocks = OwnerBlocks(owners, LINK, most=most, wanted=wanted, stream=np.random.default_rng)
        found, again = list(owner_blocks), list(owner_blocks)
    assert all((a.fanouts == b.fanouts).all() for a, b in zip(found, again, strict=True))
    assert [b.first for b in found] == [0, *(b.last for b in found)][: len(found)]
    assert sum(b.last - b.first for b in found) == len(fanouts)
    assert all(a.entities[-1] != b.entities[0] for a, b in pairwise(found))
    drawn = [int(n) for b in found for n in b.fanouts]
    assert all(0 <= n <= most for n in drawn)
    assert sum(drawn) == owner_blocks.rows
    if wanted is None:
        assert drawn == [min(n, most) for n in fanouts]
    else:
        assert sum(drawn) == min(wanted, most * len(fanouts))
        owners_with_rows = sum(n > 0 for n in fanouts)
        if owners_with_rows > 0 and wanted <= most * owners_with_rows:
            assert all(after == 0 for before, after in zip(fanouts, drawn, strict=True) if before == 0)
    for b in found:
        before_last = b.fanouts[:-1] if b is not found[-1] else b.fanouts
        assert len(b.fanouts) <= 4 * block + 4 or before_last.sum() <= block + 4 * 6


def test_ranks_and_sizes_of_an_owner_block() -> None:
    block = OwnerBlock(first=0, last=4, fanouts=np.array([2, 0, 1, 3]), entities=np.array([5, 5, 5, 9]))
    assert block.ranks().tolist() == [0, 1, 0, 0, 1, 2]
    assert block.sizes().tolist() == bin_of(np.array([3, 3, 3, 3, 3, 3]), size_edges()).tolist()
    none = OwnerBlock(first=0, last=0, fanouts=np.empty(0, np.int64), entities=np.empty(0, np.int64))
    assert none.sizes().tolist() == none.ranks().tolist() == []


def test_points_are_even_over_any_stretch() -> None:
    points, rng = Points(0.3), np.random.default_rng(0)
    for count in (10, 1000, 7, 50_000):
        counts = np.histogram(points.take(count, rng=rng), bins=10, range=(0, 1))[0]
        assert np.abs(counts - count / 10).max() < 8


def test_rows_are_referenced_in_proportion(tmp_path: Path) -> None:
    """From what a table carries, in many small stretches."""
    degrees = np.random.default_rng(0).integers(0, 9, 500)
    table = Carried(tmp_path / "a", {number(LINK): np.float64})
    table.write({number(LINK): np.cumsum(degrees.astype(float))}, 500)
    table.finish()
    points, rng = Points(0.7), np.random.default_rng(2)
    named = np.concatenate([draw_carried(table, number(LINK), points.take(97, rng=rng)) for _ in range(200)])
    counts = np.bincount(named, minlength=500)
    assert np.abs(counts - degrees / degrees.sum() * len(named)).max() < 4
    within = draw_weighted(degrees, Points(0.7).take(19_400, rng=rng))
    assert np.abs(np.bincount(within, minlength=500) - degrees / degrees.sum() * 19_400).max() < 5
    assert np.bincount(draw_anywhere(10, Points(0.0).take(1000, rng=rng))).tolist() == pytest.approx([100] * 10, abs=3)


def test_rows_referenced_once() -> None:
    numbers, rng = np.array([0, 2, 0, 1, 0]), np.random.default_rng(0)
    assert sorted(draw_once(numbers, 2, rng=rng)) == [1, 3]
    assert sorted(draw_once(numbers, 7, rng=rng)) == [-1, -1, 0, 1, 2, 3, 4]


def test_an_empty_table_carries_nothing(tmp_path: Path) -> None:
    empty = carried(tmp_path / "a", [], [])
    for wanted in (None, 5):
        blocks_of_none = OwnerBlocks(empty, LINK, most=3, wanted=wanted, stream=np.random.default_rng)
        assert list(blocks_of_none) == []
        assert blocks_of_none.rows == 0
