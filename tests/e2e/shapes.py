"""Small made databases of the shapes that are hard to protect or to write. Each row set is a function of its seed."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privbench.io.base import arrow_schema
from privbench.io.ddl import parse_ddl
from privbench.io.names import file_stems

Rng = np.random.Generator
Columns = dict[str, Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A schema, its rows, and the choices that `draft` needs for it."""

    ddl: str
    rows: Callable[[Rng], Mapping[str, Columns]]
    choices: Mapping[str, Any] = field(default_factory=dict)

    def data(self, *, seed: int = 0) -> Mapping[str, Columns]:
        """The rows of each table, column by column."""
        return self.rows(np.random.default_rng(seed))

    def write(self, folder: Path, *, seed: int = 0) -> Path:
        """Write the database as a folder of Parquet files with its schema."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "schema.sql").write_text(self.ddl, encoding="utf-8")
        data = self.data(seed=seed)
        tables = parse_ddl(self.ddl, where="schema.sql").tables
        stems = file_stems(t.name for t in tables)
        for table in tables:
            rows = pa.table(dict(data[table.name]), schema=arrow_schema(table))
            pq.write_table(rows, folder / f"{stems[table.name]}.parquet")
        return folder


def _pick(rng: Rng, values: Sequence[Any], rows: int, *, null: float = 0.0) -> list[Any]:
    drawn = [values[i] for i in rng.integers(0, len(values), rows)]
    return [None if hit else v for v, hit in zip(drawn, rng.random(rows) < null, strict=True)]


def _ids(rows: int) -> list[int]:
    return list(range(10, 10 + rows))


def _days(rng: Rng, rows: int) -> list[dt.date]:
    return [dt.date(2020, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 700, rows)]


def _pairs(rng: Rng, left: Sequence[Any], right: Sequence[Any], rows: int) -> tuple[list[Any], list[Any]]:
    chosen = rng.permutation(len(left) * len(right))[:rows]
    return [left[i // len(right)] for i in chosen], [right[i % len(right)] for i in chosen]


def _single(rng: Rng) -> Mapping[str, Columns]:
    n = 300
    return {
        "census": {
            "age": rng.integers(17, 90, n).tolist(),
            "wage": [None if v < 0 else Decimal(int(v)) / 100 for v in rng.normal(3000, 2000, n)],
            "job": _pick(rng, ["nurse", "clerk", "cook", "pilot"], n, null=0.1),
            "married": _pick(rng, [True, False], n),
            "born": _days(rng, n),
            "seen": [dt.datetime(2021, 1, 1) + dt.timedelta(seconds=int(s)) for s in rng.integers(0, 10**7, n)],
            "clock": [dt.time(int(h), 30) for h in rng.integers(0, 24, n)],
            "ratio": rng.normal(0, 1, n).tolist(),
            "small": rng.normal(0, 1, n).astype(np.float32).tolist(),
            "note": [f"note {v}" for v in rng.integers(0, 10**6, n)],
        }
    }


SINGLE = Shape(
    ddl="""CREATE TABLE census (age SMALLINT NOT NULL, wage DECIMAL(9, 2), job VARCHAR(20), married BOOLEAN, born DATE,
  seen TIMESTAMP, clock TIME, ratio DOUBLE, small REAL, note VARCHAR(40));""",
    rows=_single,
)


def _parent_child(rng: Rng) -> Mapping[str, Columns]:
    people, n = _ids(200), 600
    return {
        "person": {"id": people, "city": _pick(rng, ["x", "y", "z"], 200), "age": rng.integers(0, 99, 200).tolist()},
        "visit": {"id": _ids(n), "person_id": _pick(rng, people, n), "day": _days(rng, n), "cost": _pick(rng, [5], n)},
    }


PARENT_CHILD = Shape(
    ddl="""CREATE TABLE person (id INTEGER PRIMARY KEY, city VARCHAR NOT NULL, age SMALLINT);
