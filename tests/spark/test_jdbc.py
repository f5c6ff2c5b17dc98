"""A real PostgreSQL that Spark reads over JDBC: every cell is that which one machine reads from the same server."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

import privbench
from privbench.errors import SourceError
from privbench.io.open import open_source
from privbench.io.spark_source import SparkSource
from privbench.servers.postgres import PostgresServer

from ..servers.postgres import over_network, run
from .fits import content, fitted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("jdbc_driver")]

DDL = """
CREATE TYPE mood AS ENUM ('sad', 'well');
CREATE TABLE shop (code char(4) PRIMARY KEY, city text NOT NULL);
INSERT INTO shop SELECT 'S' || i, 'city ' || i % 3 FROM generate_series(1, 9) i;
CREATE TABLE customer (id integer PRIMARY KEY, mail uuid UNIQUE, born date, member boolean NOT NULL,
  "How Old" smallint NOT NULL, mood mood, shop char(4) NOT NULL REFERENCES shop, weight numeric, height real);
INSERT INTO customer SELECT i, md5(i::text)::uuid, date '1950-01-01' + 97 * i, i % 3 = 0, 20 + i % 60,
  (ARRAY['sad', 'well', NULL])[1 + i % 3]::mood, 'S' || 1 + i % 9, i / 7::numeric, i / 3::real
  FROM generate_series(1, 150) i;
CREATE TABLE "order" (id bigint, customer integer NOT NULL REFERENCES customer, at timestamp NOT NULL, sent timestamptz,
  clock time, total numeric(8, 2) NOT NULL CHECK (total > 0), ratio double precision, PRIMARY KEY (id))
  PARTITION BY RANGE (id);
CREATE TABLE order_first PARTITION OF "order" FOR VALUES FROM (0) TO (200);
CREATE TABLE order_last PARTITION OF "order" FOR VALUES FROM (200) TO (1000);
INSERT INTO "order" SELECT i, 1 + i * 37 % 150, timestamp '2020-03-29 00:30' + i * interval '1 hour',
  CASE WHEN i % 5 > 0 THEN timestamptz '2020-03-29 00:30+02' + i * interval '7 minutes' END,
  time '00:00' + i * interval '3 minutes', 1 + i % 13 + i % 7 / 100::numeric, sqrt(i)
  FROM generate_series(1, 400) i;
CREATE TABLE line ("order" bigint NOT NULL REFERENCES "order", amount smallint NOT NULL, note varchar(9), raw bytea);
INSERT INTO line SELECT 1 + i * 7 % 400, 1 + i % 4, CASE WHEN i % 4 > 0 THEN 'note ' || i % 3 END, '\\x0102'
  FROM generate_series(1, 900) i;
"""
TABLES = ("shop", "customer", "order", "line")


@pytest.fixture(scope="module")
def server(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of a server with a small database."""
    with over_network(postgres_server) as url:
        run(url, DDL)
        yield url


@pytest.fixture
def catalogue(server: str, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> str:
    """The same database, as a session that runs knows it."""
    from pyspark.sql import SparkSession

    running, url = SparkSession.getActiveSession(), urlsplit(server)
    assert running is not None
    settings = {
        "": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        ".url": f"jdbc:postgresql://{url.hostname}:{url.port}{url.path}",
        ".driver": "org.postgresql.Driver",
        ".user": str(url.username),
        ".password": str(url.password),
    }
    for name, value in settings.items():
        running.conf.set(f"spark.sql.catalog.pg{name}", value)
    return "spark:pg.public"


def _rows(source: Any, schema: Any, name: str) -> list[Any]:
    table = schema.table(name)
    rows = (row for batch in source.read(table) for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))
    return sorted(rows, key=repr)


def test_every_value_is_the_same(server: str, catalogue: str, spark: "SparkSession") -> None:
    from privbench.spark.session import spark_session

    with (
        spark_session(None, Path()) as session,
        open_source(server) as here,
        SparkSource(catalogue, session=session) as there,
    ):
        schema = here.schema()
        there.look_for(TABLES)
        for name in TABLES:
            assert _rows(here, schema, name) == _rows(there, schema, name), name
        with pytest.raises(SourceError, match="no table absent"):
            there.frame(replace(schema.table("shop"), name="absent"))


def test_a_fit(server: str, catalogue: str, spark: "SparkSession", tmp_path: Path) -> None:
    spec = privbench.draft(server, unit="customer", public=("shop",), domains="data")
    here, model = fitted(spec, server, engine="local")  # type: ignore[arg-type]
    there, same = fitted(spec, catalogue, engine="spark")  # type: ignore[arg-type]
    assert here == there
    assert content(model, tmp_path) == content(same, tmp_path)
