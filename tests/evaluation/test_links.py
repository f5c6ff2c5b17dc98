from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.evaluation.databases import Side, open_pair
from privbench.evaluation.links import Linked, fanouts, find_parents
from privbench.evaluation.metrics import distance_metrics
from privbench.evaluation.result import Bin, BinKind
from privbench.methods.method import silent
from privbench.schema.tables import ForeignKey

from .conftest import REAL, SYNTHETIC, Make
from .slow import slow_distance

POSITIONS = st.lists(st.integers(-1, 6), max_size=80)


def bin_of(fanout: int) -> int:
    starts = [0, 1, 2, 3, 4, 5, 6, 8, 11, 16, 23, 32, 45, 64, 91]
    return max(at for at, start in enumerate(starts) if start <= fanout)


@given(POSITIONS, POSITIONS)
def test_fanouts_are_those_of_the_definition(real: list[int], other: list[int]) -> None:
    linked = Linked(real=np.array(real, int), other=np.array(other, int), real_parents=7, other_parents=8)
    found = fanouts(linked, distance_metrics())
    sides = []
    for positions, parents in ((real, 7), (other, 8)):
        children = Counter(positions)
        sides.append([bin_of(children[parent]) for parent in range(parents)])
    assert (found.distances["kld"], found.distances["tvd"]) == pytest.approx(slow_distance(*sides), abs=1e-9)
    counts = found.histogram.real
    assert sum(counts) == 7
    assert list(counts) == [sides[0].count(at) for at in range(len(counts))]


def test_fanouts_have_bounds() -> None:
    linked = Linked(real=np.zeros(7, int), other=np.zeros(0, int), real_parents=2, other_parents=2)
    bins = fanouts(linked, distance_metrics()).histogram.bins
    assert bins[0] == Bin(kind=BinKind.VALUE, low=0)
    assert bins[-1] == Bin(kind=BinKind.RANGE, low=6, high=None)


def test_no_parents_means_no_distance() -> None:
    none = np.zeros(0, int)
    found = fanouts(Linked(real=none, other=none, real_parents=0, other_parents=3), distance_metrics())
    assert np.isnan(found.distances["tvd"])
    assert sum(found.histogram.synthetic) == 3


def test_keys_become_positions(make: Make) -> None:
    script = """
        CREATE TABLE p (a INTEGER, b VARCHAR, PRIMARY KEY (a, b));
        INSERT INTO p VALUES (2, 'x'), (1, 'y'), (1, 'x');
        CREATE TABLE c (a BIGINT, b VARCHAR);
        INSERT INTO c VALUES (1, 'x'), (1, NULL), (2, 'x'), (9, 'x'), (1, 'y');
    """
    with open_pair(make("real", script), make("synthetic", SYNTHETIC), silent) as database:
        key = ForeignKey(columns=("a", "b"), table="p", references=("a", "b"))
        assert find_parents(database, Side.REAL, "c", key).tolist() == [2, -1, 0, -1, 1]


def test_an_integer_key_leads_to_the_first_of_several_rows(make: Make) -> None:
    script = """
        CREATE TABLE p (a INTEGER);
        INSERT INTO p VALUES (7), (NULL), (-3), (7), (-3);
        CREATE TABLE c (a BIGINT);
        INSERT INTO c VALUES (-3), (NULL), (7), (8), (-9223372036854775808), (0);
    """
    key = ForeignKey(columns=("a",), table="p", references=("a",))
    with open_pair(make("real", script), make("synthetic", SYNTHETIC), silent) as database:
        assert find_parents(database, Side.REAL, "c", key).tolist() == [2, -1, 0, -1, -1, -1]


def test_positions_come_in_row_order(make: Make) -> None:
    with open_pair(make("real", REAL), make("synthetic", SYNTHETIC), silent) as database:
        key = database.schemas[Side.REAL].table("sale").foreign_keys[0]
        wanted = [-1 if i % 11 == 0 else (i * i) % 60 for i in range(200)]
        assert find_parents(database, Side.REAL, "sale", key).tolist() == wanted
