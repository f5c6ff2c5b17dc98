"""What is stored of an entity is a function of its own rows: taken away, it changes nothing of the others.

Databases are small and awkward: rows without a primary key, without an owner, of owners that are missing or that an
implied key overrules, keys that lead to rows of others, and rows that are equal. They are read in any order, in parts
of a few rows, in memory and in files.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privbench.encode.hashing import hash_rows
from privbench.encode.keys import SpreadIndex
from privbench.fitting import gathering, part_rows, slabs
from privbench.fitting.entities import EntityNumbers
from privbench.fitting.memory import plan_store
from privbench.fitting.reading import read_database
from privbench.io import files
from privbench.io.open import open_source
from privbench.methods.method import silent
from privbench.model.model import compile_codecs
from privbench.privacy.part_counter import PartCounter
from privbench.schema.spec import Spec

Rows = dict[str, list[tuple[Any, ...]]]
COLUMNS = {
    "person": ("id", "tag", "friend"),
    "visit": ("person", "day", "cost", "friend", "clerk"),
    "call": ("id", "person", "minutes"),
    "payment": ("call", "payer", "helper", "amount"),
}
KEYS = {"person": ["id"], "visit": [], "call": ["id"], "payment": []}
PERSONS, REFERENCED = 12, 5
"""The first few persons are referenced by others, and stay: that others reference an entity is not protected."""


def _spec() -> Spec:
    number = {"type": "BIGINT", "null": False, "domain": {"range": [0, 99]}}
    held = {"type": "BIGINT"}

    def to(column: str, table: str, inside: bool = False) -> dict[str, Any]:
        return {"columns": [column], "table": table, "references": ["id"], "inside": inside}

    def columns(**known: Any) -> dict[str, Any]:
        return {name: {"type": "BIGINT", "null": False} if name == "id" else words for name, words in known.items()}

    tables = {
        "person": {
            "key": ["id"],
            "foreign_keys": [to("friend", "person")],
            "columns": columns(id=held, tag=number, friend=held),
        },
        "visit": {
            "owner": ["person"],
            "foreign_keys": [to("person", "person"), to("friend", "person"), to("clerk", "clerk")],
            "columns": columns(person=held, day=number, cost=number, friend=held, clerk=held),
        },
        "clerk": {"key": ["id"], "made_up": 3, "columns": columns(id=held)},
        "call": {
            "key": ["id"],
            "foreign_keys": [to("person", "person")],
            "columns": columns(id=held, person=held, minutes=number),
        },
        "payment": {
            "owner": ["call"],
            "foreign_keys": [to("call", "call"), to("payer", "person", inside=True), to("helper", "person")],
            "columns": columns(call=held, payer=held, helper=held, amount=number),
        },
    }
    return Spec.model_validate({"unit": "person", "neighbours": "add-remove", "orphans": "null", "tables": tables})


def _database(rng: random.Random) -> dict[int, Rows]:
    """The rows of each entity; those from PERSONS on have no row in the entity table."""
    calls = {number: [100 * number + at for at in range(rng.randint(0, 3))] for number in range(PERSONS)}
    everyone = [call for held in calls.values() for call in held]
    found: dict[int, Rows] = {}
    for number in range(PERSONS):
        rows: Rows = {name: [] for name in COLUMNS}
        rows["person"] = [(number, number, _friend(rng))]
        rows["visit"] = [
            (number, rng.randrange(2), rng.randrange(2), _friend(rng), _clerk(rng))
            for _ in range(rng.choice([0, 1, 6]))
        ]
        rows["call"] = [(call, number, rng.randrange(5)) for call in calls[number]]
        for _ in range(rng.choice([0, 2, 5])):
            call = rng.choice([None, *calls[number], 10**6, *rng.sample(everyone, min(1, len(everyone)))])
            rows["payment"].append((call, number, _friend(rng), rng.randrange(3)))
        rows["payment"] += [(call, None, _friend(rng), 7) for call in calls[number]]
        found[number] = rows
    for number in range(PERSONS, PERSONS + 3):  # of an owner that is missing, or alone
        rows = {name: [] for name in COLUMNS}
        owner = None if number == PERSONS else 10**6 + number
        rows["visit"] = [(owner, rng.randrange(2), 9, _friend(rng), None) for _ in range(1 if owner is None else 4)]
        found[number] = rows
    return found


def _friend(rng: random.Random) -> int | None:
    return rng.choice([None, rng.randrange(REFERENCED), 10**7])


def _clerk(rng: random.Random) -> int | None:
    """A key into a table that the source does not have: its rows are made up."""
    return rng.choice([None, rng.randrange(9)])


def _write(folder: Path, entities: Sequence[Rows], rng: random.Random) -> Path:
    folder.mkdir()
    for table, names in COLUMNS.items():
        rows = [row for entity in entities for row in entity[table]]
        rng.shuffle(rows)
        arrays = [pa.array([row[at] for row in rows], pa.int64()) for at in range(len(names))]
        pq.write_table(pa.table(arrays, names=list(names)), folder / f"{table}.parquet")
    return folder


def _stored(folder: Path, entities: Sequence[Rows], rng: random.Random, *, in_files: bool) -> Counter[Any]:
    """What the store has of each entity: its rows in their order, and where their keys lead."""
    spec, source = _spec(), _write(folder, entities, rng)
    protection = spec.protection()
    codecs = compile_codecs(spec, protection)
    with open_source(source) as opened:
        plan = plan_store(opened, protection, codecs, memory=None, in_one_part=False)
        plan = replace(plan, in_files=in_files, buffers=300)
        store = folder / "store" if in_files else None
        if store is not None:
            store.mkdir()
        read = read_database(opened, protection, codecs, orphans_as_null=True, plan=plan, folder=store, progress=silent)
        parts = list(read.parts.map(_taken_apart))
    tags = dict(pair for _, known in parts for pair in known)
    return Counter(_named(entity, tags) for contents, _ in parts for entity in contents)


def _taken_apart(counter: PartCounter) -> tuple[list[Any], list[tuple[int, int]]]:
    """The entities of a part, and the tags of persons by number."""
    tables = counter.part.tables
    persons = tables["person"]
    assert persons.numbers is not None
    count = max(int(table.entities.max(initial=-1)) for table in tables.values()) + 1
    contents = []
    for entity in range(count):
        own = {name: np.flatnonzero(table.entities == entity) for name, table in tables.items()}
        if any(map(len, own.values())):
            contents.append([(name, [_row(counter, name, row, own) for row in rows]) for name, rows in own.items()])
    return contents, list(zip(persons.numbers.tolist(), persons.codes["tag"].tolist(), strict=True))


def _row(counter: PartCounter, name: str, row: int, own: dict[str, Any]) -> tuple[Any, ...]:
    table = counter.part.tables[name]
    codes = tuple(int(column[row]) for column in table.codes.values())
    keys = []
    for key, targets in sorted(table.keys.items()):
        inside = {"visit.person": "person", "call.person": "person", "payment.call": "call", "payment.payer": "person"}
        target = int(targets[row])
        if key == "visit.clerk":
            keys.append((key, target))
        elif key in inside and target >= 0:
            places = own[inside[key]].tolist()
            keys.append((key, places.index(target) if target in places else "a row of another entity"))
        else:
            keys.append((key, ("number", target) if target >= 0 else None))
    return codes, tuple(keys)


def _named(entity: Any, tags: dict[int, int]) -> Any:
    """References by the tag of the person instead of the number, which depends on who is there."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple) and len(value) == 2 and value[0] == "number":
            return tags[value[1]]
        return tuple(map(plain, value)) if isinstance(value, tuple | list) else value

    return plain(entity)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BATCH_ROWS", 3)
    monkeypatch.setattr(slabs, "SLAB_ROWS", 5)
    monkeypatch.setattr(gathering, "ONE_PART", 0)
    monkeypatch.setattr(gathering, "PART_ROWS", 16)