CREATE TABLE visit (id BIGINT PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person, day DATE, cost SMALLINT);
CREATE INDEX visit_day ON visit (day);""",
    rows=_parent_child,
    choices={"unit": "person"},
)


def _three_levels(rng: Rng) -> Mapping[str, Columns]:
    people, orders, n = _ids(120), _ids(300), 700
    return {
        "line": {"order_id": _pick(rng, orders, n), "amount": rng.integers(1, 9, n).tolist()},
        "orders": {"id": orders, "person": _pick(rng, people, 300), "day": _days(rng, 300)},
        "person": {"id": people, "mail": [f"p{i}@example.org" for i in people]},
    }


THREE_LEVELS = Shape(
    ddl="""CREATE TABLE line (order_id INTEGER NOT NULL REFERENCES orders (id), amount TINYINT NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, person INTEGER NOT NULL REFERENCES person (id), day DATE NOT NULL);
CREATE TABLE person (id INTEGER PRIMARY KEY, mail VARCHAR(60) NOT NULL UNIQUE);""",
    rows=_three_levels,
    choices={"unit": "person"},
)


def _diamond(rng: Rng) -> Mapping[str, Columns]:
    people, rentals, n = _ids(100), _ids(250), 400
    return {
        "customer": {"id": people, "active": _pick(rng, [True, False], 100)},
        "rental": {"id": rentals, "customer_id": _pick(rng, people, 250), "day": _days(rng, 250)},
        "payment": {
            "id": _ids(n),
            "customer_id": _pick(rng, people, n),
            "rental_id": _pick(rng, rentals, n, null=0.2),
            "amount": [Decimal(int(a)) / 100 for a in rng.integers(99, 1200, n)],
        },
    }


DIAMOND = Shape(
    ddl="""CREATE TABLE customer (id SMALLINT PRIMARY KEY, active BOOLEAN NOT NULL);
CREATE TABLE rental (id INTEGER PRIMARY KEY, customer_id SMALLINT NOT NULL REFERENCES customer, day DATE);
CREATE TABLE payment (id INTEGER PRIMARY KEY, customer_id SMALLINT NOT NULL REFERENCES customer,
  rental_id INTEGER REFERENCES rental, amount DECIMAL(5, 2) NOT NULL);""",
    rows=_diamond,
    choices={"unit": "customer"},
)


def _cycle(rng: Rng) -> Mapping[str, Columns]:
    stores, staff = _ids(60), _ids(240)
    return {
        "store": {"id": stores, "manager_staff_id": staff[:60], "size": rng.integers(1, 20, 60).tolist()},
        "staff": {"id": staff, "store_id": stores + _pick(rng, stores, 180), "pay": rng.integers(1, 50, 240).tolist()},
    }


CYCLE = Shape(
    ddl="""CREATE TABLE staff (id INTEGER PRIMARY KEY, store_id INTEGER NOT NULL, pay SMALLINT,
  FOREIGN KEY (store_id) REFERENCES store (id));
CREATE TABLE store (id INTEGER PRIMARY KEY, manager_staff_id INTEGER NOT NULL UNIQUE REFERENCES staff (id),
  size SMALLINT NOT NULL);""",
    rows=_cycle,
    choices={"unit": "store"},
)


def _self_reference(rng: Rng) -> Mapping[str, Columns]:
    """Nearly every (first, office) is taken, so that some rows cannot be made unique and are lost."""
    people, n = _ids(200), 200
    first, office = _pairs(rng, "abcdefgh", range(26), n)
    boss = [None, *(people[i] for i in rng.integers(0, np.arange(1, n)))]
    return {"employee": {"id": people, "boss": boss, "first": first, "office": office}}


SELF_REFERENCE = Shape(
    ddl="CREATE TABLE employee (id INTEGER PRIMARY KEY, boss INTEGER REFERENCES employee (id), first VARCHAR, "
    "office SMALLINT, UNIQUE (first, office));",
    rows=_self_reference,
)


def _tree(rng: Rng) -> Mapping[str, Columns]:
    """Parents are part of a key, and two keys share a column."""
    boxes, n = _ids(150), 150
    parent, name = _pairs(rng, boxes[:30], "abcdefgh", n)
    place, color = _pairs(rng, "abcdefgh", range(30), n)
    parent[0] = None
    return {"box": {"id": boxes, "parent": parent, "name": name, "color": color, "place": place}}


TREE = Shape(
    ddl="CREATE TABLE box (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES box, name VARCHAR NOT NULL, "
    "color SMALLINT, place VARCHAR, UNIQUE (parent, name), UNIQUE (place, color), UNIQUE (name, parent, color));",
    rows=_tree,
)


def _partly_null(rng: Rng) -> Mapping[str, Columns]:
    firm, number = _pairs(rng, [1, 2, 3], range(40), 100)
    at, free = rng.integers(0, 100, 200), rng.random(200) < 0.3
    return {
        "worker": {"firm": firm, "number": number, "pay": rng.integers(0, 9, 100).tolist()},
        "task": {
            "firm": [firm[i] for i in at],
            "worker": [None if f else number[i] for i, f in zip(at, free, strict=True)],
            "hours": rng.integers(0, 9, 200).tolist(),
        },
    }


PARTLY_NULL = Shape(
    ddl="""CREATE TABLE worker (firm SMALLINT, number INTEGER, pay SMALLINT, PRIMARY KEY (firm, number));
