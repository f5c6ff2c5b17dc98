"""Runtimes in an evaluation: the real database twice, a resample and the synthetic one, all from the tables at hand."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from privbench.evaluation.databases import Database, Positions, Side, qualified
from privbench.evaluation.floors import MAX_ROWS
from privbench.evaluation.links import Key, Linked
from privbench.evaluation.resample import Links, Owner, Ownership, Resample, resample, write_resample
from privbench.io.base import BATCH_ROWS
from privbench.io.names import find_name, quote_sql
from privbench.methods.method import Progress
from privbench.runtime.figures import find_figures
from privbench.runtime.measure import measure
from privbench.runtime.result import AGAIN, REAL, RESAMPLE, SYNTHETIC, Runtime
from privbench.runtime.session import System, Variant
from privbench.schema.tables import Schema, Table
from privbench.workload.query import Statement

_APART = 100
"""So many free places lie between a row and its copy: some pages, whatever the width of rows."""


def measure_runtimes(
    system: System,
    database: Database,
    ownership: Ownership,
    keys: Mapping[Key, Linked],
    statements: Sequence[Statement],
    *,
    seed: int,
    timeout: float,
    progress: Progress,
) -> Runtime:
    """Measure the workload on all variants with the keys and indexes of the real schema."""
    sides = {REAL: Side.REAL, AGAIN: Side.REAL, RESAMPLE: Side.FLOOR, SYNTHETIC: Side.SYNTHETIC}
    if sum(loaded.rows for loaded in database.tables[Side.REAL].values()) > MAX_ROWS:
        del sides[RESAMPLE]
        database.skip("runtime", f"the real database has more than {MAX_ROWS:,} rows: no resample is measured")
    else:
        make_resample(database, ownership, keys, seed=seed)
    schema = loaded_schema(database)
    variants = [Variant(name=name, read=reader(database, side)) for name, side in sides.items()]
    measured = measure(system, schema, variants, statements, timeout=timeout, seed=seed, progress=progress)
    return find_figures(measured)


def make_resample(database: Database, ownership: Ownership, keys: Mapping[Key, Linked], *, seed: int) -> None:
    """Make the tables of a resample by entity, as the side FLOOR."""
    sizes = {name: loaded.rows for name, loaded in database.tables[Side.REAL].items()}
    links = {key: linked.real for key, linked in keys.items()}
    drawn = resample(ownership, sizes, links, seed=seed)
    write_resample(database, ownership.schema, in_real_order(drawn, ownership, sizes, links))


def in_real_order(sample: Resample, ownership: Ownership, sizes: Mapping[str, int], links: Links) -> Resample:
    """The same resample with rows where the real ones lie, since where rows lie matters to runtimes.

    Rows that lie in the order of their owners do so again. Of other tables, the first copy of a row keeps its place and
    further copies take the places of rows that were not drawn: side by side they would share pages as no real rows do.
    """
    orders: dict[str, Positions] = {}
    places: dict[str, Positions] = {}
    for table in (*(t for t in sample.rows if t not in ownership.owners), *ownership.owners):
        if table not in sample.rows:
            continue
        rows, owner = sample.rows[table], ownership.owners.get(table)
        if owner is not None and owner.table in places and _in_order(links.get((table, owner.key)), owner):
            orders[table] = np.lexsort((rows, places[owner.table][sample.links[table, owner.key]]))
        else:
            orders[table] = np.argsort(spread_copies(rows, sizes[table]), kind="stable")
        places[table] = np.argsort(orders[table])
    moved = {
        (table, key): np.append(places[key.table], -1)[parents][orders[table]]  # -1, no parent, is the last
        for (table, key), parents in sample.links.items()
    }
    return Resample(rows={table: rows[orders[table]] for table, rows in sample.rows.items()}, links=moved)


def spread_copies(rows: Positions, size: int) -> Positions:
    """A place for each row of a resample: its own, or for a further copy that of some row nearby that was not drawn.

    >>> spread_copies(np.array([0, 3, 0, 2]), 4)
    array([0, 3, 1, 2])
    """
    free = np.setdiff1d(np.arange(size), rows)
    if not len(free):
        return rows
    order = np.argsort(rows, kind="stable")
    ranks = np.empty(len(rows), np.int64)
    ranks[order] = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])
    nearby = (rows * len(free) // size + ranks * _APART) % len(free)
    return np.where(ranks == 0, rows, free[nearby])


def _in_order(parents: Positions | None, owner: Owner) -> bool:
    """Whether all rows have an owner and lie in the order of their owners."""
    if parents is None or owner.lookup or not len(parents):
        return False
    return bool(parents.min() >= 0 and (np.diff(parents) >= 0).all())


def loaded_schema(database: Database) -> Schema:
    """The real schema as far as its tables were read: columns of other types, and what names them, are left out."""
    whole, loaded = database.schemas[Side.REAL], database.tables[Side.REAL]
    kept = {t.name: {c.name for c in loaded[t.name].table.columns} for t in whole.tables if t.name in loaded}
    return Schema(tables=tuple(_kept(whole.table(name), kept) for name in kept))


def _kept(table: Table, kept: Mapping[str, set[str]]) -> Table:
    here = kept[table.name]
    return Table(
        name=table.name,
        columns=tuple(c for c in table.columns if c.name in here),
        primary_key=table.primary_key if here.issuperset(table.primary_key) else (),
        uniques=tuple(u for u in table.uniques if here.issuperset(u)),
        indexes=tuple(i for i in table.indexes if here.issuperset(i.columns)),
        foreign_keys=tuple(
            k
            for k in table.foreign_keys
            if here.issuperset(k.columns) and k.table in kept and kept[k.table].issuperset(k.references)
        ),
    )


def reader(database: Database, side: Side) -> Callable[[Table], Iterator[pa.RecordBatch]]:
    """How to read the tables of one side by their real names, rows in their order; what it has not is left out."""

    def read(table: Table) -> Iterator[pa.RecordBatch]:
        loaded = database.find(side, table.name)
        if loaded is None:
            return
        spelled = [(find_name(c.name, [o.name for o in loaded.table.columns]), c.name) for c in table.columns]
        columns = ", ".join(f"{quote_sql(own)} AS {quote_sql(name)}" for own, name in spelled if own is not None)
        if columns:
            rows = database.connection.sql(
                f"SELECT {columns} FROM {qualified(side, loaded.table.name)} ORDER BY rowid"  # noqa: S608
            )
            yield from rows.to_arrow_reader(BATCH_ROWS)

    return read
