"""Columns that are computed from the rows around them, before a fit: which they are, and which cannot be."""

import logging
from collections.abc import Iterator

import pyarrow as pa

from privbench.errors import SpecError
from privbench.io.base import Source, read_whole
from privbench.model.order import generation_order, referenced_ahead
from privbench.rules.computed import ComputedQuery, is_compared
from privbench.schema.computed import computed_order, equal_columns
from privbench.schema.spec import Spec
from privbench.schema.tables import Column, Table
from privbench.schema.unit import Protection

_logger = logging.getLogger(__name__)
COMPARED_ROWS = 2**20
"""So many rows are compared at a time, where an expression looks at no other rows."""


def computed_columns(protection: Protection) -> tuple[str, ...]:
    """Say which columns are computed, and what they equal."""
    columns = [(table.name, column) for table in protection.schema.tables for column in table.columns]
    return tuple(f"{table}.{c.name} = {_shown(c)}" for table, c in columns if c.computed is not None)


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


def tell_differing(source: Source, protection: Protection) -> None:
    """Tell the publisher in how many rows a computed column is not what its expression says. Nothing is spent yet."""
    for table, column in computed_order(protection):
        if not is_compared(protection, (table, column)):
            continue
        query = ComputedQuery(protection, (table, column))
        if any(name in protection.made_up for name in query.columns):
            continue  # none of whose rows is read
        differing = sum(map(query.run, _pieces(source, protection, query)))
        if differing:
            _logger.warning(
                "%s.%s: in %s of %s rows it is not %s. In synthetic rows it always is. These numbers are for you "
                "alone; they are not published.",
                table,
                column,
                f"{differing:,}",
                f"{source.rows(table):,}",
                _shown(protection.schema.table(table).column(column)),
            )


def _pieces(source: Source, protection: Protection, query: ComputedQuery) -> Iterator[dict[str, pa.Table]]:
    """What a query reads: all of it, or some rows at a time if it looks at those of one table alone."""
    wanted = {
        name: tuple(c for c in protection.schema.table(name).columns if c.name in columns)
        for name, columns in query.columns.items()
    }
    if len(wanted) > 1:
        yield {name: read_whole(source, name, columns) for name, columns in wanted.items()}
        return
    [(name, columns)] = wanted.items()
    held: list[pa.RecordBatch] = []
    for batch in source.read(Table(name=name, columns=columns)):
        held.append(batch)
        if sum(one.num_rows for one in held) >= COMPARED_ROWS:
            yield {name: pa.Table.from_batches(held)}
            held = []
    if held:
        yield {name: pa.Table.from_batches(held)}


def _shown(column: Column) -> str:
    return str(column.computed) if column.determined_by is None else f"what {column.determined_by} determines"
