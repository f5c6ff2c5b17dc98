"""Columns that are computed from the rows around them, before a fit: which they are, and which cannot be."""

from privbench.errors import SpecError
from privbench.model.order import generation_order, referenced_ahead
from privbench.schema.computed import equal_columns
from privbench.schema.spec import Spec
from privbench.schema.unit import Protection


def computed_columns(protection: Protection) -> tuple[str, ...]:
    """Say which columns are computed, and what they equal."""
    columns = [(table.name, column) for table in protection.schema.tables for column in table.columns]
    return tuple(f"{table}.{c.name} = {c.computed}" for table, c in columns if c.computed is not None)


def check_counted(spec: Spec, protection: Protection) -> None:
    """Refuse columns that count rows of a table whose number is promised before its owners' are drawn."""
    equal = {(t, c): equals for t in protection.order for c, equals in equal_columns(protection, t).items()}
    counting = {place: equals.rows for place, equals in equal.items() if equals.rows is not None}
    ahead = referenced_ahead(protection, generation_order(spec, protection, owners_first=True)) if counting else ()
    for (table, column), child in counting.items():
        if child in ahead:
            raise SpecError(
                f"tables.{table}.columns.{column}.computed: other tables reference rows of {child} before {child} "
                "is generated, so the number of its rows is already fixed. Take this out, and give the column a "
                "domain; or take such a key out of `foreign_keys`."
            )
