"""Random trees of charges, and a receipt around a ledger, for the tests of ledger and receipts."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from privbench.errors import BudgetError
from privbench.methods.capped import row_histogram
from privbench.privacy import features
from privbench.privacy.blocks import Block
from privbench.privacy.calibrate import calibrate
from privbench.privacy.events import Event, PrivacyMeasure
from privbench.privacy.facts import ColumnFacts, LinkFacts
from privbench.privacy.features import whole_axis
from privbench.privacy.ledger import Ledger, Scope
from privbench.privacy.partitions import Centres
from privbench.privacy.queries import CapChoice, Histogram, Pair, PairChoice, Query, SplitChoice
from privbench.privacy.receipt import PublicFacts, make_receipt, open_ledger
from privbench.schema.domain import Origin
from privbench.schema.tables import Column, ForeignKey, Schema, Table
from privbench.schema.types import parse_type
from privbench.schema.unit import LinkKind, Neighbours, Protection, protect

ROWS = {"person": 1, "visit": 3}
EPSILON = Fraction(16, 5)
DELTA = Fraction(1, 10**9)
COST = whole_axis(features.own("cost", ColumnFacts(size=4, ordered=True)))
GUEST = LinkFacts(
    name="visit.guest",
    table="visit",
    columns=("guest",),
    target="person",
    kind=LinkKind.REFERENCE,
    slots=None,
    nullable=True,
    unique=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing a method might do at a scope that is already open, picked by number."""

    kind: str
    scope: int
    table: str
    share: Fraction


steps = st.builds(
    Step,
    kind=st.sampled_from(["count", "choose", "sequence", "centres"]),
    scope=st.integers(0, 1000),
    table=st.sampled_from(sorted(ROWS)),
    share=st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(1, 2)),
)
walks = st.lists(steps, max_size=40)


def block_of(table: str, cap: int | None = None) -> Block:
    """Rows of a table; events do not say which."""
    return Block(table=table, cap=cap or ROWS[table], scope=Ledger(Fraction(1)).root)


def sizes(table: str) -> Histogram:
    """The number of rows."""
    return row_histogram(block_of(table))


def split_choice(table: str) -> SplitChoice:
    """Which half of the columns goes with which."""
    halves = (("age",), ("cost",))
    return SplitChoice(block=block_of(table), candidates=(halves, halves), columns={}, most_rows=100)


def cap_choice(table: str = "visit") -> CapChoice:
    """Which cap on the rows per entity is best."""
    return CapChoice(table=table, candidates=(1, 2, 3), penalties=(0, 1, 2), owner=None)


