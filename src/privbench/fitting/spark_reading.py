"""From tables that Spark reads to parts on its cluster; what is wrong with the data is found before anything is spent.

Rows are coded where they are read. Where the key of a row names its entity, that alone says to which part the row goes;
where it names a row of another table, a join finds the part of that row. Keys to rows of any entity become numbers by a
join, too. Then the rows of each part are brought together, once, and a worker makes the part. Public tables are read
here.
"""

import pickle
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from math import ceil
from operator import and_
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privbench.encode.codec import Codecs
from privbench.encode.keys import MISSING, NULL, KeyIndex, any_null, comparable, null_keys, repeated_keys
from privbench.errors import SpecError
from privbench.fitting.key_checks import Key, check_nulls, check_orphans, check_sizes, key_place
from privbench.fitting.public_tables import PublicTables
from privbench.fitting.reading import ReadDatabase
from privbench.fitting.relative import NullBases
from privbench.fitting.rules import Suggested, check_rules_above, refuse_broken
from privbench.fitting.slabs import Indexes, changed, table_work
from privbench.fitting.spark_gather import FACTS, LOCAL, SEED, PartFacts, PartMaker
from privbench.fitting.spark_lists import add_lists
from privbench.fitting.spark_rows import (
    HASH,
    NUMBER,
    PART,
    SQL_CHUNKS,
    KeyColumns,
    OwnerList,
    Routing,
    RowCoder,
    key_type,
    owner_columns,
)
from privbench.io.base import read_whole
from privbench.io.spark_source import SparkSource
from privbench.methods.method import Progress
from privbench.model.order import ids_are_public
from privbench.privacy.spark_parts import SQL_PIECES, SparkParts, kept_on_disk
from privbench.schema.domain import Domain
from privbench.schema.tables import ForeignKey, Place, Table
from privbench.schema.unit import Link, LinkKind, Protection
from privbench.spark.jobs import map_batches, spark_job

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PART_ROWS = 2**19
"""About so many rows are in a part, if there are enough for all cores."""


def refuse_unsupported(protection: Protection) -> None:
    """Refuse tables that are not counted in parts of a cluster. Raises SpecError that says what to do."""
    for name, (owner, _) in protection.lookups.items():
        raise SpecError(
            f"{name}: rows of a lookup are copied for the rows that reference them, which Spark does not do. Use "
            f"`--engine local`; or say `public: true` under {name} if its rows are public; or let Spark read a view of "
            f"{owner} that has the columns of {name}, and drop {name}."
        )


def read_parts(
    source: SparkSource,
    protection: Protection,
    codecs: Codecs,
    *,
    orphans_as_null: bool,
    null_bases: NullBases | None = None,
    suggested: Suggested = (),
    made_up: Mapping[Place, Domain] | None = None,
    progress: Progress,
) -> tuple[ReadDatabase, SparkParts]:
    """Read all tables; raises DataError where the data break the schema. Tables are none that Spark refuses."""
    add_lists(source, protection)
    public = PublicTables(source, protection)
    for table in public.named:
        public.read(table)
    public.make_up(made_up or {})
    keys = _Keys(source, protection)
    private = {}
    for at, name in enumerate(protection.order):
        progress(f"checking keys of {name}", at, len(protection.order))
        private[name] = keys.check(name)
    check_sizes(private)
    parts = max(source.session.sparkContext.defaultParallelism, ceil(sum(private.values()) / PART_ROWS))
    source.session.conf.set("spark.sql.shuffle.partitions", str(parts))
    progress(f"reading, in {parts} parts", 0, 1)
    coders = row_coders(protection, codecs, public.indexes, parts)
    entity_keys = _entity_keys(source, protection) if ids_are_public(protection) else None
    listed = owner_lists(protection, coders, orphans_as_null=orphans_as_null)
    maker = PartMaker(
        protection=protection,
        codecs=codecs,
        coders=tuple(coders.values()),
        listed=listed,
        null_bases=dict(null_bases or {}),
    )
    with _Joins(source, protection, coders, listed, entity_keys) as joins:
        made = kept_on_disk(map_batches(joins.chunks(parts), maker, SQL_PIECES))
        with spark_job(source.session, "reading private tables", progress):
            facts = _added(made.filter(f"piece = {FACTS}").select("bytes").toArrow())
    held = SparkParts(source.session, made, facts.digests, progress)
    try:
        for name, rows in private.items():
            if facts.rows[name] != rows or (name in facts.keys and facts.keys[name] != keys.fingerprints[name]):
                raise changed(name)
        for owners in listed:
            if facts.listed[owners.place] != keys.fingerprints[owners.coder.table.name]:
                raise changed(owners.coder.table.name)
        _check_keys(protection, keys, public, facts, orphans_as_null=orphans_as_null)
        for name in protection.order:
            table = protection.schema.table(name)
            refuse_broken(table, table.own_checks, facts.broken[name], suggested)
        check_rules_above(protection, [facts.broken_above], suggested)
    except BaseException:
        held.close()
        raise
    read = ReadDatabase(parts=held, public=public.tables, rows=public.rows | private, entity_keys=entity_keys)
    return read, held


