"""CHECK constraints: one line each, the CHECK and the domain it implies."""

import pytest
import sqlglot
from sqlglot import exp

from privbench.errors import SpecError
from privbench.io.ddl import parse_ddl
from privbench.io.render import Dialect, check_text
from privbench.schema.domain import Domain, Range, Values
from privbench.schema.expression import expression_of

CASES: list[tuple[str, str, Domain | None]] = [
    ("VARCHAR", "x IN ('a', 'b''c')", Values(values=("a", "b'c"))),
    ("VARCHAR", "((x)::text = ANY ((ARRAY['a'::varchar, 'b'::varchar])::text[]))", Values(values=("a", "b"))),
    ("VARCHAR", "x = ANY ('{a,\"b, c\"}'::text[])", Values(values=("a", "b, c"))),
    ("VARCHAR", "upper((x)::text) = ANY (ARRAY['M'::text, 'F1'::text])", Values(values=("M", "m", "F1", "f1"))),
    ("VARCHAR", "lower(x) IN ('ok', 'NEVER')", Values(values=("OK", "Ok", "oK", "ok"))),
    ("VARCHAR", "lower(x) IN ('departure', 'arrival')", None),
    ("INT", "x = ANY (ARRAY[1, '-2'::integer, 3])", Values(values=(1, -2, 3))),
    ("DECIMAL(4,2)", "x = ANY (ARRAY[1.5, ('-2'::integer)::numeric])", Values(values=("1.50", "-2.00"))),
    ("CHAR(1)", "x = ANY (ARRAY['Y'::bpchar, 'N'::bpchar])", Values(values=("Y", "N"))),
    ("VARCHAR", "x = 'a' OR x = 'b' OR x IS NULL", Values(values=("a", "b"))),
    ("VARCHAR", "x IN ('a', 'a')", Values(values=("a",))),
    ("INT", "x IN (1, -2, 3)", Values(values=(1, -2, 3))),
    ("DECIMAL(4,2)", "x IN (1.5, 2)", Values(values=("1.50", "2.00"))),
    ("DOUBLE PRECISION", "x IN (0.5, 1)", Values(values=(0.5, 1.0))),
    ("DATE", "x IN ('2020-01-01', DATE '2020-02-01')", Values(values=("2020-01-01", "2020-02-01"))),
    ("INT", "x BETWEEN 1 AND 5", Range(range=(1, 5))),
    ("INT", "x >= 0 AND x < 10", Range(range=(0, 9))),
    ("INT", "0 < x AND 10 >= x", Range(range=(1, 10))),
    ("INT", "(x > -1.5) AND (x < (2.5)::numeric)", Range(range=(-1, 2))),
    ("DECIMAL(5,2)", "x BETWEEN 0 AND 3.65", Range(range=("0.00", "3.65"))),
    ("DATE", "x BETWEEN '2020-01-31' AND '2020-02-29'", Range(range=("2020-01-31", "2020-02-29"))),
    ("DATE", "x >= '2024-01-01' AND x < '2025-01-01'", Range(range=("2024-01-01", "2024-12-31"))),
    ("DECIMAL(5,2)", "x BETWEEN 0 AND 9.99", None),
    ("INT", "x BETWEEN 5 AND 1", None),
    ("INT", "x > 0", None),
    ("INT", "x IN ('a')", None),
    ("INT", "x IN (1.5)", None),
    ("INT", "x IN (1, y)", None),
    ("INT", "NOT x BETWEEN 1 AND 5", None),
    ("INT", "x BETWEEN 1 AND 5 OR y > 3", None),
    ("INT", "x > y", None),
    ("VARCHAR", "x NOT IN ('a')", None),
    ("VARCHAR", "x IN ('a') OR y = 1", None),
    ("VARCHAR", "length(x) BETWEEN 1 AND 5", None),
    ("VARCHAR", "x BETWEEN 'a' AND 'b'", None),
    ("DATE", "x BETWEEN 'soon' AND 'later'", None),
]


@pytest.mark.parametrize(("kind", "check", "domain"), CASES, ids=[c[1] for c in CASES])
def test_check_implies(kind: str, check: str, domain: Domain | None) -> None:
    for text in (
        f"CREATE TABLE t (x {kind} CHECK ({check}), y INT)",
        f"CREATE TABLE t (X {kind}, y INT, CHECK ({check}))",
    ):
        assert parse_ddl(text, where="test").tables[0].columns[0].implied == domain


def test_several_checks_come_together() -> None:
    text = "CREATE TABLE t (x INT CHECK (x >= 1), CONSTRAINT c CHECK (x <= 9 AND y = 2), y INT);"
    text += "ALTER TABLE t ADD CHECK (x <= 7)"
    table = parse_ddl(text, where="test").tables[0]
    assert table.column("x").implied == Range(range=(1, 7))
    assert table.column("y").implied == Values(values=(2,))


