"""A sample of synthetic entities with all their rows, as codes and row numbers: what estimates of joins are made of.

Drawn as `generate` draws them, from a fixed seed, so that a model always gives the same estimates; made once for each
model. No keys are repaired, and no values are decoded but those of columns coded as differences.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.keys import rows_led_to
from privbench.generation.carried import Spools
from privbench.generation.draws import Block, DrawRun, Draws
from privbench.io.staging import private_folder
from privbench.model.model import Model
from privbench.schema.unit import LinkKind, Protection, key_name

ENTITIES, ROWS = 30_000, 300_000
"""About how many entities a sample has, and at most how many rows in all tables."""
SEED = 20_240_601

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledTable:
    """Rows of one table."""

    rows: int
    codes: dict[str, NDArray[np.uint16]]
    targets: dict[str, Rows]
    """By key: its target row, of the sample or of a public table; -1 for NULL."""
    further_up: Rows
    """Of a row without owner, the row that its nearest implied key references; -1 for none, and for other rows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sampled:
    """Rows of all private tables, and how many there are for one of the model's."""

    tables: dict[str, SampledTable]
    scale: float
    seed: int
    values: dict[tuple[str, str], pa.Array] = field(default_factory=dict)
    """By table and column: values that were asked for, which are drawn then (`estimation.values`)."""


_made: WeakKeyDictionary[Model, dict[int, Sampled]] = WeakKeyDictionary()


def sampled(model: Model, number: int = 0) -> Sampled:
    """The sample of a model, or one of several."""
    samples = _made.setdefault(model, {})
    if number not in samples:
        samples[number] = _draw(model, sample_scale(model), SEED + number)
    return samples[number]


def sample_scale(model: Model) -> float:
    """How large a sample is. Where public tables reference entities, as large as the model: each entity has its id."""
    if any(link.kind is LinkKind.INBOUND for link in model.protection.links):
        return 1.0
    entities, rows = model.tables[model.protection.entity].rows, sum(t.rows for t in model.tables.values())
    return min(ENTITIES / max(entities, 1.0), ROWS / max(rows, 1.0))


def _draw(model: Model, scale: float, seed: int) -> Sampled:
    tables: dict[str, SampledTable] = {}
    with private_folder() as folder:
        run = DrawRun(model, scale=scale, seed=seed, folder=folder / "carried")
        sizes = dict(run.planned)
        for name in (n for n in run.order if n in model.tables):
            tables[name] = _table(name, run.draws(name, sizes), run.spools)
            tables[name].targets.update(_implied(model.protection, name, tables))
            sizes[name] = tables[name].rows
    return Sampled(tables=tables, scale=scale, seed=seed)


def _table(name: str, draws: Draws, spools: Spools) -> SampledTable:
    blocks: list[Block] = []
    for block in draws.blocks():
        codes = block.features(spools.features(name))
        owners = None if draws.owner is None else block.targets[draws.owner.name]
        spools.carry(name, codes=codes, counts=block.counts, entities=block.entities(), owners=owners, rng=block.rng)
        blocks.append(block)
    spools.finish(name)
    return SampledTable(
        rows=sum(block.rows for block in blocks),
        codes=_joined([block.codes for block in blocks]),
        targets=_joined([{key: _absolute(block, key) for key in block.targets} for block in blocks]),
        further_up=np.concatenate([np.empty(0, np.int64), *map(_further_up, blocks)]),
    )


def _implied(protection: Protection, name: str, tables: Mapping[str, SampledTable]) -> dict[str, Rows]:
    """The rows above that implied keys reference."""
    keys, own = protection.implied_of(name), tables[name]
    return {
        link.name: np.where(
            own.further_up < 0,
            rows_above(protection, tables, name, np.arange(own.rows), link.target),
            rows_above(protection, tables, keys[0].target, own.further_up, link.target),
        )
        for link in keys
    }


def rows_above(protection: Protection, tables: Mapping[str, SampledTable], table: str, rows: Rows, above: str) -> Rows:
    """The rows of a table above that owner keys lead to from some rows of a table; -1 where there is none."""
    path = protection.up_to(table, above)
    return rows_led_to(rows, (tables[name].targets[key_name(name, protection.owners[name])] for name in path))


def _further_up(block: Block) -> Rows:
    return np.full(block.rows, -1) if block.further_up is None else block.further_up


def _absolute(block: Block, key: str) -> Rows:
    """The rows of the table that a key references."""
    rows = block.targets[key]
    return np.where(rows < 0, -1, rows + block.first_row) if key in block.local else rows


def _joined(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    return {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else {})}
