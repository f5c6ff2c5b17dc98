"""A MariaDB server on the command line: no password anywhere, and a clean end when the server goes away."""

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
