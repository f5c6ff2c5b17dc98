"""Random specs with two kinds of relations in one database, and what must then be true of every synthetic row."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from privbench.rules.computed import ComputedQuery, is_compared
from privbench.schema.computed import computed_order, equal_columns
from privbench.schema.expression import DIALECT
from privbench.schema.spec import Spec
from privbench.schema.unit import Protection

Rng = np.random.Generator
Words = dict[str, Any]
NUMBER: Words = {"type": "INTEGER", "null": False, "domain": {"range": [0, 20]}}
DAY: Words = {"type": "DATE", "domain": {"range": ["2020-01-01", "2020-12-31"]}}
KEY: Words = {"type": "INTEGER"}
OWN_KEY: Words = {"type": "INTEGER", "null": False}
LANDS = {"x": "north", "y": "north", "z": "south"}


def _key(column: str, table: str, **more: Any) -> Words:
    return {"columns": [column], "table": table, "references": ["id"], **more}


def base() -> Words:
    """Persons with visits to public places, and what they bought there, without any relation."""
    town = {"type": "VARCHAR", "null": False, "domain": {"values": list(LANDS)}}
    land = {"type": "VARCHAR", "null": False, "domain": {"values": ["north", "south"]}}
    tables: Words = {
        "place": {
            "key": ["id"],
            "public": True,
            "columns": {"id": OWN_KEY, "rate": {"type": "INTEGER", "null": False}},
        },
        "home": {"key": ["id"], "public": True, "columns": {"id": OWN_KEY, "zip": NUMBER}},
        "person": {
            "key": ["id"],
            "foreign_keys": [_key("home", "home"), _key("boss", "person")],
            "columns": {"id": OWN_KEY, "home": OWN_KEY, "boss": KEY, "a": NUMBER, "b": NUMBER, "n": NUMBER, "born": DAY}
            | {"town": town, "land": land},
        },
        "visit": {
            "key": ["id"],
            "owner": ["person"],
            "foreign_keys": [_key("person", "person"), _key("place", "place"), _key("prev", "visit")],
            "columns": {"id": OWN_KEY, "person": KEY, "place": KEY, "prev": KEY, "low": NUMBER, "high": NUMBER}
            | {"k": {**NUMBER, "null": True}, "day": DAY, "gone": DAY},
        },
        "item": {
            "owner": ["visit"],
            "foreign_keys": [_key("visit", "visit"), _key("buyer", "person")],
            "columns": {"visit": OWN_KEY, "buyer": KEY, "cost": NUMBER, "part": NUMBER, "m": NUMBER, "sold": DAY},
        },
    }
    return {"unit": "person", "tables": tables, "method": {"name": "tree", "find": False}}


def rows(rng: Rng, *, orphans: bool) -> dict[str, pa.Table]:
    """Rows of all tables; relations need not hold in them."""
    people, visits, items = 40, 90, 130

    def numbers(count: int) -> Any:
        return rng.integers(0, 21, count)

    def days(count: int) -> Any:
        return np.datetime64("2020-01-01") + rng.integers(0, 366, count)

    def keys(targets: int, count: int, *, null: float = 0.2) -> pa.Array:
        return pa.array(rng.integers(1, targets + 1, count), mask=rng.random(count) < null)

    town = rng.choice(list(LANDS), people)
    visitor = rng.integers(1, people + (9 if orphans else 1), visits)
    bought = rng.integers(0, visits, items)
    season = [(p, 2000 + y) for p in range(1, people + 1) for y in range(int(rng.integers(1, 5)))]
    made = {
        "place": {"id": np.arange(1, 13), "rate": rng.integers(1, 10, 12)},
        "home": {"id": np.arange(1, people + 1), "zip": numbers(people)},
        "person": {"id": np.arange(1, people + 1), "home": rng.permutation(people) + 1, "boss": keys(people, people)}
        | {"a": numbers(people), "b": numbers(people), "n": numbers(people), "born": days(people), "town": town}
        | {"land": [LANDS[t] for t in town]},
        "visit": {"id": np.arange(1, visits + 1), "person": visitor, "place": keys(12, visits)}
        | {"prev": keys(visits, visits, null=0.5), "low": numbers(visits), "high": numbers(visits)}
        | {"k": numbers(visits), "day": days(visits), "gone": days(visits)},
        "item": {"visit": bought + 1, "buyer": visitor[bought], "cost": numbers(items), "part": numbers(items)}
        | {"m": numbers(items), "sold": days(items)},
    }
    for name in ("bat", "pitch"):
        held = [s for s in season if rng.random() < 0.8]
        made[name] = {"player": [s[0] for s in held], "year": [s[1] for s in held], "team": [s[0] % 5 for s in held]}
    return {name: pa.table(dict(columns)) for name, columns in made.items()}


# -- kinds -------------------------------------------------------------------------------------------------------------

ABOVE = {"person": [], "visit": ["person"], "item": ["visit", "person"]}
NUMBERS = {
    "person": ["a", "b", "n", "id", "boss"],
    "visit": ["low", "high", "k", "id", "prev", "person", "place"],
    "item": ["cost", "part", "m", "visit"],
}
DATES = {"person": ["born"], "visit": ["day", "gone"], "item": ["sold"]}
TARGETS = [("person", "n"), ("visit", "k"), ("item", "m")]


def _names(table: str, pool: Mapping[str, list[str]]) -> list[str]:
    return [*pool[table], *(f"{above}.{c}" for above in ABOVE[table] for c in pool[above])]


def _computed(rng: Rng, spec: Words, choices: Mapping[tuple[str, str], list[str]]) -> None:
    """Give one of some columns, that is nothing yet, one of some expressions."""
    free = [p for p in choices if "domain" in spec["tables"][p[0]]["columns"][p[1]]]
    free = [p for p in free if "relative_to" not in spec["tables"][p[0]]["columns"][p[1]]]
    if not free:
        return
    table, column = free[rng.integers(len(free))]
    words = spec["tables"][table]["columns"][column]
    expression = str(rng.choice(choices[table, column]))
    spec["tables"][table]["columns"][column] = {
        "type": words["type"],
        "null": bool(rng.integers(2)),
        "computed": expression,
    }


def rule(rng: Rng, spec: Words) -> None:
    table = str(rng.choice(list(ABOVE)))
    pool = NUMBERS if rng.random() < 0.7 else DATES
    left, right = (str(rng.choice(_names(table, pool))) for _ in range(2))
    operator = str(rng.choice(["<=", "<", "<>", ">="]))
    check = f"{left} {operator} {right}" if left != right else f"{left} IS NOT NULL"
    if pool is NUMBERS and rng.random() < 0.3:
        check = f"{left} {rng.choice(['>=', '<>', '>'])} {rng.choice([0, 3])}"
    spec["tables"][table].setdefault("rules", []).append({"check": check, "from": "data"})


def formula(rng: Rng, spec: Words) -> None:
    _computed(
        rng,
        spec,
        {
            ("person", "n"): ["a + b", "id * 2", "COALESCE(boss, 0) + id", "a * home.zip", "EXTRACT(MONTH FROM born)"],
            ("visit", "k"): ["low + person.a", "place.rate * high", "id - COALESCE(prev, 0)", "person.n + 1", "person"],
            ("item", "m"): ["cost * part", "visit.k + cost", "person.n - part", "visit.id * 2", "buyer"],
        },
    )


def aggregate(rng: Rng, spec: Words) -> None:
    below = [
        "SUM(visit.low)",
        "MAX(item.cost)",
        "COUNT(visit.prev)",
        "SUM(visit.k) + a",
        "MIN(item.m)",
        "AVG(visit.id)",
    ]
    own = ["SUM(item.cost)", "SUM(item.m) + low", "COUNT(item.buyer)", "MAX(item.part * item.cost)"]
    _computed(rng, spec, {("person", "n"): below, ("visit", "k"): own})


def row_count(rng: Rng, spec: Words) -> None:
    _computed(rng, spec, {("person", "n"): ["COUNT(visit.*)"], ("visit", "k"): ["COUNT(item.*)"]})


def copy(rng: Rng, spec: Words) -> None:
    copies = {
        ("visit", "k"): ["person.a", "person.n", "person.id"],
        ("item", "m"): ["visit.low", "visit.k", "visit.id"],
    }
    _computed(rng, spec, copies)


def rank(rng: Rng, spec: Words) -> None:
    _computed(rng, spec, {place: ["ROW_NUMBER()", "ROW_NUMBER() - 1"] for place in TARGETS[1:]})


def map_(_rng: Rng, spec: Words) -> None:
    words = {"type": "VARCHAR", "null": False, "determined_by": "town", "map": [list(p) for p in LANDS.items()]}
    spec["tables"]["person"]["columns"]["land"] = words


def difference(rng: Rng, spec: Words) -> None:
    chosen = [("visit", "gone", "day"), ("visit", "day", "person.born"), ("item", "sold", "visit.day")]
    chosen += [("visit", "high", "low"), ("person", "b", "a")]
    table, column, other = chosen[rng.integers(len(chosen))]
    words = dict(spec["tables"][table]["columns"][column])
    if "domain" in words and "relative_to" not in words:
        words |= {"relative_to": other, "domain": {"range": [0, 9]}}
        spec["tables"][table]["columns"][column] = words


def previous(_rng: Rng, spec: Words) -> None:
    words = spec["tables"]["visit"]["columns"]["day"]
    if "relative_to" not in words:
        first = words["domain"]
        words = {**words, "null": False, "relative_to": "previous", "first": first, "domain": {"range": [0, 30]}}
        spec["tables"]["visit"]["columns"]["day"] = words


def inside(rng: Rng, spec: Words) -> None:
    table, at = [("item", 1), ("visit", 2)][rng.integers(2)]
    spec["tables"][table]["foreign_keys"][at]["inside"] = True


def list_(_rng: Rng, spec: Words) -> None:
    year = {"type": "INTEGER", "null": False, "domain": {"range": [2000, 2010]}}
    columns = {"player": OWN_KEY, "year": year, "team": NUMBER}
    key = ["player", "year"]
    to_person = {"columns": ["player"], "table": "person", "references": ["id"]}
    spec["tables"]["season"] = {
        "list_of": ["bat", "pitch"],
        "key": key,
        "owner": ["player"],
        "foreign_keys": [to_person],
        "columns": columns,
    }
    for name in ("bat", "pitch"):
        spec["tables"][name] = {
            "key": key,
            "owner": key,
            "foreign_keys": [{**to_person, "inside": True}, {"columns": key, "table": "season", "references": key}],
            "columns": {"player": OWN_KEY, "year": OWN_KEY, "team": {"type": "INTEGER", "computed": "season.team"}},
        }


def numbered_by(rng: Rng, spec: Words) -> None:
    table = str(rng.choice(["person", "visit"]))
    spec["tables"][table]["numbered_by"] = str(rng.choice({"person": ["a", "born", "n"], "visit": ["day", "k"]}[table]))


def order(rng: Rng, spec: Words) -> None:
    table = str(rng.choice(["person", "visit", "item"]))
    columns = {"person": ["n", "id"], "visit": ["k", "day"], "item": ["m", "cost"]}[table]
    spec["tables"][table]["order"] = columns


def clustered_by(rng: Rng, spec: Words) -> None:
    spec["tables"]["person"]["clustered_by"] = [str(rng.choice(["a", "n", "land", "born"]))]


def pairs(rng: Rng, spec: Words) -> None:
    spec["tables"]["visit"]["pairs"] = [
        [str(rng.choice(["low", "high", "day"])), str(rng.choice(["place", "person.a"]))]
    ]


def lookup(_rng: Rng, spec: Words) -> None:
    spec["tables"]["home"] = {**spec["tables"]["home"], "public": False, "owned_by": "person"}


def orphans(_rng: Rng, spec: Words) -> None:
    spec["orphans"] = "null"


KINDS: tuple[Callable[[Rng, Words], None], ...] = (
    rule, formula, aggregate, row_count, copy, rank, map_, difference, previous, inside, list_, numbered_by, order,
    clustered_by, pairs, lookup, orphans,
)  # fmt: skip


# -- what must be true -------------------------------------------------------------------------------------------------


def broken_conditions(spec: Spec, protection: Protection, tables: Mapping[str, pa.Table]) -> Iterator[str]:
    """What is not true of the rows of a bundle, in its words, and of how many."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            numbered = table.append_column("row_", pa.array(np.arange(len(table))))
            connection.register(name, numbered)

        def count(sql: str) -> int:
            [(found,)] = connection.sql(sql).fetchall()
            return int(found or 0)

        asked = [*_rules(protection), *_ranks(protection), *_differences(spec), *_places(spec), *_inside(spec)]
        for what, sql in asked:
            if found := count(sql):
                yield f"{what}: {found}"
    for place in computed_order(protection):
        hidden = {t.name for t in protection.schema.tables if t.list_of}
        query = ComputedQuery(protection, place)
        asks = is_compared(protection, place) and not hidden & query.columns.keys()
        if asks and (found := query.run(_with_owners(protection, place, tables))):
            yield f"{'.'.join(place)} computed: {found}"


