"""Parts made by the workers of Spark, of the chunks of all private tables that belong to the same entities.

All rows of an entity are in one part, so keys to rows of the same entity are found there, and whose row is whose is
found as for a whole database. Keys to rows of others come as numbers, which a join found.
"""

import hashlib
import pickle
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.codec import Codecs
from privbench.encode.grid import one_array
from privbench.encode.hashing import fingerprint
from privbench.encode.keys import MISSING, NULL, KeyIndex, Positions, missing_rows
from privbench.fitting.entities import KeyPositions, RawTable, assign_entities
from privbench.fitting.part_rows import INSIDE, GatheredTable, make_part
from privbench.fitting.relative import NullBases
from privbench.fitting.slabs import changed
from privbench.fitting.spark_rows import NUMBER, OwnerList, RowCoder
from privbench.privacy.part import Part
from privbench.privacy.spark_parts import DIGEST_BYTES, PIECES, bytes_of, pieces_of
from privbench.schema.unit import Link, LinkKind, Protection, key_name
from privbench.spark.jobs import Batches

FACTS = -1
"""The piece of a part that says what is to be checked of its rows."""
SEED = -1
"""The place of a chunk without rows, by which a part is made even if it has none."""
LOCAL = (*INSIDE, LinkKind.IMPLIED)
"""Keys to rows of the same entity."""


