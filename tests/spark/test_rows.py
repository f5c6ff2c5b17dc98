"""Rows on their way to their part, without a cluster: what workers do gives the parts of one machine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import privbench
from privbench.encode.relative import stand_ins
from privbench.fitting.public_tables import PublicTables
from privbench.fitting.spark_gather import PartMaker
from privbench.fitting.spark_reading import row_coders
from privbench.fitting.spark_rows import Routing, RowCoder
from privbench.io.files import FolderSource
from privbench.model.model import compile_codecs
from privbench.privacy.part import Part
from privbench.privacy.spark_parts import DIGEST_BYTES, bytes_of, part_of, pieces_of

from ..e2e.shapes import SHAPES

PARTS = 3


class _Read:
    """A database as workers see it."""

    def __init__(self, name: str, folder: Path) -> None:
        shape = SHAPES[name]
        spec = privbench.draft(shape.write(folder), domains="data", **shape.choices)
        self.protection = spec.protection()
        self.codecs = compile_codecs(spec, self.protection)
        self.source = FolderSource(folder)
        public = PublicTables(self.source, self.protection)
        for table in public.named:
            public.read(table)
        self.coders = row_coders(self.protection, self.codecs, public.indexes, PARTS)
        self.null_bases = stand_ins(spec, self.protection)

    def batches(self, coder: RowCoder) -> Iterator[pa.RecordBatch]:
        """Rows as Spark gives them, with columns of other names."""
        for batch in self.source.read(coder.table):
            yield batch.rename_columns([f"c{i}" for i in range(batch.num_columns)])

    def parts(self) -> list[Part]:
        """The parts that workers make of all chunks, where no join is needed."""
        chunks = [b for c in self.coders.values() for b in c.chunks(self.batches(c))]
        rows = pa.Table.from_batches(chunks).sort_by("part")
        maker = PartMaker(
            protection=self.protection,
            codecs=self.codecs,
            coders=tuple(self.coders.values()),
            null_bases=self.null_bases,
        )
        made = pa.Table.from_batches(list(maker(iter(rows.to_batches())))).to_pylist()
        return [part_of(row["bytes"][DIGEST_BYTES:]) for row in made if row["piece"] >= 0]


def _entities(part: Part, table: str) -> list[tuple[Any, ...]]:
    """The rows of each entity in a table, in their order: what an entity has there, whatever number it has."""
    coded = part.tables[table]
    rows = np.stack([codes.astype(np.int64) for codes in coded.codes.values()], axis=1)
    return [tuple(map(tuple, rows[coded.entities == e].tolist())) for e in np.unique(coded.entities)]


@pytest.mark.parametrize("shape", ["parent_child", "wide"])
def test_entities_are_whole_and_as_on_one_machine(shape: str, tmp_path: Path) -> None:
    from privbench.fitting.reading import read_database

    read = _Read(shape, tmp_path)
    parts = read.parts()
    assert len(parts) == PARTS
    here = read_database(
        read.source,
        read.protection,
        read.codecs,
        orphans_as_null=False,
        null_bases=read.null_bases,
        progress=lambda *_: None,
    )
    (whole,) = here.parts.map(lambda counter: counter.part)
    for table in read.protection.order:
        there = [entity for part in parts for entity in _entities(part, table)]
        assert sorted(there) == sorted(_entities(whole, table))


@pytest.mark.parametrize("shape", ["three_levels", "odd_tables", "single"])
def test_rows_pass_through_spark_unchanged(shape: str, tmp_path: Path) -> None:
    read = _Read(shape, tmp_path)
    for coder in read.coders.values():
        plain = coder.coded(read.batches(coder))
        passed = map(coder.unwired, coder.wired(read.batches(coder)))
        for before, after in zip(plain, passed, strict=True):
            for name in after.schema.names:
                assert after.column(name) == before.column(name), (coder.table.name, name)


def test_keys_of_other_types_lead_to_the_same_part() -> None:
    numbers, texts = pa.array([5, 7, 10**12]), pa.array(["5", "7", "1000000000000"])
    routing = Routing(7, (True,))
    assert routing.part([numbers]).tolist() == routing.part([texts]).tolist()


def test_a_part_in_pieces_is_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    part = _Read("parent_child", tmp_path).parts()[0]
    monkeypatch.setattr("privbench.privacy.spark_parts.PIECE", 100)
    pieces = [row["bytes"] for batch in pieces_of(4, bytes_of(part)) for row in batch.to_pylist()]
    assert len(pieces) > 3
    assert bytes_of(part_of(b"".join(pieces))) == bytes_of(part)
