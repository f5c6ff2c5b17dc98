"""Whether a column equals something is a function of the row's entity: an entity moves its two cells by its weight."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from privbench.encode.coded import CodedDatabase, CodedTable
from privbench.privacy import weighted_counts
from privbench.privacy.agreement import differs, owners_values, ranks, rows_owned
from privbench.privacy.events import UNITS
from privbench.privacy.facts import ColumnFacts, Facts, TableFacts
from privbench.privacy.features import Feature, Own, whole_axis
from privbench.privacy.sealed_features import SealedFeatures

from .weighted_tiny import FACTS, TABLES, Database, all_databases, coded, neighbours_of

Differs = Callable[[CodedDatabase], NDArray[np.uint8]]
DIFFERS = Feature(name="differs", size=2, ordered=False, source=Own("differs"))


def values(data: CodedDatabase, table: str) -> pa.Array:
    """The column of a table as it was read."""
    return pa.array(data[table].codes[TABLES[table]].astype(np.int16))


def rows_of(data: CodedDatabase, table: str, key: str) -> NDArray[np.uint8]:
    """Whether a column is not the number of rows that name the row."""
    return differs(values(data, table), rows_owned(data[key.partition(".")[0]].keys[key], len(data[table].entities)))


def rank(data: CodedDatabase, table: str, key: str, first: int) -> NDArray[np.uint8]:
    return differs(values(data, table), ranks(data[table].keys[key], first=first))


def copy(data: CodedDatabase, table: str, key: str, above: str) -> NDArray[np.uint8]:
    return differs(values(data, table), owners_values(data[table].keys[key], values(data, above)))


CLAIMS: dict[str, tuple[str, Differs]] = {
    "visits": ("person", lambda data: rows_of(data, "person", "visit.person")),
    "notes": ("visit", lambda data: rows_of(data, "visit", "note.visit")),
    "rank": ("visit", lambda data: rank(data, "visit", "visit.person", 1)),
    "rank from 0": ("note", lambda data: rank(data, "note", "note.visit", 0)),
    "copy": ("visit", lambda data: copy(data, "visit", "visit.person", "person")),
    "copy below": ("note", lambda data: copy(data, "note", "note.visit", "visit")),
}
TWO = Facts(
    entity=FACTS.entity,
    neighbours=FACTS.neighbours,
    tables={
        t: TableFacts(name=t, columns={"differs": ColumnFacts(size=2, ordered=False)}, rows=None, cap=None)
        for t in TABLES
    },
    links=(),
)


def sealed(rows: Database, table: str, differs: Differs) -> SealedFeatures:
    data = coded(rows)
    codes = {"differs": differs(data)}
    return SealedFeatures(TWO, {table: CodedTable(codes=codes, keys={}, entities=data[table].entities)})


def worst(claim: str, *, step: int) -> tuple[int, int]:
    """How far an entity moves the two cells in L1, and the lead of the first."""
    table, differs = CLAIMS[claim]
    cells, leads = 0, 0
    for rows in all_databases(step):
        before, *after = (sealed(d, table, differs) for d in (rows, *neighbours_of(rows)))
        for other in after:
            one, two = (found.cells(table, [whole_axis(DIFFERS)]) for found in (before, other))
            assert before.lead(table, DIFFERS) == one[0] - one[1]
            cells = max(cells, int(np.abs(one - two).sum()))
            leads = max(leads, abs(before.lead(table, DIFFERS) - other.lead(table, DIFFERS)))
    return cells, leads


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("step", [67, pytest.param(3, marks=pytest.mark.slow)])
def test_an_entity_moves_a_claim_by_its_weight(claim: str, step: int) -> None:
    assert worst(claim, step=step) == (UNITS, UNITS)


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
    assert differs(pa.array(["x", None, "x", None, "x"]), expected).tolist() == [0, 0, 1, 0, 1]
    assert differs(pa.array([1, None], pa.int8()), ranks(np.array([-1, 0]), first=1)).tolist() == [1, 1]


def test_a_long_text_is_not_repeated_for_every_row() -> None:
    """Whatever one entity's texts are, nothing overflows: an array of texts holds at most 2 GiB."""
    text = "x" * 10_000
    expected = owners_values(np.zeros(1000, np.int64), pa.array([text, "y"]))
    assert expected.nbytes < 100_000
    assert differs(pa.array([text, "y", "z", None] * 250), expected).tolist() == [0, 1, 1, 1] * 250
