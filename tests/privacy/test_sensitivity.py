"""Counts of rows up to a cap: every sensitivity that is claimed, against all tiny databases and their neighbours."""

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement, product
from math import log2
from typing import Any

import numpy as np
import pytest

from privbench.encode.coded import CodedTable
from privbench.methods.capped import row_histogram
from privbench.privacy import exact, features
from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.exact import COORDINATE
from privbench.privacy.features import whole_axis
from privbench.privacy.queries import ROW_SCORE, Counts, Dependence, Histogram, Sums

from ..opened import codes_of
from .brute import worst_moves
from .tiny import (
    COLUMNS,
    GONE,
    HALVES,
    cap_choice,
    database,
    databases_by_keys,
    databases_by_rows,
    degree_queries,
    engine_of,
    facts,
    families,
    key_queries,
    link,
    open_vault,
    owned_by_all,
    row_queries,
    whole,
    without,
)

CAPS = [
    {"person": 1, "visit": 1, "note": 1},
    {"person": 1, "visit": 2, "note": 2},
    {"person": 1, "visit": 3, "note": 2},
]
OWNERS = [(1,), (0, 1), (1, 1), (0, 1, 1), (0, -1, 1), (0, 0, 1, 1)]
SIGNED = {"cluster sums", "cluster sums in a part", "notes about a visit", "guests per person", "bosses"}
SIGNED |= {"dependence", "dependence of few rows", "dependence in a part"}
SIGNED |= {"followers of a visit", "followers of a visit, up to 1"}
"""What an entity may lower."""


def slow(case: object) -> Any:
    return pytest.param(case, marks=pytest.mark.slow)


def by_keys(owners: list[tuple[int, ...]] = OWNERS) -> Iterator[dict[str, CodedTable]]:
    return (data for of in owners for data in databases_by_keys(of))


@pytest.mark.parametrize("caps", [slow(CAPS[0]), CAPS[1], slow(CAPS[2])], ids=str)
def test_counts_of_rows(caps: dict[str, int]) -> None:
    queries = row_queries(open_vault(None, caps))
    worst = worst_moves(families(databases_by_rows(), caps), queries)
    scores = {name for name in queries if "dependence" in name or "split" in name}
    assert {name: worst[name] for name in queries if name not in scores} == {
        name: queries[name].sensitivity for name in queries if name not in scores
    }
    assert all(worst[name] > 0 for name in scores if "part" not in name)
    assert queries["histogram"].sensitivity == caps["visit"]
    assert queries["cluster sums"].sensitivity == caps["visit"] * COORDINATE
    assert queries["notes"].sensitivity == caps["note"]


@pytest.mark.parametrize("caps", [CAPS[0], slow(CAPS[1])], ids=str)
def test_counts_of_keys(caps: dict[str, int]) -> None:
    queries = key_queries(open_vault(None, caps))
    worst = worst_moves(families(by_keys(), caps), queries)
    rare = {"followers of a visit, up to 1"}
    assert all(worst[name] == queries[name].sensitivity for name in queries if name not in rare), worst
    cap, notes = caps["visit"], caps["note"]
    assert (worst["slots of boss"], worst["slots of guest"], worst["notes per visit"]) == (1, cap, cap)
    assert worst["followers of a visit"] == 3 * cap
    assert worst["notes about a visit"] == cap + 2 * notes


@pytest.mark.parametrize("caps", CAPS[:2], ids=str)
def test_degrees_of_entities_whose_number_is_private(caps: dict[str, int]) -> None:
    queries = degree_queries(open_vault(None, caps))
    worst = worst_moves(families(by_keys(OWNERS[:5]), caps), queries)
    assert (worst["visits per person"], worst["bosses"]) == (1, 3)
    assert {name: query.sensitivity for name, query in queries.items()} == {
        "visits per person": 1,
        "guests per person": 1 + 2 * caps["visit"],
        "bosses": 3,
    }


@pytest.mark.parametrize(("table", "caps"), [("visit", {"person": 1}), ("note", {"person": 1, "visit": 2})])
def test_scores_of_caps_move_by_one_and_all_the_same_way(table: str, caps: dict[str, int]) -> None:
    choice = cap_choice(table)
    assert choice.monotone
    assert worst_moves(families(by_keys(), caps), {"cap": choice}) == {"cap": choice.sensitivity} == {"cap": 1}


def test_which_counts_are_additive() -> None:
    """`worst_moves` holds each to it: an entity lowers none of these counts."""
    vault = open_vault(None, CAPS[1])
    counted = {**row_queries(vault), **key_queries(vault), **degree_queries(vault)}
    signed = {name for name, query in counted.items() if not query.chooses and not query.additive}
    assert signed == SIGNED
    assert not counted["column split"].monotone


