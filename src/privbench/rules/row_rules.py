"""Which rows break which rules of their table: asked of real rows before a fit, and of synthetic ones as they are made.

As in SQL, a row keeps a rule whose value is NULL. A row in which a rule cannot be worked out breaks it: a database that
had the rule as a CHECK would not take the row.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.errors import SpecError
from privbench.rules.evaluate import Evaluator, Values
from privbench.schema.expression import ColumnName, Expression
from privbench.schema.functions import why_refused
from privbench.schema.tables import Schema, Table


class RowRules:
    """Some rules of a table. A context manager: it holds a connection."""

    def __init__(self, rules: Sequence[Expression], types: Mapping[ColumnName, pa.DataType], *, where: str) -> None:
        """`types` are those of all columns that the rules name. SpecError if a rule cannot be worked out."""
        self.rules = tuple(rules)
        self._evaluator = Evaluator([_kept(rule) for rule in rules], types, where=where)

    @classmethod
    def of(cls, table: Table, schema: Schema, rules: Sequence[Expression]) -> Self:
        """Rules of a table; the columns of rows above it are found in the schema."""
        return cls(rules, types_in(rules, table, schema), where=f"tables.{table.name}.rules")

    @property
    def columns(self) -> tuple[ColumnName, ...]:
        """The columns that the rules name."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in rule.columns))

    def broken(self, rows: Values) -> NDArray[np.bool_]:
        """Which rows break which rule."""  # (rules, rows)
        kept = [values.fill_null(False).to_numpy(zero_copy_only=False) for values in self._evaluator.values(rows)]
        return ~np.stack(kept).astype(bool)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._evaluator.close()


def types_in(rules: Sequence[Expression], table: Table, schema: Schema) -> dict[ColumnName, pa.DataType]:
    """The Arrow types of the columns that rules of a table name."""
    names = dict.fromkeys(name for rule in rules for name in rule.columns)
    owners = {name: table if name.table is None else schema.table(name.table) for name in names}
    return {name: owner.column(name.column).type.arrow for name, owner in owners.items()}


def why_not(rule: Expression, table: Table, schema: Schema) -> str | None:
    """Say why a rule cannot be worked out; None if it can."""
    if rule.aggregated:
        return "it has an aggregate"
    columns = {c.name for c in table.columns}
    if unknown := next((n for n in rule.columns if n.table is None and n.column not in columns), None):
        return f"there is no column {unknown}"
    if (why := why_refused(rule.tree)) is not None:
        return why
    try:
        RowRules.of(table, schema, [rule]).close()
    except SpecError as error:
        return str(error).partition(": cannot be worked out: ")[2] or str(error)
    return None


def check_rules_work(schema: Schema) -> None:
    """Refuse rules that cannot be worked out. Raises SpecError naming the rule and the remedy."""
    for table in schema.tables:
        for rule in table.checks:
            if (why := why_not(rule, table, schema)) is not None:
                raise SpecError(
                    f"tables.{table.name}.rules: {rule}: cannot be worked out: {why}. Write it with functions that "
                    "DuckDB has and that give the same value each time, or take the rule out."
                )


def joined(rules: Sequence[Expression]) -> Iterator[tuple[list[int], set[str]]]:
    """The rules in groups that share no column of the row, with these columns.

    >>> from privbench.schema.expression import parse_expression
    >>> rules = [parse_expression(sql, where="") for sql in ("a < b", "c > 0", "b < d OR a > 9")]
    >>> [(places, sorted(columns)) for places, columns in joined(rules)]
    [([0, 2], ['a', 'b', 'd']), ([1], ['c'])]
    """
    groups: list[tuple[list[int], set[str]]] = []
    for place, rule in enumerate(rules):
        names = {name.column for name in rule.columns if name.table is None}
        touching = [group for group in groups if group[1] & names]
        groups = [group for group in groups if group not in touching]
        merged = [place for places, _ in touching for place in places]
        groups.append((sorted([*merged, place]), names.union(*(columns for _, columns in touching))))
    yield from sorted(groups, key=lambda group: group[0])


def _kept(rule: Expression) -> Expression:
    return Expression(sql=f"CAST(({rule.sql}) AS BOOLEAN) IS DISTINCT FROM FALSE")
