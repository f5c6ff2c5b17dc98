"""Orders with lines of public products, whose columns are computed from each other, and the queries that check them."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from privbench.fitting.draft import draft
from privbench.schema.computed import ComputedOrigin
from privbench.schema.expression import parse_expression
from privbench.schema.spec import Spec

DDL = """
CREATE TABLE product (id INTEGER PRIMARY KEY, price DECIMAL(9,3) NOT NULL, name VARCHAR NOT NULL);
CREATE TABLE client (id INTEGER PRIMARY KEY, label VARCHAR NOT NULL, rate DOUBLE, code VARCHAR(3), spent DECIMAL(15,2),
  orders SMALLINT NOT NULL, one SMALLINT NOT NULL);
CREATE TABLE purchase (id INTEGER PRIMARY KEY, client_id INTEGER NOT NULL REFERENCES client (id), made DATE NOT NULL,
  year INTEGER NOT NULL, quarter VARCHAR NOT NULL, total DECIMAL(15,2) NOT NULL, status VARCHAR, mean DOUBLE);
CREATE TABLE line (purchase_id INTEGER NOT NULL REFERENCES purchase (id), product_id INTEGER REFERENCES product (id),
  amount SMALLINT NOT NULL, discount DECIMAL(3,2) NOT NULL, price DECIMAL(12,2), paid DECIMAL(12,2) NOT NULL,
  weighed DOUBLE, year SMALLINT, state VARCHAR, safe INTEGER);
