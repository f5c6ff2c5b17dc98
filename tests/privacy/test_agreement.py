"""Whether a column equals something is a function of the row's entity: an entity moves its cells by its weight."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from privbench.encode.coded import CodedDatabase, CodedTable
from privbench.privacy import weighted_counts
from privbench.privacy.agreement import compared, owners_values, ranks, rows_owned
from privbench.privacy.events import UNITS
from privbench.privacy.facts import ColumnFacts, Facts, TableFacts
from privbench.privacy.features import Feature, Own, whole_axis
from privbench.privacy.sealed_features import SealedFeatures

from .weighted_tiny import FACTS, TABLES, Database, all_databases, coded, neighbours_of

Compared = Callable[[CodedDatabase], NDArray[np.uint8]]
CLAIM = Feature(name="claim", size=3, ordered=False, source=Own("claim"))


def values(data: CodedDatabase, table: str) -> pa.Array:
    """The column of a table as it was read."""
    return pa.array(data[table].codes[TABLES[table]].astype(np.int16))


def rows_of(data: CodedDatabase, table: str, key: str) -> NDArray[np.uint8]:
    """Whether a column is the number of rows that name the row."""
    owned = rows_owned(data[key.partition(".")[0]].keys[key], len(data[table].entities))
    return compared(values(data, table), owned, plain=0)


def rank(data: CodedDatabase, table: str, key: str, first: int) -> NDArray[np.uint8]:
    return compared(values(data, table), ranks(data[table].keys[key], first=first), plain=first)


def copy(data: CodedDatabase, table: str, key: str, above: str) -> NDArray[np.uint8]:
    return compared(values(data, table), owners_values(data[table].keys[key], values(data, above)))


CLAIMS: dict[str, tuple[str, Compared]] = {
    "visits": ("person", lambda data: rows_of(data, "person", "visit.person")),
    "notes": ("visit", lambda data: rows_of(data, "visit", "note.visit")),
    "rank": ("visit", lambda data: rank(data, "visit", "visit.person", 1)),
    "rank from 0": ("note", lambda data: rank(data, "note", "note.visit", 0)),
    "copy": ("visit", lambda data: copy(data, "visit", "visit.person", "person")),
    "copy below": ("note", lambda data: copy(data, "note", "note.visit", "visit")),
}
THREE = Facts(
    entity=FACTS.entity,
    neighbours=FACTS.neighbours,
    tables={
        t: TableFacts(name=t, columns={"claim": ColumnFacts(size=3, ordered=False)}, rows=None, cap=None)
        for t in TABLES
    },
    links=(),
)


def sealed(rows: Database, table: str, claim: Compared) -> SealedFeatures:
    data = coded(rows)
    codes = {"claim": claim(data)}
    return SealedFeatures(THREE, {table: CodedTable(codes=codes, keys={}, entities=data[table].entities)})


def worst(claim: str, *, step: int) -> tuple[int, int, int]:
    """How far an entity moves the three cells in L1, and the lead of the first; how far it lowers a cell."""
    table, found = CLAIMS[claim]
    cells, leads, lowered = 0, 0, 0
    for rows in all_databases(step):
        before, *after = (sealed(d, table, found) for d in (rows, *neighbours_of(rows)))
        for other in after:
            one, two = (held.cells(table, [whole_axis(CLAIM)]) for held in (before, other))
            assert before.lead(table, CLAIM) == one[0] - one[1]
            cells = max(cells, int(np.abs(one - two).sum()))
            leads = max(leads, abs(before.lead(table, CLAIM) - other.lead(table, CLAIM)))
            lowered = max(lowered, int((two - one).max()))
    return cells, leads, lowered


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("step", [67, pytest.param(2, marks=pytest.mark.slow)])
def test_an_entity_moves_a_claim_by_its_weight(claim: str, step: int) -> None:
    """And only adds to them, which is why replacing costs twice its rho instead of four times."""
    assert worst(claim, step=step) == (UNITS, UNITS, 0)


def test_a_rank_among_all_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leak on purpose: the place in the table instead of among the owner's rows."""
    monkeypatch.setattr(weighted_counts, "place_in_group", lambda groups: np.arange(len(groups)))
    assert worst("rank", step=11)[0] > UNITS


def test_a_count_of_keys_of_others_is_caught() -> None:
    """A leak on purpose: guests are other entities' visits."""
    CLAIMS["guests"] = ("person", lambda data: rows_of(data, "person", "visit.guest"))
    try:
        assert worst("guests", step=11)[0] > UNITS
    finally:
        del CLAIMS["guests"]


def test_nulls_agree_with_nulls_alone() -> None:
    expected = owners_values(np.array([0, 1, 1, -1, -1]), pa.array(["x", None]))
    assert compared(pa.array(["x", None, "x", None, "x"]), expected).tolist() == [0, 2, 1, 2, 1]
    assert compared(pa.array([1, None], pa.int8()), ranks(np.array([-1, 0]), first=1)).tolist() == [1, 1]


@pytest.mark.parametrize(("kind", "plain"), [(pa.bool_(), False), (pa.uint8(), 0), (pa.int64(), 0), (pa.float32(), 0)])
def test_plain_numbers_stand_apart(kind: pa.DataType, plain: int) -> None:
    found = pa.array([0, 0, 1, 1, None]).cast(kind)
    expected = owners_values(np.arange(5), pa.array([0, 1, 1, 0, None]).cast(kind))
    assert compared(found, expected, plain=plain).tolist() == [2, 1, 0, 1, 2]


def test_a_long_text_is_not_repeated_for_every_row() -> None:
    """Whatever one entity's texts are, nothing overflows: an array of texts holds at most 2 GiB."""
    text = "x" * 10_000
    expected = owners_values(np.zeros(1000, np.int64), pa.array([text, "y"]))
    assert expected.nbytes < 100_000
    assert compared(pa.array([text, "y", "z", None] * 250), expected).tolist() == [0, 1, 1, 1] * 250
