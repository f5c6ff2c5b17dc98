"""Tiny private databases, all of them, their neighbours, and queries that count rows up to a cap.

Persons (the entities, in slots) own visits, visits own notes. A person references a boss; a visit a guest, an earlier
visit and a public town; a note may be about any visit. Rows without an owner are entities of their own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np

from privbench.encode.coded import CodedDatabase, CodedTable
from privbench.encode.keys import MISSING, NULL, entities_by_owner, own_entities
from privbench.methods.capped import column_histogram, row_histogram
from privbench.privacy import features
from privbench.privacy.blocks import Block, CentrePair
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.facts import SIZE_LIMIT, ColumnFacts, Facts, LinkFacts, TableFacts
from privbench.privacy.features import Axis, Feature, whole_axis
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy
from privbench.privacy.parts import one_part
from privbench.privacy.queries import CapChoice, Dependence, Histogram, Query, SplitChoice, Sums
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
                columns=(name,),
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


def engine_of(data: CodedDatabase, caps: Mapping[str, int], public: Facts | None = None) -> NumpyEngine:
    """An engine with rows capped, owners first."""
    engine = NumpyEngine(one_part(data), entropy=TestEntropy(0))
    for table, cap in caps.items():
        engine.cap_rows(table, cap, (public or facts()).owner_link(table), orphans=False)
    return engine


def families(databases: Iterable[CodedDatabase], caps: Mapping[str, int]) -> Iterator[list[NumpyEngine]]:
    """Each database with all of its neighbours."""
    for data in databases:
        yield [engine_of(d, caps) for d in (data, *neighbours_of(data))]


def open_vault(
    data: CodedDatabase | None,
    caps: Mapping[str, int],
    *,
    measure: PrivacyMeasure = PrivacyMeasure.EPSILON,
    seed: int = 0,
) -> Vault:
    """A vault with rows capped and more budget than any test needs; without data, one that queries are made with."""
    entropy, ledger = TestEntropy(seed), Ledger(Fraction(10**6), measure)
    engine = None if data is None else NumpyEngine(one_part(data), entropy=entropy)
    vault = Vault(engine, ledger=ledger, entropy=entropy, tape=() if data is None else None)
    for table, cap in caps.items():
        vault.cap_rows(table, cap, facts().owner_link(table))
    return vault


def link(name: str, public: Facts | None = None) -> LinkFacts:
    """A key by its name; `visit` is the owner key of notes."""
    return next(k for k in (public or facts()).links if k.name == name)


CENTRES = CentrePair(columns={"cost": np.array([-100, 120]), "kind": np.array([[400, 112], [100, 412]])})
HALVES = (("cost",), ("kind",))
ONE = Fraction(1)
FEW_ROWS = 8
"""No database of `databases_by_rows` has more visits."""


def whole(vault: Vault, table: str) -> Block:
    """All rows of a table, charged to the root of the ledger."""
    return vault.whole(table, vault.ledger.root)


def parts(vault: Vault) -> tuple[Block, Block]:
    """The visits in two parts."""
    return vault.split(whole(vault, "visit"), COLUMNS["visit"], CENTRES)


def row_queries(vault: Vault) -> dict[str, Query]:
    """What is counted of the rows of a table and, where parts can be charged in parallel, of a part of them."""
    visit, note, columns = whole(vault, "visit"), whole(vault, "note"), COLUMNS["visit"]
    side = whole_axis(features.cluster(CENTRES, columns))
    owner = link("person")
    asked: dict[str, Query] = {
        "size": row_histogram(visit),
        "histogram": column_histogram(facts(), visit, "cost"),
        "cluster sizes": row_histogram(visit, side),
        "cluster sums": Sums(block=visit, axes=(side,), column="cost", size=ORDERED.size),
        "cluster histograms": row_histogram(visit, side, whole_axis(features.own("kind", UNORDERED))),
        "dependence": Dependence(block=visit, split=HALVES, columns=columns, most_rows=SIZE_LIMIT),
        "dependence of few rows": Dependence(block=visit, split=HALVES, columns=columns, most_rows=FEW_ROWS),
        "column split": SplitChoice(block=visit, candidates=(HALVES,), columns=columns, most_rows=FEW_ROWS),
        "notes": column_histogram(facts(), note, "tone"),
        "ages of owners": row_histogram(visit, whole_axis(features.of_owner(features.own("age", ORDERED), owner))),
        "ranks": row_histogram(visit, whole_axis(features.rank(owner))),
        "costs of first visits": row_histogram(
            visit, whole_axis(features.of_first(features.own("cost", ORDERED), owner))
        ),
        "rows of the entity": row_histogram(visit, whole_axis(features.entity_rows(np.array([1, 2, 4])))),
    }
    if vault.privacy_measure is not PrivacyMeasure.EPSILON:
        return asked
    right = parts(vault)[1]
    return asked | {
        "histogram in a part": column_histogram(facts(), right, "kind"),
        "cluster sums in a part": Sums(block=right, axes=(side,), column="cost", size=ORDERED.size),
        "dependence in a part": Dependence(block=right, split=HALVES, columns=columns, most_rows=FEW_ROWS),
    }


def key_queries(vault: Vault) -> dict[str, Query]:
    """What is counted of keys: slots, NULLs, and how many rows reference a row."""
    caps = {table: vault.cap(table) for table in COLUMNS}
    return {
        **{f"slots of {name}": _slots(vault, name) for name in ("boss", "person", "guest", "town")},
        "blocks of towns": row_histogram(whole(vault, "visit"), whole_axis(features.key_block(link("town"), TOWNS))),
        "null guests": _nulls(vault, "guest"),
        "null previous": _nulls(vault, "previous"),
        "notes per visit": _degrees(vault, features.fanout(link("visit"), np.arange(4), cap=caps["note"])),
        "notes about a visit": _degrees(vault, features.in_degree(link("about"), np.arange(4), cap=caps["note"])),
        "followers of a visit": _degrees(vault, features.in_degree(link("previous"), np.arange(4), cap=caps["visit"])),
        "followers of a visit, up to 1": _degrees(
            vault, features.in_degree(link("previous"), np.arange(3), cap=caps["visit"])
        ),
    }


def degree_queries(vault: Vault) -> dict[str, Query]:
    """How many rows reference a person: asked only where the number of persons is private."""
    caps = {table: vault.cap(table) for table in COLUMNS}
    return {
        "visits per person": _degrees(vault, features.fanout(link("person"), np.arange(4), cap=caps["visit"])),
        "guests per person": _degrees(vault, features.in_degree(link("guest"), np.arange(4), cap=caps["visit"])),
        "bosses": _degrees(vault, features.in_degree(link("boss"), np.arange(4), cap=caps["person"])),
    }


def cap_choice(table: str = "visit") -> CapChoice:
    """Which cap on the rows of a table is best; the table that owns them is capped before."""
    return CapChoice(table=table, candidates=(1, 2, 3), penalties=(0, 1, 2), owner=facts().owner_link(table))


def _slots(vault: Vault, name: str) -> Histogram:
    of = link(name)
    parted = of.table == "visit" and vault.privacy_measure is PrivacyMeasure.EPSILON
    blocks = parts(vault) if parted else (whole(vault, of.table),)
    axes = whole_axis(features.part(blocks)), whole_axis(features.key_slot(of, shuffled=False))
    return row_histogram(whole(vault, of.table), *axes)


def _nulls(vault: Vault, name: str) -> Histogram:
    return row_histogram(whole(vault, link(name).table), Axis(features.null_key(link(name)), np.array([-1, 0])))


def _degrees(vault: Vault, feature: Feature) -> Histogram:
    assert isinstance(feature.source, features.Fanout | features.InDegree)
    return row_histogram(whole(vault, feature.source.link.target), whole_axis(feature))


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


def owned_by_all(public: Facts) -> Facts:
    """The same facts where the owner key of visits may not be NULL."""
    return replace(public, links=tuple(replace(k, nullable=k.name != "person") for k in public.links))
