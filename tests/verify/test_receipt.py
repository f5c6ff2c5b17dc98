"""Honest receipts are verified; a receipt in which anything was changed fails, and the verdict says where."""

import copy
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from privbench_verify.costs import epsilon_of, tail_probability
from privbench_verify.receipt import verify_receipt

from ..failing import assert_fails
from .receipts import (
    AFTER,
    AGES,
    COSTS,
    DELTA,
    EPSILON,
    GUEST,
    OWNER,
    PAYER,
    PREVIOUS,
    TAIL,
    THRESHOLD,
    THRESHOLDS,
    Json,
    Nodes,
    domain,
    events,
    good,
    good_blocks,
    kinds,
    rational,
    receipt,
    settle,
)
from .test_queries import QUERIES

Change = Callable[[Json], Any]
RELEASE = "ab" * 32
EARLIER = {"receipt": RELEASE, "epsilon": "1/2", "delta": "0/1", "neighbours": "replace"}
LISTED = QUERIES["heavy hitters by votes"]
FOUND = {"table": "person", "column": "visits", "origin": "found", "equals": {"rows": "visit"}}


def test_what_was_spent_is_in_terms_of_the_neighbours() -> None:
    for neighbours, factor in (("replace", 2), ("add-remove", 1)):
        paper = good(AGES, neighbours=neighbours)
        verdict = verify_receipt(paper)
        assert (verdict.status, verdict.epsilon, verdict.delta) == ("verified", EPSILON, 0)
        assert verdict.spent == factor * Fraction(paper["ledger"]["total"]) == factor * Fraction(4, 1024)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_with_a_delta_epsilon_follows_from_rho(neighbours: str) -> None:
    paper = good(LISTED, AGES, measure="rho", neighbours=neighbours)
    verdict = verify_receipt(paper)
    assert (verdict.status, verdict.delta) == ("verified", DELTA)
    assert verdict.spent is not None
    assert 0 < verdict.spent - epsilon_of(Fraction(paper["ledger"]["total"]), DELTA - THRESHOLDS) < Fraction(1, 10**11)


def test_a_budget_can_be_spent_to_the_end() -> None:
    paper = good(AGES, measure="rho")
    left = Fraction(int(Fraction(paper["budget"]["amount"]) * 2**80), 2**80) - Fraction(paper["ledger"]["total"])
    events(paper)[-1]["rho"] = rational(Fraction(events(paper)[-1]["rho"]) + left)
    assert verify_receipt(settle(paper)).status == "verified"
    events(paper)[-1]["rho"] = rational(Fraction(events(paper)[-1]["rho"]) + Fraction(1, 2**80))
    assert_fails(verify_receipt(settle(paper)), "more than budget.amount")


def test_blocks_cost_as_much_as_the_most_expensive_one() -> None:
    verdict = verify_receipt(good_blocks())
    assert verdict.problems == ()
    assert verdict.spent == 2 * Fraction(3 + 2 + 1, 1024)


def test_a_deep_tree_is_no_trouble() -> None:
    nodes, at = Nodes(), 0
    for _ in range(5_000):
        at = nodes.add("sequence", at, label="deeper")
    nodes.event(AGES, at)
    assert verify_receipt(receipt(nodes)).spent == 2 * Fraction(4, 1024)


def test_domains_from_the_data_make_it_conditional() -> None:
    paper = good()
    paper["public"]["domains"] += [domain("visit", "b", "data"), domain("visit", "a.b", "data")]
    paper["condition"] = 'epsilon holds given that these domains are public: visit."a.b", visit.b'
    verdict = verify_receipt(paper)
    assert verdict.status == "conditional"
    assert verdict.condition == paper["condition"]
    assert any("taken from the data" in sentence for sentence in verdict.assumptions)


def built_on_earlier() -> Json:
    paper = good()
    paper["earlier"] = [EARLIER]
    paper["public"]["domains"].append(domain("visit", "fee", "earlier release", release=RELEASE))
    paper["computed"] = [{**FOUND, "origin": "earlier release", "release": RELEASE}]
    return paper


def test_earlier_releases_make_it_conditional_and_are_told_with_their_cost() -> None:
    verdict = verify_receipt(built_on_earlier())
    assert verdict.status == "conditional"
    assert verdict.condition is not None
    assert RELEASE in verdict.condition
    (told,) = [sentence for sentence in verdict.assumptions if RELEASE in sentence]
    assert "epsilon 0.5, delta 0 for replace" in told
    assert "person.visits, visit.fee" in told
    assert "Together with these, epsilon is at most 3.7 and delta at most 0." in verdict.assumptions


