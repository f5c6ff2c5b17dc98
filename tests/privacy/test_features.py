"""Codes of features: right on a written example, and a function of the row's own entity on all tiny databases."""

import copy
import pickle
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.privacy import exact, features
from privbench.privacy.features import Axis, Feature, whole_axis
from privbench.privacy.queries import ENTITY_WEIGHT, Histogram, Pair, PairChoice
from privbench.spn.fanouts import fanout_edges
from privbench.spn.feature_names import (
    ACTIVITY,
    RANK,
    STRATUM,
    in_degree_column,
    key_column,
    null_column,
    own_column,
    owner_column,
    rows_column,
)

from .. import opened
from .weighted_tiny import (
    ACTIVITY as ACTIVE,
)
from .weighted_tiny import (
    EDGES,
    FIRSTS,
    LINKS,
    NOTE_OWNER,
    OF_TABLE,
    OWNER,
    SINGLES,
    TOTALS,
    Database,
    Row,
    all_databases,
    codes_of,
    engine_of,
    own,
    weights,
)

# -- a written example ---------------------------------------------------------------------------------------------

EXAMPLE = (
    Row(table="person", name="p", entity="p", code=1),
    Row(table="person", name="q", entity="q", keys={"boss": "p"}),
    Row(table="visit", name="a", entity="q", keys={"person": "q", "town": "1", "guest": "p"}),
    Row(table="visit", name="b", entity="p", code=1, keys={"person": "p", "previous": "a"}),
    Row(table="visit", name="c", entity="c", keys={"previous": "a", "town": "0"}),
    Row(table="visit", name="d", entity="q", code=1, keys={"person": "q", "previous": "b", "guest": "p"}),
    Row(table="note", name="x", entity="q", keys={"visit": "a"}),
    Row(table="note", name="y", entity="q", code=1, keys={"visit": "a"}),
    Row(table="note", name="z", entity="c", keys={"visit": "c"}),
)
EXPECTED: dict[tuple[str, str], list[int]] = {
    ("person", "age"): [1, 0],
    ("person", rows_column("visit.person")): [1, 2],
    ("person", null_column("person.boss")): [1, 0],
    ("person", in_degree_column("person.boss")): [1, 0],
    ("person", in_degree_column("visit.guest")): [1, 0],  # both guests are of q, of which one key counts
    ("person", ACTIVITY): [1, 4],  # the visit that nobody owns, and its note, are nobody's
    ("visit", owner_column(ACTIVITY)): [4, 1, 6, 4],
    ("visit", rows_column("note.visit")): [2, 0, 1, 0],
    ("visit", null_column("visit.person")): [0, 0, 1, 0],
    ("visit", own_column("visit.guest")): [0, 2, 2, 0],
    ("visit", key_column("visit.town")): [1, 2, 0, 2],
    ("visit", owner_column("age")): [0, 1, 2, 0],
    ("visit", owner_column(rows_column("visit.person"))): [2, 1, 3, 2],
    ("visit", RANK): [0, 0, 0, 1],
    ("visit", STRATUM): [1, 0, 0, 1],
    ("visit", in_degree_column("visit.previous")): [2, 1, 0, 0],
    ("note", owner_column("cost")): [0, 0, 0],
    ("note", owner_column(owner_column("age"))): [0, 0, 2],
    ("note", RANK): [0, 1, 0],
    ("note", STRATUM): [1, 1, 0],
}


@pytest.mark.parametrize(("table", "name"), EXPECTED)
def test_codes_of_an_example(table: str, name: str) -> None:
    feature = next(f for f in OF_TABLE[table] if f.name == name)
    assert codes_of(EXAMPLE, table, feature) == EXPECTED[table, name]


