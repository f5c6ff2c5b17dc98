"""The ledger: what was spent on what, and a budget that cannot be passed.

Charges form a tree. What runs on the same rows one after the other adds up; what runs on disjoint blocks of one
table costs as much as its dearest block. A charge that would lift the total above the budget is refused before
anything changes, so the budget holds whatever a method decides on the way (docs/proofs/composition.md). All amounts
are in the ledger's currency. Thresholds have an account of their own: deltas, which add up. A charge costs one step
per level of the tree.
"""

import math
from fractions import Fraction
from typing import Any

from privbench.errors import BudgetError
from privbench.privacy.blocks import Box, Boxes, Centres, inside
from privbench.privacy.events import Currency, Event, Mechanism, rational

_NOISY_COUNTS = (Mechanism.DISCRETE_GAUSSIAN, Mechanism.FREQUENT_VALUES)


class Ledger:
    """A budget in some currency, and the tree of what was charged to it."""

    def __init__(
        self, budget: Fraction, currency: Currency = Currency.EPSILON, *, thresholds: Fraction = Fraction(0)
    ) -> None:
        if budget <= 0:
            raise BudgetError(f"the privacy budget must be positive, not {budget}. Give an epsilon above 0.")
        self.budget = budget
        self.currency = currency
        self.thresholds = thresholds
        """The delta that thresholds may spend together."""
        self.delta = Fraction(0)
        """What they have spent of it."""
        self._nodes: list[_Node] = []
        self.root = Scope(self, self._add(None, "sequence", {"label": "database"}), by=None, box={})

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
        delta = {"delta": rational(self.delta)} if self.thresholds else {}
        return {"total": rational(self.total), **delta, "nodes": [node.json(self.currency) for node in self._nodes]}

    def _add(self, parent: "_Node | None", kind: str, facts: dict[str, Any]) -> "_Node":
        node = _Node(len(self._nodes), parent, kind, facts)
        self._nodes.append(node)
        return node

    def _charge(self, scope: "_Node", event: Event) -> None:
        if event.currency is not self.currency:
            raise ValueError(f"{event}: costs {event.currency.value}, but the ledger counts {self.currency.value}")
        steps = int(event.amount * self.currency.grid)
        rises = _rises(scope, scope.steps + steps)
        top, total = rises[-1]
        if top is self._nodes[0] and total > math.floor(self.budget * self.currency.grid):
            left = self.budget - self.total
            raise BudgetError(
                f"{event}: would spend {self.currency.word} {float(event.amount):.6g}, but only {float(left):.6g} of "
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
        self._add(scope, "event", _event_json(event)).steps = steps


class Scope:
    """A place to charge: all that is charged here and below looks at the same rows, one query after the other."""

    __slots__ = ("_box", "_by", "_ledger", "_node", "_spent")

    def __init__(self, ledger: Ledger, node: "_Node", *, by: Boxes | Centres | None, box: Box) -> None:
        self._ledger = ledger
        self._node = node
        self._by = by
        self._box = box
        self._spent = Fraction(0)

    @property
    def spent(self) -> Fraction:
        """What was charged right here."""
        return self._spent

    @property
    def parted(self) -> bool:
        """Whether this is inside a part of a table."""
        return self._by is not None

    @property
    def total(self) -> Fraction:
        """What was charged here and below, as the tree composes it."""
        return Fraction(self._node.steps, self._ledger.currency.grid)

    def sequential(self, label: str) -> "Scope":
        """Open a named scope on the same rows; its total adds to this one's."""
        node = self._ledger._add(self._node, "sequence", {"label": label})
        return Scope(self._ledger, node, by=self._by, box=self._box)

    def partition(self, label: str, by: Boxes | Centres, parts: int) -> tuple["Scope", ...]:
        """Open one scope per disjoint block; together they cost the maximum of the parts.

        Below it only the parted table may be measured, with sensitivities that are whole multiples of its rows per
        entity, for the rows of one entity may lie in different blocks. Boxes stay inside the box of this scope.
        Only epsilon composes so: rho goes with the square of what an entity moves, which blocks would share.
        """
        if self._ledger.currency is not Currency.EPSILON:
            raise ValueError(f"{by.table}: blocks cannot be charged in parallel where rho is counted")
        boxes = by.boxes if isinstance(by, Boxes) else (self._box,) * len(by)
        self._check_partition(by, boxes, parts)
        facts = {"label": label, "table": by.table, "rows_per_entity": by.rows_per_entity, **by.json()}
        node = self._ledger._add(self._node, "partition", facts)
        return tuple(
            Scope(self._ledger, self._ledger._add(node, "part", by.part_json(i)), by=by, box=box)
            for i, box in enumerate(boxes)
        )

    def charge(self, event: Event) -> None:
        """Enter an event before it is drawn.

        Raises BudgetError if it does not fit the budget: nothing has changed then, and nothing may be drawn.
        """
        if self._by is not None:
            _check_rows(event, self._by)
        self._ledger._charge(self._node, event)
        self._spent += event.amount

    def _check_partition(self, by: Boxes | Centres, boxes: tuple[Box, ...], parts: int) -> None:
        if parts != len(by):
            raise ValueError(f"{by.table}: {len(by)} blocks are described, but {parts} parts are asked for")
        if self._by and (self._by.table, self._by.rows_per_entity) != (by.table, by.rows_per_entity):
            raise ValueError(f"{by.table}: parted inside a block of {self._by.table}, or with other rows per entity")
        if not all(inside(box, self._box) for box in boxes):
            raise ValueError(f"{by.table}: a box reaches outside the block that is parted")


class _Node:
    """A node of the tree: a sequence, a partition, a part of it (itself a sequence) or an event."""

    __slots__ = ("facts", "index", "kind", "parent", "steps")

    def __init__(self, index: int, parent: "_Node | None", kind: str, facts: dict[str, Any]) -> None:
        self.index = index
        self.parent = parent
        self.kind = kind
        self.facts = facts
        self.steps = 0
        """What it cost, in steps of the currency's grid."""

    def json(self, currency: Currency) -> dict[str, Any]:
        cost = currency.word if self.kind == "event" else "total"
        parent = None if self.parent is None else self.parent.index
        return {"kind": self.kind, "parent": parent, **self.facts, cost: rational(Fraction(self.steps, currency.grid))}


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


def _check_rows(event: Event, by: Boxes | Centres) -> None:
    if event.weighted:
        raise ValueError(f"{event}: weights are counted on whole tables alone, not in a block of {by.table}")
    if event.table != by.table:
        raise ValueError(f"{event}: charged to a block of {by.table}")
    if event.mechanism is not Mechanism.AS_PUBLISHED and event.sensitivity % by.rows_per_entity:
        raise ValueError(
            f"{event}: sensitivity {event.sensitivity} is not a whole multiple of the {by.rows_per_entity} rows that "
            "an entity may have, and these may lie in different blocks"
        )


def _event_json(event: Event) -> dict[str, Any]:
    return {
        "mechanism": event.mechanism.value,
        "query": event.query,
        "table": event.table,
        "sensitivity": rational(event.sensitivity),
        "scale": rational(event.scale),
        "draws": event.draws,
        "monotone": event.monotone,
        "weighted": event.weighted,
        **({"additive": event.additive} if event.mechanism in _NOISY_COUNTS else {}),
        **({"threshold": event.threshold, "delta": rational(event.delta)} if event.threshold else {}),
    }
