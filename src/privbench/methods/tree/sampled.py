"""Synthetic rows as codes, drawn once while a model is learnt: what a child table is told of its owners.

Drawn from the networks alone with a fixed seed, so it is post-processing, and the model does not depend on what is
generated from it later.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.features import Feature, OfOwner, PublicRows, Rank
from privbench.spn.fanout_link import FanoutLink
from privbench.spn.fanouts import bin_of, draw_numbers, rank_codes, size_edges
from privbench.spn.feature_names import STRATUM
from privbench.spn.nodes import Node
from privbench.spn.sample import first_rows, sample, sample_siblings

Codes = NDArray[np.integer]

MOST_ENTITIES = 60_000
MOST_ROWS = 250_000
"""A sample of a table has at most about this many rows: fewer owners are taken if theirs are more."""
SEED = 19


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledRows:
    """Rows of a table: where each one's owner is in the sample of its table (-1: none), its entity, its given codes."""

    owners: NDArray[np.int64]
    entities: NDArray[np.int64]
    given: Mapping[str, Codes]
    per_owner: float
    """Rows per row of the owner table."""

    def weights(self, full_rows: int = 1) -> NDArray[np.float64]:
        """One over the rows that the entity of a row has here; over `full_rows` where it has fewer."""
        return 1 / np.maximum(np.bincount(self.entities)[self.entities], full_rows)

    def entity_weight(self, full_rows: int) -> float:
        """What an entity weighs, on average over all that is weighed."""
        weights = np.minimum(self.rows_by_entity / full_rows, 1.0)
        return float((weights**2).sum() / weights.sum())

    @property
    def rows_by_entity(self) -> NDArray[np.int64]:
        """How many rows each entity has that has any."""
        counts = np.bincount(self.entities)
        return counts[counts > 0]

    @property
    def firsts(self) -> NDArray[np.int64]:
        """The place of the first row of each row's owner; -1 for first rows and without owner."""
        return first_rows(self.owners)

    def entity_rows(self) -> Codes:
        """The bins of the rows that the entity of each row has here."""
        return bin_of(np.bincount(self.entities)[self.entities], size_edges())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledTable:
    """The codes of a sample of rows, and their entities."""

    codes: Mapping[str, Codes]
    entities: NDArray[np.int64]


def sample_entities(network: Node, entities: float, features: tuple[Feature, ...] = ()) -> SampledTable:
    """Rows of the entity table, with the public features of some ids if there are any."""
    given = public_codes(features)
    rows = len(next(iter(given.values()))) if given else max(1, min(round(entities), MOST_ENTITIES))
    codes = sample(network, rows, np.random.default_rng(SEED), given=given or None)
    return SampledTable(codes=codes, entities=np.arange(rows))


def public_codes(features: tuple[Feature, ...]) -> dict[str, Codes]:
    """Public features of entities, of as many ids, at even steps, as a sample has rows."""
    codes = {f.name: f.source.codes for f in features if isinstance(f.source, PublicRows)}
    return {name: bins[:: max(1, len(bins) // MOST_ENTITIES)] for name, bins in codes.items() if len(bins)}


def child_rows(above: SampledTable, link: FanoutLink, features: tuple[Feature, ...], *, unowned: float) -> SampledRows:
    """The rows of a table, as its owners' fanouts have them, with what is given of each; a share has no owner.

    `unowned` is the number of rows without owner per row of the owner table.
    """
    fanouts = draw_numbers(above.codes[link.column], link.edges, link.exponent, rng=np.random.default_rng(SEED))
    total = np.cumsum(fanouts)
    kept = len(fanouts) if total[-1] <= MOST_ROWS else max(1, int(np.searchsorted(total, MOST_ROWS)))
    while kept < len(fanouts) and above.entities[kept] == above.entities[kept - 1]:
        kept += 1
    fanouts = fanouts[:kept]
    alone = min(round(unowned * kept), MOST_ROWS)
    per_owner = float(fanouts.sum() / kept)
    if fanouts.sum() + alone == 0:
        fanouts[0] = 1  # one row, so that arrays are not empty; `per_owner` leaves it out
    owners = np.append(np.repeat(np.arange(kept), fanouts), np.full(alone, -1))
    free = int(above.entities.max()) + 1
    entities = np.where(owners >= 0, above.entities[owners], 0)
    entities[len(owners) - alone :] = free + np.arange(alone)
    given = {f.name: _given_codes(f, above, owners, fanouts, alone) for f in features}
    return SampledRows(owners=owners, entities=entities, given=given, per_owner=per_owner)


def sample_table(network: Node, rows: SampledRows) -> SampledTable:
    """Codes for rows whose owners are there."""
    given = {**rows.given, STRATUM: rows.entity_rows()}
    rng = np.random.default_rng(SEED)
    codes = sample_siblings(network, len(rows.owners), rng, given=given, firsts=rows.firsts)
    return SampledTable(codes=codes, entities=rows.entities)


def _given_codes(
    feature: Feature, above: SampledTable, owners: NDArray[np.int64], fanouts: NDArray[np.int64], alone: int
) -> Codes:
    if isinstance(feature.source, OfOwner):
        codes = np.append(above.codes[feature.source.feature.name], feature.size - 1)
        return codes[owners]  # -1: the last, which stands for no owner
    if isinstance(feature.source, Rank):
        return np.append(rank_codes(fanouts), np.zeros(alone, np.uint16))
    raise ValueError(f"{feature.name}: cannot be given")