def _changes_nothing_of_others(folder: Path, seed: int, *, in_files: bool = False) -> bool:
    rng = random.Random(seed)
    database = _database(rng)
    whole = _stored(folder / f"{seed}", list(database.values()), rng, in_files=in_files)
    for gone in range(REFERENCED, len(database)):
        left = [rows for number, rows in database.items() if number != gone]
        stored = _stored(folder / f"{seed} without {gone}", left, rng, in_files=in_files)
        if stored - whole or sum((whole - stored).values()) != 1:
            return False
    return sum(whole.values()) == len(database)


@pytest.mark.parametrize("in_files", [False, True], ids=["memory", "files"])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_an_entity_less_changes_nothing_of_others(seed: int, in_files: bool, tmp_path: Path) -> None:
    assert _changes_nothing_of_others(tmp_path, seed, in_files=in_files)


# -- leaks built in on purpose -----------------------------------------------------------------------------------------

Mutant = Callable[[pytest.MonkeyPatch], None]


def order_of_the_file(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(slabs, "_order", lambda *_: [])


def order_of_slabs(patch: pytest.MonkeyPatch) -> None:
    """Rows without a primary key are in the order of a hash that differs from slab to slab."""
    patch.setattr(slabs, "hash_rows", lambda columns: hash_rows(columns, salt=len(columns[0])))


def missing_owners_are_one(patch: pytest.MonkeyPatch) -> None:
    """All rows whose owner is missing are of one entity."""
    patch.setattr(EntityNumbers, "_number", lambda self, *_: self._entities)


def missing_owners_of_each_slab(patch: pytest.MonkeyPatch) -> None:
    """Rows whose owner is missing are of one entity only with others of their slab."""
    patch.setattr(EntityNumbers, "_number", lambda self, *_: self._take(1))


def keys_that_leave_the_entity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(part_rows, "inside_keys", lambda rows, *_: rows)


def made_up_rows_in_order(patch: pytest.MonkeyPatch) -> None:
    """Which made-up row stands for a key depends on which keys came before it."""

    def find(self: SpreadIndex, columns: Sequence[pa.Array]) -> np.ndarray[Any, Any]:
        seen, keys = vars(self).setdefault("seen", {}), columns[0].to_pylist()
        return np.array([-1 if key is None else seen.setdefault(key, len(seen)) % self.rows for key in keys], np.int64)

    patch.setattr(SpreadIndex, "find", find)


MUTANTS = [
    order_of_the_file,
    order_of_slabs,
    missing_owners_are_one,
    missing_owners_of_each_slab,
    keys_that_leave_the_entity,
    made_up_rows_in_order,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__name__)
def test_a_leak_is_seen(mutant: Mutant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert not all(_changes_nothing_of_others(tmp_path, seed) for seed in range(1, 4))
