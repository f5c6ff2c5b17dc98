"""Method `tree` on one screen: tables in owner order, each learnt given what a sample of its owners looks like.

No row is cut off and no size is measured by itself: a row weighs one over the rows of its entity, how many rows an
owner has is a column of the owner, and the size of an owned table follows from it.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from privbench.methods.method import Method, Progress, TableModel
from privbench.methods.tree.columns import constant_features, draws_targets
from privbench.methods.tree.entities import count_entities, unowned_rows
from privbench.methods.tree.forecast import check_plans, forecast
from privbench.methods.tree.implied import implied
from privbench.methods.tree.keys import link_table, owner_fanouts
from privbench.methods.tree.learner import LearntTable, Task, learn_table
from privbench.methods.tree.plan import PlannedTable, plan_database, unowned_alone
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
from privbench.methods.tree.surroundings import NOTHING, Surroundings, best_full_rows, strata_axis
from privbench.methods.tree.weighed import WeighedTable
from privbench.privacy.facts import Facts, LinkFacts
from privbench.privacy.features import Feature
from privbench.privacy.vault import Vault
from privbench.schema.unit import LinkKind
from privbench.spn.fanouts import bin_means
from privbench.spn.feature_names import COMPONENT, in_degree_column, null_column, rows_column
from privbench.spn.infer import marginal
from privbench.spn.nodes import Leaf, Node, Product


def learn(vault: Vault, facts: Facts, settings: TreeSettings, progress: Progress) -> dict[str, TableModel]:
    """Learn every private table, spending at most the ledger's budget."""
    ledger = vault.ledger
    entities = count_entities(vault, facts)
    budget = ledger.budget - ledger.total
    plans = plan_database(facts, entities=entities, budget=budget, measure=ledger.measure, settings=settings)
    check_plans(plans, facts.entity, entities)
    unowned = {t: plan.unowned for t, plan in plans.items()} | unowned_alone(facts, entities=entities, budget=budget)
    database = _Database(facts, entities)
    for at, name in enumerate(facts.tables):
        progress(f"learning {name}", at, len(facts.tables))
        table = WeighedTable(vault=vault, table=name, scope=ledger.root.sequential(f"table {name}"))
        database.learn(table, plans.get(name), unowned=unowned.get(name, Fraction(0)))
        vault.forget(name)
    return database.models()


