"""How long it will take to generate a database, and how large it will be: from the model alone, before it is made."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log2
from pathlib import Path

from privbench.generation.sizes import Sizes, planned_rows
from privbench.io.base import Format
from privbench.model.model import Model
from privbench.schema.tables import Column, Table
from privbench.schema.types import Kind
from privbench.schema.unit import Protection

START = 0.6
"""CPU-seconds for all that does not grow, loading libraries included: `generate` of rows8-1e3 in bench/scale.py."""
PER_VALUE = {Format.PARQUET: 50e-9, Format.CSV: 80e-9, Format.DUCKDB: 150e-9, Format.SQLITE: 350e-9}
"""CPU-seconds to draw a value and write it: `generate` of rows8-1e7 and job, of rows8-1e6 for other formats. A format
that is not named is taken for CSV."""
KEY_BYTES = 0.1
"""A key that counts up, or that of an owner, takes hardly anything in Parquet: it is its step that is stored."""
STRING_BYTES = 12
"""A made-up string is about this long."""
TEXT_BYTES = 6
"""A number or a date, with what stands between two, as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What generating a database takes, roughly."""

    rows: int
    seconds: float
    """Of processor time."""
    megabytes: float
    """On disk."""


def forecast_generation(model: Model, *, scale: float, form: str) -> Forecast:
    """Forecast a bundle of a model at a scale, in a format."""
    planned = planned_rows(model, scale)
    tables = [table for table in model.protection.schema.published().tables if planned.get(table.name)]
    values = sum(planned[table.name] * len(table.columns) for table in tables)
    size = sum(planned[t.name] * sum(_bytes(model, t, planned, form)) for t in tables)
    per_value = next((cost for known, cost in PER_VALUE.items() if known == form), PER_VALUE[Format.CSV])
    return Forecast(rows=sum(planned[t.name] for t in tables), seconds=START + values * per_value, megabytes=size / 1e6)


def lacking_room(out: Path, megabytes: float) -> str | None:
    """Say it if the disk of a target, whose folder exists, has less room than a forecast asks for."""
    free = shutil.disk_usage(out.absolute().parent).free / 1e6
    if free >= megabytes:
        return None
    return (
        f"{out}: will take roughly {megabytes:,.0f} MB, and its disk has {free:,.0f} MB free. Choose another disk, or "
        "a smaller `--scale`."
    )


def _bytes(model: Model, table: Table, planned: Sizes, form: str) -> Iterator[float]:
    """The bytes of each column of a row."""
    climbing = _climbing(model.protection, table.name)
    targets = {column: key.table for key in table.foreign_keys for column in key.columns}
    for column in table.columns:
        codec = model.codecs.get(table.name, {}).get(column.name)
        codes = planned[targets.get(column.name, table.name)] if codec is None else codec.size
        if form != Format.PARQUET:
            yield _as_text(column)
        elif column.name in climbing and column.type.kind is Kind.INTEGER:
            yield KEY_BYTES
        else:
            yield _packed(column, codes)


def _climbing(protection: Protection, table: str) -> set[str]:
    """The columns whose numbers go up from row to row: a key of one column, and that of the owner."""
    key = protection.schema.table(table).primary_key
    owner = protection.owners.get(table)
    return {*(key if len(key) == 1 else ()), *(owner.columns if owner else ())}


def _packed(column: Column, codes: int) -> float:
    """In Parquet, a value of few different ones takes the bits of its number."""
    bits = ceil(log2(max(codes, 2)))
    return bits / 8 if bits <= 16 else STRING_BYTES if column.type.kind is Kind.TEXT else min(bits / 8, 8)


def _as_text(column: Column) -> float:
    return STRING_BYTES if column.type.kind is Kind.TEXT else TEXT_BYTES
