"""Joins of a query along foreign keys, and the rows that they have on average.

The keys that a query's equalities follow are a forest over its tables; anything else is refused. Two keys with the same
target are joined through it, also where the query leaves that table out: it is then put in without a filter.

Every table passes on the weight of its rows with everything joined to them: one number if all rows are alike, one per
row where keys tell rows apart. Where links are counts of their own, one pass over the tree of joins is exact; otherwise
the rows are those of a sample.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from privbench.encode.predicate import All
from privbench.errors import SpecError
from privbench.estimation.context import Filters, JoinContext
from privbench.estimation.nodes import PrivateNode, PublicNode, SampledNode
from privbench.estimation.values import asks_for_values
from privbench.model.model import Model
from privbench.schema.unit import Link, LinkKind, Protection, Role
from privbench.spn.infer import probability

Place = tuple[str, str]
"""A table as the query calls it, and a column of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A foreign key that is followed from the table that holds it to its target."""

    holder: str
    target: str
    link: Link


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinTree:
    """The tables of a query by what it calls them, and the keys that join them; no way leads back to its start."""

    tables: Mapping[str, str]
    edges: tuple[Edge, ...]


def join_tree(protection: Protection, tables: Mapping[str, str], joins: Sequence[tuple[Place, Place]]) -> JoinTree:
    """Find the keys behind a query's joins. SpecError if some are not along keys, or if they form a cycle."""
    twice = [t for t in tables.values() if list(tables.values()).count(t) > 1]
    if twice:
        raise SpecError(
            f"{twice[0]}: the query joins it twice; a model knows how often a row is referenced, not by which rows."
        )
    groups = _groups(joins)
    edges = [
        Edge(holder=a, target=b, link=link)
        for link in protection.keys
        for a in tables
        for b in tables
        if a != b and tables[a] == link.table and tables[b] == link.target and _follows(groups, a, b, link)
    ]
    edges = [e for e in edges if e.link.kind is not LinkKind.IMPLIED or e.target not in _by_owners(edges, e.holder)]
    added: dict[str, str] = {}
    for group in groups:
        edges += _through_absent(protection, tables, group, edges, added)
    everything = {**tables, **added}
    _check_forest(everything, edges)
    return JoinTree(tables=everything, edges=tuple(edges))


class JoinWeights:
    """One pass over the joins of one query."""

    def __init__(self, model: Model, tree: JoinTree, filters: Mapping[str, Filters], *, number: int = 0) -> None:
        """`number` says which of several samples is looked at, where there is one."""
        self._model = model
        self._tree = tree
        self._filters = filters
        asked = [((tree.tables[alias], c), parts) for alias, by in filters.items() for c, parts in by.items()]
        self._context = JoinContext(model, by_values=asks_for_values(model, asked), number=number)

    @property
    def is_by_values(self) -> bool:
        """Whether values had to be sampled, so that the answer is another with each sample."""
        return bool(self._context.by_values)

    def total(self) -> float:
        """The product over the trees of the forest of joins."""
        left, rows = dict(self._tree.tables), 1.0
        while left:
            root = next(iter(left))
            reached = self._reached(root)
            for alias in reached:
                del left[alias]
            rows *= self._alone(root) if len(reached) == 1 and self._is_simple(root) else self._joined(root, reached)
        return rows

    def _is_simple(self, alias: str) -> bool:
        """Whether only modelled columns of the entity table are asked for: its network answers exactly."""
        name = self._tree.tables[alias]
        if any((name, column) in self._context.by_values for column in self._filters[alias]):
            return False
        return name == self._model.protection.entity and set(self._filters[alias]) <= set(self._model.codecs[name])

    def _alone(self, alias: str) -> float:
        name = self._tree.tables[alias]
        codecs, network = self._model.codecs[name], self._model.tables[name].network
        evidence = {c: codecs[c].coverage(All(parts=p)) for c, p in self._filters[alias].items()}
        return self._context.planned[name] * probability(network, evidence)

    def _joined(self, root: str, reached: Sequence[str]) -> float:
        rows = self._node(root, None).total
        sample = self._context.sample
        return rows if sample is None else rows * sample.scale ** self._power(reached)

    def _power(self, reached: Sequence[str]) -> int:
        """How a count grows with the sample, inverted: as private tables joined to each other do, all such groups.

        A key of a public table that is drawn over all private rows meets fewer at each when there are more.
        """
        private = {a for a in reached if self._model.protection.roles[self._tree.tables[a]] is not Role.PUBLIC}
        within = [e for e in self._tree.edges if {e.holder, e.target} <= private]
        inward = [e for e in self._tree.edges if e.holder in set(reached) - private and e.target in private]
        return len(inward) - (len(private) - len(within))

    def _reached(self, root: str) -> list[str]:
        reached = [root]
        for alias in reached:
            for edge in self._tree.edges:
                if alias in (edge.holder, edge.target):
                    reached += [a for a in (edge.holder, edge.target) if a not in reached]
        return reached

    def _node(self, alias: str, came_by: Edge | None) -> PrivateNode | SampledNode | PublicNode:
        """A table with everything beyond it, seen from the edge that led here."""
        edges = [e for e in self._tree.edges if e is not came_by and alias in (e.holder, e.target)]
        above = {e.link: self._node(e.target, e).per_row for e in edges if e.holder == alias}
        below = [self._node(e.holder, e).per_target(e.link) for e in edges if e.target == alias]
        name = self._tree.tables[alias]
        if self._model.protection.roles[name] is Role.PUBLIC:
            return PublicNode(self._context, name, self._filters[alias], above, below)
        kind = PrivateNode if self._context.sample is None else SampledNode
        return kind(self._context, name, self._filters[alias], above, below)


