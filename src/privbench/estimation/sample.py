"""A sample of synthetic entities with all their rows, as codes and row numbers: what estimates of joins are made of.

Drawn as `generate` draws them, from a fixed seed, so that a model always gives the same estimates; made once for each
model. No keys are repaired, and no values are decoded but those of columns coded as differences.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from privbench.estimation.values import Rows, Sampled, SampledTable, rows_above, sampled_above, sampled_values
from privbench.generation.carried import Spools
from privbench.generation.draws import Block, DrawRun, Draws
from privbench.generation.members import MemberRules
from privbench.io.staging import private_folder
from privbench.model.model import Model
from privbench.schema.unit import LinkKind, Protection

ENTITIES, ROWS = 30_000, 300_000
"""About how many entities a sample has, and at most how many rows in all tables."""
SEED = 20_240_601


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
    sample = Sampled(tables={}, scale=scale, seed=seed)
    with private_folder() as folder:
        run = DrawRun(model, scale=scale, seed=seed, folder=folder / "carried")
        sizes = dict(run.planned)
        for name in (n for n in run.order if n in model.tables):
            draws = run.draws(name, sizes)
            blocks = list(draws.blocks())
            sample.tables[name] = table = _table(blocks)
            table.targets.update(_implied(model.protection, name, sample.tables))
            sizes[name] = table.rows
            _carry(name, blocks, draws, run.spools, able=_able(model, sample, name))
    return sample


def _able(model: Model, sample: Sampled, name: str) -> dict[str, NDArray[np.bool_]]:
    """By member of a hidden list: which of its rows can have rows there."""
    with MemberRules(model.protection, model.protection.schema.table(name)) as rules:
        values = {column: sampled_values(model, sample, name, column) for column in rules.columns}
        return rules.able(values, partial(sampled_above, model, sample, name))


def _carry(
    name: str, blocks: list[Block], draws: Draws, spools: Spools, *, able: Mapping[str, NDArray[np.bool_]]
) -> None:
    first = 0
    for block in blocks:
        codes = block.features(spools.features(name))
        owners = None if draws.owner is None else block.targets[draws.owner.name]
        here = {member: rows[first : first + block.rows] for member, rows in able.items()}
        spools.carry(
            name, codes=codes, counts=block.counts, entities=block.entities(), owners=owners, able=here, rng=block.rng
        )
        first += block.rows
    spools.finish(name)


def _table(blocks: list[Block]) -> SampledTable:
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


def _further_up(block: Block) -> Rows:
    return np.full(block.rows, -1) if block.further_up is None else block.further_up


def _absolute(block: Block, key: str) -> Rows:
    """The rows of the table that a key references."""
    rows = block.targets[key]
    return np.where(rows < 0, -1, rows + block.first_row) if key in block.local else rows


def _joined(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    return {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else {})}
