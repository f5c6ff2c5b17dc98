"""Whatever the schema: referential integrity and unique keys at every scale and block size, or a clear refusal."""

from pathlib import Path
from typing import Any

import pytest

from privbench.errors import SchemaError
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation import blocks, rows
from privbench.generation.generate import generate
from privbench.io.base import Format
from privbench.io.ddl import parse_ddl

from ..seeded import SeededEntropy
from .checks import broken_promises, read_bundle
from .random_shapes import random_shape
from .shapes import Shape

pytestmark = pytest.mark.slow


def _made_up(shape: Shape, rows: int) -> dict[str, Any]:
    """The choices for a shape of which public tables are made up, if they reference none that is private."""
    tables = {t.name: t for t in parse_ddl(shape.ddl, where="schema.sql").tables}
    public = set(shape.choices["public"])
    made = [name for name in public if all(key.table in public for key in tables[name].foreign_keys)]
    return {**shape.choices, "public": sorted(public - {*made}), "made_up": dict.fromkeys(sorted(made), rows)}


def _check(seed: int, method: str, folder: Path, monkeypatch: pytest.MonkeyPatch, made_up: int | None = None) -> bool:
    """Whether the shape went through; False if its keys were refused."""
    shape = random_shape(seed)
    choices = shape.choices if made_up is None else _made_up(shape, made_up)
    try:
        spec = draft(shape.write(folder / "source"), domains="data", **choices)
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


@pytest.mark.parametrize("rows", [9, 50])
def test_public_tables_that_are_made_up(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = [0, 4, 5, 9, 13, 15]
    assert sum(_check(seed, "tree", tmp_path / str(seed), monkeypatch, rows) for seed in seeds) >= 4


@pytest.mark.parametrize("first", range(100, 200, 10))
@pytest.mark.parametrize("method", ["tree", "paper"])
def test_many(method: str, first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(_check(seed, method, tmp_path / str(seed), monkeypatch) for seed in range(first, first + 10)) >= 5
