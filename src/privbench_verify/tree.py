"""The tree of charges: what each node may say, whether its noise pays for what is charged, and what the whole costs.

What runs on the same rows adds up; what runs on disjoint blocks of one table costs as much as the most expensive
block (docs/proofs/composition.md). Nodes name their parents, which come before them, so one pass each way is enough.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from privbench_verify.costs import AS_PUBLISHED, FREQUENT, GRIDS, MECHANISMS, cost_of, tail_probability
from privbench_verify.facts import Equals, Facts
from privbench_verify.queries import Query, read_query
from privbench_verify.read import (
    MAX_RATIONAL,
    Json,
    Place,
    ReceiptError,
    brief,
    fields_of,
    integer_of,
    list_of,
    object_of,
    one_of,
    positive_of,
    rational_of,
    shown,
    steps_of,
    text_of,
)

MAX_NODES = 2_000_000
MAX_THRESHOLDS = 100_000

_FIELDS = {
    "sequence": ("kind", "parent", "label", "total"),
    "partition": ("kind", "parent", "label", "table", "rows_per_entity", "by", "centres", "total"),
    "part": ("kind", "parent", "centre", "total"),
}
_EVENT = ("kind", "parent", "mechanism", "query", "sensitivity", "scale", "draws")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What charges are judged by."""

    measure: str
    """What is charged: epsilon or rho."""
    replaces: bool
    """Whether neighbours differ by an entity that is replaced."""
    facts: Facts


