"""The receipt: what is promised to whom, what was taken as public, and every draw that was paid for.

A JSON object without floats (rationals are "p/q"), described in docs/receipt.md. It is published beside the data and
goes through `verify.py`, which shares no code with what writes it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privbench.privacy.events import CAP_CHOICE, UNITS, Currency, rational
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import Entropy
from privbench.privacy.zcdp import largest_rho
from privbench.schema.domain import Origin, Scalar
from privbench.schema.unit import LinkKind, Neighbours, Protection, Role

VERSION = 1
NOT_PRIVATE = "not private: the noise came from a test source and can be repeated"
AS_PUBLISHED = "as published: the claim was not verified"
REFERENCES = (
    "An entity is protected for its own rows. That rows of other entities name it through these keys is not protected."
)

ORPHANS = (
    "Keys to missing rows were counted as NULL. Rows that name the same missing owner are protected together, as one "
    "entity."
)

_FACTORS = {Neighbours.REPLACE: 2, Neighbours.ADD_REMOVE: 1}
"""Replacing an entity is removing one and adding one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFacts:
    """What the promise takes as public, beside the schema and the public tables."""

    domains: Mapping[str, Origin]
    """`table.column` -> where its domain comes from."""
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


def add_remove_budget(epsilon: Fraction, neighbours: Neighbours) -> Fraction:
    """Work out what a ledger may spend so that epsilon holds for these neighbours."""
    return epsilon / _FACTORS[neighbours]


def open_ledger(
    epsilon: Fraction, delta: Fraction, neighbours: Neighbours, *, thresholds: Fraction = Fraction(0)
) -> Ledger:
    """The ledger whose whole budget keeps a promise: an epsilon without a delta, with one a rho that implies both.

    `thresholds` is the part of delta that is kept for thresholds; rho then implies epsilon with the rest.
    """
    if delta == 0:
        return Ledger(add_remove_budget(epsilon, neighbours))
    currency = Currency.RHO_REPLACE if neighbours is Neighbours.REPLACE else Currency.RHO
    return Ledger(largest_rho(epsilon, delta - thresholds), currency, thresholds=thresholds)


def make_receipt(
    *,
    protection: Protection,
    facts: PublicFacts,
    epsilon: Fraction,
    delta: Fraction = Fraction(0),
    ledger: Ledger,
    entropy: Entropy,
    software: str,
) -> dict[str, Any]:
    """Write the receipt of a finished fit. `software` is name and version."""
    if (delta == 0) != (ledger.currency is Currency.EPSILON):
        raise ValueError(f"a ledger that counts {ledger.currency.value} cannot keep a promise with delta {delta}")
    charges = ledger.to_json()
    said = claims(protection, facts, charges["nodes"])
    return {
        "condition": said["condition"],
        "stamp": _stamp(ledger, facts, entropy),
        "version": VERSION,
        "software": software,
        "epsilon": rational(epsilon),
        "delta": rational(delta),
        "neighbours": said["neighbours"],
        "budget": _budget(ledger, protection.neighbours),
        "noise": "operating system" if entropy.private else "test",
        "unit": said["unit"],
        "references": said["references"],
        "public": said["public"],
        "ledger": charges,
    }


def claims(protection: Protection, facts: PublicFacts, nodes: Collection[Mapping[str, Any]]) -> dict[str, Any]:
    """What a receipt says beside the numbers: who is protected and what is public. `nodes` is the tree of charges."""
    from_data = sorted(name for name, origin in facts.domains.items() if origin is Origin.DATA)
    chosen = {node["table"] for node in nodes if node.get("query") == CAP_CHOICE}
    return {
        "condition": _condition(from_data),
        "neighbours": protection.neighbours.value,
        "unit": _unit(protection, facts, chosen),
        "references": _references(protection),
        "public": _public(protection, facts),
    }


def _budget(ledger: Ledger, neighbours: Neighbours) -> dict[str, Any]:
    if ledger.currency is Currency.EPSILON:
        return {"add_remove": rational(ledger.budget), "factor": _FACTORS[neighbours]}
    thresholds = {"thresholds": rational(ledger.thresholds)} if ledger.thresholds else {}
    return {"rho": rational(ledger.budget), **thresholds}


def _condition(from_data: list[str]) -> str | None:
    if not from_data:
        return None
    return f"epsilon holds given that these domains are public: {', '.join(from_data)}"


def _stamp(ledger: Ledger, facts: PublicFacts, entropy: Entropy) -> str | None:
    if not entropy.private:
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
    return {"entity": protection.entity, "units_per_entity": UNITS, "tables": tables}


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


def _references(protection: Protection) -> dict[str, Any]:
    keys = [f"{link.table}{link.key}" for link in protection.links if link.kind is LinkKind.REFERENCE]
    return {"note": REFERENCES if keys else None, "keys": keys}


def _public(protection: Protection, facts: PublicFacts) -> dict[str, Any]:
    inbound = {
        f"{link.key.table}({', '.join(link.key.references)})"
        for link in protection.links
        if link.kind is LinkKind.INBOUND
    }
    # This version of the receipt has no word for earlier releases: they count as declared.
    origins = {name: Origin.DECLARED if o is Origin.EARLIER else o for name, o in facts.domains.items()}
    by_origin = {o.value: sorted(n for n, origin in origins.items() if origin is o) for o in Origin}
    by_origin.pop(Origin.EARLIER.value)
    return {
        "domains": by_origin,
        "sizes": dict(facts.sizes),
        "tables": [table for table, role in protection.roles.items() if role is Role.PUBLIC],
        "keys": sorted(inbound),
        "orphans": facts.orphans,
        "orphans_note": ORPHANS if facts.orphans == "null" else None,
        "parameters": {name: _exact(value) for name, value in facts.parameters.items()},
    }


def _exact(value: Scalar) -> bool | int | str:
    """Write a setting without floats: 0.5 becomes "0.5"."""
    return repr(value) if isinstance(value, float) else value
