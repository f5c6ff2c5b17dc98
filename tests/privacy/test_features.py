"""Codes of features: right on a written example, and a function of the row's own entity on all tiny databases."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.encode.coded import CodedTable
from privbench.privacy import features, weighted_counts
from privbench.privacy.events import UNITS
from privbench.privacy.features import Feature, whole_axis
from privbench.privacy.sealed_features import SealedFeatures
from privbench.spn.fanouts import fanout_edges

from .weighted_tiny import EDGES, FACTS, LINKS, OF_TABLE, SINGLES, Database, Row, all_databases, cells, coded, own

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
    ("person", "#rows visit.person"): [1, 2],
    ("person", "#null person.boss"): [1, 0],
    ("person", "#in-degree person.boss"): [1, 0],
    ("person", "#in-degree visit.guest"): [1, 0],  # both guests are of q, of which one key counts
    ("visit", "#rows note.visit"): [2, 0, 1, 0],
    ("visit", "#null visit.person"): [0, 0, 1, 0],
    ("visit", "#key visit.town"): [1, 2, 0, 2],
    ("visit", "#owner age"): [0, 1, 2, 0],
    ("visit", "#owner #rows visit.person"): [2, 1, 3, 2],
    ("visit", "#rank"): [0, 0, 0, 1],
    ("visit", "#size"): [1, 0, 0, 1],
    ("visit", "#in-degree visit.previous"): [2, 1, 0, 0],
    ("note", "#owner cost"): [0, 0, 0],
    ("note", "#owner #owner age"): [0, 0, 2],
    ("note", "#rank"): [0, 1, 0],
    ("note", "#size"): [1, 1, 0],
}


@pytest.mark.parametrize(("table", "name"), EXPECTED)
def test_codes_of_an_example(table: str, name: str) -> None:
    feature = next(f for f in OF_TABLE[table] if f.name == name)
    assert SealedFeatures(FACTS, coded(EXAMPLE)).codes(table, feature).tolist() == EXPECTED[table, name]


def test_weights_of_an_example() -> None:
    sealed = SealedFeatures(FACTS, coded(EXAMPLE))
    found = sealed.cells("visit", [whole_axis(own("visit"))])
    assert found.tolist() == [UNITS // 2 + UNITS, UNITS + UNITS // 2]
    assert sealed.total("visit") == 3 * UNITS
    assert sealed.total("person") == 2 * UNITS


# -- a row's code is its own entity's affair -----------------------------------------------------------------------


def codes_by_row(rows: Database, table: str, feature: Feature) -> dict[str, int]:
    names = [row.name for row in rows if row.table == table]
    return dict(zip(names, SealedFeatures(FACTS, coded(rows)).codes(table, feature).tolist(), strict=True))


@pytest.mark.parametrize("step", [41, pytest.param(5, marks=pytest.mark.slow)])
def test_removing_an_entity_changes_the_code_of_no_other_or_of_one_that_it_named(step: int) -> None:
    changed = {(table, f[0].name): 0 for table, f in SINGLES}
    for rows in all_databases(step):
        for gone in dict.fromkeys(row.entity for row in rows):
            rest = [row for row in rows if row.entity != gone]
            for table, (feature,) in SINGLES:
                before, after = (codes_by_row(d, table, feature) for d in (rows, rest))
                moved = {row.entity for row in rest if row.table == table and before[row.name] != after[row.name]}
                assert len(moved) <= (feature.touches > 1), f"{table} {feature.name}"
                changed[table, feature.name] += len(moved)
    assert all((count > 0) == ("#named" in name) for (_, name), count in changed.items())


@pytest.mark.parametrize("table", OF_TABLE)
def test_codes_stay_below_the_size_of_their_feature(table: str) -> None:
    for rows in all_databases(37):
        sealed = SealedFeatures(FACTS, coded(rows))
        for feature in OF_TABLE[table]:
            assert sealed.codes(table, feature).max(initial=0) < feature.size, feature.name


# -- edges ---------------------------------------------------------------------------------------------------------


def test_empty_tables_count_nothing() -> None:
    sealed = SealedFeatures(FACTS, coded([Row(table="person", name="p", entity="p")]))
    for question in SINGLES:
        assert cells(sealed, question).sum() == (UNITS if question[0] == "person" else 0)
    nobody = SealedFeatures(FACTS, coded([]))
    assert all(cells(nobody, question).sum() == 0 for question in SINGLES)
    assert nobody.total("person") == 0


def test_a_key_to_a_missing_public_row_has_a_code_where_none_may_be_null() -> None:
    """`orphans: "null"` makes a NULL of it, also in a NOT NULL column: no error may tell that there is one."""
    link = replace(LINKS["visit.town"], nullable=False)
    feature = features.key_block(link, 2)
    sealed = SealedFeatures(FACTS, coded(EXAMPLE))
    assert feature.size == 2
    assert sealed.codes("visit", feature).tolist() == [1, 1, 0, 1]
    assert sealed.cells("visit", [whole_axis(feature)]).sum() == 3 * UNITS


def test_a_public_table_without_rows_leaves_one_code() -> None:
    for nullable in (False, True):
        feature = features.key_block(replace(LINKS["visit.town"], slots=0, nullable=nullable), 0)
        assert feature.size == whole_axis(feature).size == 1
        assert SealedFeatures(FACTS, coded(EXAMPLE[:3])).codes("visit", feature).tolist() == [0]


def test_a_feature_of_an_owner_touches_as_much_as_the_feature() -> None:
    named = features.named(LINKS["visit.previous"], EDGES)
    twice = features.of_owner(features.of_owner(named))
    assert named.touches == features.of_owner(named).touches == twice.touches == 3
    assert features.of_owner(own("visit")).touches == 1


def test_private_features_neither_print_nor_pickle() -> None:
    sealed = SealedFeatures(FACTS, coded(EXAMPLE))
    assert repr(sealed) == "<private features>"
    with pytest.raises(TypeError):
        pickle.dumps(sealed)


def test_an_owner_with_more_rows_than_there_are_bins_is_in_the_last() -> None:
    many = [Row(table="visit", name=f"v{at}", entity="p", keys={"person": "p"}) for at in range(9)]
    sealed = SealedFeatures(FACTS, coded([EXAMPLE[0], *many]))
    assert sealed.codes("person", features.fanout(LINKS["visit.person"], fanout_edges(3))).tolist() == [3]


# -- weights -------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 6), max_size=40))
def test_the_rows_of_an_entity_weigh_at_most_an_entity(entities: list[int]) -> None:
    found = np.array(entities, np.int64)
    weights = weighted_counts.row_weights(found, UNITS)
    if weights is None:
        weights = np.full(len(found), UNITS)
    sums = np.bincount(found, weights=weights, minlength=1)
    rows = np.bincount(found, minlength=1)
    assert (sums <= UNITS).all()
    assert (sums[rows > 0] > UNITS - rows[rows > 0]).all()


def test_more_rows_than_units_weigh_nothing() -> None:
    entities = np.zeros(UNITS + 1, np.int64)
    weights = weighted_counts.row_weights(entities, UNITS)
    assert weights is not None
    assert weights.max() == 0


def test_weights_are_added_up_exactly_whatever_their_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one go, floats would lose the last units of a sum beyond 2**53."""
    monkeypatch.setattr(weighted_counts, "CHUNK", 2)
    weights = np.array([2**52, 2**51 + 1, 2**52, 1, 2**52 - 1], np.int64)
    found = weighted_counts.weighted_histogram([(np.zeros(5, np.uint8), 2)], weights, UNITS)
    assert found.tolist() == [int(weights.sum()), 0]
    monkeypatch.setattr(weighted_counts, "CHUNK", 5)
    lost = weighted_counts.weighted_histogram([(np.zeros(5, np.uint8), 2)], weights, UNITS)
    assert lost[0] != weights.sum()


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 299)), max_size=30))
def test_histograms_are_sums_over_rows(rows: list[tuple[int, int, int]]) -> None:
    entities, few, many = (np.array([r[at] for r in rows], np.int64) for at in range(3))
    weights = weighted_counts.row_weights(entities, UNITS)
    columns = [(few.astype(np.uint8), 3), (many.astype(np.uint16), 300), (few.astype(np.uint8), 100)]
    found = weighted_counts.weighted_histogram(columns, weights, UNITS)
    expected = np.zeros((3, 300, 100), np.int64)
    for at, (_, a, b) in enumerate(rows):
        expected[a, b, a] += UNITS if weights is None else weights[at]
    assert np.array_equal(found, expected)