def _groups(joins: Sequence[tuple[Place, Place]]) -> list[set[Place]]:
    """Columns that are all equal to each other."""
    groups: list[set[Place]] = []
    for pair in joins:
        joined = [g for g in groups if g & set(pair)]
        groups = [g for g in groups if g not in joined] + [set(pair).union(*joined)]
    return groups


def _follows(groups: Sequence[set[Place]], holder: str, target: str, link: Link) -> bool:
    pairs = zip(link.key.columns, link.key.references, strict=True)
    return all(any({(holder, c), (target, r)} <= group for group in groups) for c, r in pairs)


def _by_owners(edges: Sequence[Edge], alias: str) -> Iterator[str]:
    """What a query calls the tables above a table, as far as it follows owner keys."""
    above = {edge.holder: edge.target for edge in edges if edge.link.kind is LinkKind.OWNER}
    while alias in above:
        alias = above[alias]
        yield alias


def _told_above(
    protection: Protection, tables: Mapping[str, str], edges: Sequence[Edge]
) -> Iterator[tuple[Place, Place]]:
    """Columns of implied keys that equal those of a row above: where the query follows the owner keys, it is told."""
    for alias, table in tables.items():
        for link, above in product(protection.implied_of(table), _by_owners(edges, alias)):
            for other in (k for k in protection.keys if k.table == tables.get(above)):
                if (other.target, other.key.references) == (link.target, link.key.references):
                    yield from zip(
                        ((alias, c) for c in link.key.columns), ((above, c) for c in other.key.columns), strict=True
                    )


def _through_absent(
    protection: Protection, tables: Mapping[str, str], group: set[Place], edges: Sequence[Edge], added: dict[str, str]
) -> list[Edge]:
    """Edges to a table that the query leaves out, for equal columns that the edges do not connect."""
    clusters = [{place} for place in sorted(group)]
    followed = [
        ((edge.holder, c), (edge.target, r))
        for edge in edges
        for c, r in zip(edge.link.key.columns, edge.link.key.references, strict=True)
    ]
    for pair in (*followed, *_told_above(protection, tables, edges)):
        joined = [k for k in clusters if k & set(pair)]
        if len(joined) == 2:
            clusters = [k for k in clusters if k not in joined] + [joined[0] | joined[1]]
    if len(clusters) == 1:
        return []
    links = {
        place: link
        for place in group
        for link in protection.keys
        if link.table == tables[place[0]] and link.key.columns == (place[1],)
    }
    targets = {(links[p].target, links[p].key.references) if p in links else None for k in clusters for p in k}
    target = next(iter(targets))
    if len(targets) > 1 or target is None or target[0] in tables.values():
        shown = " = ".join(f"{a}.{c}" for a, c in sorted(group))
        raise SpecError(f"{shown}: is not along a foreign key of the model's schema.")
    name = f"\0{len(added)}"  # no alias of a query is called so
    added[name] = target[0]
    return [Edge(holder=a, target=name, link=links[a, c]) for a, c in sorted(group)]


def _check_forest(tables: Mapping[str, str], edges: Sequence[Edge]) -> None:
    tree = {alias: alias for alias in tables}
    for edge in edges:
        ends = {_root(tree, edge.holder), _root(tree, edge.target)}
        if len(ends) == 1:
            raise SpecError(f"{tables[edge.holder]}, {tables[edge.target]}: the joins of the query form a cycle.")
        first, second = ends
        tree[first] = second


def _root(tree: Mapping[str, str], alias: str) -> str:
    while tree[alias] != alias:
        alias = tree[alias]
    return alias
