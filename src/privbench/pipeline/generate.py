"""From a model to a bundle: every table made, decoded and written, in about constant memory at any scale.

All of it is post-processing: only the model is read, so it can be repeated, with other scales, seeds and
formats, at no cost in privacy. The same model, scale and seed give the same data files, byte for byte.
"""

import io
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from privbench.errors import SpecError
from privbench.io.base import Format
from privbench.io.sinks import open_sink
from privbench.io.staging import check_target, staged
from privbench.methods.base import Progress, silent
from privbench.pipeline.bundle import write_companions
from privbench.pipeline.cautions import lost_rows
from privbench.pipeline.given import format_of, model_of
from privbench.pipeline.keymaker import KeyMaker, keeps_entity_keys
from privbench.pipeline.model import Model
from privbench.pipeline.order import generation_order
from privbench.pipeline.private_rows import PrivateRows
from privbench.pipeline.public_rows import PublicRows
from privbench.schema.unit import Role

SCALES = (0.01, 1000.0)
"""Smallest and largest scale factor."""


def generate(
    model: Model | Path | str,
    out: Path | str,
    *,
    scale: float = 1.0,
    seed: int | None = None,
    format: Format | str = Format.PARQUET,  # noqa: A002
    force: bool = False,
    progress: Progress = silent,
) -> dict[str, int]:
    """Write a bundle from a model or a model file; returns the rows of each table. Costs no privacy.

    `scale` multiplies the rows of private tables; public tables do not scale. Without a seed one is chosen.

    Example::

        rows = privbench.generate("shop.model", "bundle", scale=10, seed=7, format="duckdb")
    """
    check_request(scale, seed)
    check_target(Path(out), force=force)
    form, model = format_of(format), model_of(model)
    seed = secrets.randbits(32) if seed is None else seed
    with staged(Path(out), force=force) as folder, tempfile.TemporaryDirectory() as spool:
        (folder / "data").mkdir(parents=True)
        run = _Run(model, scale=scale, seed=seed, spool=Path(spool))
        with open_sink(folder / "data", schema=model.protection.schema, format=form) as sink:
            for table, batch in run.batches(progress):
                sink.write(table, batch)
        write_companions(folder, model, rows=run.written, form=form, lost=run.lost(), scale=scale, seed=seed)
        return run.written


def check_request(scale: float, seed: int | None) -> None:
    """Refuse a scale factor or seed that no bundle can have."""
    if not SCALES[0] <= scale <= SCALES[1]:
        raise SpecError(f"scale is {scale:g}: it must lie between {SCALES[0]:g} and {SCALES[1]:g}.")
    if seed is not None and seed < 0:
        raise SpecError(f"seed is {seed}: it must not be negative.")


class _Run:
    """One generation: the sizes of the tables so far, and the keys that were made."""

    def __init__(self, model: Model, *, scale: float, seed: int, spool: Path) -> None:
        self._model = model
        self._seed = seed
        self._keep_keys = keeps_entity_keys(model, scale)
        self._keys = KeyMaker(model, keep_entity_keys=self._keep_keys, folder=spool)
        self._order = generation_order(model.spec, model.protection)
        self._planned = planned_rows(model, scale)
        self.written: dict[str, int] = {}
        for name in model.protection.order:
            self._keys.check_room(model.protection.schema.table(name), self._planned[name], scale)

    def lost(self) -> list[str]:
        """What to say of tables that came out smaller than planned."""
        return lost_rows(self._model, self._planned, self.written)

    def batches(self, progress: Progress) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Every batch of every table, with the name of its table."""
        for name in self._order:
            self.written[name] = 0
            table = self._model.protection.schema.table(name)
            for batch in self._table(name):
                self.written[name] += batch.num_rows
                self._keys.spool(table, batch)
                yield name, batch
                progress(f"writing {name}", self.written[name], max(self._planned.get(name, 0), self.written[name]))
            self._keys.finish(name)

    def _table(self, name: str) -> Iterator[pa.RecordBatch]:
        sizes = self._planned | self.written | {name: self._planned[name]}
        if self._model.protection.roles[name] is Role.PUBLIC:
            public = PublicRows(
                self._model, name, sizes=sizes, keys=self._keys, keep_entity_keys=self._keep_keys, seed=self._seed
            )
            return public.batches()
        rows = PrivateRows(self._model, name, rows=self._planned[name], sizes=sizes, keys=self._keys, seed=self._seed)
        return rows.batches()


def planned_rows(model: Model, scale: float) -> dict[str, int]:
    """How many rows each table is to have. One that has rows keeps at least one at any scale.

    A table with a NOT NULL key into a table without rows has none either.
    """
    schema, private = model.protection.schema, model.protection.order
    planned = {n: pq.ParquetFile(io.BytesIO(content)).metadata.num_rows for n, content in model.public.items()}
    for name in private:
        rows = model.tables[name].rows
        planned[name] = max(round(rows * scale), 1 if rows >= 0.5 else 0)
    for _ in private:
        for link in (k for k in model.protection.links if k.table in private and planned[k.key.table] == 0):
            if not any(schema.table(link.table).column(c).nullable for c in link.key.columns):
                planned[link.table] = 0
    return planned
