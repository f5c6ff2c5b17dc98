"""What public tables say of each entity: how many of their rows reference its id. Known to all, as the ids are."""

import io
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from privbench.encode.keys import rows_named
from privbench.model.model import Model
from privbench.model.order import references_entity
from privbench.privacy.facts import PublicCounts
from privbench.privacy.receipt import link_json
from privbench.schema.unit import Protection
from privbench.spn.fanouts import MANY, bin_of, fanout_edges
from privbench.spn.feature_names import public_column
from privbench.spn.nodes import given_columns


def public_counts(model: Model, table: str) -> dict[str, NDArray[np.uint16]]:
    """The bins of those counts that the network of the entity table asks for, in the order of ids."""
    if table != model.protection.entity:
        return {}
    asked = {given.column: len(given.bins) for given in given_columns(model.tables[table].network)}
    counts = count_bins(model.protection, model.public, model.entity_keys)
    return {c.name: np.minimum(c.codes, asked[c.name] - 1) for c in counts if c.name in asked}


def count_bins(
    protection: Protection, public: Mapping[str, bytes], entity_keys: pa.Table | None
) -> tuple[PublicCounts, ...]:
    """For each key of a public table that references entities by their public ids, the bins of all ids, in order."""
    counted = []
    for link in protection.links:
        if entity_keys is None or not references_entity(protection, link):
            continue
        content = pq.read_table(io.BytesIO(public[link.table]), columns=list(link.key.columns))
        targets = rows_named(content.columns, [entity_keys.column(c) for c in link.key.references])
        counts = np.bincount(targets[targets >= 0], minlength=len(entity_keys))
        bins = bin_of(counts, fanout_edges(MANY))
        counted.append(PublicCounts(name=public_column(link.name), link=link_json(link), codes=bins))
    return tuple(counted)