def test_epsilons_for_different_neighbours_are_not_added() -> None:
    paper = built_on_earlier()
    paper["earlier"][0] = {**EARLIER, "neighbours": "add-remove"}
    assert not any("Together" in sentence for sentence in verify_receipt(paper).assumptions)


def test_a_test_source_is_stamped_and_never_verified() -> None:
    paper = {**good(), "noise": "test", "stamp": "not private"}
    assert verify_receipt(paper).status == "unverified"
    assert_fails(verify_receipt({**paper, "stamp": None}), "not stamped")


def test_what_a_column_equals_may_be_an_expression_or_come_from_the_data() -> None:
    """An expression is display text; no event compares one, and one from the data is a condition."""
    computed = {**FOUND, "origin": "schema", "equals": {"expression": "a + b"}}
    paper = good()
    paper["computed"] = [computed]
    assert verify_receipt(paper).status == "verified"
    paper["computed"] = [{**computed, "origin": "data"}]
    assert_fails(verify_receipt(paper), "condition is None")
    paper["condition"] = "epsilon holds given that these domains are public: person.visits"
    assert verify_receipt(paper).status == "conditional"
    paper["computed"] = [{**computed, "origin": "found"}]
    assert_fails(verify_receipt(paper), "no event compares a column with an expression")


def test_a_computed_column_that_was_found_has_an_event() -> None:
    paper = good(QUERIES["votes on dependencies"])
    paper["computed"] = [FOUND]
    assert verify_receipt(paper).status == "verified"
    paper["computed"] = [{**FOUND, "equals": {"rows": "visit"}, "column": "other"}]
    assert_fails(verify_receipt(paper), "but no event compares it")


def test_a_histogram_of_agreement_is_no_vote() -> None:
    paper = good(QUERIES["agreement with rows"])
    paper["computed"] = [FOUND]
    assert_fails(verify_receipt(paper), "but no event compares it")


NEAR = {"table": "item", "column": "x", "origin": "found", "base": {"table": "person", "column": "age"}}


def test_a_difference_that_was_found_has_an_event() -> None:
    paper = good(QUERIES["votes on dependencies"])
    paper["relative"] = [NEAR]
    assert verify_receipt(paper).status == "verified"
    for change in ({"base": {"table": "visit", "column": "age"}}, {"column": "y"}, {"base": "previous"}):
        paper["relative"] = [{**NEAR, **change}]
        assert_fails(verify_receipt(paper), "but no event asks for its base")
    paper["relative"] = [{**NEAR, "origin": "declared"}]
    told = verify_receipt(paper).assumptions
    assert "The publisher declared these columns as differences from others, which counts as public: item.x." in told


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"table": "person", "base": {"table": "visit", "column": "age"}}, "do not own rows of person"),
        ({"table": "town"}, "no table of the unit"),
        ({"origin": "data"}, "origin"),
        ({"release": "0" * 64}, "release is given"),
        ({"base": "next"}, "base"),
    ],
)
def test_a_difference_is_of_rows_of_the_same_entity(change: dict[str, object], problem: str) -> None:
    paper = good(QUERIES["votes on dependencies"])
    paper["relative"] = [{**NEAR, **change}]
    assert_fails(verify_receipt(paper), problem)
    paper["relative"] = [NEAR, NEAR]
    assert_fails(verify_receipt(paper), "twice")


def test_what_is_taken_for_granted_is_told() -> None:
    paper = good()
    paper["public"].update(orphans="null", orphans_note="Keys to missing rows were counted as NULL.")
    paper["computed"] = [{**FOUND, "origin": "declared"}]
    told = verify_receipt(paper).assumptions
    for sentence in (
        "The numbers of rows of these tables are public: person (120).",
        "These tables are public: town, prize.",
        "The values of these keys are public, as public tables reference them: person(id).",
        "The publisher declared these domains, which count as public: visit.age, visit.cost.",
        "The publisher declared these columns as computed, which counts as public: person.visits.",
    ):
        assert sentence in told
    assert any("visit(guest) -> person" in sentence for sentence in told)
    assert any("counted as NULL" in sentence for sentence in told)


# -- changed receipts --------------------------------------------------------------------------------------------------


def without(name: str) -> Change:
    return lambda r: r.pop(name)