CREATE TABLE task (firm SMALLINT NOT NULL, worker INTEGER, hours TINYINT,
  FOREIGN KEY (firm, worker) REFERENCES worker (firm, number));""",
    rows=_partly_null,
    choices={"unit": "worker"},
)


def _junction(rng: Rng) -> Mapping[str, Columns]:
    films, actors, cats = _ids(150), _ids(80), _ids(12)
    film_1, actor = _pairs(rng, films, actors, 500)
    film_2, cat = _pairs(rng, films, cats, 200)
    return {
        "category": {"id": cats, "name": [f"cat {i}" for i in cats]},
        "film": {"id": films, "year": rng.integers(1950, 2020, 150).tolist()},
        "actor": {"id": actors, "film_id": _pick(rng, films, 80), "age": rng.integers(20, 80, 80).tolist()},
        "film_actor": {"actor_id": actor, "film_id": film_1},
        "film_category": {"film_id": film_2, "category_id": cat},
    }


JUNCTION = Shape(
    ddl="""CREATE TABLE category (id TINYINT PRIMARY KEY, name VARCHAR NOT NULL);
CREATE TABLE film (id INTEGER PRIMARY KEY, year SMALLINT);
CREATE TABLE actor (id INTEGER PRIMARY KEY, film_id INTEGER NOT NULL REFERENCES film, age SMALLINT);
CREATE TABLE film_actor (actor_id INTEGER REFERENCES actor, film_id INTEGER REFERENCES film,
  PRIMARY KEY (actor_id, film_id));
CREATE TABLE film_category (film_id INTEGER REFERENCES film, category_id TINYINT REFERENCES category,
  PRIMARY KEY (film_id, category_id));""",
    rows=_junction,
    choices={"unit": "film", "public": ["category"], "owners": {"film_actor": ("film_id",)}},
)


def _seasons(rng: Rng) -> Mapping[str, Columns]:
    players = [f"pl{i:04d}" for i in range(90)]
    player, season = _pairs(rng, players, [(y, s) for y in range(1990, 2010) for s in (1, 2)], 500)
    years, stints = [s[0] for s in season], [s[1] for s in season]
    at = rng.integers(0, 500, 700)
    return {
        "player": {"id": players, "bats": _pick(rng, ["L", "R", "B"], 90, null=0.1)},
        "season": {"player": player, "year": years, "stint": stints, "games": rng.integers(0, 160, 500).tolist()},
        "game": {
            "player": [player[i] for i in at],
            "year": [years[i] for i in at],
            "stint": [stints[i] for i in at],
            "hits": rng.integers(0, 5, 700).tolist(),
        },
    }


SEASONS = Shape(
    ddl="""CREATE TABLE player (id VARCHAR(9) PRIMARY KEY, bats VARCHAR);
CREATE TABLE season (player VARCHAR(9) NOT NULL REFERENCES player, year SMALLINT, stint TINYINT, games SMALLINT,
  PRIMARY KEY (player, year, stint));
