"""Random trees of charges, and a receipt around a ledger, for the tests of ledger and verifier."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st
from privbench.privacy.price import price_choice, price_noise

from privbench.errors import BudgetError
from privbench.privacy.events import UNITS, Event, Mechanism, quantise
from privbench.privacy.ledger import Ledger, Scope
from privbench.privacy.noise import Entropy, OsEntropy, round_scale
from privbench.privacy.partitions import Boxes, Centres, intervals
from privbench.privacy.receipt import PublicFacts, add_remove_budget, make_receipt, open_ledger
from privbench.schema.domain import Origin
from privbench.schema.tables import Column, ForeignKey, Schema, Table
from privbench.schema.types import parse_type
from privbench.schema.unit import Neighbours, Protection, protect

ROWS = {"person": 1, "visit": 3}
WIDTH = 64
EPSILON = Fraction(16, 5)
DELTA = Fraction(1, 10**9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing a method might do at a scope that is already open, picked by number."""

    kind: str
    scope: int
    table: str
    share: Fraction


steps = st.builds(
    Step,
    kind=st.sampled_from(["count", "choose", "sequence", "boxes", "centres"]),
    scope=st.integers(0, 1000),
    table=st.sampled_from(sorted(ROWS)),
    share=st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(1, 2)),
)
walks = st.lists(steps, max_size=40)


