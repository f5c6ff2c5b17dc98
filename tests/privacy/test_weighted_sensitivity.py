"""Counts in which every entity weighs the same: what is claimed, against all tiny databases and their neighbours."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from privbench.methods.tree.weighed import key_holders
from privbench.privacy import exact, features, part_counter
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.exact import NULL, Integers
from privbench.privacy.facts import LinkFacts
from privbench.privacy.feature_codes import FeatureCodes
from privbench.privacy.features import Base, Feature, InDegree, NullKey, OwnKey, whole_axis
from privbench.privacy.part_counter import PartCounter
from privbench.privacy.queries import (
    ENTITY_WEIGHT,
    Counts,
    Dependency,
    DependencyChoice,
    DependencyVotes,
    Histogram,
    Pair,
    PairChoice,
    Query,
)
from privbench.spn.feature_names import first_column

from ..opened import bins_of
from .brute import worst_moves
from .weighted_tiny import (
    ACTIVITY,
    AGREEMENTS,
    AXES,
    CANDIDATES,
    DEPENDENCIES,
    EDGES,
    FIRST_PAIRS,
    FIRSTS,
    HEAVY,
    KEY_HOLDERS,
    LINKS,
    NEAR,
    NOTE_OWNER,
    OF_TABLE,
    OTHERS,
    OTHERS_HOLDERS,
    OWN_ABOUT,
    OWN_BY,
    OWN_GUEST,
    OWNER,
    PAIRS,
    RAW_FEATURES,
    SINGLES,
    TOTALS,
    VOTES,
    VOTING,
    Row,
    all_databases,
    bundles,
    coded,
    codes_of,
    engine_of,
    families,
    own,
    singles,
    weights,
    with_full_rows,
    worst_scores,
)


def steps(fast: int, slow: int = 1) -> pytest.MarkDecorator:
    """Every so-manyth database: few of them fast, more or all of them slow."""
    return pytest.mark.parametrize("step", [fast, pytest.param(slow, marks=pytest.mark.slow)])


def _is_below(feature: Feature) -> bool:
    """Whether it is an in-degree of another row."""
    return feature.in_degree is not None and feature.source is not feature.in_degree


IN_DEGREES = singles({t: [f for f in found if isinstance(f.source, InDegree)] for t, found in OF_TABLE.items()})
AGREEING, NEARING, RAW = singles(AGREEMENTS), singles(NEAR), singles(RAW_FEATURES)


def assert_as_claimed(queries: Mapping[str, Query], step: int) -> None:
    """No entity moves an answer farther than the query says, and some entity moves each so far."""
    worst = worst_moves(families(all_databases(step)), queries)
    assert worst == {name: query.sensitivity for name, query in queries.items()}


@steps(17)
def test_histograms_of_one_feature_move_by_what_is_claimed(step: int) -> None:
    assert_as_claimed({**SINGLES, **TOTALS, **singles(FIRSTS)}, step)


@steps(31, 5)
def test_histograms_of_two_features_move_by_what_is_claimed(step: int) -> None:
    assert_as_claimed({**PAIRS, **FIRST_PAIRS}, step)


@pytest.mark.parametrize(("step", "of"), [(29, 9), pytest.param(11, 2, marks=pytest.mark.slow)])
def test_distances_from_public_tables_move_by_an_entity(step: int, of: int) -> None:
    asked = dict(list({**PAIRS, **FIRST_PAIRS}.items())[::of])
    assert set(worst_scores(all_databases(step), asked, seed=3).values()) == {ENTITY_WEIGHT}


@steps(43, 5)
def test_agreements_and_the_lead_of_a_dependency_move_by_an_entity(step: int) -> None:
    """And an entity only adds to the cells, which is why replacing costs twice their rho instead of four times."""
    assert_as_claimed({**AGREEING, **NEARING, **DEPENDENCIES}, step)


@steps(43, 5)
def test_columns_without_codes_move_by_an_entity_and_votes_by_one(step: int) -> None:
    assert_as_claimed({**RAW, **HEAVY, **VOTES}, step)
    assert {query.sensitivity for query in VOTES.values()} == {1}


@steps(23, 5)
def test_who_has_a_key_moves_by_one_vote(step: int) -> None:
    holders = {**KEY_HOLDERS, **OTHERS_HOLDERS}
    assert_as_claimed(holders, step)
    assert {(query.sensitivity, query.unit) for query in holders.values()} == {(1, 1)}


def test_an_entity_votes_once_however_many_of_its_keys_are_there() -> None:
    """A key to a row that is not there counts: it is not NULL. An entity all of whose keys are NULL has no vote."""
    rows = [
        Row(table="person", name="e", entity="e"),
        Row(table="visit", name="1", entity="e", keys={"person": "e", "guest": "e"}),
        Row(table="visit", name="2", entity="e", keys={"person": "e", "guest": "e"}),
        Row(table="visit", name="3", entity="e", keys={"person": "e"}),
        Row(table="visit", name="4", entity="f", keys={"guest": "nobody"}),
        Row(table="visit", name="5", entity="g"),
    ]
    guests = InDegree(LINKS["visit.guest"], EDGES)
    assert key_holders(guests).to_json() == KEY_HOLDERS["visit.guest: key holders"].to_json()
    votes = engine_of(rows).count([key_holders(guests), key_holders(replace(guests, above=(OWNER,)))])
    assert np.concatenate(votes).tolist() == [2, 1], (
        "keys to the row above are left out where in-degrees leave them out"
    )


def test_keys_to_the_row_above_are_told_from_others() -> None:
    """A key to a row that is not there, and any key of a row without owner, is one to another row."""
    rows = [
        Row(table="person", name="e", entity="e"),
        Row(table="person", name="f", entity="f"),
        Row(table="visit", name="1", entity="e", keys={"person": "e", "guest": "e"}),
        Row(table="visit", name="2", entity="e", keys={"person": "e", "guest": "f"}),
        Row(table="visit", name="3", entity="e", keys={"person": "e"}),
        Row(table="visit", name="4", entity="e", keys={"person": "e", "guest": "nobody"}),
        Row(table="visit", name="5", entity="5", keys={"guest": "e"}),
        Row(table="visit", name="6", entity="lost", keys={"person": "nobody", "guest": "nobody"}),
        Row(table="note", name="a", entity="e", keys={"visit": "2", "about": "2", "by": "e"}),
        Row(table="note", name="b", entity="e", keys={"visit": "2", "about": "1", "by": "f"}),
        Row(table="note", name="c", entity="5", keys={"visit": "5", "about": "5", "by": "e"}),
    ]
    assert codes_of(rows, "visit", OWN_GUEST) == [1, 0, 2, 0, 0, 0]
    assert codes_of(rows, "note", OWN_ABOUT) == [1, 0, 1]
    assert codes_of(rows, "note", OWN_BY) == [1, 0, 0]
    needed = features.own_key(replace(LINKS["visit.guest"], nullable=False), (OWNER,))
    assert (needed.size, codes_of(rows, "visit", needed)) == (2, [1, 0, 0, 0, 0, 0])


def test_in_degrees_leave_out_keys_to_the_row_above() -> None:
    rows = [
        Row(table="person", name="e", entity="e"),
        Row(table="person", name="f", entity="f"),
        *(Row(table="visit", name=f"{n}", entity="e", keys={"person": "e", "guest": "e"}) for n in range(5)),
        Row(table="visit", name="5", entity="e", keys={"person": "e", "guest": "f"}),
        Row(table="visit", name="6", entity="f", keys={"person": "f", "guest": "f"}),
    ]
    guests = features.in_degree(LINKS["visit.guest"], EDGES, above=(OWNER,))
    assert codes_of(rows, "person", guests) == [0, 1], "of e the one key to f counts, of f none"


@pytest.mark.parametrize("path", [(), (NOTE_OWNER,), (OWNER, NOTE_OWNER), (LINKS["visit.guest"],)])
def test_only_owner_keys_to_the_table_of_the_key_say_which_row_is_above(path: tuple[LinkFacts, ...]) -> None:
    with pytest.raises(ValueError, match=r"visit\.guest: .*(owner key)"):
        features.own_key(LINKS["visit.guest"], path)
    if path:
        with pytest.raises(ValueError, match=r"visit\.guest: .*(owner key)"):
            features.in_degree(LINKS["visit.guest"], EDGES, above=path)


# -- entities of few rows in proportion ----------------------------------------------------------------------------

MOST_ROWS = {"person": 1, "address": 1, "visit": 3, "note": 3}
"""The most rows that an entity of the small databases has in a table."""
SHARED_BELOW = {name for name, q in {**SINGLES, **PAIRS}.items() if any(_is_below(axis.feature) for axis in q.axes)}
"""Histograms by an in-degree of the owner row: all rows below it move with one key."""


def most_moved(query: Histogram) -> int:
    """What an entity of the small databases can move: its own rows in proportion, and rows of others for its keys."""
    whole = min(MOST_ROWS[query.table], query.full_rows)
    keys = query.sensitivity // ENTITY_WEIGHT - 1
    return (whole + keys) * ENTITY_WEIGHT // query.full_rows


@steps(17)
def test_histograms_in_proportion_move_by_no_more_than_is_claimed(step: int) -> None:
    """An entity of two rows or three weighs as much as without; one of a single row half of it."""
    asked = with_full_rows({**SINGLES, **TOTALS, **singles(FIRSTS)}, 2)
    worst = worst_moves(families(all_databases(step)), asked)
    expected = {name: most_moved(query) for name, query in asked.items() if name not in SHARED_BELOW}
    assert {name: worst[name] for name in expected} == expected
    assert ENTITY_WEIGHT in {expected[name] for name in singles(FIRSTS)}


@steps(17)
def test_entities_of_fewer_rows_than_count_fully_move_less(step: int) -> None:
    asked = {name: q for name, q in with_full_rows({**SINGLES, **TOTALS}, 4).items() if q.additive}
    worst = worst_moves(families(all_databases(step)), asked)
    assert worst == {name: MOST_ROWS[query.table] * ENTITY_WEIGHT // 4 for name, query in asked.items()}


def test_one_key_moves_all_rows_below_an_owner_however_few_rows_count_fully() -> None:
    """So that an in-degree costs as much whatever `full_rows` is: rows of another entity weigh up to an entity."""
    asked = with_full_rows({name: query for name, query in SINGLES.items() if name in SHARED_BELOW}, 2)
    (query,) = asked.values()
    (worst,) = worst_moves(families(all_databases(17)), asked).values()
    assert most_moved(query) == 2 * ENTITY_WEIGHT < worst <= query.sensitivity == 3 * ENTITY_WEIGHT


@steps(31, 5)
def test_pairs_of_features_in_proportion_move_by_what_is_claimed(step: int) -> None:
    asked = with_full_rows({**PAIRS, **FIRST_PAIRS}, 2)
    worst = worst_moves(families(all_databases(step)), asked)
    own_rows = [name for name, query in asked.items() if query.additive and MOST_ROWS[query.table] > 1]
    assert {worst[name] for name in own_rows} == {ENTITY_WEIGHT}


@steps(29, 11)
def test_distances_in_proportion_move_by_an_entity(step: int) -> None:
    asked = with_full_rows(dict(list({**PAIRS, **FIRST_PAIRS}.items())[::9]), 2)
    worst = worst_scores(all_databases(step), asked, seed=3)
    own_rows = [name for name, query in asked.items() if query.additive and MOST_ROWS[query.table] > 1]
    assert {worst[name] for name in own_rows} == {ENTITY_WEIGHT}


def test_in_degrees_are_the_only_features_that_cost_more_and_are_not_additive() -> None:
    every = {**SINGLES, **TOTALS, **singles(FIRSTS), **AGREEING, **NEARING, **RAW, **PAIRS}
    for name, query in every.items():
        counted = sum("in-degree" in str(axis.feature.to_json()) for axis in query.axes)
        assert query.sensitivity == (1 + 2 * counted) * ENTITY_WEIGHT, name
        assert query.additive == (not counted), name
    assert {query.sensitivity // ENTITY_WEIGHT for query in PAIRS.values()} == {1, 3, 5}


def test_an_agreement_is_led_by_what_it_equals() -> None:
    rows = next(rows for rows in all_databases(23) if len(rows) > 12)
    for table, found in AGREEMENTS.items():
        cells = [np.asarray(c) for c in engine_of(rows).count([weights(table, f) for f in found])]
        candidates = tuple(Dependency(table, feature) for feature in found)
        (scores,) = engine_of(rows).count([DependencyChoice(table="person", candidates=candidates, none=5)])
        assert np.asarray(scores).tolist() == [int(c[0] - c[1]) for c in cells] + [5]


def test_a_feature_of_first_rows_has_one_code_more_and_moves_by_an_entity() -> None:
    feature = features.of_first(own("visit"), OWNER)
    assert (feature.name, feature.size, feature.apart, feature.sensitivity_factor) == (first_column("cost"), 3, True, 1)


def test_public_rows_are_public_so_that_an_entity_moves_its_own_weight() -> None:
    """Their ids are public, and so is how often each is referenced: an entity may be another, not elsewhere."""
    people = [Row(table="person", name=f"p{at}", entity=f"p{at}", code=at % 2) for at in range(4)]
    link = {"table": "post", "columns": ["person"], "target": "person"}
    public = features.public_rows("#public post.person", link, np.array([0, 2, 0, 1], np.uint16))
    query = Histogram(table="person", axes=(whole_axis(public), whole_axis(own("person"))))
    (before,) = engine_of(people).count([query])
    assert np.asarray(before).tolist() == [[2 * ENTITY_WEIGHT, 0], [0, ENTITY_WEIGHT], [0, ENTITY_WEIGHT]]
    for at in range(4):
        changed = [*people[:at], replace(people[at], code=1 - people[at].code), *people[at + 1 :]]
        (after,) = engine_of(changed).count([query])
        assert int(np.abs(np.asarray(before) - np.asarray(after)).sum()) == 2 * query.sensitivity  # one left, one came


# -- what replacing an entity costs --------------------------------------------------------------------------------


@steps(9, 2)
def test_replacing_moves_additive_histograms_by_the_root_of_two(step: int) -> None:
    worst, found = dict.fromkeys(SINGLES, 0), list(bundles())
    for at in range(0, len(found), step):
        for others in OTHERS.values():
            other = found[(31 * at + 17) % len(found)]
            both = [engine_of([*others, *mine]).count(list(SINGLES.values())) for mine in (found[at], other)]
            for (name, query), before, after in zip(SINGLES.items(), *both, strict=True):
                square = int(((np.asarray(before) - np.asarray(after)) ** 2).sum())
                assert square <= (2 if query.additive else 4) * query.sensitivity**2, name
                worst[name] = max(worst[name], square)
    additive = [name for name, query in SINGLES.items() if query.additive]
    assert sum(worst[name] == 2 * ENTITY_WEIGHT**2 for name in additive) > len(additive) // 2
    assert max(worst.values()) > 2 * ENTITY_WEIGHT**2  # counting keys of others is not additive


# -- questions whose answer would move farther than a query can say ------------------------------------------------

CAPPED = features.in_degree(LINKS["visit.previous"], EDGES, cap=3)
"""Counts all keys of an entity: weights are calibrated for one."""
REFUSED: dict[str, Any] = {
    "weights by all keys of an entity": lambda: Histogram(table="visit", axes=(whole_axis(CAPPED),)),
    "weights by all keys to the owner": lambda: Histogram(
        table="note", axes=(whole_axis(features.of_owner(CAPPED, LINKS["note.visit"])),)
    ),
    "a pair with all keys of an entity": lambda: PairChoice(
        table="visit",
        candidates=(Pair(whole_axis(own("visit")), whole_axis(CAPPED), np.zeros((2, CAPPED.size), np.int64), 0),),
    ),
    "a vote on an in-degree": lambda: Dependency("visit", OF_TABLE["visit"][10]),
    "a vote on the dates of others": lambda: Base("came", (LINKS["visit.guest"],)),
    "a vote on dates of rows that are not above": lambda: Base("came", (OWNER, LINKS["note.visit"])),
    "a vote of another table": lambda: Dependency("person", NEAR["visit"][0]),
    "votes by an in-degree": lambda: Histogram(
        table="visit", axes=(whole_axis(OF_TABLE["visit"][10]),), counts=Counts.VOTES
    ),
    "votes by two bins": lambda: Histogram(table="visit", axes=(AXES[own_of("visit")],), counts=Counts.VOTES),
    "votes by nothing": lambda: Histogram(table="visit", axes=(), counts=Counts.VOTES),
    "child rows by a key that is no owner key": lambda: features.fanout(LINKS["visit.guest"], EDGES),
    "activity by a key that is no owner key": lambda: features.activity((OWNER, LINKS["note.about"]), EDGES),
    "activity of another table": lambda: Histogram(table="visit", axes=(whole_axis(ACTIVITY),)),
    "activity of the owner's table": lambda: Histogram(
        table="note", axes=(whole_axis(features.of_owner(ACTIVITY, NOTE_OWNER)),)
    ),
    "activity of nothing": lambda: activity_of("person"),
    "activity of rows that are not below": lambda: activity_of("person", NOTE_OWNER),
    "activity that counts rows twice": lambda: activity_of("person", OWNER, OWNER),
    "activity of rows that own themselves": lambda: activity_of("person", OWNER, replace(OWNER, table="person")),
    "activity of rows that own each other": lambda: activity_of(
        "person", OWNER, replace(OWNER, table="a", target="b"), replace(OWNER, table="b", target="a")
    ),
    **{
        f"weights from {rows} rows on": lambda rows=rows: Histogram(table="visit", axes=(), full_rows=rows)
        for rows in (-2, 0, 3, 12, 2**14)
    },
    "a pair from 3 rows on": lambda: PairChoice(table="visit", candidates=(), full_rows=3),
    "votes in proportion": lambda: Histogram(
        table="visit", axes=(AXES[RAW_FEATURES["visit"][3]],), counts=Counts.VOTES, full_rows=2
    ),
}


def activity_of(table: str, *links: LinkFacts) -> Histogram:
    return Histogram(table=table, axes=(whole_axis(features.activity(links, EDGES)),))


def own_of(table: str) -> Feature:
    return OF_TABLE[table][0]


@pytest.mark.parametrize("name", REFUSED)
def test_what_an_entity_could_move_farther_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"visit|note|came|person"):
        REFUSED[name]()


# -- leaks built in on purpose -------------------------------------------------------------------------------------


def caught(queries: Mapping[str, Query] = SINGLES, *, step: int = 11) -> bool:
    """Whether brute force finds more than is claimed."""
    try:
        worst_moves(families(all_databases(step)), queries)
    except AssertionError:
        return True
    return False


def test_rows_that_all_weigh_an_entity_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "row_weights", lambda *_: None)
    assert caught()


def test_weights_that_are_rounded_up_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of an entity thrice is more than an entity, if only by one unit."""

    def rounded(entities: Integers, units: int, full_rows: int) -> Integers:
        return -(-units // np.maximum(exact.rows_of_entity(entities), full_rows))

    monkeypatch.setattr(exact, "row_weights", rounded)
    assert caught(TOTALS)
    assert caught(with_full_rows(TOTALS, 2))


def test_rows_in_proportion_however_many_they_are_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def unlimited(entities: Integers, units: int, full_rows: int) -> Integers:
        return np.full(len(entities), units // full_rows)

    monkeypatch.setattr(exact, "row_weights", unlimited)
    assert caught(with_full_rows(TOTALS, 2))
    assert not caught(with_full_rows(TOTALS, 4))  # no entity of the small databases has more than three


def test_single_rows_that_weigh_an_entity_where_all_have_one_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the last entity of two rows would halve the weights of all others."""
    weigh = exact.row_weights

    def short_cut(entities: Integers, units: int, full_rows: int) -> Integers | None:
        alone = exact.rows_of_entity(entities).max(initial=1) == 1
        return None if alone else weigh(entities, units, full_rows)

    monkeypatch.setattr(exact, "row_weights", short_cut)
    assert not caught(TOTALS)
    assert caught(with_full_rows(TOTALS, 2))


def test_an_activity_that_counts_rows_of_references_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Visits of which a person is a guest are those of others."""
    rows_below = FeatureCodes._rows_below

    def with_guests(self: FeatureCodes, table: str, links: Sequence[LinkFacts]) -> Integers:
        guests = exact.degrees(self._key(LINKS["visit.guest"]), self._size(table)) if table == "person" else 0
        return rows_below(self, table, links) + guests

    monkeypatch.setattr(FeatureCodes, "_rows_below", with_guests)
    assert caught({name: query for name, query in SINGLES.items() if "#activity" in name})


def test_an_activity_that_gives_rows_without_owner_to_somebody_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """NULL is -1, which as a place means the last row of the table: that of whoever stands there."""
    key = FeatureCodes._key

    def last(self: FeatureCodes, link: LinkFacts) -> Integers:
        rows = self._size(link.target)
        return np.where(key(self, link) < 0, rows - 1, key(self, link))

    monkeypatch.setattr(FeatureCodes, "_key", last)
    assert caught(singles({"person": [ACTIVITY]}))


def test_in_degrees_for_the_price_of_own_features_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Feature, "in_degree", property(lambda _: None))
    assert caught()


def test_in_degrees_that_are_called_additive_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Histogram, "additive", True)
    with pytest.raises(AssertionError, match="not additive"):
        worst_moves(families(all_databases(11)), SINGLES)


