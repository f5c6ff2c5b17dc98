"""Whole fits of neighbours whose rows are in many small parts, in memory and in files: whoever goes, counts add up.

With one entity less the others have other numbers, share their parts with others, and lie in other batches.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from privbench.encode.hashing import mix
from privbench.errors import SourceError
from privbench.fitting import engines, gathering, part_rows, slabs
from privbench.fitting import fit as fit_module
from privbench.fitting.draft import draft
from privbench.fitting.gathering import Stripes
from privbench.io import files
from privbench.privacy import exact
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.feature_codes import FeatureCodes
from privbench.privacy.features import InDegree
from privbench.privacy.part_files import FileParts
from privbench.privacy.parts import MemoryParts
from privbench.schema.spec import Orphans
from privbench.schema.unit import Neighbours

from . import test_hub, test_inside, test_lists
from .replay import compare, replayed
from .test_replay import with_relative
from .worlds import CHOICES, DDL, write_pair

WORLD, ALONE = "persons and orders", "columns of persons and orders alone"
SHAPES = ("a hub", "inside", "lists", WORLD, ALONE)
PARTS = {"memory": MemoryParts, "files": FileParts}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Many batches, slabs and parts of few rows; what the engines of fits hold."""
    monkeypatch.setattr(files, "BATCH_ROWS", 7)
    monkeypatch.setattr(slabs, "SLAB_ROWS", 20)
    monkeypatch.setattr(gathering, "ONE_PART", 0)
    monkeypatch.setattr(gathering, "PART_ROWS", 16)
    parts: list[Any] = []

    class Watched(NumpyEngine):
        def __init__(self, held: Any, **options: Any) -> None:
            super().__init__(held, **options)
            parts.append(held)

    monkeypatch.setattr(fit_module, "NumpyEngine", Watched)
    return parts


def _into_files(patch: pytest.MonkeyPatch) -> None:
    plan_store = engines.plan_store
    patch.setattr(engines, "plan_store", lambda *a, **k: replace(plan_store(*a, **k), in_files=True, buffers=1000))


def problems(shape: str, folder: Path, neighbours: Neighbours, *, seed: int) -> list[str]:
    """What two runs on neighbours show that one alone does not."""
    replaced = neighbours is Neighbours.REPLACE
    if shape == "inside":
        return test_inside.problems(folder, neighbours, seed, "step by step from the owner's")
    if shape == "lists":
        return test_lists.problems(folder, neighbours, seed)
    if shape in (WORLD, ALONE):
        return _world(folder, neighbours, "tree" if shape == WORLD else "independent", seed=seed)
    pair = test_hub.write_forums(folder / f"{seed}", seed=seed, users=test_hub.USERS, replaced=replaced)
    spec = draft(pair.one, neighbours=neighbours, orphans=Orphans.NULL, **test_hub.CHOICES)
    return compare(*replayed(folder, pair, spec, epsilon="60"), replaced=replaced)


def _world(folder: Path, neighbours: Neighbours, method: str, *, seed: int) -> list[str]:
    """Of the world of persons all but the addresses: with a lookup, rows are in one part."""
    replaced = neighbours is Neighbours.REPLACE
    pair = write_pair(folder / f"{seed}", seed=seed, persons=60, replaced=replaced)
    for place in (pair.one, pair.other):
        lines = [line for line in DDL.splitlines() if "TABLE address" not in line]
        (place / "schema.sql").write_text("\n".join(lines).replace(" home BIGINT REFERENCES address (id),", ""))
        (place / "address.parquet").unlink()
        persons = pq.read_table(place / "person.parquet").drop_columns(["home"])
        pq.write_table(persons, place / "person.parquet")
    spec = draft(pair.one, neighbours=neighbours, orphans=Orphans.NULL, **{**CHOICES, "lookups": {}})
    spec = with_relative(spec.model_copy(update={"method": {"name": method}}))
    pairs = replayed(folder, pair, spec, epsilon="2000", delta="1e-6")
    return compare(*pairs, replaced=replaced)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("where", PARTS)
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("shape", SHAPES)
def test_neighbours_in_parts_cannot_be_told_apart_by_more_than_was_charged(
    shape: str, neighbours: Neighbours, where: str, tmp_path: Path, opened: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if where == "files":
        _into_files(monkeypatch)
    assert problems(shape, tmp_path, neighbours, seed=1) == []
    assert len(opened) == 2
    assert all(isinstance(parts, PARTS[where]) and len(parts) >= 8 for parts in opened)


# -- leaks built in on purpose -------------------------------------------------------------------------------------

Mutant = Callable[[pytest.MonkeyPatch], None]


def in_degrees_of_one_part(patch: pytest.MonkeyPatch) -> None:
    """Only keys of rows in the same part count: who shares a part depends on who else is there."""

    def degrees(self: FeatureCodes, source: InDegree, table: str) -> Any:
        numbers: Any = self._numbers(table)
        return exact.degrees(self.targets(source), int(numbers.max(initial=0)) + 1)[numbers]

    patch.setattr(FeatureCodes, "_degrees", degrees)


def in_degrees_by_place(patch: pytest.MonkeyPatch) -> None:
    """In-degrees are those of the rows that have a row's place in the part as their number."""
    patch.setattr(FeatureCodes, "_numbers", lambda *_: None)


def all_keys_count(patch: pytest.MonkeyPatch) -> None:
    """In-degrees count every key of an entity."""
    patch.setattr(exact, "one_key_each", lambda targets, _: targets)


def entities_over_two_parts(patch: pytest.MonkeyPatch) -> None:
    """Rows go to the parts in turn, whosever they are."""
    patch.setattr(Stripes, "part_of", lambda self, e: (np.arange(len(e)) % self.parts).astype(np.uint8))


def rows_in_an_order_of_their_numbers(patch: pytest.MonkeyPatch) -> None:
    """An entity's rows are in the order of a hash of where they lie in their part."""
    put_in_order = part_rows._put_in_order

    def scattered(table: Any, *, by_entity: bool) -> None:
        if not by_entity:
            table.order = (part_rows.pa.array(mix(np.arange(table.rows, dtype=np.uint64))),)
        put_in_order(table, by_entity=by_entity)

    patch.setattr(part_rows, "_put_in_order", scattered)


def entities_taken_for_one(patch: pytest.MonkeyPatch) -> None:
    """Numbers inside a part are not those of one entity each: what a row weighs depends on who else is there."""
    inside = Stripes.inside
    patch.setattr(Stripes, "inside", lambda self, entities: inside(self, entities) % 3)


MUTANTS: dict[Mutant, str] = {
    in_degrees_of_one_part: "a hub",
    in_degrees_by_place: "a hub",
    all_keys_count: "a hub",
    entities_over_two_parts: "a hub",
    rows_in_an_order_of_their_numbers: WORLD,
    entities_taken_for_one: "a hub",
}


@pytest.mark.mostly_slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__name__)
@pytest.mark.usefixtures("opened")
def test_replay_in_parts_catches(mutant: Mutant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "PART_ROWS", 256)  # so that rows of the same part do reference each other
    mutant(monkeypatch)
    shape, neighbours = MUTANTS[mutant], Neighbours.ADD_REMOVE
    try:
        caught = any(problems(shape, tmp_path, neighbours, seed=seed) for seed in range(1, 4))
    except SourceError as error:  # parts without all rows of their entities do not go together, before any replay
        caught = "changed while it was read" in str(error)
    assert caught
