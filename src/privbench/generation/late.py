"""What can only be done when all rows are there: order over whole tables, keys in time order, sums of rows below.

Tables that need none of it go to the sink as they are made. The rows of the others are kept on disk, and finished in
the end, in this order: keys are numbered by their column, what follows from keys is worked out, and rules over them are
kept; columns that add up rows below are filled, from the tables furthest below, and each table is read again, its keys
changed, put into its order, and written. Memory does not grow with the scale: rows are read block by block, old and new
numbers of keys lie in files of 8 bytes per row.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from privbench.errors import ModelError
from privbench.generation.aggregates import ABOVE, Aggregate, Folding, RowsBelow, late_aggregates
from privbench.generation.blocks import BLOCK_ROWS
from privbench.generation.kept import Kept, Numbers, in_places, mapped_numbers, sorted_places
from privbench.generation.keys import OWNER_ROWS, KeyMaker
from privbench.generation.rows import Made
from privbench.generation.ruled import without_broken_keys
from privbench.methods.method import Progress
from privbench.model.model import Model
from privbench.model.numbering import declared_order, renumbered_columns
from privbench.model.schedule import Ready, schedule
from privbench.rules.computed import ComputedRows
from privbench.schema.tables import Column, Table


def _nothing_else(table: str, column: str) -> pa.Array:
    raise ModelError(f"{table}.{column}: is not looked at in the end.")


class Late:
    """The tables of one run that are finished in the end, in a folder that the caller removes."""

    def __init__(
        self, model: Model, keys: KeyMaker, folder: Path, *, key_numbers: Callable[[str, Numbers], Numbers]
    ) -> None:
        """`key_numbers` says which number a key of a table gets that is the r-th by the column that numbers it."""
        self._model = model
        self._key_numbers = key_numbers
        self._protection = model.protection
        self._keys = keys
        self._folder = folder
        self._schedule = schedule(model.spec, model.protection)
        self._aggregates = late_aggregates(model.protection, self._schedule.sums())
        self._renumbered = renumbered_columns(model.spec, model.protection)
        self._tables = [t.name for t in model.protection.schema.tables if self._is_late(t)]
        self._kept: dict[str, Kept] = {}
        self._numbers: dict[str, Numbers] = {}  # by table: the new number of each row's key
        self._filled: dict[str, list[Kept]] = {}  # by table: columns that were worked out in the end
        folder.mkdir()

    def takes(self, table: str) -> bool:
        """Whether a table is written only in the end."""
        return table in self._tables

    def keep(self, name: str, made: Made) -> None:
        """Keep what is needed of rows of a table until the end."""
        columns, owners = self._columns(name), self._needs_owners(name)
        if not columns and not owners:
            return
        batch = made.batch.select(columns)
        if owners:
            batch = batch.append_column(pa.field(OWNER_ROWS, pa.int64()), pa.array(made.owners))
        if name not in self._kept:
            self._kept[name] = Kept(self._path("rows", name), batch.schema)
        self._kept[name].write(batch)

    def batches(self, progress: Progress) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Every batch of every table that was kept, finished, with the name of its table."""
        for kept in self._kept.values():
            kept.finish()
        early = self._schedule.early_sums() if self._renumbered else set()
        self._add_up([a for a in self._aggregates if (a.parent, a.column) in early], progress)
        for name in self._tables:
            if (column := self._model.spec.tables[name].numbered_by) is not None:
                progress(f"numbering {name}", 0, 1)
                self._numbers[name] = self._places("numbers", name, [column])
        for name in self._tables:
            self._settle(name)
        self._add_up([a for a in self._aggregates if (a.parent, a.column) not in early], progress)
        for name in (n for n in self._tables if n in self._kept):
            written = 0
            for batch in self._finished(name):
                yield name, batch
                written += batch.num_rows
                progress(f"finishing {name}", written, self._kept[name].rows)
            self._kept[name].remove()

    def close(self) -> None:
        """Let go of all files, also of those that were not finished."""
        for kept in self._kept.values():
            kept.finish()

    # -- what is kept --------------------------------------------------------------------------------------------------

    def _is_late(self, table: Table) -> bool:
        return bool(
            declared_order(self._model.spec, table)
            or any((table.name, column.name) in self._renumbered for column in table.columns)
            or any(a.parent == table.name for a in self._aggregates)
        )

    def _columns(self, name: str) -> list[str]:
        """All columns of a table that is written in the end; of others, what rows above add up."""
        table = self._protection.schema.table(name)
        if self.takes(name):
            return [c.name for c in table.columns]
        wanted = {column for a in self._aggregates for column in a.below.get(name, ())}
        return [c.name for c in table.columns if c.name in wanted]

    def _needs_owners(self, name: str) -> bool:
        """Whether rows above this table's look at rows of it, or of a table below it."""
        return any(name in self._protection.up_to(below, a.parent) for a in self._aggregates for below in a.below)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _places(self, what: str, name: str, columns: Sequence[str]) -> Numbers:
        """The place of each row of a table if it is sorted by some columns."""
        rows = self._kept[name].rows if name in self._kept else 0
        return sorted_places(self._rows(name, columns), rows, folder=self._path(what, name))

    def _rows(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Columns of a table as it will be written, but in the order in which its rows were made."""
        if name not in self._kept:
            return
        late = {c: rows for rows in self._filled.get(name, ()) for c in columns if c in rows.schema.names}
        kept = [self._kept[name], *dict.fromkeys(late.values())]
        wanted = [[c for c in columns if late.get(c, kept[0]) is rows] for rows in kept]
        for batches in zip(*(rows.read(own) for rows, own in zip(kept, wanted, strict=True) if own), strict=True):
            values = {c: b.column(c) for b in batches for c in b.schema.names}
            values |= {c: self._with_new_keys(name, c, values[c]) for c in wanted[0]}
            yield pa.RecordBatch.from_pydict({c: values[c] for c in columns})

    def _with_new_keys(self, name: str, column: str, values: pa.Array) -> pa.Array:
        if (name, column) not in self._renumbered:
            return values
        target = self._protection.schema.table(self._renumbered[name, column])
        there = values.drop_null()
        ranks = np.asarray(self._numbers[target.name][self._keys.own_rows(target, there)])
        keys = self._keys.key_of_number(target, self._key_numbers(target.name, ranks)).cast(values.type)
        if not values.null_count:
            return keys
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        return keys.take(pa.array(np.cumsum(valid) - 1, mask=~valid))

    def _finished(self, name: str) -> Iterator[pa.RecordBatch]:
        """The rows of a table as they are written."""
        table = self._protection.schema.table(name)
        rows = self._rows(name, self._columns(name))
        if order := declared_order(self._model.spec, table):
            places = self._places("order", name, order)
        elif name in self._numbers:
            places = self._numbers[name]
        else:
            yield from rows
            return
        yield from in_places(rows, places, folder=self._path("moved", name), block_rows=BLOCK_ROWS)

    def _settle(self, name: str) -> None:
        """Work out what follows from keys that were numbered again, and make keys NULL that would break a rule."""
        table, schema = self._protection.schema.table(name), self._protection.schema
        rules = self._schedule.rules(table, Ready.RENUMBERED)
        formulas = self._schedule.formulas(name, Ready.RENUMBERED)
        if name not in self._kept or not (rules or formulas):
            return
        nulled = self._schedule.nulled_columns(table, rules)
        made = [c for c in table.columns if c.name in {*formulas, *nulled}]
        settled = self._new_kept("settled", name, made)
        read = [c.name for c in table.columns if c.name not in formulas]
        with ComputedRows(self._protection, name, formulas) as computed:

            def again(values: dict[str, pa.Array]) -> dict[str, pa.Array]:
                return values | computed.values(values, _nothing_else, count=len(values[read[0]]))

            for batch in self._rows(name, read):
                values = again({c: batch.column(c) for c in read})
                if rules:
                    values = without_broken_keys(schema, table, rules, values, nulled=nulled, again=again)
                if made:
                    settled.write(pa.RecordBatch.from_arrays([values[c.name] for c in made], schema=settled.schema))
        self._add_filled(name, settled)

    def _new_kept(self, what: str, name: str, columns: Sequence[Column]) -> Kept:
        """A new file for columns of a table that are worked out in the end."""
        schema = pa.schema([pa.field(c.name, c.type.arrow) for c in columns])
        return Kept(self._path(f"{what} {len(self._filled.get(name, ()))}", name), schema)

    def _add_filled(self, name: str, filled: Kept) -> None:
        filled.finish()
        self._filled.setdefault(name, []).append(filled)

    def _add_up(self, aggregates: Sequence[Aggregate], progress: Progress) -> None:
        for name in reversed(self._protection.order):
            if own := [a for a in aggregates if a.parent == name]:
                self._fill(name, own, progress)

    def _fill(self, name: str, aggregates: Sequence[Aggregate], progress: Progress) -> None:
        """Work out the columns of a table that add up rows below, and keep them beside its rows."""
        if name not in self._kept:
            return
        table = self._protection.schema.table(name)
        columns = [table.column(a.column) for a in aggregates]
        own = list(dict.fromkeys(c.column for a in aggregates for c in a.expression.columns)) or [aggregates[0].column]
        below = {t: self._below(name, t, [a for a in aggregates if t in a.below]) for a in aggregates for t in a.below}
        types = {c: table.column(c).type.arrow for c in own}
        folding = Folding(
            aggregates,
            own=types,
            below={t: rows.schema for t, rows in below.items()},
            types=[c.type for c in columns],
        )
        filled = self._new_kept("filled", name, columns)
        with folding:
            for batch in self._rows(name, own):
                last = filled.rows + batch.num_rows
                values = folding.values(batch, filled.rows, {t: rows.until(last) for t, rows in below.items()})
                filled.write(pa.RecordBatch.from_arrays(values, schema=filled.schema))
                progress(f"adding up for {name}", last, self._kept[name].rows)
        self._add_filled(name, filled)

    def _below(self, name: str, below: str, aggregates: Sequence[Aggregate]) -> RowsBelow:
        """The rows of a table below a table, with the row numbers of its rows."""
        table = self._protection.schema.table(below)
        columns = [c.name for c in table.columns if any(c.name in a.below[below] for a in aggregates)]
        schema = pa.schema([*(pa.field(c, table.column(c).type.arrow) for c in columns), pa.field(ABOVE, pa.int64())])
        return RowsBelow(self._with_above(name, below, columns), schema, name=below)

    def _with_above(self, name: str, below: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        between = [self._owners(table) for table in self._protection.up_to(below, name)[1:]]
        for batch in self._rows(below, [*columns, OWNER_ROWS]):
            above = batch.column(OWNER_ROWS).to_numpy()
            for owners in between:
                above = np.where(above < 0, -1, owners[above])
            yield pa.RecordBatch.from_arrays([*batch.columns[:-1], pa.array(above)], names=[*columns, ABOVE])

    def _owners(self, name: str) -> Numbers:
        """The owner of each row of a table, of which only what is looked at comes into memory."""
        rows = self._kept[name].rows if name in self._kept else 0
        owners, done = mapped_numbers(self._path("owners", name), rows), 0
        for batch in self._kept[name].read([OWNER_ROWS]) if rows else ():
            owners[done : done + batch.num_rows] = batch.column(0).to_numpy()
            done += batch.num_rows
        return owners

    def _path(self, what: str, name: str) -> Path:
        return self._folder / f"{what} {[t.name for t in self._protection.schema.tables].index(name)}"