def test_two_in_degrees_for_the_price_of_one_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def one(query: Histogram) -> int:
        return ENTITY_WEIGHT * max([1, *(axis.feature.sensitivity_factor for axis in query.axes)])

    monkeypatch.setattr(Histogram, "sensitivity", property(one))
    assert caught({name: query for name, query in PAIRS.items() if name.count("#in-degree") == 2})


def test_a_choice_of_pairs_with_in_degrees_for_the_price_of_own_features_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Pair, "sensitivity_factor", 1)
    with pytest.raises(AssertionError, match="a score moved by"):
        worst_scores(all_databases(29), {name: q for name, q in PAIRS.items() if "#in-degree" in name}, seed=3)


def test_all_keys_of_an_entity_counted_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "one_key_each", lambda targets, _: targets)
    assert caught()


def test_a_key_chosen_among_those_whose_row_is_there_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then that an entity is missing would change which key counts of each entity that references it."""

    def there(targets: Integers, entities: Integers) -> Integers:
        held = targets >= 0
        return targets[held][exact.keep_rows(entities[held], {}, 1)]

    monkeypatch.setattr(exact, "one_key_each", there)
    assert caught(IN_DEGREES, step=5)


def test_ranks_among_the_rows_of_all_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "place_in_group", lambda groups: np.arange(len(groups)))
    assert caught({name: query for name, query in SINGLES.items() if "#rank" in name})


def test_a_derived_rank_among_the_rows_of_all_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "place_in_group", lambda groups: np.arange(len(groups)))
    assert caught(AGREEING)


def test_votes_against_every_candidate_in_full_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each candidate by itself moves by an entity; all together by as many as there are candidates."""

    def unclipped(shares: Integers, _units: int) -> Integers:
        return np.asarray(shares.sum(axis=0))

    monkeypatch.setattr(exact, "shared_votes", unclipped)
    assert caught({"votes on all": VOTING["votes on all"]})
    assert not caught({"votes on 1": VOTING["votes on 1"]})