CREATE TABLE game (player VARCHAR(9) NOT NULL, year SMALLINT NOT NULL, stint TINYINT NOT NULL, hits TINYINT,
  FOREIGN KEY (player, year, stint) REFERENCES season (player, year, stint));""",
    rows=_seasons,
    choices={"unit": "player"},
)


def _extension(rng: Rng) -> Mapping[str, Columns]:
    people = _ids(200)
    return {
        "person": {"id": people, "age": rng.integers(0, 99, 200).tolist()},
        "passport": {"person_id": people[:120], "country": _pick(rng, ["de", "fr", "jp"], 120)},
        "stamp": {"passport": _pick(rng, people[:120], 300), "day": _days(rng, 300)},
    }


EXTENSION = Shape(
    ddl="""CREATE TABLE person (id INTEGER PRIMARY KEY, age SMALLINT);
CREATE TABLE passport (person_id INTEGER PRIMARY KEY REFERENCES person, country CHAR(2) NOT NULL);
CREATE TABLE stamp (passport INTEGER NOT NULL REFERENCES passport, day DATE);""",
    rows=_extension,
    choices={"unit": "person"},
)


def _lookup(rng: Rng) -> Mapping[str, Columns]:
    people, addresses, cities = _ids(150), _ids(150), _ids(20)
    return {
        "city": {"id": cities, "name": [f"city {i}" for i in cities]},
        "address": {"id": addresses, "city": _pick(rng, cities, 150), "zip": rng.integers(0, 99, 150).tolist()},
        "person": {"id": people, "address": rng.permutation(addresses).tolist(), "age": _pick(rng, [1, 2], 150)},
        "visit": {"id": _ids(300), "person": _pick(rng, people, 300, null=0.3), "guide": _pick(rng, people, 300)},
    }


LOOKUP = Shape(
    ddl="""CREATE TABLE city (id SMALLINT PRIMARY KEY, name VARCHAR);
CREATE TABLE address (id INTEGER PRIMARY KEY, city SMALLINT NOT NULL REFERENCES city, zip SMALLINT);
CREATE TABLE person (id INTEGER PRIMARY KEY, address INTEGER NOT NULL REFERENCES address, age SMALLINT);
CREATE TABLE visit (id INTEGER PRIMARY KEY, person INTEGER REFERENCES person, guide INTEGER REFERENCES person);""",
    rows=_lookup,
    choices={
        "unit": "person",
        "public": ["city"],
        "lookups": {"address": "person"},
        "owners": {"visit": ("person",)},
    },
)


def _inbound(rng: Rng) -> Mapping[str, Columns]:
    movies = [7 * i + 3 for i in range(200)]
    return {
        "kind": {"id": [1, 2, 3], "name": ["a", "b", "c"]},
        "movie": {"id": rng.permutation(movies).tolist(), "kind": _pick(rng, [1, 2, 3], 200), "year": _ids(200)},
        "keyword": {"id": _ids(400), "movie_id": _pick(rng, movies, 400, null=0.1), "word": _pick(rng, "abc", 400)},
        "rating": {"movie_id": movies[:150], "stars": _pick(rng, [1, 2, 3], 150)},
        "remark": {"rating": _pick(rng, movies[:150], 80, null=0.1), "said": _pick(rng, ["a", "b"], 80)},
    }


INBOUND = Shape(
    ddl="""CREATE TABLE kind (id TINYINT PRIMARY KEY, name VARCHAR);
