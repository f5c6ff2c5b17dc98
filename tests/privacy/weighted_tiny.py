"""Tiny databases with keys of every kind, in weights: all neighbours of each, and the queries that weigh entities.

Persons (the entities) own visits, visits own notes. A person references a boss and an address, which is a lookup: it
belongs to the person that references it. A visit references a guest, an earlier visit, the address of anybody and a
public town; a note may be about any visit, its own too, and by any person. Rows may lack an owner, and two visits may
name the same missing one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.coded import CodedTable
from privbench.encode.grid import Grid
from privbench.encode.keys import MISSING, NULL
from privbench.privacy import features
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.facts import ColumnFacts, Facts, LinkFacts, TableFacts
from privbench.privacy.features import Agreement, Axis, Base, Feature, OwnKey, whole_axis
from privbench.privacy.noise import TestEntropy
from privbench.privacy.parts import one_part
from privbench.privacy.queries import (
    ENTITY_WEIGHT,
    Counts,
    Dependency,
    DependencyChoice,
    DependencyVotes,
    FrequentValues,
    HeavyHitters,
    Histogram,
    Pair,
    PairChoice,
    Query,
)
from privbench.schema.computed import Equals
from privbench.schema.types import parse_type
from privbench.schema.unit import LinkKind, Neighbours
from privbench.spn.fanouts import fanout_edges, size_edges
from privbench.spn.feature_names import shown

from .. import opened

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
    "note": {
        "visit": ("visit", LinkKind.OWNER),
        "about": ("visit", LinkKind.REFERENCE),
        "by": ("person", LinkKind.REFERENCE),
    },
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
            columns=(key,),
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


AMOUNTS = (None, 0, 7, 30, 100, -105)
WORDS = (None, "", "a", "b")
DAYS = (0, -100_000, 5, 300, -100_000, None, 7)
TIMES = tuple(
    None if days is None else days * 86_400 * 10**6 for days in (-(10**8), 0, -100_001, 1, None, 40, -100_001)
)
"""The values of columns that have no codes, as the code and the name of a row have it."""


def _picked(row: Row, some: Sequence[Any], salt: str = "") -> Any:
    return some[crc32(f"{row.code} of {row.name}{salt}".encode()) % len(some)]


def raw(rows: Database) -> dict[str, dict[str, pa.Array]]:
    """The values of columns without codes: the only column of each table as numbers, an amount, a word."""
    found = {table: [row for row in rows if row.table == table] for table in TABLES}
    return {
        table: {
            TABLES[table]: pa.array([row.code for row in of], pa.int16()),
            "amount": pa.array([_picked(row, AMOUNTS) for row in of], pa.int32()),
            "word": pa.array([_picked(row, WORDS) for row in of], pa.string()),
            "came": pa.array([_picked(row, DAYS, "a") for row in of], pa.date32()),
            "left": pa.array([_picked(row, TIMES, "b") for row in of], pa.timestamp("us")),
        }
        for table, of in found.items()
    }


def engine_of(rows: Database) -> NumpyEngine:
    """An engine on some rows."""
    return NumpyEngine(one_part(coded(rows), raw(rows)), entropy=TestEntropy(0))


def neighbours_of(rows: Database) -> Iterator[Database]:
    """The database without each of its entities: all rows of it go, the keys of others that named them stay."""
    for gone in dict.fromkeys(row.entity for row in rows):
        yield [row for row in rows if row.entity != gone]


def families(databases: Iterable[Database]) -> Iterator[list[NumpyEngine]]:
    """Each database with all of its neighbours."""
    for rows in databases:
        yield [engine_of(d) for d in (rows, *neighbours_of(rows))]


def codes_of(rows: Database, table: str, feature: Feature) -> list[int]:
    """The codes of the rows of a table, in their order."""
    return [int(code) for code in opened.codes_of(engine_of(rows), table, feature)]


# -- what is counted -----------------------------------------------------------------------------------------------


def own(table: str) -> Feature:
    """The only column of a table."""
    return features.own(TABLES[table], FACTS.tables[table].columns[TABLES[table]])


def agreement(column: str, key: str, plain: float | None, **equals: str | int) -> Feature:
    """Whether the only column of a table equals something of the rows that an owner key leads to."""
    compared = Equals(**equals)
    source = Agreement(column, compared, plain, LINKS[key])
    return Feature(name=f"{column} = {compared}", size=3, ordered=False, source=source)


EDGES = fanout_edges(2)
OWNER, NOTE_OWNER = LINKS["visit.person"], LINKS["note.visit"]
ACTIVITY = features.activity((OWNER, NOTE_OWNER), fanout_edges(5))
"""The visits of a person and their notes."""
OWN_GUEST = features.own_key(LINKS["visit.guest"], (OWNER,))
OWN_ABOUT = features.own_key(LINKS["note.about"], (NOTE_OWNER,))
OWN_BY = features.own_key(LINKS["note.by"], (NOTE_OWNER, OWNER))
"""Whether keys reference the row above: guests that are the host, notes about their visit or by its person."""
NUMBER = parse_type("INTEGER")
GRID = Grid(type=NUMBER, step=Fraction(1))
OF_TABLE: dict[str, tuple[Feature, ...]] = {
    "person": (
        own("person"),
        features.fanout(OWNER, EDGES),
        features.null_key(LINKS["person.boss"]),
        features.null_key(LINKS["person.address"]),
        features.in_degree(LINKS["person.boss"], EDGES),
        features.in_degree(LINKS["visit.guest"], EDGES, above=(OWNER,)),
        features.in_degree(LINKS["note.by"], EDGES, above=(NOTE_OWNER, OWNER)),
        ACTIVITY,
    ),
    "visit": (
        own("visit"),
        features.fanout(NOTE_OWNER, EDGES),
        features.null_key(OWNER),
        features.null_key(LINKS["visit.guest"]),
        OWN_GUEST,
        features.null_key(LINKS["visit.previous"]),
        features.key_block(LINKS["visit.town"], 2),
        features.of_owner(own("person"), OWNER),
        features.of_owner(features.fanout(OWNER, EDGES), OWNER),
        features.rank(OWNER),
        features.entity_rows(size_edges()),
        features.in_degree(LINKS["visit.previous"], EDGES),
        features.in_degree(LINKS["note.about"], EDGES, above=(NOTE_OWNER,)),
        features.of_owner(ACTIVITY, OWNER),
    ),
    "note": (
        own("note"),
        features.null_key(LINKS["note.about"]),
        OWN_ABOUT,
        OWN_BY,
        features.of_owner(OWN_GUEST, NOTE_OWNER),
        features.of_owner(own("visit"), NOTE_OWNER),
        features.of_owner(features.key_block(LINKS["visit.town"], 2), NOTE_OWNER),
        features.of_owner(features.of_owner(own("person"), OWNER), NOTE_OWNER),
        features.of_owner(features.in_degree(LINKS["visit.previous"], EDGES), NOTE_OWNER),
        features.rank(NOTE_OWNER),
        features.entity_rows(size_edges()),
    ),
    "address": (own("address"), features.in_degree(LINKS["visit.at"], EDGES)),
}
"""Every kind of feature that a method weighs; also some that no method asks for."""
FIRSTS: dict[str, tuple[Feature, ...]] = {
    "visit": (features.of_first(own("visit"), OWNER),),
    "note": (
        features.of_first(own("note"), NOTE_OWNER),
        features.of_owner(features.of_first(own("visit"), OWNER), NOTE_OWNER),
    ),
}
"""Features of the first row of the same owner."""
AGREEMENTS: dict[str, tuple[Feature, ...]] = {
    "person": (agreement("age", "visit.person", 0, rows="visit"),),
    "visit": (
        agreement("cost", "note.visit", 0, rows="note"),
        agreement("cost", "visit.person", 1, rank=1),
        agreement("cost", "visit.person", None, owner="age"),
    ),
    "note": (agreement("tone", "note.visit", 0, rank=0), agreement("tone", "note.visit", None, owner="cost")),
}
"""Whether a column equals something."""
NEAR: dict[str, tuple[Feature, ...]] = {
    "person": (features.nearness("left", Base("came"), 8),),
    "visit": (
        features.nearness("came", Base("came", (OWNER,)), 8),
        features.nearness("left", Base("came", (OWNER,)), 64),
    ),
    "note": (
        features.nearness("came", Base("left", (NOTE_OWNER, OWNER)), 8),
        features.nearness("left", Base("came", (NOTE_OWNER,)), 8192),
    ),
}
"""Whether a date is near another, of the row or of one above it."""


def _raw_features() -> tuple[Feature, ...]:
    """What is counted of columns without codes."""
    return (
        features.magnitude("amount", NUMBER),
        features.step("amount", NUMBER),
        features.cell("amount", GRID, (-200, 0, 8), 99, (30,)),
        features.present("word"),
    )


def label(table: str, *of: Feature) -> str:
    """How a histogram is called in a message."""
    return f"{table}: {' x '.join(f'{f.source.kind} {shown(f.name)}' for f in of)}"


def weights(table: str, *of: Feature) -> Histogram:
    """Weights by the codes of features."""
    return Histogram(table=table, axes=tuple(AXES[f] for f in of))


AXES = {f: whole_axis(f) for by in (OF_TABLE, FIRSTS, AGREEMENTS, NEAR) for found in by.values() for f in found}
RAW_FEATURES = {table: _raw_features() for table in TABLES}
AXES |= {f: whole_axis(f) for found in RAW_FEATURES.values() for f in found}


def singles(of_table: Mapping[str, Sequence[Feature]]) -> dict[str, Histogram]:
    """Weights by each feature."""
    return {label(t, f): weights(t, f) for t, found in of_table.items() for f in found}


SINGLES = singles(OF_TABLE)
PAIRS = {
    label(t, a, b): weights(t, a, b)
    for t, found in OF_TABLE.items()
    for at, a in enumerate(found)
    for b in found[at + 1 :]
}
FIRST_PAIRS = {label(t, f, o): weights(t, f, o) for t, found in FIRSTS.items() for f in found for o in OF_TABLE[t]}
TOTALS = {f"{table}: all": Histogram(table=table, axes=()) for table in TABLES}
VOTES: dict[str, Query] = {
    name: query
    for table in TABLES
    for name, query in {
        f"{table}: holders": Histogram(table=table, axes=(AXES[RAW_FEATURES[table][3]],), counts=Counts.VOTES),
        f"{table}: frequent strings": FrequentValues(table=table, column="word"),
        f"{table}: other frequent strings": FrequentValues(table=table, column="word", without=("a",)),
        f"{table}: frequent ticks": FrequentValues(table=table, column="amount", grid=GRID, low=-200, high=99),
    }.items()
}
KEY_HOLDERS: dict[str, Query] = {
    f"{name}: key holders": Histogram(
        table=link.table, axes=(Axis(features.null_key(link), np.array([0, -1])),), counts=Counts.VOTES
    )
    for name, link in LINKS.items()
}
"""How many entities have a key that is not NULL."""
OTHERS_HOLDERS: dict[str, Query] = {
    f"{f.name}: holders of keys to others": Histogram(
        table=f.source.link.table, axes=(Axis(f, np.array([0, -1, -1])),), counts=Counts.VOTES
    )
    for f in (OWN_GUEST, OWN_ABOUT, OWN_BY)
    if isinstance(f.source, OwnKey)
}
"""How many entities have a key to another row than the one above."""
HEAVY: dict[str, Query] = {
    f"{table}: heavy hitters": HeavyHitters(table=table, column="amount", grid=GRID, low=-200, high=99, false=1.0)
    for table in TABLES
}
CANDIDATES = tuple(
    Dependency(table, feature) for by in (AGREEMENTS, NEAR) for table, found in by.items() for feature in found
)
"""Candidate dependencies of all tables."""
LEADS: dict[str, Query] = {
    "lead of any": DependencyChoice(table="person", candidates=CANDIDATES),
    **{f"lead of {at}": DependencyChoice(table="person", candidates=(c,)) for at, c in enumerate(CANDIDATES)},
}
VOTING: dict[str, Query] = {
    "votes on all": DependencyVotes(table="person", candidates=CANDIDATES),
    "votes on some": DependencyVotes(table="person", candidates=CANDIDATES[::3]),
    **{f"votes on {at}": DependencyVotes(table="person", candidates=(c,)) for at, c in enumerate(CANDIDATES)},
}
DEPENDENCIES = {**LEADS, **VOTING}


def with_full_rows(queries: Mapping[str, Histogram], full_rows: int) -> dict[str, Histogram]:
    """The same histograms, in which entities of fewer rows count in proportion to them."""
    return {name: replace(query, full_rows=full_rows) for name, query in queries.items()}


def worst_scores(databases: Iterable[Database], queries: Mapping[str, Histogram], seed: int) -> dict[str, int]:
    """How far an entity moves the distance of each pair from public tables: none, a neighbour's own, random ones.

    All pairs of a table are candidates of one choice, and weigh entities as the first of them does. Asserts that none
    moves by more than is claimed.
    """
    worst = dict.fromkeys(queries, 0)
    rng = np.random.default_rng(seed)
    for family in families(databases):
        for table in TABLES:
            asked = {name: query for name, query in queries.items() if query.table == table}
            near = [np.asarray(cells) for cells in family[-1].count(list(asked.values()))]
            far = [rng.integers(0, 2 * ENTITY_WEIGHT, cells.shape) for cells in near]
            for tables in ([np.zeros_like(cells) for cells in near], near, far):
                pairs = [_pair(q, expected, rng) for q, expected in zip(asked.values(), tables, strict=True)]
                full_rows = next((query.full_rows for query in asked.values()), 1)
                choice = PairChoice(table=table, candidates=tuple(pairs), full_rows=full_rows)
                before, *after = (np.asarray(engine.count([choice])[0]) for engine in family)
                moved = np.max([np.abs(before - scores) for scores in after], axis=0)
                assert moved[-1] == 0, "the candidate that stands for none moved"
                for name, most in zip(asked, moved.tolist(), strict=False):
                    assert most <= choice.sensitivity, f"{name}: a score moved by {most} > {choice.sensitivity}"
                    worst[name] = max(worst[name], most)
    return worst


def _pair(query: Histogram, expected: NDArray[np.int64], rng: np.random.Generator) -> Pair:
    first, second = query.axes
    return Pair(first, second, expected, int(rng.integers(0, ENTITY_WEIGHT)))


# -- all of some small databases -----------------------------------------------------------------------------------

OTHERS: dict[str, Database] = {
    "nobody else": (),
    "one visit each": (
        Row(table="person", name="f", entity="f", keys={"boss": "e", "address": "home of f"}),
        Row(table="person", name="g", entity="g", code=1),
        Row(table="address", name="home of f", entity="f", code=1),
        Row(table="visit", name="of f", entity="f", code=1, keys={"person": "f", "previous": "of e 0", "at": "home"}),
        Row(table="visit", name="of g", entity="g", keys={"person": "g", "guest": "e", "town": "1"}),
        Row(table="note", name="f1", entity="f", keys={"visit": "of f", "about": "of e 0", "by": "e"}),
    ),
    "many visits": (
        Row(table="person", name="f", entity="f"),
        Row(table="visit", name="of f", entity="f", keys={"person": "f", "previous": "of e 0", "town": "0"}),
        Row(table="visit", name="of g", entity="f", code=1, keys={"person": "f", "previous": "of f", "guest": "f"}),
        Row(table="visit", name="alone", entity="alone", keys={"previous": "of e 0", "at": "home"}),
        Row(table="visit", name="lost 1", entity="lost", keys={"previous": "of g"}),
        Row(table="visit", name="lost 2", entity="lost", code=1, keys={"previous": "of e 1", "guest": "f"}),
        Row(table="note", name="f1", entity="f", keys={"visit": "of f", "about": "of g", "by": "f"}),
        Row(table="note", name="f2", entity="f", code=1, keys={"visit": "of g", "about": "of e 1", "by": "e"}),
        Row(table="note", name="nobody's", entity="note", keys={"about": "of e 0"}),
        Row(table="note", name="alone's", entity="alone", keys={"visit": "alone", "about": "of f"}),
    ),
}


def _visits() -> list[dict[str, str]]:
    """What the keys of a visit can hold."""
    named = product((None, "of f", "of g", "of e 0"), (None, "f", "g", "e"), (None, "0", "1"))
    found = [{"previous": p, "guest": g, "town": t} for p, g, t in named]
    return [{key: name for key, name in keys.items() if name is not None} for keys in found]


def bundles() -> Iterator[list[Row]]:
    """All that one person can own, up to three visits with up to two notes; keys run through all they can name."""
    kinds = _visits()
    homes: tuple[dict[str, str], ...] = ({}, {"address": "home"})
    choices = [(), *((k,) for k in kinds), *((a, kinds[(7 * at) % len(kinds)]) for at, a in enumerate(kinds))]
    choices += [(a, kinds[(5 * at + 1) % len(kinds)], kinds[(11 * at) % len(kinds)]) for at, a in enumerate(kinds)]
    for at, (keys, about, home) in enumerate(product(choices, (None, "of f", "of g", "of e 0"), homes)):
        by: dict[str, str] = ({}, {"by": "e"}, {"by": "f"}, {"by": "g"}, {"by": "f"})[at % 5]
        boss = ({}, {"boss": "f"}, {"boss": "e"}, {"boss": "g"})[at % 4]
        rows = [Row(table="person", name="e", entity="e", code=at % 2, keys={**boss, **home})]
        rows += [Row(table="address", name="home", entity="e")] * bool(home)
        for place, held in enumerate(keys):
            mine = {"person": "e", **held, **({"at": "home of f"} if place == at % 3 else {})}
            rows.append(Row(table="visit", name=f"of e {place}", entity="e", code=(at + place) % 2, keys=mine))
            for note in range((at + place) % 3):
                said = {"visit": f"of e {place}", **({"about": about} if about else {}), **by}
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
