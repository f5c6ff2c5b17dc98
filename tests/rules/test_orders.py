"""Which rules say that a column is never above another."""

import pytest

from privbench.rules.orders import orders_in
from privbench.schema.expression import ColumnName, parse_expression

A, B, ABOVE = ColumnName(None, "a"), ColumnName(None, "b"), ColumnName("owner", "a")


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("a <= b", [(A, B, "a <= b")]),
        ("a < b", [(A, B, "a < b")]),
        ("a >= b", [(B, A, "b <= a")]),
        ("a > b", [(B, A, "b < a")]),
        ("(a) <= (b)", [(A, B, "(a) <= (b)")]),
        ("owner.a <= a", [(ABOVE, A, "owner.a <= a")]),
        ("a BETWEEN owner.a AND b", [(ABOVE, A, "owner.a <= a"), (A, B, "a <= b")]),
        ("a <= b AND (b < owner.a AND a > 3)", [(A, B, "a <= b"), (B, ABOVE, "b < owner.a")]),
        ("a IS NULL OR a <= b", [(A, B, "a <= b")]),
        ("b IS NULL OR (a IS NULL OR a <= b)", [(A, B, "a <= b")]),
        ("YEAR(owner.a) <= a", [(ABOVE, A, "YEAR(owner.a) <= a")]),
    ],
)
def test_comparisons_of_two_columns_are_read(rule: str, found: list[tuple[ColumnName, ColumnName, str]]) -> None:
    orders = orders_in([parse_expression(rule, where="")])
    assert [(order.low, order.high, str(order.comparison)) for order in orders] == found


@pytest.mark.parametrize(
    "rule",
    [
        "a <= 3",
        "a = b",
        "a <> b",
        "NOT a <= b",
        "a <= b OR a > 3",
        "c IS NULL OR a <= b",
        "a IS NOT NULL OR a <= b",
        "a <= b + 1",
        "-a <= b",
        "MONTH(a) <= MONTH(b)",
        "a <= a",
        "CASE WHEN a > 1 THEN a <= b END",
    ],
)
def test_all_else_is_passed_over(rule: str) -> None:
    assert list(orders_in([parse_expression(rule, where="")])) == []
