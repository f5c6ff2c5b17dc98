"""Tiny databases with keys of every kind, in weights: all neighbours of each, and how far they move what is counted.

Persons (the entities) own visits, visits own notes. A person names a boss and an address, which is a lookup: it belongs
to the person that names it. A visit names a guest, an earlier visit, the address of anybody and a public town; a note
may be about any visit. Rows may lack an owner, and two visits may name the same missing one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from privbench.encode.coded import CodedTable
from privbench.encode.keys import MISSING, NULL
from privbench.privacy import features
from privbench.privacy.events import UNITS
from privbench.privacy.facts import ColumnFacts, Facts, LinkFacts, TableFacts
from privbench.privacy.features import Feature, Own, touches_of, whole_axis
from privbench.privacy.queries import Pair
from privbench.privacy.sealed_features import SealedFeatures
from privbench.schema.unit import LinkKind, Neighbours
from privbench.spn.fanouts import fanout_edges, size_edges

TOWNS = 2
TABLES = {"person": "age", "visit": "cost", "note": "tone", "address": "size"}
"""Each table with its only column, of two codes."""
KEYS: dict[str, dict[str, tuple[str, LinkKind]]] = {
    "person": {"boss": ("person", LinkKind.REFERENCE), "address": ("address", LinkKind.REFERENCE)},
    "visit": {
        "person": ("person", LinkKind.OWNER),
        "guest": ("person", LinkKind.REFERENCE),
        "previous": ("visit", LinkKind.REFERENCE),
        "at": ("address", LinkKind.REFERENCE),
        "town": ("town", LinkKind.CATEGORY),
    },
    "note": {"visit": ("visit", LinkKind.OWNER), "about": ("visit", LinkKind.REFERENCE)},
    "address": {},
}
FACTS = Facts(
    entity="person",
    neighbours=Neighbours.ADD_REMOVE,
    tables={
        name: TableFacts(
            name=name,
            columns={column: ColumnFacts(size=2, ordered=True)},
            rows=None,
            cap=None,
            lookup_of="person" if name == "address" else None,
        )
        for name, column in TABLES.items()
    },
    links=tuple(
        LinkFacts(
            name=f"{table}.{key}",
            table=table,
            target=target,
            kind=kind,
            slots=TOWNS if target == "town" else None,
            nullable=True,
            unique=False,
        )
        for table, keys in KEYS.items()
        for key, (target, kind) in keys.items()
    ),
)
LINKS = {link.name: link for link in FACTS.links}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row by name, whose it is, its only code, and the names that its keys hold; a key that is not there is NULL."""

    table: str
    name: str
    entity: str
    code: int = 0
    keys: Mapping[str, str] = field(default_factory=dict)


Database = Sequence[Row]
"""Rows in table order."""


def coded(rows: Database) -> dict[str, CodedTable]:
    """The rows as the vault holds them. A key to a row that is not there holds MISSING; towns are always there."""
    by_table = {table: [row for row in rows if row.table == table] for table in TABLES}
    places = {table: {row.name: at for at, row in enumerate(found)} for table, found in by_table.items()}
    places["town"] = {str(town): town for town in range(TOWNS)}
    numbers = {entity: at for at, entity in enumerate(dict.fromkeys(row.entity for row in rows))}
    return {
        table: CodedTable(
            codes={TABLES[table]: np.array([row.code for row in found], np.uint8)},
            keys={
                f"{table}.{key}": np.array(
                    [places[target].get(row.keys[key], MISSING) if key in row.keys else NULL for row in found], np.int64
                )
                for key, (target, _) in KEYS[table].items()
            },
            entities=np.array([numbers[row.entity] for row in found], np.int64),
        )
        for table, found in by_table.items()
    }


def neighbours_of(rows: Database) -> Iterator[Database]:
    """The database without each of its entities: all rows of it go, the keys of others that named them stay."""
    for gone in dict.fromkeys(row.entity for row in rows):
        yield [row for row in rows if row.entity != gone]


# -- what is counted -----------------------------------------------------------------------------------------------


def own(table: str) -> Feature:
    """The only column of a table."""
    return Feature(name=TABLES[table], size=2, ordered=True, source=Own(TABLES[table]))


