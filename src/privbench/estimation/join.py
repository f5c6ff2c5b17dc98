"""Rows that joins of a query have on average, table by table: what each row weighs with everything joined to it.

Every table passes on the weight of its rows: one number if all rows are alike, one per row where keys tell rows apart.
Where links are counts of their own, one pass over the tree of joins is exact; where they stand in networks, the rows
are those of a sample.
"""

from collections.abc import Mapping, Sequence

from privbench.encode.predicate import All
from privbench.estimation.context import Filters, JoinContext
from privbench.estimation.join_tree import Edge, JoinTree
from privbench.estimation.private_node import PrivateNode
from privbench.estimation.public_node import PublicNode
from privbench.estimation.sampled_node import SampledNode
from privbench.model.model import Model
from privbench.schema.unit import Role
from privbench.spn.infer import probability


class JoinWeights:
    """One pass over the joins of one query."""

    def __init__(self, model: Model, tree: JoinTree, filters: Mapping[str, Filters]) -> None:
        self._model = model
        self._tree = tree
        self._filters = filters
        self._context = JoinContext(model)

    def total(self) -> float:
        """The product over the trees of the forest of joins."""
        left, product = dict(self._tree.tables), 1.0
        while left:
            root = next(iter(left))
            reached = self._reached(root)
            for alias in reached:
                del left[alias]
            product *= self._alone(root) if len(reached) == 1 and self._is_simple(root) else self._joined(root, reached)
        return product

    def _is_simple(self, alias: str) -> bool:
        """Whether only modelled columns of the entity table are asked for: its network answers exactly."""
        name = self._tree.tables[alias]
        return name == self._model.protection.entity and set(self._filters[alias]) <= set(self._model.codecs[name])

    def _alone(self, alias: str) -> float:
        name = self._tree.tables[alias]
        codecs, network = self._model.codecs[name], self._model.tables[name].network
        evidence = {c: codecs[c].coverage(All(parts=p)) for c, p in self._filters[alias].items()}
        return self._context.planned[name] * probability(network, evidence)

    def _joined(self, root: str, reached: Sequence[str]) -> float:
        found = self._node(root, None).total
        sample = self._context.sample
        return found if sample is None else found * sample.scale ** self._power(reached)

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