def _with_owners(protection: Protection, place: tuple[str, str], tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """The tables, without rows that lack the owner whose value they copy: a NOT NULL copy is then any owner's."""
    equals = equal_columns(protection, place[0]).get(place[1])
    if equals is None or equals.owner is None:
        return dict(tables)
    owned = tables[place[0]]
    return {**tables, place[0]: owned.filter(owned.column(protection.owners[place[0]].columns[0]).is_valid())}


def _rules(protection: Protection) -> Iterator[tuple[str, str]]:
    for table in protection.schema.tables:
        for check in table.checks:
            joined = f"{table.name}"
            for below in (
                protection.up_to(table.name, list(protection.above(table.name))[-1])
                if check.columns and any(name.table for name in check.columns)
                else ()
            ):
                key = protection.owners[below]
                joined += f" LEFT JOIN {key.table} ON {below}.{key.columns[0]} = {key.table}.{key.references[0]}"
            tree = check.tree.copy()
            for node in tree.find_all(_column()):
                if not node.table:
                    node.set("table", table.name)
            yield f"{table.name}: {check}", f"SELECT count(*) FROM {joined} WHERE NOT ({tree.sql(DIALECT)})"


def _column() -> Any:
    from privbench.deferred import exp

    return exp.Column


def _ranks(protection: Protection) -> Iterator[tuple[str, str]]:
    for table in protection.order:
        for column, equals in equal_columns(protection, table).items():
            if equals.rank is not None:
                owner = protection.owners[table].columns[0]
                runs = f"SELECT count(*) AS c, count(DISTINCT {column}) AS d, max({column}) AS m FROM {table}"
                runs += f" WHERE {owner} IS NOT NULL GROUP BY {owner}"
                yield (
                    f"{table}.{column} ranks",
                    f"SELECT count(*) FROM ({runs}) WHERE d <> c OR m <> c - 1 + {equals.rank}",
                )


def _differences(spec: Spec) -> Iterator[tuple[str, str]]:
    for table, words in spec.tables.items():
        for column, of in words.columns.items():
            if of.relative_to not in (None, "previous") and "." not in of.relative_to:
                far = f"{column} - {of.relative_to} NOT BETWEEN 0 AND 9"
                yield f"{table}.{column} near", f"SELECT count(*) FROM {table} WHERE {far}"


def _places(spec: Spec) -> Iterator[tuple[str, str]]:
    for table, words in spec.tables.items():
        for by, columns in (("id", [words.numbered_by] if words.numbered_by else []), ("row_", words.order or ())):
            if columns:
                sort = ", ".join(f"{c} NULLS LAST" for c in columns)
                ranked = f"SELECT rank() OVER (ORDER BY {sort}) AS r, {by} AS i FROM {table}"
                lagged = f"SELECT r, lag(r) OVER (ORDER BY i) AS before FROM ({ranked})"
                yield f"{table} by {', '.join(columns)}", f"SELECT count(*) FROM ({lagged}) WHERE r < before"


def _inside(spec: Spec) -> Iterator[tuple[str, str]]:
    if any(key.inside for key in spec.tables["item"].foreign_keys):
        yield "item.buyer", "SELECT count(*) FROM item JOIN visit ON visit = visit.id WHERE buyer <> visit.person"
    if any(key.inside for key in spec.tables["visit"].foreign_keys):
        yield "visit.prev", "SELECT count(*) FROM visit a JOIN visit b ON a.prev = b.id WHERE a.person <> b.person"