IN_ALL_WORDS: list[tuple[str, str, str]] = [
    ("postgres", "x = ANY (ARRAY['a'::text, 'b'::text])", "x IN ('a', 'b')"),
    ("postgres", "(x)::text = ANY ((ARRAY['a'::varchar])::text[])", "CAST((x) AS TEXT) IN ('a')"),
    ("postgres", "x <> ALL (ARRAY['a'::text, NULL::text])", "NOT x IN ('a', CAST(NULL AS TEXT))"),
    ("postgres", "NOT (x = ANY (ARRAY[true, false]))", "NOT (x IN (TRUE, FALSE))"),
    ("postgres", "x = ANY ('{1,-2}'::bigint[])", "x IN (1, -2)"),
    ("postgres", r"""x = ANY ('{"a\"b",NULL," c"}'::text[])""", "x IN ('a\"b', NULL, ' c')"),
    ("postgres", "lower((x)::text) = ANY (ARRAY['a'::text])", "LOWER(CAST((x) AS TEXT)) IN ('a')"),
    ("postgres", "x = ANY (ARRAY['2020-01-01'::date])", "x IN (CAST('2020-01-01' AS DATE))"),
    ("postgres", "x = ANY (ARRAY['sad'::public.mood])", "x IN ('sad')"),
    ("postgres", "x > ANY (ARRAY[1, 2])", "(x > 1 OR x > 2)"),
    ("postgres", "x ~~ ANY (ARRAY['a%'::text, 'b%'::text])", "(x LIKE 'a%' OR x LIKE 'b%')"),
    ("postgres", "x !~~ ALL (ARRAY['a%'::text, 'b%'::text])", "(x NOT LIKE 'a%' AND x NOT LIKE 'b%')"),
    ("postgres", "x ~ similar_to_escape('[A%]_.%'::text)", r"REGEXP_MATCHES(x, '^(?:[A%].\..*)$')"),
    ("postgres", "octet_length(x) = 3", "STRLEN(x) = 3"),
    ("postgres", "x = ANY ('{{a},{b}}'::text[])", "x = ANY(CAST('{{a},{b}}' AS TEXT[]))"),
    ("postgres", "x = ANY (y)", "x = ANY(y)"),
    ("mysql", "(`x` in (_utf8mb4'a',_utf8mb4'b'))", "x IN ('a', 'b')"),
    ("mysql", "regexp_like(`x`,_utf8mb4'^a$')", "REGEXP_MATCHES(x, '^a$')"),
    ("mysql", "(length(`x`) <= 4)", "STRLEN(x) <= 4"),
]


@pytest.mark.parametrize(("dialect", "check", "plain"), IN_ALL_WORDS, ids=[c[1] for c in IN_ALL_WORDS])
def test_a_check_is_read_in_words_that_all_systems_share(dialect: str, check: str, plain: str) -> None:
    tree = sqlglot.parse_one(check, dialect=dialect).unnest()
    assert expression_of(tree, where="").spelled(lambda name: name).sql == plain


def test_a_check_that_a_column_is_not_null_makes_it_required() -> None:
    text = "CREATE TABLE t (x INT CHECK (x IS NOT NULL AND y > 1), y INT CHECK (y IS NOT NULL OR x > 1), z INT)"
    assert [c.nullable for c in parse_ddl(text, where="test").tables[0].columns] == [False, True, True]


def test_arrays_in_arrays_of_comparisons_do_not_grow_beyond_bounds() -> None:
    nested = "x"
    for _ in range(12):
        nested = f"({nested} > ANY (ARRAY[1, 2, 3, 4, 5, 6, 7, 8, 9]))"
    assert len(expression_of(sqlglot.parse_one(nested, dialect="postgres"), where="").sql) < 20_000


def test_what_is_nested_too_deeply_is_refused() -> None:
    tree = sqlglot.parse_one("x", dialect="postgres")
    for _ in range(900):
        tree = exp.paren(tree, copy=False)
    with pytest.raises(SpecError):
        expression_of(tree, where="")


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (Dialect.DUCKDB, "STRLEN(x) <= 3"),
        (Dialect.SQLITE, "LENGTH(CAST(x AS BLOB)) <= 3"),
        (Dialect.ANSI, "OCTET_LENGTH(x) <= 3"),
    ],
)
def test_the_bytes_of_a_text_are_counted_in_every_system(dialect: Dialect, text: str) -> None:
    [check] = parse_ddl("CREATE TABLE t (x VARCHAR(9) CHECK (octet_length(x) <= 3))", where="test").tables[0].checks
    assert str(check_text(check, dialect)).replace('"', "") == text


@pytest.mark.parametrize(
    ("check", "known"),
    [("x ~ '^[A-Z]$'", False), ("starts_with(x, 'a')", False), ("x LIKE 'a%'", True), ("x IN ('a', 'b')", True)],
)
def test_a_check_that_sqlite_cannot_work_out_is_not_written_there(check: str, known: bool) -> None:
    [rule] = parse_ddl(f"CREATE TABLE t (x VARCHAR(9) CHECK ({check}))", where="test").tables[0].checks
    assert (check_text(rule, Dialect.SQLITE) is not None) == known
    assert check_text(rule, Dialect.DUCKDB) is not None
