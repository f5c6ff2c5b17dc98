"""Numbers of rows of a list's member, moved to list rows that can have some."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privbench.generation.members import moved_to


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=40))
def test_no_row_is_lost_as_long_as_there_is_room(rows: list[tuple[bool, int]]) -> None:
    able, numbers = np.array([a for a, _ in rows], bool), np.array([n for _, n in rows], np.int64)
    moved = moved_to(able, numbers)
    lost, free = ~able & (numbers > 0), able & (numbers == 0)
    assert not moved[~able].any()
    np.testing.assert_array_equal(moved[able & (numbers > 0)], numbers[able & (numbers > 0)])
    kept = np.sort(moved[free & (moved > 0)])
    np.testing.assert_array_equal(kept, np.sort(numbers[lost][: free.sum()]))


def test_they_go_to_the_next_row_that_can_have_some() -> None:
    able = np.array([0, 1, 1, 0, 0, 1, 1, 1], bool)
    numbers = np.array([4, 0, 0, 0, 3, 1, 0, 0])
    assert moved_to(able, numbers).tolist() == [0, 4, 0, 0, 0, 1, 3, 0]
    assert moved_to(~able, numbers).tolist() == [4, 0, 0, 1, 3, 0, 0, 0]
