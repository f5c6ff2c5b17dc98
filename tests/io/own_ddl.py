"""A made database of PostgreSQL with its own DDL: what a catalogue has that our schema does not know."""

import dataclasses as dc
import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from privbench.io.base import arrow_schema
from privbench.io.ddl import parse_ddl
from privbench.schema.original import OriginalDdl, Phase, SourceDialect, Statement, TableDefinition
from privbench.schema.tables import Schema


def rows_of(schema: Schema, **columns: dict[str, list[Any]]) -> Mapping[str, pa.Table]:
    """Rows of some tables, by their columns."""
    return {name: pa.table(values, schema=arrow_schema(schema.table(name))) for name, values in columns.items()}


OWN = parse_ddl(
    """CREATE TABLE customer (id INT PRIMARY KEY, code CHAR(8) NOT NULL UNIQUE, mood VARCHAR NOT NULL,
      credit DECIMAL(12, 2), twice DECIMAL(12, 2), tags VARCHAR[], dropped INT);
    CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INT NOT NULL REFERENCES customer,
      amount DECIMAL(10, 2) NOT NULL);
    CREATE TABLE event (id BIGINT NOT NULL, at TIMESTAMP NOT NULL);
    CREATE INDEX by_customer ON orders (customer)""",
    where="schema.sql",
)


def _said(kind: str, name: str, sql: str, *, after: bool = True, **words: Any) -> Statement:
    return Statement(kind=kind, name=name, sql=sql, phase=Phase.AFTER if after else Phase.BEFORE, **words)


ORIGINAL = OriginalDdl(
    dialect=SourceDialect.POSTGRES,
    tables={
        "customer": TableDefinition(
            name='app."Customer"',
            columns={
                "id": "integer GENERATED ALWAYS AS IDENTITY",
                "code": 'character(8) COLLATE "C"',
                "mood": "app.mood DEFAULT 'ok'::app.mood",
                "credit": "numeric(12,2) DEFAULT 0",
                "twice": "numeric(12,2) GENERATED ALWAYS AS (credit * 2) STORED",
                "tags": "text[]",
                "dropped": "integer",
            },
            generated=("twice",),
            sequences={"id": 'app."Customer_id_seq"'},
        ),
        "orders": TableDefinition(
            name="app.orders",
            columns={
                "id": "bigint DEFAULT nextval('app.s'::regclass)",
                "customer": "integer",
                "amount": "numeric(10,2)",
            },
            after="WITH (fillfactor='80')",
            sequences={"id": "app.s"},
        ),
        "event": TableDefinition(
            name="public.event",
            columns={"id": "bigint", "at": "timestamp without time zone"},
            after="PARTITION BY RANGE (at)",
        ),
    },
    statements=(
        _said("schema", "app", "CREATE SCHEMA app", after=False),
        _said("schema", "public", "CREATE SCHEMA public", after=False),
        _said("extension", "nowhere", "CREATE EXTENSION nowhere", after=False),
        _said("type", "mood", "CREATE TYPE app.mood AS ENUM ('sad', 'ok')", after=False),
        _said("sequence", "s", "CREATE SEQUENCE app.s START 100", after=False),
        _said(
            "partition",
            "event_2020",
            "CREATE TABLE public.event_2020 PARTITION OF public.event FOR VALUES FROM ('2020-01-01') TO ('2021-01-01')",
            after=False,
            tables=("event",),
        ),
        _said(
            "primary key",
            "customer.pk",
            'ALTER TABLE app."Customer" ADD CONSTRAINT pk PRIMARY KEY (id) WITH (fillfactor=70)',
            tables=("customer",),
            key=("id",),
        ),
        _said(
            "unique",
            "customer.by_code",
            'ALTER TABLE app."Customer" ADD CONSTRAINT by_code UNIQUE (code) INCLUDE (mood)',
            tables=("customer",),
            key=("code",),
        ),
        _said(
            "foreign key",
            "orders.to_customer",
            'ALTER TABLE app.orders ADD CONSTRAINT to_customer FOREIGN KEY (customer) REFERENCES app."Customer"(id) '
            "ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED",
            tables=("orders", "customer"),
            key=("customer",),
        ),
        _said(
            "index",
            "by_customer",
            "CREATE INDEX by_customer ON app.orders USING btree (customer DESC) INCLUDE (amount)",
            tables=("orders",),
            key=("customer",),
        ),
        _said("index", "big", "CREATE INDEX big ON app.orders (amount) WHERE amount > 10", tables=("orders",)),
        _said(
            "unique index", "mood_once", 'CREATE UNIQUE INDEX mood_once ON app."Customer" (mood)', tables=("customer",)
        ),
        _said(
            "index",
            "gone",
            'CREATE INDEX gone ON app."Customer" (dropped)',
            tables=("customer",),
            columns=(("customer", "dropped"),),
        ),
        _said(
            "check", "orders.low", "ALTER TABLE app.orders ADD CONSTRAINT low CHECK (amount < 50)", tables=("orders",)
        ),
        _said("view", "rich", 'CREATE VIEW app.rich AS SELECT id FROM app."Customer"', tables=("customer",)),
        _said("comment", "orders", "COMMENT ON TABLE app.orders IS 'all of them'", tables=("orders",)),
        _said("statistics", "st", 'CREATE STATISTICS app.st ON mood, credit FROM app."Customer"', tables=("customer",)),
    ),
)


def own_database() -> tuple[Schema, Mapping[str, pa.Table]]:
    """The schema without its dropped column, and rows of which some break what only the source knows."""
    customer = OWN.table("customer")
    kept = dc.replace(customer, columns=customer.columns[:-1])
    schema = dc.replace(OWN, tables=(kept, OWN.table("orders"), OWN.table("event")), original=ORIGINAL)
    rows = rows_of(
        schema,
        customer={
            "id": [7, 9],
            "code": ["a", "b"],
            "mood": ["ok", "ok"],
            "credit": [Decimal("1.50"), None],
            "twice": [Decimal("3.00"), None],
            "tags": ["{a,b}", None],
        },
        orders={"id": [1, 200], "customer": [7, 9], "amount": [Decimal("99.00"), Decimal("1.00")]},
        event={"id": [1], "at": [dt.datetime(2020, 6, 1)]},
    )
    return schema, rows
