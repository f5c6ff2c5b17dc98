"""PostgreSQL as a sink: a database comes back as it was written, whole or not at all, and no password is shown."""

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal

import pyarrow as pa
import pytest

from privbench.errors import PrivBenchError, SpecError, TargetError
from privbench.io.base import Loaded
from privbench.io.ddl import parse_ddl
from privbench.io.sinks import open_server
from privbench.schema.tables import Column, Schema, Table
from privbench.schema.types import parse_type

from ..servers.postgres import ask, run
from .own_ddl import rows_of

psycopg = pytest.importorskip("psycopg")
HERE = "WHERE connamespace = 'public'::regnamespace"
END_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE pid <> pg_backend_pid() AND datname = current_database()"
)
Rows = Mapping[str, pa.Table]


def _load(url: str, schema: Schema, rows: Rows, *, replace: bool = False) -> Loaded:
    """Write a database, children before parents."""
    with open_server(url, schema=schema, replace=replace) as sink:
        for name in reversed(list(rows)):
            for batch in rows[name].to_batches():
                sink.write(name, batch)
        return sink.complete()


@contextmanager
def _other(url: str, *statements: str) -> Iterator[None]:
    with psycopg.connect(url, autocommit=True) as connection:
        for sql in statements:
            connection.execute(sql.encode())
        yield


def _tables(url: str) -> set[str]:
    kinds = "('r', 'p', 'v', 'm', 'S')"
    sql = f"SELECT oid::regclass::text FROM pg_class WHERE relkind IN {kinds} AND relnamespace = 'public'::regnamespace"
    return {name for (name,) in ask(url, sql)}


PARENT = parse_ddl("CREATE TABLE p (a BIGINT PRIMARY KEY, w VARCHAR(3)); CREATE INDEX by_w ON p (w)", where="test")
ONE = rows_of(PARENT, p={"a": [1, 2], "w": ["x", None]})


def test_every_value_comes_back(postgres: str, schema: Schema, rows: Rows) -> None:
    assert _load(postgres, schema, rows) == Loaded()
    for table in schema.tables:
        with psycopg.connect(postgres) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            columns = ", ".join(f'"{c.name}"' for c in table.columns)
            name = table.name.replace('"', '""')
            stored = connection.execute(f'SELECT {columns} FROM "{name}"'.encode()).fetchall()
        assert stored == [tuple(row.values()) for row in rows[table.name].to_pylist()]


def test_keys_and_indexes_are_in_place_and_cycles_too(postgres: str, schema: Schema, rows: Rows) -> None:
    _load(postgres, schema, rows)
    kinds = dict(ask(postgres, f"SELECT contype::text, count(*) FROM pg_constraint {HERE} GROUP BY 1"))
    assert kinds == {"p": 2, "u": 1, "f": 3}
    assert {"by_day", "by_mail"} <= {name for (name,) in ask(postgres, "SELECT indexname FROM pg_indexes")}
    analysed = ask(postgres, "SELECT count(*) FROM pg_stats WHERE tablename = 'kinds'")
    assert analysed == [(14,)]


ODD = {
    "UUID": ["00000000-0000-4000-8000-00000000002a", None],
    "JSON": ['{"a": [1, "ü"]}', None],
    "JSONB": ['{"a": 1}', None],
    "BLOB": ["\\x00ff", "\\x"],
    "INET": ["10.0.0.1", None],
    "BIT(3)": ["101", None],
    "VARBIT": ["10101", None],
    "INTEGER[]": ["{1,NULL,3}", None],
    "VARCHAR[]": ['{"a b",NULL,"\\"q\\""}', None],
    "INTERVAL": [90_061_000_001, -1],
    "MONEY": [Decimal("12.34"), Decimal("-0.01")],
    "TSVECTOR": ["'a' 'b'", None],
    "INT4RANGE": ["[1,5)", None],
    "MACADDR": ["08:00:2b:01:02:03", None],
    "DOUBLE": [float("inf"), float("-inf")],
    "REAL": [float("nan"), float("inf")],
    "VARCHAR": ["", 'it\'s \\N "quoted" \t\nümläut 😀'],
}


