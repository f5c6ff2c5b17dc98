"""Rules over dates and times mean in SQLite, in MariaDB and in DuckDB, which works them out, the same."""

import itertools
import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime, time
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import pyarrow as pa
import pytest

from privbench.errors import TargetError
from privbench.io.base import Format
from privbench.io.ddl import parse_ddl
from privbench.io.mysql.ddl import write_script
from privbench.io.render import Dialect, check_text
from privbench.io.sinks import open_sink
from privbench.io.sqlite_file import from_arrow
from privbench.schema.expression import parse_expression
from privbench.schema.tables import Schema, Table

from ..servers.mariadb import MariaDBServer

RULES = [
    "z BETWEEN CAST('2020-01-01 00:00:00+00' AS TIMESTAMPTZ) AND CAST('2020-01-01 14:00:00.5+02' AS TIMESTAMPTZ)",
    "z <= CAST('2020-01-01 12:00:00.5+00' AS TIMESTAMPTZ)",
    "z <> '2020-01-01T12:00:00.500Z'",
    "z IN ('2020-01-01 12:00:00.5+00', '2020-01-02')",
    "NOT z > DATE '2020-01-01'",
    "s < CAST('2020-01-01 12:00:00.5' AS TIMESTAMP)",
    "s = '2020-01-01'",
    "d <= '2020-01-01'",
    "d IN (CAST('2020-01-01' AS DATE), '2020-01-03')",
    "d = CAST('2020-01-01 00:00:00' AS TIMESTAMP)",
    "NOT t BETWEEN '09:30' AND CAST('12:00:00' AS TIME)",
    "t < '12:00'",
    "s > d",
    "d = s",
    "z = s OR (d) > (z)",
    "d IS DISTINCT FROM s",
    "(z IS NULL) = (s IS NULL)",
    "CASE WHEN d > '2020-01-01' THEN n > 2020 ELSE n = 2020 END",
]
NOT_IN_SQLITE = [
    "extract(year FROM d) >= 2020",
    "z - s < INTERVAL 3 DAY",
    "coalesce(s, d) > '2019-01-01'",
    "CAST(s AS DATE) = d",
    "i >= INTERVAL 0 DAY",
    "s < 'infinity'",
]
TYPES = {"z": "TIMESTAMPTZ", "s": "TIMESTAMP", "d": "DATE", "t": "TIME", "n": "INTEGER", "i": "INTERVAL"}
MOMENTS = [None, datetime(2020, 1, 1), datetime(2020, 1, 1, 12, 0, 0, 500_000), datetime(2020, 1, 2)]
ROWS = [
    (z and z.replace(tzinfo=UTC), s, d, t, 2020, None)
    for (z, s), (d, t) in itertools.product(
        itertools.product(MOMENTS, MOMENTS),
        [(None, None), (date(2020, 1, 1), time(9, 30)), (date(2020, 1, 2), time(12, 0, 0, 500_000))],
    )
]


def _table(*rules: str) -> Table:
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    table = parse_ddl(f"CREATE TABLE x ({columns})", where="test").tables[0]
    return Table(name="x", columns=table.columns, checks=tuple(parse_expression(r, where="test") for r in rules))


def _rows(table: Table) -> pa.Table:
    values = zip(*ROWS, strict=True)
    return pa.table({c.name: pa.array(v, c.type.arrow) for c, v in zip(table.columns, values, strict=True)})


def _by_duckdb(table: Table) -> dict[str, list[bool | None]]:
    """The value of each rule for each row."""
    rows = _rows(table)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("rows", rows)
        texts = ", ".join(f"({check.sql})" for check in table.checks)
        columns = zip(*connection.execute(f"SELECT {texts} FROM rows").fetchall(), strict=True)
    return {check.sql: list(values) for check, values in zip(table.checks, columns, strict=True)}


def test_rules_over_times_mean_the_same_in_sqlite() -> None:
    table = _table(*RULES)
    wanted = _by_duckdb(table)
    texts = {check.sql: check_text(check, table, Dialect.SQLITE) for check in table.checks}
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE x ({', '.join(f'{name} {kind}' for name, kind in TYPES.items())})")
        stored = [
            from_arrow(c.combine_chunks(), of.type) for c, of in zip(_rows(table).columns, table.columns, strict=True)
        ]
        connection.executemany("INSERT INTO x VALUES (?, ?, ?, ?, ?, ?)", zip(*stored, strict=True))
        for rule, text in texts.items():
            values = [v if v is None else bool(v) for (v,) in connection.execute(f"SELECT {text} FROM x").fetchall()]
            assert values == wanted[rule], rule
            assert {True, False} <= set(values), f"the rows do not try {rule}"


@pytest.mark.parametrize("rule", NOT_IN_SQLITE)
def test_a_rule_that_does_more_than_compare_times_is_no_check_in_sqlite(rule: str) -> None:
    table = _table(rule)
    assert check_text(table.checks[0], table, Dialect.SQLITE) is None
    assert check_text(table.checks[0], table, Dialect.DUCKDB) is not None


def test_rules_over_times_mean_the_same_in_mariadb(mariadb: str, mariadb_server: MariaDBServer) -> None:
    table = _table(*RULES)
    wanted = _by_duckdb(table)
    script = write_script(Schema(tables=(table,)))
    assert not script.left_out
    database = urlsplit(mariadb).path[1:]
    with mariadb_server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute(script.tables[0].create)
        rows = [tuple(v.replace(tzinfo=None) if isinstance(v, datetime) else v for v in row) for row in ROWS]
        cursor.executemany("INSERT INTO x VALUES (%s, %s, %s, %s, %s, %s)", rows)
        for check, statement in zip(table.checks, script.after, strict=True):
            cursor.execute(f"SELECT {statement.sql.partition('ADD CHECK')[2]} FROM x")
            values = [v if v is None else bool(v) for (v,) in cursor.fetchall()]
            assert values == wanted[check.sql], check.sql
        cursor.execute("DELETE FROM x")
        for statement in script.after:  # as a CHECK too: the server reads literals there strictly
            cursor.execute(statement.sql)


def test_rows_that_sqlite_does_not_take_are_told_with_table_rule_and_remedy(tmp_path: Path) -> None:
    table = _table("d > '2020-01-01'")
    with (
        pytest.raises(TargetError) as refused,
        open_sink(tmp_path, schema=Schema(tables=(table,)), format=Format.SQLITE) as sink,
    ):
        sink.write("x", _rows(table).to_batches()[0])
    told = str(refused.value)
    for part in ("the rows of x (", "\"d\" > '2020-01-01'", "out of tables.x in the spec"):
        assert part in told