def table(name: str, **fields: Any) -> Change:
    return lambda r: r["unit"]["tables"][name].update(fields)


def public(**fields: Any) -> Change:
    return lambda r: r["public"].update(fields)


def origin(column: str, origin: str, **more: str) -> Change:
    def change(paper: Json) -> None:
        (one,) = [d for d in paper["public"]["domains"] if d["column"] == column and d["table"] == "person"]
        one.update(origin=origin, **more)

    return change


ANY: dict[str, tuple[Change, str]] = {
    "the promise lowered": (lambda r: r.update(epsilon="1/1000"), "epsilon"),
    "no promise": (lambda r: r.update(epsilon="0/1"), "not positive"),
    "a negative promise": (lambda r: r.update(epsilon="-1/2"), "not a rational"),
    "a promise as a decimal": (lambda r: r.update(epsilon="3.2"), "not a rational"),
    "a promise as a float": (lambda r: r.update(epsilon=3.2), "is a float"),
    "a promise without denominator": (lambda r: r.update(epsilon="3"), "not a rational"),
    "a denominator of zero": (lambda r: r.update(epsilon="3/0"), "not a rational"),
    "a rational with a line end": (lambda r: r.update(epsilon="3/1\n"), "not a rational"),
    "digits of another script": (lambda r: r.update(epsilon="٣/1"), "not a rational"),
    "a long rational": (lambda r: r.update(epsilon="9" * 399 + "/1"), "of at most 400 characters"),
    "a large delta": (lambda r: r.update(delta="1/1000"), "delta is neither 0/1 nor"),
    "a tiny delta": (lambda r: r.update(delta="1/" + "9" * 40), "delta is neither 0/1 nor"),
    "unknown neighbours": (lambda r: r.update(neighbours="bounded"), "not one of: replace, add-remove"),
    "noise of unknown source": (lambda r: r.update(noise="dice"), "not one of: operating system, test"),
    "an empty stamp": (lambda r: r.update(stamp=""), "neither null nor a text"),
    "a stamp that is no text": (lambda r: r.update(stamp=False), "neither null nor a text"),
    "software that is no text": (lambda r: r.update(software=1), "not a text"),
    "a condition of its own": (lambda r: r.update(condition="trust me"), "condition is 'trust me'"),
    "no budget": (without("budget"), "budget is missing"),
    "a budget that is zero": (lambda r: r["budget"].update(amount="0/1"), "not positive"),
    "a budget of more": (lambda r: r["budget"].update(factor=1), "unknown field factor"),
    "a budget below what was spent": (lambda r: r["budget"].update(amount="1/1000000000"), "more than budget.amount"),
    "a budget raised": (lambda r: r["budget"].update(amount="33/10"), "epsilon"),
    "an unknown field": (lambda r: r.update(signature="x"), "unknown field signature"),
    "an unknown field of the ledger": (lambda r: r["ledger"].update(x=1), "unknown field x"),
    "an unknown field of the unit": (lambda r: r["unit"].update(units_per_entity=1), "unknown field units_per"),
    "an unknown field of a table": (table("visit", cap=3), "unknown field cap"),
    "an unknown field of public": (public(secret=[]), "unknown field secret"),
    "an unknown field of references": (lambda r: r["references"].update(x=1), "unknown field x"),
    "an unknown field of a domain": (origin("age", "schema", x="1"), "unknown field x"),
    "an unknown field of a sequence": (lambda r: kinds(r, "sequence")[0].update(x=1), "unknown field x"),
    "an unknown field of an event": (lambda r: events(r)[0].update(monotone=True), "unknown field monotone"),
    "a threshold where none belongs": (lambda r: events(r)[0].update(threshold=9), "unknown field threshold"),
    "a delta where none belongs": (lambda r: events(r)[0].update(delta="1/9"), "unknown field delta"),
    # the unit
    "weights in other units": (lambda r: r["unit"].update(weight=1), "unit.weight is not 1048576"),
    "no entity": (lambda r: r["unit"].update(entity="town"), "no table of the unit"),
    "another entity": (lambda r: r["unit"].update(entity="visit"), "but the entity table is visit"),
    "an entity of several rows": (table("person", rows_per_entity=2), "one row in its own table"),
    "an entity with an owner": (table("person", owner="visit"), "one row in its own table"),
    "an unknown role": (table("visit", role="public"), "not one of: entity, owned, lookup"),
    "an owner that is not there": (table("visit", owner="town"), "no owner table in the unit"),
    "no owner": (table("visit", owner=None), "no owner table in the unit"),
    "no owner key": (table("visit", key=None), "no owner table in the unit, or no key"),
    "an owner key of no columns": (table("visit", key=[]), "distinct names"),
    "an owner key of one column twice": (table("visit", key=["a", "a"]), "distinct names"),
    "owners in a circle": (table("visit", owner="item"), "go round in a circle"),
    "rows per entity withheld": (table("visit", rows_per_entity=None), "must be null exactly when"),
    "rows per entity from nowhere": (table("visit", rows_per_entity_from="none"), "must be null exactly when"),
    "no rows per entity": (table("visit", rows_per_entity=0), "not a whole number from 1"),
    "rows per entity that are true": (table("visit", rows_per_entity=True), "not a whole number from 1"),
    "chosen rows per entity said to be declared": (table("visit", rows_per_entity_from="declared"), "if an event"),
    "rows per entity said to be chosen": (
        table("item", rows_per_entity=3, rows_per_entity_from="chosen"),
        "item: rows_per_entity is chosen if and only if an event",
    ),
    "rows per entity said to be derived": (
        table("visit", rows_per_entity_from="derived"),
        "differs from that of its owner",
    ),
    # references and what is public
    "references that are no object": (lambda r: r.update(references=[]), "references is not an object"),
    "an owner key among the references": (lambda r: r["references"]["keys"].append(OWNER), "is an owner key"),
    "a reference twice": (lambda r: r["references"]["keys"].append(GUEST), "names a key twice"),
    "a reference to a public table": (
        lambda r: r["references"]["keys"].append({**GUEST, "target": "town"}),
        "is not between tables of the unit",
    ),
    "keys inside the entity that are no object": (lambda r: r.update(inside=[]), "inside is not an object"),
    "an owner key among those inside": (
        lambda r: r["inside"]["keys"].append({**OWNER, "role": "implied"}),
        "is an owner key",
    ),
    "a key inside twice": (lambda r: r["inside"]["keys"].append({**AFTER, "role": "inside"}), "names a key twice"),
    "a reference that is inside, too": (
        lambda r: r["inside"]["keys"].append({**PREVIOUS, "role": "inside"}),
        "is among the references, too",
    ),
    "a key into a lookup said to stay inside": (
        lambda r: r["inside"]["keys"].append({**PAYER, "target": "job", "role": "inside"}),
        "leads to a lookup",
    ),
    "a key of the entity table said to stay inside": (
        lambda r: r["inside"]["keys"].append(
            {"table": "person", "columns": ["best"], "target": "visit", "role": "inside"}
        ),
        "is not from an owned table",
    ),
    "an implied key said to be drawn": (
        lambda r: r["inside"]["keys"][0].update(role="inside"),
        "is implied if and only",
    ),
    "a drawn key said to be implied": (
        lambda r: r["inside"]["keys"][1].update(role="implied"),
        "is implied if and only",
    ),
    "an unknown role of a key inside": (lambda r: r["inside"]["keys"][1].update(role="x"), "not one of: implied"),
    "no note on keys inside": (lambda r: r["inside"].update(note=None), "inside.note is missing"),
    "no note on references": (lambda r: r["references"].update(note=None), "references.note is missing"),
    "no note on orphans": (public(orphans="null"), "orphans_note is missing"),
    "a note on no orphans": (public(orphans_note="none"), "must be null here"),
    "unknown orphans": (public(orphans="drop"), "not one of: error, null"),
    "a public table of the unit": (public(tables=["visit"]), "is a table of the unit, too"),
    "a public table twice": (public(tables=["town", "town"]), "distinct names"),
    "the size of a public table": (public(sizes={"town": 3}), "town is no table of the unit"),
    "a size that is no number": (public(sizes={"person": "many"}), "not a whole number"),
    "a size below zero": (public(sizes={"person": -1}), "not a whole number"),
    "a public key of no table": (public(keys=[{"table": "x", "columns": ["id"]}]), "x is no table of the unit"),
    "a domain of no table": (lambda r: r["public"]["domains"].append(domain("x", "a", "schema")), "x is no table"),
    "a domain twice": (lambda r: r["public"]["domains"].append(domain("person", "age", "schema")), "column twice"),
    "an unknown origin": (origin("age", "guessed"), "not one of: declared"),
    "a parameter that is a list": (public(parameters={"a": []}), "neither a text"),
    "as published without stamp": (public(parameters={"as_published": True}), "not stamped"),
    "as published as a text": (public(parameters={"as_published": "no"}), "not stamped"),
    "a condition withheld": (origin("age", "data"), "what was taken from the data asks for"),
    "a domain said to be found": (
        origin("age", "private"),
        "person.age: the origin of its domain is private, but no event",
    ),
    "a found domain said to be declared": (origin("wage", "declared"), "person.wage: an event searches for its domain"),
    "a found list said to be declared": (origin("city", "declared"), "person.city: an event searches for its domain"),
    "a domain from an unknown release": (
        origin("age", "earlier release", release=RELEASE),
        "a release that `earlier` does not list",
    ),
    "a domain from some release": (origin("age", "earlier release"), "release is given if and only if"),
    "a release of a declared domain": (origin("age", "declared", release=RELEASE), "release is given if and only if"),
    "a release that is no digest": (origin("age", "earlier release", release="ab"), "not a SHA-256 digest"),
    "an earlier release twice": (lambda r: r.update(earlier=[EARLIER, EARLIER]), "names a release twice"),
    "an earlier release without cost": (
        lambda r: r.update(earlier=[{**EARLIER, "epsilon": "0/1"}]),
        "epsilon is 0, not positive",
    ),
    "an earlier release with more": (lambda r: r.update(earlier=[{**EARLIER, "note": ""}]), "unknown field note"),
    "a computed column twice": (
        lambda r: r.update(computed=[{**FOUND, "origin": "declared"}] * 2),
        "computed lists a column twice",
    ),
    "a computed column of no table": (lambda r: r.update(computed=[{**FOUND, "table": "town"}]), "town is no table"),
    "a computed column from an unknown release": (
        lambda r: r.update(computed=[{**FOUND, "origin": "earlier release", "release": RELEASE}]),
        "a release that `earlier` does not list",
    ),
    "a computed column that nothing found": (lambda r: r.update(computed=[FOUND]), "but no event compares it"),
    # the tree
    "no nodes": (lambda r: r["ledger"].update(nodes=[]), "not a list of 1 to"),
    "nodes that are no list": (lambda r: r["ledger"].update(nodes={}), "not a list of 1 to"),
    "a node that is no object": (lambda r: r["ledger"]["nodes"].append(None), "is not an object"),
    "no root": (lambda r: r["ledger"]["nodes"][0].update(parent=0), "not the root"),
    "a second root": (lambda r: kinds(r, "sequence")[1].update(parent=None), "does not come before it"),
    "a parent that comes later": (lambda r: events(r)[0].update(parent=3), "does not come before it"),
    "a parent that is true": (lambda r: events(r)[1].update(parent=True), "does not come before it"),
    "a parent before the root": (lambda r: events(r)[1].update(parent=-1), "does not come before it"),
    "an event below an event": (lambda r: events(r)[1].update(parent=1), "cannot stand below a event"),
    "a part of no partition": (lambda r: kinds(r, "sequence")[1].update(kind="part"), "cannot stand below a sequence"),
    "an unknown kind": (lambda r: events(r)[0].update(kind="gift"), "not one of: sequence"),
    "a label that is no text": (lambda r: kinds(r, "sequence")[0].update(label=3), "not a text"),
    "an event dropped": (lambda r: r["ledger"]["nodes"].pop(), "total is not what it adds up to"),
    "an event dropped with its cost": (lambda r: (r["ledger"]["nodes"].pop(1), shift(r), settle(r)), "if an event"),
    "an event repeated": (lambda r: r["ledger"]["nodes"].append(events(r)[0]), "total is not what it adds up to"),
    "a total of the ledger": (lambda r: r["ledger"].update(total="1/2"), "ledger.total is 1/2"),
    "a total of a sequence": (lambda r: kinds(r, "sequence")[1].update(total="1/2"), "is not what it adds up to"),
    "a delta of the ledger": (lambda r: r["ledger"].update(delta="1/1000000000"), "but thresholds add up to"),
    "an unknown mechanism": (lambda r: events(r)[0].update(mechanism="laplace"), "not one of: "),
    "no scale": (lambda r: events(r)[0].update(scale="0/1"), "not positive"),
    "a scale left out": (lambda r: events(r)[0].pop("scale"), "scale is missing"),
    "draws left out": (lambda r: events(r)[0].pop("draws"), "draws is missing"),
    "a query left out": (lambda r: events(r)[0].pop("query"), "query is missing"),
    "a choice for a column that is declared": (
        lambda r: events(r)[1]["query"]["axes"][0].update(feature={"kind": "step", "column": "age"}),
        "an event looks at its values",
    ),
    "version 1": (lambda r: r.update(version=1), "written by an earlier alpha of PrivBench"),
    "version 3": (lambda r: r.update(version=3), "version is 3, not 2"),
    "version as a text": (lambda r: r.update(version="2"), "version is '2', not 2"),
}