EDGES = fanout_edges(2)
OF_TABLE: dict[str, tuple[Feature, ...]] = {
    "person": (
        own("person"),
        features.fanout(LINKS["visit.person"], EDGES),
        features.null_key(LINKS["person.boss"]),
        features.null_key(LINKS["person.address"]),
        features.named(LINKS["person.boss"], EDGES),
        features.named(LINKS["visit.guest"], EDGES),
    ),
    "visit": (
        own("visit"),
        features.fanout(LINKS["note.visit"], EDGES),
        features.null_key(LINKS["visit.person"]),
        features.null_key(LINKS["visit.guest"]),
        features.null_key(LINKS["visit.previous"]),
        features.key_block(LINKS["visit.town"], 2),
        features.of_owner(own("person")),
        features.of_owner(features.fanout(LINKS["visit.person"], EDGES)),
        features.rank(),
        features.entity_rows(size_edges()),
        features.named(LINKS["visit.previous"], EDGES),
        features.named(LINKS["note.about"], EDGES),
    ),
    "note": (
        own("note"),
        features.null_key(LINKS["note.about"]),
        features.of_owner(own("visit")),
        features.of_owner(features.key_block(LINKS["visit.town"], 2)),
        features.of_owner(features.of_owner(own("person"))),
        features.of_owner(features.named(LINKS["visit.previous"], EDGES)),
        features.rank(),
        features.entity_rows(size_edges()),
    ),
    "address": (own("address"), features.named(LINKS["visit.at"], EDGES)),
}
"""Every kind of feature that a table can have; also some that no method asks for."""

Question = tuple[str, tuple[Feature, ...]]
"""A table and one or more of its features."""
AXES = {(t, f.name): whole_axis(f) for t, found in OF_TABLE.items() for f in found}
SINGLES: tuple[Question, ...] = tuple((t, (f,)) for t, found in OF_TABLE.items() for f in found)
PAIRS: tuple[Question, ...] = tuple(
    (t, (a, b)) for t, found in OF_TABLE.items() for at, a in enumerate(found) for b in found[at + 1 :]
)


def cells(sealed: SealedFeatures, question: Question) -> NDArray[np.int64]:
    """The exact weights."""
    table, found = question
    return sealed.cells(table, [AXES[table, f.name] for f in found])


def label(question: Question) -> str:
    """How a question is called in a message."""
    return f"{question[0]}: {' x '.join(f.name for f in question[1])}"


def worst_moves(databases: Iterable[Database], questions: Sequence[Question]) -> dict[str, int]:
    """For each question the largest change in L1 between neighbours, in units; asserts that it is what is claimed."""
    worst = dict.fromkeys(map(label, questions), 0)
    for rows in databases:
        before, *after = (SealedFeatures(FACTS, coded(d)) for d in (rows, *neighbours_of(rows)))
        for question in questions:
            exact = cells(before, question)
            moved = max(int(np.abs(exact - cells(other, question)).sum()) for other in after)
            claimed = UNITS * touches_of(question[1])
            assert moved <= claimed, f"{label(question)}: {moved / UNITS} entities, {claimed / UNITS} claimed"
            worst[label(question)] = max(worst[label(question)], moved)
    return worst


def worst_scores(databases: Iterable[Database], questions: Sequence[Question], seed: int) -> dict[str, int]:
    """The same for the distance from public tables: none, the neighbour's own, and random ones; all asked at once."""
    worst = dict.fromkeys(map(label, questions), 0)
    rng = np.random.default_rng(seed)
    for rows in databases:
        sealed = [SealedFeatures(FACTS, coded(d)) for d in (rows, *neighbours_of(rows))]
        for table in TABLES:
            asked = [q for q in questions if q[0] == table]
            near = [cells(sealed[-1], q) for q in asked]
            far = [rng.integers(0, 2 * UNITS, exact.shape) for exact in near]
            for tables in ([np.zeros_like(exact) for exact in near], near, far):
                pairs = [_pair(q, expected, rng) for q, expected in zip(asked, tables, strict=True)]
                before, *after = (np.array(s.scores(table, pairs)) for s in sealed)
                moved = np.max([np.abs(before - scores) for scores in after], axis=0)
                for question, most in zip(asked, moved.tolist(), strict=True):
                    assert most <= UNITS, f"{label(question)}: a score moved by {most / UNITS} entities"
                    worst[label(question)] = max(worst[label(question)], most)
    return worst


