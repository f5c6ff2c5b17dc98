"""Whether the columns that a schema declares are those that a table has, as far as spelling without case goes."""

from collections.abc import Sequence

from privbench.errors import SourceError
from privbench.io.names import Names
from privbench.schema.tables import Table


def check_columns(table: Table, stored: Sequence[str], *, schema: str, place: str) -> None:
    """Refuse a table whose columns are not the declared ones: which are meant is not ours to guess."""
    known, declared = Names(stored), Names(c.name for c in table.columns)
    for column in table.columns:
        if known.find(column.name) is None:
            raise SourceError(f"{table.name}.{column.name}: declared in {schema}, but not in {place}.")
    for name in stored:
        if declared.find(name) is None:
            raise SourceError(
                f"{table.name}.{name}: in {place}, but not in {schema}. Declare it there; a column can be "
                "left out with `drop: true` in the spec."
            )