class _Database:
    """The tables learnt so far, owners first: their networks, and a sample of synthetic rows of each."""

    def __init__(self, facts: Facts, entities: float) -> None:
        self._facts = facts
        self._entities = entities
        self._learnt: dict[str, LearntTable] = {}
        self._samples: dict[str, SampledTable] = {}
        self._rows: dict[str, float] = {}
        self._unowned: dict[str, float] = {}

    def models(self) -> dict[str, TableModel]:
        """What is released of each table."""
        return {
            table: TableModel(
                network=learnt.network,
                rows=self._rows[table],
                links=link_table(
                    self._facts, table, self._learnt, rows=self._rows, unowned=self._unowned.get(table, 0.0)
                ),
            )
            for table, learnt in self._learnt.items()
        }

    def learn(self, table: WeighedTable, plan: PlannedTable | None, *, unowned: Fraction) -> None:
        """Learn a table whose owner table is learnt; one without columns has no plan, but may have unowned rows."""
        name = table.table
        link, children = self._facts.owner_link(name), None
        if link is not None:
            self._unowned[name] = unowned_rows(self._facts, link, table, unowned, owned=self._owned(link))
            children = self._children(link, plan)
            public = self._facts.tables[name].rows
            rows = self._rows[link.target] * children.per_owner + self._unowned[name]
            self._rows[name] = rows if public is None else float(public)
        learnt = _nothing_to_learn(self._entities) if plan is None else self._columns(plan, table, children)
        self._learnt[name] = replace(learnt, network=_with(constant_features(self._facts, name), learnt.network))
        self._take_sample(name, link, children, plan.given if plan else ())

    def _owned(self, link: LinkFacts) -> float:
        """About how many rows of a table have an owner."""
        fanouts = owner_fanouts(self._facts, link, self._learnt[link.target], unowned=0.0)
        shares = marginal(self._learnt[link.target].network, fanouts.column)
        return self._rows[link.target] * float(shares @ bin_means(fanouts.edges, fanouts.exponent))

    def _children(self, link: LinkFacts, plan: PlannedTable | None) -> SampledRows:
        """Rows of an owned table in the sample."""
        fanouts = owner_fanouts(self._facts, link, self._learnt[link.target], unowned=self._unowned[link.table])
        return child_rows(
            self._samples[link.target],
            fanouts,
            plan.given if plan else (),
            unowned=self._unowned[link.table] / max(self._rows[link.target], 1.0),
        )

    def _columns(self, plan: PlannedTable, table: WeighedTable, children: SampledRows | None) -> LearntTable:
        known = self._facts.tables[plan.table].rows if plan.table == self._facts.entity else None
        if children is None:
            given = _public_surroundings(plan.given)
        else:
            even = plan.amount * Fraction(plan.settings.single_share) / len(plan.own)
            noise = table.noise(plan.own[:1], even).scale
            full_rows = best_full_rows(children, noise, scale=self._rows[plan.table] / len(children.owners))
            table = replace(table, full_rows=full_rows)
            given = _surroundings(plan, children, noise, full_rows=table.full_rows)
        task = Task(
            own=plan.own,
            given=given,
            entities=known,
            means=_public_means(self._facts, plan.table),
            most=_most_in_degrees(self._facts, plan.table),
            plan=plan.settings,
            possible=self._facts.possible_in(plan.table),
        )
        learnt = learn_table(table, task, amount=plan.amount)
        if children is None:
            return learnt
        scale = self._rows[plan.table] / len(children.owners)
        return replace(learnt, entities=len(children.rows_by_entity) * scale)

    def _take_sample(
        self, table: str, link: LinkFacts | None, children: SampledRows | None, given: tuple[Feature, ...]
    ) -> None:
        """Work out the rows of a table, and draw a sample of them if it owns others."""
        learnt = self._learnt[table]
        if link is None:
            self._rows[table] = self._lookup_rows(table) if table != self._facts.entity else learnt.entities
        if not any(link.kind is LinkKind.OWNER for link in self._facts.links_to(table)):
            return
        if children is not None:
            self._samples[table] = sample_table(learnt.network, children)
        else:
            self._samples[table] = sample_entities(learnt.network, learnt.entities, given)

    def _lookup_rows(self, table: str) -> float:
        """The rows of a lookup: one for each row of its owner table whose key into it is not NULL."""
        link = next(k for k in self._facts.links_to(table) if not draws_targets(self._facts, k))
        network = self._learnt[link.table].network
        nulls = float(marginal(network, null_column(link.name))[1]) if link.nullable else 0.0
        return self._rows[link.table] * (1 - nulls)


def _nothing_to_learn(entities: float) -> LearntTable:
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
        strata=strata,
        strata_codes=None if strata is None else children.entity_rows(),
        siblings=Siblings(features=plan.firsts, firsts=children.firsts) if plan.firsts else None,
    )


def _public_means(facts: Facts, table: str) -> dict[str, float]:
    """The means of fanouts whose both tables have public sizes, by name of the feature."""
    owners = facts.tables[table].rows
    owned = {k.name: facts.tables[k.table].rows for k in facts.links_to(table) if k.kind is LinkKind.OWNER}
    return {rows_column(name): rows / owners for name, rows in owned.items() if owners and rows is not None}


def _most_in_degrees(facts: Facts, table: str) -> dict[str, float]:
    """The largest mean in-degrees of the entity table: of each entity one key counts."""
    if table != facts.entity:
        return {}
    return {in_degree_column(k.name): 1.0 for k in facts.links_to(table) if k.kind is LinkKind.REFERENCE}


TREE = Method(
    name="tree",
    read_settings=tree_settings,
    learn=learn,
    implied=implied,
    forecast=forecast,
    children_with_owner=True,
    computes_columns=True,
)