CREATE TABLE movie (id INTEGER PRIMARY KEY, kind TINYINT NOT NULL REFERENCES kind, year SMALLINT);
CREATE TABLE keyword (id INTEGER PRIMARY KEY, movie_id INTEGER REFERENCES movie, word VARCHAR);
CREATE TABLE remark (rating INTEGER REFERENCES rating (movie_id), said VARCHAR);
CREATE TABLE rating (movie_id INTEGER PRIMARY KEY REFERENCES movie, stars TINYINT);""",
    rows=_inbound,
    choices={"unit": "movie", "public": ["kind", "keyword", "rating", "remark"]},
)

EVIL = 'x"; DROP TABLE y; --'
_EVIL_SQL = '"x""; DROP TABLE y; --"'


def _odd_tables(rng: Rng) -> Mapping[str, Columns]:
    """Tables with no row, one row and keys alone; columns with one value and with none."""
    people = _ids(60)
    return {
        "person": {"id": people, "same": [7] * 60, "nothing": [None] * 60, "blank": [""] * 60},
        "never": {"id": [], "person": [], "word": []},
        "once": {"id": [1], "person": [10], "word": ["x"]},
        "likes": {"person": _pick(rng, people, 90), "other": _pick(rng, people, 90)},
        "under": {"never": [], "day": []},
        "empty": {"id": [], "word": []},
        "picks": {"person": _pick(rng, people, 30), "empty": [None] * 30},
    }


ODD_TABLES = Shape(
    ddl="""CREATE TABLE person (id INTEGER PRIMARY KEY, same SMALLINT, nothing DATE, blank VARCHAR);
CREATE TABLE never (id INTEGER PRIMARY KEY, person INTEGER NOT NULL REFERENCES person, word VARCHAR);
CREATE TABLE once (id INTEGER PRIMARY KEY, person INTEGER NOT NULL REFERENCES person, word VARCHAR);
CREATE TABLE likes (person INTEGER NOT NULL REFERENCES person, other INTEGER REFERENCES person);
CREATE TABLE under (never INTEGER NOT NULL REFERENCES never, day DATE);
CREATE TABLE empty (id INTEGER PRIMARY KEY, word VARCHAR);
CREATE TABLE picks (person INTEGER NOT NULL REFERENCES person, empty INTEGER REFERENCES empty);""",
    rows=_odd_tables,
    choices={"unit": "person", "public": ["empty"], "owners": {"likes": ("person",)}},
)


def _wide(rng: Rng) -> Mapping[str, Columns]:
    return {"wide": {f"c{i}": rng.integers(0, 4, 120).tolist() for i in range(200)}}


WIDE = Shape(
    ddl=f"CREATE TABLE wide ({', '.join(f'c{i} SMALLINT' for i in range(200))});",
    rows=_wide,
)


def _odd_names(rng: Rng) -> Mapping[str, Columns]:
    keys = _ids(100)
    return {
        EVIL: {"select": keys, "größe": rng.integers(0, 9, 100).tolist(), "a b": _pick(rng, ["it's", '"'], 100)},
        "../up/order": {EVIL: _pick(rng, keys, 200), "%2F": _pick(rng, [1, 2], 200), "table": _days(rng, 200)},
        "名前": {"group": _ids(150), "from": _pick(rng, keys, 150), "'": _pick(rng, ["é", "\\", "\n"], 150)},
    }


ODD_NAMES = Shape(
    ddl=f"""CREATE TABLE {_EVIL_SQL} ("select" INTEGER PRIMARY KEY, "größe" SMALLINT, "a b" VARCHAR);
CREATE TABLE "../up/order" ({_EVIL_SQL} INTEGER NOT NULL REFERENCES {_EVIL_SQL} ("select"), "%2F" SMALLINT,
  "table" DATE);
CREATE TABLE "名前" ("group" INTEGER PRIMARY KEY, "from" INTEGER REFERENCES {_EVIL_SQL} ("select"), "'" VARCHAR);
CREATE INDEX "drop" ON "../up/order" ("table");""",
    rows=_odd_names,
    choices={"unit": EVIL},
)

SHAPES = {
    "single": SINGLE,
    "parent_child": PARENT_CHILD,
    "three_levels": THREE_LEVELS,
    "diamond": DIAMOND,
    "cycle": CYCLE,
    "self_reference": SELF_REFERENCE,
    "tree": TREE,
    "partly_null": PARTLY_NULL,
    "junction": JUNCTION,
    "seasons": SEASONS,
    "extension": EXTENSION,
    "lookup": LOOKUP,
    "inbound": INBOUND,
    "odd_tables": ODD_TABLES,
    "wide": WIDE,
    "odd_names": ODD_NAMES,
}
