"""The receipt: what is promised to whom, what was taken as public, and every draw that was paid for.

A JSON object without floats (rationals are "p/q"), described in docs/receipt.md. It is published beside the data and
checked by `privbench_verify`, which shares no code with what writes it.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from privbench.privacy.events import PrivacyMeasure, rational
from privbench.privacy.ledger import Ledger
from privbench.privacy.queries import ENTITY_WEIGHT, CapChoice
from privbench.privacy.zcdp import largest_rho
from privbench.schema.computed import ComputedOrigin
from privbench.schema.domain import Origin, Scalar
from privbench.schema.people import people_in
from privbench.schema.release import Release
from privbench.schema.tables import Place
from privbench.schema.unit import Link, LinkKind, Neighbours, Protection, Role

VERSION = 2
NOT_PRIVATE = "not private: the noise came from a test source and can be repeated"
AS_PUBLISHED = "as published: the claim was not verified"
REFERENCES = (
    "An entity is protected for its own rows. That rows of other entities reference it through these keys is not "
    "protected."
)
INSIDE = (
    "These keys reference rows of the same entity; where one does not, it counts as NULL. A row belongs to the entity "
    "that the first of its keys with the role implied leads to, else to that of its owner key."
)
ORPHANS = (
    "Keys to missing rows were counted as NULL. Rows that reference the same missing owner are protected together, as "
    "one entity."
)

_FACTORS = {Neighbours.REPLACE: 2, Neighbours.ADD_REMOVE: 1}
"""Replacing an entity is removing one and adding one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFacts:
    """What the promise takes as public, beside the schema and the public tables."""

    domains: Mapping[Place, Origin]
    """Where the domain of each column comes from."""
    sizes: Mapping[str, int]
    """Private tables whose number of rows is public."""
    rows_per_entity: Mapping[str, int | None]
    """Private tables and the most rows that one entity has there; None where that is not limited."""
    declared_caps: Collection[str]
    """The tables for which the publisher declared it; elsewhere it was chosen with budget, or is the owner table's."""
    orphans: str
    """What a key to a missing row is: "error" or "null"."""
    parameters: Mapping[str, Scalar]
    """Method and its settings."""
    computed: tuple[Mapping[str, Any], ...] = ()
    """Computed columns, what they equal and where that comes from, as the receipt has them."""
    relative: tuple[Mapping[str, Any], ...] = ()
    """Columns that are coded as differences, from what, and who says so, as the receipt has them."""
    releases: Mapping[Place, str] = field(default_factory=dict)
    """Columns whose domain an earlier release has paid for, and the digest of its receipt."""
    earlier: tuple[Release, ...] = ()
    """The releases on which this one builds."""
    rules_from_data: tuple[tuple[str, str], ...] = ()
    """Rules that were taken from the data, each with its table."""


def open_ledger(
    epsilon: Fraction, delta: Fraction, neighbours: Neighbours, *, thresholds: Fraction = Fraction(0)
) -> Ledger:
    """The ledger whose whole budget keeps a promise: an epsilon without a delta, with one a rho that implies both.

    `thresholds` is the part of delta that is kept for thresholds; rho then implies epsilon with the rest.
    """
    if delta == 0:
        return Ledger(epsilon / _FACTORS[neighbours])
    measure = PrivacyMeasure.RHO_REPLACE if neighbours is Neighbours.REPLACE else PrivacyMeasure.RHO
    return Ledger(largest_rho(epsilon, delta - thresholds), measure, thresholds=thresholds)


def make_receipt(
    *,
    protection: Protection,
    facts: PublicFacts,
    epsilon: Fraction,
    delta: Fraction = Fraction(0),
    ledger: Ledger,
    private_noise: bool,
    software: str,
    coins: Sequence[int],
) -> dict[str, Any]:
    """Write the receipt of a finished fit. `software` is name and version; test noise is not `private_noise`.

    Two random words, `coins`, tell it from the receipt of another fit that drew and spent the same.
    """
    if (delta == 0) != (ledger.measure is PrivacyMeasure.EPSILON):
        raise ValueError(f"a ledger that counts {ledger.measure.value} cannot keep a promise with delta {delta}")
    charges = ledger.to_json()
    claimed = claims(protection, facts, charges["nodes"])
    return {
        "version": VERSION,
        "id": "".join(f"{coin:016x}" for coin in coins),
        "software": software,
        "condition": claimed["condition"],
        "stamp": _stamp(ledger, facts, private_noise=private_noise),
        "epsilon": rational(epsilon),
        "delta": rational(delta),
        "neighbours": claimed["neighbours"],
        "budget": _budget(ledger),
        "noise": "operating system" if private_noise else "test",
        "unit": claimed["unit"],
        "references": claimed["references"],
        "inside": claimed["inside"],
        "public": claimed["public"],
        "earlier": claimed["earlier"],
        "computed": claimed["computed"],
        "relative": claimed["relative"],
        "ledger": charges,
    }


def claims(protection: Protection, facts: PublicFacts, nodes: Collection[Mapping[str, Any]]) -> dict[str, Any]:
    """What a receipt says beside the numbers: who is protected and what is public. `nodes` is the tree of charges."""
    queries = [node["query"] for node in nodes if node["kind"] == "event"]
    chosen = {query["table"] for query in queries if query["kind"] == CapChoice.kind}
    return {
        "condition": _condition(facts),
        "neighbours": protection.neighbours.value,
        "unit": _unit(protection, facts, chosen),
        "references": _references(protection),
        "inside": _inside(protection),
        "public": _public(protection, facts),
        "earlier": [release.model_dump(mode="json") for release in facts.earlier],
        "computed": [dict(column) for column in facts.computed],
        "relative": [dict(column) for column in facts.relative],
    }


