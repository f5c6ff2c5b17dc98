"""From a source to the code store and copies of the public tables: the only reader of private rows.

First the keys that others reference are read, and indexed. Then every private table is read, owners first, in slabs of
some batches: attributes are coded, keys become numbers of rows, the entity of each row is found, and the rows go to the
part of their entity. When all tables are read, each part is made of its rows (`part_rows`). Columns without a codec are
kept as values until a domain is found for them, columns coded as differences until the rows above are known.

Everything that can be wrong with the data is found here, before anything is spent. Slabs are worked on by threads; what
depends on the order of rows is looked at as they come back, in their order.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privbench.encode.codec import Codecs
from privbench.encode.columns_file import Columns
from privbench.encode.hashing import Hashes, hash_rows
from privbench.encode.keys import (
    AnyIndex,
    IndexBuilder,
    KeyIndex,
    any_null,
    ascend,
    comparable,
    null_keys,
    repeated,
    repeated_keys,
)
from privbench.errors import DataError, SourceError
from privbench.fitting.entities import EntityNumbers
from privbench.fitting.gathering import Gathered, TooMuchTextError
from privbench.fitting.key_checks import Key, check_nulls, check_orphans, check_sizes, key_place, referenced_keys
from privbench.fitting.memory import StorePlan, plan_store
from privbench.fitting.part_rows import make_part
from privbench.fitting.public_tables import PublicTables
from privbench.fitting.relative import NullBases
from privbench.fitting.rules import Broken, RealRows, Suggested, check_rules_above
from privbench.fitting.slabs import (
    Batches,
    Slab,
    TableWork,
    changed,
    column_of,
    gathered_table,
    in_slabs,
    table_work,
    work_on,
)
from privbench.io.base import Source, arrow_schema
from privbench.io.names import Names
from privbench.methods.method import Progress
from privbench.model.order import ids_are_public
from privbench.privacy.part import Part
from privbench.privacy.part_files import FileParts
from privbench.privacy.parts import MemoryParts, Parts
from privbench.schema.domain import Domain
from privbench.schema.tables import Place, Schema, Table
from privbench.schema.unit import Protection
from privbench.threads import cores, in_order

_logger = logging.getLogger(__name__)
_SPARE = 1
"""So many slabs more than threads work on are read ahead, so that none waits for the source."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadDatabase:
    """What was read: private tables in parts, public tables as Parquet, and public facts of the keys."""

    parts: Parts
    """In codes, and the values of attributes without a codec, of relative columns the differences."""
    public: Mapping[str, bytes]
    rows: Mapping[str, int]
    entity_keys: pa.Table | None
    """The keys of the entity table in ascending order, where public tables make them public."""


def read_database(
    source: Source,
    protection: Protection,
    codecs: Codecs,
    *,
    orphans_as_null: bool,
    null_bases: NullBases | None = None,
    suggested: Suggested = (),
    made_up: Mapping[Place, Domain] | None = None,
    plan: StorePlan | None = None,
    folder: Path | None = None,
    progress: Progress,
) -> ReadDatabase:
    """Read all tables; raises DataError where the data break the schema. Attributes without a codec are kept raw.

    `null_bases` are the values that stand for NULL in the bases of relative columns, `suggested` the rules that were
    taken from the data, `made_up` the declared domains of tables that are made up. `plan` says how rows are held; in
    files they are in `folder`, which the caller removes.
    """
    plan = plan or plan_store(source, protection, codecs, memory=None, in_one_part=False)
    check_sizes(plan.rows)
    reader = _Reader(source, protection, plan, folder, suggested=suggested, orphans_as_null=orphans_as_null)
    reader.read_public(made_up or {}, progress)
    entity_keys = reader.read_keys(progress)
    reader.check_public_keys()
    for name in protection.order:
        work = table_work(protection, name, codecs, reader.indexes, orphans_as_null=orphans_as_null)
        reader.read_private(work, progress)
    parts, rows = reader.make_parts(codecs, null_bases=null_bases or {})
    public = reader.public
    return ReadDatabase(parts=parts, public=public.tables, rows=public.rows | rows, entity_keys=entity_keys)


