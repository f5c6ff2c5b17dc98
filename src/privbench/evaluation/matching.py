"""What can be compared: the tables, columns and keys that both sides have; the rest is noted as left out."""

import duckdb

from privbench.errors import first_line
from privbench.evaluation.coding import CodedTable, code_table
from privbench.evaluation.database import Database, Side
from privbench.evaluation.links import Linked, find_parents
from privbench.evaluation.owning import Owning
from privbench.evaluation.scoring import Key, link_name
from privbench.io.names import find_name
from privbench.methods.method import Progress
from privbench.schema.tables import Column


def code_tables(database: Database, owning: Owning, progress: Progress, *, seed: int) -> dict[str, CodedTable]:
    """Code the tables that both sides have."""
    coded = {}
    loaded = database.tables[Side.REAL]
    for at, name in enumerate(loaded):
        progress("coding", at, len(loaded))
        columns = _compared(database, owning, name)
        if columns:
            try:
                coded[name] = code_table(database, name, columns, seed=seed)
            except duckdb.Error as error:
                database.skip(name, f"cannot be compared ({first_line(error)})")
                continue
            for side, rows in coded[name].rows.items():
                if not rows:
                    database.skip(name, f"{side.value}: has no row, so there is no distance")
                if coded[name].drawn[side] is not None:
                    whole = database.size(side, name)
                    database.skip(name, f"{side.value}: columns are compared on {rows:,} of {whole:,} rows, by seed")
    return coded


def _compared(database: Database, owning: Owning, name: str) -> list[tuple[Column, Column]]:
    """The columns to compare: those of both sides that are no keys."""
    real, synthetic = (database.find(side, name) for side in (Side.REAL, Side.SYNTHETIC))
    if real is None or synthetic is None:
        database.skip(name, "not in the synthetic database")
        return []
    declared = find_name(name, [t.name for t in owning.schema.tables])
    table = real.table if declared is None else owning.schema.table(declared)
    others = {c.name: c for c in synthetic.table.columns}
    found = []
    for column in real.table.columns:
        other = find_name(column.name, others)
        if other is None:
            database.skip(f"{name}.{column.name}", "not in the synthetic database")
        elif find_name(column.name, table.surrogate_columns) is None:
            found.append((column, others[other]))
            if others[other].type != column.type:
                types = f"{column.type.sql} in the real database, {others[other].type.sql} in the synthetic one"
                database.skip(f"{name}.{column.name}", f"compared, but the types differ: {types}")
    if not found:
        database.skip(name, "no column to compare: all are keys or not in the synthetic database")
    return found


def link_keys(database: Database, owning: Owning) -> dict[Key, Linked]:
    """Find the parents of all rows, for every key whose tables and columns are on both sides."""
    keys = {}
    for table, key in owning.schema.foreign_keys():
        if missing := {table.name, key.table} - set(database.tables[Side.REAL]):
            database.skip(link_name(table.name, key), f"the real database has no table {', '.join(sorted(missing))}")
            continue
        try:
            real, other = (find_parents(database, side, table.name, key) for side in (Side.REAL, Side.SYNTHETIC))
        except duckdb.Error as error:
            database.skip(link_name(table.name, key), f"the key cannot be followed ({first_line(error)})")
            continue
        parents = {side: database.size(side, key.table) for side in Side}
        keys[table.name, key] = Linked(
            real=real, other=other, real_parents=parents[Side.REAL], other_parents=parents[Side.SYNTHETIC]
        )
    return keys