def shift(paper: Json) -> None:
    """After the first event was taken out: parents one step nearer."""
    for node in paper["ledger"]["nodes"][1:]:
        node["parent"] -= node["parent"] > 0


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
@pytest.mark.parametrize("name", ANY)
def test_a_changed_receipt_fails(name: str, measure: str) -> None:
    change, message = ANY[name]
    paper = good(AGES, COSTS, measure=measure)
    change(paper)
    assert_fails(verify_receipt(paper), message)


EPSILON_ONLY: dict[str, tuple[Change, str]] = {
    "a budget of rho": (lambda r: r["budget"].update(measure="rho"), "budget.measure is not epsilon"),
    "thresholds without delta": (lambda r: r["budget"].update(thresholds="0/1"), "unknown field thresholds"),
    "a delta": (lambda r: r.update(delta="1/1000000000"), "budget.measure is not rho"),
    "an event charged in rho": (lambda r: events(r)[0].update(rho=events(r)[0].pop("epsilon")), "epsilon is missing"),
    "an event that charges nothing": (lambda r: events(r)[0].update(epsilon="0/1"), "charges nothing"),
    "an event that charges less": (lambda r: events(r)[-1].update(epsilon="1/1048576"), "is too small for epsilon"),
    "an event that charges off the grid": (
        lambda r: events(r)[0].update(epsilon="1/3"),
        "whose denominator does not divide 2**40",
    ),
    "the factor of replace": (lambda r: r["budget"].update(amount="33/20"), "2 times for these neighbours"),
    "public sizes of who comes and goes": (
        lambda r: (r.update(neighbours="add-remove"), r["public"].update(keys=[])),
        "sizes and keys must be empty",
    ),
    "public keys of who comes and goes": (
        lambda r: (r.update(neighbours="add-remove"), r["public"].update(sizes={})),
        "sizes and keys must be empty",
    ),
}