def test_votes_in_favour_besides_a_full_vote_against_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given against is not there any more to be given in favour."""

    def generous(shares: Integers, units: int) -> Integers:
        against = shares[:, :, 1] * units // np.maximum(shares[:, :, 1].sum(axis=1, keepdims=True), units)
        votes = shares // shares.shape[1]
        votes[:, :, 1] = against
        return np.asarray(votes.sum(axis=0))

    monkeypatch.setattr(exact, "shared_votes", generous)
    assert caught(VOTING)


def test_votes_that_are_rounded_up_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded(shares: Integers, units: int) -> Integers:
        against = np.zeros_like(shares)
        against[:, :, 1] = -(-shares[:, :, 1] * units // np.maximum(shares[:, :, 1].sum(axis=1, keepdims=True), units))
        return np.asarray(against.sum(axis=0))

    monkeypatch.setattr(exact, "shared_votes", rounded)
    assert caught(VOTING)


def test_dates_near_those_of_others_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guests are other entities: whether a visit is near the date of one changes when that one is gone."""
    key = FeatureCodes._key

    def guests(self: FeatureCodes, link: LinkFacts) -> Integers:
        return key(self, LINKS["visit.guest"] if link is OWNER else link)

    monkeypatch.setattr(FeatureCodes, "_key", guests)
    assert caught(singles({"visit": NEAR["visit"]}))


