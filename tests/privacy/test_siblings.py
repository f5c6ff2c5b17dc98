"""Features of the first row of the same owner: right on an example, and an entity moves them by its weight at most."""

import numpy as np
import pytest

from privbench.privacy import weighted_counts
from privbench.privacy.events import UNITS
from privbench.privacy.features import Feature, of_first, of_owner, touches_of, whole_axis
from privbench.privacy.sealed_features import SealedFeatures

from . import weighted_tiny as tiny
from .weighted_tiny import FACTS, OF_TABLE, Question, Row, all_databases, coded, label, own, worst_moves, worst_scores

FIRSTS: dict[str, tuple[Feature, ...]] = {
    "visit": (of_first(own("visit")),),
    "note": (of_first(own("note")), of_owner(of_first(own("visit")))),
}
SINGLES: tuple[Question, ...] = tuple((t, (f,)) for t, found in FIRSTS.items() for f in found)
PAIRS: tuple[Question, ...] = tuple((t, (f, o)) for t, found in FIRSTS.items() for f in found for o in OF_TABLE[t])


@pytest.fixture(autouse=True)
def axes(monkeypatch: pytest.MonkeyPatch) -> None:
    for table, found in FIRSTS.items():
        for feature in found:
            monkeypatch.setitem(tiny.AXES, (table, feature.name), whole_axis(feature))


def test_codes_of_an_example() -> None:
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
    found = SealedFeatures(FACTS, coded(rows)).codes("visit", FIRSTS["visit"][0])
    assert found.tolist() == [2, 2, 2, 1, 0, 1, 2, 2]


def test_a_feature_of_first_rows_has_one_code_more_and_moves_by_an_entity() -> None:
    feature = of_first(own("visit"))
    assert (feature.name, feature.size, feature.apart, feature.touches) == ("#first cost", 3, True, 1)


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_histograms_move_by_what_is_claimed(step: int) -> None:
    worst = worst_moves(all_databases(step), SINGLES)
    assert worst == {label(q): UNITS * touches_of(q[1]) for q in SINGLES}


@pytest.mark.parametrize("step", [31, pytest.param(5, marks=pytest.mark.slow)])
def test_histograms_of_two_features_move_by_what_is_claimed(step: int) -> None:
    worst = worst_moves(all_databases(step), PAIRS)
    assert worst == {label(q): UNITS * touches_of(q[1]) for q in PAIRS}


@pytest.mark.slow
def test_distances_move_by_an_entity() -> None:
    assert set(worst_scores(all_databases(29), PAIRS, seed=3).values()) == {UNITS}


def test_the_first_row_of_anybody_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leak on purpose: the first row of the table instead of the owner's."""
    monkeypatch.setattr(weighted_counts, "first_of_group", lambda groups: np.where(np.arange(len(groups)) > 0, 0, -1))
    with pytest.raises(AssertionError, match="claimed"):
        worst_moves(all_databases(11), SINGLES)
