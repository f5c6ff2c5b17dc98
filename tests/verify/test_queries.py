"""Every kind of query and feature: what follows from it is exactly what must be stated and paid for."""

import copy
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from privbench_verify.receipt import verify_receipt

from ..failing import assert_fails
from .receipts import (
    AFTER,
    CAP,
    GUEST,
    ITEM_OWNER,
    JOB,
    OWNER,
    PREVIOUS,
    PRIZE,
    TOWN,
    Asked,
    Json,
    W,
    axis,
    choice,
    events,
    good,
    histogram,
    rational,
)


def by(table: str, *axes: Json, counts: str = "weights", sensitivity: int = W, additive: bool = True) -> Asked:
    draws = 1
    for one in axes:
        draws *= one["bins"]
    query = histogram(table, *axes, counts=counts)
    return Asked(query=query, sensitivity=sensitivity, draws=draws, additive=additive)


def from_rows(full_rows: int, asked: Asked) -> Asked:
    """The same, with entities of fewer rows in proportion to them: it costs the same."""
    return replace(asked, query={**asked.query, "full_rows": full_rows})


def owner(feature: Json) -> Json:
    return {"bins": 5, "feature": {"kind": "owner", "feature": feature["feature"]}}


def first(feature: Json) -> Json:
    return {"bins": 5, "feature": {"kind": "first", "feature": feature["feature"]}}


def votes(*candidates: tuple[str, Json]) -> Json:
    """Votes on features of tables."""
    listed = [{"table": table, "feature": feature} for table, feature in candidates]
    return {"kind": "votes on dependencies", "table": "person", "candidates": listed}


GUESTS = axis("in-degree", link=GUEST)
AGE = axis("column", 9, column="age")
COST = axis("column", 6, column="cost")
FREE = ("epsilon",)