def event(table: str, epsilon: Fraction, *, chooses: bool = False, query: str = "sizes") -> Event:
    """A query in which one row counts once."""
    epsilon = quantise(epsilon)
    sensitivity = Fraction(ROWS[table])
    return Event(
        mechanism=Mechanism.PERMUTE_AND_FLIP if chooses else Mechanism.DISCRETE_LAPLACE,
        query=query,
        table=table,
        sensitivity=sensitivity,
        scale=round_scale((2 if chooses else 1) * sensitivity / epsilon),
        amount=epsilon,
        draws=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An open scope, the table it may measure (None: any) and the codes of its box."""

    scope: Scope
    table: str | None
    low: int = 0
    high: int = WIDTH


def follow(ledger: Ledger, walk: list[Step]) -> Iterator[Step]:
    """Do the steps; those that the ledger refused for lack of budget are handed back."""
    places = [Place(scope=ledger.root, table=None)]
    for step in walk:
        place = places[step.scope % len(places)]
        table = place.table or step.table
        if step.kind == "sequence":
            places.append(
                Place(scope=place.scope.sequential("below"), table=place.table, low=place.low, high=place.high)
            )
        elif step.kind == "boxes" and place.high - place.low >= 2:
            places += _halves(place, table)
        elif step.kind == "centres":
            by = Centres(table=table, rows_per_entity=ROWS[table], centres=({"age": (0,)}, {"age": (9,)}))
            scopes = place.scope.partition("by centres", by, 2)
            places += [Place(scope=s, table=table, low=place.low, high=place.high) for s in scopes]
        else:
            try:
                place.scope.charge(event(table, step.share, chooses=step.kind == "choose"))
            except BudgetError:
                yield step


def _halves(place: Place, table: str) -> list[Place]:
    middle = (place.low + place.high) // 2
    ends = ((place.low, middle), (middle, place.high))
    boxes = tuple({"age": intervals(range(low, high))} for low, high in ends)
    by = Boxes(table=table, rows_per_entity=ROWS[table], boxes=boxes)
    scopes = place.scope.partition("by age", by, 2)
    return [Place(scope=s, table=table, low=low, high=high) for s, (low, high) in zip(scopes, ends, strict=True)]


def protection(neighbours: Neighbours = Neighbours.REPLACE) -> Protection:
    """Persons with visits; a visit may name another person who came along, and a public town."""
    integer = parse_type("INTEGER")
    to_person = ForeignKey(columns=("person",), table="person", references=("id",))
    guest = ForeignKey(columns=("guest",), table="person", references=("id",))
    town = ForeignKey(columns=("town",), table="town", references=("id",))
    columns = {"person": ("id", "age"), "visit": ("person", "guest", "town", "cost"), "town": ("id",)}
    keys = {"visit": (to_person, guest, town)}
    tables = tuple(
        Table(
            name=name,
            columns=tuple(Column(name=c, type=integer) for c in names),
            primary_key=("id",) if "id" in names else (),
            foreign_keys=keys.get(name, ()),
        )
        for name, names in columns.items()
    )
    return protect(
        Schema(tables=tables), entity="person", neighbours=neighbours, owners={"visit": ("person",)}, public=["town"]
    )


def receipt(
    ledger: Ledger,
    *,
    epsilon: Fraction,
    delta: Fraction = Fraction(0),
    neighbours: Neighbours = Neighbours.REPLACE,
    cap: int | None = ROWS["visit"],
    entropy: Entropy | None = None,
    origin: Origin = Origin.DECLARED,
    orphans: str = "error",
) -> dict[str, Any]:
    """The receipt of a ledger over persons and visits."""
    assert ledger.budget == open_ledger(epsilon, delta, neighbours, thresholds=ledger.thresholds).budget
    facts = PublicFacts(
        domains={"visit.cost": origin, **dict.fromkeys(("person.age", "person.sex", "visit.age"), Origin.SCHEMA)},
        sizes={"person": 120} if neighbours is Neighbours.REPLACE else {},
        rows_per_entity={"visit": cap},
        declared_caps=["visit"],
        orphans=orphans,
        parameters={"method": "paper", "alpha": 0.5, "beta": 10_000},
    )
    return make_receipt(
        protection=protection(neighbours),
        facts=facts,
        epsilon=epsilon,
        delta=delta,
        ledger=ledger,
        entropy=entropy or OsEntropy(),
        software="privbench 0.1.0",
    )


def spent_ledger(neighbours: Neighbours = Neighbours.REPLACE) -> Ledger:
    """A ledger with one node of every kind."""
    ledger = Ledger(add_remove_budget(EPSILON, neighbours))
    ledger.root.charge(event("visit", Fraction(1, 50), chooses=True, query="rows per entity"))
    persons = ledger.root.sequential("person")
    ages = Boxes(table="person", rows_per_entity=1, boxes=({"age": ((0, 4),)}, {"age": ((5, 9),)}))
    young, old = persons.partition("by age", ages, 2)
    young.charge(event("person", Fraction(1, 4)))
    old.charge(event("person", Fraction(1, 2)))
    costs = Centres(table="visit", rows_per_entity=3, centres=({"cost": (-3,)}, {"cost": (7,)}))
    cheap, _ = ledger.root.sequential("visit").partition("by centres", costs, 2)
    cheap.charge(event("visit", Fraction(1, 8)))
    return ledger


def good(**options: Any) -> dict[str, Any]:
    """An honest receipt, as it comes back from a file."""
    read: dict[str, Any] = json.loads(json.dumps(receipt(spent_ledger(), epsilon=EPSILON, **options)))
    return read


def weigh(ledger: Ledger, *, table: str = "visit") -> None:
    """Charge weighted counts and a weighted choice, a hundredth of the budget each."""
    share = {"amount": ledger.budget / 100, "sensitivity": UNITS, "weighted": True}
    scope = ledger.root.sequential(f"weights of {table}")
    scope.charge(price_noise(ledger.currency, table, "weights of cost", draws=4, additive=True, **share))  # type: ignore[arg-type]
    scope.charge(price_choice(ledger.currency, table, "one of 3 pairs", **share))  # type: ignore[arg-type]


def rho_ledger(neighbours: Neighbours = Neighbours.REPLACE) -> Ledger:
    """A ledger of rho with one event of every kind: a monotone choice, counts that an entity lowers, weights."""
    ledger = open_ledger(EPSILON, DELTA, neighbours)
    fifth = ledger.budget / 5
    ledger.root.charge(
        price_choice(ledger.currency, "visit", "rows per entity", sensitivity=1, amount=fifth, monotone=True)
    )
    keys = price_noise(ledger.currency, "visit", BY_GUESTS, sensitivity=7, amount=fifth, draws=4)
    ledger.root.sequential("keys").charge(keys)
    weigh(ledger)
    return ledger


BY_GUESTS = "rows of person by number of visit.guest"


def good_rho(neighbours: Neighbours = Neighbours.REPLACE) -> dict[str, Any]:
    """An honest receipt with a delta, as it comes back from a file."""
    made = receipt(rho_ledger(neighbours), epsilon=EPSILON, delta=DELTA, neighbours=neighbours)
    read: dict[str, Any] = json.loads(json.dumps(made))
    return read