def _pair(question: Question, expected: NDArray[np.int64], rng: np.random.Generator) -> Pair:
    first, second = (AXES[question[0], f.name] for f in question[1])
    return Pair(first, second, expected, int(rng.integers(0, UNITS)))


# -- all of some small databases -----------------------------------------------------------------------------------

OTHERS: dict[str, Database] = {
    "nobody else": (),
    "one visit each": (
        Row(table="person", name="f", entity="f", keys={"boss": "e", "address": "home of f"}),
        Row(table="person", name="g", entity="g", code=1),
        Row(table="address", name="home of f", entity="f", code=1),
        Row(table="visit", name="of f", entity="f", code=1, keys={"person": "f", "previous": "of e 0", "at": "home"}),
        Row(table="visit", name="of g", entity="g", keys={"person": "g", "guest": "e", "town": "1"}),
        Row(table="note", name="f1", entity="f", keys={"visit": "of f", "about": "of e 0"}),
    ),
    "many visits": (
        Row(table="person", name="f", entity="f"),
        Row(table="visit", name="of f", entity="f", keys={"person": "f", "previous": "of e 0", "town": "0"}),
        Row(table="visit", name="of g", entity="f", code=1, keys={"person": "f", "previous": "of f", "guest": "f"}),
        Row(table="visit", name="alone", entity="alone", keys={"previous": "of e 0", "at": "home"}),
        Row(table="visit", name="lost 1", entity="lost", keys={"previous": "of g"}),
        Row(table="visit", name="lost 2", entity="lost", code=1, keys={"previous": "of e 1", "guest": "f"}),
        Row(table="note", name="f1", entity="f", keys={"visit": "of f", "about": "of g"}),
        Row(table="note", name="f2", entity="f", code=1, keys={"visit": "of g", "about": "of e 1"}),
        Row(table="note", name="nobody's", entity="note", keys={"about": "of e 0"}),
        Row(table="note", name="alone's", entity="alone", keys={"visit": "alone", "about": "of f"}),
    ),
}


def _visits() -> list[dict[str, str]]:
    """What the keys of a visit can hold."""
    named = product((None, "of f", "of g", "of e 0"), (None, "f", "g"), (None, "0", "1"))
    found = [{"previous": p, "guest": g, "town": t} for p, g, t in named]
    return [{key: name for key, name in keys.items() if name is not None} for keys in found]


def bundles() -> Iterator[list[Row]]:
    """All that one person can own, up to three visits with up to two notes; keys run through all they can name."""
    kinds = _visits()
    homes: tuple[dict[str, str], ...] = ({}, {"address": "home"})
    choices = [(), *((k,) for k in kinds), *((a, kinds[(7 * at) % len(kinds)]) for at, a in enumerate(kinds))]
    choices += [(a, kinds[(5 * at + 1) % len(kinds)], kinds[(11 * at) % len(kinds)]) for at, a in enumerate(kinds)]
    for at, (keys, about, home) in enumerate(product(choices, (None, "of f", "of g"), homes)):
        boss = ({}, {"boss": "f"}, {"boss": "e"}, {"boss": "g"})[at % 4]
        rows = [Row(table="person", name="e", entity="e", code=at % 2, keys={**boss, **home})]
        rows += [Row(table="address", name="home", entity="e")] * bool(home)
        for place, held in enumerate(keys):
            mine = {"person": "e", **held, **({"at": "home of f"} if place == at % 3 else {})}
            rows.append(Row(table="visit", name=f"of e {place}", entity="e", code=(at + place) % 2, keys=mine))
            for note in range((at + place) % 3):
                said = {"visit": f"of e {place}", **({"about": about} if about else {})}
                rows.append(Row(table="note", name=f"e{place}{note}", entity="e", code=note, keys=said))
        yield rows


def all_databases(step: int = 1) -> Iterator[Database]:
    """Each bundle beside each of the others, before, after and between their rows; every `step`-th of them."""
    for at, (mine, others) in enumerate(product(bundles(), OTHERS.values())):
        if at % step == 0:
            yield _mixed(mine, list(others), at)


def _mixed(mine: list[Row], others: list[Row], how: int) -> list[Row]:
    if how % 3 == 0:
        return [*mine, *others]
    if how % 3 == 1:
        return [*others, *mine]
    longest = max(len(mine), len(others))
    return [row for at in range(longest) for rows in (others, mine) for row in rows[at : at + 1]]