QUERIES: dict[str, Asked] = {
    "weight of all rows": by("item"),
    "a column": by("person", AGE),
    "a pair": by("person", AGE, axis("column", 2, column="sex")),
    "fanout": by("person", axis("fanout", link=OWNER)),
    "fanout of an owned table": by("visit", axis("fanout", link=ITEM_OWNER)),
    "activity": by("person", axis("activity")),
    "activity of an owned table": by("visit", axis("activity"), COST),
    "activity of the owner": by("visit", owner(axis("activity"))),
    "activity of the owner's owner": by("item", owner(owner(axis("activity")))),
    "activity of the first sibling": by("visit", first(axis("activity"))),
    "activity and an in-degree": by("person", axis("activity"), GUESTS, sensitivity=3 * W, additive=False),
    "rows by activity": by("visit", axis("activity"), counts="rows", sensitivity=CAP),
    "clipped number of rows": from_rows(2**13, by("item")),
    "a column from two rows on": from_rows(2, by("visit", COST)),
    "in-degree from two rows on": from_rows(
        2, by("visit", axis("in-degree", link=PREVIOUS), sensitivity=3 * W, additive=False)
    ),
    "in-degree": by("person", GUESTS, sensitivity=3 * W, additive=False),
    "two in-degrees": by("person", AGE, GUESTS, GUESTS, sensitivity=5 * W, additive=False),
    "in-degree of a self reference": by("visit", axis("in-degree", link=PREVIOUS), sensitivity=3 * W, additive=False),
    "in-degree of a lookup": by("job", axis("in-degree", link=JOB), sensitivity=3 * W, additive=False),
    "in-degree of a key inside": by("item", axis("in-degree", link=AFTER), axis("null key", 2, link=AFTER)),
    "in-degree of the owner": by("visit", owner(GUESTS), sensitivity=3 * W, additive=False),
    "in-degree of the first sibling": by(
        "visit", first(axis("in-degree", link=PREVIOUS)), sensitivity=3 * W, additive=False
    ),
    "null key": by("visit", axis("null key", 2, link=GUEST)),
    "own key": by("visit", axis("own key", 3, link=GUEST)),
    "own key of the owner": by("item", owner(axis("own key", 3, link=GUEST))),
    "votes of who has a key to others": by("visit", axis("own key", 1, link=GUEST), counts="votes", sensitivity=1),
    "null owner key": by("visit", axis("null key", 2, link=OWNER)),
    "null key into a lookup": by("person", axis("null key", 2, link=JOB)),
    "key block": by("person", axis("key block", link=TOWN)),
    "key slot by part": by("person", axis("part", 3), axis("key slot", 8, link=TOWN), counts="rows", sensitivity=1),
    "slots of entities": Asked(
        query=histogram("visit", axis("key slot", 121, link=GUEST), counts="rows"),
        sensitivity=CAP,
        draws=121,
        additive=True,
        neighbours=("replace",),
    ),
    "a column of the owner": by("visit", owner(AGE), COST),
    "a column of the owner's owner": by("item", owner(owner(AGE))),
    "a column of the first sibling": by("visit", first(COST), COST),
    "rank": by("visit", axis("rank")),
    "entity rows": by("visit", axis("entity rows")),
    "public rows": Asked(
        query=histogram("person", axis("public rows", link=PRIZE)),
        sensitivity=W,
        draws=4,
        additive=True,
        neighbours=("replace",),
    ),
    "step": by("person", axis("step", column="wage")),
    "cell": by("person", axis("cell", column="wage")),
    "magnitude again": by("person", axis("magnitude", column="wage")),
    "agreement with rows": by("person", axis("agreement", 3, column="visits", equals={"rows": "visit"})),
    "agreement with the owner": by("visit", axis("agreement", 3, column="x", equals={"owner": "age"})),
    "agreement with the rank": by("visit", axis("agreement", 3, column="x", equals={"rank": 1})),
    "nearness to the owner": by("visit", axis("nearness", 3, column="x", base={"column": "age", "owners": 1}, days=8)),
    "votes on dependencies": Asked(
        query=votes(
            ("person", {"kind": "agreement", "column": "visits", "equals": {"rows": "visit"}}),
            ("visit", {"kind": "agreement", "column": "x", "equals": {"rank": 1}}),
            ("item", {"kind": "nearness", "column": "x", "base": {"column": "age", "owners": 2}, "days": 64}),
            ("item", {"kind": "nearness", "column": "y", "base": {"column": "x", "owners": 0}, "days": 8}),
        ),
        sensitivity=W,
        draws=12,
        additive=True,
    ),
    "rows": by("visit", counts="rows", sensitivity=CAP),
    "rows by a column": by("visit", COST, counts="rows", sensitivity=CAP),
    "rows by fanout": by("person", axis("fanout", link=OWNER), counts="rows", sensitivity=1),
    "rows by in-degree": by("person", GUESTS, counts="rows", sensitivity=1 + 2 * CAP, additive=False),
    "rows by in-degree of their own table": by(
        "visit", axis("in-degree", link=PREVIOUS), counts="rows", sensitivity=CAP + 2 * CAP, additive=False
    ),
    "rows by two in-degrees": by("person", GUESTS, GUESTS, counts="rows", sensitivity=1 + 4 * CAP, additive=False),
    "rows by cluster": by("visit", axis("cluster", 2, columns=["cost", "age"]), counts="rows", sensitivity=CAP),
    "votes": by("visit", COST, counts="votes", sensitivity=1),
    "votes of who has a key": by("visit", axis("null key", 1, link=GUEST), counts="votes", sensitivity=1),
    "votes of who has a key inside": by("item", axis("null key", 1, link=AFTER), counts="votes", sensitivity=1),
    "sums": Asked(
        query={
            "kind": "sums",
            "table": "visit",
            "axes": [axis("cluster", 2, columns=["cost"])],
            "column": "cost",
        },
        sensitivity=256 * CAP,
        draws=2,
    ),
    "dependence": Asked(
        query={"kind": "dependence", "table": "visit", "left": ["cost"], "right": ["age"]}, sensitivity=1026 * CAP
    ),
    "heavy hitters by weight": Asked(
        query={"kind": "heavy hitters", "table": "person", "column": "wage", "counts": "weights", "values": 2**40},
        sensitivity=W,
        draws=2**40,
        additive=True,
        measures=FREE,
    ),
    "heavy hitters by votes": Asked(
        query={"kind": "heavy hitters", "table": "person", "column": "city", "counts": "votes"},
        sensitivity=1,
        additive=True,
        measures=("rho",),
    ),
    "choice of cap": Asked(query=choice("cap", "visit"), sensitivity=1, monotone=True),
    "choice of column split": Asked(query=choice("column split", "visit"), sensitivity=1026 * CAP),
    "choice of pair": Asked(query=choice("pair", "item"), sensitivity=W),
    "choice of dependency": Asked(query=choice("dependency", "visit"), sensitivity=W),
}

