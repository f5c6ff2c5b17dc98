"""Forged receipts of method `tree`: each adds up on its face, and none is verified."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.methods.method import TableModel
from privbench.model.file import load_model, save_model
from privbench.model.model import Model
from privbench.model.receipt_check import verify_model
from privbench.model.verify import verify
from privbench.spn.clique import CliqueTree, Conditional
from privbench.spn.fanout_link import FanoutLink
from privbench.spn.feature_names import ACTIVITY as ACTIVITY_COLUMN
from privbench.spn.feature_names import STRATUM, in_degree_column, rows_column
from privbench.spn.nodes import Leaf, Node, Product, walk
from privbench.spn.reference_link import ReferenceLink

from ..failing import assert_fails
from ..forging import (
    COMMON,
    MISSING,
    Change,
    Header,
    alter,
    assert_refused,
    empty_ledger,
    events,
    feature_text,
    fewer_bins,
    forged,
    instead,
    missing,
    missing_key,
    set_method,
    without,
    write_shop,
)
from ..seeded import SeededEntropy

DDL = """CREATE TABLE person (id INTEGER PRIMARY KEY, city VARCHAR, age SMALLINT);
CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER REFERENCES person (id), kind VARCHAR, cost SMALLINT,
  guide INTEGER REFERENCES person (id), after INTEGER REFERENCES visit (id));
CREATE TABLE club (leader INTEGER REFERENCES person (id));"""
PEOPLE, VISITS = 120, 300
UNITS = 2**20


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Visits of persons, some of nobody, most with another person as guide; what they cost follows from their kind.

    Persons have a hub, as they own visits and are guides. Visits are referenced by others, and own nothing.
    """
    people = [f"{i},{'xyz'[i % 3]},{i % 3 * 10 + i % 4}" for i in range(PEOPLE)]
    visits = [
        f"{i},{i % PEOPLE if i % 5 else ''},{'ab'[i % 2]},{i % 2 * 8 + i % 3},"
        f"{i * 7 % PEOPLE if i % 4 else ''},{i // 2 if i % 6 else ''}"
        for i in range(VISITS)
    ]
    return write_shop(
        tmp_path_factory.mktemp("forgeries") / "source",
        DDL,
        person="\n".join(["id,city,age", *people]),
        visit="\n".join(["id,person_id,kind,cost,guide,after", *visits]),
        club="\n".join(["leader", *map(str, range(0, PEOPLE, 3))]),
    )


def _fitted(source: Path, out: Path, delta: str) -> Path:
    spec = draft(source, unit="person", domains="data", public=["club"], owners={"visit": ("person_id",)})
    save_model(fit(spec, epsilon="400", delta=delta, method="tree", entropy=SeededEntropy(3)), out)
    return out


@pytest.fixture(scope="module")
def pure(source: Path) -> Path:
    return _fitted(source, source.parent / "pure", "0")


@pytest.fixture(scope="module")
def gaussian(source: Path) -> Path:
    return _fitted(source, source.parent / "gaussian", "1e-9")


@pytest.fixture
def forge(pure: Path, tmp_path: Path) -> Callable[[Change], Path]:
    """Write the model without delta again with another header."""
    return lambda change: forged(pure, tmp_path / "forged", change)


OWNERS = "fanout visit.person_id"
GUIDES, AFTERS = "in-degree visit.guide", "in-degree visit.after"
ACTIVITY = "activity"
NO_GUIDE, NO_OWNER = "own key visit.guide", "null key visit.person_id"


def count_rows(header: Header) -> None:
    """Let cities be counted in rows, of which a person has one, with noise for that."""
    for event in events(header, "person", "column city"):
        event["query"]["counts"] = "rows"
        event["sensitivity"] = "1/1"


