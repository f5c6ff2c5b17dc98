"""A small shop of two tables, as DuckDB files: `make(name, script)` writes one."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

SCHEMA = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, city VARCHAR, age INTEGER);
CREATE TABLE sale (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer (id), amount DOUBLE, kind VARCHAR);
"""
ROWS = """
INSERT INTO customer SELECT i, ['Ulm', 'Bern', NULL][1 + i % 3], i % {ages} FROM range(60) t(i);
INSERT INTO sale SELECT i, CASE WHEN i % 11 = 0 THEN NULL ELSE (i * i) % 60 END, i / 2, ['a', 'b'][1 + i % 2]
  FROM range({sales}) t(i);
"""
REAL = SCHEMA + ROWS.format(ages=7, sales=200)
SYNTHETIC = SCHEMA + ROWS.format(ages=9, sales=230)

Make = Callable[[str, str], Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a DuckDB file from a script."""

    def write(name: str, script: str) -> Path:
        path = tmp_path / f"{name}.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(script)
        return path

    return write
