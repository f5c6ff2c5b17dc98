"""One table: single columns, a structure of pairs, tables of pairs, and a network with one conditional per column.

The same for the entity table and for tables that others own; what differs is what is given: nothing, or the columns of
the owner row in a fixed sample of synthetic rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privbench.methods.tree.coarse import bin_masses, coarse_axis
from privbench.methods.tree.network import Fitted, Parent, make_network
from privbench.methods.tree.pairs import (
    Tables,
    consolidated,
    margins_of,
    measure_pairs,
    pair_masses,
    stratum_masses,
)
from privbench.methods.tree.plan import TablePlan
from privbench.methods.tree.siblings import FIRST_SHARE, Column, measure_firsts
from privbench.methods.tree.single import Single, Singles, averaged, estimate, measure_singles
from privbench.methods.tree.sizes import Size
from privbench.methods.tree.structure import INDEPENDENT, Candidates, Structure, choose_structure
from privbench.methods.tree.surroundings import Surroundings
from privbench.methods.tree.weighed import WeighedTable
from privbench.privacy.features import Feature
from privbench.spn.nodes import Node

Floats = NDArray[np.float64]

LIGHTEST_BIN = 4.0
"""A bin weighs at least this many standard deviations of the noise of a pair's cell."""
ENOUGH_PAIRS = 0.5
"""With fewer pairs per column than this, a part of the pairs' budget measures single columns again."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearntTable:
    """The network of a table, and of its fanouts by name the exponents and the deviations of their shares."""

    network: Node
    exponents: Mapping[str, float]
    deviations: Mapping[str, float]
    entities: Size
    """Those that have rows in the table."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """A table to learn: its columns, what is given, what is public of it, and how."""

    own: tuple[Feature, ...]
    given: Surroundings
    entities: float | None
    means: Mapping[str, float]
    plan: TablePlan


def learn_table(table: WeighedTable, task: Task, *, amount: Fraction) -> LearntTable:
    """Learn a table for that amount."""
    plan, strata = task.plan, task.given.strata
    ones = amount * Fraction(plan.single_share)
    measured = measure_singles(table, task.own, strata, amount=ones, paired=plan.pairs > 0)
    singles = estimate(measured, entities=task.entities, means=task.means)
    candidates = _candidates(table, task, singles, noise=(amount - ones or ones) / max(plan.pairs, len(task.own)))
    if not plan.pairs:
        return _finish(task, candidates, INDEPENDENT, measured, singles, {})
    candidates = _with_firsts(table, task.given, candidates, singles, amount=amount * FIRST_SHARE)
    firsts = amount * FIRST_SHARE if candidates.only else Fraction(0)
    each = amount * Fraction(plan.choice_share) / (plan.pairs + len(candidates.only))
    structure = choose_structure(table, candidates, parents=plan.parents, choices=plan.pairs, amount=each)
    left = amount - ones - firsts - each * structure.choices
    part = Fraction(min(1.0, len(structure.pairs) / (ENOUGH_PAIRS * len(task.own))))
    tables = measure_pairs(table, candidates, structure, amount=left * part)
    if part < 1:
        again = measure_singles(table, task.own, strata, amount=left * (1 - part), paired=True)
        measured = averaged(measured, again)
        singles = estimate(measured, entities=task.entities, means=task.means)
    return _finish(task, candidates, structure, measured, singles, tables)


def _candidates(table: WeighedTable, task: Task, singles: Singles, *, noise: Fraction) -> Candidates:
    """All columns in bins that are heavy enough for the noise that a pair is going to have."""
    deviation = float(np.sqrt(table.noise(task.own[:1], noise).variance))
    counts = [*singles.counts, *task.given.counts(singles.total)]
    axes = tuple(
        coarse_axis(f, c, most=task.plan.bins, least=LIGHTEST_BIN * deviation * f.sensitivity_factor)
        for f, c in zip((*task.own, *task.given.features), counts, strict=True)
    )
    masses = tuple(np.maximum(bin_masses(axis, c), 1e-9) for axis, c in zip(axes, counts, strict=True))
    strata = 1 if task.given.strata is None else task.given.strata.size
    return Candidates(axes=axes, masses=masses, own=len(task.own), strata=strata, deviation=deviation)


def _with_firsts(
    table: WeighedTable, given: Surroundings, candidates: Candidates, singles: Singles, *, amount: Fraction
) -> Candidates:
    """The columns, and those of first rows as further given ones."""
    if given.siblings is None:
        return candidates
    own = candidates.own
    firsts = measure_firsts(
        table,
        given.siblings.features,
        [Column(*c) for c in zip(candidates.axes[:own], candidates.masses[:own], singles.counts, strict=True)],
        least=LIGHTEST_BIN * candidates.deviation,
        amount=amount,
    )
    return replace(
        candidates,
        axes=(*candidates.axes, *(first.axis for first in firsts)),
        masses=(*candidates.masses, *(first.masses for first in firsts)),
        only={place: first.alone for place, first in enumerate(firsts, len(candidates.axes))},
    )


def _finish(
    task: Task,
    candidates: Candidates,
    structure: Structure,
    measured: Sequence[Single],
    singles: Singles,
    tables: Tables,
) -> LearntTable:
    counts = tuple(
        consolidated(axis, place, single, c, tables)
        for place, (axis, single, c) in enumerate(
            zip(candidates.axes[: candidates.own], measured, singles.counts, strict=True)
        )
    )
    singles = replace(singles, counts=counts)
    margins = margins_of(candidates, singles)
    fitted = []
    for column in structure.sequence(candidates.own):
        stratum = None
        if task.given.strata is not None:
            stratum = stratum_masses(candidates.axes[column], measured[column], singles.strata, margins[column])
        fitted.append(
            Fitted(
                place=column,
                axis=candidates.axes[column],
                counts=counts[column],
                masses=margins[column],
                parents=[
                    Parent(place=p, masses=_pair(candidates, p, column, margins, tables))
                    for p in structure.parents.get(column, ())
                ],
                stratum=stratum,
            )
        )
    network = make_network(fitted, candidates, task.given)
    return LearntTable(
        network=network,
        exponents=singles.exponents,
        deviations=singles.deviations,
        entities=Size(singles.total, singles.error),
    )


def _pair(candidates: Candidates, parent: int, column: int, margins: Sequence[Floats], tables: Tables) -> Floats:
    """The masses of a parent and its column."""
    return pair_masses(
        candidates.axes[parent],
        candidates.axes[column],
        (margins[parent], margins[column]),
        tables[parent, column],
        expected=candidates.only[parent].expected.T if parent in candidates.only else None,
    )
