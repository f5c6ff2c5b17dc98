"""Tiny private databases, all of them, and their neighbours, to hold sensitivities against brute force.

Persons (the entities, in slots) own visits, visits own notes. A person names a boss; a visit a guest, an earlier
visit and a public town; a note may be about any visit. Rows without an owner are entities of their own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from privbench.encode.coded import CodedDatabase, CodedTable
from privbench.encode.keys import MISSING, NULL, entities_by_owner, own_entities
from privbench.privacy import door as door_module
from privbench.privacy.events import Currency
from privbench.privacy.facts import ColumnFacts, Facts, LinkFacts, TableFacts
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy
from privbench.privacy.blocks import CentrePair
from privbench.privacy.vault import Vault
from privbench.schema.unit import LinkKind, Neighbours

PERSONS = 2
TOWNS = 2
GONE = PERSONS - 1
"""The entity that neighbours lack: the last, so that the slots of the others stay."""
ORDERED, UNORDERED = ColumnFacts(size=3, ordered=True), ColumnFacts(size=2, ordered=False)
COLUMNS = {"person": {"age": ORDERED}, "visit": {"cost": ORDERED, "kind": UNORDERED}, "note": {"tone": UNORDERED}}
KEYS: dict[str, dict[str, tuple[str, LinkKind, int | None]]] = {
    "person": {"boss": ("person", LinkKind.REFERENCE, PERSONS)},
    "visit": {
        "person": ("person", LinkKind.OWNER, PERSONS),
        "guest": ("person", LinkKind.REFERENCE, PERSONS),
        "previous": ("visit", LinkKind.REFERENCE, None),
        "town": ("town", LinkKind.CATEGORY, TOWNS),
    },
    "note": {"visit": ("visit", LinkKind.OWNER, None), "about": ("visit", LinkKind.REFERENCE, None)},
}
Rows = Sequence[Mapping[str, int]]
"""Codes and keys of some rows; what is not named is code 0 or a NULL key."""


def facts(neighbours: Neighbours = Neighbours.REPLACE) -> Facts:
    """What is public: the number of persons under replace, no other size."""
    slots = neighbours is Neighbours.REPLACE
    return Facts(
        public_ids=True,  # slots as they stand: what random slots cost is the same, by a coupling
        entity="person",
        neighbours=neighbours,
        tables={
            name: TableFacts(name=name, columns=columns, rows=PERSONS if name == "person" and slots else None, cap=None)
            for name, columns in COLUMNS.items()
        },
        links=tuple(
            LinkFacts(
                name=name,
                table=table,
                target=target,
                kind=kind,
                slots=found if slots or target == "town" else None,
                nullable=True,
                unique=False,
            )
            for table, keys in KEYS.items()
            for name, (target, kind, found) in keys.items()
        ),
    )


def database(person: Rows, visit: Rows = (), note: Rows = ()) -> dict[str, CodedTable]:
    """The coded database of some rows."""
    rows = {"person": person, "visit": visit, "note": note}
    keys = {t: {k: np.array([r.get(k, NULL) for r in rows[t]], np.int64) for k in KEYS[t]} for t in rows}
    persons = own_entities(len(person))
    visits, free = entities_by_owner(keys["visit"]["person"], persons, next_entity=len(person))
    notes, _ = entities_by_owner(keys["note"]["visit"], visits, next_entity=free)
    return {
        t: CodedTable(
            codes={c: np.array([r.get(c, 0) for r in rows[t]], np.uint8) for c in COLUMNS[t]},
            keys=keys[t],
            entities=entities,
        )
        for t, entities in (("person", persons), ("visit", visits), ("note", notes))
    }


def without(data: CodedDatabase, entity: int) -> dict[str, CodedTable]:
    """The neighbour that lacks the rows of one entity; slots stay, keys of others to its rows name nothing."""
    if entity < len(data["person"].entities) - 1:
        raise ValueError("only the last person can go without moving the slots of others")
    stay = {t: coded.entities != entity for t, coded in data.items()}
    moved = {t: np.append(np.where(keep, np.cumsum(keep) - 1, MISSING), NULL) for t, keep in stay.items()}
    return {
        t: CodedTable(
            codes={c: codes[stay[t]] for c, codes in coded.codes.items()},
            keys={
                k: moved[KEYS[t][k][0]][x[stay[t]]] if KEYS[t][k][2] is None else x[stay[t]]
                for k, x in coded.keys.items()
            },
            entities=coded.entities[stay[t]],
        )
        for t, coded in data.items()
    }


def neighbours_of(data: CodedDatabase) -> Iterator[dict[str, CodedTable]]:
    """The database without its last person, and without each entity that has no person's row."""
    alone = {int(e) for coded in data.values() for e in coded.entities if e >= PERSONS}
    for entity in (GONE, *sorted(alone)):
        yield without(data, entity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The exact answer of a query (or the scores of a choice), and the sensitivity that it was charged with."""

    answer: NDArray[np.int64]
    sensitivity: int
    monotone: bool = False
    additive: bool = False


Ask = Callable[[Vault], object]


class Silence:
    """Takes the noise out of the vault, and keeps the scores of choices."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.scores: NDArray[np.int64] | None = None
        patch.setattr(door_module, "discrete_laplace", lambda size, *_: np.zeros(size, np.int64))
        patch.setattr(door_module, "discrete_gaussian", lambda size, *_: np.zeros(size, np.int64))
        patch.setattr(door_module, "permute_and_flip", self._choose)
        patch.setattr(door_module, "exponential_mechanism", self._choose)

    def _choose(self, scores: NDArray[np.int64], **_: Any) -> int:
        self.scores = scores
        return 0

    def ask(self, vault: Vault, query: Ask) -> Measured:
        """Run one query."""
        self.scores = None
        query(vault)
        event = vault.ledger.to_json()["nodes"][-1]
        answer = vault.answers[-1] if self.scores is None else self.scores
        return Measured(
            answer=answer,
            sensitivity=int(Fraction(event["sensitivity"])),
            monotone=event["monotone"],
            additive=event.get("additive", False),
        )


def open_vault(
    data: CodedDatabase,
    caps: Mapping[str, int],
    public: Facts | None = None,
    currency: Currency = Currency.EPSILON,
) -> Vault:
    """A vault with rows capped and more budget than any test needs."""
    vault = Vault(public or facts(), data, ledger=Ledger(Fraction(10**6), currency), entropy=TestEntropy(0))
    for table, cap in caps.items():
        vault.cap_rows(table, cap)
    return vault


def link(name: str, public: Facts | None = None) -> LinkFacts:
    """A key by its name; `visit` is the owner key of notes."""
    return next(k for k in (public or facts()).links if k.name == name)


CENTRES = CentrePair(columns={"cost": np.array([-100, 120]), "kind": np.array([[400, 112], [100, 412]])})
BOTH = ("cost", "kind")
ONE = Fraction(1)


def _whole(vault: Vault, table: str) -> Any:
    return vault.whole(table, vault.ledger.root)


def _parts(vault: Vault) -> Any:
    return vault.split(_whole(vault, "visit"), BOTH, CENTRES)


def _slots(name: str) -> Ask:
    def ask(vault: Vault) -> object:
        of = link(name, vault.facts)
        parted = of.table == "visit" and vault.ledger.currency is Currency.EPSILON
        parts = _parts(vault) if parted else (_whole(vault, of.table),)
        return vault.slot_counts(of, parts, scope=vault.ledger.root, epsilon=ONE)

    return ask


def _degrees(name: str, cap: int) -> Ask:
    return lambda v: v.degree_histogram(link(name, v.facts), cap=cap, scope=v.ledger.root, epsilon=ONE)


ROW_QUERIES: dict[str, Ask] = {
    "size": lambda v: v.size(_whole(v, "visit"), epsilon=ONE),
    "histogram": lambda v: v.histogram(_whole(v, "visit"), "cost", epsilon=ONE),
    "histogram in a part": lambda v: v.histogram(_parts(v)[1], "kind", epsilon=ONE),
    "cluster sizes": lambda v: v.cluster_sizes(_whole(v, "visit"), BOTH, CENTRES, epsilon=ONE),
    "cluster sums": lambda v: v.cluster_column(_whole(v, "visit"), BOTH, CENTRES, "cost", epsilon=ONE),
    "cluster histograms": lambda v: v.cluster_column(_whole(v, "visit"), BOTH, CENTRES, "kind", epsilon=ONE),
    "dependence": lambda v: v.dependence(_whole(v, "visit"), (("cost",), ("kind",)), epsilon=ONE),
    "column split": lambda v: v.choose_column_split(_whole(v, "visit"), [(("cost",), ("kind",))], epsilon=ONE),
    "notes": lambda v: v.histogram(_whole(v, "note"), "tone", epsilon=ONE),
}
KEY_QUERIES: dict[str, Ask] = {
    "slots of boss": _slots("boss"),
    "slots of person": _slots("person"),
    "slots of guest": _slots("guest"),
    "slots of town": _slots("town"),
    "null guests": lambda v: v.null_keys(link("guest", v.facts), scope=v.ledger.root, epsilon=ONE),
    "null previous": lambda v: v.null_keys(link("previous", v.facts), scope=v.ledger.root, epsilon=ONE),
    "notes per visit": _degrees("visit", 2),
    "notes about a visit": _degrees("about", 2),
    "followers of a visit": _degrees("previous", 2),
    "followers of a visit, up to 1": _degrees("previous", 1),
}
DEGREE_QUERIES: dict[str, Ask] = {
    "visits per person": _degrees("person", 2),
    "guests per person": _degrees("guest", 2),
    "bosses": _degrees("boss", 2),
}
"""Only where the number of persons is private."""


def worst_change(
    silence: Silence,
    databases: Iterable[CodedDatabase],
    queries: Mapping[str, Ask],
    caps: Mapping[str, int],
    public: Facts | None = None,
    currency: Currency = Currency.EPSILON,
) -> dict[str, tuple[int, int]]:
    """For each query the largest change between neighbours, and what is charged; asserts that it is enough."""
    worst = dict.fromkeys(queries, (0, 0))
    for data in databases:
        vaults = [open_vault(d, caps, public, currency) for d in (data, *neighbours_of(data))]
        for name, query in queries.items():
            before, *after = (silence.ask(v, query) for v in vaults)
            for found in after:
                change = np.abs(before.answer - found.answer)
                moved = int(change.max() if silence.scores is not None else change.sum())
                assert moved <= before.sensitivity == found.sensitivity, f"{name}: {moved} > {before.sensitivity}"
                assert not before.monotone or (before.answer <= found.answer).all(), f"{name}: not monotone"
                assert not before.additive or (before.answer >= found.answer).all(), f"{name}: not additive"
                worst[name] = max(worst[name], (moved, before.sensitivity))
    return worst


def databases_by_rows() -> Iterator[dict[str, CodedTable]]:
    """All codes of up to three visits of one person, beside another person's visit and one without owner."""
    kinds = [{"cost": cost, "kind": kind} for cost in (0, 2) for kind in (0, 1)]
    others: list[Rows] = [(), [{"person": 0, "cost": 2}], [{"cost": 1, "kind": 1}], [{"person": 0}, {"kind": 1}]]
    for other in others:
        for count in range(4):
            for codes in product(kinds, repeat=count):
                mine = [{**c, "person": GONE, "town": c["kind"]} for c in codes]
                notes = [{"visit": at, "tone": at % 2} for at in range(len(other) + count)] + [{"visit": 0}] * bool(
                    other
                )
                yield database([{}, {"age": 2}], [*other, *mine], notes)


def databases_by_keys(owners: Sequence[int]) -> Iterator[dict[str, CodedTable]]:
    """Visits of these owners with all keys to earlier or later visits, all bosses, and notes about any visit."""
    visits = range(len(owners))
    for named in product((NULL, *visits), repeat=len(owners)):
        boss, guest = named[0] % PERSONS if named else NULL, sum(named) % (PERSONS + 1) - 1
        visit = [
            {"person": o, "previous": p, "guest": guest if o else boss, "town": o}
            for o, p in zip(owners, named, strict=True)
        ]
        note = [{"visit": (at + 1) % len(owners), "about": p} for at, p in enumerate(named)]
        yield database([{"boss": guest}, {"boss": boss}], visit, note)


def with_strays(public: Facts) -> Facts:
    """The same facts where the owner key of visits may not be NULL."""
    return replace(public, links=tuple(replace(k, nullable=k.name != "person") for k in public.links))