def test_dates_near_the_last_of_all_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def since_the_last(self: FeatureCodes, table: str, column: str, _base: Base) -> Any:
        days = self.days(table, column)
        return days - np.fmax.reduce(days, initial=-np.inf)

    monkeypatch.setattr(FeatureCodes, "differences", since_the_last)
    assert caught(NEARING)


def test_entities_that_agree_share_their_vote_evenly() -> None:
    """Each vote counts so many times fewer as there are candidates, so that what entities say can be worked out."""
    agree, differ = [ENTITY_WEIGHT, 0, 0], [0, ENTITY_WEIGHT, 0]
    shares = np.array([[agree, agree], [agree, differ], [differ, differ], [[0, 0, 0], agree]])
    half = ENTITY_WEIGHT // 2
    assert exact.shared_votes(shares, ENTITY_WEIGHT).tolist() == [[half, half, 0], [2 * half, 3 * half, 0]]


def test_votes_of_many_entities_are_worked_out_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = next(rows for rows in all_databases(23) if len(rows) > 12)
    query = DependencyVotes(table="person", candidates=CANDIDATES)
    (whole,) = engine_of(rows).count([query])
    monkeypatch.setattr(part_counter, "VOTERS", 2)
    (parts,) = engine_of(rows).count([query])
    assert np.array_equal(np.asarray(whole), np.asarray(parts))
    assert np.asarray(whole).shape == (len(CANDIDATES), 3)