@given(st.lists(st.integers(-2, 3), max_size=20))
def test_places_are_counted_within_the_group(groups: list[int]) -> None:
    found = weighted_counts.place_in_group(np.array(groups, np.int64))
    assert found.tolist() == [groups[:at].count(g) if g >= 0 else 0 for at, g in enumerate(groups)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 5)), max_size=12), st.integers(0, 3))
def test_the_key_that_counts_of_an_entity_is_its_own_choice(rows: list[tuple[int, int]], gone: int) -> None:
    def chosen(of: list[tuple[int, int]]) -> list[int]:
        entities, targets = (np.array([r[at] for r in of], np.int64) for at in range(2))
        return weighted_counts.one_key_each(targets, entities).tolist()

    every = {e: chosen([r for r in rows if r[0] == e]) for e, _ in rows}
    assert all(len(keys) <= 1 for keys in every.values())
    assert sorted(chosen(rows)) == sorted(key for keys in every.values() for key in keys)
    rest = chosen([r for r in rows if r[0] != gone])
    assert sorted(rest) == sorted(key for e, keys in every.items() if e != gone for key in keys)


def test_coded_tables_of_the_examples_agree_on_their_rows() -> None:
    for rows in all_databases(101):
        for table in coded(rows).values():
            assert isinstance(table, CodedTable)
            assert {len(c) for c in (*table.codes.values(), *table.keys.values())} == {len(table.entities)}