def test_counts_of_whole_tables_are_the_same_whatever_is_paid_with() -> None:
    epsilon, rho = (open_vault(None, CAPS[1], measure=m) for m in (PrivacyMeasure.EPSILON, PrivacyMeasure.RHO))
    more, less = ({**row_queries(vault), **key_queries(vault)} for vault in (epsilon, rho))
    assert {name: more[name].sensitivity for name in less} == {name: q.sensitivity for name, q in less.items()}
    assert {name for name in more if name not in less} == {name for name in more if name.endswith("in a part")}


def refused_queries() -> dict[str, Callable[[], object]]:
    """What an entity could move farther than a query of rows can say."""
    vault = open_vault(None, CAPS[1])
    visit, note = whole(vault, "visit"), whole(vault, "note")
    counted = features.in_degree(link("previous"), np.arange(4), cap=2)
    return {
        "one key of each entity": lambda: row_histogram(
            visit, whole_axis(features.in_degree(link("previous"), np.arange(4)))
        ),
        "keys to the owner": lambda: row_histogram(note, whole_axis(features.of_owner(counted, link("visit")))),
        "keys to the first visit": lambda: row_histogram(visit, whole_axis(features.of_first(counted, link("person")))),
        "sums by in-degree": lambda: Sums(block=visit, axes=(whole_axis(counted),), column="cost", size=3),
        "rows of another table": lambda: Histogram(table="note", axes=(), counts=Counts.ROWS, block=visit),
        "rows of no block": lambda: Histogram(table="visit", axes=(), counts=Counts.ROWS),
        "weights of a block": lambda: Histogram(table="visit", axes=(), block=visit),
    }


@pytest.mark.parametrize("name", refused_queries())
def test_what_an_entity_could_move_farther_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"visit|note"):
        refused_queries()[name]()


def test_why_rows_are_not_counted_by_the_in_degree_of_their_owner() -> None:
    """One key of a removed visit moves two notes of another's visit: twice what a key to the note itself would."""
    counted = features.of_owner(features.in_degree(link("previous"), np.arange(4), cap=2), link("visit"))
    data = database([{}, {}], [{"person": 0}, {"person": GONE, "previous": 0}], [{"visit": 0}] * 2)
    before, after = (codes_of(engine_of(d, CAPS[1]), "note", counted) for d in (data, without(data, GONE)))
    assert (before.tolist(), after.tolist()) == ([1, 1], [0, 0])


# -- dependence ----------------------------------------------------------------------------------------------------

MOST = 7
Table = tuple[int, ...]
"""The rows as cells 0..8 of a 3 x 3 table, ascending."""


