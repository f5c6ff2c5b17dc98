"""Pairs of databases that differ in one entity: what a whole fit is replayed on.

Persons (the entities) live at addresses (a lookup), have a boss (a self reference) and a nation (a public table), and
own orders, which have a helper (a reference to any person), items (which may follow another item) and tags (a composite
key). Three columns follow from others: the number of a person's orders, the place of an order and its copy of the age.
Values are awkward on purpose: extremes of types, NaN, infinities, empty strings, NULL, orders that nobody owns.
"""

import datetime as dt
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Rows = dict[str, list[tuple[Any, ...]]]

TYPES: Mapping[str, Mapping[str, pa.DataType]] = {
    "nation": {"id": pa.int64(), "name": pa.string()},
    "address": {"id": pa.int64(), "zone": pa.int64(), "street": pa.string()},
    "person": {
        "id": pa.int64(),
        "age": pa.int64(),
        "score": pa.float64(),
        "city": pa.string(),
        "born": pa.date32(),
        "home": pa.int64(),
        "boss": pa.int64(),
        "nation": pa.int64(),
        "orders": pa.int64(),
    },
    "purchase": {
        "id": pa.int64(),
        "person": pa.int64(),
        "amount": pa.int64(),
        "price": pa.decimal128(6, 2),
        "age": pa.int64(),
        "place": pa.int64(),
        "helper": pa.int64(),
        "ordered": pa.date32(),
        "paid": pa.timestamp("us"),
    },
    "item": {"id": pa.int64(), "purchase": pa.int64(), "quantity": pa.int64(), "previous": pa.int64()},
    "tag": {"purchase": pa.int64(), "kind": pa.int64()},
}
DDL = """
CREATE TABLE nation (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL);
CREATE TABLE address (id BIGINT PRIMARY KEY, zone BIGINT NOT NULL CHECK (zone BETWEEN 0 AND 4), street VARCHAR);
CREATE TABLE person (id BIGINT PRIMARY KEY, age BIGINT NOT NULL CHECK (age BETWEEN 0 AND 9), score DOUBLE,
  city VARCHAR, born DATE, home BIGINT REFERENCES address (id), boss BIGINT REFERENCES person (id),
  nation BIGINT REFERENCES nation (id), orders BIGINT NOT NULL);
CREATE TABLE purchase (id BIGINT PRIMARY KEY, person BIGINT REFERENCES person (id), amount BIGINT NOT NULL,
  price DECIMAL(6,2), age BIGINT CHECK (age BETWEEN 0 AND 9), place BIGINT, helper BIGINT REFERENCES person (id),
  ordered DATE, paid TIMESTAMP);
CREATE TABLE item (id BIGINT PRIMARY KEY, purchase BIGINT NOT NULL REFERENCES purchase (id),
  quantity BIGINT NOT NULL CHECK (quantity BETWEEN 0 AND 5), previous BIGINT REFERENCES item (id));
CREATE TABLE tag (purchase BIGINT NOT NULL REFERENCES purchase (id), kind BIGINT NOT NULL CHECK (kind BETWEEN 0 AND 3),
  PRIMARY KEY (purchase, kind));
"""
CHOICES: Mapping[str, Any] = {
    "unit": "person",
    "public": ["nation"],
    "lookups": {"address": "person"},
    "owners": {"purchase": ("person",), "item": ("purchase",), "tag": ("purchase",)},
}
"""What `draft` is told."""
NATIONS = [(number, f"nation {number}") for number in range(1, 6)]
SHARED_ADDRESSES = [(1, 0, "Shared"), (2, 1, None), (3, 2, "nobody lives here")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two folders that hold databases which differ in one entity."""

    one: Path
    other: Path


def write_pair(folder: Path, *, seed: int, persons: int, replaced: bool) -> Pair:
    """A database, and the same with one entity replaced by another, or without it.

    Where it may be missing, no other entity references it: that others do is not protected, and the receipt says so.
    """
    rng = random.Random(seed)
    referenced = range(1, persons + replaced)
    others = [_person(rng, number, referenced) for number in range(1, persons)]
    others += [_orphan(rng, persons + 1 + number, referenced) for number in range(3)]
    place = rng.randrange(persons)
    first = _person(rng, persons, range(1, persons + 1), large=rng.random() < 0.5)
    second = _person(rng, persons, range(1, persons + 1), large=rng.random() < 0.5, base=500_000)
    order = random.Random(seed + 1)
    one = _database(order, others, first, place)
    order = random.Random(seed + 1)
    other = _database(order, others, second if replaced else _nothing(), place)
    return Pair(one=_write(folder / "one", one), other=_write(folder / "other", other))


def write_entities(folder: Path, ddl: str, columns: Mapping[str, Sequence[str]], entities: Sequence[Rows]) -> Path:
    """Write the rows of entities, one after the other, into tables whose columns are all BIGINT."""
    folder.mkdir(parents=True)
    (folder / "schema.sql").write_text(ddl)
    for table, names in columns.items():
        rows = [row for entity in entities for row in entity[table]]
        arrays = [pa.array([row[at] for row in rows], pa.int64()) for at in range(len(names))]
        pq.write_table(pa.table(arrays, names=list(names)), folder / f"{table}.parquet")
    return folder


def _nothing() -> Rows:
    return {table: [] for table in TYPES}


def _person(rng: random.Random, number: int, everyone: Sequence[int], *, large: bool = False, base: int = 0) -> Rows:
    """One entity: a person, perhaps with an address, and orders with their items and tags."""
    rows, first = _nothing(), number * 1_000_000 + base
    home = rng.choice([None, 1, 2, first])
    if home == first:
        rows["address"].append((home, rng.randint(0, 4), rng.choice([None, "", "Main", "Elm"])))
    age, orders = rng.randint(0, 9), rng.randint(20, 60) if large else rng.choice([0, 0, 1, 1, 2, 3, 7])
    rows["person"].append(
        (
            number,
            age,
            rng.choice([None, 1.5, 2.25, 0.0, rng.gauss(50, 20), float("nan"), float("-inf"), 1e300, 1e-310]),
            rng.choice([None, "Rome", "Oslo", "Bern", "", f"only {number}"]),
            rng.choice([None, dt.date(2001, 1, rng.randint(1, 28)), dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
            home,
            rng.choice([None, rng.choice(everyone)]),
            rng.choice([None, rng.randint(1, 5)]),
            orders,
        )
    )
    for place in range(orders):
        _purchase(rng, rows, first + 10 * (place + 1), number, age, place + 1, everyone)
    return rows


def _orphan(rng: random.Random, number: int, everyone: Sequence[int]) -> Rows:
    """An order that nobody owns: an entity of its own."""
    rows = _nothing()
    _purchase(rng, rows, number * 1_000_000, None, None, None, everyone)
    return rows


def _purchase(
    rng: random.Random,
    rows: Rows,
    number: int,
    person: int | None,
    age: int | None,
    place: int | None,
    everyone: Sequence[int],
) -> None:
    amount = rng.choice([0, 0, 5, 7, rng.randint(-1000, 100_000), 2**63 - 1, -(2**63)])
    price = rng.choice([None, Decimal(rng.randint(-999_999, 999_999)) / 100])
    helper = rng.choice([None, rng.choice(everyone)])
    rows["purchase"].append((number, person, amount, price, age, place, helper, *_dates(rng)))
    previous = None
    for at in range(rng.choice([0, 1, 2, 4])):
        rows["item"].append((number + at, number, rng.randint(0, 5), rng.choice([None, previous])))
        previous = number + at
    rows["tag"] += [(number, kind) for kind in rng.sample(range(4), rng.choice([0, 1, 2]))]


def _dates(rng: random.Random) -> tuple[dt.date | None, dt.datetime | None]:
    """When something was ordered, and that it was paid for a few days later; seldom nonsense."""
    ordered = dt.date(2000 + rng.randint(0, 19), rng.randint(1, 12), rng.randint(1, 28))
    paid = dt.datetime(ordered.year, ordered.month, ordered.day, 12) + dt.timedelta(rng.randint(0, 6))
    return rng.choice(
        [*[(ordered, paid)] * 60, (None, paid), (ordered, None), (dt.date(1, 1, 1), dt.datetime(9999, 12, 31))]
    )


def _database(rng: random.Random, others: Sequence[Rows], entity: Rows, place: int) -> Rows:
    """The rows of all entities, mixed; those of one stay in their order, and its person stands at a fixed place."""
    tables = _nothing()
    for table in TYPES:
        mixed = [row for rows in others for row in rows[table]]
        if table != "person":
            rng.shuffle(mixed)
        at = place if table == "person" else len(mixed) // 2
        tables[table] = [*mixed[:at], *entity[table], *mixed[at:]]
    tables["address"] = [*SHARED_ADDRESSES, *tables["address"]]
    tables["nation"] = list(NATIONS)
    return tables


def _write(folder: Path, tables: Rows) -> Path:
    folder.mkdir(parents=True)
    (folder / "schema.sql").write_text(DDL)
    for table, columns in TYPES.items():
        arrays = [pa.array([row[at] for row in tables[table]], kind) for at, kind in enumerate(columns.values())]
        pq.write_table(pa.table(arrays, names=list(columns)), folder / f"{table}.parquet")
    return folder
