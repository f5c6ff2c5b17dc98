"""Whatever the schema: referential integrity and unique keys at every scale and block size, or a clear refusal."""

from pathlib import Path

import pytest

from privbench.errors import SchemaError
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation import blocks, rows
from privbench.generation.generate import generate
from privbench.io.base import Format

from ..seeded import SeededEntropy
from .checks import broken_promises, read_bundle
from .random_shapes import random_shape

pytestmark = pytest.mark.slow


def _check(seed: int, method: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the shape went through; False if its keys were refused."""
    shape = random_shape(seed)
    try:
        spec = draft(shape.write(folder / "source"), domains="data", **shape.choices)
        model = fit(spec, epsilon=500, method=method, entropy=SeededEntropy(seed))
    except SchemaError:
        return False
    schema = model.protection.schema
    for scale, block in ((0.05, 65_536), (0.5, 7), (1, 7), (1, 65_536), (2.5, 7)):
        monkeypatch.setattr(blocks, "BLOCK_ROWS", block)
        monkeypatch.setattr(rows, "BLOCK_ROWS", block)
        out = folder / f"{scale}-{block}"
        made = generate(model, out, scale=scale, seed=1)
        tables = read_bundle(out, schema, Format.PARQUET)
        assert broken_promises(schema, tables) == []
        assert made == {name: len(table) for name, table in tables.items()}
    return True


@pytest.mark.parametrize(("method", "shapes"), [("tree", 8), ("paper", 4)])
def test_a_few(method: str, shapes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(_check(seed, method, tmp_path / str(seed), monkeypatch) for seed in range(shapes)) >= 0.7 * shapes


@pytest.mark.parametrize("first", range(100, 200, 10))
@pytest.mark.parametrize("method", ["tree", "paper"])
def test_many(method: str, first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(_check(seed, method, tmp_path / str(seed), monkeypatch) for seed in range(first, first + 10)) >= 5
