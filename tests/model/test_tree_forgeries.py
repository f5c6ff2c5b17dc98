"""Forged receipts of method `tree`: each adds up on its face, and none is verified."""

from collections.abc import Callable
from pathlib import Path

import pytest
from privbench.privacy.weighted import weights_query

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.model.file import load_model, save_model
from privbench.model.model import Model
from privbench.model.verify import verify
from privbench.spn.clique import CliqueTree
from privbench.spn.fanout_link import FanoutLink
from privbench.spn.nodes import walk
from privbench.spn.reference_link import ReferenceLink

from ..forging import COMMON, Change, alter, assert_refused, empty_ledger, forged, relabel, write_shop
from ..seeded import SeededEntropy

DDL = """CREATE TABLE person (id INTEGER PRIMARY KEY, city VARCHAR, age SMALLINT);
CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER REFERENCES person (id), kind VARCHAR, cost SMALLINT,
  guide INTEGER REFERENCES person (id));
CREATE TABLE club (leader INTEGER REFERENCES person (id));"""
PEOPLE, VISITS = 120, 300
UNITS = 2**20


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Visits of persons, some of nobody, most with another person as guide; what they cost follows from their kind."""
    people = [f"{i},{'xyz'[i % 3]},{i % 3 * 10 + i % 4}" for i in range(PEOPLE)]
    visits = [
        f"{i},{i % PEOPLE if i % 5 else ''},{'ab'[i % 2]},{i % 2 * 8 + i % 3},{i * 7 % PEOPLE if i % 4 else ''}"
        for i in range(VISITS)
    ]
    return write_shop(
        tmp_path_factory.mktemp("forgeries") / "source",
        DDL,
        person="\n".join(["id,city,age", *people]),
        visit="\n".join(["id,person_id,kind,cost,guide", *visits]),
        club="leader\n3\n5\n",
    )


def _fitted(source: Path, out: Path, delta: str) -> Path:
    spec = draft(source, unit="person", domains="data", public=["club"], owners={"visit": ("person_id",)})
    save_model(fit(spec, epsilon="400", delta=delta, method="tree", entropy=SeededEntropy()), out)
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


def _pair_of(model: Path) -> str:
    """A pair of columns that the model has a table of."""
    held = load_model(model)
    nodes = (node for table in held.tables.values() for node in walk(table.network) if isinstance(node, CliqueTree))
    return next(weights_query([c.parents[0], c.column]) for node in nodes for c in node.columns if c.parents)


FORGED = COMMON | {
    "ledger emptied": (empty_ledger, "weights of city, 3 draws"),
    "a column without event": (relabel("weights of city", "weights of age"), "weights of city"),
    "a column with fewer draws": (alter("weights of city", draws=1), "weights of city, 3 draws"),
    "a column counted in rows": (alter("weights of city", weighted=False, sensitivity="1/1"), "counts weights"),
    "fanouts without event": (relabel("weights of #rows", "weights of age"), "weights of #rows visit.person_id"),
    "names without event": (relabel("weights of #named", "weights of age"), "weights of #in-degree visit.guide"),
    "NULL keys without event": (relabel("weights of #null visit.guide", "weights of age"), "weights of #null visit"),
    "unowned rows without event": (
        relabel("weights of #null visit.person_id", "weights of cost"),
        "weights of #null visit.person_id, 2 draws",
    ),
    "another method in the spec": (
        lambda h: h["spec"].update(method={"name": "paper"}),
        "the model holds what the method of its spec does not make",
    ),
    "another method everywhere": (
        lambda h: (
            h["spec"].update(method={"name": "independent"}),
            h["receipt"]["public"]["parameters"].update(method="independent"),
        ),
        "the model holds what the method of its spec does not make",
    ),
    "a method that is not there": (
        lambda h: h["receipt"]["public"]["parameters"].update(method="magic"),
        "public.parameters is not what the model's spec says",
    ),
    "a lower sensitivity": (alter("weights of city", sensitivity=f"{UNITS - 1}/1"), f"at least {UNITS}"),
    "names moved once": (alter("weights of #named", sensitivity=f"{UNITS}/1"), f"at least {3 * UNITS}"),
    "less noise than paid for": (alter("weights of city", scale="1/1"), "is too small for epsilon"),
    "a smaller entity": (lambda h: h["receipt"]["unit"].update(units_per_entity=1), "unit.units_per_entity is 1"),
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
    assert guide.null is not None


@pytest.mark.parametrize("name", FORGED)
def test_a_receipt_that_is_not_the_models(name: str, forge: Callable[..., Path]) -> None:
    change, message = FORGED[name]
    path = forge(change)
    assert_refused(path, message)


@pytest.mark.parametrize("draws", [None, 1])
def test_a_pair_without_event_or_with_fewer_draws(draws: int | None, pure: Path, forge: Callable[..., Path]) -> None:
    pair = _pair_of(pure)
    problems = verify(forge(alter(pair, draws=draws) if draws else relabel(pair, "weights of age"))).problems
    assert any("missing for what the model holds" in problem and pair in problem for problem in problems)


def test_an_empty_ledger_pays_for_nothing(pure: Path, forge: Callable[..., Path]) -> None:
    problems = verify(forge(empty_ledger)).problems
    kinds = ("#rows visit.person_id", "#in-degree visit.guide", "#null visit.guide", "#null visit.person_id", "cost")
    for query in (*(f"weights of {kind}, " for kind in kinds), f"{_pair_of(pure)}, "):
        assert any(query in problem for problem in problems), query


GAUSSIAN: dict[str, tuple[Change, str]] = {
    "names said to be additive": (alter("weights of #named", additive=True), "additive, but an entity moves what"),
    "names moved once": (alter("weights of #named", sensitivity=f"{UNITS}/1"), f"at least {3 * UNITS}"),
    "rho too large": (lambda h: h["receipt"]["budget"].update(rho="1000/1"), "budget.rho is 1000, from which only"),
    "a smaller delta": (lambda h: h["receipt"].update(delta="1/1000000000000"), "from which only epsilon"),
    "a smaller epsilon": (lambda h: h["receipt"].update(epsilon="100/1"), "from which only epsilon"),
    "less noise than paid for": (alter("weights of city", scale="1/1"), "is too small for rho"),
    "another noise": (alter("weights of city", mechanism="discrete-laplace"), "not one that rho pays for"),
    "no delta": (lambda h: h["receipt"].update(delta="0/1"), "budget"),
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
