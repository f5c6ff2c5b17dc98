"""Check a receipt from nothing but its JSON: what was drawn must cost no more than what is promised.

Shares no code with what wrote the receipt and needs the standard library alone, so that a reviewer can read this one
file (and docs/receipt.md) and trust no other. What no receipt can show, that sensitivities are right and that the
code drew what it says, is left to the proofs and the tests.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, Literal

_RATIONAL = re.compile(r"-?[0-9]{1,1000}/[1-9][0-9]{0,999}")
_FACTORS = {"replace": 2, "add-remove": 1}
_MECHANISMS = ("discrete-laplace", "permute-and-flip", "as-printed")
_CONDITION = "epsilon holds given that these domains are public: "

Status = Literal["verified", "conditional", "unverified", "failed"]
_Json = Mapping[str, Any]
_Box = dict[str, list[tuple[int, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a receipt is worth.

    verified: it adds up. conditional: it adds up, given `condition`. unverified: it carries a stamp, or claims that
    nobody checked. failed: it does not add up; `problems` says where. `spent` is recomputed, in the terms of the
    receipt's neighbours, so that it compares with `epsilon`; None where it could not be read.
    """

    status: Status
    epsilon: Fraction | None
    spent: Fraction | None
    problems: tuple[str, ...]
    condition: str | None


def verify_receipt(receipt: object) -> Verdict:
    """Check a receipt. Whatever the object is, the answer is a verdict, not an exception."""
    if not isinstance(receipt, dict):
        return Verdict(status="failed", epsilon=None, spent=None, problems=("not a JSON object",), condition=None)
    check = _Check(receipt)
    check.run()
    return check.verdict()


class _ReceiptError(Exception):
    """Something in the receipt is not what it should be."""


class _Check:
    """One receipt under examination; problems are gathered, not raised, so that all are seen."""

    def __init__(self, receipt: _Json) -> None:
        self.receipt = receipt
        self.problems: list[str] = []
        self.epsilon: Fraction | None = None
        self.spent: Fraction | None = None
        self.unverified = False

    def run(self) -> None:
        for step in (self._numbers, self._head, self._condition, self._tree, self._stamp):
            try:
                step()
            except _ReceiptError as problem:
                self.problems.append(str(problem))

    def verdict(self) -> Verdict:
        condition = self.receipt.get("condition")
        status: Status = "verified" if condition is None else "conditional"
        if self.unverified or self.problems:
            status = "failed" if self.problems else "unverified"
        return Verdict(
            status=status,
            epsilon=self.epsilon,
            spent=self.spent,
            problems=tuple(self.problems),
            condition=condition if isinstance(condition, str) else None,
        )

    def _numbers(self) -> None:
        """No float anywhere: a rounded number proves nothing."""
        stack: list[object] = [self.receipt]
        while stack:
            value = stack.pop()
            if isinstance(value, float):
                raise _ReceiptError(f"{value!r} is a float; numbers are integers or rationals written as p/q")
            if isinstance(value, dict | list):
                stack.extend(value.values() if isinstance(value, dict) else value)

    def _head(self) -> None:
        version = self.receipt.get("version")
        if type(version) is not int or version != 1:
            raise _ReceiptError(f"version {version!r} is not one this verifier knows (1)")
        self.epsilon = _positive(self.receipt, "epsilon", "receipt")
        if _rational(self.receipt, "delta", "receipt") != 0:
            raise _ReceiptError("delta must be 0/1: version 1 of the receipt is for pure epsilon")
        budget = _object(self.receipt, "budget", "receipt")
        factor, wanted = budget.get("factor"), _factor(self.receipt)
        if type(factor) is not int or factor != wanted:
            raise _ReceiptError(f"budget.factor is {factor!r}; for these neighbours it is {wanted}")
        if _positive(budget, "add_remove", "budget") * wanted > self.epsilon:
            raise _ReceiptError("budget: add_remove times factor is more than epsilon")

    def _condition(self) -> None:
        domains = _object(_object(self.receipt, "public", "receipt"), "domains", "public")
        from_data = domains.get("data", [])
        if not isinstance(from_data, list) or not all(isinstance(name, str) for name in from_data):
            raise _ReceiptError("public.domains.data is not a list of names")
        condition = self.receipt.get("condition")
        expected = _CONDITION + ", ".join(from_data) if from_data else None
        if condition != expected:
            raise _ReceiptError(f"condition is {condition!r}; the domains taken from the data ask for {expected!r}")

    def _tree(self) -> None:
        ledger = _object(self.receipt, "ledger", "receipt")
        nodes = ledger.get("nodes")
        if not isinstance(nodes, list) or not nodes or not all(isinstance(node, dict) for node in nodes):
            raise _ReceiptError("ledger.nodes is not a list of nodes")
        tables = _object(_object(self.receipt, "unit", "receipt"), "tables", "unit")
        tree = _Tree(nodes, tables)
        total = tree.check()
        self.problems += tree.problems
        self.unverified |= tree.as_printed
        if tree.as_printed and not self.receipt.get("stamp"):
            self.problems.append("events run as printed, but the receipt is not stamped")
        self.spent = total * _factor(self.receipt)
        if _rational(ledger, "total", "ledger") != total:
            raise _ReceiptError(f"ledger.total is {ledger['total']}, but the nodes add up to {total}")
        if total > _positive(_object(self.receipt, "budget", "receipt"), "add_remove", "budget"):
            raise _ReceiptError(f"the nodes add up to {total}, more than budget.add_remove")

    def _stamp(self) -> None:
        stamp, noise = self.receipt.get("stamp"), self.receipt.get("noise")
        self.unverified |= stamp is not None
        if noise not in ("operating system", "test"):
            raise _ReceiptError(f"noise is {noise!r}, neither 'operating system' nor 'test'")
        if noise == "test" and not str(stamp).startswith("not private"):
            raise _ReceiptError("the noise came from a test source, but the receipt is not stamped so")