class _Keys:
    """The keys of private tables, checked by Spark."""

    def __init__(self, source: SparkSource, protection: Protection) -> None:
        self._source, self._protection = source, protection
        self.fingerprints: dict[str, int] = {}
        """Of the keys of tables that were checked: parts that are made of other rows are told by it."""

    def check(self, name: str) -> int:
        """Refuse keys of a table that are not unique, or NULL in the primary key; returns how many rows there are."""
        from pyspark.sql import functions as f  # noqa: PLC0415  heavy and optional

        table = self._protection.schema.table(name)
        unique = unique_keys(self._protection, name)
        rows, named = self._frame(name)
        asked = [f.count(f.lit(1)), f.sum(f.col(HASH).cast("decimal(20)"))]
        for columns in unique:
            parts = [named[c] for c in columns]
            known = reduce(and_, (f.col(p).isNotNull() for p in parts))
            asked += [f.count_if(known), f.count_distinct(*parts)]
        with spark_job(self._source.session, f"checking keys of {name}"):
            (count, hashes, *found) = rows.agg(*(column.alias(f"a{i}") for i, column in enumerate(asked))).collect()[0]
        for columns, known, different in zip(unique, found[::2], found[1::2], strict=True):
            where = key_place(name, columns)
            if known < count and columns == table.primary_key:
                raise null_keys(where, count - known)
            if different < known:
                raise repeated_keys(where, known - different)
        self.fingerprints[name] = int(hashes or 0) % 2**64
        return int(count)

    def missing(self, link: Link) -> int:
        """How many rows of a private table reference a row that is nowhere."""
        rows, named = self._frame(link.table)
        return self._lost(rows, [named[c] for c in link.key.columns], link)

    def missing_of_public(self, link: Link, columns: Sequence[pa.ChunkedArray]) -> int:
        """How many rows of a public table, given the columns of a key, reference a private row that is not there."""
        keys = {f"k{i}": comparable(column) for i, column in enumerate(columns)}
        rows = self._source.session.createDataFrame(pa.table(keys))
        return self._lost(rows, list(keys), link)

    def _lost(self, rows: "DataFrame", columns: Sequence[str], link: Link) -> int:
        from pyspark.sql import functions as f  # noqa: PLC0415

        targets, named = self._frame(link.target)
        there = targets.select(*(f.col(named[c]).alias(f"there{i}") for i, c in enumerate(link.key.references)))
        same = reduce(
            and_, (rows[c].cast("string") == there[f"there{i}"].cast("string") for i, c in enumerate(columns))
        )
        known = rows.filter(reduce(and_, (f.col(c).isNotNull() for c in columns)))
        with spark_job(self._source.session, f"checking {link.name}"):
            return known.join(there, same, "left_anti").count()

    def _frame(self, name: str) -> tuple["DataFrame", dict[str, str]]:
        """The columns of a table's keys, as they can be compared; and what they are called."""
        table = self._protection.schema.table(name)
        columns = tuple(table.column(c) for c in key_columns(self._protection, name)) or table.columns[:1]
        keys = KeyColumns(Table(name=name, columns=columns))
        rows = map_batches(self._source.frame(keys.table), keys, keys.sql_schema)
        return rows, {c.name: f"k{i}" for i, c in enumerate(columns)}


