"""From a model to a bundle: every table made, decoded and written, in about constant memory at any scale.

All of it is post-processing: only the model is read, so it can be repeated, with other scales, seeds and
formats, at no cost in privacy. The same model, scale and seed give the same data files, byte for byte.
"""

import logging
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from privbench.errors import SpecError
from privbench.generation.bundle import write_companions
from privbench.generation.draws import DrawRun
from privbench.generation.keys import KeyMaker
from privbench.generation.late import Late
from privbench.generation.rows import Made, PrivateRows, PublicRows
from privbench.generation.ruled import RuleCounts
from privbench.generation.sizes import Sizes, lost_rows
from privbench.io.base import Format, Loaded, Sink
from privbench.io.sinks import open_server, open_sink, server_kind
from privbench.io.staging import check_target, private_folder, staged
from privbench.methods.method import Progress, silent
from privbench.model.arguments import format_of, model_of
from privbench.model.file import model_digest
from privbench.model.model import Model
from privbench.schema.lists import lists_of
from privbench.schema.tables import Table
from privbench.schema.unit import Role

_logger = logging.getLogger(__name__)
SCALES = (0.01, 1000.0)
"""Smallest and largest scale factor."""


def generate(
    model: Model | Path | str,
    out: Path | str,
    *,
    scale: float = 1.0,
    seed: int | None = None,
    format: str = Format.PARQUET,  # noqa: A002
    force: bool = False,
    progress: Progress = silent,
) -> dict[str, int]:
    """Write a bundle from a model or a model file; returns the rows of each table. Costs no privacy.

    `scale` multiplies the rows of private tables; public tables do not scale. Without a seed one is chosen.
    """
    check_request(scale, seed)
    check_target(Path(out), force=force)
    form, model = format_of(format), model_of(model)
    seed = secrets.randbits(32) if seed is None else seed
    with staged(Path(out), force=force) as folder, private_folder() as spool:
        (folder / "data").mkdir(parents=True)
        run = _Run(model, scale=scale, seed=seed, spool=spool)
        published = model.protection.schema.published()
        with closing(run), open_sink(folder / "data", schema=published, format=form) as sink:
            run.write(sink, progress)
        rows = {table.name: run.written[table.name] for table in published.tables}
        write_companions(
            folder,
            model,
            rows=rows,
            form=form,
            lost=run.lost(rows),
            rules=run.rule_counts,
            scale=scale,
            seed=seed,
        )
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedDatabase:
    """What was loaded on a server, and from which model and seed, so that it can be made again."""

    location: str
    """The URL without its password."""

    rows: dict[str, int]
    rules: dict[str, RuleCounts]
    seed: int
    model: str
    """The digest of the model, which holds the receipt."""

    loaded: Loaded


