"""The ledger: what was spent on what, and a budget that cannot be passed.

Charges form a tree. What runs on the same rows one after the other adds up; what runs on disjoint blocks of one
table costs the maximum of its blocks. A charge that would lift the total above the budget is refused before
anything changes, so the budget holds whatever a method decides on the way (docs/proofs/composition.md). All amounts
are in the ledger's privacy measure. Thresholds have an account of their own: deltas, which add up. A charge costs
one step per level of the tree.
"""

import math
from fractions import Fraction
from typing import Any

from privbench.errors import BudgetError
from privbench.privacy.events import Event, Mechanism, PrivacyMeasure, rational
from privbench.privacy.partitions import Centres


class Ledger:
    """A budget in some privacy measure, and the tree of what was charged to it."""

    def __init__(
        self, budget: Fraction, measure: PrivacyMeasure = PrivacyMeasure.EPSILON, *, thresholds: Fraction = Fraction(0)
    ) -> None:
        if budget <= 0:
            raise BudgetError(f"the privacy budget must be positive, not {budget}. Give an epsilon above 0.")
        self.budget = budget
        self.measure = measure
        self.thresholds = thresholds
        """The delta that thresholds may spend together."""
        self.delta = Fraction(0)
        """What they have spent of it."""
        self._nodes: list[_Node] = []
        self.root = Scope(self, self._add(None, "sequence", {"label": "database"}), by=None)

    @property
    def total(self) -> Fraction:
        """What the whole tree has spent."""
        return self.root.total

    @property
    def as_published(self) -> bool:
        """Whether anything was charged that is counted but not verified."""
        return any(node.facts.get("mechanism") == Mechanism.AS_PUBLISHED.value for node in self._nodes)

    def to_json(self) -> dict[str, Any]:
        """Total and tree as docs/receipt.md describes them; every node comes after its parent."""
        return {
            "total": rational(self.total),
            "delta": rational(self.delta),
            "nodes": [node.json(self.measure) for node in self._nodes],
        }

    def _add(self, parent: "_Node | None", kind: str, facts: dict[str, Any]) -> "_Node":
        node = _Node(len(self._nodes), parent, kind, facts)
        self._nodes.append(node)
        return node

    def _charge(self, scope: "_Node", event: Event) -> None:
        if event.measure is not self.measure:
            raise ValueError(f"{event}: costs {event.measure.value}, but the ledger counts {self.measure.value}")
        steps = int(event.amount * self.measure.grid)
        rises = _rises(scope, scope.steps + steps)
        top, total = rises[-1]
        if top is self._nodes[0] and total > math.floor(self.budget * self.measure.grid):
            left = self.budget - self.total
            raise BudgetError(
                f"{event}: would spend {self.measure.word} {float(event.amount):.6g}, but only {float(left):.6g} of "
                f"{float(self.budget):.6g} is left. Nothing was drawn. Raise epsilon, or measure less."
            )
        if self.delta + event.delta > self.thresholds:
            raise BudgetError(
                f"{event}: would spend delta {float(event.delta):.3g} on a threshold, but only "
                f"{float(self.thresholds - self.delta):.3g} of {float(self.thresholds):.3g} is left. Nothing was drawn."
            )
        for node, risen in rises:
            node.steps = risen
        self.delta += event.delta
        self._add(scope, "event", event.to_json()).steps = steps


class Scope:
    """A place to charge: all that is charged here and below looks at the same rows, one query after the other."""

    __slots__ = ("_by", "_ledger", "_node")

    def __init__(self, ledger: Ledger, node: "_Node", *, by: Centres | None) -> None:
        self._ledger = ledger
        self._node = node
        self._by = by

    @property
    def parted(self) -> bool:
        """Whether this is inside a part of a table."""
        return self._by is not None

    @property
    def total(self) -> Fraction:
        """What was charged here and below, as the tree composes it."""
        return Fraction(self._node.steps, self._ledger.measure.grid)

    def sequential(self, label: str) -> "Scope":
        """Open a named scope on the same rows; its total adds to this one's."""
        node = self._ledger._add(self._node, "sequence", {"label": label})
        return Scope(self._ledger, node, by=self._by)

    def partition(self, label: str, by: Centres, parts: int) -> tuple["Scope", ...]:
        """Open one scope per disjoint block; together they cost the maximum of the parts.

        Below it only the parted table may be measured, with sensitivities that are whole multiples of its rows per
        entity, for the rows of one entity may lie in different blocks.
        Only epsilon composes so: rho goes with the square of what an entity moves, which blocks would share.
        """
        if self._ledger.measure is not PrivacyMeasure.EPSILON:
            raise ValueError(f"{by.table}: blocks cannot be charged in parallel where rho is counted")
        self._check_partition(by, parts)
        facts = {"label": label, "table": by.table, "rows_per_entity": by.rows_per_entity, **by.json()}
        node = self._ledger._add(self._node, "partition", facts)
        return tuple(
            Scope(self._ledger, self._ledger._add(node, "part", by.part_json(i)), by=by) for i in range(len(by))
        )

    def charge(self, event: Event) -> None:
        """Enter an event before it is drawn.

        Raises BudgetError if it does not fit the budget: nothing has changed then, and nothing may be drawn.
        """
        if self._by is not None:
            _check_rows(event, self._by)
        self._ledger._charge(self._node, event)

    def _check_partition(self, by: Centres, parts: int) -> None:
        if parts != len(by):
            raise ValueError(f"{by.table}: {len(by)} blocks are described, but {parts} parts are asked for")
        if self._by and (self._by.table, self._by.rows_per_entity) != (by.table, by.rows_per_entity):
            raise ValueError(f"{by.table}: split inside a block of {self._by.table}, or with other rows per entity")


class _Node:
    """A node of the tree: a sequence, a partition, a part of it (itself a sequence) or an event."""

    __slots__ = ("facts", "index", "kind", "parent", "steps")

    def __init__(self, index: int, parent: "_Node | None", kind: str, facts: dict[str, Any]) -> None:
        self.index = index
        self.parent = parent
        self.kind = kind
        self.facts = facts
        self.steps = 0
        """What it cost, in steps of the measure's grid."""

    def json(self, measure: PrivacyMeasure) -> dict[str, Any]:
        cost = measure.word if self.kind == "event" else "total"
        parent = None if self.parent is None else self.parent.index
        return {"kind": self.kind, "parent": parent, **self.facts, cost: rational(Fraction(self.steps, measure.grid))}


def _rises(node: _Node, steps: int) -> list[tuple[_Node, int]]:
    """Work out the new totals from a node towards the root, as far as they change."""
    rises = [(node, steps)]
    while (parent := node.parent) is not None:
        grown = max(parent.steps, steps) if parent.kind == "partition" else parent.steps + steps - node.steps
        if grown == parent.steps:
            break
        node, steps = parent, grown
        rises.append((node, steps))
    return rises


def _check_rows(event: Event, by: Centres) -> None:
    """Refuse what does not look at rows of the parted table alone, each row for itself."""
    block = getattr(event.query, "block", None)
    if block is None or event.table != by.table:
        raise ValueError(f"{event}: charged to a block of {by.table}, but does not count rows of it")
    if event.mechanism is not Mechanism.AS_PUBLISHED and event.sensitivity % by.rows_per_entity:
        raise ValueError(
            f"{event}: sensitivity {event.sensitivity} is not a whole multiple of the {by.rows_per_entity} rows that "
            "an entity may have, and these may lie in different blocks"
        )