FORGED = COMMON | {
    "public tables hidden": (
        lambda h: h["receipt"]["public"].update(tables=[]),
        "is no key of a public table to the entity table",
    ),
    "public keys hidden": (
        lambda h: h["receipt"]["public"].update(keys=[]),
        "counts rows by a key of person that is not public",
    ),
    "ledger emptied": (empty_ledger, missing((3, "city"))),
    "a column without event": (instead("person", ("column city",), "column age"), missing((3, "city"))),
    "a column with fewer bins": (fewer_bins("person", "column city"), missing((3, "city"))),
    "a column with fewer draws": (alter("person", "column city", draws=1), "draws is 1, but the query has 3"),
    "a column counted in rows": (count_rows, f'{MISSING}{{"axes": [{{"bins": 3, "feature": {{"column": "city"'),
    "fanouts without event": (instead("person", (OWNERS,), "column age"), '"kind": "fanout"'),
    "references without event": (instead("visit", (AFTERS,), "column cost"), '"kind": "in-degree"'),
    "NULL keys without event": (
        instead("visit", (NO_GUIDE,), "column cost", counts="weights"),
        missing_key(3, "own key", "visit", "guide", "person"),
    ),
    "unowned rows without event": (
        instead("visit", (NO_OWNER,), "column cost"),
        missing_key(2, "null key", "visit", "person_id", "person"),
    ),
    "another method in the spec": (
        lambda h: h["spec"].update(method={"name": "paper"}),
        "the model contains parts that method",
    ),
    "another method everywhere": (
        set_method("independent"),
        "the model contains parts that method",
    ),
    "a method that is not there": (
        lambda h: h["receipt"]["public"]["parameters"].update(method="magic"),
        "public.parameters is not what the model's spec says",
    ),
    "no choice of pairs of persons": (without("person", "choice of pair"), f"{MISSING}choice of pair"),
    "no choice of pairs of visits": (without("visit", "choice of pair"), f"{MISSING}choice of pair"),
    "activity without event": (without("person", "histogram", ACTIVITY), '"feature": {"kind": "activity"}'),
    "activity with fewer bins": (fewer_bins("person", ACTIVITY), '"feature": {"kind": "activity"}'),
    "fanouts of a hub without event": (without("person", "histogram", OWNERS), '"feature": {"kind": "fanout"'),
    "no table of the hub and fanouts": (
        without("person", "histogram", ACTIVITY, OWNERS),
        f'{MISSING}{{"axes": [{{"kind": "activity"}}, {{"kind": "fanout"',
    ),
    "no table of the hub and references": (
        without("person", "histogram", ACTIVITY, GUIDES),
        f'{MISSING}{{"axes": [{{"kind": "activity"}}, {{"kind": "in-degree"',
    ),
    "another table of the hub": (
        instead("person", (ACTIVITY, GUIDES), ACTIVITY, OWNERS),
        f'{MISSING}{{"axes": [{{"kind": "activity"}}, {{"kind": "in-degree"',
    ),
    "references to a hub moved once": (
        alter("person", ACTIVITY, GUIDES, sensitivity=f"{UNITS}/1"),
        f"the query has {3 * UNITS}/1",
    ),
    "no votes of who has a key": (
        without("visit", "histogram", NO_GUIDE, counts="votes"),
        missing_key(1, "own key", "visit", "guide", "person") + ', "counts": "votes"',
    ),
    "votes of who has another key": (
        lambda h: events(h, "visit", NO_GUIDE, counts="votes")[0]["query"]["axes"][0].update(
            feature={"kind": "null key", "link": {"table": "visit", "columns": ["after"], "target": "visit"}}
        ),
        missing_key(1, "own key", "visit", "guide", "person"),
    ),
    "votes that weigh less": (
        lambda h: events(h, "visit", NO_GUIDE, counts="votes")[0].update(sensitivity="1/2"),
        "the query has 1/1",
    ),
    "a lower sensitivity": (
        alter("person", "column city", sensitivity=f"{UNITS - 1}/1"),
        f"the query has {UNITS}/1",
    ),
    "references moved once": (alter("visit", AFTERS, sensitivity=f"{UNITS}/1"), f"the query has {3 * UNITS}/1"),
    "less noise than paid for": (alter("person", "column city", scale="1/1"), "is too small for epsilon"),
    "a smaller entity": (lambda h: h["receipt"]["unit"].update(weight=1), "unit.weight is not"),
    "a cap that nobody chose": (
        lambda h: h["receipt"]["unit"]["tables"]["visit"].update(rows_per_entity=1, rows_per_entity_from="declared"),
        "unit.tables is not what",
    ),
}


def test_the_honest_models(pure: Path, gaussian: Path, forge: Callable[..., Path]) -> None:
    for path in (pure, gaussian, forge(lambda _: None)):
        assert verify(path).status == "conditional"
        assert verify(path).problems == ()
    _holds_all_there_is(load_model(pure))
    _holds_all_there_is(load_model(gaussian))


def _holds_all_there_is(model: Model) -> None:
    """Each kind of array that must have cost something, lest a forgery below has nothing to hide."""
    links = model.tables["visit"].links
    owner, guide = links["visit.person_id"], links["visit.guide"]
    assert isinstance(owner, FanoutLink)
    assert owner.unowned > 0
    assert isinstance(guide, ReferenceLink)
    assert guide.column is not None
    assert guide.own is not None
    assert ACTIVITY_COLUMN in model.tables["person"].network.sizes
    assert ACTIVITY_COLUMN not in model.tables["visit"].network.sizes


