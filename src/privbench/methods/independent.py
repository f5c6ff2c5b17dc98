"""Denoised independent marginals: the simple rival that any other method has to beat.

A table is the product of its columns. All of its budget goes to one histogram per column of several codes, in equal
parts, and the histograms are denoised and scaled to the size of the table. Caps, sizes and keys are those of the
other methods.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privbench.methods.database import learn_database
from privbench.methods.denoise import denoise, scaled
from privbench.methods.method import Learnt, Method, Progress, TableModel
from privbench.methods.settings import check_share, declared_settings
from privbench.methods.size import Size, pooled
from privbench.privacy.partition import Block
from privbench.privacy.vault import Vault
from privbench.spn.feature_names import COMPONENT
from privbench.spn.nodes import Leaf, Product


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


def learn(vault: Vault, settings: IndependentSettings, progress: Progress) -> dict[str, TableModel]:
    """Learn every private table, spending at most the ledger's budget."""

    def learn_table(block: Block, size: Size, epsilon: Fraction) -> Learnt:
        return learn_columns(vault, block, size, epsilon=epsilon, progress=progress)

    return learn_database(vault, learn_table, network_share=settings.network_share, progress=progress)


def learn_columns(vault: Vault, block: Block, size: Size, *, epsilon: Fraction, progress: Progress) -> Learnt:
    """A product of all columns of a table. Its size is pooled from `size` and the totals of the histograms."""
    columns, cap = vault.facts.tables[block.table].columns, vault.cap(block.table)
    several = [name for name, column in columns.items() if column.size > 1]
    measured = several or list(columns)[:1]  # one of a single code still says how many rows there are
    share = epsilon / len(measured)
    noisy = {}
    for at, column in enumerate(measured):
        progress(f"learning {block.table}", at, len(measured))
        noisy[column] = vault.histogram(block, column, epsilon=share)
    noise = vault.noise(share, sensitivity=cap, additive=True, unit=1)
    total = pooled([Size(rows=float(y.sum()), variance=len(y) * noise.variance) for y in noisy.values()])
    rows = max(pooled([size, total]).rows, 0.0)
    denoised = {c: denoise(y, noise.scale, gaussian=noise.gaussian) for c, y in noisy.items()}
    leaves = (Leaf(column=c, counts=scaled(y, rows)) for c, y in denoised.items())
    constants = (Leaf(column=c, counts=np.ones(1)) for c in (*columns, COMPONENT) if c not in measured)
    network = Product(children=(*leaves, *constants))
    return Learnt(network=network, size=total, parts=(block,))


INDEPENDENT = Method(name="independent", read_settings=independent_settings, learn=learn)