def test_the_first_row_of_anybody_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "first_of_group", lambda groups: np.where(np.arange(len(groups)) > 0, 0, -1))
    assert caught(singles(FIRSTS))


def test_keys_to_missing_rows_that_count_as_null_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    find = FeatureCodes._key_codes

    def leaky(self: FeatureCodes, source: Any, table: str, size: int) -> Any:
        if isinstance(source, NullKey):
            return (self._key(source.link) < 0).astype("uint8")
        return find(self, source, table, size)

    monkeypatch.setattr(FeatureCodes, "_key_codes", leaky)
    assert caught()


@pytest.mark.parametrize("code", [1, 2])
def test_keys_to_missing_rows_that_count_as_own_or_null_are_caught(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    find = FeatureCodes._key_codes

    def leaky(self: FeatureCodes, source: Any, table: str, size: int) -> Any:
        codes = find(self, source, table, size)
        return np.where(self._key(source.link) < NULL, code, codes) if isinstance(source, OwnKey) else codes

    monkeypatch.setattr(FeatureCodes, "_key_codes", leaky)
    assert caught(singles({"visit": (OWN_GUEST,)}))
    assert caught(singles({"note": (OWN_ABOUT, OWN_BY)}))
    assert caught(OTHERS_HOLDERS)


def test_a_counted_key_among_those_to_rows_that_are_there_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then an entity that references e and others (f or h, by the hash) would count another key when e is gone."""
    guests = {"e": "f", "f": "eg", "h": "ge"}
    rows = [Row(table="person", name=name, entity=name) for name in "efgh"]
    rows += [
        Row(table="visit", name=f"{host} {guest}", entity=host, keys={"person": host, "guest": guest})
        for host, named in guests.items()
        for guest in named
    ]
    worst_moves(families([rows]), IN_DEGREES)

    def leaky(self: FeatureCodes, link: LinkFacts, above: Sequence[LinkFacts]) -> Any:
        key = self._key(link)
        return (key < NULL) | (key == self._rows_above(link.table, above))

    monkeypatch.setattr(FeatureCodes, "_is_own", leaky)
    with pytest.raises(AssertionError):
        worst_moves(families([rows]), IN_DEGREES)


def test_a_row_above_that_a_reference_leads_to_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guest of a note's visit is another entity."""
    key = FeatureCodes._key

    def guests(self: FeatureCodes, link: LinkFacts) -> Integers:
        return key(self, LINKS["visit.guest"] if link is OWNER else link)

    monkeypatch.setattr(FeatureCodes, "_key", guests)
    assert caught(singles({"note": (OWN_BY,)}))


def test_a_derived_count_of_keys_of_others_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guests are other entities' visits."""
    key = FeatureCodes._key

    def guests(self: FeatureCodes, link: LinkFacts) -> Integers:
        return key(self, LINKS["visit.guest"] if link is OWNER else link)

    monkeypatch.setattr(FeatureCodes, "_key", guests)
    assert caught(singles({"person": AGREEMENTS["person"]}))


def test_a_vote_for_each_row_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartCounter, "_votes", lambda _self, _table, rows: np.ones(len(rows), bool))
    assert caught(VOTES)


def test_votes_of_key_holders_by_rows_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    count = NumpyEngine.count

    def by_rows(self: NumpyEngine, queries: Sequence[Query]) -> Any:
        axes = [(q.table, axis) for q in queries if isinstance(q, Histogram) for axis in q.axes]
        assert len(axes) == len(count(self, queries))
        return [np.array([(bins_of(self, *asked) >= 0).sum()]) for asked in axes]

    monkeypatch.setattr(NumpyEngine, "count", by_rows)
    assert caught(KEY_HOLDERS)


def test_votes_on_keys_whose_row_is_there_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then who references an entity would lose its vote when that one goes."""

    def leaky(self: FeatureCodes, source: Any, _table: str, _size: int) -> Any:
        return (self._key(source.link) < 0).astype("uint8")

    monkeypatch.setattr(FeatureCodes, "_key_codes", leaky)
    assert caught(KEY_HOLDERS)


def test_coded_tables_of_the_examples_agree_on_their_rows() -> None:
    for rows in all_databases(101):
        for table in coded(rows).values():
            assert {len(c) for c in (*table.codes.values(), *table.keys.values())} == {len(table.entities)}
