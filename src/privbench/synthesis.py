"""Draft, fit and generate in one go; the model is kept beside the bundle."""

import os
from collections.abc import Collection, Mapping
from fractions import Fraction
from pathlib import Path

from privbench.errors import SpecError
from privbench.fitting.draft import PRIVATE, draft
from privbench.fitting.fit import fit
from privbench.fitting.promise import parse_delta, parse_epsilon
from privbench.generation.generate import check_request, generate
from privbench.io.base import Format
from privbench.io.staging import check_target
from privbench.methods.method import Progress, silent
from privbench.model.arguments import format_of
from privbench.model.file import save_model
from privbench.model.model import Model
from privbench.schema.spec import Orphans
from privbench.schema.tables import Place
from privbench.schema.unit import Neighbours


def synth(
    source: Path | str,
    out: Path | str,
    *,
    unit: str | None = None,
    epsilon: Fraction | float | str,
    delta: Fraction | float | str = 0,
    domains: str = PRIVATE,
    method: str | None = None,
    neighbours: Neighbours = Neighbours.REPLACE,
    public: Collection[str] = (),
    drop: Collection[str] = (),
    drop_columns: Collection[Place] = (),
    owners: Mapping[str, tuple[str, ...]] | None = None,
    lookups: Mapping[str, str] | None = None,
    orphans: Orphans = Orphans.ERROR,
    scale: float = 1.0,
    seed: int | None = None,
    format: str = Format.PARQUET,  # noqa: A002
    model: Path | str | None = None,
    force: bool = False,
    find: bool = True,
    budget_limit: Fraction | float | str | None = None,
    progress: Progress = silent,
) -> tuple[Model, dict[str, int]]:
    """Make a bundle from a database; returns the model and the rows of each table.

    Takes what `draft`, `fit` and `generate` take. The model is kept in a file beside the bundle (OUT.model, or the path
    `model`), so that other scales and formats can be generated without spending budget again. What could fail at the
    end is checked first: no budget is spent on a bundle or a model that cannot be written.

    Example::

        fitted, rows = privbench.synth("shop", "bundle", unit="customer", epsilon="3.2")
    """
    budget, chance = parse_epsilon(epsilon), parse_delta(delta)
    format = format_of(format)  # noqa: A001
    check_request(scale, seed)
    kept = model_beside(out) if model is None else Path(model)
    if os.path.abspath(kept) == os.path.abspath(out):
        raise SpecError(f"{out}: is the place of the bundle and of its model. Give `--model` another path.")
    check_target(Path(out), force=force)
    check_target(kept, force=force, is_file=True)
    spec = draft(
        source,
        unit=unit,
        domains=domains,
        neighbours=neighbours,
        public=public,
        drop=drop,
        drop_columns=drop_columns,
        owners=owners,
        lookups=lookups,
        orphans=orphans,
        find=find,
        progress=progress,
    )
    fitted = fit(
        spec, epsilon=budget, delta=chance, method=method, budget_limit=budget_limit, out=kept, progress=progress
    )
    save_model(fitted, kept, force=force)
    rows = generate(fitted, out, scale=scale, seed=seed, format=format, force=force, progress=progress)
    return fitted, rows


def model_beside(out: Path | str) -> Path:
    """Where `synth` keeps the model of a bundle, if nothing else is said.

    >>> model_beside("new/bundle/").as_posix()
    'new/bundle.model'
    """
    path = os.path.normpath(out)
    return Path(f"{os.path.abspath(path) if os.path.basename(path) in ('.', '..') else path}.model")
