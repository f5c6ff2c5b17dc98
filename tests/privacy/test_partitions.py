"""Partitions of rows: boxes are taken only if no row is in two, and centres have the same columns."""

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.privacy.partitions import Box, Boxes, Centres, inside, intervals

CODES = range(4)
COLUMNS = ("age", "sex")

boxes = st.dictionaries(st.sampled_from(COLUMNS), st.sets(st.sampled_from(CODES), min_size=1).map(intervals))


def rows(box: Box) -> set[tuple[int, ...]]:
    """Every row of a tiny table that is in the box."""
    allowed = [{c for low, high in box.get(n, ((0, 9),)) for c in range(low, high + 1)} for n in COLUMNS]
    return {row for row in product(CODES, CODES) if all(c in a for c, a in zip(row, allowed, strict=True))}


@given(st.lists(boxes, max_size=4))
def test_boxes_are_taken_exactly_if_no_row_is_in_two(parts: list[Box]) -> None:
    shared = sum(len(rows(box)) for box in parts) > len(set().union(*map(rows, parts)))
    if shared:
        with pytest.raises(ValueError, match="overlap"):
            Boxes(table="t", rows_per_entity=1, boxes=tuple(parts))
    else:
        assert len(Boxes(table="t", rows_per_entity=1, boxes=tuple(parts))) == len(parts)


full = intervals(CODES)


@given(boxes, boxes)
def test_inside_agrees_with_the_rows(inner: Box, outer: Box) -> None:
    named = {**dict.fromkeys(COLUMNS, full), **inner}
    assert inside(named, outer) == (rows(inner) <= rows(outer))


@given(st.sets(st.integers(0, 30)))
def test_intervals_hold_the_codes_and_nothing_else(codes: set[int]) -> None:
    found = intervals(codes)
    assert {c for low, high in found for c in range(low, high + 1)} == codes
    assert all(a[1] + 1 < b[0] for a, b in pairwise(found))


@pytest.mark.parametrize("bad", [(), ((3, 2),), ((-1, 2),), ((0, 2), (3, 4)), ((4, 5), (0, 1))])
def test_codes_of_a_box_are_ascending_intervals(bad: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(ValueError, match=r"t\.age"):
        Boxes(table="t", rows_per_entity=1, boxes=({"age": bad},))


def test_partitions_check_themselves() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Centres(table="t", rows_per_entity=0, centres=())
    with pytest.raises(ValueError, match="same columns"):
        Centres(table="t", rows_per_entity=1, centres=({"age": (1,)}, {"sex": (1,)}))
