"""Formulas and rules that hold in the data are found; what only looks so by chance is not."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privbench.fitting.find_computed import find_computed
from privbench.fitting.find_rules import find_rules
from privbench.fitting.tables_in_sql import TablesInSql
from privbench.io.open import open_source
from privbench.schema.expression import parse_expression
from privbench.schema.tables import Schema
from privbench.schema.unit import Protection, protect

SCHEMA = """
CREATE TABLE "Price List" (id INTEGER PRIMARY KEY, price DECIMAL(8,2), "Price" DOUBLE);
CREATE TABLE buyer (id INTEGER PRIMARY KEY, city VARCHAR, vip BOOLEAN, born INTEGER, orders INTEGER);
CREATE TABLE "order" (id INTEGER PRIMARY KEY, buyer INTEGER NOT NULL REFERENCES buyer (id), town VARCHAR, late BOOLEAN,
  day DATE, paid DATE, year INTEGER, total DECIMAL(10,2), latest DATE);
CREATE TABLE line (id INTEGER PRIMARY KEY, "order" INTEGER NOT NULL REFERENCES "order" (id),
  item INTEGER NOT NULL REFERENCES "Price List" (id), pieces SMALLINT, broken SMALLINT,
  amount DECIMAL(10,2), sent DATE);
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shop in which towns copy cities, amounts are pieces times prices, and totals add up amounts."""
    rng, folder = np.random.default_rng(5), tmp_path_factory.mktemp("shop")
    items, buyers, orders, lines = 40, 400, 1500, 4000
    prices = rng.integers(100, 9999, items)
    buyer, order, item = (
        rng.integers(0, buyers, orders),
        np.sort(rng.integers(0, orders, lines)),
        rng.integers(0, items, lines),
    )
    cities = rng.choice(["Ulm", "Bonn", "Kiel", "Jena"], buyers)
    day = rng.integers(14_000, 18_000, orders)
    pieces = rng.integers(1, 20, lines)
    amount, sent = pieces * prices[item], day[order] + rng.integers(1, 90, lines)
    latest = np.full(orders, -1)
    np.maximum.at(latest, order, sent)
    tables = {
        "Price List": {"id": np.arange(items), "price": _decimal(prices, 8), "Price": rng.random(items)},
        "buyer": {
            "id": np.arange(buyers),
            "city": cities,
            "vip": rng.random(buyers) < 0.002,
            "born": rng.integers(1930, 2000, buyers),
            "orders": np.bincount(buyer, minlength=buyers),
        },
        "order": {
            "id": np.arange(orders),
            "buyer": buyer,
            "town": cities[buyer],
            "late": rng.random(orders) < 0.002,
            "day": pa.array(day.astype(np.int32), pa.date32()),
            "paid": pa.array((day + rng.integers(0, 600, orders)).astype(np.int32), pa.date32()),
            "year": (1970 + day / 365.25).astype(int),
            "total": _decimal(np.bincount(order, amount, orders).astype(int), 10),
            "latest": pa.array(latest.astype(np.int32), pa.date32(), mask=latest < 0),
        },
        "line": {
            "id": np.arange(lines),
            "order": order,
            "item": item,
            "pieces": pieces,
            "broken": (rng.random(lines) * (pieces + 1)).astype(int),
            "amount": _decimal(amount, 10),
            "sent": pa.array(sent.astype(np.int32), pa.date32()),
        },
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    (folder / "schema.sql").write_text(SCHEMA)
    return folder


def _decimal(cents: np.ndarray, digits: int) -> pa.Array:
    return pa.array([f"{c / 100:.2f}" for c in cents]).cast(pa.decimal128(digits, 2))


@contextmanager
def _opened(shop: Path) -> Iterator[tuple[TablesInSql, Protection]]:
    with open_source(shop) as source:
        protection = protect(source.schema(), entity="buyer", public=["Price List"])
        with TablesInSql(source, protection.schema) as tables:
            yield tables, protection


def test_formulas_are_found(shop: Path) -> None:
    with _opened(shop) as (tables, protection):
        found = {(f.table, f.column): (str(f.expression), f.disagreeing) for f in find_computed(tables, protection)}
    assert found == {
        ("buyer", "orders"): ('COUNT("order".*)', 0),
        ("order", "town"): ("buyer.city", 0),
        ("order", "total"): ("SUM(line.amount)", 0),
        ("order", "latest"): ("MAX(line.sent)", 0),
        ("line", "amount"): ('pieces * "Price List".price', 0),
    }


def test_rules_are_found(shop: Path) -> None:
    with _opened(shop) as (tables, protection):
        found = {(f.table, str(f.expression)) for f in find_rules(tables, protection)}
    assert ("line", "broken <= pieces") in found
    assert ("line", '"order".day < sent') in found
    assert ("order", "day <= paid") in found
    assert not any(table == "buyer" for table, _ in found), "orders < born holds for all, whatever the row"


def test_what_the_schema_states_is_not_found_again(shop: Path) -> None:
    stated = {"order": ["paid >= day"], "line": ["pieces > 0 AND (broken <= pieces)", 'sent >= "order".day']}
    with _opened(shop) as (tables, protection):
        with_checks = tuple(
            replace(t, checks=tuple(parse_expression(sql, where="rules") for sql in stated.get(t.name, ())))
            for t in protection.schema.tables
        )
        ruled = replace(protection, schema=Schema(tables=with_checks))
        found = {(f.table, str(f.expression)) for f in find_rules(tables, ruled)}
    assert ("line", "broken <= pieces") not in found
    assert ("order", "day <= paid") not in found
    assert ("line", '"order".day < sent') in found, "it is stronger than what is stated"
