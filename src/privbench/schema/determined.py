"""Columns that another column of the same row determines: a team its league, a zip its city.

`determined_by` says so. With a `map`, which is public, or was learnt with budget, the column is computed from it like
any other; without one it is a column to learn, and a fit makes the map first (`fitting.determined`).
"""

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from privbench.errors import SpecError
from privbench.schema.domain import Scalar
from privbench.schema.expression import Expression, column_text, literal_text
from privbench.schema.unit import Protection

Pairs = Sequence[tuple[Scalar | None, Scalar | None]]
"""Values of the one column and of the other; None is NULL."""


def as_scalar(value: Any) -> Scalar:
    """Write a value as a spec does: dates, times and decimals are text.

    >>> as_scalar(dt.date(2020, 1, 31)), as_scalar(Decimal("1.50")), as_scalar(3)
    ('2020-01-31', '1.50', 3)
    """
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    scalar: Scalar = str(value) if isinstance(value, Decimal) else value
    return scalar


def map_expression(by: str, pairs: Pairs) -> Expression:
    """The map as an expression. What is not in it has the value that most of it has.

    >>> print(map_expression("team", [("BOS", "AL"), (None, None)]))
    CASE WHEN team IS NULL THEN NULL ELSE CASE team WHEN 'BOS' THEN 'AL' ELSE 'AL' END END
    """
    name = column_text(by)
    values = [value for key, value in pairs if key is not None]
    usual = literal_text(max(dict.fromkeys(values), key=values.count) if values else None)
    cases = " ".join(f"WHEN {literal_text(key)} THEN {literal_text(value)}" for key, value in pairs if key is not None)
    known = f"CASE {name} {cases} ELSE {usual} END" if cases else usual
    null = next((literal_text(value) for key, value in pairs if key is None), usual)
    return Expression(sql=f"CASE WHEN {name} IS NULL THEN {null} ELSE {known} END")


def check_determined(protection: Protection) -> None:
    """Refuse a determined column whose determining one cannot be. Raises SpecError naming its path in the spec."""
    for table in protection.schema.tables:
        determined = {c.name: c.determined_by for c in table.columns if c.determined_by is not None}
        for name, by in determined.items():
            where = f"tables.{table.name}.columns.{name}.determined_by"
            if table.name not in protection.order:
                raise SpecError(f"{where}: {table.name} is public and copied as it is. Take this out.")
            if name in table.surrogate_columns or any(name in key for key in table.keys):
                raise SpecError(f"{where}: the column is in a key, whose values are generated. Take this out.")
            others = [c for c in table.columns if c.name in table.attributes or c.computed is not None]
            if by == name or by not in {c.name for c in others}:
                choices = ", ".join(c.name for c in others if c.name != name) or "none"
                raise SpecError(
                    f"{where}: {by} is no other learnt or computed column of {table.name}, or it is dropped. "
                    f"Choices: {choices}."
                )
            path = [name]
            while (after := determined.get(path[-1])) is not None:
                if after in path:
                    circle = " -> ".join([*path, after])
                    raise SpecError(f"{where}: {circle} determine each other in a circle. Take one out.")
                path.append(after)
