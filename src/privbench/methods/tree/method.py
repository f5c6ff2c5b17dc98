"""Method `tree` on one screen: tables in owner order, each learnt given what a sample of its owners looks like.

No row is cut off: a row weighs one over the rows of its entity, or over `full_rows` if that is more. How many rows an
owner has is a column of the owner; the size of an owned table follows from it, and is counted where that does not tell.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privbench.methods.method import Method, Progress, TableModel
from privbench.methods.tree.charges import mischarged, table_label
from privbench.methods.tree.columns import constant_features, draws_targets
from privbench.methods.tree.entities import Unowned, count_entities, unowned_rows
from privbench.methods.tree.forecast import check_plans, forecast
from privbench.methods.tree.hub import References
from privbench.methods.tree.implied import implied
from privbench.methods.tree.keys import link_table, owner_fanouts
from privbench.methods.tree.learner import LearntTable, Task, learn_table
from privbench.methods.tree.plan import PlannedTable, plan_database, planned_for, total_amounts, unowned_alone
from privbench.methods.tree.sampled import (
    SampledRows,
    SampledTable,
    child_rows,
    public_codes,
    sample_entities,
    sample_table,
)
from privbench.methods.tree.settings import TreeSettings, tree_settings
from privbench.methods.tree.siblings import Siblings
from privbench.methods.tree.size_laws import (
    FIRST_LIMIT,
    MOST_ROWS,
    ClippedCount,
    SizeLaws,
    all_laws,
    is_wide,
    laws_of_bins,
    within,
)
from privbench.methods.tree.sizes import (
    NoisyFanouts,
    Size,
    best_limit,
    pooled,
    predicted,
    size_error,
    sized,
    tilt,
    tilted,
)
from privbench.methods.tree.surroundings import NOTHING, Surroundings, best_full_rows, strata_axis
from privbench.methods.tree.weighed import WeighedTable
from privbench.privacy.facts import Facts, LinkFacts
from privbench.privacy.features import Feature
from privbench.privacy.vault import Vault
from privbench.schema.unit import LinkKind
from privbench.spn.fanouts import bin_means
from privbench.spn.feature_names import COMPONENT, null_column, rows_column
from privbench.spn.infer import marginal
from privbench.spn.nodes import Leaf, Node, Product

Floats = NDArray[np.float64]

SURE = 0.03
"""The rows of a table are counted where fanouts do not tell them up to this relative error."""
ROW_MEANS_ERROR, ENTITY_MEANS_ERROR = 0.15, 0.5
"""How far a law of in-degrees may be off in its mean: of the entity table, and of tables whose rows entities weigh."""
CHAIN_ERROR = 0.3
"""How far fanouts of owned tables, in which entities weigh the same, may be off in their mean over rows."""
LEAST_FANOUT = 1e-12
"""Shares of fanouts below this count as this."""
NEARLY = 0.01
"""Fanouts are tilted if they give more or fewer rows than they should by more than this share."""


def learn(vault: Vault, facts: Facts, settings: TreeSettings, progress: Progress) -> dict[str, TableModel]:
    """Learn every private table, spending at most the ledger's budget."""
    ledger = vault.ledger
    entities = count_entities(vault, facts)
    budget = ledger.budget - ledger.total
    plans = plan_database(facts, entities=entities.rows, budget=budget, measure=ledger.measure, settings=settings)
    check_plans(plans, facts.entity, entities.rows)
    alone = unowned_alone(facts, entities=entities.rows, budget=budget)
    unowned = {t: plan.unowned for t, plan in plans.items()} | alone
    totals = total_amounts(facts, budget=budget)
    database = _Database(facts, entities, settings)
    for at, name in enumerate(facts.tables):
        progress(f"learning {name}", at, len(facts.tables))
        table = WeighedTable(vault=vault, table=name, scope=ledger.root.sequential(table_label(name)))
        none = Fraction(0)
        database.learn(table, plans.get(name), unowned=unowned.get(name, none), total=totals.get(name, none))
        vault.forget(name)
    return database.models()