@pytest.mark.parametrize("name", EPSILON_ONLY)
def test_a_changed_receipt_without_delta_fails(name: str) -> None:
    change, message = EPSILON_ONLY[name]
    paper = good(AGES)
    change(paper)
    assert_fails(verify_receipt(paper), message)


def last(**fields: Any) -> Change:
    return lambda r: events(r)[-1].update(fields)


def cheaper(paper: Json) -> None:
    """State less delta than the threshold costs, in the event and in the sum."""
    events(paper)[-1]["delta"] = paper["ledger"]["delta"] = rational(TAIL / 1000)


def more_expensive(paper: Json) -> None:
    events(paper)[-1]["delta"] = paper["ledger"]["delta"] = rational(THRESHOLDS * 2)


RHO_ONLY: dict[str, tuple[Change, str]] = {
    "a rho that is too large": (lambda r: r["budget"].update(amount="137/1000"), "from which only epsilon 3.2"),
    "a rho by far too large": (lambda r: r["budget"].update(amount="9" * 300 + "/1"), "protects nothing"),
    "a budget of epsilon": (lambda r: r.update(budget={"measure": "epsilon", "amount": "8/5"}), "is not rho"),
    "no thresholds": (lambda r: r["budget"].pop("thresholds"), "thresholds is missing"),
    "thresholds of all of delta": (lambda r: r["budget"].update(thresholds=r["delta"]), "leaves nothing of delta"),
    "thresholds of nearly all of delta": (
        lambda r: r["budget"].update(thresholds=rational(DELTA - DELTA / 10**9)),
        "from which only epsilon",
    ),
    "thresholds that may cost nothing": (lambda r: r["budget"].update(thresholds="0/1"), "more than budget.thresholds"),
    "a smaller delta": (lambda r: r.update(delta=rational(THRESHOLDS * 11 / 10)), "from which only epsilon"),
    "no delta": (lambda r: r.update(delta="0/1"), "budget.measure is not epsilon"),
    "an event charged off the grid": (last(rho="1/3"), "whose denominator does not divide 2**80"),
    "a lower threshold": (last(threshold=THRESHOLD - 700), "is too low for this delta"),
    "a threshold that hides nothing": (last(threshold=1), "not a whole number from 2"),
    "a threshold that is no number": (last(threshold="9"), "not a whole number from 2"),
    "no threshold": (lambda r: events(r)[-1].pop("threshold"), "threshold is missing"),
    "no delta of a threshold": (lambda r: events(r)[-1].pop("delta"), "delta is missing"),
    "a cheaper delta": (cheaper, "is too low for this delta"),
    "a delta for which there is no room": (more_expensive, "more than budget.thresholds"),
    "a sum that hides some": (lambda r: r["ledger"].update(delta="1/100000000000000"), "but thresholds add up to"),
    "less noise": (last(scale="1023/1"), "is too small for rho"),
    "plain noise": (last(mechanism="discrete-gaussian"), "unknown field threshold, delta"),
    "as published": (lambda r: events(r)[0].update(mechanism="as-published"), "not one of: discrete-gaussian"),
}


