"""Addresses of MySQL servers, and their own text of a table: what needs no server."""

import gc
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from privbench.errors import SourceError, SpecError
from privbench.io.ddl import parse_ddl
from privbench.io.mysql import connection
from privbench.io.mysql.address import read_address
from privbench.io.mysql.ddl import write_script
from privbench.io.mysql.show_create import PartKind, cut_check, names_in, read_table, view_query, without_nulls
from privbench.io.open import open_source
from privbench.schema.original import OriginalDdl, Phase, SourceDialect, Statement, TableDefinition

CREATE = """CREATE TABLE `t,(` (
  `a``b` int(11) NOT NULL DEFAULT 7 COMMENT 'x, KEY `z` (`q`) it''s \\' NOT NULL',
  `e` enum('),','b') DEFAULT NULL,
  `g` int(11) GENERATED ALWAYS AS (`a``b` + 1) VIRTUAL,
  `c` int(11) DEFAULT NULL CHECK (`c` in (1,2) and `c` <> ')'),
  PRIMARY KEY (`a``b`,`e`),
  UNIQUE KEY `e` (`e`),
  KEY `part` (`e`(3)),
  KEY `down` (`c` DESC),
  KEY `lower` ((lower(`e`))),
  FULLTEXT KEY `words` (`e`),
  CONSTRAINT `f,` FOREIGN KEY (`c`, `g`) REFERENCES `other`.`p` (`x`, `y`) ON DELETE SET NULL,
  CONSTRAINT `low` CHECK (`c` < 9)
) ENGINE=InnoDB AUTO_INCREMENT=4711 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin DATA DIRECTORY='/secret' \
COMMENT='AUTO_INCREMENT=8 x'
 PARTITION BY HASH (`c`)
PARTITIONS 2"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MYSQL_PWD", raising=False)
    return tmp_path


def test_a_table_is_cut_into_its_parts() -> None:
    table = read_table(CREATE)
    assert [(p.kind, p.name) for p in table.parts] == [
        (PartKind.COLUMN, "a`b"),
        (PartKind.COLUMN, "e"),
        (PartKind.COLUMN, "g"),
        (PartKind.COLUMN, "c"),
        (PartKind.PRIMARY_KEY, ""),
        (PartKind.UNIQUE, "e"),
        (PartKind.INDEX, "part"),
        (PartKind.INDEX, "down"),
        (PartKind.INDEX, "lower"),
        (PartKind.SPECIAL_INDEX, "words"),
        (PartKind.FOREIGN_KEY, "f,"),
        (PartKind.CHECK, "low"),
    ]
    by_name = {p.name: p for p in table.parts if p.kind is not PartKind.COLUMN}
    assert by_name[""].columns == ("a`b", "e")
    assert [(by_name[n].columns, by_name[n].plain) for n in ("e", "part", "down", "lower", "words")] == [
        (("e",), True),
        (("e",), False),
        (("c",), False),
        ((), False),
        (("e",), False),
    ]
    key = by_name["f,"]
    assert (key.columns, key.target, key.references) == (("c", "g"), ("other", "p"), ("x", "y"))


def test_what_tells_of_rows_or_folders_is_not_kept() -> None:
    table = read_table(CREATE)
    assert table.options == "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin COMMENT='AUTO_INCREMENT=8 x'"
    assert table.partition == "PARTITION BY HASH (`c`)\nPARTITIONS 2"
    assert read_table(CREATE + " DATA DIRECTORY = '/secret'").partition == ""
    federated = "CREATE TABLE `t` (`a` int) ENGINE=FEDERATED CONNECTION='mysql://me:secret@host/db/t'"
    assert read_table(federated).options == "ENGINE=InnoDB"


def test_the_text_of_a_column() -> None:
    columns = {p.name: p.text for p in read_table(CREATE).of(PartKind.COLUMN)}
    assert without_nulls(columns["a`b"]) == "int(11) DEFAULT 7 COMMENT 'x, KEY `z` (`q`) it''s \\' NOT NULL'"
    assert without_nulls(columns["e"]) == "enum('),','b')"
    assert cut_check(columns["c"]) == ("int(11) DEFAULT NULL", "`c` in (1,2) and `c` <> ')'")
    assert names_in(columns["g"]) == ("a`b",)


def test_the_query_of_a_view_names_nobody() -> None:
    text = "CREATE ALGORITHM=MERGE DEFINER=`boss`@`%` SQL SECURITY DEFINER VIEW `a view AS x` AS select 1 AS `AS`"
    assert view_query(text) == "select 1 AS `AS`"


def test_an_address_takes_what_it_lacks_from_the_option_file(home: Path) -> None:
    (home / ".my.cnf").write_text(
        '[mysqld]\nuser=wrong\n[client]\nuser = ann\n# no\nnonsense\npassword="p#w"\nport=3307\nsocket=/run/my.sock\n'
    )
    found = read_address("mysql://host/shop", environment={"MYSQL_PWD": "other"}).connection
    assert found == {"user": "ann", "password": b"p#w", "host": "host", "port": 3307}
    local = read_address("mariadb://bob@localhost/shop", environment={}).connection
    assert (local["user"], local["unix_socket"]) == ("bob", "/run/my.sock")


@pytest.mark.parametrize(
    ("url", "password"), [("mysql://a:p%40w%C3%BC@h/d", "p@wü"), ("mysql://a@h/d", "env"), ("mysql://h/d", "env")]
)
def test_the_password_is_of_the_url_or_the_environment_and_shown_nowhere(url: str, password: str) -> None:
    address = read_address(url, environment={"MYSQL_PWD": "env"})
    assert address.connection["password"] == password.encode()
    assert "p%40" not in address.shown
    assert "p@" not in repr(address)
    assert "env" not in repr(address)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://a:se/cret@h/d",
        "mysql://a:1/secret@h/d",
        "mysql://a:1?secret@h/d",
        "mysql://a:1#secret@h/d",
        "mysql://a:secret@h",
        "mysql://a:secret@h/",
        "mysql://a:secret@h:x/d",
        "mysql://a:secret@h/d/e",
        "mysql://a:secret@h/d?password=secret",
        "mysql://a:secret@h/d?option_file=/nowhere/my.cnf",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_address(url, environment={})
    assert "cret" not in str(caught.value)


def test_without_pymysql_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymysql", None)
    with pytest.raises(SourceError, match=r"pip install 'privbench\[mysql\]'"):
        open_source("mysql://me:secret@nowhere/shop")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_nobody_answers(tmp_path: Path) -> None:
    pytest.importorskip("pymysql")
    with pytest.raises(SourceError, match="no server answers") as caught:
        open_source(f"mysql://me:secret@localhost/shop?unix_socket={tmp_path}/none")
    assert "secret" not in str(caught.value)
    del caught
    gc.collect()  # PyMySQL leaves the socket open


def test_errors_say_what_the_server_means() -> None:
    assert "went away" in connection.explain(OSError(2013, "Lost connection"))
    assert connection.explain(ValueError("one\ntwo")) == "one"


def test_a_schema_of_another_system_is_written_in_words_of_mysql() -> None:
    schema = parse_ddl(
        """CREATE TABLE p (id BIGINT PRIMARY KEY, code VARCHAR UNIQUE, kind VARCHAR CHECK (kind IN ('a', 'b')));
        CREATE TABLE c (id UUID PRIMARY KEY, p INTEGER REFERENCES p, q BIGINT REFERENCES p, code TEXT, at TIMESTAMPTZ,
        data JSON, pic BYTEA, price MONEY); CREATE INDEX by_q ON c (q, code);""",
        where="schema.sql",
    )
    script = write_script(schema)
    assert "`code` VARCHAR(255) NULL" in script.tables[0].create
    for text in ("`id` CHAR(36) NOT NULL", "`at` DATETIME(6) NULL", "`data` JSON NULL", "`pic` LONGBLOB NULL"):
        assert text in script.tables[1].create
    assert [s.sql for s in script.after] == [
        "ALTER TABLE `p` ADD UNIQUE KEY (`code`)",
        "ALTER TABLE `c` ADD KEY `by_q` (`q`, `code`)",
        "ALTER TABLE `c` ADD FOREIGN KEY (`q`) REFERENCES `p` (`id`)",
        "ALTER TABLE `p` ADD CHECK (`kind` IN ('a', 'b'))",
    ]
    assert [str(each) for each in script.left_out] == [
        "foreign key c (p) -> p(id): it joins two types, which MySQL does not"
    ]


def test_comments_of_engines_whose_rows_are_elsewhere_are_left_out() -> None:
    """Spider has the address and the password of the other server in the comment of a table or of its partitions."""
    comment = 'COMMENT=\'wrapper "mysql", user "u", password "hush"\''
    table = read_table(
        f"CREATE TABLE `t` (`a` int) ENGINE=SPIDER {comment} PARTITION BY LIST (`a`) (PARTITION p {comment})"
    )
    assert "hush" not in table.options + table.partition
    assert read_table("CREATE TABLE `t` (`a` int) ENGINE=MEMORY COMMENT='x'").options == "ENGINE=InnoDB COMMENT='x'"
    linked = read_table("CREATE TABLE `t` (`a` int) ENGINE=FEDERATED CONNECTION='mysql://u@h/ COMMENT=hush'")
    assert linked.options == "ENGINE=InnoDB"


def test_what_only_another_system_has_is_listed() -> None:
    schema = parse_ddl("CREATE TABLE p (id BIGINT PRIMARY KEY, kind VARCHAR CHECK (kind IN ('a', 'b')))", where="s.sql")
    own = [
        Statement(kind="view", name="v", sql="CREATE VIEW v AS SELECT 1", phase=Phase.AFTER),
        Statement(kind="check", name="p.c", sql="ALTER TABLE p ADD CHECK (kind IN ('a', 'b'))", phase=Phase.AFTER),
    ]
    tables = {"p": TableDefinition(name="p", columns={})}
    original = OriginalDdl(dialect=SourceDialect.POSTGRES, tables=tables, statements=tuple(own))
    script = write_script(replace(schema, original=original))
    assert [str(each) for each in script.left_out] == ["view v: only the system of the source has it"]
    assert [s.kind for s in script.after] == ["check"]
