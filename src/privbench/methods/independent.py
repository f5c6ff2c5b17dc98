"""Denoised independent marginals: the simple rival that any other method has to beat.

A table is the product of its columns. All of its budget goes to one histogram per column of several codes, in equal
parts, and the histograms are denoised and scaled to the size of the table. Caps, sizes and keys are those of the
other methods that count rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privbench.methods.capped import Learnt, Size, column_histogram, implied_by_counts, learn_database, pooled
from privbench.methods.denoise import denoise
from privbench.methods.method import Implied, Method, Progress, TableModel
from privbench.methods.settings import check_share, declared_settings
from privbench.privacy.blocks import Block
from privbench.privacy.facts import Facts
from privbench.privacy.vault import Vault
from privbench.spn.feature_names import COMPONENT
from privbench.spn.nodes import Leaf, Product, Sum, walk


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentSettings:
    """The one choice that there is, with the paper's default."""

    network_share: Fraction = Fraction(9, 10)
    """Share of the budget for histograms; the rest goes to keys."""

    def __post_init__(self) -> None:
        check_share("network_share", self.network_share)

    @property
    def as_published(self) -> bool:
        """Every step is differentially private as claimed."""
        return False


def independent_settings(declared: Mapping[str, Any]) -> IndependentSettings:
    """Read the settings that a spec declares."""
    return declared_settings(IndependentSettings, "independent", declared)


def learn(vault: Vault, facts: Facts, settings: IndependentSettings, progress: Progress) -> dict[str, TableModel]:
    """Learn every private table, spending at most the ledger's budget."""

    def learn_table(block: Block, size: Size, budget: Fraction) -> Learnt:
        return learn_columns(vault, facts, block, size, budget=budget, progress=progress)

    return learn_database(vault, facts, learn_table, network_share=settings.network_share, progress=progress)


def learn_columns(
    vault: Vault, facts: Facts, block: Block, size: Size, *, budget: Fraction, progress: Progress
) -> Learnt:
    """A product of all columns of a table. Its size is pooled from `size` and the totals of the histograms."""
    columns = facts.tables[block.table].columns
    several = [name for name, column in columns.items() if column.size > 1]
    asked = several or list(columns)[:1]  # one of a single code still says how many rows there are
    progress(f"learning {block.table}", 0, 1)
    queries = [(column_histogram(facts, block, column), budget / len(asked)) for column in asked]
    measured = dict(zip(asked, vault.measure_all(queries), strict=True))
    total = pooled([Size(rows=m.total, variance=len(m.values) * m.noise.variance) for m in measured.values()])
    rows = max(pooled([size, total]).rows, 0.0)
    leaves = (
        Leaf(column=name, counts=denoise(m.counts, m.noise, rows, smooth=columns[name].ordered))
        for name, m in measured.items()
    )
    constants = (Leaf(column=name, counts=np.ones(1)) for name in (*columns, COMPONENT) if name not in asked)
    return Learnt(network=Product(children=(*leaves, *constants)), size=total, parts=(block,))


def implied(facts: Facts, tables: Mapping[str, TableModel], _settings: IndependentSettings) -> Implied:
    """What released tables must have cost; mixtures of rows are none of this method's."""
    mixed = tuple(name for name, table in tables.items() if any(isinstance(n, Sum) for n in walk(table.network)))
    return Implied(queries=(), foreign=mixed) if mixed else implied_by_counts(facts, tables)


INDEPENDENT = Method(
    name="independent", read_settings=independent_settings, learn=learn, implied=implied, counts_in_parts=True
)
