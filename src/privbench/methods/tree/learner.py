"""One table: single columns, a structure of pairs, tables of pairs, and a network with one conditional per column.

The same for the entity table and for tables that others own; what differs is what is given: nothing, or the columns of
the owner row in a fixed sample of synthetic rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privbench.methods.tree.coarse import bin_masses, coarse_axis
from privbench.methods.tree.coupling import edges_of
from privbench.methods.tree.hub import (
    HubTables,
    Linked,
    References,
    beside_references,
    expanded,
    fanouts_first,
    fit_hub,
    fit_references,
    hub_place,
    hub_share,
    is_reference,
    measure_hub,
    pays,
    refined,
    without_hub,
)
from privbench.methods.tree.network import Fitted, Parent, make_network
from privbench.methods.tree.pairs import (
    NO_TABLES,
    NoisyTable,
    Tables,
    consolidated,
    margins_of,
    measure_again,
    measure_first,
    measure_pairs,
    pair_masses,
    ruled_masses,
    stratum_masses,
)
from privbench.methods.tree.paths import Paths
from privbench.methods.tree.plan import TablePlan
from privbench.methods.tree.siblings import FIRST_SHARE, Column, measure_firsts
from privbench.methods.tree.single import Single, Singles, averaged, estimate, measure_singles
from privbench.methods.tree.size_laws import NoisyBins
from privbench.methods.tree.sizes import Size, sized
from privbench.methods.tree.structure import Candidates, Growth, Structure, independent, with_bases
from privbench.methods.tree.surroundings import Surroundings
from privbench.methods.tree.weighed import WeighedTable
from privbench.methods.tree.zeros import coarser, find_zeros, summed
from privbench.privacy.facts import PossiblePairs
from privbench.privacy.features import Axis, Fanout, Feature
from privbench.spn.nodes import Node

Floats = NDArray[np.float64]

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
    bins: Mapping[str, NoisyBins] = field(default_factory=dict)
    """Of fanouts by name: what was measured."""
    rates: frozenset[str] = frozenset()
    """In-degrees by name of which the network holds rates, not counts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """A table to learn: its columns, what is given, what is public of it, and how."""

    own: tuple[Feature, ...]
    references: References
    """Keys that reference the rows, once it is known that there is a hub."""
    given: Surroundings
    entities: float | None
    means: Mapping[str, float]
    """Of fanouts by name, where they are public."""
    plan: TablePlan
    possible: tuple[PossiblePairs, ...] = ()
    """What rules leave of pairs of columns."""
    hinted: tuple[tuple[str, str], ...] = ()
    """Columns that the spec says depend on each other, by name."""


def learn_table(table: WeighedTable, task: Task, *, amount: Fraction) -> LearntTable:
    """Learn a table for that amount."""
    task, before, spent = _look_for_hub(table, task, amount=amount)
    plan, strata = task.plan, task.given.strata
    ones, hubs = amount * Fraction(plan.single_share) - spent, Fraction(0)
    amount -= spent
    if hub_place(task.own) is not None:
        rest = len(task.own) - len(before)
        share = hub_share(task.own, task.references.features, measured=rest, single_share=plan.single_share)
        hubs = amount * share
        amount -= hubs
        ones = amount * Fraction(plan.single_share)
    measured = _measure_rest(table, task, before, amount=ones)
    singles = estimate(measured, entities=task.entities, means=task.means)
    tables_expected = plan.hinted if plan.only_hinted else max(plan.pairs, len(task.own))
    candidates = _candidates(table, task, singles, noise=(amount - ones or ones) / tables_expected)
    hub = measure_hub(table, task.own, task.references, singles, amount=hubs)
    linked, singles = fit_hub(task.own, measured, singles, hub)
    candidates = replace(candidates, hub=hub_place(task.own), linked=tuple(hub.linked))
    if not plan.pairs and not plan.hinted:
        structure = with_bases(candidates, independent(candidates))
        return _finish(task, candidates, structure, measured, singles, {}, linked, hub)
    if plan.pairs:
        candidates = _with_firsts(
            table, task.given, candidates, singles, amount=amount * FIRST_SHARE, least=plan.lightest_bin
        )
    firsts = amount * FIRST_SHARE if candidates.only else Fraction(0)
    most_choices = max(plan.pairs + len(candidates.only), 1)
    each = amount * Fraction(plan.choice_share) / most_choices
    growth = Growth(table, candidates, parents=plan.parents, choices=plan.pairs, amount=each)
    growth.place_first()
    first = NO_TABLES
    if plan.staged:
        pairs = [pair for pair in growth.structure().pairs if pair not in linked]
        for_pairs = (amount - ones - firsts - each * most_choices) * _part_of_pairs(task, len(pairs))
        first = measure_first(table, candidates, pairs, most=most_choices, amount=for_pairs)
        growth.extend(_paths(task, candidates, growth.structure(), measured, singles, first.tables).expected)
    else:
        growth.extend()
    structure = growth.structure()
    left = amount - ones - firsts - each * structure.choices
    pairs = [pair for pair in structure.pairs if pair not in linked]
    structure = with_bases(candidates, structure)
    part = _part_of_pairs(task, len(pairs))
    if plan.staged:
        tables = measure_again(table, candidates, pairs, first, amount=left * part - first.total)
    else:
        tables = measure_pairs(table, candidates, pairs, amount=left * part)
    if part < 1:
        again = measure_singles(table, task.own, strata, amount=left * (1 - part), paired=plan.pairs > 0)
        measured = averaged(measured, again)
        singles = estimate(measured, entities=task.entities, means=task.means)
        linked, singles = fit_hub(task.own, measured, singles, hub)
    return _finish(task, candidates, structure, measured, singles, tables, linked, hub)