def dependence(cells: Table) -> float:
    columns = [(np.array([c // 3 for c in cells], np.uint8), 3), (np.array([c % 3 for c in cells], np.uint8), 3)]
    left, right = (exact.count_entropy(*exact.joint_keys([column])) for column in columns)
    return exact.dependence(left, right, exact.count_entropy(*exact.joint_keys(columns)), len(cells))


@pytest.fixture(scope="module")
def dependences() -> dict[Table, float]:
    tables = (cells for rows in range(MOST + 1) for cells in combinations_with_replacement(range(9), rows))
    return {cells: dependence(cells) for cells in tables}


def changes(rows: int) -> Iterator[tuple[Table, Table]]:
    """All tables of so many rows, with each table that has one row less."""
    for cells in combinations_with_replacement(range(9), rows):
        for at in range(rows):
            yield cells, cells[:at] + cells[at + 1 :]


def last_bits(count: int) -> float:
    """What the last of `count` equal rows adds to the sum of c*log2(c)."""
    return count * log2(count) - (count - 1) * log2(count - 1) if count > 1 else 0.0


@pytest.mark.parametrize("rows", range(1, MOST + 1))
def test_one_row_moves_dependence_by_what_the_proof_says(dependences: dict[Table, float], rows: int) -> None:
    moves = [dependences[more] - dependences[less] for more, less in changes(rows)]
    most = max(last_bits(p) + last_bits(rows + 1 - p) for p in range(1, rows + 1))
    assert max(moves) == pytest.approx(last_bits(rows), abs=1e-9)
    assert min(moves) == pytest.approx(last_bits(rows) - most, abs=1e-9)
    assert max(map(abs, moves)) <= exact.dependence_bound(rows)


@pytest.mark.parametrize("bound", [MOST, 1000, 2**35])
def test_one_row_moves_the_integer_score_by_its_sensitivity(dependences: dict[Table, float], bound: int) -> None:
    units = {cells: exact.dependence_units(bits, bound) for cells, bits in dependences.items()}
    moves = [abs(units[more] - units[less]) for rows in range(1, MOST + 1) for more, less in changes(rows)]
    assert max(moves) <= ROW_SCORE
    if bound == MOST:
        assert max(moves) > 0.6 * ROW_SCORE


def test_an_entity_moves_the_integer_score_by_its_rows_times_that(dependences: dict[Table, float]) -> None:
    units = {cells: exact.dependence_units(bits, MOST) for cells, bits in dependences.items()}
    for more, less in changes(MOST):
        for fewer in {less[:at] + less[at + 1 :] for at in range(len(less))}:
            assert abs(units[more] - units[fewer]) <= 2 * ROW_SCORE


@pytest.mark.parametrize("rows", [10**3, 10**6])
def test_many_rows_attain_most_of_the_bound_and_floats_stay_within_a_unit(rows: int) -> None:
    same, half = np.zeros(rows, np.uint16), np.repeat(np.array([0, 1], np.uint16), [rows - 1, 1])

    def bits(left: np.ndarray, right: np.ndarray) -> float:
        parts = [[(left, 2)], [(right, 2)], [(left, 2), (right, 2)]]
        one, other, both = (exact.count_entropy(*exact.joint_keys(p)) for p in parts)
        return exact.dependence(one, other, both, len(left))

    move = bits(half, half) - bits(same[1:], same[1:])
    assert move == pytest.approx(last_bits(rows), abs=1e-6)
    assert 0.99 * exact.dependence_bound(rows) < move <= exact.dependence_bound(rows)
    assert exact.dependence_bound(rows) / 2**exact.SCORE_BITS > 1e-6


def test_dependence_of_nothing_and_of_one_row_is_zero() -> None:
    assert dependence(()) == dependence((4,)) == 0
    assert exact.dependence_units(0.0, 0) == 0


def test_keys_of_many_columns_do_not_overflow() -> None:
    codes = np.array([0, 65535, 65535, 1, 0], np.uint16)
    keys, bound = exact.joint_keys([(codes, 65536)] * 9)
    assert (keys < bound).all()
    assert len(np.unique(keys)) == 3
    assert exact.count_entropy(keys, bound) == pytest.approx(4)


# -- truncation ----------------------------------------------------------------------------------------------------


def kept(data: dict[str, CodedTable], cap: int) -> list[tuple[int, ...]]:
    coded = data["visit"]
    keep = exact.keep_rows(coded.entities, coded.codes, cap)
    return [tuple(int(c[at]) for c in (coded.entities, *coded.codes.values())) for at in np.flatnonzero(keep)]


@pytest.mark.parametrize("cap", [1, 2])
def test_removing_an_entity_changes_no_row_that_others_keep(cap: int) -> None:
    kinds = list(product((0, 1), range(3), range(2)))
    for rows in product(kinds, repeat=3):
        visits = [{"person": p, "cost": c, "kind": k} for p, c, k in rows]
        data = database([{}, {}], visits)
        before = [row for row in kept(data, cap) if row[0] != GONE]
        assert before == kept(without(data, GONE), cap)


@pytest.mark.parametrize("cap", [1, 2, 5])
def test_each_entity_keeps_as_many_rows_as_it_may(cap: int) -> None:
    rng = np.random.default_rng(5)
    entities = rng.integers(0, 40, 300)
    keep = exact.keep_rows(entities, {"a": rng.integers(0, 9, 300).astype(np.uint16)}, cap)
    assert (np.bincount(entities[keep], minlength=40) == np.minimum(np.bincount(entities, minlength=40), cap)).all()


def test_truncation_does_not_favour_the_first_rows() -> None:
    entities = np.repeat(np.arange(4000), 4)
    keep = exact.keep_rows(entities, {"a": np.random.default_rng(1).integers(0, 256, 16000).astype(np.uint8)}, 1)
    places = np.bincount(np.flatnonzero(keep) % 4, minlength=4)
    assert places.min() > 500


def test_rows_of_cut_owners_are_cut() -> None:
    caps = {"person": 1, "visit": 1, "note": 3}
    data = database([{}, {}], [{"person": GONE}] * 3, [{"visit": 0}, {"visit": 1}, {"visit": 2}])
    notes = row_histogram(whole(open_vault(None, caps), "note"))
    assert engine_of(data, caps).count([notes])[0].tolist() == [1]


def test_no_table_outgrows_the_bound_of_its_dependence() -> None:
    """Rows without an owner, where none should be, would make a table larger than its entities allow."""
    caps = {"person": 1, "visit": 2, "note": 1}
    block = whole(open_vault(None, caps), "visit")
    queries = [
        row_histogram(block),
        Dependence(block=block, split=HALVES, columns=COLUMNS["visit"], most_rows=facts().most_rows("visit", 2)),
    ]
    engine = engine_of(database([{}, {}], [{"person": 0}] + [{}] * 30), caps, owned_by_all(facts()))
    assert [found.tolist() for found in engine.count(queries)] == [[1], [0]]