def event(table: str, epsilon: Fraction, *, chooses: bool = False) -> Event:
    """A query in which one row counts once."""
    return calibrate(split_choice(table) if chooses else sizes(table), PrivacyMeasure.EPSILON, epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An open scope and the table it may measure (None: any)."""

    scope: Scope
    table: str | None


def follow(ledger: Ledger, walk: list[Step]) -> Iterator[Step]:
    """Do the steps; those that the ledger refused for lack of budget are handed back."""
    places = [Place(scope=ledger.root, table=None)]
    for step in walk:
        place = places[step.scope % len(places)]
        table = place.table or step.table
        if step.kind == "sequence":
            places.append(Place(scope=place.scope.sequential("below"), table=place.table))
        elif step.kind == "centres":
            by = Centres(table=table, rows_per_entity=ROWS[table], centres=({"age": (0,)}, {"age": (9,)}))
            scopes = place.scope.partition("by centres", by, 2)
            places += [Place(scope=s, table=table) for s in scopes]
        else:
            try:
                place.scope.charge(event(table, step.share, chooses=step.kind == "choose"))
            except BudgetError:
                yield step


def protection(neighbours: Neighbours = Neighbours.REPLACE) -> Protection:
    """Persons with visits; a visit may name another person who came along, and a public town."""
    integer = parse_type("INTEGER")
    to_person = ForeignKey(columns=("person",), table="person", references=("id",))
    guest = ForeignKey(columns=("guest",), table="person", references=("id",))
    town = ForeignKey(columns=("town",), table="town", references=("id",))
    columns = {"person": ("id", "age"), "visit": ("person", "guest", "town", "age", "cost"), "town": ("id",)}
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
    private_noise: bool = True,
    origin: Origin = Origin.DECLARED,
    orphans: str = "error",
) -> dict[str, Any]:
    """The receipt of a ledger over persons and visits."""
    assert ledger.budget == open_ledger(epsilon, delta, neighbours, thresholds=ledger.thresholds).budget
    schema = {("person", "age"): Origin.SCHEMA, ("visit", "age"): Origin.SCHEMA}
    facts = PublicFacts(
        domains={("visit", "cost"): origin, **schema},
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
        private_noise=private_noise,
        software="privbench 0.2.0",
        coins=(1, 2),
    )


def spent_ledger(neighbours: Neighbours = Neighbours.REPLACE) -> Ledger:
    """A ledger with one node of every kind."""
    ledger = open_ledger(EPSILON, Fraction(0), neighbours)
    ledger.root.charge(calibrate(cap_choice(), PrivacyMeasure.EPSILON, Fraction(1, 50)))
    persons = ledger.root.sequential("person")
    ages = Centres(table="person", rows_per_entity=1, centres=({"age": (2,)}, {"age": (7,)}))
    young, old = persons.partition("by age", ages, 2)
    young.charge(event("person", Fraction(1, 4)))
    old.charge(event("person", Fraction(1, 2)))
    costs = Centres(table="visit", rows_per_entity=3, centres=({"cost": (-3,)}, {"cost": (7,)}))
    cheap, _ = ledger.root.sequential("visit").partition("by centres", costs, 2)
    cheap.charge(event("visit", Fraction(1, 8)))
    return ledger


def good(neighbours: Neighbours = Neighbours.REPLACE, **options: Any) -> dict[str, Any]:
    """An honest receipt, as it comes back from a file."""
    made = receipt(spent_ledger(neighbours), epsilon=EPSILON, neighbours=neighbours, **options)
    read: dict[str, Any] = json.loads(json.dumps(made))
    return read


def weights() -> tuple[Histogram, PairChoice]:
    """Weighted counts, and a weighted choice."""
    pair = Pair(COST, COST, np.zeros((COST.size, COST.size), np.int64), 0)
    return Histogram(table="visit", axes=(COST,)), PairChoice(table="visit", candidates=(pair,) * 3)


def guests() -> Histogram:
    """Counts that an entity may lower."""
    return row_histogram(block_of("person"), whole_axis(features.in_degree(GUEST, np.arange(5), cap=ROWS["visit"])))


def rho_ledger(neighbours: Neighbours = Neighbours.REPLACE) -> Ledger:
    """A ledger of rho with one event of every kind: a monotone choice, counts that an entity lowers, weights."""
    ledger = open_ledger(EPSILON, DELTA, neighbours)
    asked: list[tuple[Scope, Query, Fraction]] = [
        (ledger.root, cap_choice(), Fraction(1, 5)),
        (ledger.root.sequential("keys"), guests(), Fraction(1, 5)),
        *((ledger.root.sequential("weights"), query, Fraction(1, 100)) for query in weights()),
    ]
    for scope, query, share in asked:
        scope.charge(calibrate(query, ledger.measure, ledger.budget * share))  # type: ignore[arg-type]
    return ledger


def good_rho(neighbours: Neighbours = Neighbours.REPLACE) -> dict[str, Any]:
    """An honest receipt with a delta, as it comes back from a file."""
    made = receipt(rho_ledger(neighbours), epsilon=EPSILON, delta=DELTA, neighbours=neighbours)
    read: dict[str, Any] = json.loads(json.dumps(made))
    return read
