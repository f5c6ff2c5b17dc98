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
from privbench.fitting.tables_in_sql import SAMPLE_ROWS, Sampler, TablesInSql
from privbench.io.base import Source, arrow_schema
from privbench.io.open import open_source
from privbench.schema.expression import parse_expression
from privbench.schema.tables import Schema, Table
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


def _samples(source: Source, protection: Protection) -> dict[str, pa.Table]:
    samples = {}
    for table in map(protection.schema.table, protection.order):
        sampler = Sampler()
        for batch in source.read(table):
            sampler.add(batch)
        samples[table.name] = sampler.rows(arrow_schema(table))
    return samples


@contextmanager
def _opened(shop: Path) -> Iterator[tuple[TablesInSql, Protection]]:
    with open_source(shop) as source:
        protection = protect(source.schema(), entity="buyer", public=["Price List"])
        with TablesInSql(source, protection.schema, _samples(source, protection)) as tables:
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


def test_a_sample_is_even_and_the_same_each_time() -> None:
    def sampled(batch_rows: int) -> list[int]:
        sampler = Sampler()
        for start in range(0, 20_000, batch_rows):
            sampler.add(pa.record_batch({"a": np.arange(start, start + batch_rows)}))
        return sampler.rows(pa.schema({"a": pa.int64()})).column("a").to_pylist()

    rows = sampled(5_000)
    assert rows == sampled(5_000) == sampled(500)
    assert len(set(rows)) == SAMPLE_ROWS
    quarters = np.bincount(np.array(rows) // 5_000)
    assert abs(quarters - SAMPLE_ROWS / 4).max() < 60  # four standard deviations are 55
    assert rows != sorted(rows)


def test_small_tables_are_their_own_sample() -> None:
    sampler = Sampler()
    sampler.add(pa.record_batch({"a": [3, 1, 2]}))
    assert sorted(sampler.rows(pa.schema({"a": pa.int64()})).column("a").to_pylist()) == [1, 2, 3]
    assert Sampler().rows(pa.schema({"a": pa.int64()})).num_rows == 0


def test_questions_read_only_what_they_name(shop: Path) -> None:
    """Of all rows, the columns in the question; of a sample, only the rows that it is joined to are kept."""
    with _opened(shop) as (tables, protection):
        read: list[tuple[str, int]] = []
        source = tables._source
        plain = source.read

        def watched(table: Table) -> Iterator[pa.RecordBatch]:
            read.append((table.name, len(table.columns)))
            return plain(table)

        source.read = watched  # type: ignore[method-assign]
        name = protection.order[-1]
        column = tables.seen(protection.schema.table(name), protection.schema.table(name).columns[0], "r", own=True)
        tables.ask([f"COUNT({column.sql})"], name)
        assert read == [(name, 1)]