def display_name(*names: str) -> str:
    r"""Names joined by dots, for people; a name of other than plain characters is written as JSON does.

    >>> print(display_name("person", "age"), display_name("a.b", 'say "x"'))
    person.age "a.b"."say \"x\""
    """
    return ".".join(name if _is_plain(name) else json.dumps(name, ensure_ascii=False) for name in names)


def _is_plain(name: str) -> bool:
    return bool(name) and all(c.isalnum() or c in "_- " for c in name)


def _budget(ledger: Ledger) -> dict[str, Any]:
    budget = {"measure": ledger.measure.word, "amount": rational(ledger.budget)}
    if ledger.measure is PrivacyMeasure.EPSILON:
        return budget
    return {**budget, "thresholds": rational(ledger.thresholds)}


def _condition(facts: PublicFacts) -> str | None:
    places = {place for place, origin in facts.domains.items() if origin is Origin.DATA}
    places |= {(c["table"], c["column"]) for c in facts.computed if c["origin"] == ComputedOrigin.DATA.value}
    clauses = [
        f"epsilon holds given that these {what} are public: {', '.join(display_name(*place) for place in named)}"
        for what, named in (("domains", sorted(places)), ("rules", sorted(facts.rules_from_data)))
        if named
    ]
    return "; ".join(clauses) or None


def _stamp(ledger: Ledger, facts: PublicFacts, *, private_noise: bool) -> str | None:
    if not private_noise:
        return NOT_PRIVATE
    return AS_PUBLISHED if ledger.as_published or facts.parameters.get("as_published") is True else None


def _unit(protection: Protection, facts: PublicFacts, chosen: Collection[str]) -> dict[str, Any]:
    tables = {
        table: {
            "role": protection.roles[table].value,
            **_owner(protection, table),
            "rows_per_entity": 1 if table == protection.entity else facts.rows_per_entity[table],
            "rows_per_entity_from": _cap_origin(protection, table, facts, chosen),
        }
        for table in protection.order
    }
    lists = [table for table in protection.order if protection.schema.table(table).list_of]
    return {"entity": protection.entity, "weight": ENTITY_WEIGHT, "tables": tables, "lists": lists}


def _cap_origin(protection: Protection, table: str, facts: PublicFacts, chosen: Collection[str]) -> str:
    """Declared, chosen with budget, none, or derived: 1 in the entity table, the owner table's elsewhere."""
    if table != protection.entity and facts.rows_per_entity[table] is None:
        return "none"
    if table in chosen:
        return "chosen"
    return "declared" if table in facts.declared_caps else "derived"


def _owner(protection: Protection, table: str) -> dict[str, Any]:
    """Name the owner table and the key that says whose row it is; a lookup has it in its owner table."""
    if table in protection.lookups:
        owner, key = protection.lookups[table]
        return {"owner": owner, "key": list(key.columns)}
    if table in protection.owners:
        key = protection.owners[table]
        return {"owner": key.table, "key": list(key.columns)}
    return {"owner": None, "key": None}


def link_json(link: Link) -> dict[str, Any]:
    """Name a key as the receipt does."""
    return {"table": link.table, "columns": list(link.key.columns), "target": link.target}


def _references(protection: Protection) -> dict[str, Any]:
    keys = [link_json(link) for link in protection.links if link.kind is LinkKind.REFERENCE]
    return {"note": REFERENCES if keys else None, "keys": keys}


def _inside(protection: Protection) -> dict[str, Any]:
    """The keys that stay inside the entity beside the owner keys; implied ones in the order in which they decide."""
    implied = [link for table in protection.order for link in reversed(protection.implied_of(table))]
    links = [*implied, *(link for link in protection.links if link.kind is LinkKind.INSIDE)]
    keys = [link_json(link) | {"role": link.kind.value} for link in links]
    return {"note": INSIDE if keys else None, "keys": keys}


def _public(protection: Protection, facts: PublicFacts) -> dict[str, Any]:
    rules = [{"table": table, "rule": rule} for table, rule in sorted(facts.rules_from_data)]
    inbound = {(k.target, k.key.references) for k in protection.links if k.kind is LinkKind.INBOUND}
    return {
        "domains": [_domain(facts, place) for place in sorted(facts.domains)],
        "sizes": dict(facts.sizes),
        "tables": [t for t, role in protection.roles.items() if role is Role.PUBLIC and t not in protection.made_up],
        "keys": [{"table": table, "columns": list(columns)} for table, columns in sorted(inbound)],
        "orphans": facts.orphans,
        "orphans_note": ORPHANS if facts.orphans == "null" else None,
        "parameters": {name: _exact(value) for name, value in facts.parameters.items()},
        **({"rules": rules} if rules else {}),
        **({"made_up": dict(protection.made_up)} if protection.made_up else {}),
        **({"people": people} if (people := people_in(protection)) else {}),
    }


def _domain(facts: PublicFacts, place: Place) -> dict[str, Any]:
    release = {"release": facts.releases[place]} if place in facts.releases else {}
    return {"table": place[0], "column": place[1], "origin": facts.domains[place].value, **release}


def _exact(value: Scalar) -> bool | int | str:
    """Write a setting without floats: 0.5 becomes "0.5"."""
    return repr(value) if isinstance(value, float) else value
