"""Partitions of a PostgreSQL table as a rule on its rows: where there is no default one, rows outside have no place."""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation

from privbench.io.names import quote_sql

_KEY = re.compile(r"(?:RANGE|LIST) \((.+)\)", re.IGNORECASE)
_RANGE = re.compile(r"FOR VALUES FROM \((.+)\) TO \((.+)\)")
_LIST = re.compile(r"FOR VALUES IN \((.+)\)")


def partition_rule(key: str, bounds: Sequence[str], columns: Iterable[str]) -> str | None:
    """The rule that partitions put on the one column that they go by; None for several, or if any value has a place.

    >>> partition_rule("RANGE (at)", ["FOR VALUES FROM (1) TO (5)", "FOR VALUES FROM (5) TO (20)"], ["id", "at"])
    '"at" >= 1 AND "at" < 20'
    """
    match = _KEY.fullmatch(key)
    wanted = match[1].strip() if match else ""
    column = next((c for c in columns if wanted in (c, quote_sql(c))), None)
    if column is None or not bounds or "DEFAULT" in bounds:
        return None
    lists = [m[1] for bound in bounds if (m := _LIST.fullmatch(bound))]
    ranges = [(m[1], m[2]) for bound in bounds if (m := _RANGE.fullmatch(bound))]
    if len(lists) == len(bounds) and not any("NULL" in values for values in lists):
        return f"{quote_sql(column)} IN ({', '.join(lists)})"
    return _between(quote_sql(column), ranges) or None if len(ranges) == len(bounds) else None


def _between(name: str, ranges: list[tuple[str, str]]) -> str:
    """From the lowest bound to the highest; one that is not there bounds nothing."""
    lows, highs = [low for low, _ in ranges], [high for _, high in ranges]
    terms = []
    if "MINVALUE" not in lows:
        terms.append(f"{name} >= {min(lows, key=_order)}")
    if "MAXVALUE" not in highs:
        terms.append(f"{name} < {max(highs, key=_order)}")
    return " AND ".join(terms)


def _order(literal: str) -> tuple[Decimal, str]:
    """Numbers by their size, dates and texts as they are written."""
    try:
        return Decimal(literal.strip("'")), ""
    except InvalidOperation:
        return Decimal(0), literal