class _Tree:
    """The nodes of the ledger: each names its parent, which comes before it, so that one pass each way is enough."""

    def __init__(self, nodes: list[_Json], tables: _Json) -> None:
        self.nodes = nodes
        self.tables = tables
        self.problems: list[str] = []
        self.as_printed = False
        self.blocks: list[_Json | None] = []
        """Per node the partition whose block it is in, if any."""
        self.boxes: list[_Box] = []
        """Per node the box it is in; an empty one holds every row."""
        self.parts: dict[int, list[int]] = {}

    def check(self) -> Fraction:
        """Check every node and return the recomputed total; raise where the tree cannot be read at all."""
        for at, node in enumerate(self.nodes):
            self._place(at, node)
        for at, parts in self.parts.items():
            try:
                self._check_partition(at, parts)
            except _ReceiptError as problem:
                self.problems.append(f"node {at}: {problem}")
        return self._add_up()

    def _place(self, at: int, node: _Json) -> None:
        """Check that a node may stand where it does, and what it says of itself."""
        kind, parent = node.get("kind"), node.get("parent")
        if at == 0:
            if kind != "sequence" or parent is not None:
                raise _ReceiptError("node 0 is not the root: a sequence without parent")
            self.blocks.append(None)
            self.boxes.append({})
            return
        if type(parent) is not int or not 0 <= parent < at:
            raise _ReceiptError(f"node {at}: parent {parent!r} does not come before it")
        above = self.nodes[parent]["kind"]
        if kind not in ("sequence", "partition", "part", "event"):
            raise _ReceiptError(f"node {at}: unknown kind {kind!r}")
        if above == "event" or (above == "partition") != (kind == "part"):
            raise _ReceiptError(f"node {at}: a {kind} cannot stand below a {above}")
        self.blocks.append(self.nodes[parent] if kind == "part" else self.blocks[parent])
        self.boxes.append(_box(node, at) if kind == "part" and "box" in node else self.boxes[parent])
        if kind == "event":
            self._check_event(at, node)
        elif kind == "partition":
            self.parts[at] = []
        elif kind == "part":
            self.parts[parent].append(at)

    def _check_event(self, at: int, event: _Json) -> None:
        where = f"node {at}"
        mechanism, table, draws = event.get("mechanism"), event.get("table"), event.get("draws")
        if mechanism not in _MECHANISMS:
            raise _ReceiptError(f"{where}: unknown mechanism {mechanism!r}")
        if not isinstance(event.get("query"), str) or not isinstance(table, str) or table not in self.tables:
            raise _ReceiptError(f"{where}: query or table is missing, or {table!r} is no table of the unit")
        if type(draws) is not int or draws < 1 or (mechanism == "permute-and-flip" and draws != 1):
            raise _ReceiptError(f"{where}: draws is {draws!r}; noisy counts draw at least once, a choice once")
        sensitivity, scale, epsilon = (_positive(event, name, where) for name in ("sensitivity", "scale", "epsilon"))
        self._check_block(at, table, sensitivity)
        if mechanism == "as-printed":
            self.as_printed = True
            return
        factor = 2 if mechanism == "permute-and-flip" and event.get("monotone") is not True else 1
        if factor * sensitivity / scale > epsilon:
            self.problems.append(f"{where}: scale {event['scale']} is too small for epsilon {event['epsilon']}")

    def _check_block(self, at: int, table: str, sensitivity: Fraction) -> None:
        block = self.blocks[at]
        if block is None:
            return
        rows = block.get("rows_per_entity")
        if table != block.get("table"):
            self.problems.append(f"node {at}: measures {table} inside a block of {block.get('table')}")
        counted = self.nodes[at].get("mechanism") != "as-printed"
        if counted and type(rows) is int and rows > 0 and (sensitivity / rows).denominator != 1:
            self.problems.append(f"node {at}: in a block, sensitivity must be a whole multiple of the {rows} rows")

    def _check_partition(self, at: int, parts: list[int]) -> None:
        node = self.nodes[at]
        table, rows = node.get("table"), node.get("rows_per_entity")
        declared = self.tables.get(table) if isinstance(table, str) else None
        if not isinstance(declared, dict) or type(rows) is not int or rows < 1:
            raise _ReceiptError("table is not one of the unit, or rows_per_entity not a positive integer")
        if declared.get("rows_per_entity") != rows:
            raise _ReceiptError(f"rows_per_entity is {rows}, but the unit says {declared.get('rows_per_entity')!r}")
        outer = self.blocks[at]
        if outer is not None and outer.get("table") != table:
            raise _ReceiptError(f"parts {table} inside a block of {outer.get('table')}")
        if node.get("by") == "boxes":
            self._check_boxes(at, parts)
        elif node.get("by") == "centres":
            self._check_centres(node, parts)
        else:
            raise _ReceiptError(f"parted by {node.get('by')!r}, neither 'boxes' nor 'centres'")

    def _check_boxes(self, at: int, parts: list[int]) -> None:
        if not all("box" in self.nodes[part] for part in parts):
            raise _ReceiptError("a part has no box")
        for part in parts:
            if not _within(self.boxes[part], self.boxes[at]):
                raise _ReceiptError(f"the box of node {part} reaches outside the block that is parted")
        columns = set.intersection(*(set(self.boxes[part]) for part in parts)) if parts else set()
        if any(_separate([i for part in parts for i in self.boxes[part][column]]) for column in columns):
            return
        for one, other in combinations(parts, 2):
            a, b = self.boxes[one], self.boxes[other]
            if not any(_separate(a[column] + b[column]) for column in a.keys() & b.keys()):
                raise _ReceiptError(f"the boxes of nodes {one} and {other} overlap")

    def _check_centres(self, node: _Json, parts: list[int]) -> None:
        centres = node.get("centres")
        if not isinstance(centres, list) or not all(isinstance(centre, dict) for centre in centres):
            raise _ReceiptError("centres is not a list of centres")
        listed = [centre.get("label") for centre in centres]
        used = [self.nodes[part].get("centre") for part in parts]
        if not all(isinstance(label, str) for label in listed + used):
            raise _ReceiptError("a centre or part has no label")
        if len(set(listed)) < len(listed) or len(set(used)) < len(used) or not set(used) <= set(listed):
            raise _ReceiptError("parts are not distinct labels of distinct listed centres")
        coordinates = [xs for centre in centres for xs in _object(centre, "at", "centre").values()]
        if not all(isinstance(xs, list) and all(type(x) is int for x in xs) for xs in coordinates):
            raise _ReceiptError("the coordinates of a centre are not lists of integers")
        if not all(centre["at"] for centre in centres) and not self.as_printed:
            raise _ReceiptError("a centre has no coordinates, so it parts nothing")

    def _add_up(self) -> Fraction:
        """Costs from the leaves to the root: a partition costs its dearest part, all else the sum."""
        costs = [Fraction(0)] * len(self.nodes)
        for at in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[at]
            if node["kind"] == "event":
                costs[at] = _positive(node, "epsilon", f"node {at}")
            elif _rational(node, "total", f"node {at}") != costs[at]:
                self.problems.append(f"node {at}: total is {node['total']}, but it adds up to {costs[at]}")
            if at:
                parent = node["parent"]
                parallel = self.nodes[parent]["kind"] == "partition"
                costs[parent] = max(costs[parent], costs[at]) if parallel else costs[parent] + costs[at]
        return costs[0]


