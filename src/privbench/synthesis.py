"""Rehearse and fit; write a bundle from a model; or draft, fit and generate in one go, with the model kept beside."""

import os
import tempfile
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

from privbench.bundle import Bundle, model_beside
from privbench.errors import PrivBenchError, SpecError, first_line
from privbench.fitting.draft import PRIVATE, draft
from privbench.fitting.fit import Rehearse
from privbench.fitting.fit import fit as learn_model
from privbench.fitting.memory import parse_memory
from privbench.fitting.promise import parse_delta, parse_epsilon
from privbench.generation.generate import check_request, original_use
from privbench.generation.generate import generate as write_bundle
from privbench.io.base import Format
from privbench.io.given import Given, source_of
from privbench.io.staging import check_target, private_folder
from privbench.methods.method import Progress, silent
from privbench.model.arguments import format_of, model_of
from privbench.model.file import save_model
from privbench.model.model import Model
from privbench.privacy.noise import Entropy
from privbench.schema.spec import Orphans, Sizes, Spec
from privbench.schema.tables import Place
from privbench.schema.unit import Neighbours

_PAID = "The model is paid for, and kept in {0}: `privbench generate {0} -o OUT` makes bundles from it at no cost."


def fit(
    spec: Spec | Path | str,
    *,
    source: Given | None = None,
    epsilon: Fraction | float | str,
    delta: Fraction | float | str = 0,
    method: str | None = None,
    budget_limit: Fraction | float | str | None = None,
    memory: str | int | None = None,
    engine: str = "local",
    master: str | None = None,
    out: Path | str | None = None,
    entropy: Entropy | None = None,
    rehearse: bool = True,
    progress: Progress = silent,
) -> Model:
    """Learn a model of the database that a spec or spec file describes, spending epsilon.

    `source` overrides the spec's: a place, or tables in memory as `draft` takes them. The spec's is tried from the
    working directory and then from the folder of the spec file. The noise comes from the operating system; a test may
    pass its own `entropy`, and the model is then stamped "not private". With a `delta` (such as "1e-9") epsilon may
    fail with that chance, and noise is Gaussian.

    What was spent goes into the budget record of this user (see `budget`), with `out` as the place where the model will
    be written; what it adds up to with others of the source is logged as a warning. With a `budget_limit` nothing is
    spent if all releases of the source add up to more; BudgetError then.

    First the whole way is walked once on made-up rows, so that what can fail for reasons of the spec fails before
    anything is spent (`rehearse`).

    `memory` (such as "2GB") is about what the fit may take, by default half of what is free: coded rows that do not fit
    are kept in files of a private temporary folder, which is removed at the end. With the `engine` "spark" rows are
    read and counted on a cluster (see docs/spark.md): that of a `master` such as "spark://host:7077", else that of the
    running session, else all cores of this machine.

    Example::

        model = privbench.fit("spec.yaml", epsilon="3.2")
    """
    return learn_model(
        spec,
        source=source,
        epsilon=epsilon,
        delta=delta,
        method=method,
        budget_limit=budget_limit,
        memory=memory,
        engine=engine,
        master=master,
        out=out,
        entropy=entropy,
        rehearse=_rehearsal() if rehearse else None,
        progress=progress,
    )


def _rehearsal() -> Rehearse:
    from privbench.rehearsal import rehearse  # noqa: PLC0415  loads the verifier and all sinks

    return rehearse


def generate(
    model: Model | Path | str,
    out: Path | str | None = None,
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
) -> Bundle:
    """Write a bundle from a model or a model file; returns it with the rows of each table. Costs no privacy.

    `scale` multiplies the rows of private tables; public tables do not scale. Without a seed one is chosen. Without
    `out` the bundle lies in a temporary folder as long as the value that is returned: `.tables()` gives its tables in
    memory, `.save(path)` keeps it.

    With `partitions` each table is a folder of so many files, each the same bytes wherever it is made. `only` makes
    some of them, numbered from 0, and leaves the bundle to be completed by a call without it; `resume` goes on with
    what is there. With the `engine` "spark" they are made on the cluster of a `master`, in a folder that all of its
    machines see (docs/spark.md).

    The scripts of the bundle run the source's own DDL but for its code: without `original` none of it, with
    `original_code` all of it (docs/sinks.md).

    Example::

        tables = privbench.generate("shop.model", scale=10, seed=7).tables()
        privbench.generate("shop.model", "bundle", format="duckdb")
        privbench.generate("shop.model", "large", scale=1000, seed=7, partitions=64, only=[7])
    """
    return _written(
        model_of(model),
        out,
        scale=scale,
        seed=seed,
        format=format,
        force=force,
        partitions=partitions,
        only=only,
        resume=resume,
        engine=engine,
        master=master,
        original=original,
        original_code=original_code,
        progress=progress,
        keep_model=False,
    )


