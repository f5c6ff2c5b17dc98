"""Every sensitivity that the vault charges, against all tiny databases and all their neighbours."""

from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from math import log2

import numpy as np
import pytest

from privbench.encode.coded import CodedTable
from privbench.privacy import queries
from privbench.privacy.exact import COORDINATE
from privbench.schema.unit import Neighbours

from .tiny import (
    BOTH,
    DEGREE_QUERIES,
    GONE,
    KEY_QUERIES,
    ONE,
    ROW_QUERIES,
    Silence,
    database,
    databases_by_keys,
    databases_by_rows,
    facts,
    open_vault,
    with_strays,
    without,
    worst_change,
)

CAPS = [
    {"person": 1, "visit": 1, "note": 1},
    {"person": 1, "visit": 2, "note": 2},
    {"person": 1, "visit": 3, "note": 2},
]
OWNERS = [(1,), (0, 1), (1, 1), (0, 1, 1), (0, -1, 1), (0, 0, 1, 1)]


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> Silence:
    return Silence(monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("caps", CAPS, ids=str)
def test_counts_of_rows(silence: Silence, caps: dict[str, int]) -> None:
    worst = worst_change(silence, databases_by_rows(), ROW_QUERIES, caps)
    cap = caps["visit"]
    for name in ("size", "histogram", "histogram in a part", "cluster sizes", "cluster histograms"):
        assert worst[name] == (cap, cap), name
    assert worst["cluster sums"] == (cap * COORDINATE, cap * COORDINATE)
    assert worst["notes"][0] == worst["notes"][1] == caps["note"]


@pytest.mark.slow
@pytest.mark.parametrize("caps", CAPS[:2], ids=str)
def test_counts_of_keys(silence: Silence, caps: dict[str, int]) -> None:
    databases = (data for owners in OWNERS for data in databases_by_keys(owners))
    worst = worst_change(silence, databases, KEY_QUERIES, caps)
    cap, notes = caps["visit"], caps["note"]
    for name in ("slots of person", "slots of guest", "slots of town", "null guests", "null previous"):
        assert worst[name] == (cap, cap), name
    assert worst["slots of boss"] == (1, 1)
    assert worst["notes per visit"] == (cap, cap)
    assert worst["followers of a visit"] == (3 * cap, 3 * cap)
    assert worst["notes about a visit"] == (cap + 2 * notes, cap + 2 * notes)


@pytest.mark.slow
@pytest.mark.parametrize("caps", CAPS[:2], ids=str)
def test_degrees_of_entities_whose_number_is_private(silence: Silence, caps: dict[str, int]) -> None:
    public = facts(Neighbours.ADD_REMOVE)
    databases = (data for owners in OWNERS[:5] for data in databases_by_keys(owners))
    worst = worst_change(silence, databases, DEGREE_QUERIES, caps, public)
    cap = caps["visit"]
    assert worst["visits per person"] == (1, 1)
    assert worst["guests per person"][1] == 1 + 2 * cap
    assert worst["bosses"] == (3, 3)


@pytest.mark.slow
def test_scores_of_caps_move_by_one_and_all_the_same_way(silence: Silence) -> None:
    caps, penalties = [1, 2, 3], [0, 1, 2]
    ask = {"cap": lambda v: v.choose_cap("visit", caps, penalties, scope=v.ledger.root, epsilon=ONE)}
    databases = (data for owners in OWNERS for data in databases_by_keys(owners))
    assert worst_change(silence, databases, ask, {"person": 1})["cap"] == (1, 1)
    vault = open_vault(database([{}, {}], [{"person": GONE}] * 3), {"person": 1})
    assert silence.ask(vault, ask["cap"]).monotone


def test_a_choice_of_columns_is_charged_as_not_monotone(silence: Silence) -> None:
    vault = open_vault(database([{}, {}], [{"person": GONE}]), CAPS[0])
    assert not silence.ask(vault, ROW_QUERIES["column split"]).monotone


# -- dependence ----------------------------------------------------------------------------------------------------

MOST = 7
Table = tuple[int, ...]
"""The rows as cells 0..8 of a 3 x 3 table, ascending."""


def dependence(cells: Table) -> float:
    columns = [(np.array([c // 3 for c in cells], np.uint8), 3), (np.array([c % 3 for c in cells], np.uint8), 3)]
    left, right = (queries.count_entropy(*queries.joint_keys([column])) for column in columns)
    return queries.dependence(left, right, queries.count_entropy(*queries.joint_keys(columns)), len(cells))


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
    assert max(map(abs, moves)) <= queries.dependence_bound(rows)


@pytest.mark.parametrize("bound", [MOST, 1000, 2**35])
def test_one_row_moves_the_integer_score_by_its_sensitivity(dependences: dict[Table, float], bound: int) -> None:
    units = {cells: queries.dependence_units(bits, bound) for cells, bits in dependences.items()}
    moves = [abs(units[more] - units[less]) for rows in range(1, MOST + 1) for more, less in changes(rows)]
    assert max(moves) <= queries.dependence_sensitivity(1)
    if bound == MOST:
        assert max(moves) > 0.6 * queries.dependence_sensitivity(1)


@pytest.mark.slow
def test_an_entity_moves_the_integer_score_by_its_rows_times_that(dependences: dict[Table, float]) -> None:
    units = {cells: queries.dependence_units(bits, MOST) for cells, bits in dependences.items()}
    for more, less in changes(MOST):
        for fewer in {less[:at] + less[at + 1 :] for at in range(len(less))}:
            assert abs(units[more] - units[fewer]) <= queries.dependence_sensitivity(2)


@pytest.mark.parametrize("rows", [10**3, 10**6])
def test_many_rows_attain_most_of_the_bound_and_floats_stay_within_a_unit(rows: int) -> None:
    same, half = np.zeros(rows, np.uint16), np.repeat(np.array([0, 1], np.uint16), [rows - 1, 1])

    def bits(left: np.ndarray, right: np.ndarray) -> float:
        parts = [[(left, 2)], [(right, 2)], [(left, 2), (right, 2)]]
        one, other, both = (queries.count_entropy(*queries.joint_keys(p)) for p in parts)
        return queries.dependence(one, other, both, len(left))

    move = bits(half, half) - bits(same[1:], same[1:])
    assert move == pytest.approx(last_bits(rows), abs=1e-6)
    assert 0.99 * queries.dependence_bound(rows) < move <= queries.dependence_bound(rows)
    assert queries.dependence_bound(rows) / 2**queries.BITS > 1e-6


def test_dependence_of_nothing_and_of_one_row_is_zero() -> None:
    assert dependence(()) == dependence((4,)) == 0
    assert queries.dependence_units(0.0, 0) == 0


def test_keys_of_many_columns_do_not_overflow() -> None:
    codes = np.array([0, 65535, 65535, 1, 0], np.uint16)
    keys, bound = queries.joint_keys([(codes, 65536)] * 9)
    assert (keys < bound).all()
    assert len(np.unique(keys)) == 3
    assert queries.count_entropy(keys, bound) == pytest.approx(4)


# -- truncation ----------------------------------------------------------------------------------------------------


def kept(data: dict[str, CodedTable], cap: int) -> list[tuple[int, ...]]:
    coded = data["visit"]
    keep = queries.keep_rows(coded.entities, coded.codes, cap)
    return [tuple(int(c[at]) for c in (coded.entities, *coded.codes.values())) for at in np.flatnonzero(keep)]


@pytest.mark.slow
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
    keep = queries.keep_rows(entities, {"a": rng.integers(0, 9, 300).astype(np.uint16)}, cap)
    assert (np.bincount(entities[keep], minlength=40) == np.minimum(np.bincount(entities, minlength=40), cap)).all()


def test_truncation_does_not_favour_the_first_rows() -> None:
    entities = np.repeat(np.arange(4000), 4)
    keep = queries.keep_rows(entities, {"a": np.random.default_rng(1).integers(0, 256, 16000).astype(np.uint8)}, 1)
    places = np.bincount(np.flatnonzero(keep) % 4, minlength=4)
    assert places.min() > 500


def test_rows_of_cut_owners_are_cut(silence: Silence) -> None:
    data = database([{}, {}], [{"person": GONE}] * 3, [{"visit": 0}, {"visit": 1}, {"visit": 2}])
    vault = open_vault(data, {"person": 1, "visit": 1, "note": 3})
    assert vault.size(vault.whole("note", vault.ledger.root), epsilon=ONE) == 1


def test_no_table_outgrows_the_bound_of_its_dependence(silence: Silence) -> None:
    """Rows without an owner, where none should be, would make a table larger than its entities allow."""
    data = database([{}, {}], [{"person": 0}] + [{}] * 30)
    vault = open_vault(data, {"person": 1, "visit": 2, "note": 1}, with_strays(facts()))
    assert vault.size(vault.whole("visit", vault.ledger.root), epsilon=ONE) == 1
    assert vault.dependence(vault.whole("visit", vault.ledger.root), ((BOTH[0],), (BOTH[1],)), epsilon=ONE) == 0