def _factor(receipt: _Json) -> int:
    neighbours = receipt.get("neighbours")
    if not isinstance(neighbours, str) or neighbours not in _FACTORS:
        raise _ReceiptError(f"neighbours is {neighbours!r}, neither 'replace' nor 'add-remove'")
    return _FACTORS[neighbours]


def _object(holder: _Json, key: str, where: str) -> _Json:
    value = holder.get(key)
    if not isinstance(value, dict):
        raise _ReceiptError(f"{where}.{key} is not an object")
    return value


def _rational(holder: _Json, key: str, where: str) -> Fraction:
    value = holder.get(key)
    if not isinstance(value, str) or not _RATIONAL.fullmatch(value):
        raise _ReceiptError(f"{where}: {key} is {value!r}, not a rational written as p/q")
    return Fraction(value)


def _positive(holder: _Json, key: str, where: str) -> Fraction:
    value = _rational(holder, key, where)
    if value <= 0:
        raise _ReceiptError(f"{where}: {key} is {holder[key]}, not positive")
    return value


def _box(part: _Json, at: int) -> _Box:
    """Read a box: per column ascending intervals [first, last] of codes with a gap after each."""
    box: _Box = {}
    for column, listed in _object(part, "box", f"node {at}").items():
        if not isinstance(listed, list) or not listed:
            raise _ReceiptError(f"node {at}: the box holds no codes of {column}")
        reached = -2
        box[column] = []
        for pair in listed:
            if not isinstance(pair, list) or len(pair) != 2 or not all(type(code) is int for code in pair):
                raise _ReceiptError(f"node {at}: {pair!r} is not an interval of codes of {column}")
            first, last = pair
            if not max(0, reached + 2) <= first <= last:
                raise _ReceiptError(f"node {at}: intervals of {column} do not ascend with gaps")
            reached = last
            box[column].append((first, last))
    return box


def _within(inner: _Box, outer: _Box) -> bool:
    return all(
        any(low <= first and last <= high for low, high in limits)
        for column, limits in outer.items()
        for first, last in inner.get(column, [(-1, -1)])  # a column that is not named holds any code
    )


def _separate(intervals: list[tuple[int, int]]) -> bool:
    reached = -1
    for first, last in sorted(intervals):
        if first <= reached:
            return False
        reached = last
    return True
