"""Expressions are worked out as a database would, and never fail because of a value."""

import pyarrow as pa
import pytest

from privbench.errors import SpecError
from privbench.rules.evaluate import Evaluator
from privbench.schema.expression import ColumnName, parse_expression

OWN = ColumnName(None, "a b")
ABOVE = ColumnName("Order", "day")


def test_own_columns_and_those_above_are_told_apart() -> None:
    expression = parse_expression('"a b" > "Order".day', where="rule")
    types = {OWN: pa.date32(), ABOVE: pa.date32()}
    with Evaluator([expression], types, where="rule") as evaluator:
        (holds,) = evaluator.values({OWN: pa.array([2, 3, None], pa.date32()), ABOVE: pa.array([1, 9, 1], pa.date32())})
    assert holds.to_pylist() == [True, False, None]


def test_a_row_that_fails_is_null() -> None:
    expression = parse_expression('CAST("a b" AS TINYINT) > 0', where="rule")
    with Evaluator([expression], {OWN: pa.int64()}, where="rule") as evaluator:
        assert evaluator.values({OWN: pa.array([1000, 7])})[0].to_pylist() == [None, True]


@pytest.mark.parametrize(
    "sql",
    ["(SELECT 1)", "ROW_NUMBER() OVER ()", "COUNT(*)", "a; DROP TABLE t", "a >", "?", "x" * 10_001, "(" * 5000 + ")"],
)
def test_what_looks_beyond_a_row_is_refused(sql: str) -> None:
    with pytest.raises(SpecError, match="rule 7"):
        parse_expression(sql, where="rule 7")


@pytest.mark.parametrize("sql", ["no_such_function(a)", "b > 1", "a + interval '1 day'"])
def test_what_cannot_be_worked_out_is_refused(sql: str) -> None:
    with pytest.raises(SpecError, match="rule 7"):
        Evaluator([parse_expression(sql, where="rule 7")], {ColumnName(None, "a"): pa.int32()}, where="rule 7")