class _Database:
    """The tables learnt so far, owners first: their networks, and a sample of synthetic rows of each."""

    def __init__(self, facts: Facts, entities: Size, settings: TreeSettings) -> None:
        self._facts = facts
        self._settings = settings
        self._entities = entities
        self._learnt: dict[str, LearntTable] = {}
        self._samples: dict[str, SampledTable] = {}
        self._sizes: dict[str, Size] = {}
        self._unowned: dict[str, Unowned] = {}
        self._drawn: dict[str, SampledRows] = {}
        """Of owned tables: whose the rows of the sample are, and what is given of them."""
        self._given: tuple[Feature, ...] = ()
        """What is public of entities."""

    def models(self) -> dict[str, TableModel]:
        """What is released of each table."""
        rows = {table: size.rows for table, size in self._sizes.items()}
        unowned = {table: some.beside(some.owned_of(rows[table])) for table, some in self._unowned.items()}
        return {
            table: TableModel(
                network=learnt.network,
                rows=rows[table],
                rows_error=self._sizes[table].error,
                rows_low=self._sizes[table].low,
                rows_high=self._sizes[table].high,
                links=link_table(self._facts, table, self._learnt, rows=rows, unowned=unowned.get(table, 0.0)),
            )
            for table, learnt in self._learnt.items()
        }

    def learn(self, table: WeighedTable, plan: PlannedTable | None, *, unowned: Fraction, total: Fraction) -> None:
        """Learn a table whose owner table is learnt; one without columns has no plan, but may have unowned rows.

        `unowned` is to count these, `total` all rows of the table, if that is worth it; else it goes to the columns.
        """
        name = table.table
        link, children = self._facts.owner_link(name), None
        if link is not None:
            self._unowned[name] = unowned_rows(self._facts, link, table, unowned, owned=self._owned(link))
            children = self._children(link, plan)
            spent = self._meet_size(table, link, children, total)
            children = self._drawn[name] = self._children(link, plan)
            plan = plan and replace(plan, amount=plan.amount + total - spent)
        elif name != self._facts.entity:
            self._sizes[name] = self._lookup_size(name)
        learnt = _nothing_to_learn(self._entities) if plan is None else self._columns(plan, table, children)
        self._learnt[name] = replace(learnt, network=_with(constant_features(self._facts, name), learnt.network))
        if name == self._facts.entity:
            self._sizes[name] = learnt.entities
            self._given = plan.given if plan else ()
        self._draw(name)

    def _fanouts(self, link: LinkFacts) -> NoisyFanouts:
        """How many rows of a table its owners have."""
        owner = self._learnt[link.target]
        fanouts = owner_fanouts(self._facts, link, owner, unowned=0.0)
        return NoisyFanouts(
            shares=marginal(owner.network, fanouts.column),
            means=bin_means(fanouts.edges, fanouts.exponent),
            deviation=owner.deviations[fanouts.column],
        )

    def _meet_size(self, table: WeighedTable, link: LinkFacts, children: SampledRows, amount: Fraction) -> Fraction:
        """Work out how many rows a table has, and tilt the fanouts of its owners to it; returns what was spent."""
        unowned, public = self._unowned[link.table], self._facts.tables[link.table].rows
        before, laws, spent = self._predicted(link, children), None, Fraction(0)
        if public is not None:
            owned = sized(unowned.owned_of(float(public)), 0.0)
        else:
            owned, laws, spent = self._counted(table, link, children, before, amount)
        self._sizes[link.table] = unowned.together_with(owned)
        ratio = max(owned.rows, 1.0) / max(before.rows, 1.0)
        if laws is not None and self._is_hidden(link) and link.target == self._facts.entity:
            ratio = self._follow(link, laws, owned.rows)
        if abs(math.log(ratio)) > NEARLY:
            self._tilt(link, ratio)
        return spent

    def _counted(
        self,
        table: WeighedTable,
        link: LinkFacts,
        children: SampledRows,
        before: Size,
        amount: Fraction,
    ) -> tuple[Size, SizeLaws | None, Fraction]:
        """The rows that have an owner, what laws say of them, and what it took to count them.

        A count whose limit follows from the fanouts that it should check may be blind to what these miss. So where
        noise may hide many rows, half of the amount is for a count at a limit that laws of tails choose.
        """
        laws = self._laws(link)
        if laws is None or not (self._is_hidden(link) or is_wide(laws.size())):
            size, spent, _ = self._corrected(table, link, children, before, amount)
            return size, None, spent
        if not amount:
            return laws.size() if self._is_hidden(link) else within(before, laws.size()), laws, Fraction(0)
        half = amount / 2
        deviation = math.sqrt(table.noise([], half).variance)
        if self._is_hidden(link):
            laws = laws.with_count(self._count(table, link, FIRST_LIMIT, half))
            laws = laws.with_count(self._count(table, link, laws.second_limit(deviation), half))
            return laws.size(), laws, amount
        size, spent, first = self._corrected(table, link, children, before, half)
        laws = laws if first is None else laws.with_count(first)
        laws = laws.with_count(self._count(table, link, laws.second_limit(deviation), half))
        return within(size, laws.size()), laws, spent + half

    def _corrected(
        self, table: WeighedTable, link: LinkFacts, children: SampledRows, before: Size, amount: Fraction
    ) -> tuple[Size, Fraction, ClippedCount | None]:
        """What fanouts say of a size, corrected by a count of the rows up to a limit where they alone do not tell."""
        if not amount or before.error <= SURE:
            return before, Fraction(0), None
        scale = (before.rows + self._unowned[link.table].beside(before.rows)) / len(children.owners)
        limit = best_limit(children.rows_by_entity, scale=scale, deviation=math.sqrt(table.noise([], amount).variance))
        if limit.error >= before.error:
            return before, Fraction(0), None
        limit, part = limit.relaxed(SURE / 2)
        counted = replace(table, full_rows=limit.rows).measure([], amount * part)
        expected = scale * float(np.minimum(children.rows_by_entity, limit.rows).sum()) / limit.rows
        log_ratio = math.log(max(counted.total, 0.1 * expected) / expected)
        ratio, error = pooled(log_ratio, limit.error, before.error)
        count = ClippedCount(limit=limit.rows, total=counted.total, noise=counted.noise)
        return predicted(before.rows * ratio, error), amount * part, self._unowned[link.table].left_out(count)

    def _count(self, table: WeighedTable, link: LinkFacts, limit: int, amount: Fraction) -> ClippedCount:
        """Count the rows that have an owner, of each entity up to a limit."""
        counted = replace(table, full_rows=limit).measure([], amount)
        count = ClippedCount(limit=limit, total=counted.total, noise=counted.noise)
        return self._unowned[link.table].left_out(count)

    def _laws(self, link: LinkFacts) -> SizeLaws | None:
        """Laws of how many rows entities have where noise hides some; of owners of owners, only where it hides all."""
        if link.target != self._facts.entity:
            return all_laws(self._entities.rows) if self._is_hidden(link) else None
        column = rows_column(link.name)
        bins, exponent = self._learnt[link.target].bins[column], self._learnt[link.target].exponents[column]
        if bins.clear >= len(bins.counts):
            return None
        most = 1 if link.unique else self._facts.tables[link.table].cap or MOST_ROWS
        return laws_of_bins(bins, self._sizes[link.target].rows, exponent, most=most)

    def _is_hidden(self, link: LinkFacts) -> bool:
        """Whether noise hides who has rows of a table, or of one above it."""
        owner = self._facts.owner_link(link.target)
        return self._learnt[link.target].bins[rows_column(link.name)].hidden or (
            owner is not None and self._is_hidden(owner)
        )

    def _follow(self, link: LinkFacts, laws: SizeLaws, rows: float) -> float:
        """Let as many owners have each number of rows as laws say; returns how many times the rows are still needed."""
        fanouts = self._fanouts(link)
        edges = self._learnt[link.target].bins[rows_column(link.name)].edges
        shares = laws.bin_shares(edges, max(rows, 1.0), self._sizes[link.target].rows)
        self._reshape(link, shares / np.maximum(fanouts.shares, LEAST_FANOUT))
        return max(rows, 1.0) / max(self._owned(link), 1.0)

    def _predicted(self, link: LinkFacts, children: SampledRows) -> Size:
        """The rows that come with their owners, from the network where these are entities, else from their sample."""
        owners, of_entities = self._sizes[link.target], link.target == self._facts.entity
        bias = 0.0 if of_entities else CHAIN_ERROR
        error = size_error(self._fanouts(link), owners=math.hypot(owners.error, bias))
        return predicted(self._owned(link) if of_entities else owners.rows * children.per_owner, error)

    def _tilt(self, link: LinkFacts, ratio: float) -> None:
        """Make owners have so many times the rows, those with many more so, and draw their sample again.

        That holds as far as what fanouts depend on lets it; `generate` scales the rest.
        """
        fanouts = self._fanouts(link)
        self._reshape(link, tilt(fanouts.shares, fanouts.means, ratio))

    def _reshape(self, link: LinkFacts, factors: Floats) -> None:
        """Make each number of rows of an owner so many times as likely, and draw the owners' sample again."""
        owner = self._learnt[link.target]
        network = tilted(owner.network, rows_column(link.name), factors)
        self._learnt[link.target] = replace(owner, network=network)
        self._draw(link.target)

    def _owned(self, link: LinkFacts) -> float:
        """About how many rows of a table have an owner."""
        fanouts = self._fanouts(link)
        return self._sizes[link.target].rows * float(fanouts.shares @ fanouts.means)

    def _children(self, link: LinkFacts, plan: PlannedTable | None) -> SampledRows:
        """Rows of an owned table in the sample."""
        unowned = self._unowned[link.table].beside(self._owned(link))
        return child_rows(
            self._samples[link.target],
            owner_fanouts(self._facts, link, self._learnt[link.target], unowned=unowned),
            plan.given if plan else (),
            unowned=unowned / max(self._sizes[link.target].rows, 1.0),
        )

    def _columns(self, plan: PlannedTable, table: WeighedTable, children: SampledRows | None) -> LearntTable:
        known = self._facts.tables[plan.table].rows if plan.table == self._facts.entity else None
        if children is None:
            given = _public_surroundings(plan.given)
        else:
            even = plan.amount * Fraction(plan.settings.single_share) / len(plan.own)
            noise = table.noise(plan.own[:1], even).scale
            scale = self._scale(plan.table, children)
            table = replace(table, full_rows=best_full_rows(children, plan.own, noise, scale=scale, strata=plan.strata))
            plan = planned_for(plan, scale * float(children.weights(table.full_rows).sum()), self._settings)
            given = _surroundings(plan, children, noise, full_rows=table.full_rows)
        task = Task(
            own=plan.own,
            given=given,
            entities=known,
            means=_public_means(self._facts, plan.table),
            references=self._references(plan.table, known),
            plan=plan.settings,
            possible=self._facts.possible_in(plan.table),
            hinted=plan.hinted,
        )
        learnt = learn_table(table, task, amount=plan.amount)
        if children is None:
            return learnt
        entities = len(children.rows_by_entity) * self._scale(plan.table, children)
        return replace(learnt, entities=sized(entities, self._sizes[plan.table].error))

    def _references(self, table: str, known: int | None) -> References:
        """How many rows of a table there are to be referenced."""
        if table != self._facts.entity:
            return References(rows=self._sizes[table].rows, error=ENTITY_MEANS_ERROR)
        return References(rows=self._entities.rows if known is None else float(known), error=ROW_MEANS_ERROR)

    def _scale(self, table: str, children: SampledRows) -> float:
        """How many rows of a table each row of its sample stands for."""
        return self._sizes[table].rows / len(children.owners)

    def _draw(self, table: str) -> None:
        """Draw a sample of the rows of a table, if it owns others."""
        if not any(link.kind is LinkKind.OWNER for link in self._facts.links_to(table)):
            return
        learnt = self._learnt[table]
        if table in self._drawn:
            self._samples[table] = sample_table(learnt.network, self._drawn[table])
        else:
            given = self._given if table == self._facts.entity else ()
            self._samples[table] = sample_entities(learnt.network, learnt.entities.rows, given)

    def _lookup_size(self, table: str) -> Size:
        """The rows of a lookup: public, or one for each row of its owner table whose key into it is not NULL."""
        public = self._facts.tables[table].rows
        if public is not None:
            return sized(float(public), 0.0)
        link = next(k for k in self._facts.links_to(table) if not draws_targets(self._facts, k))
        network, owners = self._learnt[link.table].network, self._sizes[link.table]
        nulls = float(marginal(network, null_column(link.name))[1]) if link.nullable else 0.0
        return owners.times(1 - nulls)


