"""The whole walk over one database: draft, fit, save, generate, verify, load by its own DDL, evaluate.

What is refused must be refused by an error of our own, before the first draw; all that follows has to work.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

import privbench
from privbench.errors import PrivBenchError
from privbench.fitting.domains import wanted_types
from privbench.io.base import Format
from privbench.io.names import file_stems, quote_sql
from privbench.io.render import is_generated, plan
from privbench.methods.domains.coarse import coarse_domain
from privbench.model.model import Model
from privbench.schema.domain import Origin
from privbench.schema.spec import Spec
from privbench.schema.types import Kind

from ..seeded import SeededEntropy
from .checks import broken_promises, read_bundle
from .shapes import Shape

MODES: dict[str, dict[str, Any]] = {
    "private": {"domains": "private"},
    "delta": {"domains": "private", "delta": "1e-9"},
    "data": {"domains": "data"},
}
"""Where domains come from, and the delta of the fit."""
EPSILONS = ("0.5", "3.2", "50", "400")
"""Little is seen through the noise of the first; the last leaves nearly none."""


class CountedEntropy(SeededEntropy):
    """Noise that knows whether any was drawn."""

    drawn = 0

    def words(self, count: int) -> NDArray[np.uint64]:
        self.drawn += count
        return super().words(count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Why a database was not fitted."""

    step: str
    error: PrivBenchError


def walk(shape: Shape, folder: Path, mode: str, *, seed: int = 0, rehearse: bool = True) -> Refused | None:
    """Walk a database through; returns why not, if it was refused. Raises whatever else happens.

    Without a rehearsal it ends with the bundle, loaded by its own DDL.
    """
    options, source = MODES[mode], folder / "source"
    if not source.exists():
        shape.write(source)
    try:
        spec = drafted(shape, source, mode)
    except PrivBenchError as error:
        return Refused(step="draft", error=error)
    entropy, refused = CountedEntropy(seed), None
    try:
        model = privbench.fit(
            spec, epsilon=EPSILONS[seed % 4], delta=options.get("delta", 0), entropy=entropy, rehearse=rehearse
        )
    except PrivBenchError as error:
        refused = error
    if refused is not None:
        assert not entropy.drawn, f"{mode}: failed after spending: {refused}"
        return Refused(step="fit", error=refused)
    path = folder / f"{mode}-{rehearse}.model"
    privbench.save_model(model, path)
    model = privbench.load_model(path)
    assert privbench.verify(path).status in ("verified", "conditional")
    form, out = list(Format)[seed % len(Format)] if rehearse else Format.PARQUET, folder / f"{mode}-{rehearse}"
    privbench.generate(model, out, seed=seed, scale=(1, 0.5, 2.5)[seed % 3], format=form)
    assert privbench.verify(out).status in ("verified", "conditional"), privbench.verify(out)
    schema = model.protection.schema.published()
    if form is not Format.CSV:  # which has no types, and cannot tell '' from NULL
        assert broken_promises(schema, read_bundle(out, schema, form)) == []
    if form is Format.PARQUET:
        load(out, model)
    if rehearse:
        privbench.evaluate(source, out, model=model, floor=False, lambdas=(1, 2))
    return None


def drafted(shape: Shape, source: Path, mode: str) -> Spec:
    """The draft, written and read; texts that only a delta could list are made up, as its message says."""
    options = MODES[mode]
    spec = privbench.draft(source, domains=options["domains"], **shape.choices)
    if "delta" not in options:
        protection = spec.protection()
        texts = {p: t for p, t in wanted_types(spec, protection).items() if t.kind is Kind.TEXT}
        spec = spec.with_domains({place: (coarse_domain(t), Origin.DECLARED) for place, t in texts.items()})
    path = source.with_name(f"{mode}.yaml")
    privbench.write_spec(spec, path, force=True)
    return privbench.read_spec(path)


def load(bundle: Path, model: Model) -> None:
    """Load a bundle of Parquet files into DuckDB by the DDL that lies beside."""
    schema = model.protection.schema.published()
    stems = file_stems(table.name for table in schema.tables)
    with duckdb.connect() as connection:
        connection.execute((bundle / "schema.duckdb.sql").read_bytes().decode())
        for table in plan(schema)[0]:
            names = ", ".join(quote_sql(c.name) for c in table.columns if not is_generated(c))
            file = str(bundle / "data" / f"{stems[table.name]}.parquet")
            connection.execute(
                f"INSERT INTO {quote_sql(table.name)} ({names}) SELECT {names} FROM read_parquet(?)", [file]
            )
