"""CHECK constraints: one line each, the CHECK and the domain it implies."""

import pytest

from privbench.io.ddl import parse_ddl
from privbench.schema.domain import Domain, Range, Values

CASES: list[tuple[str, str, Domain | None]] = [
    ("VARCHAR", "x IN ('a', 'b''c')", Values(values=("a", "b'c"))),
    ("VARCHAR", "((x)::text = ANY ((ARRAY['a'::varchar, 'b'::varchar])::text[]))", Values(values=("a", "b"))),
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
    ("DECIMAL(5,2)", "x BETWEEN 0 AND 9.99", Range(range=("0.00", "9.99"))),
    ("DATE", "x BETWEEN '2020-01-31' AND '2020-02-29'", Range(range=("2020-01-31", "2020-02-29"))),
    ("INT", "x BETWEEN 0 AND 1000000", None),
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