def _written(model: Model, out: Path | str | None, *, keep_model: bool, **request: Any) -> Bundle:
    """Write a bundle to its place, or to a temporary one that goes with the value."""
    if out is not None:
        rows = write_bundle(model, out, **request) or {}
        return Bundle(path=Path(out), model=model, rows=rows, keep_model=keep_model)
    with ExitStack() as held:
        path = held.enter_context(private_folder()) / "bundle"
        rows = write_bundle(model, path, **request) or {}
        return Bundle(path=path, model=model, rows=rows, keep_model=keep_model, held=held.pop_all())


def synth(
    source: Given,
    out: Path | str | None = None,
    *,
    unit: str | None = None,
    schema: str | os.PathLike[str] | None = None,
    null: Collection[str] = (),
    delimiter: str | None = None,
    ragged: str = "error",
    epsilon: Fraction | float | str,
    delta: Fraction | float | str = 0,
    domains: str = PRIVATE,
    method: str | None = None,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    sizes: Sizes | str = Sizes.MEASURED,
    public: Collection[str] = (),
    made_up: Mapping[str, int] | Collection[str] = (),
    drop: Collection[str] = (),
    drop_columns: Collection[Place] = (),
    owners: Mapping[str, tuple[str, ...]] | None = None,
    lookups: Mapping[str, str] | None = None,
    orphans: Orphans | str = Orphans.ERROR,
    scale: float = 1.0,
    seed: int | None = None,
    format: str = Format.PARQUET,  # noqa: A002
    model: Path | str | None = None,
    force: bool = False,
    find: bool = True,
    budget_limit: Fraction | float | str | None = None,
    memory: str | int | None = None,
    rehearse: bool = True,
    original: bool = True,
    original_code: bool = False,
    progress: Progress = silent,
) -> Bundle:
    """Make a bundle from a database; returns it with its model and the rows of each table.

    Takes what `draft`, `fit` and `generate` take. The model is kept in a file beside the bundle (OUT.model, or the path
    `model`), so that other scales and formats can be generated without spending budget again. What could fail at the
    end is checked first: no budget is spent on a bundle or a model that cannot be written. Without `out` the bundle
    lies in a temporary folder as long as the value that is returned: `.tables()` gives its tables in memory, and
    `.save(path)` keeps it, with its model.

    Example::

        made = privbench.synth({"customer": df}, unit="customer", schema="schema.sql", epsilon="3.2")
        made.tables()["customer"].to_pandas()
    """
    budget, chance, most_memory = parse_epsilon(epsilon), parse_delta(delta), parse_memory(memory)
    format = format_of(format)  # noqa: A001
    check_request(scale, seed)
    original_use(original=original, original_code=original_code)
    kept = _model_path(out, model)
    if out is not None:
        check_target(Path(out), force=force)
    if kept is not None:
        check_target(kept, force=force, is_file=True)
    located = source_of(source, schema=schema, null=null, delimiter=delimiter, ragged=ragged)
    spec = draft(
        located,
        unit=unit,
        domains=domains,
        neighbours=neighbours,
        sizes=sizes,
        public=public,
        made_up=made_up,
        drop=drop,
        drop_columns=drop_columns,
        owners=owners,
        lookups=lookups,
        orphans=orphans,
        find=find,
        progress=progress,
    )
    fitted = fit(
        spec,
        source=located,
        epsilon=budget,
        delta=chance,
        method=method,
        budget_limit=budget_limit,
        memory=most_memory,
        out=kept,
        rehearse=rehearse,
        progress=progress,
    )
    if kept is not None:
        keep_model(fitted, kept, force=force)
    request = {"scale": scale, "seed": seed, "format": format, "force": force, "progress": progress}
    try:
        return _written(fitted, out, keep_model=True, original=original, original_code=original_code, **request)
    except Exception as error:
        error.add_note(_rescued(fitted) if kept is None else _PAID.format(kept))
        raise


def keep_model(model: Model, path: Path, *, force: bool) -> None:
    """Save a model that is paid for: if not at its place, in a temporary folder that the error names."""
    try:
        save_model(model, path, force=force)
    except Exception as error:
        error.add_note(_rescued(model))
        raise


def _rescued(model: Model) -> str:
    """Save a model where there may be room for it, and say where."""
    try:
        path = Path(tempfile.mkdtemp(prefix="privbench-kept-")) / "kept.model"
        save_model(model, path)
    except (PrivBenchError, OSError) as error:
        return f"The model is paid for, but could not be kept in a temporary folder, either: {first_line(error)}"
    return _PAID.format(path)


def _model_path(out: Path | str | None, model: Path | str | None) -> Path | None:
    """Where the model goes; nowhere if neither it nor the bundle has a place."""
    if model is None:
        return None if out is None else model_beside(out)
    if out is not None and os.path.abspath(model) == os.path.abspath(out):
        raise SpecError(f"{out}: is the place of the bundle and of its model. Give `--model` another path.")
    return Path(model)
