"""Rules over keys that are known only when rows are numbered: a row's own number, and keys to rows of its own table.

Such a row cannot be drawn again. A key that may be NULL is made so where the rule would be broken; other rules must
hold whatever the numbers are.
"""

from collections.abc import Sequence

from privbench.model.order import is_numbered
from privbench.schema.expression import Expression
from privbench.schema.tables import Table


def split_rules(table: Table) -> tuple[list[Expression], list[Expression]]:
    """The rules of a table over keys that are known last, and the others."""
    last = set(table.primary_key) if is_numbered(table, table.primary_key) else set()
    last |= {c for key in table.foreign_keys if key.table == table.name for c in key.columns}
    late = [rule for rule in table.checks if any(name.table is None and name.column in last for name in rule.columns)]
    return late, [rule for rule in table.checks if rule not in late]


def nulled_columns(table: Table, rules: Sequence[Expression]) -> tuple[str, ...]:
    """The columns of foreign keys that rules name and that can be NULL: with NULL, most rules hold."""
    names = {name.column for rule in rules for name in rule.columns if name.table is None}
    keys = [key.columns for key in table.foreign_keys if set(key.columns) & names]
    return tuple(dict.fromkeys(c for columns in keys for c in columns if table.column(c).nullable))
