"""SQL in and out: two-line cases, round trips of made queries in every dialect, and files."""

from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.encode.predicate import Between, In, IsNull, Prefix
from privbench.errors import SourceError, SpecError, TargetError
from privbench.io.ddl import parse_ddl
from privbench.workload.literal import QueryDialect
from privbench.workload.query import ColumnRef, Filter, Join, Literals, Query, Statement, TableRef, Workload
from privbench.workload.sql import parse_workload, read_workload, workload_text, write_workload
from privbench.workload.statement import render

LINES = (Path(__file__).parent / "cases.sql").read_text(encoding="utf-8").splitlines()[1:]
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
ODD = st.sampled_from(
    ["it's", 'say "x"', "`tick`", "back\\slash", "%", "_", "!", "50%!_\\", "é名", "--", "/*", ";", ""]
)
TEXT = ODD | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = NUMBERS | TEXT | st.booleans() | st.sampled_from(["2020-02-29", "2020-02-29 13:45:00", "12.340"])
ENDS = st.none() | SCALARS
PREDICATES = (
    st.builds(Between, low=ENDS, high=ENDS, include_low=st.booleans(), include_high=st.booleans()).filter(
        lambda b: b.low is not None or b.high is not None
    )
    | st.builds(In, values=st.lists(SCALARS, min_size=1, max_size=4).map(tuple))
    | st.builds(IsNull, negated=st.booleans())
    | st.builds(Prefix, text=TEXT)
)


@st.composite
def queries(draw: st.DrawFn) -> Query:
    aliases = draw(st.lists(NAMES, min_size=1, max_size=3, unique_by=str.casefold))
    tables = tuple(TableRef(table=draw(NAMES), alias=a) for a in aliases)
    columns = st.builds(ColumnRef, alias=st.sampled_from(aliases), column=NAMES)
    pairs = st.tuples(columns, columns).filter(lambda p: p[0].alias != p[1].alias)
    joins = draw(st.lists(pairs, max_size=2)) if len(aliases) > 1 else []
    filters = draw(st.lists(st.builds(Filter, column=columns, predicate=PREDICATES), max_size=4))
    return Query(tables=tables, joins=tuple(Join(left=a, right=b) for a, b in joins), filters=tuple(filters))


def only(sql: str, dialect: QueryDialect = QueryDialect.DUCKDB) -> Statement:
    (statement,) = parse_workload(sql, dialect=dialect).statements
    return statement


@pytest.mark.parametrize(("sql", "expected"), list(zip(LINES[::2], LINES[1::2], strict=True)))
def test_case(sql: str, expected: str) -> None:
    statement = only(sql)
    found = f"-- {statement.reason}" if statement.query is None else render(statement.query)
    assert found == expected
    assert statement.sql == sql.rstrip(";")


@pytest.mark.parametrize("dialect", QueryDialect)
@settings(max_examples=60)
@given(query=queries())
def test_a_query_comes_back_as_it_went_in(dialect: QueryDialect, query: Query) -> None:
    statement = only(render(query, dialect), dialect)
    assert statement.query == query, statement.reason


@settings(max_examples=30)
@given(query=queries(), cardinality=st.none() | st.integers(0, 10**12))
def test_a_file_comes_back_as_it_went_in(query: Query, cardinality: int | None) -> None:
    statement = Statement(number=1, sql=render(query), query=query, cardinality=cardinality)
    workload = Workload(statements=(statement,), literals=Literals.REAL)
    assert parse_workload(workload_text(workload)) == workload


@settings(max_examples=40)
@given(prefix=TEXT, texts=st.lists(TEXT, max_size=5))
def test_a_rendered_prefix_means_the_same_to_a_database(prefix: str, texts: list[str]) -> None:
    query = Query(
        tables=(TableRef(table="t", alias="t"),),
        filters=(Filter(column=ColumnRef(alias="t", column="c"), predicate=Prefix(text=prefix)),),
    )
    values = [*texts, prefix, prefix + "tail"]
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT UNNEST(?::VARCHAR[]) AS c", [values])
        found = con.execute(render(query)).fetchone()
    assert found == (sum(v.startswith(prefix) for v in values),)


def test_backslashes_in_patterns_follow_the_dialect() -> None:
    sql = r"SELECT COUNT(*) FROM t WHERE a LIKE 'x\_%'"
    assert only(sql, QueryDialect.POSTGRES).query == only("SELECT COUNT(*) FROM t WHERE a LIKE 'x!_%' ESCAPE '!'").query
    assert only(sql, QueryDialect.DUCKDB).reason == "has a LIKE whose pattern is not a prefix"