"""
ROWS: dict[tuple[str, str], str] = {
    ("client", "label"): "'Client#' || LPAD(CAST(id AS VARCHAR), 5, '0')",
    ("client", "code"): "UPPER(label)",
    ("client", "one"): "1",
    ("purchase", "year"): "EXTRACT(YEAR FROM made)",
    ("purchase", "quarter"): "CAST(year AS VARCHAR) || '-' || CAST(QUARTER(made) AS VARCHAR)",
    ("line", "price"): "amount * product.price",
    ("line", "paid"): "price * (1 - discount)",
    ("line", "weighed"): "client.rate * amount",
    ("line", "year"): "purchase.year",
    ("line", "state"): "CASE WHEN purchase.made <= DATE '2021-06-17' THEN 'F' ELSE 'O' END",
    ("line", "safe"): "amount // (amount % 3)",
}
"""Computed from the row, the rows above it and public rows."""
LATE: dict[tuple[str, str], str] = {
    ("purchase", "total"): "SUM(line.price * (1 - line.discount))",
    ("purchase", "status"): "CASE WHEN MIN(line.state) = MAX(line.state) THEN MIN(line.state) ELSE 'P' END",
    ("purchase", "mean"): "AVG(line.amount) + year",
    ("client", "orders"): "COUNT(purchase.*)",
    ("client", "spent"): "SUM(purchase.total) - COUNT(line.price)",
}
"""Computed from aggregates of the rows below."""
CHECKS: dict[tuple[str, str], str] = {
    ("client", "label"): "SELECT 1 FROM client WHERE label <> printf('Client#%05d', id)",
    ("client", "code"): "SELECT 1 FROM client WHERE code <> 'CLI'",
    ("client", "one"): "SELECT 1 FROM client WHERE one <> 1",
    ("purchase", "year"): "SELECT 1 FROM purchase WHERE year <> year(made)",
    ("purchase", "quarter"): "SELECT 1 FROM purchase WHERE quarter <> printf('%d-%d', year(made), quarter(made))",
    ("line", "price"): "SELECT 1 FROM line l LEFT JOIN product p ON p.id = product_id "
    "WHERE l.price IS DISTINCT FROM CAST(amount * p.price AS DECIMAL(12,2))",
    ("line", "paid"): "SELECT 1 FROM line WHERE paid <> COALESCE(CAST(price * (1 - discount) AS DECIMAL(12,2)), 0)",
    ("line", "weighed"): "SELECT 1 FROM line l JOIN purchase p ON p.id = purchase_id JOIN client c ON c.id = client_id "
    "WHERE weighed IS DISTINCT FROM rate * amount",
    ("line", "year"): "SELECT 1 FROM line l JOIN purchase p ON p.id = purchase_id WHERE l.year <> p.year",
    ("line", "state"): "SELECT 1 FROM line l JOIN purchase p ON p.id = purchase_id "
    "WHERE state <> CASE WHEN made <= DATE '2021-06-17' THEN 'F' ELSE 'O' END",
    ("line", "safe"): "SELECT 1 FROM line WHERE safe IS DISTINCT FROM CASE WHEN amount % 3 <> 0 "
    "THEN amount // (amount % 3) END",
    ("purchase", "total"): "SELECT 1 FROM purchase p WHERE total <> COALESCE(CAST((SELECT SUM(price * (1 - discount)) "
    "FROM line WHERE purchase_id = p.id) AS DECIMAL(15,2)), 0)",
    ("purchase", "status"): "SELECT 1 FROM purchase p LEFT JOIN (SELECT purchase_id, MIN(state) a, MAX(state) b "
    "FROM line GROUP BY ALL) ON purchase_id = id WHERE status IS DISTINCT FROM CASE WHEN a = b THEN a ELSE 'P' END",
    (
        "purchase",
        "mean",
    ): "SELECT 1 FROM purchase p LEFT JOIN (SELECT purchase_id, AVG(amount) a FROM line GROUP BY ALL)"
    " ON purchase_id = id WHERE mean IS DISTINCT FROM a + year",
    (
        "client",
        "orders",
    ): "SELECT 1 FROM client c WHERE orders <> (SELECT COUNT(*) FROM purchase WHERE client_id = c.id)",
    ("client", "spent"): "SELECT 1 FROM client c WHERE spent IS DISTINCT FROM (SELECT SUM(total) FROM purchase "
    "WHERE client_id = c.id) - (SELECT COUNT(price) FROM line l JOIN purchase p ON p.id = purchase_id "
    "WHERE client_id = c.id)",
}
"""Rows in which a column is not what it should be."""


def write_source(path: Path, clients: int = 300) -> Path:
    rng = np.random.default_rng(3)
    with duckdb.connect(str(path)) as base:
        base.execute(DDL)
        base.executemany("INSERT INTO product VALUES (?, ?, ?)", [(i, 1 + i * 1.237, f"p{i}") for i in range(20)])
        purchase = 0
        rows: dict[str, list[tuple[Any, ...]]] = {"client": [], "purchase": [], "line": []}
        for client in range(clients):
            rate = float(rng.choice([0.5, 0.25, 2.0])) if client % 9 else None
            rows["client"].append((client, "", rate, None, None, 0, 1))
            for _ in range(rng.integers(0, 4)):
                made = np.datetime64("2020-01-01") + rng.integers(0, 700)
                rows["purchase"].append((purchase, client, str(made), 0, "", 0, None, None))
                for _ in range(rng.integers(0, 4)):
                    product = int(rng.integers(0, 20)) if rng.random() < 0.9 else None
                    discount = float(rng.choice([0, 0.05, 0.1]))
                    amount = int(rng.integers(1, 30))
                    rows["line"].append((purchase, product, amount, discount, None, 0, None, None, None, None))
                purchase += 1
        for table, listed in rows.items():
            base.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(listed[0]))})", listed)
    return path


def computed_spec(source: Path, columns: dict[tuple[str, str], str]) -> Spec:
    spec = draft(source, unit="client", domains="data", public=["product"])
    expressions = {place: parse_expression(sql, where="test") for place, sql in columns.items()}
    computed = spec.with_computed(expressions, ComputedOrigin.DECLARED)
    others = {t: {c for s, c in {**ROWS, **LATE} if s == t and (t, c) not in columns} for t, _ in {**ROWS, **LATE}}
    tables = {
        name: table.model_copy(
            update={
                "columns": {
                    c: words.model_copy(update={"drop": words.drop or c in others.get(name, ())})
                    for c, words in table.columns.items()
                }
            }
        )
        for name, table in computed.tables.items()
    }
    return _as_declared(computed.model_copy(update={"tables": tables}), columns)


def _as_declared(spec: Spec, columns: dict[tuple[str, str], str]) -> Spec:
    """What is NOT NULL is so by the schema, not since the source has no NULL there; DuckDB drops lengths."""
    free = {("client", "code"), ("client", "spent"), ("purchase", "status"), ("purchase", "mean")}
    free |= {("line", c) for c in ("price", "weighed", "year", "state", "safe")}
    tables = dict(spec.tables)
    for table, column in free & set(columns):
        held = tables[table].columns
        words = held[column].model_copy(update={"null": True})
        if column == "code":
            words = words.model_copy(update={"type": "VARCHAR(3)"})
        tables[table] = tables[table].model_copy(update={"columns": {**held, column: words}})
    return spec.model_copy(update={"tables": tables})


def wrong_rows(bundle: Path, columns: dict[tuple[str, str], str]) -> dict[tuple[str, str], int]:
    """The columns that are not what they should be in some rows, and how many."""
    with duckdb.connect() as base:
        for file in sorted((bundle / "data").glob("*.parquet")):
            base.execute(f"CREATE VIEW {file.stem} AS SELECT * FROM '{file}'")
        counts = {place: len(base.sql(CHECKS[place]).fetchall()) for place in columns}
    return {place: count for place, count in counts.items() if count}
