"""A MariaDB server on the command line: no password anywhere, and a clean end when the server goes away."""

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from privbench.io.mysql import source

from ..servers.mariadb import MariaDBServer, start_mariadb
from .conftest import Run

SHOP = (
    "CREATE TABLE customer (id INT PRIMARY KEY, n INT, kind ENUM('a','b') DEFAULT 'a')",
    "INSERT INTO customer SELECT seq, seq % 7, 'b' FROM seq_1_to_50000",
)


def test_a_server_that_is_killed_in_the_middle(
    mariadb_server: MariaDBServer, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start_mariadb() as server:
        server.run("CREATE DATABASE shop", "USE shop", *SHOP)
        spec, model = tmp_path / "spec.yaml", tmp_path / "shop.model"
        assert run("draft", server.url("shop"), "--unit", "customer", "-o", spec).code == 0
        parse = source.parse_lines

        def kill(*arguments: Any) -> pa.RecordBatch:
            server.process.kill()
            server.process.wait()
            return parse(*arguments)

        monkeypatch.setattr(source, "parse_lines", kill)
        done = run("fit", spec, "--epsilon", "1", "-o", model)
    assert done.code == 2
    assert "table customer cannot be read: the server went away" in " ".join(done.err.split())
    assert list(tmp_path.iterdir()) == [spec]


def test_no_password_in_the_spec_the_model_or_what_is_printed(
    mariadb: str, mariadb_server: MariaDBServer, run: Run, tmp_path: Path
) -> None:
    name = mariadb.split("/")[3].partition("?")[0]
    mariadb_server.run(f"USE {name}", *SHOP)
    mariadb_server.run(
        "DROP USER IF EXISTS ann@localhost",
        "CREATE USER ann@localhost IDENTIFIED BY 's3cr&t'",
        f"GRANT SELECT ON {name}.* TO ann@localhost",
    )
    url = mariadb_server.url(name, user="ann:s3cr%26t")
    drafted = run("draft", url, "--unit", "customer", "-o", tmp_path / "spec.yaml")
    fitted = run("fit", tmp_path / "spec.yaml", "--source", url, "--epsilon", "5", "-o", tmp_path / "shop.model")
    refused = run("fit", tmp_path / "spec.yaml", "--source", url.replace("26t", "26tx"), "--epsilon", "5", "-o", "m")
    assert (drafted.code, fitted.code, refused.code) == (0, 0, 2)
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    printed = "".join(one.out + one.err for one in (drafted, fitted, refused))
    assert b"s3cr" not in written
    assert "s3cr" not in printed
    assert b"mysql://ann@localhost/" in written


KINDS = """CREATE TABLE person (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, kind ENUM('a','b') NOT NULL DEFAULT 'a',
tags SET('x','y') , born YEAR, flags BIT(3), data JSON, hash BINARY(16), pic BLOB, at DATETIME(6), seen TIMESTAMP NULL,
clock TIME, token UUID, ip INET6, place POINT, score MEDIUMINT UNSIGNED, mail VARCHAR(60) COLLATE utf8mb4_bin,
price DECIMAL(8,2) UNSIGNED, twice INT AS (score * 2) VIRTUAL, ok BOOLEAN NOT NULL, UNIQUE KEY by_token (token),
KEY by_mail (mail(8)), FULLTEXT KEY words (mail)) COMMENT='people'"""
FILL = """INSERT INTO person (kind, tags, born, flags, data, hash, pic, at, seen, clock, token, ip, place, score, mail,
price, ok) SELECT IF(seq % 3, 'a', 'b'), IF(seq % 2, 'x,y', ''), 1990 + seq % 20, seq % 8, JSON_OBJECT('n', seq),
UNHEX(MD5(seq)), IF(seq % 4, NULL, REPEAT('z', seq % 50)), '2020-01-01' + INTERVAL seq HOUR, '2021-01-01' + INTERVAL seq
HOUR, SEC_TO_TIME(seq), UUID(), CONCAT('2001:db8::', HEX(seq)), POINT(seq % 10, 3), seq * 100,
CONCAT('p', seq, '@example.org'), seq / 7, seq % 2 FROM seq_1_to_400"""


def test_all_types_go_through_a_model_and_come_back_as_themselves(
    mariadb: str, mariadb_server: MariaDBServer, run: Run, tmp_path: Path
) -> None:
    name = mariadb.split("/")[3].partition("?")[0]
    mariadb_server.run(KINDS, FILL, "CREATE VIEW good AS SELECT id FROM person WHERE ok", database=name)
    mariadb_server.run("DROP DATABASE IF EXISTS synthetic", "CREATE DATABASE synthetic")
    spec, model, url = tmp_path / "spec.yaml", tmp_path / "m.model", mariadb_server.url("synthetic")
    drafted = run("draft", mariadb, "--unit", "person", "-o", spec)
    fitted = run("fit", spec, "--epsilon", "5", "--delta", "1e-9", "-o", model)
    loaded = run("generate", model, "--to", url, "--seed", "1")
    assert (drafted.code, fitted.code, loaded.code) == (0, 0, 0), drafted.err + fitted.err + loaded.err
    assert "Left out" not in drafted.out + loaded.out
    for what in ("TABLE person", "VIEW good"):
        [[_, made, *_]] = mariadb_server.run(f"SHOW CREATE {what}", database="synthetic")
        [[_, source_text, *_]] = mariadb_server.run(f"SHOW CREATE {what}", database=name)
        assert re.sub(r" AUTO_INCREMENT=\d+", "", made) == re.sub(r" AUTO_INCREMENT=\d+", "", source_text)
    [facts] = mariadb_server.run(
        "SELECT COUNT(*), COUNT(pic), COUNT(data) = SUM(JSON_VALID(data)), COUNT(token) = COUNT(DISTINCT token), "
        "COUNT(hash) * 16 = SUM(LENGTH(hash)), MIN(born) >= 1901, COUNT(place) > 300, COUNT(twice) = SUM(twice = score "
        "* 2), COUNT(ip) > 300, COUNT(mail) > 300 FROM person",
        database="synthetic",
    )
    rows, pictures, *others = facts
    assert rows == 400
    assert 50 < pictures < 150
    assert others == [1] * 8
    again = run("generate", model, "--to", url, "--seed", "1")
    assert again.code == 2
    assert "--replace" in again.err
    assert run("generate", model, "--to", url, "--seed", "1", "--replace").code == 0
    mariadb_server.run("DROP DATABASE synthetic")