def _with_activity(table: TableModel) -> TableModel:
    """A table with a column of activity of its own."""
    leaf = Leaf(column=ACTIVITY_COLUMN, counts=np.ones(35))
    return replace(table, network=Product(children=(table.network, leaf)))


def _renamed(table: TableModel) -> TableModel:
    """A table whose column of costs is called its activity."""

    def renamed(conditional: Conditional) -> Conditional:
        names = {"cost": ACTIVITY_COLUMN}
        parents = tuple(names.get(parent, parent) for parent in conditional.parents)
        return replace(conditional, column=names.get(conditional.column, conditional.column), parents=parents)

    assert isinstance(table.network, Product)
    children = tuple(
        replace(node, columns=tuple(map(renamed, node.columns))) if isinstance(node, CliqueTree) else node
        for node in table.network.children
    )
    return replace(table, network=Product(children=children))


@pytest.mark.parametrize("change", [_with_activity, _renamed])
def test_activity_of_a_table_that_owns_nothing_is_refused(
    change: Callable[[TableModel], TableModel], pure: Path
) -> None:
    model = load_model(pure)
    model = replace(model, tables=model.tables | {"visit": change(model.tables["visit"])})
    assert_fails(verify_model(model), "visit: the model contains parts that method tree never produces")


def test_activity_that_depends_on_a_column_by_choice_costs_that_choice(pure: Path) -> None:
    """Fanouts and references depend on a hub without a choice; other columns do not."""
    model = load_model(pure)
    (tree,) = [node for node in walk(model.tables["person"].network) if isinstance(node, CliqueTree)]
    columns = {column.column: column for column in tree.columns}
    assert {name for name, column in columns.items() if ACTIVITY_COLUMN in column.parents} == {
        rows_column("visit.person_id"),
        in_degree_column("visit.guide"),
    }
    city = columns["city"]
    bins = len(columns[ACTIVITY_COLUMN].counts), len(np.unique(city.bins))
    dependent = replace(city, parents=(ACTIVITY_COLUMN,), factors=(np.ones(bins),))
    network = replace(tree, columns=tuple(dependent if c is city else c for c in tree.columns))
    table = replace(model.tables["person"], network=Product(children=(network, *_others(model, tree))))
    verdict = verify_model(replace(model, tables=model.tables | {"person": table}))
    assert_fails(verdict, f'{MISSING}{{"axes": [{{"kind": "activity"}}, {{"column": "city"')


def _others(model: Model, tree: CliqueTree) -> list[Node]:
    network = model.tables["person"].network
    return [node for node in network.children if node is not tree] if isinstance(network, Product) else []


def in_proportion(header: Header) -> None:
    """Let entities of few visits have counted in proportion to them."""
    for node in header["receipt"]["ledger"]["nodes"]:
        if node["kind"] == "event" and (node["query"]["table"], node["query"].get("counts")) == ("visit", "weights"):
            node["query"]["full_rows"] = 8


def test_how_entities_of_few_rows_weighed_changes_no_cost(forge: Callable[..., Path]) -> None:
    verdict = verify(forge(in_proportion))
    assert (verdict.status, verdict.problems) == ("conditional", ())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (instead("visit", ("column kind",), "column cost"), missing((2, "kind"))),
        (fewer_bins("visit", "column kind"), missing((2, "kind"))),
        (alter("visit", "column kind", sensitivity=f"{UNITS // 8}/1"), f"the query has {UNITS}/1"),
    ],
)
def test_all_else_must_be_what_the_model_implies(change: Change, message: str, forge: Callable[..., Path]) -> None:
    def both(header: Header) -> None:
        change(header)
        in_proportion(header)

    assert_refused(forge(both), message)


@pytest.mark.parametrize("name", FORGED)
def test_a_receipt_that_is_not_the_models(name: str, forge: Callable[..., Path]) -> None:
    change, message = FORGED[name]
    path = forge(change)
    assert_refused(path, message)


def _pairs(model: Path) -> list[tuple[str, tuple[str, str]]]:
    """Table and features of the pairs that the model has tables of, as its receipt says."""
    queries = [n["query"] for n in load_model(model).receipt["ledger"]["nodes"] if n["kind"] == "event"]
    pairs = [
        (q["table"], [feature_text(a["feature"]) for a in q["axes"]]) for q in queries if len(q.get("axes", ())) == 2
    ]
    return [(table, (first, second)) for table, (first, second) in pairs if first not in ("entity rows", ACTIVITY)]


