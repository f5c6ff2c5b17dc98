"""Keys that stay inside the entity: what one entity moves, in all databases of a small universe and their neighbours.

Persons (the entities) own visits and calls. A payment is owned by a visit; its payer is implied, its call is a row of
the same entity. Any of these keys may be NULL or lead to another entity's row: whose the payment is, and which of its
keys count, is worked out as a fit does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from privbench.encode.keys import MISSING, NULL
from privbench.fitting import entities as entities_module
from privbench.fitting.entities import KeyPositions, RawTable, assign_entities
from privbench.model.facts import link_facts
from privbench.privacy import features
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.facts import ColumnFacts
from privbench.privacy.noise import TestEntropy
from privbench.privacy.parts import one_part
from privbench.privacy.queries import ENTITY_WEIGHT
from privbench.schema.tables import Column, ForeignKey, Schema, Table
from privbench.schema.types import parse_type
from privbench.schema.unit import LinkKind, Protection, protect
from privbench.spn.fanouts import fanout_edges, size_edges

from .brute import pair_histograms, worst_moves


def _table(name: str, **keys: str) -> Table:
    number = parse_type("INTEGER")
    columns = (Column(name="id", type=number, nullable=False), Column(name="a", type=number))
    return Table(
        name=name,
        columns=(*columns, *(Column(name=key, type=number) for key in keys)),
        primary_key=("id",),
        foreign_keys=tuple(
            ForeignKey(columns=(key,), table=target, references=("id",), inside=key in ("payer", "call"))
            for key, target in keys.items()
        ),
    )


PROTECTION: Protection = protect(
    Schema(
        tables=(
            _table("person"),
            _table("visit", person="person"),
            _table("call", person="person"),
            _table("payment", visit="visit", payer="person", call="call"),
        )
    ),
    entity="person",
)
LINKS = {link.name: link_facts(link, slots=None) for link in PROTECTION.links}
KEYS = {link.name: link for link in PROTECTION.keys}
EDGES = fanout_edges(2)
OWN = features.own("a", ColumnFacts(size=2, ordered=True))
VISIT = LINKS["payment.visit"]
ACTIVITY = features.activity((LINKS["visit.person"], LINKS["call.person"], VISIT), fanout_edges(6))
FEATURES = {
    "person": (ACTIVITY,),
    "visit": (features.fanout(VISIT, EDGES),),
    "call": (features.in_degree(LINKS["payment.call"], EDGES),),
    "payment": (
        OWN,
        features.null_key(VISIT),
        features.null_key(LINKS["payment.call"]),
        features.of_owner(OWN, VISIT),
        features.of_owner(features.fanout(VISIT, EDGES), VISIT),
        features.of_owner(features.of_owner(ACTIVITY, LINKS["visit.person"]), VISIT),
        features.of_first(OWN, VISIT),
        features.rank(VISIT),
        features.entity_rows(size_edges()),
    ),
}
QUERIES = pair_histograms(FEATURES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """A payment by the names in its keys."""

    visit: str | None
    payer: str | None
    call: str | None
    code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Persons, each with visits and a call named after it, and payments; whose these are, with all of them there."""

    persons: Sequence[str]
    payments: Sequence[Payment]

    def tables(self) -> dict[str, RawTable]:
        visits = [f"{p}{n}" for p in self.persons for n in range(2 if p == "e" else 1)]
        places = {
            "person": {p: at for at, p in enumerate(self.persons)},
            "visit": {v: at for at, v in enumerate(visits)},
            "call": {p: at for at, p in enumerate(self.persons)},
        }
        held = {
            "person": {},
            "visit": {"visit.person": [v[0] for v in visits]},
            "call": {"call.person": list(self.persons)},
            "payment": {
                f"payment.{key}": [getattr(p, key) for p in self.payments] for key in ("visit", "payer", "call")
            },
        }
        codes = {
            "person": [int(p == "e") for p in self.persons],
            "visit": [int(v == "e1") for v in visits],
            "call": [0] * len(self.persons),
            "payment": [p.code for p in self.payments],
        }
        return {
            table: RawTable(
                codes={"a": np.array(own, np.uint8)},
                values={},
                keys={key: _positions(names, places[KEYS[key].target]) for key, names in held[table].items()},
                rows=len(own),
            )
            for table, own in codes.items()
        }

    def engine(self) -> NumpyEngine:
        return NumpyEngine(one_part(assign_entities(PROTECTION, self.tables())), entropy=TestEntropy(0))

    def without(self, gone: int) -> "World":
        """The world without an entity, by its number; keys of others to its rows lead nowhere."""
        mine = assign_entities(PROTECTION, self.tables())["payment"].entities
        return World(
            persons=[p for at, p in enumerate(self.persons) if at != gone],
            payments=[p for p, entity in zip(self.payments, mine, strict=True) if entity != gone],
        )


