"""Rows from the schema alone: they load, and they are the same wherever they are made."""

import duckdb
import pyarrow as pa
import pytest

from privbench.encode.made_up import make_up_tables
from privbench.errors import PrivBenchError, SchemaError, SpecError
from privbench.io.base import arrow_schema
from privbench.io.ddl import parse_ddl
from privbench.schema.domain import Range, Serial, Values
from privbench.schema.tables import Schema

TYPES = """
    CREATE TABLE t (
        id INTEGER PRIMARY KEY, a SMALLINT NOT NULL, b BIGINT, c DECIMAL(4,2), d DECIMAL(2,2), e DOUBLE, f REAL, g DATE,
        h TIMESTAMP, i TIMESTAMPTZ, j TIME, k BOOLEAN, l VARCHAR, m CHAR(1) NOT NULL, n VARCHAR(3), o BLOB, p UUID,
        q JSON, r INTERVAL, s INTEGER[], first_name VARCHAR(40), email VARCHAR(80), u ENUM('x', 'y') NOT NULL,
        v TINYINT, w HUGEINT, x INET, y BIT(3), z DATE NOT NULL, birth_date DATE NOT NULL
    )
"""
OFFICE = """
    CREATE TABLE store (
        store_id INTEGER PRIMARY KEY,
        manager_staff_id SMALLINT NOT NULL UNIQUE REFERENCES staff(staff_id)
    );
    CREATE TABLE staff (
        staff_id SMALLINT PRIMARY KEY, first_name VARCHAR(45) NOT NULL, email VARCHAR(50) UNIQUE, picture BLOB,
        store_id INTEGER NOT NULL REFERENCES store(store_id), reports_to SMALLINT REFERENCES staff(staff_id),
        salary INTEGER NOT NULL CHECK (salary BETWEEN 2000 AND 9000), bonus INTEGER NOT NULL CHECK (bonus >= 0),
        pay INTEGER GENERATED ALWAYS AS (salary + bonus),
        hired DATE NOT NULL, left_on DATE, CHECK (left_on > hired), CHECK (bonus < salary)
    );
    CREATE TABLE shift (
        store_id INTEGER REFERENCES store(store_id), staff_id SMALLINT REFERENCES staff(staff_id), weekday VARCHAR(9),
        PRIMARY KEY (store_id, staff_id)
    );
    CREATE TABLE swap (
        a_store INTEGER NOT NULL, a_staff SMALLINT NOT NULL, b_staff SMALLINT NOT NULL,
        FOREIGN KEY (a_store, a_staff) REFERENCES shift(store_id, staff_id),
        FOREIGN KEY (a_store, b_staff) REFERENCES shift(store_id, staff_id),
        FOREIGN KEY (a_store) REFERENCES store(store_id)
    );
"""


def schema(ddl: str) -> Schema:
    return parse_ddl(ddl, where="schema.sql")


def made(ddl: str, **rows: int) -> dict[str, pa.Table]:
    return make_up_tables(schema(ddl).tables, rows)


def test_every_type_gets_values() -> None:
    table = schema(TYPES).tables[0]
    rows = make_up_tables([table], {"t": 500})["t"]
    assert rows.schema == arrow_schema(table)
    assert rows["m"].null_count == 0
    assert {len(text) for text in rows["m"].to_pylist()} == {1}
    assert max(len(text) for text in rows["n"].to_pylist() if text is not None) <= 3
    assert sorted(rows["u"].unique().to_pylist()) == ["x", "y"]
    assert 0 < rows["l"].null_count < 250
    assert all("@example." in email for email in rows["email"].to_pylist() if email is not None)
    assert min(rows["birth_date"].to_pylist()).year < 2000 <= min(rows["z"].to_pylist()).year