@pytest.mark.parametrize("name", ODD)
def test_types_of_postgresql_come_back_as_themselves(postgres: str, name: str) -> None:
    column = Column(name="v", type=parse_type(name))
    schema = Schema(tables=(Table(name="t", columns=(column,)),))
    _load(postgres, schema, rows_of(schema, t={"v": ODD[name]}))
    stored = [value for (value,) in ask(postgres, "SELECT v::text FROM t")]
    expected = {
        "INET": ["10.0.0.1/32", None],
        "INTERVAL": ["1 day 01:01:01.000001", "-00:00:00.000001"],
        "MONEY": ["$12.34", "-$0.01"],
        "DOUBLE": ["Infinity", "-Infinity"],
        "REAL": ["NaN", "Infinity"],
    }.get(name, ODD[name])
    assert stored == expected


# -- the target --------------------------------------------------------------------------------------------------------


def test_a_target_that_is_not_empty_is_refused_and_left_alone(postgres: str) -> None:
    run(postgres, "CREATE TABLE theirs (a int)", "INSERT INTO theirs VALUES (1)")
    with pytest.raises(TargetError, match=r"is not empty: it has theirs\..*--replace"):
        open_server(postgres, schema=PARENT, replace=False)
    assert _tables(postgres) == {"theirs"}


def test_replace_drops_what_it_makes_anew_and_nothing_else(postgres: str) -> None:
    run(postgres, "CREATE TABLE theirs (a int)", "CREATE TABLE p (other text)")
    loaded = _load(postgres, PARENT, ONE, replace=True)
    assert loaded.replaced == ('table "p"',)
    assert _tables(postgres) == {"theirs", "p"}
    assert ask(postgres, "SELECT * FROM p ORDER BY a") == [(1, "x"), (2, None)]
    assert _load(postgres, PARENT, ONE, replace=True).replaced == ('table "p"',)


def test_what_others_built_on_a_table_is_not_dropped(postgres: str) -> None:
    run(postgres, "CREATE TABLE p (a int)", "CREATE VIEW theirs AS SELECT * FROM p")
    with pytest.raises(TargetError, match="other objects depend on it: view theirs depends on table p"):
        open_server(postgres, schema=PARENT, replace=True)
    assert _tables(postgres) == {"p", "theirs"}


def test_rows_that_break_a_key_leave_nothing(postgres: str) -> None:
    with pytest.raises(TargetError, match=r"primary key p \(.*could not be made.*is duplicated"):
        _load(postgres, PARENT, rows_of(PARENT, p={"a": [1, 1], "w": ["x", "y"]}))
    assert _tables(postgres) == set()