class _Reader:
    """What is known while tables are read."""

    def __init__(
        self,
        source: Source,
        protection: Protection,
        plan: StorePlan,
        folder: Path | None,
        *,
        suggested: Suggested,
        orphans_as_null: bool,
    ) -> None:
        self._source = source
        self._protection = protection
        self._plan = plan
        self._folder = folder
        self._suggested = suggested
        self._orphans_as_null = orphans_as_null
        self._empty: dict[str, Columns] = {}
        self._done = 0
        self.indexes: dict[tuple[str, Key], AnyIndex] = {}
        self.public = PublicTables(source, protection)
        self._gathered = Gathered(plan.stripes.parts, folder=folder, most_bytes=plan.buffers)
        rows = sum(plan.rows[name] for name in protection.order)
        self._numbers = EntityNumbers(protection.entity, entities=plan.rows[protection.entity], rows=2 * rows)
        owners = {key.table for key in protection.owners.values()} | {k.target for k in protection.implied}
        for name in owners - {protection.entity}:
            self._numbers.will_own(name, plan.rows[name])

    # -- public tables -----------------------------------------------------------------------------------------

    def read_public(self, made_up: Mapping[Place, Domain], progress: Progress) -> None:
        """Copy the public tables, and make others up; their keys are indexed."""
        for table in self.public.named:
            self._tell(f"reading {table.name}", progress)
            self.public.read(table)
        self.public.make_up(made_up)
        self.indexes |= self.public.indexes

    def check_public_keys(self) -> None:
        """Check what public tables reference, when all keys are known."""
        for link in (k for k in self._protection.keys if k.table in self.public.rows):
            index = self.indexes[link.target, link.key.references]
            self.public.check(link, index, orphans_as_null=self._orphans_as_null)

    # -- keys --------------------------------------------------------------------------------------------------

    def read_keys(self, progress: Progress) -> pa.Table | None:
        """Index the keys of private tables that others reference; returns those of entities where they are public."""
        self._tell("reading keys", progress)
        entity_keys = None
        for table in (self._protection.schema.table(name) for name in self._protection.order):
            keys = referenced_keys(self._protection, table)
            if not keys:
                continue
            if table.name == self._protection.entity and ids_are_public(self._protection):
                entity_keys = self._read_public_ids(table, keys)
            else:
                self._read_keys(table, keys)
        return entity_keys

    def _read_keys(self, table: Table, keys: list[Key]) -> None:
        builders = {}
        for key in keys:
            types = [table.column(name).type.arrow for name in key]
            builders[key] = IndexBuilder(key_place(table.name, key), types, nullable=key != table.primary_key)
        rows = 0
        for batch in self._source.read(_with_columns(table, keys)):
            rows += batch.num_rows
            for key, builder in builders.items():
                builder.add([batch.column(name) for name in key])
        self._check_rows(table.name, rows)
        for key, builder in builders.items():
            self.indexes[table.name, key] = builder.index()

    def _read_public_ids(self, table: Table, keys: list[Key]) -> pa.Table:
        """Index the keys of entities in ascending order, which is public as they are."""
        wanted = _with_columns(table, keys)
        held = pa.Table.from_batches(self._source.read(wanted), schema=arrow_schema(wanted))
        self._check_rows(table.name, held.num_rows)
        order = pc.sort_indices(held, sort_keys=[(c, "ascending") for c in table.primary_key])
        held = held.take(order)
        for key in keys:
            nullable = key != table.primary_key
            index = KeyIndex(key_place(table.name, key), [held.column(n) for n in key], nullable=nullable)
            self.indexes[table.name, key] = index
        return held.select(list(table.primary_key))

    def _check_rows(self, table: str, rows: int) -> None:
        """Refuse a source that does not give the rows that it said it has."""
        if rows != self._plan.rows[table]:
            raise changed(table)

    # -- private tables ----------------------------------------------------------------------------------------

    def read_private(self, work: TableWork, progress: Progress) -> None:
        """Read a private table into the store; once more, if its rows turn out not to be in the order of its keys."""
        while (again := self._read_private(work, progress)) is not None:
            for name in (work.name, *(_hashes_of(work.name, key) for key in work.hashed)):
                self._gathered.clear(name)
            work = again

    def _read_private(self, work: TableWork, progress: Progress) -> TableWork | None:
        seen = _Seen(work)
        rules = RealRows(self._protection, self._protection.schema.table(work.name), self._suggested)
        before = self._done

        def slabs() -> Iterator[tuple[Batches, int]]:
            start = 0
            for rows in in_slabs(self._source.read(work.table)):
                for batch in rows.batches:
                    rules.add(batch)
                yield rows, start
                start += rows.rows

        def worked_on(slab: tuple[Batches, int]) -> Slab:
            return work_on(work, *slab, self._numbers, self._plan.stripes)

        empty = pa.RecordBatch.from_pylist([], arrow_schema(work.table))
        self._empty[work.name] = worked_on((Batches([empty]), 0)).columns
        with closing(in_order(worked_on, slabs(), threads=cores(), spare=_SPARE)) as coded:
            for slab in coded:
                self._tell(f"reading {work.name}", progress)
                if again := seen.add(slab):
                    self._done = before
                    return again
                self._gathered.add(work.name, slab.columns, slab.runs, expected=self._plan.rows[work.name])
                for key, (hashes, _) in slab.hashes.items():
                    self._gather_hashes(work.name, key, hashes)
                self._done += slab.rows
        rules.check()
        self._check_rows(work.name, seen.rows)
        for link in work.links:
            check_nulls(link, seen.nulls[link.name])
            check_orphans(link, seen.missing[link.name], as_null=self._orphans_as_null)
        for key in work.hashed:
            self._check_unique(work, key, nulls=seen.null_keys[key])
        return None

    def _gather_hashes(self, table: str, key: Key, hashes: Hashes) -> None:
        """Put hashes where those of the same key meet: into parts by their first bits."""
        shift = np.uint64(64 - self._plan.stripes.log_parts)
        bounds = [np.uint64(part) << shift for part in range(1, self._gathered.parts)]
        places = [0, *np.searchsorted(hashes, np.array(bounds, np.uint64)).tolist(), len(hashes)]
        runs = ((part, start, end) for part, (start, end) in enumerate(pairwise(places)))
        self._gathered.add(_hashes_of(table, key), {"hash": hashes}, runs, expected=self._plan.rows[table])

    def _check_unique(self, work: TableWork, key: Key, *, nulls: int) -> None:
        """Refuse a key that is not unique, or NULL in a primary key. Equal hashes are looked up in the source."""
        where = key_place(work.name, key)
        if nulls and key == work.table.primary_key:
            raise null_keys(where, nulls)
        twice = []
        for part in range(self._gathered.parts):
            hashes = np.sort(self._gathered.take(_hashes_of(work.name, key), part).get("hash", np.zeros(0, np.uint64)))
            twice.append(hashes[1:][hashes[1:] == hashes[:-1]])
        suspects = np.unique(np.concatenate(twice))
        if not len(suspects):
            return
        found = []
        for batch in self._source.read(_with_columns(work.table, [key])):
            columns = [comparable(batch.column(name)) for name in key]
            same = np.isin(hash_rows(columns), suspects) & ~any_null(columns)
            found.append([column.filter(pa.array(same)) for column in columns])
        rows = repeated([pa.concat_arrays(parts) for parts in zip(*found, strict=True)])
        if rows:
            raise repeated_keys(where, rows)

    def _tell(self, what: str, progress: Progress) -> None:
        """Tell how far reading is, in percent: numbers of rows are private."""
        rows = sum(self._plan.rows[name] for name in self._protection.order)
        progress(what, 100 * self._done // max(rows, 1), 100)

    # -- parts -------------------------------------------------------------------------------------------------

    def make_parts(self, codecs: Codecs, *, null_bases: NullBases) -> tuple[Parts, dict[str, int]]:
        """Make every part of its rows; and how many rows private tables have, copies of lookup rows among them."""
        files = None if self._folder is None else FileParts(self._folder, self._gathered.parts)

        def made(number: int) -> tuple[Part | None, Broken, dict[str, int]]:
            tables = {name: gathered_table(self._rows(name, number)) for name in self._protection.order}
            part, broken = make_part(self._protection, codecs, tables, null_bases=null_bases)
            entities = tables[self._protection.entity].entities
            if not np.array_equal(entities, np.arange(len(entities))):  # a row came twice, instead of another one
                raise changed(self._protection.entity)
            rows = {name: len(table.entities) for name, table in part.tables.items()}
            if files is None:
                return part, broken, rows
            files.write(number, part)
            return None, broken, rows

        all_made = list(in_order(made, range(self._gathered.parts), threads=cores()))
        check_rules_above(self._protection, [broken for _, broken, _ in all_made], self._suggested)
        rows = sum((Counter(rows) for _, _, rows in all_made), start=Counter())
        parts = MemoryParts([part for part, _, _ in all_made if part is not None]) if files is None else files
        return parts, {name: rows[name] for name in self._protection.order}

    def _rows(self, table: str, part: int) -> Columns:
        try:
            return self._gathered.take(table, part) or self._empty[table]
        except TooMuchTextError as error:
            raise DataError(
                f"{table}.{column_of(str(error))}: holds more than 2 GiB of text, too much to look for texts in, or to "
                "compare with the column of that name in its owner. Declare its domain "
                "(`domain: {text: [0, 8, 16, 32]}`) and say `method: {name: tree, find: false}`, or drop the column."
            ) from None


class _Seen:
    """What was seen of a table so far, slab by slab."""

    def __init__(self, work: TableWork) -> None:
        self._work = work
        self._last: dict[Key, list[pa.Array]] = {}
        self.rows = 0
        self.nulls: Counter[str] = Counter()
        self.missing: Counter[str] = Counter()
        self.null_keys: Counter[Key] = Counter()

    def add(self, slab: Slab) -> TableWork | None:
        """Take note of a slab; returns what to do instead, if rows are not in the order of some key."""
        self.rows += slab.rows
        self.nulls.update(slab.nulls)
        self.missing.update(slab.missing)
        self.null_keys.update({key: nulls for key, (_, nulls) in slab.hashes.items()})
        descending = set(slab.descending)
        for key, (first, last) in slab.ends.items():
            before = self._last.get(key)
            if before is not None and not ascend([pa.concat_arrays(c) for c in zip(before, first, strict=True)]):
                descending.add(key)
            self._last[key] = last
        if not descending:
            return None
        work, primary = self._work, self._work.table.primary_key
        unknown = {key for key in descending if (work.name, key) not in work.indexes}
        sort = work.sort or (primary in descending and not work.is_entity)
        return replace(work, sort=sort, hashed=work.hashed | unknown)


def _hashes_of(table: str, key: Key) -> str:
    """Under which name the hashes of a key are gathered; no table has it."""
    return f"hashes\0{table}\0{chr(0).join(key)}"


def _with_columns(table: Table, keys: list[Key]) -> Table:
    """A table with the columns of some keys alone."""
    wanted = {name for key in keys for name in key}
    return Table(name=table.name, columns=tuple(c for c in table.columns if c.name in wanted))


def check_source(source: Schema, wanted: Schema, *, made_up: Collection[str] = ()) -> None:
    """Refuse a source that lacks a table or a column of the spec; none is read of those that are made up."""
    columns = {t.name: Names(c.name for c in t.columns) for t in source.tables}
    names = Names(columns)
    for table in (t for t in wanted.tables if t.name not in made_up):
        spelled = names.find(table.name)
        if spelled is None:
            raise SourceError(
                f"{table.name}: the spec has this table, the source does not. Tables there: {', '.join(columns)}. "
                f"Say `drop: true` under {table.name} in the spec, or read another source."
            )
        for column in table.columns:
            if columns[spelled].find(column.name) is None:
                raise SourceError(
                    f"{table.name}.{column.name}: the spec has this column, the source does not. "
                    "Say `drop: true` under the column in the spec, or read another source."
                )