def test_rows_load_by_their_own_schema() -> None:
    tables = made(OFFICE, store=7, staff=20, shift=100, swap=40)
    with duckdb.connect() as database:
        database.execute(
            OFFICE.replace("REFERENCES staff(staff_id)", "", 1).replace("REFERENCES store(store_id), rep", ", rep")
        )
        for name in ("store", "staff", "shift", "swap"):
            names = [c for c in tables[name].column_names if c != "pay"]
            order = "staff_id" if name == "staff" else names[0]
            for row in sorted(tables[name].select(names).to_pylist(), key=lambda row: row[order]):
                values = ", ".join("?" for _ in names)
                database.execute(f"INSERT INTO {name} ({', '.join(names)}) VALUES ({values})", list(row.values()))
        assert database.sql("SELECT count(*) FROM staff WHERE pay <> salary + bonus").fetchall() == [(0,)]
    managers = set(tables["store"]["manager_staff_id"].to_pylist())
    assert len(managers) == 7 <= len(set(tables["staff"]["staff_id"].to_pylist()) | managers) == 20
    assert set(tables["staff"]["store_id"].to_pylist()) <= set(tables["store"]["store_id"].to_pylist())
    assert tables["staff"]["pay"].to_pylist() == [
        a + b for a, b in zip(tables["staff"]["salary"].to_pylist(), tables["staff"]["bonus"].to_pylist(), strict=True)
    ]


def test_rows_are_a_function_of_the_schema() -> None:
    first, again = (made(OFFICE, store=3, staff=9, shift=5, swap=2) for _ in range(2))
    assert first == again


def test_declared_domains_and_known_targets() -> None:
    tables = schema(
        "CREATE TABLE p (code VARCHAR PRIMARY KEY);"
        "CREATE TABLE t (id INTEGER PRIMARY KEY CHECK (id BETWEEN 1001 AND 9999), age INTEGER, "
        "code VARCHAR NOT NULL REFERENCES p(code), c VARCHAR NOT NULL UNIQUE)"
    ).tables
    domains = {("t", "age"): Range(range=(30, 33)), ("t", "c"): Values(values=("u", "v", "w"))}
    rows = make_up_tables(tables[1:], {"t": 3}, domains=domains, known={"p": pa.table({"code": ["AT", "CH"]})})["t"]
    assert rows["id"].to_pylist() == [1001, 1002, 1003]
    assert set(rows["code"].to_pylist()) <= {"AT", "CH"}
    assert {*rows["age"].to_pylist()} <= {None, 30, 31, 32, 33}
    assert sorted(rows["c"].to_pylist()) == ["u", "v", "w"]


def test_keys_of_parts_of_others() -> None:
    ddl = """
        CREATE TABLE p (a INTEGER, b INTEGER, PRIMARY KEY (a, b));
        CREATE TABLE t (a INTEGER NOT NULL UNIQUE, b INTEGER NOT NULL, s BIGINT UNIQUE,
                        FOREIGN KEY (a, b) REFERENCES p (a, b));
    """
    tables = schema(ddl).tables
    known = {"p": pa.table({"a": pa.array([7], pa.int32()), "b": pa.array([8], pa.int32())})}
    rows = make_up_tables(tables[1:], {"t": 1}, domains={("t", "s"): Serial()}, known=known)["t"]
    assert rows.to_pylist() == [{"a": 7, "b": 8, "s": 1}]
    with pytest.raises(SchemaError, match="could not be made up"):
        make_up_tables(tables[1:], {"t": 5}, domains={("t", "s"): Serial()}, known=known)


@pytest.mark.parametrize(
    ("ddl", "rows", "says"),
    [
        ("CREATE TABLE t (c CHAR(1) PRIMARY KEY CHECK (c IN ('a', 'b')))", 3, "made_up: 2"),
        ("CREATE TABLE t (c CHAR(1) PRIMARY KEY)", 40, "made_up: 36"),
        (f"CREATE TABLE t ({', '.join(f'c{i} INTEGER' for i in range(50))})", 10**6, "Say 200,000 or less"),
        ("CREATE TABLE t (k BOOLEAN, l BOOLEAN, PRIMARY KEY (k, l))", 5, "made_up: 4"),
        ("CREATE TABLE t (a INTEGER NOT NULL, b INTEGER NOT NULL, CHECK (a * a = b * 1000003 + 7))", 9, "rules"),
    ],
)
def test_what_cannot_be_made_is_refused(ddl: str, rows: int, says: str) -> None:
    with pytest.raises(PrivBenchError, match=says) as error:
        made(ddl, t=rows)
    assert isinstance(error.value, SchemaError | SpecError)


def test_no_target_is_refused() -> None:
    tables = schema(
        "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE t (p INTEGER NOT NULL REFERENCES p(id))"
    ).tables
    with pytest.raises(SchemaError, match="p has no row"):
        make_up_tables(tables, {"p": 0, "t": 2})