def _nothing_to_learn(entities: Size) -> LearntTable:
    """A table whose columns are all keys that need no learning."""
    return LearntTable(
        network=Leaf(column=COMPONENT, counts=np.ones(1)), exponents={}, deviations={}, entities=entities
    )


def _with(constants: tuple[Feature, ...], network: Node) -> Node:
    """A network, and a leaf for each column of a single code."""
    leaves = [Leaf(column=feature.name, counts=np.ones(1)) for feature in constants]
    return Product(children=(network, *leaves)) if leaves else network


def _public_surroundings(features: tuple[Feature, ...]) -> Surroundings:
    """What public tables say of entities."""
    codes = public_codes(features)
    if not codes:
        return NOTHING
    weights = np.ones(len(next(iter(codes.values()))))
    return Surroundings(features=features, codes=tuple(codes[f.name] for f in features), weights=weights)


def _surroundings(plan: PlannedTable, children: SampledRows, noise: float, *, full_rows: int) -> Surroundings:
    """What is given of the rows of an owned table, in strata if these stand out of the noise."""
    strata = strata_axis(children, noise, full_rows=full_rows) if plan.strata else None
    return Surroundings(
        features=plan.given,
        codes=tuple(children.given[feature.name] for feature in plan.given),
        weights=children.weights(full_rows),
        entity_weight=children.entity_weight(full_rows),
        strata=strata,
        strata_codes=None if strata is None else children.entity_rows(),
        siblings=Siblings(features=plan.firsts, firsts=children.firsts) if plan.firsts else None,
    )


def _public_means(facts: Facts, table: str) -> dict[str, float]:
    """The means of fanouts of the entity table, if both tables have public sizes, by name of the feature.

    Rows of owned tables are weighed by their entities, so that means of rows say nothing of their histograms.
    """
    if table != facts.entity:
        return {}
    owners = facts.tables[table].rows
    owned = {k.name: facts.tables[k.table].rows for k in facts.links_to(table) if k.kind is LinkKind.OWNER}
    return {rows_column(name): rows / owners for name, rows in owned.items() if owners and rows is not None}


TREE = Method(
    name="tree",
    read_settings=tree_settings,
    learn=learn,
    implied=implied,
    mischarged=mischarged,
    forecast=forecast,
    children_with_owner=True,
    computes_columns=True,
    counts_in_parts=True,
)