def _positions(names: Sequence[str | None], places: dict[str, int]) -> KeyPositions:
    rows = np.array([NULL if name is None else places.get(name, MISSING) for name in names], np.int64)
    return KeyPositions(rows=rows, missing=np.where(rows == MISSING, 0, -1))


def _worlds() -> Iterator[World]:
    kinds = [
        Payment(visit=v, payer=p, call=c)
        for v, p, c in product((None, "e0", "e1", "f0"), (None, "e", "f"), (None, "e", "f"))
    ]
    for at, (one, other) in enumerate(combinations_with_replacement(kinds, 2)):
        yield World(persons=["e", "f"], payments=[one, replace(other, code=1), kinds[(5 * at) % len(kinds)]])


def _families() -> Iterator[list[NumpyEngine]]:
    for world in _worlds():
        own = assign_entities(PROTECTION, world.tables())["payment"].entities
        gone = {0, 1, *own.tolist()}
        yield [world.engine(), *(world.without(entity).engine() for entity in sorted(gone))]


def test_no_entity_moves_more_than_its_weight_and_some_entity_moves_that() -> None:
    worst = worst_moves(_families(), QUERIES)
    assert {query.sensitivity for query in QUERIES.values()} == {ENTITY_WEIGHT}
    assert all(query.additive for query in QUERIES.values())
    attained = [name for name, moved in worst.items() if moved == ENTITY_WEIGHT]
    assert len(attained) > 0.9 * len(worst), "three rows cannot share 2**20 units without a rest"
    assert min(worst.values()) >= ENTITY_WEIGHT - 3


def test_the_payer_decides_and_the_visit_where_there_is_no_payer() -> None:
    payments = [
        Payment(visit="e0", payer="e", call="e"),
        Payment(visit=None, payer="f", call="f"),
        Payment(visit="e1", payer=None, call="f"),
        Payment(visit="e0", payer="f", call="e"),
        Payment(visit=None, payer=None, call="e"),
        Payment(visit=None, payer=None, call=None),
    ]
    coded = assign_entities(PROTECTION, World(persons=["e", "f"], payments=payments).tables())["payment"]
    assert coded.entities[:4].tolist() == [0, 1, 0, 1]
    assert len({0, 1, *coded.entities[4:].tolist()}) == 4, "rows that no key leads to are entities of their own"
    assert coded.keys["payment.visit"].tolist() == [0, NULL, 1, NULL, NULL, NULL]
    assert coded.keys["payment.call"].tolist() == [0, 1, NULL, NULL, NULL, NULL]
    assert "payment.payer" not in coded.keys
    assert KEYS["payment.payer"].kind is LinkKind.IMPLIED


def test_keys_that_lead_out_of_the_entity_would_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entities_module, "inside_keys", lambda rows, *_: np.where(rows == MISSING, NULL, rows))
    with pytest.raises(AssertionError, match=r"not additive|>"):
        worst_moves(_families(), QUERIES)


def test_rows_that_are_weighed_by_their_owner_alone_would_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    """Payments without a visit would each weigh as much as an entity, and one person may have many."""
    worlds = [[world, world.without(0)] for world in _worlds()]
    monkeypatch.setattr(Protection, "owner_keys", lambda self, table: (self.owners[table],))
    with pytest.raises(AssertionError, match=r"not additive|>"):
        worst_moves(([world.engine() for world in pair] for pair in worlds), QUERIES)