def test_cardinalities_comments_and_missing_semicolons() -> None:
    text = (
        "-- a comment; with a semicolon\n12||SELECT COUNT(*) FROM t -- more\nWHERE a = ';'\n7||SELECT SUM(a) FROM t;;\n"
    )
    found = parse_workload(text).statements
    assert [(s.number, s.cardinality, s.query is None) for s in found] == [(1, 12, False), (2, 7, True)]
    assert found[1].sql == "SELECT SUM(a) FROM t"


def test_what_cannot_be_parsed_is_kept_with_its_reason() -> None:
    workload = parse_workload("SELECT FROM WHERE; SELECT COUNT(*) FROM t")
    assert [s.query is None for s in workload.statements] == [True, False]
    assert "not SQL" in str(workload.outside[0].reason)
    assert workload.outside[0].sql == "SELECT FROM WHERE"


def test_a_schema_finds_the_table_of_a_column() -> None:
    schema = parse_ddl("CREATE TABLE a (x INTEGER, y INTEGER); CREATE TABLE b (z INTEGER);", where="schema.sql")
    (statement,) = parse_workload("SELECT COUNT(*) FROM a, b WHERE X = z", schema=schema).statements
    assert statement.query is not None
    assert statement.query.joins == (
        Join(left=ColumnRef(alias="a", column="X"), right=ColumnRef(alias="b", column="z")),
    )


def test_the_header_says_where_literals_come_from(tmp_path: Path) -> None:
    for literals in (None, *Literals):
        workload = Workload(statements=(only("SELECT COUNT(*) FROM t"),), literals=literals)
        write_workload(workload, tmp_path / "w.sql", force=True)
        assert read_workload(tmp_path / "w.sql") == workload


@pytest.mark.parametrize("literals", [Literals.MODEL, Literals.TRANSLATED])
def test_a_file_that_was_changed_says_nothing_of_its_literals(literals: Literals) -> None:
    text = workload_text(Workload(statements=(only("SELECT COUNT(*) FROM t"),), literals=literals))
    assert parse_workload(text).literals is literals
    for changed in (text + "SELECT 1;\n", text.replace("COUNT", "count"), "\n" + text, f"SELECT 1;\n{text}"):
        assert parse_workload(changed).literals is None


def test_real_literals_are_real_wherever_the_file_says_so() -> None:
    real = workload_text(Workload(statements=(only("SELECT COUNT(*) FROM t"),), literals=Literals.REAL))
    model = workload_text(Workload(statements=(only("SELECT COUNT(*) FROM t"),), literals=Literals.MODEL))
    assert parse_workload(real + "SELECT 2;").literals is Literals.REAL
    assert parse_workload(model + real).literals is Literals.REAL


@settings(max_examples=60)
@given(note=TEXT | st.sampled_from(["a\nDROP TABLE t;", "*/ DROP TABLE t; /*", "\r\nx", "\u2028x", "\x1b[31m", "\0"]))
def test_a_note_is_one_comment_whatever_it_holds(note: str) -> None:
    workload = Workload(statements=(only("SELECT COUNT(*) FROM t"),), literals=Literals.MODEL, notes=(note,))
    text = workload_text(workload)
    assert parse_workload(text) == workload
    lines = text.splitlines()
    assert lines[-1] == "SELECT COUNT(*) FROM t;"
    assert all(line.startswith("-- ") for line in lines[:-1])
    assert "*/" not in text
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), (b"", "no statement"), (b"-- only words\n", "no statement"), (b"\xff\xfe;", "UTF-8"),
     (b"SELECT 'never ends", "is not SQL")],
)  # fmt: skip
def test_bad_files(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "w.sql").write_bytes(content)
    with pytest.raises(SourceError, match=message):
        read_workload(tmp_path / "w.sql")


def test_an_existing_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "w.sql").write_text("mine")
    with pytest.raises(TargetError):
        write_workload(Workload(statements=()), tmp_path / "w.sql")
    assert (tmp_path / "w.sql").read_text() == "mine"


def test_a_query_checks_its_names() -> None:
    with pytest.raises(SpecError, match="no table u"):
        Query(
            tables=(TableRef(table="t", alias="t"),),
            filters=(Filter(column=ColumnRef(alias="u", column="a"), predicate=IsNull()),),
        )