def _check_keys(
    protection: Protection, keys: _Keys, public: PublicTables, facts: PartFacts, *, orphans_as_null: bool
) -> None:
    """Refuse keys that are NULL or reference no row where they must not."""
    for link in (k for k in protection.keys if k.table in protection.order):
        lost = facts.lost[link.name]
        if lost and link.kind in LOCAL and not _only_owner(protection, link):
            lost = keys.missing(link)
        check_nulls(link, facts.nulls[link.name])
        check_orphans(link, lost, as_null=orphans_as_null)
    for link in (k for k in protection.keys if k.kind is LinkKind.COPIED):
        index = public.indexes[link.target, link.key.references]
        public.check(link, index, orphans_as_null=orphans_as_null)
    for link in (k for k in protection.keys if k.kind is LinkKind.INBOUND):
        columns = public.columns(link)
        check_nulls(link, int(any_null([comparable(c) for c in columns]).sum()))
        check_orphans(link, keys.missing_of_public(link, columns), as_null=orphans_as_null)


def _only_owner(protection: Protection, link: Link) -> bool:
    """Whether a key alone says to which part a row goes: then the row that it references is there or nowhere."""
    return link.kind is LinkKind.OWNER and len(protection.owner_keys(link.table)) == 1


def _entity_keys(source: SparkSource, protection: Protection) -> pa.Table:
    """The keys of the entity table in ascending order, which public tables make public."""
    entity = protection.schema.table(protection.entity)
    columns = tuple(entity.column(name) for name in entity.primary_key)
    keys = read_whole(source, entity.name, columns)
    return keys.take(pc.sort_indices(keys, sort_keys=[(c.name, "ascending") for c in columns]))


def row_coders(protection: Protection, codecs: Codecs, public: Indexes, parts: int) -> dict[str, RowCoder]:
    """How workers code the rows of each private table."""
    schema, entity = protection.schema, protection.schema.table(protection.entity)
    direct = {name: owner_columns(protection.owner_keys(name), entity) for name in protection.order[1:]}
    direct[entity.name] = (entity.primary_key,) if entity.primary_key else ()
    named = [(name, columns) for name, keys in direct.items() for columns in keys or ()]
    as_text = tuple(
        any(key_type(schema.table(name).column(columns[i])) != pa.int64() for name, columns in named)
        for i in range(len(entity.primary_key))
    )
    nowhere = KeyIndex("", [pa.array([], pa.int64())])
    private = {(k.target, k.key.references): nowhere for k in protection.keys if k.target in protection.order}
    coders = {}
    for place, name in enumerate(protection.order):
        work = table_work(protection, name, codecs, {**private, **public}, orphans_as_null=True)
        targets = {(link.target, link.key.references) for link in work.links}
        unique = unique_keys(protection, name)
        coders[name] = RowCoder(
            place=place,
            work=replace(work, indexes={place: index for place, index in public.items() if place in targets}),
            keys=key_columns(protection, name),
            owners=tuple(k.columns for k in protection.owner_keys(name)) if name != entity.name else (),
            identity=unique[0] if unique else (),
            direct=direct[name],
            routing=Routing(parts, as_text),
        )
    return coders


def owner_lists(
    protection: Protection, coders: Mapping[str, RowCoder], *, orphans_as_null: bool
) -> tuple[OwnerList, ...]:
    """Lists of the owners that joins look for, where rows may be without theirs: elsewhere none may be missing."""
    joined = [protection.owner_keys(name) for name, coder in coders.items() if coder.direct is None]
    wanted = dict.fromkeys((k.table, k.references) for keys in joined if orphans_as_null or len(keys) > 1 for k in keys)
    return tuple(
        OwnerList(place=place, coder=coders[table], references=references)
        for place, (table, references) in enumerate(wanted, start=len(coders))
    )


