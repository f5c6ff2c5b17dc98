"""Every shape through draft, fit and generate: no orphans, no repeated keys, exact types, at every scale and format."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from privbench.generation import blocks
from privbench.generation import rows as generated_rows
from privbench.generation.generate import generate
from privbench.generation.sizes import planned_rows
from privbench.io.base import Format
from privbench.methods.registry import BUILT_IN
from privbench.model.model import Model
from privbench.model.order import colliding_keys
from privbench.model.verify import verify

from .checks import broken_promises, read_bundle
from .conftest import Fitted
from .shapes import SHAPES

SCALES = (0.01, 0.5, 1, 3)
OTHER_FORMATS = (Format.CSV, Format.DUCKDB, Format.SQLITE)
SMALL = sorted(SHAPES.keys() - {"wide"})
"""Shapes that even the slowest test can bear."""


def _check(model: Model, out: Path, *, scale: float, form: Format) -> None:
    rows = generate(model, out, scale=scale, seed=1, format=form)
    schema = model.protection.schema
    tables = read_bundle(out, schema, form)
    assert broken_promises(schema, tables) == []
    assert {name: len(table) for name, table in tables.items()} == rows
    _check_sizes(model, rows, scale)
    verdict = verify(out)
    assert verdict.status in ("conditional", "verified"), verdict.problems


def _check_sizes(model: Model, rows: dict[str, int], scale: float) -> None:
    """As planned, but for rows whose key cannot be made unique, and where owners have all that they may have.

    Child rows that come with their owners are as many as were drawn: about as planned, if the owners are all there.
    """
    planned = planned_rows(model, scale)
    protection = model.protection
    for name in protection.order:
        with_owner = any(link.with_owner is not None for link in model.tables[name].links.values())
        if with_owner and rows[protection.owners[name].table] == planned[protection.owners[name].table]:
            assert rows[name] <= 1.1 * planned[name] + 4 * planned[name] ** 0.5 + 2
        if not with_owner:
            assert rows[name] <= planned[name]
        if colliding_keys(model.spec, protection.schema.table(name)):
            continue
        if with_owner:
            owner = protection.owners[name].table
            there = planned[name] * rows[owner] / max(planned[owner], 1)
            assert rows[name] >= 0.9 * there - 4 * there**0.5 - 2
        else:
            assert rows[name] >= (planned[name] * 0.6 if name in protection.owners else planned[name])


@pytest.mark.mostly_slow
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", SHAPES)
def test_scales(name: str, scale: float, fitted: Fitted, tmp_path: Path) -> None:
    _check(fitted(name, "tree"), tmp_path / "out", scale=scale, form=Format.PARQUET)


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("method", "scale"), [("paper", 0.5), ("paper", 3), ("independent", 1)])
@pytest.mark.parametrize("name", SHAPES)
def test_other_methods(name: str, method: str, scale: float, fitted: Fitted, tmp_path: Path) -> None:
    _check(fitted(name, method), tmp_path / "out", scale=scale, form=Format.PARQUET)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("form", OTHER_FORMATS)
@pytest.mark.parametrize("name", SHAPES)
def test_formats(name: str, form: Format, fitted: Fitted, tmp_path: Path) -> None:
    _check(fitted(name, "tree"), tmp_path / "out", scale=0.5, form=form)


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("form", OTHER_FORMATS)
@pytest.mark.parametrize("method", ["tree", "paper"])
@pytest.mark.parametrize("name", SHAPES)
def test_formats_at_all_scales(
    name: str, method: str, form: Format, scale: float, fitted: Fitted, tmp_path: Path
) -> None:
    _check(fitted(name, method), tmp_path / "out", scale=scale, form=form)


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("method", "scale"), [("tree", 0.5), ("tree", 3), ("paper", 3)])
@pytest.mark.parametrize("name", SMALL)
def test_many_blocks(
    name: str, method: str, scale: float, fitted: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 16)
    monkeypatch.setattr(generated_rows, "BLOCK_ROWS", 16)
    _check(fitted(name, method), tmp_path / "out", scale=scale, form=Format.PARQUET)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("method", ["tree", "paper"])
@pytest.mark.parametrize("name", SMALL)
def test_a_seed_fixes_every_byte(name: str, method: str, fitted: Fitted, tmp_path: Path) -> None:
    for form in (Format.PARQUET, Format.CSV):
        first, same, other = (tmp_path / f"{form.value}-{i}" for i in range(3))
        for out, seed in ((first, 5), (same, 5), (other, 6)):
            generate(fitted(name, method), out, seed=seed, format=form)
        assert _data(first) == _data(same)
        assert _data(first) != _data(other)


@pytest.mark.parametrize("name", SMALL)
def test_tables_are_about_as_large_as_they_were(name: str, fitted: Fitted) -> None:
    """Nothing but fanouts and unowned rows says so of owned tables: with little noise both must be about right."""
    model = fitted(name, "tree")
    real = {table: len(next(iter(columns.values()))) for table, columns in SHAPES[name].data().items()}
    for table in model.protection.order:
        assert model.tables[table].rows == pytest.approx(real[table], rel=0.05, abs=1)


def _data(bundle: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted((bundle / "data").iterdir())}


@pytest.mark.parametrize("method", BUILT_IN)
def test_public_ids_are_kept_at_scale_one_and_stay_together_at_others(
    method: str, fitted: Fitted, tmp_path: Path
) -> None:
    model = fitted("inbound", method)
    assert model.entity_keys is not None
    ids = set(model.entity_keys.column("id").to_pylist())
    seen = {}
    for scale in (1, 3):
        out = tmp_path / str(scale)
        generate(model, out, scale=scale, seed=1)
        keyword = pq.read_table(out / "data" / "keyword.parquet")
        assert keyword.num_rows == 400
        assert keyword.column("movie_id").null_count > 0
        seen[scale] = keyword.column("movie_id").to_pylist()
        movies = set(pq.read_table(out / "data" / "movie.parquet").column("id").to_pylist())
        assert (movies == ids) == (scale == 1)
    renamed = dict(zip(seen[1], seen[3], strict=True))
    assert [renamed[i] for i in seen[1]] == seen[3]
    assert len(set(renamed.values())) == len(renamed)


@pytest.mark.parametrize("method", BUILT_IN)
@pytest.mark.parametrize(
    ("name", "table", "column"), [("self_reference", "employee", "boss"), ("tree", "box", "parent")]
)
def test_self_references_keep_their_share_of_nulls(
    name: str, table: str, column: str, method: str, fitted: Fitted, tmp_path: Path
) -> None:
    generate(fitted(name, method), tmp_path / "out", seed=1)
    found = pq.read_table(tmp_path / "out" / "data" / f"{table}.parquet").column(column)
    assert found.null_count < 0.1 * len(found)
    assert len(found.unique()) > 10