CASES = [
    pytest.param(asked, measure, neighbours, id=f"{name}, {measure}, {neighbours}")
    for name, asked in QUERIES.items()
    for measure in asked.measures
    for neighbours in asked.neighbours
]
HALVED = "is too small for"


@pytest.mark.parametrize(("asked", "measure", "neighbours"), CASES)
def test_an_honest_query_is_verified_and_costs_what_is_charged(asked: Asked, measure: str, neighbours: str) -> None:
    paper = good(asked, measure=measure, neighbours=neighbours)
    verdict = verify_receipt(paper)
    assert verdict.problems == ()
    assert verdict.status == "verified"


@pytest.mark.parametrize(("asked", "measure", "neighbours"), CASES)
def test_less_than_what_follows_from_the_query_fails(asked: Asked, measure: str, neighbours: str) -> None:
    def changed(message: str, **fields: Any) -> None:
        paper = good(asked, measure=measure, neighbours=neighbours)
        events(paper)[-1].update(fields)
        assert_fails(verify_receipt(paper), message)

    changed("but the query has", sensitivity=f"{asked.sensitivity - 1}/1")
    changed("but the query has", sensitivity=f"{asked.sensitivity + 1}/1")
    changed("but the query has", draws=asked.draws + 1)
    changed("but the query has", draws=True if asked.draws == 1 else asked.draws - 1)
    changed(HALVED, scale=rational(1024 * asked.sensitivity - Fraction(1, 100)))


def test_a_row_split_as_published_is_counted_and_never_verified() -> None:
    query = {"kind": "published row split", "table": "visit", "columns": ["cost", "age"], "rounds": 5}
    paper = good(Asked(query=query, sensitivity=512 * 2 * CAP, draws=5))
    assert_fails(verify_receipt(paper), "the receipt is not stamped")
    paper["stamp"] = "as published: the claim was not verified"
    assert verify_receipt(paper).status == "unverified"
    events(paper)[-1]["sensitivity"] = "1024/1"
    assert_fails(verify_receipt(paper), "but the query has 3072/1")


def wrong(name: str, **fields: Any) -> Json:
    """A query of the list with other fields."""
    return {**copy.deepcopy(QUERIES[name].query), **fields}


def one_axis(table: str, feature: Json, counts: str = "weights") -> Json:
    return histogram(table, {"bins": 4, "feature": feature}, counts=counts)