def load_database(
    model: Model | Path | str,
    url: str,
    out: Path | str | None = None,
    *,
    scale: float = 1.0,
    seed: int | None = None,
    force: bool = False,
    replace: bool = False,
    progress: Progress = silent,
) -> LoadedDatabase:
    """Load the tables of a model on a server, with keys, indexes and what else the source has. Costs no privacy.

    Rows are those that the same model, scale and seed give in files. With `out`, what stands beside the data in a
    bundle is written there. All or nothing: whatever fails, the target is left as it was.

    Example::

        loaded = privbench.load_database("shop.model", "postgresql://ann@localhost/shop", replace=True)
    """
    check_request(scale, seed)
    kind = server_kind(url)
    if kind is None:
        raise SpecError(f"{url}: is no URL of a database.")
    if out is not None:
        check_target(Path(out), force=force)
    model = model_of(model)
    seed = secrets.randbits(32) if seed is None else seed
    published = model.protection.schema.published()
    with ExitStack() as stack:
        folder = None if out is None else stack.enter_context(staged(Path(out), force=force))
        spool = stack.enter_context(private_folder())
        run = stack.enter_context(closing(_Run(model, scale=scale, seed=seed, spool=spool)))
        sink = open_server(url, schema=published, replace=replace)
        stack.enter_context(sink)
        run.write(sink, progress)
        rows = {table.name: run.written[table.name] for table in published.tables}
        progress("making keys and indexes", 0, 1)
        loaded = sink.complete()
        if folder is not None:
            (folder / "data").mkdir(parents=True)
            write_companions(
                folder,
                model,
                rows=rows,
                form=kind.schemes[0],
                lost=run.lost(rows),
                rules=run.rule_counts,
                scale=scale,
                seed=seed,
                left_out=loaded.left_out,
            )
        return LoadedDatabase(
            location=sink.location,
            rows=rows,
            rules=dict(run.rule_counts),
            seed=seed,
            model=model_digest(model),
            loaded=loaded,
        )


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
        self._scale = scale
        self._run = DrawRun(model, scale=scale, seed=seed, folder=spool / "carried")
        self._keep_keys, self._planned = self._run.keeps_entity_keys, self._run.planned
        self._keys = KeyMaker(model, keep_entity_keys=self._keep_keys, folder=spool)
        self._late = Late(model, self._keys, spool / "late")
        self.written: dict[str, int] = {}
        self.rule_counts: dict[str, RuleCounts] = {}
        for name in model.protection.order:
            self._keys.check_room(model.protection.schema.table(name), self._planned[name], scale)

    def close(self) -> None:
        """Let go of all files that are open for what tables carry, and for rows that are kept."""
        self._run.spools.close()
        self._late.close()

    def lost(self, rows: Sizes) -> list[str]:
        """What to say of tables that came out smaller than planned, with the rows of the published ones."""
        left_out = {name: counts.left_out for name, counts in self.rule_counts.items()}
        lines = lost_rows(self._model, self._planned, rows, left_out)
        for table in lists_of(self._model.protection):
            if lost := left_out.get(table.name, 0):
                lines.append(
                    f"{table.name}: {lost:,} rows of this hidden list would have broken a rule and were left out, with "
                    f"rows of {', '.join(table.list_of)} that belong to them."
                )
                _logger.warning("%s", lines[-1])
        return lines

    def write(self, sink: Sink, progress: Progress) -> None:
        """Make all tables and write those that are published."""
        for table, batch in self.batches(progress):
            if not self._model.protection.schema.table(table).list_of:
                sink.write(table, batch)

    def batches(self, progress: Progress) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Every batch of every table, with the name of its table; those that are finished in the end come last."""
        for name in self._run.order:
            self.written[name] = 0
            table = self._model.protection.schema.table(name)
            step = f"making {name}" if self._late.takes(name) else f"writing {name}"
            for made in self._table(table):
                self.written[name] += made.batch.num_rows
                self._late.keep(name, made)
                if not self._late.takes(name):
                    yield name, made.batch
                progress(step, self.written[name], max(self._planned.get(name, 0), self.written[name]))
            self._keys.finish(name)
            if name in self._model.tables:
                self._run.spools.finish(name)
        yield from self._late.batches(progress)

    def _table(self, table: Table) -> Iterator[Made]:
        sizes = self._planned | self.written | {table.name: self._planned[table.name]}
        if self._model.protection.roles[table.name] is Role.PUBLIC:
            public = PublicRows(
                self._model, table.name, sizes=sizes, keys=self._keys, keep_entity_keys=self._keep_keys, seed=self._seed
            )
            return public.batches()
        draws = self._run.draws(table.name, sizes)
        self._keys.check_room(table, draws.rows, self._scale)
        sizes[table.name] = draws.rows
        rows = PrivateRows(self._model, table.name, draws=draws, sizes=sizes, keys=self._keys, spools=self._run.spools)
        if rows.rule_counts is not None:
            self.rule_counts[table.name] = rows.rule_counts
        return rows.batches()
