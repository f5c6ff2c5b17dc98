"""How many rows each table is to have at a scale. Where rows are born with their owners, an expectation."""

import io
from collections.abc import Collection, Mapping

import pyarrow.parquet as pq

from privbench.generation.spans import most_rows_per_owner
from privbench.model.model import Model


def planned_rows(model: Model, scale: float) -> dict[str, int]:
    """How many rows each table is to have. One that has rows keeps at least one at any scale.

    A table with a NOT NULL key into a table without rows has none either.
    """
    private = model.protection.order
    planned = {n: pq.ParquetFile(io.BytesIO(content)).metadata.num_rows for n, content in model.public.items()}
    for name in private:
        rows = model.tables[name].rows
        planned[name] = max(round(rows * scale), 1 if rows >= 0.5 else 0)
    for _ in private:
        for link in (k for k in model.protection.links if k.table in private and planned[k.key.table] == 0):
            if not link.nullable:
                planned[link.table] = 0
    return planned


def within_reach(model: Model, planned: Mapping[str, int], promised: Collection[str]) -> dict[str, int]:
    """The same, but for promised tables no more rows than their owners can have."""
    found = dict(planned)
    for name in (n for n in model.protection.order if n in promised and n in model.protection.owners):
        owners = found[model.protection.owners[name].table]
        found[name] = min(found[name], owners * most_rows_per_owner(model, name, found))
    return found
