"""The foreign keys that a query's equalities follow, as a forest over its tables; anything else is refused.

Two keys that name the same table are joined through it, also where the query leaves that table out: it is then put
in without a filter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from privbench.errors import SpecError
from privbench.schema.unit import Link, Protection

Place = tuple[str, str]
"""A table as the query calls it, and a column of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A foreign key that is followed from the table that holds it to the one that it names."""

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
            f"{twice[0]}: the query names it twice; a model knows only how often a row is named, not by which."
        )
    groups = _groups(joins)
    found = [
        Edge(holder=a, target=b, link=link)
        for link in protection.links
        for a in tables
        for b in tables
        if a != b and tables[a] == link.table and tables[b] == link.key.table and _follows(groups, a, b, link)
    ]
    added: dict[str, str] = {}
    for group in groups:
        found += _through_absent(protection, tables, group, found, added)
    everything = {**tables, **added}
    _check_forest(everything, found)
    return JoinTree(tables=everything, edges=tuple(found))


def _groups(joins: Sequence[tuple[Place, Place]]) -> list[set[Place]]:
    """Columns that are all equal to each other."""
    groups: list[set[Place]] = []
    for pair in joins:
        met = [g for g in groups if g & set(pair)]
        groups = [g for g in groups if g not in met] + [set(pair).union(*met)]
    return groups


def _follows(groups: Sequence[set[Place]], holder: str, target: str, link: Link) -> bool:
    pairs = zip(link.key.columns, link.key.references, strict=True)
    return all(any({(holder, c), (target, r)} <= group for group in groups) for c, r in pairs)


def _through_absent(
    protection: Protection, tables: Mapping[str, str], group: set[Place], found: Sequence[Edge], added: dict[str, str]
) -> list[Edge]:
    """Edges to a table that the query leaves out, for equal columns that the keys found do not connect."""
    clusters = [{place} for place in sorted(group)]
    for edge in found:
        for c, r in zip(edge.link.key.columns, edge.link.key.references, strict=True):
            met = [k for k in clusters if k & {(edge.holder, c), (edge.target, r)}]
            if len(met) == 2:
                clusters = [k for k in clusters if k not in met] + [met[0] | met[1]]
    if len(clusters) == 1:
        return []
    links = {
        place: link
        for place in group
        for link in protection.links
        if link.table == tables[place[0]] and link.key.columns == (place[1],)
    }
    targets = {(links[p].key.table, links[p].key.references) if p in links else None for k in clusters for p in k}
    target = next(iter(targets))
    if len(targets) > 1 or target is None or target[0] in tables.values():
        shown = " = ".join(f"{a}.{c}" for a, c in sorted(group))
        raise SpecError(f"{shown}: is not along a foreign key of the model's schema.")
    name = f"{target[0]} (left out) {len(added)}"
    added[name] = target[0]
    return [Edge(holder=a, target=name, link=links[a, c]) for a, c in sorted(group)]


def _check_forest(tables: Mapping[str, str], edges: Sequence[Edge]) -> None:
    tree = {alias: alias for alias in tables}
    for edge in edges:
        ends = {_root(tree, edge.holder), _root(tree, edge.target)}
        if len(ends) == 1:
            raise SpecError(f"{edge.holder}, {edge.target}: the joins of the query form a cycle.")
        first, second = ends
        tree[first] = second


def _root(tree: Mapping[str, str], alias: str) -> str:
    while tree[alias] != alias:
        alias = tree[alias]
    return alias