def test_an_exception_or_ctrl_c_leaves_what_was_there(postgres: str) -> None:
    _load(postgres, PARENT, ONE)

    def load() -> None:
        with open_server(postgres, schema=PARENT, replace=True) as sink:
            sink.write("p", ONE["p"].to_batches()[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load()
    assert ask(postgres, "SELECT count(*) FROM p") == [(2,)]


def test_a_server_that_goes_in_the_middle_leaves_nothing(postgres: str) -> None:
    def load() -> None:
        with open_server(postgres, schema=PARENT, replace=False) as sink:
            sink.write("p", ONE["p"].to_batches()[0])
            ask(postgres, END_OTHERS)
            sink.write("p", ONE["p"].to_batches()[0])

    with pytest.raises(TargetError, match="the connection was lost"):
        load()
    assert _tables(postgres) == set()


def test_a_server_that_ends_the_session_before_the_commit_leaves_nothing(postgres: str) -> None:
    def load() -> None:
        with open_server(postgres, schema=PARENT, replace=False) as sink:
            sink.complete()
            ask(postgres, END_OTHERS)

    with pytest.raises(TargetError, match="the connection was lost"):
        load()
    assert _tables(postgres) == set()


def _as_user(postgres: str, *, password: str = "") -> str:
    """The URL of the same database as a user without rights beyond those of everybody."""
    run(postgres, "DROP ROLE IF EXISTS plain", "CREATE ROLE plain LOGIN")
    secret = f":{password}" if password else ""
    return postgres.replace("postgres@", f"plain{secret}@", 1)


def test_no_rights_is_said_and_no_password_shown(postgres: str) -> None:
    url = _as_user(postgres, password="hush%20hush")  # noqa: S106
    with (
        pytest.raises(TargetError, match="permission denied for schema public") as caught,
        open_server(url, schema=PARENT, replace=False),
    ):
        pass
    assert "hush" not in str(caught.value)
    assert "plain@" in str(caught.value)


def test_an_ordinary_user_with_a_schema_of_its_own_is_enough(postgres: str) -> None:
    url = _as_user(postgres)
    run(postgres, "CREATE SCHEMA plain AUTHORIZATION plain")
    try:
        assert _load(url, PARENT, ONE) == Loaded()
        assert ask(url, "SELECT count(*) FROM plain.p") == [(2,)]
    finally:
        run(postgres, "DROP OWNED BY plain", "DROP ROLE plain")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://ann:hush@/shop?host=%2Fnowhere", "No such file or directory"),
        ("postgresql://ann:hush@127.0.0.1:1/shop", "Connection refused"),
        ("postgresql://ann@127.0.0.1:1/shop?password=hush", "Connection refused"),
        ("postgresql://ann:hush%20hush hush@127.0.0.1:1/shop", "cannot be connected to"),
        ("postgresql://ann@127.0.0.1:1/shop?bad=1&password=hush", "cannot be connected to"),
    ],
)
def test_a_server_that_is_not_there_is_told_without_a_password(url: str, said: str) -> None:
    with pytest.raises(TargetError, match=said) as caught:
        open_server(url, schema=PARENT, replace=False)
    assert "hush" not in str(caught.value)


def test_a_user_who_is_not_there_is_told_without_a_password(postgres: str) -> None:
    url = postgres.replace("postgres@", "nobody:hush@", 1)
    with pytest.raises(TargetError, match='role "nobody" does not exist') as caught:
        open_server(url, schema=PARENT, replace=False)
    assert "hush" not in str(caught.value)


