"""Forged receipts of method `tree`: each adds up on its face, and none is verified."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.model.file import load_model, save_model
from privbench.model.model import Model
from privbench.model.verify import verify
from privbench.spn.fanout_link import FanoutLink
from privbench.spn.reference_link import ReferenceLink

from ..forging import (
    COMMON,
    Change,
    Header,
    alter,
    alter_bins,
    assert_refused,
    counted_by,
    drop,
    empty_ledger,
    events,
    forged,
    of_kind,
    relabel,
    write_shop,
)
from ..seeded import SeededEntropy

DDL = """CREATE TABLE person (id INTEGER PRIMARY KEY, city VARCHAR, age SMALLINT);
CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER REFERENCES person (id), kind VARCHAR, cost SMALLINT,
  guide INTEGER REFERENCES person (id));
CREATE TABLE club (leader INTEGER REFERENCES person (id));"""
PEOPLE, VISITS = 120, 300
WEIGHT = 2**20
"""What an entity weighs."""


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


CITY, AGE = counted_by("column", "city"), counted_by("column", "age")
ROWS, GUIDES = counted_by("fanout", "person_id"), counted_by("in-degree", "guide")
NULL_GUIDES, UNOWNED = counted_by("null key", "guide"), counted_by("null key", "person_id")
PAIR = of_kind("histogram", axes=2)
UNPAID = "missing for what the model holds"


def counted_in_rows(header: Header) -> None:
    event = events(header, CITY)[0]
    event["query"]["counts"] = "rows"
    event["sensitivity"] = "1/1"


FORGED = COMMON | {
    "ledger emptied": (empty_ledger, UNPAID),
    "a column without event": (relabel(CITY, AGE), UNPAID),
    "a column left out": (drop(CITY), UNPAID),
    "a column with fewer draws": (alter(CITY, draws=1), "draws"),
    "a column with fewer bins": (alter_bins(CITY, 1), UNPAID),
    "a column counted in rows": (counted_in_rows, ""),
    "fanouts without event": (relabel(ROWS, AGE), UNPAID),
    "in-degrees without event": (relabel(GUIDES, AGE), UNPAID),
    "NULL keys without event": (relabel(NULL_GUIDES, AGE), UNPAID),
    "unowned rows without event": (relabel(UNOWNED, counted_by("column", "cost")), UNPAID),
    "a pair without event": (relabel(PAIR, AGE), UNPAID),
    "a pair with fewer bins": (alter_bins(PAIR, 1), UNPAID),
    "pairs that nobody chose": (drop(of_kind("choice of pair")), "choice of pair"),
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
    "a lower sensitivity": (alter(CITY, sensitivity=f"{WEIGHT - 1}/1"), "sensitivity"),
    "in-degrees that move once": (alter(GUIDES, sensitivity=f"{WEIGHT}/1"), "sensitivity"),
    "less noise than paid for": (alter(CITY, scale="1/1"), "too small"),
    "a smaller entity": (lambda h: h["receipt"]["unit"].update(weight=1), "unit.weight"),
    "a cap that nobody chose": (
        lambda h: h["receipt"]["unit"]["tables"]["visit"].update(rows_per_entity=1, rows_per_entity_from="declared"),
        "unit.tables is not what",
    ),
    "a field that nobody knows": (alter(CITY, additive=True), "additive"),
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


def test_an_empty_ledger_pays_for_nothing(pure: Path, forge: Callable[..., Path]) -> None:
    """Each histogram of one feature, and of a pair, that the model is made of is missed."""
    problems = verify(forge(empty_ledger)).problems
    assert all(UNPAID in problem for problem in problems)
    for kind, name in (
        ("fanout", "person_id"),
        ("in-degree", "guide"),
        ("null key", "guide"),
        ("null key", "person_id"),
        ("column", "cost"),
    ):
        assert any(f'"{kind}"' in problem and f'"{name}"' in problem for problem in problems), (kind, name)
    assert any(problem.count('"bins"') == 2 for problem in problems)


GAUSSIAN: dict[str, tuple[Change, str]] = {
    "in-degrees that move once": (alter(GUIDES, sensitivity=f"{WEIGHT}/1"), "sensitivity"),
    "in-degrees with the noise of what is additive": (
        lambda h: [e.update(scale=_half(e["scale"])) for e in events(h, GUIDES)],
        "too small",
    ),
    "rho too large": (lambda h: h["receipt"]["budget"].update(amount="1000/1"), "budget"),
    "a smaller delta": (lambda h: h["receipt"].update(delta="1/1000000000000"), "epsilon"),
    "a smaller epsilon": (lambda h: h["receipt"].update(epsilon="100/1"), "epsilon"),
    "less noise than paid for": (alter(CITY, scale="1/1"), "too small"),
    "another noise": (alter(CITY, mechanism="discrete-laplace"), "discrete-laplace"),
    "no delta": (lambda h: h["receipt"].update(delta="0/1"), "budget"),
}


def _half(scale: str) -> str:
    """Less noise by the root of two: what counts that an entity only adds to would need."""
    less = Fraction(scale) * Fraction(7072, 10_000)
    return f"{less.numerator}/{less.denominator}"


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