def _part_of_pairs(task: Task, pairs: int) -> Fraction:
    """The part of what is left for so many pairs; single columns get the rest."""
    enough = 1.0 if task.plan.only_hinted else ENOUGH_PAIRS * len(task.own)
    return Fraction(min(1.0, pairs / enough))


def _paths(
    task: Task,
    candidates: Candidates,
    structure: Structure,
    measured: Sequence[Single],
    singles: Singles,
    tables: Tables,
) -> Paths:
    """What tables of first parents with their columns say of other pairs."""
    singles = _consolidated(candidates, measured, singles, tables)
    margins, firsts = margins_of(candidates, singles), structure.firsts
    masses = {
        pair: _coarse_pair(candidates, pair, margins, table)
        for pair, table in tables.items()
        if pair in firsts and pair[0] not in candidates.only
    }
    return Paths(candidates, task.given, margins, masses)


def _look_for_hub(table: WeighedTable, task: Task, *, amount: Fraction) -> tuple[Task, list[Single], Fraction]:
    """Measure fanouts first where there may be a hub, of all that columns get; without long tails there is none.

    Nor is there one where a table has no other columns, and pairs get nothing: fanouts would leave no budget for it.

    Returns the task, with or without the hub, what was measured and what that cost.
    """
    if hub_place(task.own) is None:
        return task, [], Fraction(0)
    for_columns = amount * Fraction(task.plan.single_share)
    features, spent = fanouts_first(task.own, for_columns, paired=task.plan.pairs > 0)
    if spent >= amount:
        return replace(task, own=without_hub(task.own)), [], Fraction(0)
    measured = measure_singles(table, features, task.given.strata, amount=spent, paired=task.plan.pairs > 0)
    singles = estimate(measured, entities=task.entities, means=task.means)
    if not pays(measured, singles, task.own):
        return replace(task, own=without_hub(task.own)), measured, spent
    references = replace(task.references, features=tuple(f for f in task.own if is_reference(f)))
    return replace(task, own=beside_references(task.own), references=references), measured, spent


def _measure_rest(table: WeighedTable, task: Task, before: list[Single], *, amount: Fraction) -> list[Single]:
    """All columns: those that were not measured before for that amount."""
    known = {single.feature: single for single in before}
    rest = tuple(feature for feature in task.own if feature not in known)
    if rest:
        singles = measure_singles(table, rest, task.given.strata, amount=amount, paired=task.plan.pairs > 0)
        known |= {single.feature: single for single in singles}
    return [known[feature] for feature in task.own]


def _candidates(table: WeighedTable, task: Task, singles: Singles, *, noise: Fraction) -> Candidates:
    """All columns in bins that are heavy enough for the noise that a pair is going to have."""
    deviation = float(np.sqrt(table.noise(task.own[:1], noise).variance))
    counts, features = [*singles.counts, *task.given.counts(singles.total)], (*task.own, *task.given.features)
    axes = tuple(
        coarse_axis(
            f, c, most=_most_bins(f, task.plan), least=task.plan.lightest_bin * deviation * f.sensitivity_factor
        )
        for f, c in zip(features, counts, strict=True)
    )
    masses = tuple(np.maximum(bin_masses(axis, c), 1e-9) for axis, c in zip(axes, counts, strict=True))
    strata = 1 if task.given.strata is None else task.given.strata.size
    zeros = find_zeros(features, axes, counts, task.possible)
    return Candidates(
        axes=axes,
        masses=masses,
        own=len(task.own),
        strata=strata,
        deviation=deviation,
        noise_weight=task.plan.noise_weight,
        entity_weight=task.given.entity_weight,
        zeros=zeros,
        hinted=_places(features, task.hinted) if task.plan.hinted else (),
    )


def _most_bins(feature: Feature, plan: TablePlan) -> int:
    return plan.bins if feature.ordered else plan.unordered_bins


def _places(features: Sequence[Feature], pairs: Sequence[tuple[str, str]]) -> tuple[tuple[int, int], ...]:
    """Where the columns of pairs are among features."""
    places = {feature.name: place for place, feature in enumerate(features)}
    return tuple((places[first], places[second]) for first, second in pairs)


