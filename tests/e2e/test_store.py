"""However rows are held and in whatever order a source gives them, a fit counts the same: every answer is the same.

Noise is drawn from a seed, so that any exact count that differs would show in an answer.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privbench.errors import SchemaError
from privbench.fitting import engines, gathering, slabs
from privbench.fitting import fit as fit_module
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.io import files
from privbench.privacy.vault import Vault
from privbench.schema.spec import Spec

from ..seeded import SeededEntropy
from .random_shapes import random_shape
from .shapes import SHAPES

Patch = Callable[[pytest.MonkeyPatch], None]


def _in_small_batches(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(files, "BATCH_ROWS", 7)
    patch.setattr(slabs, "SLAB_ROWS", 10)


def _in_parts(patch: pytest.MonkeyPatch) -> None:
    _in_small_batches(patch)
    patch.setattr(gathering, "ONE_PART", 0)
    patch.setattr(gathering, "PART_ROWS", 16)


def _in_files(patch: pytest.MonkeyPatch) -> None:
    _in_parts(patch)
    plan_store = engines.plan_store
    patch.setattr(engines, "plan_store", lambda *a, **k: replace(plan_store(*a, **k), in_files=True, buffers=1000))


def _answers(spec: Spec, source: Path, patched: Patch | None = None, **options: Any) -> list[list[Any]]:
    vaults: list[Vault] = []

    class Recording(Vault):
        def __init__(self, *engine: Any, **kept: Any) -> None:
            super().__init__(*engine, **kept)
            vaults.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_module, "Vault", Recording)
        if patched is not None:
            patched(patch)
        fit(spec, source=source, epsilon=500, entropy=SeededEntropy(1), **options)
    return [answer.tolist() for answer in vaults[0].answers]


def _shuffled(source: Path, spec: Spec, folder: Path) -> Path:
    """A copy whose private tables have their rows in another order."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    names = {name.lower() for name in spec.protection().order}
    for file in source.iterdir():
        if file.suffix == ".parquet" and file.stem.lower() in names:
            table = pq.read_table(file)
            pq.write_table(table.take(pa.array(rng.permutation(len(table)))), folder / file.name)
        else:
            (folder / file.name).write_bytes(file.read_bytes())
    return folder


def _check(shape: Any, folder: Path, **options: Any) -> bool:
    """Whether the shape can be fitted; if so, that all ways give the same answers."""
    source = shape.write(folder / "source")
    try:
        spec = draft(source, domains="data", **shape.choices)
        whole = _answers(spec, source, **options)
    except SchemaError:
        return False
    assert _answers(spec, source, _in_small_batches, **options) == whole
    assert _answers(spec, source, _in_parts, **options) == whole
    assert _answers(spec, source, _in_files, **options) == whole
    shuffled = _shuffled(source, spec, folder / "shuffled")
    assert _answers(spec, shuffled, **options) == whole
    assert _answers(spec, shuffled, _in_parts, **options) == whole
    return True


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str, tmp_path: Path) -> None:
    assert _check(SHAPES[name], tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_a_few_random_shapes(seed: int, tmp_path: Path) -> None:
    _check(random_shape(seed), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 200, 10))
def test_many_random_shapes(first: int, tmp_path: Path) -> None:
    assert sum(_check(random_shape(seed), tmp_path / str(seed)) for seed in range(first, first + 10)) >= 5
