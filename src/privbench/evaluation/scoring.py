"""One pass of all distances: the real tables against the synthetic ones, or against a resample of themselves.

The plan says which marginals and pairs are counted; both passes follow the same plan, so their figures compare.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from privbench.evaluation.coding import CodedTable
from privbench.evaluation.database import Side
from privbench.evaluation.distance import Paired
from privbench.evaluation.distribution import Columns, Figures, Sample, choose_marginals, score
from privbench.evaluation.links import Fanouts, Linked, among_coded, choose_pairs, fanouts, score_pairs
from privbench.methods.method import Progress
from privbench.schema.tables import ForeignKey

Key = tuple[str, ForeignKey]
"""A table and one of its foreign keys."""
Both = tuple[list[Paired], list[Paired]]
"""The columns of a table in value codes, and in bins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The marginals to count by table and number of columns, and the pairs of columns by key."""

    marginals: Mapping[str, Mapping[int, list[Columns]]]
    pairs: Mapping[Key, list[Columns]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compared:
    """The coded tables and followed keys that both sides have, and what is counted of them."""

    tables: Mapping[str, CodedTable]
    keys: Mapping[Key, Linked]
    plan: Plan

    def described(self) -> str:
        """What is counted, by names."""
        columns = {name: [c.name for c in table.columns] for name, table in self.tables.items()}
        pairs = {link_name(*key): chosen for key, chosen in self.plan.pairs.items()}
        return repr((columns, self.plan.marginals, list(map(str, self.keys)), pairs))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """Figures of all that was planned, in its order."""

    marginals: Mapping[str, Mapping[int, Figures]]
    cross: Mapping[Key, Figures]
    fanouts: Mapping[Key, Fanouts]


def link_name(table: str, key: ForeignKey) -> str:
    """How a key is called: table.column."""
    return f"{table}.{','.join(key.columns)}"


def make_plan(
    tables: Mapping[str, CodedTable], keys: Mapping[Key, Linked], *, ways: set[int], sample: Sample, seed: int
) -> Plan:
    """Choose what is counted; pairs only where both tables of a key are compared."""
    marginals: dict[str, dict[int, list[Columns]]] = {}
    for name, table in tables.items():
        rows, columns = sum(table.rows.values()), len(table.columns)
        marginals[name] = {
            count: choose_marginals(columns, count, limit=sample.limit(count, rows), seed=seed)
            for count in sorted(ways)
            if math.comb(columns, count)
        }
    pairs = {
        (name, key): choose_pairs(
            tables[key.table],
            tables[name],
            limit=sample.pair_limit(sum(tables[name].rows.values())),
            seed=seed,
        )
        for name, key in keys
        if name in tables and key.table in tables
    }
    return Plan(marginals=marginals, pairs=pairs)


def score_all(
    plan: Plan,
    tables: Mapping[str, Both],
    keys: Mapping[Key, Linked],
    coded: Mapping[Key, Linked],
    progress: Progress,
) -> Scores:
    """Compute every figure of the plan; `coded` has the keys among the rows of `tables`."""
    marginals: dict[str, dict[int, Figures]] = {}
    for at, (name, chosen) in enumerate(plan.marginals.items()):
        progress("comparing tables", at, len(plan.marginals))
        values, bins = tables[name]
        marginals[name] = {ways: score(values, bins, columns) for ways, columns in chosen.items()}
    cross = {}
    for at, ((name, key), pairs) in enumerate(plan.pairs.items()):
        progress("comparing keys", at, len(plan.pairs))
        cross[name, key] = score_pairs(tables[key.table], tables[name], coded[name, key], pairs)
    return Scores(marginals=marginals, cross=cross, fanouts={key: fanouts(linked) for key, linked in keys.items()})


def score_synthetic(compared: Compared, progress: Progress) -> Scores:
    """Score the synthetic database."""
    paired = {name: table.paired(Side.SYNTHETIC) for name, table in compared.tables.items()}
    coded = {
        (name, key): among_coded(compared.keys[name, key], compared.tables[key.table], compared.tables[name])
        for name, key in compared.plan.pairs
    }
    return score_all(compared.plan, paired, compared.keys, coded, progress)