class Tree:
    """The nodes of a ledger under examination. Problems are gathered; what cannot be read at all is raised."""

    def __init__(self, nodes: object, terms: Terms) -> None:
        if not isinstance(nodes, list) or not nodes or len(nodes) > MAX_NODES:
            raise ReceiptError(f"ledger.nodes is not a list of 1 to {MAX_NODES} nodes")
        self.nodes: list[Json] = nodes
        self.terms = terms
        self.problems: list[str] = []
        self.as_published = False
        self.chosen: set[str] = set()
        """Tables whose rows per entity were chosen."""
        self.begun: set[Place] = set()
        """Columns whose domain was looked for."""
        self.looked_at: set[Place] = set()
        self.compared: set[tuple[Place, Equals]] = set()
        """Columns that were compared with what they may be equal to."""
        self.deltas: Counter[int] = Counter()
        """The deltas of thresholds: sums of numerators by denominator."""
        self.steps: list[int] = []
        """Per node what it charges itself, in steps of the measure's grid."""
        self.blocks: list[Json | None] = []
        """Per node the partition whose block it is in, if any."""
        self.parts: dict[int, list[int]] = {}
        self._denominator = 1
        self._thresholds = 0

    def check(self) -> Fraction:
        """Check every node and return the total."""
        for at, node in enumerate(self.nodes):
            self._place(at, node)
        for at, parts in self.parts.items():
            try:
                self._check_partition(at, parts)
            except ReceiptError as problem:
                self.problems.append(f"node {at}: {problem}")
        return Fraction(self._add_up(), GRIDS[self.terms.measure])

    @property
    def delta(self) -> Fraction:
        """What thresholds cost together."""
        return sum((Fraction(top, below) for below, top in self.deltas.items()), Fraction(0))

    def _place(self, at: int, node: object) -> None:
        """Check that a node may stand where it does, and what it says of itself."""
        where = f"node {at}"
        if not isinstance(node, dict):
            raise ReceiptError(f"{where} is not an object")
        kind, parent = one_of(node.get("kind"), f"{where}.kind", (*_FIELDS, "event")), node.get("parent")
        above = None
        if at == 0:
            if kind != "sequence" or parent is not None:
                raise ReceiptError("node 0 is not the root: a sequence without parent")
        else:
            if type(parent) is not int or not 0 <= parent < at:
                raise ReceiptError(f"{where}: parent {brief(parent)} does not come before it")
            above = self.nodes[parent]
            if above["kind"] == "event" or (above["kind"] == "partition") != (kind == "part"):
                raise ReceiptError(f"{where}: a {kind} cannot stand below a {above['kind']}")
        self._enter(at, node, kind, above)
        if kind == "event":
            self._check_event(at, node)

    def _enter(self, at: int, node: Json, kind: str, above: Json | None) -> None:
        """Note in which block a node is, and read what is not an event."""
        where = f"node {at}"
        self.steps.append(0)
        if kind == "part" and above is not None:
            fields_of(node, where, _FIELDS[kind])
            self.parts[node["parent"]].append(at)
            self.blocks.append(above)
            return
        self.blocks.append(None if above is None else self.blocks[node["parent"]])
        if kind == "event":
            return
        if kind == "partition":
            one_of(node.get("by"), f"{where}.by", ("centres",))
        fields_of(node, where, _FIELDS[kind])
        text_of(node["label"], f"{where}.label")
        if kind == "partition":
            self.parts[at] = []

    # -- events --------------------------------------------------------------------------------------------------------

    def _check_event(self, at: int, event: Json) -> None:
        where, measure = f"node {at}", self.terms.measure
        mechanism = one_of(event.get("mechanism"), f"{where}.mechanism", MECHANISMS[measure])
        more = ("threshold", "delta") if mechanism == FREQUENT else ()
        fields_of(event, where, (*_EVENT, measure, *more))
        query = read_query(event["query"], self.terms.facts, f"{where}.query")
        self.steps[at] = steps_of(event[measure], f"{where}.{measure}", GRIDS[measure])
        if self.steps[at] == 0:
            raise ReceiptError(f"{where}: charges nothing")
        self.problems += _event_problems(event, query, self.terms, where)
        self.problems += _block_problems(query, self.blocks[at], where)
        if mechanism == FREQUENT:
            self._check_threshold(event, where)
        self._note(query, mechanism)

    def _note(self, query: Query, mechanism: str) -> None:
        self.as_published |= mechanism == AS_PUBLISHED
        self.begun |= query.begins
        self.looked_at |= query.looks_at
        self.compared |= query.compares
        if query.kind == "choice of cap":
            self.chosen.add(query.table)

    def _check_threshold(self, event: Json, where: str) -> None:
        """A value of one entity alone must pass the threshold with no more probability than the delta says."""
        self._thresholds += 1
        if self._thresholds > MAX_THRESHOLDS:
            raise ReceiptError(f"{where}: there are more than {MAX_THRESHOLDS} thresholds")
        threshold = integer_of(event["threshold"], f"{where}.threshold", least=2)
        scale, delta = positive_of(event["scale"], f"{where}.scale"), positive_of(event["delta"], f"{where}.delta")
        if _tail(scale, threshold) > delta:
            self.problems.append(f"{where}: threshold {threshold} is too low for this delta and scale")
        if delta.denominator not in self.deltas:
            self._denominator = math.lcm(self._denominator, delta.denominator)
            if self._denominator >= 10**MAX_RATIONAL:
                raise ReceiptError(f"{where}: the deltas have no common denominator of less than {MAX_RATIONAL} digits")
        self.deltas[delta.denominator] += delta.numerator

    # -- partitions ----------------------------------------------------------------------------------------------------

    def _check_partition(self, at: int, parts: list[int]) -> None:
        node, facts = self.nodes[at], self.terms.facts
        if self.terms.measure != "epsilon":
            raise ReceiptError("blocks cannot be charged in parallel where rho is counted")
        table = facts.table_of(node["table"], "table")
        if integer_of(node["rows_per_entity"], "rows_per_entity", least=1) != facts.tables[table].rows_per_entity:
            raise ReceiptError("rows_per_entity is not what the unit says")
        outer = self.blocks[at]
        if outer is not None and outer["table"] != table:
            raise ReceiptError(f"is a split of {shown(table)} inside a block of {shown(str(outer['table']))}")
        self._check_centres(node, parts)

    def _check_centres(self, node: Json, parts: list[int]) -> None:
        centres = list_of(node["centres"], "centres", _centre)
        labels = [label for label, _ in centres]
        used = [text_of(self.nodes[part]["centre"], f"node {part}.centre") for part in parts]
        if len(set(labels)) < len(labels) or len(set(used)) < len(used) or not set(used) <= set(labels):
            raise ReceiptError("parts are not distinct labels of distinct listed centres")
        if any(at.keys() != centres[0][1].keys() for _, at in centres):
            raise ReceiptError("all centres need the same columns")
        if centres and not centres[0][1] and not self.as_published:
            raise ReceiptError("a centre has no coordinates, so it parts nothing")
        if centres:
            self._check_columns(node["table"], centres[0][1])

    def _check_columns(self, table: str, columns: Collection[str]) -> None:
        for column in columns:
            if (table, column) not in self.terms.facts.domains:
                raise ReceiptError(f"{shown(table)} is parted by {shown(column)}, which has no domain")

    # -- sums ----------------------------------------------------------------------------------------------------------

    def _add_up(self) -> int:
        """Costs from the leaves to the root: a partition costs its most expensive part, all else the sum."""
        grid, costs = GRIDS[self.terms.measure], self.steps
        for at in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[at]
            if node["kind"] != "event" and rational_of(node["total"], f"node {at}.total") * grid != costs[at]:
                self.problems.append(f"node {at}: total is not what it adds up to, {Fraction(costs[at], grid)}")
            if at:
                parent = node["parent"]
                parallel = self.nodes[parent]["kind"] == "partition"
                costs[parent] = max(costs[parent], costs[at]) if parallel else costs[parent] + costs[at]
        return costs[0]


