"""The source's own DDL is exactly one statement of the kind that it claims; code is told; all else is refused."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError
from sqlglot import tokenize
from sqlglot.errors import SqlglotError

from privbench.io.postgres.ddl import DatabaseNames, write_script
from privbench.schema.ddl_grammar import read_column, read_name, read_statement, read_table_words
from privbench.schema.ddl_tokens import DdlError, read_tokens
from privbench.schema.original import CODE, OriginalDdl

from ..io.own_ddl import ORIGINAL, own_database

VIEW = "CREATE VIEW app.rich AS SELECT id FROM orders"
FORGED = {
    "two statements": f"{VIEW}; DROP TABLE orders",
    "an empty second one": f"{VIEW};",
    "another one": "COPY (SELECT 1) TO PROGRAM 'touch pwned'",
    "a role": "CREATE ROLE backdoor SUPERUSER LOGIN",
    "a command of psql": f"{VIEW}\n\\! touch pwned",
    "a command in the line": f"{VIEW} \\gexec",
    "a variable of psql": "CREATE VIEW v AS SELECT :USER",
    "a quoted variable": "CREATE VIEW v AS SELECT :'USER'",
    "a comment": f"{VIEW} -- ",
    "a comment that hides a quote": "CREATE VIEW v AS SELECT /* ' */ 1",
    "a nested comment": "CREATE VIEW v AS SELECT 1 /* /* */ ; DROP TABLE orders */",
    "a string that ends elsewhere": "CREATE VIEW v AS SELECT '\\'; DROP TABLE orders; --'",
    "a string with escapes that ends elsewhere": "CREATE VIEW v AS SELECT E'a\\'; DROP TABLE orders; --'",
    "a string that does not end": "CREATE VIEW v AS SELECT 'a",
    "a name that does not end": 'CREATE VIEW "v AS SELECT 1',
    "dollar quotes": "CREATE VIEW v AS SELECT $a$ x $a$",
    "a dollar inside a name": "CREATE VIEW v AS SELECT a$b$ FROM orders",
    "signs that look like others": "CREATE VIEW v AS SELECT 1 AS \u00e9\u037e",
    "an escaped name": 'CREATE VIEW v AS SELECT 1 AS U&"d\\0061ta"',
    "a bracket too much": "CREATE VIEW v AS SELECT (1))",
    "a materialized one": "CREATE MATERIALIZED VIEW v AS SELECT 1",
    "one that replaces": "CREATE OR REPLACE VIEW v AS SELECT 1",
    "no query": "CREATE VIEW v AS TABLE orders",
    "a form feed": f"{VIEW}\f",
}


@pytest.mark.parametrize("sql", FORGED.values(), ids=FORGED)
def test_what_is_not_one_view_is_refused(sql: str) -> None:
    with pytest.raises(DdlError):
        read_statement("postgres", "view", sql)


@pytest.mark.parametrize(
    ("kind", "sql"),
    [
        ("trigger", "CREATE TRIGGER t BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f()"),
        ("rule", "CREATE RULE r AS ON SELECT TO orders DO INSTEAD NOTHING"),
        ("procedure", "CREATE PROCEDURE p() LANGUAGE sql AS 'SELECT 1'"),
        ("server", "CREATE SERVER s FOREIGN DATA WRAPPER file_fdw"),
        ("schema", "CREATE SCHEMA s CREATE TABLE t (a int)"),
        ("sequence", "CREATE SEQUENCE s OWNED BY a.b"),
        ("sequence", "CREATE SEQUENCE s START WITH (SELECT 1)"),
        ("type", "CREATE TYPE t (INPUT = f, OUTPUT = g)"),
        ("type", "CREATE TYPE t AS ENUM ('a', pg_sleep(1))"),
        ("check", "ALTER TABLE t ADD CHECK (a > 1), OWNER TO postgres"),
        ("check", "ALTER TABLE t DROP COLUMN a"),
        ("foreign key", "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u(b) ON DELETE DO SOMETHING"),
        ("primary key", "ALTER TABLE t ADD PRIMARY KEY (lower(a))"),
        ("column storage", "ALTER TABLE t ALTER COLUMN a SET DATA TYPE text"),
        ("index", "CREATE INDEX CONCURRENTLY i ON t (a)"),
        ("index", "CREATE INDEX i ON t USING evil (a)"),
        ("partition", "CREATE TABLE p PARTITION OF t FOR VALUES IN (1) TABLESPACE x"),
        ("comment", "COMMENT ON ROLE postgres IS 'x'"),
        ("comment", "COMMENT ON TABLE t IS 'x' || 'y'"),
        ("function", "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END"),
        ("function", "CREATE FUNCTION f() RETURNS int AS $$ SELECT 1 $a$"),
        ("domain", "CREATE DOMAIN d AS text CHECK (true) OWNER TO x"),
    ],
)
def test_other_kinds_and_other_words_are_refused(kind: str, sql: str) -> None:
    with pytest.raises(DdlError):
        read_statement("postgres", kind, sql)


@pytest.mark.parametrize(
    ("kind", "sql"),
    [
        ("view", "CREATE VIEW `v` AS select 1 /*!50000 ; drop table t */"),
        ("view", "CREATE VIEW `v` AS select 1 # x"),
        ("view", "CREATE VIEW `v` AS select 1 into outfile '/tmp/x'"),
        ("view", "CREATE VIEW `v` AS select @@version"),
        ("view", 'CREATE VIEW `v` AS select "a"'),
        ("view", "CREATE VIEW `v` AS select 1\ndelimiter //"),
        ("view", "CREATE VIEW `v` AS select 'a\\'; drop table t; -- '"),
        ("view", "CREATE DEFINER=`root`@`%` VIEW `v` AS select 1"),
        ("event", "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1"),
        ("partition", "ALTER TABLE `t` PARTITION BY HASH (`a`) (PARTITION p DATA DIRECTORY = '/tmp')"),
        ("partition", "ALTER TABLE `t` /*!50100 PARTITION BY HASH (`a`) */ /*! ; drop table t */"),
        ("index", "ALTER TABLE `t` ADD KEY `k` (`a`), ADD COLUMN b int"),
        ("foreign key", "ALTER TABLE `t` ADD FOREIGN KEY (`a`) REFERENCES `u` (`b`), RENAME TO x"),
    ],
)
def test_what_mysql_would_take_for_more_is_refused_or_code(kind: str, sql: str) -> None:
    try:
        assert read_statement("mysql", kind, sql).beyond
    except DdlError:
        return


@pytest.mark.parametrize(
    "calls",
    [
        "pg_read_file('/etc/passwd')",
        "pg_catalog.pg_sleep(9)",
        '"pg_sleep" (9)',
        "pg_sleep\n(9)",
        "lo_export(1, '/tmp/x')",
        "dblink('x', 'y')",
        "set_config('a', 'b', false)",
        "query_to_xml('select 1', true, true, '')",
        "nextval('s')",
        "app.mine(1)",
        "repeat('a', 2000000000)",
        "(SELECT rolpassword FROM pg_authid LIMIT 1)",
        '(SELECT 1 FROM "pg_shadow")',
        "(SELECT 1 FROM information_schema.tables)",
        "a OPERATOR(app.+) b",
        "current_setting('x')",
    ],
)
@pytest.mark.parametrize(
    ("kind", "sql"),
    [
        ("view", "CREATE VIEW v AS SELECT {} AS x"),
        ("materialized view", "CREATE MATERIALIZED VIEW v AS SELECT {} AS x"),
        ("check", "ALTER TABLE t ADD CHECK ({} = 1)"),
        ("index", "CREATE INDEX i ON t (({}))"),
        ("index", "CREATE INDEX i ON t (a) WHERE {} = 1"),
        ("domain", "CREATE DOMAIN d AS text CHECK ({} = 1)"),
        ("statistics", "CREATE STATISTICS s ON ({}), a FROM t"),
    ],
)
def test_calls_of_functions_in_no_list_are_code(calls: str, kind: str, sql: str) -> None:
    assert read_statement("postgres", kind, sql.format(calls)).beyond


def test_columns_may_not_say_more_than_a_column() -> None:
    for text in (
        "int, b int",
        "int) WITH (x) AS (SELECT 1",
        "int DEFAULT 1 REFERENCES u",
        "int DEFAULT 1 CHECK (true)",
    ):
        with pytest.raises(DdlError):
            read_column("postgres", text)
    for text in (
        "text DEFAULT pg_read_file('x')",
        "int GENERATED ALWAYS AS (app.f(a)) STORED",
        "text DEFAULT lpad('', 9)",
    ):
        assert read_column("postgres", text).beyond
    assert read_column("postgres", "public.citext").types == {("citext",)}
    assert not read_column("postgres", "timestamp with time zone DEFAULT now()").beyond
    for text in ("int, `b` int", "int REFERENCES `u`", "evil", "int COMMENT 'a' 'b'"):
        with pytest.raises(DdlError):
            read_column("mysql", text)
    assert read_column("mysql", "text DEFAULT (load_file('/etc/passwd'))").beyond


def test_what_follows_a_table_is_known() -> None:
    for dialect, before, after in (
        ("postgres", "TEMP", ""),
        ("postgres", "", "WITH (fillfactor=80) TABLESPACE x"),
        ("postgres", "", "AS SELECT 1"),
        ("mysql", "", "ENGINE=FEDERATED"),
        ("mysql", "", "ENGINE=InnoDB DATA DIRECTORY='/tmp'"),
        ("mysql", "", "ENGINE=InnoDB UNION=(`a`)"),
    ):
        with pytest.raises(DdlError):
            read_table_words(dialect, before, after)
    for name in ("a.b.c", "a; b", "a (b)", "pg_read_file('x')", ""):
        with pytest.raises(DdlError):
            read_name("postgres", name)


def test_code_is_held_back_and_what_needs_it_goes_too() -> None:
    held = ORIGINAL.without_code()
    assert [each.name for each in held.left_out if each.reason == CODE] == ["nowhere"]
    assert {s.kind for s in ORIGINAL.statements} - {s.kind for s in held.statements} == {"extension"}
    assert held.tables == ORIGINAL.tables


def test_two_statements_of_one_title_are_judged_each() -> None:
    safe, code = VIEW, "CREATE VIEW app.rich AS SELECT pg_sleep(9)"
    words = ORIGINAL.model_dump(mode="json")
    view = next(s for s in words["statements"] if s["kind"] == "view")
    words["statements"] = [*words["statements"], {**view, "sql": code}, {**view, "sql": safe}]
    runs = [s.sql for s in OriginalDdl.model_validate(words).without_code().statements]
    assert code not in runs
    assert safe in runs


def test_statements_are_about_its_own_tables() -> None:
    words = ORIGINAL.model_dump(mode="json")
    index = next(s for s in words["statements"] if s["kind"] == "index")
    words["statements"] = [{**index, "sql": "CREATE INDEX i ON payroll (salary)"}]
    with pytest.raises(ValueError, match="payroll"):
        OriginalDdl.model_validate(words)


@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("SELECT a.id FROM app.orders a", {("app", "orders")}),
        ("SELECT 1 FROM orders, hr.pay p WHERE p.x = 1", {("hr", "pay")}),
        ("SELECT 1 FROM (orders o JOIN hr.pay p ON (o.id = p.id))", {("hr", "pay")}),
        ("SELECT 1 FROM ((hr.a a LEFT JOIN hr.b ON true) JOIN public.c ON true)", {("hr", "a"), ("hr", "b")}),
        ("SELECT (SELECT max(p.x) FROM hr.pay p) FROM orders", {("hr", "pay")}),
        ("SELECT EXTRACT(year FROM o.at), o.x IS DISTINCT FROM o.y FROM orders o", set()),
        ("SELECT EXTRACT(year FROM (SELECT max(p.at) FROM hr.pay p)) FROM orders o", {("hr", "pay")}),
        (
            "WITH x AS (SELECT 1 FROM ONLY hr.pay) SELECT 1 FROM x, LATERAL (SELECT 2) y, hr.z",
            {("hr", "pay"), ("hr", "z")},
        ),
        ("SELECT o.a, o.b FROM orders o GROUP BY o.a, o.b ORDER BY o.a, o.b", set()),
    ],
)
def test_what_a_view_selects_from_is_known(query: str, read: set[tuple[str, ...]]) -> None:
    reads = read_statement("postgres", "view", f"CREATE VIEW v AS {query}").reads
    assert {name for name in reads if name != ("c",)} == read


def test_a_view_of_tables_that_are_not_its_own_is_code() -> None:
    words = ORIGINAL.model_dump(mode="json")
    view = next(s for s in words["statements"] if s["kind"] == "view")
    for sql, runs in (
        ("CREATE VIEW v AS SELECT id FROM hr.salaries", 0),
        ("CREATE VIEW v AS SELECT 1 FROM app.orders", 1),
    ):
        words["statements"] = [{**view, "sql": sql}]
        assert len(OriginalDdl.model_validate(words).without_code().statements) == runs


def test_a_table_has_its_own_name() -> None:
    words = ORIGINAL.model_dump(mode="json")
    words["statements"] = []
    words["tables"]["orders"]["name"] = "hr.salaries"  # which `--replace` would drop
    with pytest.raises(ValueError, match="another one"):
        OriginalDdl.model_validate(words)


def test_another_sequence_is_neither_taken_nor_set() -> None:
    words = ORIGINAL.model_dump(mode="json")
    words["tables"]["orders"]["sequences"] = {"id": "hr.numbers"}
    schema = replace(own_database()[0], original=OriginalDdl.model_validate(words))
    assert list(DatabaseNames(schema).sequences(schema)) == ['app."Customer_id_seq"']
    owner = {"kind": "sequence owner", "name": "x", "phase": "after", "tables": ["orders"]}
    words["statements"].append({**owner, "sql": "ALTER SEQUENCE hr.numbers OWNED BY app.orders.id"})
    with pytest.raises(ValueError, match=r"hr\.numbers"):
        OriginalDdl.model_validate(words)


# -- fragments --------------------------------------------------------------------------------------------------------

FRAGMENTS = [
    *"'\"`;$\\()[],.:@#",
    *("''", "E'", "U&'", "$$", "$a$", "--", "/*", "*/", "/*!50000 ", "\\'", "\\\\", "\n", "\r", "\0", "\u2028", " "),
    *("\\! touch canary", "\\gexec", "COPY (SELECT 1) TO PROGRAM 'touch canary'", "CREATE ROLE canary SUPERUSER"),
    *("; CREATE ROLE canary", "pg_read_file('canary')", "lo_export(1, 'canary')", "AS", "SELECT", "1", "canary()"),
    *("DELIMITER //", "DO $$ BEGIN CREATE ROLE canary; END $$", "IS 'x'", "CHECK (", "WITH (", "::text", "x"),
]
LEGIT = [(s.kind, s.sql) for s in ORIGINAL.statements if s.kind not in ("extension", "schema")]
DANGER = ("canary", "copy", "role", "program", "pg_read_file", "lo_export", "do")


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, str]:
    """A statement with fragments put in anywhere, or in place of parts of it."""
    kind, sql = draw(st.sampled_from(LEGIT))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(sql)))
        end = draw(st.integers(at, min(len(sql), at + draw(st.sampled_from((0, 0, 5, 200))))))
        sql = sql[:at] + draw(st.sampled_from(FRAGMENTS)) + sql[end:]
    return kind, sql


def accepted(kind: str, sql: str) -> bool:
    """Whether a statement would run by itself."""
    try:
        return not read_statement("postgres", kind, sql).beyond
    except DdlError:
        return False


@given(mutated())
@example(("comment", "COMMENT ON TABLE app.orders IS 'all; \\! touch canary\n'"))
def test_no_fragment_of_code_is_outside_quotes_of_what_runs(statement: tuple[str, str]) -> None:
    """A second opinion, of another tokenizer: one statement, and nothing dangerous but in strings and quoted names."""
    kind, sql = statement
    if not accepted(kind, sql):
        return
    words = re.findall(r"CREATE|ALTER|COMMENT", sql[:7])
    assert words, "a statement of a known kind starts with one of three words"
    try:
        tokens = [t for t in tokenize(sql.replace("\\", ""), read="postgres") if t.token_type.name not in QUOTED]
    except SqlglotError:
        return  # it knows less than PostgreSQL
    plain = [token.text.lower() for token in tokens]
    assert ";" not in plain
    called = [a for a, b in pairwise(plain) if b == "("]
    assert not {"canary", "pg_read_file", "lo_export"} & set(called)
    assert plain[0] in ("create", "alter", "comment")
    assert "program" not in plain
    assert plain[:2] not in (["create", "role"], ["create", "function"])


@given(mutated())
def test_what_a_sink_gets_passed_or_is_not_there(statement: tuple[str, str]) -> None:
    """All the way from the words of a file to the steps that a connection would run."""
    kind, sql = statement
    words = ORIGINAL.model_dump(mode="json")
    place = next(at for at, s in enumerate(words["statements"]) if s["kind"] == kind)
    words["statements"][place] |= {"sql": sql, "columns": [], "needs": []}
    try:
        original = OriginalDdl.model_validate(words)
    except ValidationError:
        return
    schema = replace(own_database()[0], original=original.without_code())
    steps = [step.sql for script in [write_script(schema)] for step in (*script.before, *script.after)]
    assert sql not in steps or accepted(kind, sql)
    assert not [step for step in steps if "CREATE EXTENSION" in step]


QUOTED = ("STRING", "IDENTIFIER", "NATIONAL_STRING", "BIT_STRING", "HEX_STRING", "BYTE_STRING", "HEREDOC_STRING")


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join))
def test_mysql_reads_no_comment_and_no_second_statement(text: str) -> None:
    try:
        read_tokens(text, "mysql")
    except DdlError:
        return
    for escaped in (r"'(?:[^'\\]|''|\\.)*'", r"'(?:[^']|'')*'"):  # strings with and without escapes
        outside = re.sub(rf"{escaped}|`(?:[^`]|``)*`", " ", text, flags=re.DOTALL)
        assert not re.search(r"[;\\#@\"$']|--|/\*|\0|DELIMITER", outside)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join))
def test_tokens_cover_every_text_or_it_is_refused(text: str) -> None:
    try:
        tokens = read_tokens(text, "postgres")
    except DdlError:
        return
    outside = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(\w*)\$.*?\$\1\$", " ", text, flags=re.DOTALL)
    assert not re.search(r";|\\|--|/\*|\0", outside)
    assert bool(tokens) == bool(text.strip(" \t\r\n"))
