from collections.abc import Iterator

import pytest

from privbench.evaluation.cardinality import Cardinality, count_all, joins_of
from privbench.evaluation.databases import Database, Side, open_pair
from privbench.methods.method import silent
from privbench.workload.query import Statement
from privbench.workload.sql import parse_workload

from .conftest import REAL, SYNTHETIC, Make


@pytest.fixture
def database(make: Make) -> Iterator[Database]:
    with open_pair(make("real", REAL), make("synthetic", SYNTHETIC), silent) as opened:
        yield opened


def run(database: Database, sql: str, side: Side = Side.REAL, timeout: float = 60) -> Cardinality:
    statement = parse_workload(sql).statements[0]
    [found] = count_all(database, side, [statement], timeout=timeout, progress=silent)
    return found


@pytest.mark.mostly_slow
@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("SELECT COUNT(*) FROM customer", 60),
        ("SELECT COUNT(id) FROM customer", 60),
        ("SELECT COUNT(DISTINCT age) FROM customer WHERE age < 3", 3),
        ("(SELECT COUNT(*) FROM customer)", 60),
        ("SELECT COUNT(*) FROM sale s, customer c WHERE s.customer_id = c.id AND c.age < 0", 0),
        ("SELECT count(*) AS n FROM customer WHERE age = 1 OR age = 2", 18),
        ("SELECT city, count(*) FROM customer GROUP BY city", 3),
        ("SELECT id FROM customer ORDER BY id LIMIT 7", 7),
        ("SELECT max(age) FROM customer", 1),
        ("WITH old AS (SELECT * FROM customer WHERE age = 6) SELECT id, age FROM old ORDER BY id", 8),
        ("WITH old AS (SELECT * FROM customer WHERE age = 6) SELECT count(*) FROM old", 8),
        ("SELECT id FROM customer WHERE age = (SELECT max(age) FROM customer) ORDER BY id DESC LIMIT 5", 5),
        ("SELECT c.id, s.id FROM customer c LEFT JOIN sale s ON s.customer_id = c.id AND s.id < 0", 60),
        ("SELECT kind, count(*) FROM sale GROUP BY kind HAVING count(*) > (SELECT 99) LIMIT 1", 1),
        ("SELECT count(*) FROM sale UNION ALL SELECT count(*) FROM customer", 2),
        ("SELECT age FROM customer -- the last line\n;", 60),
    ],
)
def test_a_count_is_its_count_and_other_answers_their_rows(database: Database, sql: str, count: int) -> None:
    found = run(database, sql)
    assert (found.count, found.error) == (count, None)


def test_each_side_answers_for_itself(database: Database) -> None:
    assert run(database, "SELECT COUNT(*) FROM sale").count == 200
    assert run(database, "SELECT COUNT(*) FROM sale", Side.SYNTHETIC).count == 230


@pytest.mark.mostly_slow
@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT COUNT(*) FROM nothing", "nothing"),
        ("SELECT COUNT(*) FROM customer WHERE city::INTEGER = 1", "Ulm"),
        ("SELECT COUNT(*) FROM `customer`", "not understood"),
        ("DROP TABLE customer", "not a single SELECT"),
        ("COPY customer TO 'here.csv'", "not a single SELECT"),
        ("SELECT COUNT(*) FROM read_csv('/etc/passwd')", "disabled"),
        ("SELECT COUNT(*) FROM customer GROUP BY age HAVING age > 100", None),
    ],
)
def test_what_goes_wrong_is_said_and_not_raised(database: Database, sql: str, reason: str | None) -> None:
    found = run(database, sql)
    if reason is None:
        assert found.count == 0
    else:
        assert found.count is None
        assert reason in (found.error or "")
    assert run(database, "SELECT COUNT(*) FROM customer").count == 60


@pytest.mark.slow
def test_a_query_that_takes_too_long_is_stopped(database: Database) -> None:
    found = run(
        database,
        "SELECT COUNT(*) FROM sale a, sale b, sale c, sale d, sale e, sale f "
        "WHERE a.amount + b.amount + c.amount > d.amount + e.amount + f.amount",  # hours, on any machine
        timeout=0.2,
    )
    assert found.error == "stopped after 0.2 s"
    assert found.seconds < 60
    assert run(database, "SELECT COUNT(*) FROM customer").count == 60


def test_joins_are_counted_for_queries_of_the_class_only() -> None:
    inside, outside = parse_workload(
        "SELECT COUNT(*) FROM a, b, c WHERE a.x = b.x AND b.y = c.y; SELECT max(x) FROM a"
    ).statements
    assert (joins_of(inside), joins_of(outside)) == (2, None)
    assert joins_of(Statement(number=1, sql="SELECT")) is None