def _event_problems(event: Json, query: Query, terms: Terms, where: str) -> Iterator[str]:
    """What is stated must be what follows from the query, and the noise must pay for the charge."""
    mechanism, scale = event["mechanism"], positive_of(event["scale"], f"{where}.scale")
    if mechanism not in query.mechanisms:
        yield f"{where}: a query of kind {query.kind!r} is not answered by {mechanism}"
        return
    if rational_of(event["sensitivity"], f"{where}.sensitivity") != query.sensitivity:
        yield f"{where}: sensitivity is {event['sensitivity']}, but the query has {query.sensitivity}/1"
    if type(event["draws"]) is not int or event["draws"] != query.draws:
        yield f"{where}: draws is {brief(event['draws'])}, but the query has {query.draws}"
    if mechanism == AS_PUBLISHED:
        return
    cost = cost_of(
        mechanism,
        query.sensitivity,
        scale,
        additive=query.additive,
        monotone=query.monotone,
        replaces=terms.replaces,
    )
    if cost > rational_of(event[terms.measure], f"{where}.{terms.measure}"):
        yield f"{where}: scale {event['scale']} is too small for {terms.measure} {event[terms.measure]}"


def _block_problems(query: Query, block: Json | None, where: str) -> Iterator[str]:
    """In a block only its table is measured, by what each row of an entity can move."""
    if block is None:
        return
    if query.table != block["table"]:
        yield f"{where}: measures {shown(query.table)} inside a block of {shown(str(block['table']))}"
    if not query.in_blocks:
        yield f"{where}: a query of kind {query.kind!r} like this cannot be asked of a block of rows"


@lru_cache(maxsize=1024)
def _tail(scale: Fraction, threshold: int) -> Fraction:
    return tail_probability(scale, threshold)


def _centre(value: object, where: str) -> tuple[str, dict[str, list[int]]]:
    centre = fields_of(value, where, ("label", "at"))

    def coordinates(item: object, at: str) -> list[int]:
        if not isinstance(item, list) or not item or not all(type(x) is int for x in item):
            raise ReceiptError(f"{at} is not a list of whole numbers")
        return item

    return text_of(centre["label"], f"{where}.label"), object_of(centre["at"], f"{where}.at", coordinates)