def _with_firsts(
    table: WeighedTable,
    given: Surroundings,
    candidates: Candidates,
    singles: Singles,
    *,
    amount: Fraction,
    least: float,
) -> Candidates:
    """The columns, and those of first rows as further given ones."""
    if given.siblings is None:
        return candidates
    own = candidates.own
    firsts = measure_firsts(
        table,
        given.siblings.features,
        [Column(*c) for c in zip(candidates.axes[:own], candidates.masses[:own], singles.counts, strict=True)],
        least=least * candidates.deviation,
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
    linked: Linked,
    hub: HubTables,
) -> LearntTable:
    paths = _paths(task, candidates, structure, measured, singles, tables)
    singles = _consolidated(candidates, measured, singles, tables)
    counts = singles.counts
    fine = refined(candidates)
    margins = margins_of(fine, singles)
    pairs = {
        pair: _pair(
            candidates,
            pair,
            margins_of(candidates, singles),
            table,
            known=None if pair in structure.firsts else paths.expected(*pair),
            fine=fine,
            fine_margins=margins,
        )
        for pair, table in tables.items()
    }
    pairs |= {pair: _free(fine, pair, margins) for pair in structure.free}
    pairs |= linked
    fitted = []
    for column in structure.sequence(candidates.own):
        stratum = None
        if task.given.strata is not None:
            stratum = stratum_masses(fine.axes[column], measured[column], singles.strata, margins[column])
        fitted.append(
            Fitted(
                place=column,
                axis=fine.axes[column],
                counts=counts[column],
                masses=margins[column],
                parents=[
                    Parent(place=p, masses=pairs[p, column], free=(p, column) in structure.free)
                    for p in structure.parents.get(column, ())
                ],
                stratum=stratum,
            )
        )
    references = fit_references(task.own, singles, hub)
    fitted += _reference_columns(references, candidates.hub, place=len(fine.axes))
    fine = replace(fine, axes=(*fine.axes, *(axis for axis, _ in references)))
    network = make_network(fitted, fine, task.given)
    return LearntTable(
        network=network,
        exponents=singles.exponents,
        deviations=singles.deviations,
        bins={s.feature.name: _bins(s, singles) for s in measured if isinstance(s.feature.source, Fanout)},
        rates=frozenset(axis.feature.name for axis, _ in references),
        entities=sized(singles.total, singles.error),
    )


def _bins(single: Single, singles: Singles) -> NoisyBins:
    return NoisyBins(
        edges=edges_of(single.feature),
        counts=single.noisy.sum(axis=0),
        noise=single.pooled_noise,
        clear=singles.clear[single.feature.name],
    )


def _consolidated(candidates: Candidates, measured: Sequence[Single], singles: Singles, tables: Tables) -> Singles:
    """Single columns with what tables of pairs say of their bins."""
    columns = zip(candidates.axes[: candidates.own], measured, singles.counts, strict=True)
    counts = tuple(consolidated(axis, at, single, c, tables) for at, (axis, single, c) in enumerate(columns))
    return replace(singles, counts=counts)


def _reference_columns(references: Sequence[tuple[Axis, Floats]], hub: int | None, *, place: int) -> Iterator[Fitted]:
    """Columns of the rates at which rows are referenced, which depend on the hub alone, from that place on."""
    for at, (axis, masses) in enumerate(references):
        counts = masses.sum(axis=0)
        parents = [] if hub is None else [Parent(place=hub, masses=masses)]
        yield Fitted(place=place + at, axis=axis, counts=counts, masses=counts, parents=parents, stratum=None)


def _pair(
    candidates: Candidates,
    pair: tuple[int, int],
    margins: Sequence[Floats],
    table: NoisyTable,
    *,
    known: Floats | None,
    fine: Candidates,
    fine_margins: Sequence[Floats],
) -> Floats:
    """The masses of a parent and its column that were measured as a pair, in fine bins where these differ.

    What is `known` of them, in the bins of pairs, is expected where no rule compares them; else independence.
    """
    parent, column = pair
    both = (fine_margins[parent], fine_margins[column])
    ruled = candidates.zeros.expected(parent, column, both)
    if ruled is None:
        masses = _coarse_pair(candidates, pair, margins, table, known=known)
        return expanded(masses, pair, candidates, fine, fine_margins)
    axes = candidates.axes[parent], candidates.axes[column]
    bins = coarser(fine.axes[parent], axes[0]), coarser(fine.axes[column], axes[1])
    masses = pair_masses(*axes, (margins[parent], margins[column]), table, expected=summed(ruled, *bins))
    return ruled_masses(ruled, masses, bins, both)


def _coarse_pair(
    candidates: Candidates,
    pair: tuple[int, int],
    margins: Sequence[Floats],
    table: NoisyTable,
    *,
    known: Floats | None = None,
) -> Floats:
    """The masses of a parent and its column in the bins of pairs."""
    parent, column = pair
    expected = candidates.only[parent].expected.T if parent in candidates.only else known
    axes = candidates.axes[parent], candidates.axes[column]
    return pair_masses(*axes, (margins[parent], margins[column]), table, expected=expected)


def _free(fine: Candidates, pair: tuple[int, int], margins: Sequence[Floats]) -> Floats:
    """The masses of two columns of which a rule is all that is known."""
    masses = fine.zeros.expected(*pair, (margins[pair[0]], margins[pair[1]]))
    assert masses is not None  # noqa: S101  else nothing says that one depends on the other
    return masses
