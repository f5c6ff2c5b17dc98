"""A bundle as a value: where it is, the rows of its tables, and the tables themselves in memory when asked for.

One that was made without a place lies in a private temporary folder, which goes when the value does.
"""

import os
import shutil
import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from privbench.fitting.warnings import fit_warnings
from privbench.io.base import read_whole
from privbench.io.open import open_source
from privbench.io.staging import check_target, staged
from privbench.model.file import save_model
from privbench.model.model import Model
from privbench.model.notes import change_lines
from privbench.schema.notebook import page
from privbench.schema.tables import Table
from privbench.schema.types import Kind


@dataclass(frozen=True, kw_only=True, eq=False)
class Bundle:
    """A synthetic database that was written from a model. A function that takes a path takes it, too."""

    path: Path
    model: Model
    rows: Mapping[str, int]
    """Rows by table."""
    keep_model: bool = False
    """Whether `save` keeps the model beside, as `synth` does."""
    held: ExitStack | None = field(default=None, repr=False)
    """What is closed when this value goes: the temporary folder."""

    def __post_init__(self) -> None:
        if self.held is not None:
            weakref.finalize(self, self.held.close)

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def receipt(self) -> dict[str, Any]:
        """What was promised, and what the budget was spent on."""
        return self.model.receipt

    def tables(self) -> dict[str, pa.Table]:
        """Read all tables into memory, by name; `.to_pandas()` of one is a DataFrame."""
        with open_source(self.path) as source:
            return {t.name: _with_durations(read_whole(source, t.name, t.columns), t) for t in source.schema().tables}

    def save(self, path: Path | str, *, force: bool = False) -> "Bundle":
        """Write what the call that made it would have written there: the bundle and, of `synth`, PATH.model beside."""
        target, beside = Path(path), model_beside(path)
        check_target(target, force=force)
        if self.keep_model:
            check_target(beside, force=force, is_file=True)
        with staged(target, force=force) as temporary:
            shutil.copytree(self.path, temporary)
        if self.keep_model:
            save_model(self.model, beside, force=force)
        return Bundle(path=target, model=self.model, rows=self.rows, keep_model=self.keep_model)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {count:,}" for name, count in self.rows.items())
        return f"<Bundle {self._place()}: {sizes}>"

    def _repr_html_(self) -> str:
        """The rows of each table, and what `synth` tells on the command line."""
        condition = self.receipt["condition"]
        notes = [
            f"Promise: {self.model.promise}.",
            *([condition] if condition else []),
            *(f"Not as in the source: {line}." for line in change_lines(self.model.spec)),
            *(f"Warning: {line}" for line in (fit_warnings(self.model) if self.keep_model else ())),
            f"In {self._place()}. `.tables()` reads them, `.save(path)` keeps them.",
        ]
        return page("Synthetic database", ["table", "rows"], self.rows.items(), notes=notes)

    def _place(self) -> str:
        return str(self.path) if self.held is None else "a temporary folder"


def model_beside(out: Path | str) -> Path:
    """Where `synth` keeps the model of a bundle, if nothing else is said.

    >>> model_beside("new/bundle/").as_posix()
    'new/bundle.model'
    """
    path = os.path.normpath(out)
    return Path(f"{os.path.abspath(path) if os.path.basename(path) in ('.', '..') else path}.model")


def _with_durations(rows: pa.Table, table: Table) -> pa.Table:
    """The rows with durations as such: between source and sink they are numbers of microseconds."""
    types = {c.name: pa.duration("us") if c.type.kind is Kind.DURATION else c.type.arrow for c in table.columns}
    return rows.cast(pa.schema(types))