def unique_keys(protection: Protection, name: str) -> tuple[Key, ...]:
    """Every key of a table that is declared unique, and every list of columns that a foreign key references."""
    referenced = [link.key.references for link in protection.keys if link.target == name]
    return tuple(dict.fromkeys([*protection.schema.table(name).keys, *referenced]))


def key_columns(protection: Protection, name: str) -> tuple[str, ...]:
    """The columns of a private table's keys, but those to public tables; and those that keys reference."""
    table, private = protection.schema.table(name), set(protection.order)
    keys = [*table.keys, *(k.key.columns for k in protection.keys if k.table == name and k.target in private)]
    keys += [k.key.references for k in protection.keys if k.target == name]
    return tuple(dict.fromkeys(column for key in keys for column in key))


def _added(rows: pa.Table) -> PartFacts:
    """What parts say of their rows, added up."""
    facts: list[PartFacts] = [pickle.loads(row) for row in rows.column("bytes").to_pylist()]  # noqa: S301  our workers'
    return reduce(PartFacts.plus, facts)


class _Joins:
    """Private tables on their way to parts, as frames; what others are joined to is kept until the end."""

    def __init__(
        self,
        source: SparkSource,
        protection: Protection,
        coders: Mapping[str, RowCoder],
        listed: Sequence[OwnerList],
        entity_keys: pa.Table | None,
    ) -> None:
        self._source, self._protection, self._coders = source, protection, coders
        self._listed, self._entity_keys = listed, entity_keys
        self._rows: dict[str, DataFrame] = {}
        self._kept = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.close()

    def chunks(self, parts: int) -> "DataFrame":
        """The rows of all private tables, and lists of owners, in chunks by part; and a seed for each part."""
        for name in self._protection.order:
            if self._is_joined(name):
                self._rows[name] = self._with_part(name)
        seeds = self._source.session.range(parts).selectExpr(
            "int(id) AS part", f"{SEED} AS place", "binary('') AS bytes"
        )
        frames = [self._chunks(name) for name in self._protection.order]
        frames += [
            map_batches(self._source.frame(owners.coder.key_table), owners.chunks, SQL_CHUNKS)
            for owners in self._listed
        ]
        together = reduce(lambda a, b: a.unionAll(b), frames, seeds)
        return together.repartitionById(parts, PART).sortWithinPartitions(PART, "place")

    def _chunks(self, name: str) -> "DataFrame":
        coder = self._coders[name]
        if name in self._rows:
            return map_batches(self._with_references(name), coder.joined, SQL_CHUNKS)
        return map_batches(self._source.frame(coder.table), coder.chunks, SQL_CHUNKS)

    # -- joins -------------------------------------------------------------------------------------------------

    def _is_joined(self, name: str) -> bool:
        """Whether rows need something of other tables, or others a number of them."""
        return self._coders[name].direct is None or bool(self._coders[name].references) or self._is_numbered(name)

    def _is_numbered(self, name: str) -> bool:
        referenced = any(link.kind is LinkKind.REFERENCE for link in self._protection.links_to(name))
        return referenced or (name == self._protection.entity and self._entity_keys is not None)

    def _with_part(self, name: str) -> "DataFrame":
        """The rows of a table with their part, and with their number where others reference them."""
        coder = self._coders[name]
        rows = map_batches(self._source.frame(coder.table), coder.wired, coder.sql_schema)
        if coder.direct is None:
            rows = self._routed(rows, name)
        if self._is_numbered(name):
            rows = self._numbered(self._keep(rows), name)
        return self._keep(rows)

    def _routed(self, rows: "DataFrame", name: str) -> "DataFrame":
        """Rows with the part of the first row that one of their owner keys names; a missing one has a part, too."""
        from pyspark.sql import functions as f  # noqa: PLC0415  heavy and optional

        found = []
        for i, key in enumerate(self._protection.owner_keys(name)):
            targets = self._routes(key.table).withColumnRenamed(PART, f"part{i}")
            rows = self._joined(rows, name, key, targets, [f"part{i}"])
            found.append(f.when(self._is_known(name, key), f.coalesce(f.col(f"part{i}"), f.col(f"m{i}"))))
        part = f.coalesce(*found, f.col("alone"))
        return rows.withColumn(PART, part).drop(*(f"part{i}" for i in range(len(found))))

    def _routes(self, name: str) -> "DataFrame":
        """The keys of a table's rows, with their part."""
        coder = self._coders[name]
        if name in self._rows:
            return self._rows[name].select(PART, *(f"k{i}" for i in range(len(coder.keys))))
        return map_batches(self._source.frame(coder.key_table), coder.key_rows, coder.sql_keys)

    def _numbered(self, rows: "DataFrame", name: str) -> "DataFrame":
        """Rows with a number: that of their public id, or one that counts up from part to part."""
        from pyspark.sql import Window  # noqa: PLC0415
        from pyspark.sql import functions as f  # noqa: PLC0415

        if name == self._protection.entity and self._entity_keys is not None:
            return self._by_public_id(rows, name, self._entity_keys)
        with spark_job(self._source.session, f"numbering {name}"):
            counts = {row[PART]: row["count"] for row in rows.groupBy(PART).count().collect()}
        before = np.cumsum([0, *(counts.get(part, 0) for part in range(self._coders[name].routing.parts))])
        inside = Window.partitionBy(PART).orderBy(*(c for c in rows.columns if c != PART))
        offset = f.element_at(f.array(*(f.lit(int(n)) for n in before)), f.col(PART) + 1)
        return rows.withColumn(NUMBER, offset.cast("bigint") + f.row_number().over(inside) - 1)

    def _by_public_id(self, rows: "DataFrame", name: str, keys: pa.Table) -> "DataFrame":
        """Rows with the place of their id among all of them, which are public and in order."""
        (key,) = self._coders[name].key(keys.column_names)
        numbers = pa.table({"id": comparable(keys.column(0)), NUMBER: np.arange(keys.num_rows)})
        listed = self._source.session.createDataFrame(numbers)
        return rows.join(listed, rows[key] == listed["id"]).drop("id")

    def _with_references(self, name: str) -> "DataFrame":
        """Rows with the numbers of the rows that keys to any entity reference."""
        from pyspark.sql import functions as f  # noqa: PLC0415

        rows = self._rows[name]
        for i, link in enumerate(k for k in self._protection.links_of(name) if k.kind is LinkKind.REFERENCE):
            targets = self._rows[link.target].withColumnRenamed(NUMBER, f"t{i}")
            rows = self._joined(rows, name, link.key, targets, [f"t{i}"])
            found = f.when(self._is_known(name, link.key), f.coalesce(f.col(f"t{i}"), f.lit(MISSING))).otherwise(NULL)
            rows = rows.withColumn(f"t{i}", found.cast("bigint"))
        return rows

    def _joined(
        self, rows: "DataFrame", name: str, key: ForeignKey, targets: "DataFrame", adding: Sequence[str]
    ) -> "DataFrame":
        """Rows with columns of the rows that a key of theirs references; NULL where there is none."""
        wanted = self._coders[key.table].key(key.references)
        there = targets.select(*(targets[c].alias(f"there{i}") for i, c in enumerate(wanted)), *adding)
        pairs = [
            (rows[a], there[f"there{i}"], _same_type(self._protection, name, key, i))
            for i, a in enumerate(self._coders[name].key(key.columns))
        ]
        same = reduce(and_, (a == b if alike else a.cast("string") == b.cast("string") for a, b, alike in pairs))
        return rows.join(there, same, "left").drop(*(f"there{i}" for i in range(len(wanted))))

    def _is_known(self, name: str, key: ForeignKey) -> "Column":
        from pyspark.sql import functions as f  # noqa: PLC0415

        return reduce(and_, (f.col(c).isNotNull() for c in self._coders[name].key(key.columns)))

    def _keep(self, rows: "DataFrame") -> "DataFrame":
        kept = kept_on_disk(rows)
        self._kept.callback(kept.unpersist)
        return kept


def _same_type(protection: Protection, name: str, key: ForeignKey, place: int) -> bool:
    own = protection.schema.table(name).column(key.columns[place])
    there = protection.schema.table(key.table).column(key.references[place])
    return bool(key_type(own) == key_type(there))