NONSENSE: dict[str, tuple[Json, str]] = {
    "no kind": ({"table": "person"}, "unknown kind of query"),
    "a kind that is no text": (wrong("rows", kind=["histogram"]), "unknown kind of query"),
    "an unknown kind": (wrong("rows", kind="median"), "unknown kind of query"),
    "an unknown field": (wrong("rows", monotone=True), "unknown field monotone"),
    "an unknown table": (wrong("rows", table="town"), "no table of the unit"),
    "a table that is no text": (wrong("rows", table=None), "not a text"),
    "other counts": (wrong("rows", counts="entities"), "not one of: rows, weights, votes"),
    "axes that are no list": (wrong("rows", axes={}), "is not a list"),
    "very many axes": (wrong("rows", axes=[AGE] * 65), "more than 64 axes"),
    "no bins": (wrong("rows", axes=[axis("rank", 0)]), "not a whole number from 1"),
    "bins that are true": (wrong("rows", axes=[axis("rank", True)]), "not a whole number from 1"),
    "an axis with more": (wrong("rows", axes=[{**COST, "width": 1}]), "unknown field width"),
    "an unknown feature": (one_axis("person", {"kind": "in-degree of"}), "unknown kind of feature"),
    "a feature with more": (one_axis("visit", {"kind": "rank", "link": OWNER}), "unknown field link"),
    "a column without domain": (one_axis("person", {"kind": "column", "column": "name"}), "has no domain"),
    "a column of another table": (one_axis("person", {"kind": "column", "column": "cost"}), "has no domain"),
    "clusters by a column without domain": (
        one_axis("person", {"kind": "cluster", "columns": ["age", "name"]}),
        "has no domain",
    ),
    "fanout of a reference": (one_axis("person", {"kind": "fanout", "link": GUEST}), "is no owner key to person"),
    "fanout to another table": (one_axis("visit", {"kind": "fanout", "link": OWNER}), "is no owner key to visit"),
    "fanout of a key into a lookup": (one_axis("job", {"kind": "fanout", "link": JOB}), "is no owner key to job"),
    "activity of a table that owns nothing": (
        one_axis("item", {"kind": "activity"}),
        "no rows are owned by rows of item",
    ),
    "activity of a lookup": (one_axis("job", {"kind": "activity"}), "no rows are owned by rows of job"),
    "activity below a table that owns nothing": (
        one_axis("item", {"kind": "first", "feature": {"kind": "activity"}}),
        "no rows are owned by rows of item",
    ),
    "own key to no table above": (
        one_axis("visit", {"kind": "own key", "link": PREVIOUS}),
        "leads to no table above visit",
    ),
    "own key of a lookup": (one_axis("person", {"kind": "own key", "link": JOB}), "leads to no table above person"),
    "own key of another table": (one_axis("person", {"kind": "own key", "link": GUEST}), "is no key of person"),
    "activity by a key": (one_axis("person", {"kind": "activity", "link": GUEST}), "unknown field link"),
    "votes on activity": (votes(("person", {"kind": "activity"})), "no vote on a feature"),
    **{
        f"from {rows!r} rows on": (wrong("a column", full_rows=rows), "not a whole number from 2 to 8192")
        for rows in (1, 0, -2, True, "2", None, 2**14)
    },
    "from 12 rows on": (wrong("a column", full_rows=12), "no power of two"),
    "rows in proportion": (wrong("rows", full_rows=2), "only weights can be in proportion"),
    "votes in proportion": (wrong("votes", full_rows=2), "only weights can be in proportion"),
    **{
        f"{name} in proportion": (wrong(name, full_rows=2), "unknown field full_rows")
        for name in ("sums", "choice of pair", "heavy hitters by weight", "votes on dependencies")
    },
    "in-degree of an owner key": (one_axis("person", {"kind": "in-degree", "link": OWNER}), "is no reference to"),
    "in-degree of another table": (one_axis("visit", {"kind": "in-degree", "link": GUEST}), "is no reference to"),
    "in-degree of a key that is not listed": (
        one_axis("person", {"kind": "in-degree", "link": {**GUEST, "columns": ["friend"]}}),
        "is no reference to",
    ),
    "in-degree of a public key": (one_axis("person", {"kind": "in-degree", "link": PRIZE}), "is no reference to"),
    "null key of another table": (one_axis("person", {"kind": "null key", "link": GUEST}), "is no key of person"),
    "votes on a key of another table": (
        one_axis("person", {"kind": "null key", "link": GUEST}, counts="votes"),
        "is no key of person",
    ),
    "key block of a key that is not listed": (
        one_axis("visit", {"kind": "key block", "link": {**GUEST, "columns": ["friend"]}}),
        "is no key of visit",
    ),
    "blocks of entities": (one_axis("visit", {"kind": "key block", "link": GUEST}), "does not lead to a public table"),
    "slots of a private table": (
        one_axis("visit", {"kind": "key slot", "link": PREVIOUS}),
        "whose number of rows is not public",
    ),
    "a link with more": (one_axis("person", {"kind": "fanout", "link": {**OWNER, "unique": True}}), "unknown field"),
    "a link without columns": (one_axis("person", {"kind": "fanout", "link": {**OWNER, "columns": []}}), "distinct"),
    "the owner of an entity": (one_axis("person", {"kind": "owner", "feature": {"kind": "rank"}}), "no owned table"),
    "the owner of a lookup": (one_axis("job", {"kind": "owner", "feature": {"kind": "rank"}}), "no owned table"),
    "the rank of an entity": (one_axis("person", {"kind": "rank"}), "no owned table"),
    "the first sibling of an entity": (one_axis("person", {"kind": "first", "feature": {"kind": "rank"}}), "no owned"),
    "an owner's feature on the row": (
        one_axis("visit", {"kind": "owner", "feature": {"kind": "column", "column": "cost"}}),
        "has no domain",
    ),
    "public rows of a private table": (
        one_axis("person", {"kind": "public rows", "link": GUEST}),
        "no key of a public",
    ),
    "public rows of an owned table": (
        one_axis("visit", {"kind": "public rows", "link": {**PRIZE, "target": "visit"}}),
        "no key of a public",
    ),
    "agreement with nothing": (
        one_axis("visit", {"kind": "agreement", "column": "x", "equals": {}}),
        "not one of rows",
    ),
    "agreement with two things": (
        one_axis("visit", {"kind": "agreement", "column": "x", "equals": {"rank": 1, "owner": "age"}}),
        "not one of rows",
    ),
    "agreement with rows of others": (
        one_axis("visit", {"kind": "agreement", "column": "x", "equals": {"rows": "visit"}}),
        "is no table whose rows are owned by",
    ),
    "agreement with a rank from 2": (
        one_axis("visit", {"kind": "agreement", "column": "x", "equals": {"rank": 2}}),
        "from 0 to 1",
    ),
    "agreement of an entity with its owner": (
        one_axis("person", {"kind": "agreement", "column": "x", "equals": {"owner": "age"}}),
        "have no owner row",
    ),
    "nearness to an owner that is not there": (
        one_axis("person", {"kind": "nearness", "column": "x", "base": {"column": "age", "owners": 1}, "days": 8}),
        "no owner row",
    ),
    "nearness to an owner too far up": (
        one_axis("visit", {"kind": "nearness", "column": "x", "base": {"column": "age", "owners": 2}, "days": 8}),
        "no owner row",
    ),
    "nearness to no days": (
        one_axis("visit", {"kind": "nearness", "column": "x", "base": {"column": "age", "owners": 1}, "days": 0}),
        "not a whole number",
    ),
    "votes on nothing": (wrong("votes on dependencies", candidates=[]), "no candidate"),
    "votes on a column": (
        votes(("visit", {"kind": "column", "column": "cost"})),
        "no vote on a feature",
    ),
    "votes on an in-degree": (votes(("person", GUESTS["feature"])), "no vote on a feature"),
    "votes of visits": (wrong("votes on dependencies", table="visit"), "is not the entity table"),
    "votes on a public table": (votes(("town", {"kind": "rank"})), "no table of the unit"),
    "rows without a limit": (histogram("item", counts="rows"), "no limit of rows per entity"),
    "rows by in-degrees of owners": (
        one_axis("visit", {"kind": "owner", "feature": GUESTS["feature"]}, counts="rows"),
        "in-degree of another row",
    ),
    "votes by in-degrees": (one_axis("person", GUESTS["feature"], counts="votes"), "votes are not counted by"),
    "sums by in-degrees": (wrong("sums", table="person", column="age", axes=[GUESTS]), "sums are not taken by"),
    "sums of a column without domain": (wrong("sums", column="x"), "has no domain"),
    "dependence on nothing": (wrong("dependence", left=[]), "at least 1 distinct"),
    "dependence on a column without domain": (wrong("dependence", left=["x"]), "has no domain"),
    "a choice of nothing": (wrong("choice of pair", candidates=0), "from 1 to"),
    "heavy hitters of votes among listed values": (
        wrong("heavy hitters by votes", values=9),
        "values are listed where weights are counted",
    ),
    "heavy hitters of weights among any values": (
        wrong("heavy hitters by votes", counts="weights"),
        "values are listed where weights are counted",
    ),
    "heavy hitters of rows": (wrong("heavy hitters by votes", counts="rows"), "not one of: weights, votes"),
    "too many values": (wrong("heavy hitters by weight", values=2**65), "not a whole number from 1"),
}


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
@pytest.mark.parametrize("name", NONSENSE)
def test_a_query_that_makes_no_sense_is_refused(name: str, measure: str) -> None:
    query, message = NONSENSE[name]
    paper = good(QUERIES["votes"], measure=measure)
    events(paper)[-1]["query"] = query
    assert_fails(verify_receipt(paper), message)


