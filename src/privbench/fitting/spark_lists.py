"""Hidden lists on a Spark cluster: frames of the different keys that rows of their members have, as `lists` says."""

from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from privbench.fitting.spark_rows import CastColumns
from privbench.io.spark_source import SparkSource
from privbench.schema.lists import lists_of
from privbench.schema.tables import Table
from privbench.schema.unit import Protection
from privbench.spark.jobs import map_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def add_lists(source: SparkSource, protection: Protection) -> None:
    """Let a source have the hidden lists, too."""
    for table in lists_of(protection):
        source.add(table.name, _List(source, protection, table))


@dataclass(frozen=True, slots=True)
class _List:
    """Makes the rows of a list."""

    source: SparkSource
    protection: Protection
    table: Table

    def __call__(self) -> "DataFrame":
        from pyspark.sql import functions as f  # noqa: PLC0415  heavy and optional

        names = [column.name for column in self.table.columns]
        called = {name: f"c{i}" for i, name in enumerate(names)}
        key = [called[name] for name in self.table.primary_key]
        rows = reduce(lambda a, b: a.unionAll(b), (self._rows_of_member(member) for member in self.table.list_of))
        known = rows.filter(reduce(and_, (f.col(c).isNotNull() for c in key)))
        least = [f.min(c).alias(c) for c in called.values() if c not in key]
        found = known.groupBy(*key).agg(*least) if least else known.distinct()
        return found.select(*called.values()).toDF(*names)

    def _rows_of_member(self, member: str) -> "DataFrame":
        """The columns of the list in the rows of one of its members, cast first: numbers as text have another order."""
        key, held = self.protection.owners[member], self.protection.schema.table(member)
        of_member = dict(zip(key.references, key.columns, strict=True))
        columns = tuple(held.column(of_member.get(c.name, c.name)) for c in self.table.columns)
        cast = CastColumns(Table(name=member, columns=columns))
        return map_batches(self.source.frame(cast.table), cast, cast.sql_schema)