def test_pairs_are_what_was_chosen(pure: Path) -> None:
    held = load_model(pure)
    for name, table in held.tables.items():
        trees = [node for node in walk(table.network) if isinstance(node, CliqueTree)]
        parents = [p for tree in trees for column in tree.columns for p in column.parents]
        parents = [p for p in parents if p not in (STRATUM, ACTIVITY_COLUMN)]
        assert len(parents) == sum(table == name for table, _ in _pairs(pure)) > 0


@pytest.mark.parametrize("change", [instead, fewer_bins])
def test_a_pair_without_event_or_with_fewer_bins(
    change: Callable[..., Change], pure: Path, forge: Callable[..., Path]
) -> None:
    for table, pair in _pairs(pure):
        if OWNERS in pair:  # linked to a hub: the network has finer bins than the pair
            continue
        other = {"person": "column age", "visit": "column cost"}[table]
        path = forge(instead(table, pair, other) if change is instead else fewer_bins(table, *pair))
        [problem] = verify(path).problems
        assert problem.startswith(f"1 {MISSING}")
        assert problem.count('"bins"') == 2


def test_an_empty_ledger_pays_for_nothing(pure: Path, forge: Callable[..., Path]) -> None:
    problems = verify(forge(empty_ledger)).problems
    kinds = [missing_key(2, "null key", "visit", "person_id", "person")]
    kinds += [missing_key(3, "own key", "visit", "guide", "person")]
    kinds += [missing_key(1, "own key", "visit", "guide", "person")]
    kinds += ['"kind": "fanout"', '"kind": "in-degree"', '"kind": "activity"', '"column": "cost"']
    for query in (*kinds, f"person: {_choices(pure, 'person')} {MISSING}choice of pair"):
        assert any(query in problem for problem in problems), query


def _choices(model: Path, table: str) -> int:
    return sum(name == table for name, _ in _pairs(model))


def halve_noise(event: dict[str, Any]) -> None:
    """Noise that would do if an entity only added to the counts: the square root of 2 less, rounded up."""
    event["scale"] = str(Fraction(event["scale"]) * Fraction(71, 100))


GAUSSIAN: dict[str, tuple[Change, str]] = {
    "noise as for additive counts": (
        lambda h: halve_noise(events(h, "visit", AFTERS)[0]),
        "is too small for rho",
    ),
    "references moved once": (alter("visit", AFTERS, sensitivity=f"{UNITS}/1"), f"the query has {3 * UNITS}/1"),
    "rho too large": (
        lambda h: h["receipt"]["budget"].update(amount="1000/1"),
        "budget.amount is a rho from which only epsilon",
    ),
    "a smaller delta": (lambda h: h["receipt"].update(delta="1/1000000000000"), "from which only epsilon"),
    "a smaller epsilon": (lambda h: h["receipt"].update(epsilon="100/1"), "from which only epsilon"),
    "less noise than paid for": (alter("person", "column city", scale="1/1"), "is too small for rho"),
    "another noise": (alter("person", "column city", mechanism="discrete-laplace"), "mechanism"),
    "no delta": (lambda h: h["receipt"].update(delta="0/1"), "budget"),
    "no choice of pairs": (without("person", "choice of pair"), f"{MISSING}choice of pair"),
}


@pytest.mark.parametrize("name", GAUSSIAN)
def test_a_receipt_with_delta(name: str, gaussian: Path, tmp_path: Path) -> None:
    change, message = GAUSSIAN[name]
    path = forged(gaussian, tmp_path / "forged", change)
    assert_refused(path, message)


def test_a_limit_in_the_spec_is_no_cap(source: Path, tmp_path: Path) -> None:
    """It says how many rows an owner may be given; all rows are counted all the same, and the receipt says so."""
    spec = draft(source, unit="person", domains="data", public=["club"], owners={"visit": ("person_id",)})
    tables = spec.tables | {"visit": spec.tables["visit"].model_copy(update={"rows_per_entity": 2})}
    model = fit(spec.model_copy(update={"tables": tables}), epsilon="400", entropy=SeededEntropy())
    save_model(model, tmp_path / "model")
    assert verify(tmp_path / "model").status == "conditional"
    assert model.receipt["unit"]["tables"]["visit"]["rows_per_entity"] is None
    owner = model.tables["visit"].links["visit.person_id"]
    assert isinstance(owner, FanoutLink)
    assert owner.edges[-1] == 3
