"""Targets of keys: exact sizes, no target out of range, distinct where unique, and an end to every draw."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.errors import ModelError
from privbench.spn.count_links import DegreeLink, SlotLink, draw_owners, draw_references
from privbench.spn.link import NULL

CountLink = SlotLink | DegreeLink
counts = st.sampled_from([0.0, 0.0, 1.0, 3.0, 250.0, 1e9])


@st.composite
def slot_links(draw: st.DrawFn) -> SlotLink:
    parts, slots = draw(st.integers(1, 3)), draw(st.integers(0, 6))
    cells = draw(st.lists(counts, min_size=parts * (slots + 1), max_size=parts * (slots + 1)))
    return SlotLink(counts=np.array(cells).reshape(parts, slots + 1))


degree_links = st.builds(
    lambda cells, share: DegreeLink(counts=np.array(cells), null_share=share),
    st.lists(counts, min_size=1, max_size=8),
    st.sampled_from([0.0, 0.3, 1.0]),
)
links: st.SearchStrategy[CountLink] = st.one_of(slot_links(), degree_links)


@st.composite
def draws(draw: st.DrawFn) -> tuple[CountLink, np.ndarray, int, int, int]:
    """A link, the part of each row, and a range of target rows."""
    link = draw(links)
    most = len(link.counts) if isinstance(link, SlotLink) else 3
    parts = np.array(draw(st.lists(st.integers(0, most - 1), max_size=60)), np.int64)
    targets = draw(st.integers(1, 40))
    first = draw(st.integers(0, targets - 1))
    return link, parts, first, draw(st.integers(first + 1, targets)), targets


@settings(max_examples=300)
@given(draws(), st.integers(0, 99))
def test_every_row_gets_an_owner_in_range(given: tuple[CountLink, np.ndarray, int, int, int], seed: int) -> None:
    link, parts, first, last, targets = given
    owners = draw_owners(link, parts, first, last, targets, most=10**6, rng=np.random.default_rng(seed))
    assert len(owners) == len(parts)
    assert ((owners >= first) & (owners < last)).all()


@settings(max_examples=200)
@given(draws(), st.integers(0, 99))
def test_unique_owners_are_distinct_and_in_range(given: tuple[CountLink, np.ndarray, int, int, int], seed: int) -> None:
    link, parts, first, last, targets = given
    parts = parts[: last - first]
    owners = draw_owners(link, parts, first, last, targets, most=1, rng=np.random.default_rng(seed))
    assert len(set(owners.tolist())) == len(parts)
    assert ((owners >= first) & (owners < last)).all()


@settings(max_examples=300)
@given(draws(), st.booleans(), st.integers(0, 99))
def test_references_are_null_or_in_range(
    given: tuple[CountLink, np.ndarray, int, int, int], unique: bool, seed: int
) -> None:
    link, parts, first, last, targets = given
    rng = np.random.default_rng(seed)
    if isinstance(link, SlotLink) and not unique:
        found = link.anywhere(parts, targets, rng=rng)
    else:
        found = draw_references(link, parts, first, last, targets, most=1 if unique else None, rng=rng)
    named = found[found != NULL]
    assert len(found) == len(parts)
    assert ((named >= 0) & (named < targets)).all()
    if unique:
        assert len(set(named.tolist())) == len(named)
    if isinstance(link, DegreeLink):
        assert ((named >= first) & (named < last)).all()
        wanted = len(parts) - round(link.null_share * len(parts))
        assert len(named) == (min(wanted, last - first) if unique else wanted)


def test_no_target_rows_means_null() -> None:
    link = DegreeLink(counts=np.array([1.0, 2.0]), null_share=0.0)
    found = draw_references(link, np.zeros(4, int), 0, 0, 0, most=None, rng=np.random.default_rng(0))
    assert found.tolist() == [NULL] * 4


@pytest.mark.parametrize("rows", [0, 1, 999, 1000, 1001, 100_000])
@pytest.mark.parametrize("cells", [[1.0], [1000.0, 1.0], [0.0, 0.0, 5.0], [0.0], [1.0] * 257], ids=len)
def test_degrees_add_up_to_any_number_of_rows(rows: int, cells: list[float]) -> None:
    """A single row that keys name, and many rows to place, must not take one step per row."""
    link = DegreeLink(counts=np.array(cells), null_share=0.0)
    owners = draw_owners(link, np.zeros(rows, int), 0, 1000, 1000, most=10**6, rng=np.random.default_rng(3))
    assert len(owners) == rows


def test_degrees_follow_the_histogram_when_the_sizes_agree() -> None:
    link = DegreeLink(counts=np.array([500.0, 300.0, 200.0]), null_share=0.0)
    owners = draw_owners(link, np.zeros(700, int), 0, 1000, 1000, most=10**6, rng=np.random.default_rng(3))
    assert np.bincount(np.bincount(owners, minlength=1000)).tolist() == [500, 300, 200]


def test_unreferenced_rows_stay_so_when_degrees_are_evened_out() -> None:
    link = DegreeLink(counts=np.array([600.0, 400.0]), null_share=0.0)
    owners = draw_owners(link, np.zeros(1000, int), 0, 1000, 1000, most=10**6, rng=np.random.default_rng(3))
    degrees = np.bincount(owners, minlength=1000)
    assert sorted(set(degrees.tolist())) == [0, 2, 3]
    assert (degrees == 0).sum() == 600


def test_slots_keep_their_shares_per_part() -> None:
    link = SlotLink(counts=np.array([[0.0, 30.0, 10.0], [0.0, 0.0, 60.0]]))
    parts = np.repeat([0, 1], [40, 60])
    owners = draw_owners(link, parts, 0, 2, 2, most=10**6, rng=np.random.default_rng(1))
    assert np.bincount(owners[:40], minlength=2).tolist() == [30, 10]
    assert np.bincount(owners[40:], minlength=2).tolist() == [0, 60]


@pytest.mark.parametrize("targets", [2, 4, 40, 3])
def test_at_other_scales_slots_stand_for_as_many_rows_each(targets: int) -> None:
    link = SlotLink(counts=np.array([[0.0, 3000.0, 0.0, 1000.0, 0.0]]))
    found = link.anywhere(np.zeros(4000, int), targets, rng=np.random.default_rng(2))
    quarter = np.bincount((found * 4 + 2) // targets, minlength=4)
    if targets >= 4 and targets % 4 == 0:
        assert quarter[:4].tolist() == [3000, 0, 1000, 0]
    assert 0 <= found.min() <= found.max() < targets


def test_null_share_of_references_is_exact() -> None:
    link = SlotLink(counts=np.array([[25.0, 50.0, 25.0]]))
    found = link.anywhere(np.zeros(400, int), 2, rng=np.random.default_rng(2))
    assert link.null_share == 0.25
    assert (found == NULL).sum() == 100


@given(links, st.integers(1, 50), st.data())
def test_shares_of_ranges_add_up_to_one(link: CountLink, targets: int, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, targets), max_size=4)))
    edges = [0, *cuts, targets]
    shares = [link.share(a, b, targets) for a, b in pairwise(edges)]
    assert sum(shares) == pytest.approx(1)
    assert min(shares) >= 0


def test_too_few_rows_to_name_are_refused_not_waited_for() -> None:
    degrees = DegreeLink(counts=np.array([1.0, 2.0]), null_share=0.0)
    with pytest.raises(ModelError, match="3 rows need an owner"):
        draw_owners(degrees, np.zeros(3, int), 5, 5, 9, most=10**6, rng=np.random.default_rng(0))
    with pytest.raises(ModelError, match="2 rows can own at most 1"):
        draw_owners(degrees, np.zeros(3, int), 5, 7, 9, most=1, rng=np.random.default_rng(0))


def test_parts_that_a_link_does_not_know_are_refused() -> None:
    link = SlotLink(counts=np.ones((2, 3)))
    for draw in (draw_owners, draw_references):
        with pytest.raises(ModelError, match="does not know"):
            draw(link, np.array([0, 2]), 0, 2, 2, most=10**6, rng=np.random.default_rng(0))
    with pytest.raises(ModelError, match="does not know"):
        link.anywhere(np.array([0, 2]), 2, rng=np.random.default_rng(0))


@pytest.mark.parametrize("bad", [np.array([[-1.0]]), np.array([[np.nan]]), np.ones(3), np.ones((0, 2))], ids=str)
def test_damaged_slot_counts_are_refused(bad: np.ndarray) -> None:
    with pytest.raises(ModelError):
        SlotLink(counts=bad)


@pytest.mark.parametrize(
    ("bad", "share"), [(np.array([-1.0]), 0.0), (np.array([np.inf]), 0.0), (np.ones(2), 1.5), (np.ones((1, 2)), 0.0)]
)
def test_damaged_degree_counts_are_refused(bad: np.ndarray, share: float) -> None:
    with pytest.raises(ModelError):
        DegreeLink(counts=bad, null_share=share)


@given(
    st.lists(st.floats(0, 50), min_size=1, max_size=12),
    st.integers(1, 6),
    st.integers(0, 60),
    st.booleans(),
    st.integers(0, 1000),
)
def test_no_owner_has_more_rows_than_it_may(
    counts: list[float], most: int, rows: int, by_degree: bool, seed: int
) -> None:
    link = (
        DegreeLink(counts=np.array(counts), null_share=0.0)
        if by_degree
        else SlotLink(counts=np.array([[0.0, *counts]]))
    )
    owners = 9
    rows = min(rows, owners * most)
    found = draw_owners(link, np.zeros(rows, int), 0, owners, owners, most=most, rng=np.random.default_rng(seed))
    assert len(found) == rows
    assert np.bincount(found, minlength=owners).max(initial=0) <= most


def test_rows_above_the_limit_go_to_owners_with_rows_first() -> None:
    link = SlotLink(counts=np.array([[0.0, 8.0, 1.0, 1.0, 0.0, 0.0]]))
    found = draw_owners(link, np.zeros(10, int), 0, 5, 5, most=3, rng=np.random.default_rng(0))
    assert sorted(np.bincount(found, minlength=5)[:3]) == [3, 3, 3]


@pytest.mark.parametrize("most", [1, 5])
def test_no_rows_need_no_owner(most: int) -> None:
    for link in (SlotLink(counts=np.ones((1, 3))), DegreeLink(counts=np.ones(2), null_share=0.0)):
        found = draw_references(link, np.zeros(4, int), 2, 2, 2, most=most, rng=np.random.default_rng(0))
        assert (found == -1).all()
