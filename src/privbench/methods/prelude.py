"""What comes before the networks in every method: a cap on the rows of each entity, and the sizes of the tables.

Caps and sizes that are not public cost a small share of the budget, since the paper assumes them known.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from privbench.methods.method import Progress
from privbench.methods.size import Size
from privbench.privacy.facts import Facts
from privbench.privacy.ledger import Scope
from privbench.privacy.vault import Vault

CAP_SHARE = Fraction(2, 100)
"""Share of the budget for choosing caps that the spec does not declare."""
SIZE_SHARE = Fraction(1, 100)
"""Share of the budget for the sizes of tables that are not public."""
CAPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096)
"""Rows per entity to choose from."""
ENTITIES_PER_ROW = 1600
"""A cap may be one row higher for each 1/1600 of the entities that keep all their rows by it."""
ROWS_PER_NOISE = 8
"""A cap may be this much higher for each unit of noise, where that counts more: few entities, low caps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """The sizes of all private tables, and the budget that is left."""

    sizes: Mapping[str, Size]
    left: Fraction


def cap_and_size(vault: Vault, progress: Progress) -> Sized:
    """Cap the rows of each entity and size the tables."""
    budget, entity = vault.ledger.budget - vault.ledger.total, vault.facts.entity
    sizing = vault.ledger.root.sequential("sizes")
    hidden = sum(facts.rows is None for facts in vault.facts.tables.values())
    share = budget * SIZE_SHARE / max(hidden, 1)
    vault.cap_rows(entity, 1)
    entities = _size(vault, entity, sizing, share)
    spent = hidden * share + _cap_all(vault, entities, budget * CAP_SHARE, progress)
    sizes = {t: entities if t == entity else _size(vault, t, sizing, share) for t in vault.facts.tables}
    return Sized(sizes=sizes, left=budget - spent)


def _cap_all(vault: Vault, entities: Size, epsilon: Fraction, progress: Progress) -> Fraction:
    """Cap the rows per entity of every table but the entity table, owners first; returns what that cost."""
    facts = vault.facts
    owned = [t for t in facts.tables if t != facts.entity]
    unknown = [t for t in owned if facts.tables[t].cap is None and _shared_cap(facts, t) is None]
    share = epsilon / max(len(unknown), 1)
    noise = vault.choice_noise(share, sensitivity=1, monotone=True, unit=1) if unknown else 0.0
    penalties = cap_penalties(round(entities.rows), noise)
    scope = vault.ledger.root.sequential("rows per entity")
    for at, table in enumerate(owned):
        progress("rows per entity", at, len(owned))
        cap, owner = facts.tables[table].cap, _shared_cap(facts, table)
        if cap is None and owner is not None:
            cap = vault.cap(owner)
        vault.cap_rows(table, cap or vault.choose_cap(table, CAPS, penalties, scope=scope, epsilon=share))
    return share * len(unknown)


def cap_penalties(entities: int, noise: float) -> list[int]:
    """What each cap of CAPS costs in its choice with so much noise: public, and in proportion to the cap.

    >>> cap_penalties(16_000, 10.0)[:3], cap_penalties(0, 100.0)[:3]
    ([10, 20, 30], [12, 25, 37])
    """
    per_row = max(entities / ENTITIES_PER_ROW, noise / ROWS_PER_NOISE)
    return [int(cap * per_row) for cap in CAPS]


def _shared_cap(facts: Facts, table: str) -> str | None:
    """The owner table of a table with at most one row for each of the owner's: their caps are the same."""
    link = facts.owner_link(table)
    return link.target if link is not None and link.unique else facts.tables[table].lookup_of


def _size(vault: Vault, table: str, scope: Scope, epsilon: Fraction) -> Size:
    """The size of a table, measured unless it is public."""
    known = vault.facts.tables[table].rows
    if known is not None:
        return Size(rows=known, variance=1e-9)
    rows = vault.size(vault.whole(table, scope), epsilon=epsilon)
    noise = vault.noise(epsilon, sensitivity=vault.cap(table), additive=True, unit=1)
    return Size(rows=max(rows, 0), variance=noise.variance)
