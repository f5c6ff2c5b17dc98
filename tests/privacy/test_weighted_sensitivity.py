"""Every weighted count that the vault charges for, against all tiny databases and all their neighbours."""

import pytest

from privbench.privacy import sealed_features, weighted_counts
from privbench.privacy.events import UNITS
from privbench.privacy.features import Feature, NullKey, touches_of
from privbench.privacy.exact import keep_rows
from privbench.privacy.sealed_features import SealedFeatures

from . import weighted_tiny as tiny
from .weighted_tiny import PAIRS, SINGLES, all_databases, label, worst_moves, worst_scores

ALL = pytest.param(1, marks=pytest.mark.slow)
"""Every database; the fast tests take some of them."""


@pytest.mark.slow
@pytest.mark.parametrize("step", [7, ALL])
def test_histograms_of_one_feature_move_by_what_is_claimed(step: int) -> None:
    worst = worst_moves(all_databases(step), SINGLES)
    assert worst == {label(q): UNITS * touches_of(q[1]) for q in SINGLES}


@pytest.mark.slow
@pytest.mark.parametrize("step", [31, ALL])
def test_histograms_of_two_features_move_by_what_is_claimed(step: int) -> None:
    worst = worst_moves(all_databases(step), PAIRS)
    assert worst == {label(q): UNITS * touches_of(q[1]) for q in PAIRS}


@pytest.mark.slow
@pytest.mark.parametrize("step", [29, pytest.param(7, marks=pytest.mark.slow)])
def test_distances_from_public_tables_move_by_an_entity(step: int) -> None:
    worst = worst_scores(all_databases(step), PAIRS, seed=3)
    assert set(worst.values()) == {UNITS}


def test_features_that_count_keys_of_others_are_the_only_ones_that_cost_more() -> None:
    dear = {label(q): touches_of(q[1]) for q in SINGLES if touches_of(q[1]) > 1}
    assert set(dear.values()) == {3}
    assert all("#named" in name for name in dear)
    both = [q for q in PAIRS if all("#named" in f.name for f in q[1])]
    assert both
    assert {touches_of(q[1]) for q in both} == {5}


def test_the_weight_of_all_rows_moves_by_an_entity() -> None:
    worst = 0
    for rows in all_databases(23):
        before, *after = (SealedFeatures(tiny.FACTS, tiny.coded(d)) for d in (rows, *tiny.neighbours_of(rows)))
        for table in tiny.TABLES:
            worst = max(worst, *(abs(before.total(table) - other.total(table)) for other in after))
    assert worst == UNITS


# -- leaks built in on purpose -------------------------------------------------------------------------------------


def caught(questions: tuple[tiny.Question, ...] = SINGLES) -> bool:
    """Whether brute force finds more than is claimed."""
    try:
        worst_moves(all_databases(11), questions)
    except AssertionError:
        return True
    return False


def test_rows_that_all_weigh_an_entity_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted_counts, "row_weights", lambda *_: None)
    assert caught()


def test_named_rows_for_the_price_of_own_ones_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Feature, "touches", property(lambda _: 1))
    assert caught()


@pytest.mark.slow
def test_two_kinds_of_names_for_the_price_of_one_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiny, "touches_of", lambda found: max(f.touches for f in found))
    assert caught(PAIRS)
    assert not caught()


def test_all_keys_of_an_entity_counted_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted_counts, "one_key_each", lambda targets, _: targets)
    assert caught()


@pytest.mark.slow
def test_a_key_chosen_among_those_whose_row_is_there_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then that an entity is missing would change which key counts of each entity that names it."""

    def there(targets: weighted_counts.Integers, entities: weighted_counts.Integers) -> weighted_counts.Integers:
        held = targets >= 0
        return targets[held][keep_rows(entities[held], {}, 1)]

    monkeypatch.setattr(weighted_counts, "one_key_each", there)
    assert caught()


def test_ranks_among_the_rows_of_all_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted_counts, "place_in_group", lambda groups: weighted_counts.np.arange(len(groups)))
    assert caught()


def test_keys_to_missing_rows_that_count_as_null_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    find = SealedFeatures._find

    def leaky(self: SealedFeatures, table: str, feature: Feature) -> sealed_features.Codes:
        if isinstance(feature.source, NullKey):
            return (self._key(feature.source.link) < 0).astype("uint8")
        return find(self, table, feature)

    monkeypatch.setattr(SealedFeatures, "_find", leaky)
    assert caught()
