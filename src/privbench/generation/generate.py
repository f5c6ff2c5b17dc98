"""From a model to a bundle: every table made, decoded and written, in about constant memory at any scale.

All of it is post-processing: only the model is read, so it can be repeated, with other scales, seeds and
formats, at no cost in privacy. The same model, scale and seed give the same data files, byte for byte.
"""

import secrets
from collections.abc import Collection
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from privbench.errors import SpecError
from privbench.generation.bundle import published_schema, write_companions
from privbench.generation.partitions import Workers, generate_partitions
from privbench.generation.ruled import RuleCounts
from privbench.generation.run import Run, lost_lines
from privbench.io.base import Format, Loaded
from privbench.io.sinks import open_server, open_sink, server_kind
from privbench.io.staging import check_target, private_folder, staged
from privbench.methods.method import Progress, silent
from privbench.model.arguments import EngineName, format_of, member_of, model_of
from privbench.model.file import model_digest
from privbench.model.model import Model
from privbench.schema.original import OriginalUse

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
    partitions: int | None = None,
    only: Collection[int] | None = None,
    resume: bool = False,
    engine: str = "local",
    master: str | None = None,
    original: bool = True,
    original_code: bool = False,
    progress: Progress = silent,
) -> dict[str, int] | None:
    """Write a bundle from a model or a model file; returns the rows of each table. Costs no privacy.

    `scale` multiplies the rows of private tables; public tables do not scale. Without a seed one is chosen. For
    partitions see `partitions`: with `only`, no bundle is completed, and None returned. With the `engine` "spark" they
    are made on the cluster of a `master`, in a folder that all of its machines see. The scripts of the bundle run the
    source's own DDL but for its code: without `original` none of it, with `original_code` all of it.
    """
    check_request(scale, seed)
    use = original_use(original=original, original_code=original_code)
    workers = _workers(engine, master, partitions)
    if partitions is not None:
        if force:
            raise SpecError("--force does not go with --partitions. Remove the folder first, or choose another.")
        return generate_partitions(
            model_of(model),
            Path(out),
            partitions=partitions,
            only=only,
            resume=resume,
            scale=scale,
            seed=seed,
            form=format_of(format),
            workers=workers,
            original=use,
            progress=progress,
        )
    if only is not None or resume:
        raise SpecError("--only and --resume are for --partitions, which says how many partitions there are.")
    check_target(Path(out), force=force)
    form, model = format_of(format), model_of(model)
    seed = secrets.randbits(32) if seed is None else seed
    with staged(Path(out), force=force) as folder, private_folder() as spool:
        (folder / "data").mkdir(parents=True)
        run = Run(model, scale=scale, seed=seed, spool=spool)
        published = model.protection.schema.published()
        with closing(run), open_sink(folder / "data", schema=published, format=form) as sink:
            run.write(sink, progress)
        rows = {table.name: run.written[table.name] for table in published.tables}
        write_companions(
            folder,
            model,
            rows=rows,
            form=form,
            lost=lost_lines(model, run.totals, rows, run.rule_counts),
            rules=run.rule_counts,
            scale=scale,
            seed=seed,
            original=use,
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
    original: bool = True,
    original_code: bool = False,
    progress: Progress = silent,
) -> LoadedDatabase:
    """Load the tables of a model on a server, with keys, indexes and what else the source has. Costs no privacy.

    Rows are those that the same model, scale and seed give in files. With `out`, what stands beside the data in a
    bundle is written there. All or nothing: whatever fails, the target is left as it was.

    The source's own DDL is run but for its code (functions, extensions, and what calls functions that are in no closed
    list): without `original` none of it, with `original_code` all of it. A model from someone else may say anything.

    Example::

        loaded = privbench.load_database("shop.model", "postgresql://ann@localhost/shop", replace=True)
    """
    check_request(scale, seed)
    use = original_use(original=original, original_code=original_code)
    kind = server_kind(url)
    if kind is None:
        raise SpecError(f"{url}: is no URL of a database.")
    if out is not None:
        check_target(Path(out), force=force)
    model = model_of(model)
    seed = secrets.randbits(32) if seed is None else seed
    published = published_schema(model, use)
    with ExitStack() as stack:
        folder = None if out is None else stack.enter_context(staged(Path(out), force=force))
        spool = stack.enter_context(private_folder())
        run = stack.enter_context(closing(Run(model, scale=scale, seed=seed, spool=spool)))
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
                lost=lost_lines(model, run.totals, rows, run.rule_counts),
                rules=run.rule_counts,
                scale=scale,
                seed=seed,
                left_out=loaded.left_out,
                original=use,
            )
        return LoadedDatabase(
            location=sink.location,
            rows=rows,
            rules=dict(run.rule_counts),
            seed=seed,
            model=model_digest(model),
            loaded=loaded,
        )


def _workers(engine: str, master: str | None, partitions: int | None) -> Workers | None:
    """Who makes partitions: threads of this process, if it is None."""
    if member_of(EngineName, engine) is EngineName.LOCAL:
        if master is not None:
            raise SpecError(f"--master {master}: is for `--engine spark`.")
        return None
    if partitions is None:
        raise SpecError("--engine spark makes partitions: say how many with --partitions, such as 64.")
    from privbench.generation.on_spark import on_spark  # noqa: PLC0415  with PySpark, which is optional

    return on_spark(master)


def original_use(*, original: bool, original_code: bool) -> OriginalUse:
    """What of the source's own DDL to use; SpecError if none and all of it are asked for."""
    if original_code and not original:
        raise SpecError("--no-original and --original-code exclude each other. Choose one of them.")
    if original_code:
        return OriginalUse.CODE
    return OriginalUse.CHECKED if original else OriginalUse.NONE


def check_request(scale: float, seed: int | None) -> None:
    """Refuse a scale factor or seed that no bundle can have."""
    if not SCALES[0] <= scale <= SCALES[1]:
        raise SpecError(f"scale is {scale:g}: it must lie between {SCALES[0]:g} and {SCALES[1]:g}.")
    if seed is not None and seed < 0:
        raise SpecError(f"seed is {seed}: it must not be negative.")