@dataclass(slots=True, kw_only=True)
class PartFacts:
    """What is to be checked of the rows of parts, for the publisher's eyes; those of several parts add up."""

    rows: Counter[str] = field(default_factory=Counter)
    nulls: Counter[str] = field(default_factory=Counter)
    """By key: rows in which it is NULL."""
    lost: Counter[str] = field(default_factory=Counter)
    """By key: rows whose key references no row of the part, or of its public table."""
    keys: Counter[str] = field(default_factory=Counter)
    """By table that has keys: their fingerprint."""
    listed: Counter[int] = field(default_factory=Counter)
    """By place of a list of owners: the fingerprint of its keys."""
    digests: dict[int, bytes] = field(default_factory=dict)
    """By part: a digest of its rows."""
    broken: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    """By table: rows that break each of its rules over one row."""
    broken_above: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """By table: rows that break each of its rules over rows above."""

    def plus(self, other: "PartFacts") -> "PartFacts":
        """What two parts say together."""
        return PartFacts(
            rows=Counter({n: c + other.rows[n] for n, c in self.rows.items()}),
            nulls=Counter({n: c + other.nulls[n] for n, c in self.nulls.items()}),
            lost=Counter({n: c + other.lost[n] for n, c in self.lost.items()}),
            keys=Counter({n: (c + other.keys[n]) % 2**64 for n, c in self.keys.items()}),
            listed=Counter({n: (c + other.listed[n]) % 2**64 for n, c in self.listed.items()}),
            digests=self.digests | other.digests,
            broken={n: c + other.broken[n] for n, c in self.broken.items()},
            broken_above={n: c + other.broken_above[n] for n, c in self.broken_above.items()},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartMaker:
    """Makes parts of the chunks that a worker gets, which are sorted by part."""

    protection: Protection
    codecs: Codecs
    coders: tuple[RowCoder, ...]
    """In the order of private tables."""
    listed: tuple[OwnerList, ...] = ()
    """The lists of owners by which it is checked that those which are not found are missing."""
    null_bases: NullBases

    def __call__(self, batches: Batches) -> Batches:
        """Each part in pieces, and before them what is to be checked of it."""
        rows = (row for batch in batches for row in zip(*batch.columns, strict=True))
        for number, chunks in groupby(rows, key=lambda row: row[0].as_py()):
            held: dict[int, list[pa.Table]] = {}
            for _, place, content in chunks:
                if place.as_py() != SEED:
                    held.setdefault(place.as_py(), []).append(pa.ipc.open_stream(content.as_buffer()).read_all())
            tables = {place: pa.concat_tables(found) for place, found in held.items()}
            part, facts = self.make(number, tables)
            facts.digests[number] = digest = _digest(tables)
            row = {"part": number, "piece": FACTS, "bytes": pickle.dumps(facts)}
            yield pa.RecordBatch.from_pylist([row], schema=PIECES)
            yield from pieces_of(number, digest + bytes_of(part))

    def make(self, number: int, chunks: Mapping[int, pa.Table]) -> tuple[Part, PartFacts]:
        """A part of the rows of some entities, by the places of their tables; and what is to be checked of them."""
        rows = {c.table.name: chunks[c.place] if c.place in chunks else c.no_rows() for c in self.coders}
        coders = {c.table.name: c for c in self.coders}
        facts = PartFacts(
            rows=Counter({name: held.num_rows for name, held in rows.items()}),
            keys=Counter({name: coder.fingerprint(rows[name]) for name, coder in coders.items() if coder.keys}),
            listed=Counter({o.place: o.coder.fingerprint(_listed(o, chunks)) for o in self.listed}),
        )
        keys: dict[str, dict[str, KeyPositions]] = {name: {} for name in coders}
        for link in (link for link in self.protection.keys if link.table in coders):
            keys[link.table][link.name] = self._positions(link, coders, rows)
            found = keys[link.table][link.name].rows
            facts.nulls[link.name] = int((found == NULL).sum())
            facts.lost[link.name] = int((found == MISSING).sum())
        for coder in (c for c in self.coders if c.direct is None):
            self._check_owners(number, coder, rows[coder.table.name], keys[coder.table.name], chunks)
        raw = {n: RawTable(codes={}, values={}, keys=dict(keys[n]), rows=held.num_rows) for n, held in rows.items()}
        entities = {name: table.entities for name, table in assign_entities(self.protection, raw).items()}
        gathered = {n: self._gathered(c, rows, keys[n], entities[n]) for n, c in coders.items()}
        facts.broken = {n: c.broken(rows[n]) for n, c in coders.items()}
        part, facts.broken_above = make_part(self.protection, self.codecs, gathered, null_bases=self.null_bases)
        return part, facts

    def _positions(self, link: Link, coders: Mapping[str, RowCoder], rows: Mapping[str, pa.Table]) -> KeyPositions:
        """What a key references: places in the part of rows of the same entity, else numbers."""
        coder, held = coders[link.table], rows[link.table]
        if link.kind not in LOCAL:
            positions = coder.numbers_of(link, held)
            return KeyPositions(rows=positions, missing=np.full(len(positions), -1, np.int64))
        values = [held.column(name) for name in coder.key(link.key.columns)]
        targets = coders[link.target].key(link.key.references)
        index = KeyIndex(link.name, [rows[link.target].column(name) for name in targets], nullable=True)
        positions = index.find(values)
        return KeyPositions(rows=positions, missing=missing_rows(positions, values))

    def _check_owners(
        self,
        number: int,
        coder: RowCoder,
        rows: pa.Table,
        keys: Mapping[str, KeyPositions],
        chunks: Mapping[int, pa.Table],
    ) -> None:
        """Refuse rows without their owner that are not where those of missing ones go, or whose owner is listed there.

        A join brought them here, which read the owners at another time.
        """
        name = coder.table.name
        undecided = np.full(rows.num_rows, fill_value=True)
        for key in self.protection.owner_keys(name):
            found = keys[key_name(name, key)].rows
            lost = pa.array(undecided & (found == MISSING))
            undecided &= found == NULL
            wanted = [one_array(rows.column(c).filter(lost)) for c in coder.key(key.columns)]
            if (coder.routing.missing_part(wanted) != number).any():
                raise changed(name)
            for owners in self.listed:
                if (owners.coder.table.name, owners.references) == (key.table, key.references):
                    there = _listed(owners, chunks)
                    columns = [there.column(c) for c in owners.coder.key(owners.references)]
                    if (KeyIndex(name, columns, nullable=True).find(wanted) >= 0).any():
                        raise changed(name)

    def _gathered(
        self,
        coder: RowCoder,
        rows: Mapping[str, pa.Table],
        keys: Mapping[str, KeyPositions],
        entities: NDArray[np.integer],
    ) -> GatheredTable:
        held = rows[coder.table.name]
        links = self.protection.links_of(coder.table.name)
        return GatheredTable(
            codes=coder.codes(held),
            values=coder.values(held, coder.work.values),
            ruled=coder.values(held, coder.work.ruled),
            keys={link.name: self._numbers(link, rows, keys[link.name].rows) for link in links},
            entities=entities.astype(np.int64),
            numbers=_own_numbers(held),
            order=coder.order(held),
        )

    def _numbers(self, link: Link, rows: Mapping[str, pa.Table], positions: Positions) -> Positions:
        """The numbers of the rows that a key references."""
        if link.kind not in INSIDE:
            return positions
        return np.where(positions >= 0, np.append(_own_numbers(rows[link.target]), NULL)[positions], positions)


def _listed(owners: OwnerList, chunks: Mapping[int, pa.Table]) -> pa.Table:
    """The keys of a list of owners in a part."""
    return chunks[owners.place] if owners.place in chunks else owners.coder.no_rows()


def _digest(tables: Mapping[int, pa.Table]) -> bytes:
    """A digest of rows, by the places of their tables, that does not depend on their order."""
    known = {place: fingerprint([one_array(column) for column in rows.columns]) for place, rows in tables.items()}
    return hashlib.blake2b(repr(sorted(known.items())).encode(), digest_size=DIGEST_BYTES).digest()


def _own_numbers(rows: pa.Table) -> Positions:
    """The numbers of rows in their whole table; where none references these, their places in the part."""
    if NUMBER in rows.column_names:
        return np.asarray(rows.column(NUMBER).to_numpy(), np.int64)
    return np.arange(rows.num_rows)
