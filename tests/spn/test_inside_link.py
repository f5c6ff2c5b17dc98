"""Keys that stay inside the entity: which rows they are given."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privbench.spn.inside_link import draw_inside

ENTITIES = st.lists(st.integers(0, 6), max_size=40)


@given(ENTITIES, ENTITIES, st.booleans(), st.integers(0, 2**32 - 1))
def test_every_target_is_of_the_same_entity(holders: list[int], rows: list[int], once: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys, entities = np.array(holders, np.int64), np.sort(np.array(rows, np.int64))
    degrees = rng.integers(0, 4, len(entities))
    drawn = draw_inside(keys, entities, degrees, once=once, rng=rng)
    found = drawn >= 0
    assert (entities[drawn[found]] == keys[found]).all()
    if once:
        assert len(np.unique(drawn[found])) == found.sum()
        wanted = [min(holders.count(e), rows.count(e)) for e in range(7)]
        assert found.sum() == sum(wanted), "a key is NULL only where no row is left"
    else:
        assert (found == np.isin(keys, entities)).all(), "a key is NULL only where the entity has no row"


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.integers(0, 99))
def test_rows_are_referenced_as_often_as_they_say_where_keys_suffice(degrees: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    entities = np.sort(rng.integers(0, 5, len(degrees)))
    holders = rng.permutation(np.repeat(entities, degrees))
    drawn = draw_inside(holders, entities, np.array(degrees), once=False, rng=rng)
    assert np.bincount(drawn, minlength=len(degrees)).tolist() == degrees