@pytest.mark.parametrize("name", RHO_ONLY)
def test_a_changed_receipt_with_delta_fails(name: str) -> None:
    change, message = RHO_ONLY[name]
    paper = good(LISTED, measure="rho")
    assert verify_receipt(paper).status == "verified"
    change(paper)
    assert_fails(verify_receipt(paper), message)


def parts(paper: Json, table: str = "person") -> list[Json]:
    nodes = paper["ledger"]["nodes"]
    return [node for node in kinds(paper, "part") if nodes[node["parent"]]["table"] == table]


def asked_in_a_block(name: str) -> Change:
    def change(paper: Json) -> None:
        event = QUERIES[name].event("epsilon", "replace")
        event["parent"] = paper["ledger"]["nodes"].index(parts(paper, event["query"]["table"])[0])
        paper["ledger"]["nodes"].append(event)
        settle(paper)

    return change


def centres(paper: Json) -> list[Json]:
    listed: list[Json] = kinds(paper, "partition")[-1]["centres"]
    return listed


BLOCKS: dict[str, tuple[Change, str]] = {
    "parted by something else": (lambda r: kinds(r, "partition")[0].update(by="rows"), "not one of: centres"),
    "parted by boxes": (lambda r: kinds(r, "partition")[0].update(by="boxes"), "not one of: centres"),
    "a part of a box": (lambda r: parts(r)[0].update(box={"age": [[0, 4]]}), "unknown field box"),
    "a part without centre": (lambda r: parts(r)[0].pop("centre"), "centre is missing"),
    "a column of another table": (
        lambda r: [c.update(at={"cost": [1]}) for c in kinds(r, "partition")[0]["centres"]],
        "parted by cost, which has no domain",
    ),
    "no centres": (lambda r: kinds(r, "partition")[-1].pop("centres"), "centres is missing"),
    "centres that are no list": (lambda r: kinds(r, "partition")[-1].update(centres={}), "is not a list"),
    "a centre used twice": (lambda r: parts(r, "visit")[1].update(centre="0"), "distinct labels"),
    "a centre that is not listed": (lambda r: parts(r, "visit")[1].update(centre="7"), "distinct labels"),
    "two centres of one label": (lambda r: centres(r)[1].update(label="0"), "distinct labels"),
    "a centre without place": (lambda r: centres(r)[0].pop("at"), "at is missing"),
    "centres without coordinates": (lambda r: [c.update(at={}) for c in centres(r)], "it parts nothing"),
    "centres of different columns": (lambda r: centres(r)[0].update(at={"age": [1]}), "need the same columns"),
    "a coordinate that is a text": (lambda r: centres(r)[0].update(at={"cost": ["1"]}), "list of whole numbers"),
    "centres over a column without domain": (
        lambda r: [c.update(at={"fee": [1]}) for c in centres(r)],
        "parted by fee, which has no domain",
    ),
    "a partition of no table": (lambda r: kinds(r, "partition")[0].update(table="town"), "no table of the unit"),
    "other rows per entity": (lambda r: kinds(r, "partition")[-1].update(rows_per_entity=1), "what the unit says"),
    "no limit of rows": (
        lambda r: r["unit"]["tables"]["visit"].update(rows_per_entity=None, rows_per_entity_from="none"),
        "no limit of rows per entity",
    ),
    "another table parted in a block": (
        lambda r: kinds(r, "partition")[1].update(table="visit", rows_per_entity=3),
        "is a split of visit inside a block of person",
    ),
    "another table measured in a block": (
        lambda r: events(r)[-1].update(parent=r["ledger"]["nodes"].index(parts(r)[0])),
        "measures visit inside a block of person",
    ),
    "weights in a block": (asked_in_a_block("a pair"), "cannot be asked of a block"),
    "votes in a block": (asked_in_a_block("votes"), "cannot be asked of a block"),
    "in-degrees in a block": (asked_in_a_block("rows by in-degree"), "cannot be asked of a block"),
    "a choice by weight in a block": (asked_in_a_block("choice of dependency"), "cannot be asked of a block"),
    "a choice of cap in a block": (asked_in_a_block("choice of cap"), "cannot be asked of a block"),
    "heavy hitters in a block": (asked_in_a_block("heavy hitters by weight"), "cannot be asked of a block"),
    "a block made a sequence": (lambda r: kinds(r, "partition")[0].update(kind="sequence"), "unknown field"),
    "an event right below a partition": (
        lambda r: events(r)[-1].update(parent=r["ledger"]["nodes"].index(kinds(r, "partition")[0])),
        "cannot stand below a partition",
    ),
    "the total of a part": (lambda r: parts(r)[0].update(total="1/2"), "is not what it adds up to"),
    "blocks that add up": (lambda r: kinds(r, "partition")[0].update(total="5/1024"), "is not what it adds up to"),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_changed_blocks_fail(name: str) -> None:
    change, message = BLOCKS[name]
    paper = good_blocks()
    change(paper)
    assert_fails(verify_receipt(paper), message)


@pytest.mark.parametrize("name", ["sums", "dependence", "rows by a column", "choice of column split"])
def test_what_each_row_moves_may_be_asked_of_a_block(name: str) -> None:
    paper = good_blocks()
    asked_in_a_block(name)(paper)
    assert verify_receipt(paper).status == "verified"


def test_there_are_no_blocks_where_rho_is_counted() -> None:
    nodes = Nodes("rho")
    nodes.centres(0, "person", {"age": [2]}, rows=1)
    assert_fails(verify_receipt(receipt(nodes)), "cannot be charged in parallel")


def test_centres_without_place_belong_to_splits_as_published() -> None:
    nodes = Nodes()
    query = {"kind": "published row split", "table": "visit", "columns": ["cost"], "rounds": 2}
    event = {"mechanism": "as-published", "query": query, "sensitivity": "1536/1", "scale": "1/1", "draws": 2}
    nodes.add("event", 0, **event, epsilon="1/1024")
    nodes.centres(0, "visit", {}, {})
    paper = {**receipt(nodes), "stamp": "as published"}
    assert verify_receipt(paper).status == "unverified"


@pytest.mark.parametrize("paper", [None, [], "receipt", 3, {}, 0.5, {1: 2}])
def test_what_is_no_receipt_fails(paper: object) -> None:
    assert verify_receipt(paper).status == "failed"


def test_every_field_is_needed() -> None:
    paper = good()
    for name in paper:
        assert_fails(verify_receipt({k: v for k, v in paper.items() if k != name}), name)


def test_problems_are_gathered_but_not_without_end() -> None:
    nodes = Nodes()
    for _ in range(300):
        nodes.event(AGES)
    paper = receipt(nodes)
    for event in events(paper):
        event["draws"] = 10**6
    problems = verify_receipt(copy.deepcopy(paper)).problems
    assert len(problems) == 101
    assert problems[-1] == "and 203 more problems"


def test_the_tail_probability_is_a_bound() -> None:
    """Against sums of the discrete Gaussian law itself, in floats."""
    from math import exp

    for scale, threshold in ((1, 2), (3, 9), (20, 100), (20, 60)):
        law = [exp(-k * k / (2 * scale**2)) for k in range(-30 * scale, 30 * scale + 1)]
        exact = sum(law[30 * scale + threshold - 1 :]) / sum(law)
        assert exact < float(tail_probability(Fraction(scale), threshold)) < 3 * exact


def test_epsilon_from_rho_is_what_the_proofs_say() -> None:
    """docs/proofs/composition.md, section 9, has these three."""
    for rho, digits in ((Fraction(20805, 10**5), 6), (Fraction(13608, 10**5), 9), (Fraction(10067, 10**5), 12)):
        assert abs(epsilon_of(rho, Fraction(1, 10**digits)) - EPSILON) < Fraction(1, 5000)