def test_a_full_disk_is_told_and_nothing_is_left(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from adbc_driver_manager import OperationalError, dbapi

    def full(*_: object, **__: object) -> int:
        message = 'IO: ERROR:  could not extend file "base/1/2": No space left on device\n'
        raise OperationalError(message, status_code=10, sqlstate="53100")

    monkeypatch.setattr(dbapi.Cursor, "adbc_ingest", full)
    with pytest.raises(TargetError, match=r"No space left on device\. Nothing was left behind"):
        _load(postgres, PARENT, ONE)
    assert _tables(postgres) == set()


def test_another_system_is_named(postgres: str) -> None:
    with pytest.raises(SpecError, match=r"oracle://.*postgresql"):
        open_server("oracle://ann:hush@host/shop", schema=PARENT, replace=False)


# -- names -------------------------------------------------------------------------------------------------------------


def test_names_have_the_case_that_postgresql_would_give_them(postgres: str) -> None:
    schema = parse_ddl(
        'CREATE TABLE Customer (CustomerId INT PRIMARY KEY, "Full" INT CHECK ("Full" > 0), "two Words" INT);'
        'CREATE TABLE "Order" (Id INT PRIMARY KEY, CustomerId INT REFERENCES Customer (customerid));'
        'CREATE INDEX ByCustomer ON "Order" (customerID)',
        where="schema.sql",
    )
    rows = rows_of(
        schema,
        Customer={"CustomerId": [1], "Full": [2], "two Words": [3]},
        Order={"Id": [4], "CustomerId": [1]},
    )
    _load(postgres, schema, rows)
    asked = 'SELECT c.CUSTOMERID, "Full", "two Words", o.Id FROM CUSTOMER c JOIN "Order" o USING (CustomerID)'
    assert ask(postgres, asked) == [(1, 2, 3, 4)]
    assert ("bycustomer",) in ask(postgres, "SELECT indexname FROM pg_indexes WHERE tablename = 'Order'")


def test_names_that_would_become_the_same_stay_as_they_are(postgres: str) -> None:
    column = Column(name="a", type=parse_type("BIGINT"))
    schema = Schema(tables=tuple(Table(name=n, columns=(column,)) for n in ("Cat", "cat", "Dog")))
    _load(postgres, schema, {})
    assert _tables(postgres) == {'"Cat"', "cat", "dog"}


def test_a_name_that_would_be_cut_off_is_refused(postgres: str) -> None:
    column = Column(name="ü" * 40, type=parse_type("BIGINT"))
    with pytest.raises(PrivBenchError, match="more than 63 bytes"):
        open_server(postgres, schema=Schema(tables=(Table(name="t", columns=(column,)),)), replace=False)


# -- the source's own DDL ----------------------------------------------------------------------------------------------


def test_the_ddl_of_the_source_is_used_as_it_stands(postgres: str, own: tuple[Schema, Rows]) -> None:
    loaded = _load(postgres, *own)
    assert ask(postgres, 'SELECT id, code, mood::text, twice, tags FROM app."Customer" ORDER BY id') == [
        (7, "a       ", "ok", Decimal("3.00"), ["a", "b"]),
        (9, "b       ", "ok", None, None),
    ]
    constraints = dict(
        ask(postgres, "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid <> 0")
    )
    assert constraints["to_customer"].endswith("ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED")
    assert constraints["by_code"] == "UNIQUE (code) INCLUDE (mood)"
    indexes = dict(ask(postgres, "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'app'"))
    assert set(indexes) == {"pk", "by_code", "orders_pkey", "by_customer", "big"}
    assert indexes["by_customer"].endswith("(customer DESC) INCLUDE (amount)")
    assert ask(
        postgres, "SELECT obj_description('app.orders'::regclass), reloptions FROM pg_class WHERE relname = 'orders'"
    )[0] == ("all of them", ["fillfactor=80"])
    assert ask(postgres, "SELECT count(*) FROM app.rich, pg_statistic_ext_data") == [(2,)]
    assert [str(each).partition(":")[0] for each in loaded.left_out] == [
        "index gone",
        "extension nowhere",
        "unique index mood_once",
        "check orders.low",
    ]


def test_sequences_go_on_after_the_largest_number(postgres: str, own: tuple[Schema, Rows]) -> None:
    _load(postgres, *own)
    new = "INSERT INTO app.\"Customer\" (code) VALUES ('c') RETURNING id"
    with psycopg.connect(postgres) as connection:
        assert connection.execute(new.encode()).fetchall() == [(10,)]
        assert connection.execute("SELECT nextval('app.s')").fetchall() == [(201,)]


def test_replace_makes_types_views_and_sequences_anew(postgres: str, own: tuple[Schema, Rows]) -> None:
    _load(postgres, *own)
    with pytest.raises(TargetError, match="is not empty"):
        _load(postgres, *own)
    again = _load(postgres, *own, replace=True)
    assert set(again.replaced) == {
        "view app.rich",
        'table app."Customer"',
        "table app.orders",
        "table public.event",
        "type app.mood",
        "sequence app.s",
    }
    assert ask(postgres, "SELECT count(*) FROM app.rich") == [(2,)]


def test_rows_outside_of_every_partition_are_kept_and_told(postgres: str, own: tuple[Schema, Rows]) -> None:
    schema, rows = own
    _load(postgres, schema, rows)
    assert "event_default" not in _tables(postgres)
    late = rows_of(schema, event={"id": [1, 2], "at": [dt.datetime(2020, 6, 1), dt.datetime(2021, 6, 1)]})
    loaded = _load(postgres, schema, {**rows, **late}, replace=True)
    assert ask(postgres, "SELECT count(*) FROM event_2020 UNION ALL SELECT count(*) FROM event_default") == [
        (1,),
        (1,),
    ]
    assert any("event_default" in str(each) for each in loaded.left_out)


def test_a_type_that_is_there_already_is_not_taken_for_ours(postgres: str, own: tuple[Schema, Rows]) -> None:
    run(postgres, "CREATE SCHEMA app", "CREATE TYPE app.mood AS ENUM ('other')")
    with pytest.raises(TargetError, match=r"type mood could not be made.*--replace"):
        _load(postgres, *own)