@pytest.mark.parametrize(
    ("name", "measure", "mechanism"),
    [
        ("a pair", "epsilon", "permute-and-flip"),
        ("a pair", "epsilon", "as-published"),
        ("a pair", "rho", "exponential"),
        ("choice of pair", "epsilon", "discrete-laplace"),
        ("choice of pair", "rho", "discrete-gaussian"),
        ("dependence", "epsilon", "permute-and-flip"),
    ],
)
def test_each_query_has_its_mechanisms(name: str, measure: str, mechanism: str) -> None:
    paper = good(QUERIES[name], measure=measure)
    events(paper)[-1]["mechanism"] = mechanism
    assert_fails(verify_receipt(paper), f"is not answered by {mechanism}")


@pytest.mark.parametrize(("measure", "mechanism"), [("epsilon", "discrete-gaussian"), ("rho", "discrete-laplace")])
def test_each_measure_has_its_mechanisms(measure: str, mechanism: str) -> None:
    paper = good(QUERIES["a pair"], measure=measure)
    events(paper)[-1]["mechanism"] = mechanism
    assert_fails(verify_receipt(paper), "not one of: ")


def test_large_counts_among_listed_values_have_laplace_noise_alone() -> None:
    paper = good(QUERIES["votes"], measure="rho")
    events(paper)[-1]["query"] = QUERIES["heavy hitters by weight"].query
    assert_fails(verify_receipt(paper), "is not answered by discrete-gaussian")


def test_values_that_are_only_there_need_a_threshold() -> None:
    for measure in ("epsilon", "rho"):
        paper = good(QUERIES["votes"], measure=measure)
        events(paper)[-1]["query"] = QUERIES["heavy hitters by votes"].query
        assert_fails(verify_receipt(paper), "is not answered by discrete-")


def test_slots_of_entities_need_a_public_number_of_them() -> None:
    paper = good(QUERIES["slots of entities"])
    paper["public"]["sizes"] = {}
    assert_fails(verify_receipt(paper), "whose number of rows is not public")


def test_public_rows_need_a_public_key() -> None:
    paper = good(QUERIES["public rows"])
    paper["public"]["keys"] = []
    assert_fails(verify_receipt(paper), "that is not public")


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("name", ["in-degree", "dependence", "a pair", "choice of pair", "choice of cap"])
def test_noise_for_add_remove_is_too_little_for_replace(name: str, neighbours: str) -> None:
    paper = good(QUERIES[name], measure="rho", neighbours="add-remove")
    paper["neighbours"] = neighbours
    problems = verify_receipt(paper).problems
    assert [HALVED in problem for problem in problems] == ([True] * 4 if neighbours == "replace" else [])