@pytest.mark.parametrize("first", [0, -1])
@pytest.mark.parametrize(("table", "name"), EXPECTED)
def test_bins_of_an_example(table: str, name: str, first: int) -> None:
    """Also of what owners have, which is put into bins before it comes to the rows; -1: rows that do not count."""
    feature = next(f for f in OF_TABLE[table] if f.name == name)
    bins = np.append(first, np.arange(1, feature.size) // 2)
    found = opened.bins_of(engine_of(EXAMPLE), table, Axis(feature, bins))
    assert found.tolist() == [int(bins[code]) for code in EXPECTED[table, name]]


def test_codes_of_first_rows() -> None:
    rows = (
        Row(table="person", name="p", entity="p"),
        Row(table="person", name="q", entity="q"),
        Row(table="visit", name="a", entity="q", code=1, keys={"person": "q"}),
        Row(table="visit", name="b", entity="p", keys={"person": "p"}),
        Row(table="visit", name="c", entity="c", code=1),
        Row(table="visit", name="d", entity="q", keys={"person": "q"}),
        Row(table="visit", name="e", entity="p", code=1, keys={"person": "p"}),
        Row(table="visit", name="f", entity="q", keys={"person": "q"}),
        Row(table="visit", name="g", entity="lost", code=1, keys={"person": "nobody"}),
        Row(table="visit", name="h", entity="lost", keys={"person": "nobody"}),
    )
    assert codes_of(rows, "visit", FIRSTS["visit"][0]) == [2, 2, 2, 1, 0, 1, 2, 2]


def test_weights_of_an_example() -> None:
    visits, all_visits, persons = engine_of(EXAMPLE).count(
        [weights("visit", OF_TABLE["visit"][0]), TOTALS["visit: all"], TOTALS["person: all"]]
    )
    half = ENTITY_WEIGHT // 2
    assert np.asarray(visits).tolist() == [half + ENTITY_WEIGHT, ENTITY_WEIGHT + half]
    assert (np.asarray(all_visits).tolist(), np.asarray(persons).tolist()) == ([3 * ENTITY_WEIGHT], [2 * ENTITY_WEIGHT])


def test_weights_in_proportion_of_an_example() -> None:
    """Of one engine, so that what is remembered of one number of rows is not taken for another's."""
    table, crossed = TOTALS["visit: all"], weights("visit", *OF_TABLE["visit"][:2])
    person = TOTALS["person: all"]
    engine = engine_of(EXAMPLE)
    for full_rows, visits, persons in ((1, 12, 8), (4, 4, 2), (2, 8, 4), (8, 2, 1), (1, 12, 8)):
        asked = [replace(query, full_rows=full_rows) for query in (table, crossed, person)]
        one, pairs, people = (np.asarray(cells) for cells in engine.count(asked))
        assert one.tolist() == [visits * ENTITY_WEIGHT // 4], full_rows
        assert pairs.sum() == one.sum()
        assert people.tolist() == [persons * ENTITY_WEIGHT // 4], full_rows


def test_a_pair_is_scored_by_the_rows_that_count_fully() -> None:
    first, second = (whole_axis(f) for f in OF_TABLE["visit"][:2])
    pair = Pair(first, second, np.zeros((2, second.size), np.int64), 0)
    engine = engine_of(EXAMPLE)
    for full_rows, weight in ((1, 3), (2, 2), (4, 1), (1, 3)):
        (scores,) = engine.count([PairChoice(table="visit", candidates=(pair,), full_rows=full_rows)])
        assert np.asarray(scores).tolist() == [weight * ENTITY_WEIGHT, 0]


def test_the_weight_of_all_rows_is_their_clipped_number() -> None:
    for rows in all_databases(37):
        visits = Counter(row.entity for row in rows if row.table == "visit")
        for full_rows in (2, 4):
            (cells,) = engine_of(rows).count([Histogram(table="visit", axes=(), full_rows=full_rows)])
            clipped = sum(min(number, full_rows) for number in visits.values())
            rounded = sum(visits.values())
            assert 0 <= clipped * ENTITY_WEIGHT // full_rows - int(np.asarray(cells)[0]) < max(rounded, 1)


def test_activity_is_the_number_of_rows_below() -> None:
    for rows in all_databases(37):
        owners = {row.name: row.keys.get({"visit": "person", "note": "visit"}.get(row.table, "")) for row in rows}
        below = Counter(owner for row in rows for owner in _owners(row.name, owners))
        wanted = {row.name: min(below[row.name], 5) for row in rows if row.table == "person"}
        assert codes_by_row(rows, "person", ACTIVE) == wanted


def _owners(name: str, owners: Mapping[str, str | None]) -> Iterator[str]:
    while (owner := owners.get(name)) is not None:
        yield owner
        name = owner


# -- a row's code is its own entity's affair -----------------------------------------------------------------------


def codes_by_row(rows: Database, table: str, feature: Feature) -> dict[str, int]:
    names = [row.name for row in rows if row.table == table]
    return dict(zip(names, codes_of(rows, table, feature), strict=True))


@pytest.mark.parametrize("step", [101, pytest.param(5, marks=pytest.mark.slow)])
def test_removing_an_entity_changes_the_code_of_no_other_or_of_one_that_it_referenced(step: int) -> None:
    asked = {name: (query.table, query.axes[0].feature) for name, query in SINGLES.items()}
    changed = dict.fromkeys(asked, 0)
    for rows in all_databases(step):
        for gone in dict.fromkeys(row.entity for row in rows):
            rest = [row for row in rows if row.entity != gone]
            for name, (table, feature) in asked.items():
                before, after = (codes_by_row(d, table, feature) for d in (rows, rest))
                moved = {row.entity for row in rest if row.table == table and before[row.name] != after[row.name]}
                assert len(moved) <= (feature.sensitivity_factor > 1), name
                changed[name] += len(moved)
    assert all((count > 0) == ("#in-degree" in name) for name, count in changed.items())


@pytest.mark.parametrize("table", OF_TABLE)
def test_codes_stay_below_the_size_of_their_feature(table: str) -> None:
    for rows in all_databases(37):
        for feature in OF_TABLE[table]:
            assert max(codes_of(rows, table, feature), default=0) < feature.size, feature.name


# -- edges ---------------------------------------------------------------------------------------------------------


def test_empty_tables_count_nothing() -> None:
    for rows, persons in (((), 0), ((Row(table="person", name="p", entity="p"),), ENTITY_WEIGHT)):
        asked = {**SINGLES, **TOTALS}
        for query, cells in zip(asked.values(), engine_of(rows).count(list(asked.values())), strict=True):
            assert np.asarray(cells).sum() == (persons if query.table == "person" else 0)


def test_a_key_to_a_missing_public_row_has_a_code_where_none_may_be_null() -> None:
    """`orphans: "null"` makes a NULL of it, also in a NOT NULL column: no error may tell that there is one."""
    feature = features.key_block(replace(LINKS["visit.town"], nullable=False), 2)
    assert feature.size == 2
    assert codes_of(EXAMPLE, "visit", feature) == [1, 1, 0, 1]
    (cells,) = engine_of(EXAMPLE).count([Histogram(table="visit", axes=(whole_axis(feature),))])
    assert np.asarray(cells).sum() == 3 * ENTITY_WEIGHT


def test_a_public_table_without_rows_leaves_one_code() -> None:
    for nullable in (False, True):
        feature = features.key_block(replace(LINKS["visit.town"], slots=0, nullable=nullable), 0)
        assert feature.size == whole_axis(feature).size == 1
        assert codes_of(EXAMPLE[:3], "visit", feature) == [0]


def test_a_feature_of_an_owner_moves_as_far_as_the_feature() -> None:
    counted = features.in_degree(LINKS["visit.previous"], EDGES)
    above = features.of_owner(counted, NOTE_OWNER)
    assert counted.in_degree is above.in_degree is features.of_owner(above, NOTE_OWNER).in_degree is counted.source
    assert (
        counted.sensitivity_factor
        == above.sensitivity_factor
        == features.of_first(above, NOTE_OWNER).sensitivity_factor
        == 3
    )
    assert features.of_owner(own("visit"), NOTE_OWNER).sensitivity_factor == 1


@pytest.mark.parametrize("leave", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_private_rows_neither_print_nor_leave(leave: object) -> None:
    engine = engine_of(EXAMPLE)
    assert repr(engine) == "<private tables>"
    with pytest.raises(TypeError, match="cannot be pickled"):
        leave(engine)  # type: ignore[operator]


def test_an_owner_with_more_rows_than_there_are_bins_is_in_the_last() -> None:
    many = [Row(table="visit", name=f"v{at}", entity="p", keys={"person": "p"}) for at in range(9)]
    assert codes_of([EXAMPLE[0], *many], "person", features.fanout(OWNER, fanout_edges(3))) == [3]


def test_rows_of_a_bin_that_is_left_out_are_not_counted() -> None:
    only = features.Axis(OF_TABLE["visit"][2], np.array([-1, 0]))  # visits without owner
    cells, crossed = engine_of(EXAMPLE).count(
        [Histogram(table="visit", axes=(only,)), Histogram(table="visit", axes=(only, whole_axis(own("visit"))))]
    )
    assert np.asarray(cells).tolist() == [ENTITY_WEIGHT]
    assert np.asarray(crossed).tolist() == [[ENTITY_WEIGHT, 0]]


# -- weights -------------------------------------------------------------------------------------------------------


FULL_ROWS = st.integers(0, 13).map(lambda exponent: 2**exponent)


@given(st.lists(st.integers(0, 6), max_size=40), FULL_ROWS)
def test_the_rows_of_an_entity_weigh_at_most_an_entity(entities: list[int], full_rows: int) -> None:
    """In proportion to its rows up to `full_rows`, exactly; from there on an entity but for what is rounded down."""
    found = np.array(entities, np.int64)
    weights = exact.row_weights(found, ENTITY_WEIGHT, full_rows)
    if weights is None:
        weights = np.full(len(found), ENTITY_WEIGHT)
    sums = np.bincount(found, weights=weights, minlength=1).astype(np.int64)
    rows = np.bincount(found, minlength=1)
    assert (sums <= ENTITY_WEIGHT).all()
    few = rows <= full_rows
    assert (sums[few] * full_rows == ENTITY_WEIGHT * rows[few]).all()
    assert (sums[~few] > ENTITY_WEIGHT - rows[~few]).all()


@pytest.mark.parametrize("full_rows", [1, 2**13])
def test_more_rows_than_units_weigh_nothing(full_rows: int) -> None:
    entities = np.zeros(ENTITY_WEIGHT + 1, np.int64)
    weights = exact.row_weights(entities, ENTITY_WEIGHT, full_rows)
    assert weights is not None
    assert weights.max() == 0


def test_weights_are_added_up_exactly_whatever_their_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one go, floats would lose the last units of a sum beyond 2**53."""
    monkeypatch.setattr(exact, "CACHED", 2)
    weights = np.array([2**52, 2**51 + 1, 2**52, 1, 2**52 - 1], np.int64)
    found = exact.weighted_histogram([(np.zeros(5, np.uint8), 1)], weights, ENTITY_WEIGHT)
    assert found.tolist() == [int(weights.sum())]
    monkeypatch.setattr(exact, "CACHED", 5)
    lost = exact.weighted_histogram([(np.zeros(5, np.uint8), 1)], weights, ENTITY_WEIGHT)
    assert lost[0] != weights.sum()


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 299)), max_size=30))
def test_histograms_are_sums_over_rows(rows: list[tuple[int, int, int]]) -> None:
    entities, few, many = (np.array([r[at] for r in rows], np.int64) for at in range(3))
    weights = exact.row_weights(entities, ENTITY_WEIGHT, 1)
    columns = [(few.astype(np.uint8), 3), (many.astype(np.uint16), 300), (few.astype(np.uint8), 100)]
    found = exact.weighted_histogram(columns, weights, ENTITY_WEIGHT)
    expected = np.zeros((3, 300, 100), np.int64)
    for at, (_, a, b) in enumerate(rows):
        expected[a, b, a] += ENTITY_WEIGHT if weights is None else weights[at]
    assert np.array_equal(found, expected)


@given(st.lists(st.integers(-2, 3), max_size=20), st.booleans())
def test_places_are_counted_within_the_group(groups: list[int], ascending: bool) -> None:
    groups = sorted(groups) if ascending else groups
    found = exact.place_in_group(np.array(groups, np.int32))
    assert found.tolist() == [groups[:at].count(g) if g >= 0 else 0 for at, g in enumerate(groups)]
    firsts = exact.first_of_group(np.array(groups, np.int32))
    assert firsts.tolist() == [groups.index(g) if g >= 0 and g in groups[:at] else -1 for at, g in enumerate(groups)]


@given(st.lists(st.integers(-2, 8), max_size=20), st.integers(1, 9))
def test_blocks_of_keys_are_runs_of_slots(targets: list[int], blocks: int) -> None:
    """Whether there are more keys, so that the blocks of slots are listed first, or more slots."""
    found = exact.key_blocks(np.array(targets, np.int32), 9, blocks)
    assert found.tolist() == [target * blocks // 9 if target >= 0 else blocks for target in targets]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 5)), max_size=12), st.integers(0, 3))
def test_the_key_that_counts_of_an_entity_is_its_own_choice(rows: list[tuple[int, int]], gone: int) -> None:
    def chosen(of: list[tuple[int, int]]) -> list[int]:
        entities, targets = (np.array([r[at] for r in of], np.int64) for at in range(2))
        return exact.one_key_each(targets, entities).tolist()

    every = {e: chosen([r for r in rows if r[0] == e]) for e, _ in rows}
    assert all(len(keys) <= 1 for keys in every.values())
    assert sorted(chosen(rows)) == sorted(key for keys in every.values() for key in keys)
    rest = chosen([r for r in rows if r[0] != gone])
    assert sorted(rest) == sorted(key for e, keys in every.items() if e != gone for key in keys)


@given(st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 2), st.integers(0, 2**20)), max_size=30), st.booleans())
def test_compiled_loops_count_the_same(rows: list[tuple[int, int, int]], weighted: bool) -> None:
    compiled = pytest.importorskip("privbench.privacy.compiled", reason="the extra `fast` is not installed")
    a, b, weights = np.array(rows, np.int64).reshape(-1, 3).T
    columns, weighed = [(a, 5), (b.astype(np.uint8), 3)], weights if weighted else None
    plain = exact.weighted_histogram(columns, weighed, 7)
    assert np.array_equal(plain, exact.weighted_histogram(columns, weighed, 7, add=compiled.add_up))
