"""The tree of charges of a receipt: what each node may say, and what the whole costs.

Read by `verify.py` alone, and like it: the standard library, and no code of what wrote the receipt.
"""

import re
from collections.abc import Collection, Mapping
from fractions import Fraction
from itertools import combinations
from typing import Any

_RATIONAL = re.compile(r"-?[0-9]{1,1000}/[1-9][0-9]{0,999}")
_MECHANISMS = ("discrete-laplace", "permute-and-flip", "as-printed")
_CAP_CHOICE = "rows per entity"
"""The one query that an entity moves by 1 whatever its rows, and all scores in the same direction."""

Json = Mapping[str, Any]
_Box = dict[str, list[tuple[int, int]]]


class ReceiptError(Exception):
    """Something in the receipt is not what it should be."""


class Tree:
    """The nodes of the ledger: each names its parent, which comes before it, so that one pass each way is enough."""

    def __init__(self, nodes: list[Json], tables: Json, columns: Collection[str]) -> None:
        self.nodes = nodes
        self.tables = tables
        self.columns = columns
        """Every `table.column` with a public domain."""
        self.problems: list[str] = []
        self.as_printed = False
        self.chosen: set[str] = set()
        """Tables whose rows per entity were chosen."""
        self.blocks: list[Json | None] = []
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
            except ReceiptError as problem:
                self.problems.append(f"node {at}: {problem}")
        return self._add_up()

    def _place(self, at: int, node: Json) -> None:
        """Check that a node may stand where it does, and what it says of itself."""
        kind, parent = node.get("kind"), node.get("parent")
        if at == 0:
            if kind != "sequence" or parent is not None:
                raise ReceiptError("node 0 is not the root: a sequence without parent")
            self.blocks.append(None)
            self.boxes.append({})
            return
        if type(parent) is not int or not 0 <= parent < at:
            raise ReceiptError(f"node {at}: parent {parent!r} does not come before it")
        above = self.nodes[parent]["kind"]
        if kind not in ("sequence", "partition", "part", "event"):
            raise ReceiptError(f"node {at}: unknown kind {kind!r}")
        if above == "event" or (above == "partition") != (kind == "part"):
            raise ReceiptError(f"node {at}: a {kind} cannot stand below a {above}")
        self.blocks.append(self.nodes[parent] if kind == "part" else self.blocks[parent])
        self.boxes.append(_box(node, at) if kind == "part" and "box" in node else self.boxes[parent])
        if kind == "event":
            self._check_event(at, node)
        elif kind == "partition":
            self.parts[at] = []
        elif kind == "part":
            self.parts[parent].append(at)

    def _check_event(self, at: int, event: Json) -> None:
        where = f"node {at}"
        mechanism, table, draws = event.get("mechanism"), event.get("table"), event.get("draws")
        if mechanism not in _MECHANISMS:
            raise ReceiptError(f"{where}: unknown mechanism {mechanism!r}")
        if not isinstance(event.get("query"), str) or not isinstance(table, str) or table not in self.tables:
            raise ReceiptError(f"{where}: query or table is missing, or {table!r} is no table of the unit")
        if type(draws) is not int or draws < 1 or (mechanism == "permute-and-flip" and draws != 1):
            raise ReceiptError(f"{where}: draws is {draws!r}; noisy counts draw at least once, a choice once")
        sensitivity, scale, epsilon = (positive_of(event, name, where) for name in ("sensitivity", "scale", "epsilon"))
        self._check_block(at, table, sensitivity)
        self._check_sensitivity(at, event, sensitivity)
        if mechanism == "as-printed":
            self.as_printed = True
            return
        factor = 2 if mechanism == "permute-and-flip" and event.get("monotone") is not True else 1
        if factor * sensitivity / scale > epsilon:
            self.problems.append(f"{where}: scale {event['scale']} is too small for epsilon {event['epsilon']}")

    def _check_sensitivity(self, at: int, event: Json, sensitivity: Fraction) -> None:
        """Counts are whole, and every row of an entity may count; only a choice of rows per entity counts entities."""
        choice = event["mechanism"] == "permute-and-flip" and event["query"] == _CAP_CHOICE
        monotone = event.get("monotone")
        if choice:
            self.chosen.add(event["table"])
        if type(monotone) is not bool or (monotone and not choice):
            self.problems.append(f"node {at}: monotone is {monotone!r}; only a choice of {_CAP_CHOICE} can be so")
        least = 1 if choice and monotone is True else self._least_sensitivity(event["table"], event["query"])
        if sensitivity.denominator != 1 or sensitivity < least:
            self.problems.append(f"node {at}: sensitivity is {sensitivity}, not a whole number of at least {least}")

    def _least_sensitivity(self, table: str, query: str) -> int:
        """The rows of an entity; for rows by how many keys name them, those named, and the ends of keys to others."""
        rows, holder = self._rows(table), self.tables[table]
        for target in self.tables if query.startswith("rows of ") else ():
            if query.startswith(f"rows of {target} by number of "):
                owned = holder.get("role") == "owned" and holder.get("owner") == target
                owner_key = owned and query.endswith(f" by number of {table}.{_joined(holder.get('key'))}")
                return self._rows(target) + (0 if owner_key else 2 * rows)
        return rows

    def _rows(self, table: str) -> int:
        found = self.tables[table]
        rows = found.get("rows_per_entity") if isinstance(found, dict) else None
        if type(rows) is not int or rows < 1:
            raise ReceiptError(f"{table}: the unit does not say how many rows an entity has there")
        return rows

    def _check_columns(self, table: str, columns: Collection[str]) -> None:
        for column in columns:
            if f"{table}.{column}" not in self.columns:
                raise ReceiptError(f"{table} is parted by {column}, which has no public domain")

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
            raise ReceiptError("table is not one of the unit, or rows_per_entity not a positive integer")
        if declared.get("rows_per_entity") != rows:
            raise ReceiptError(f"rows_per_entity is {rows}, but the unit says {declared.get('rows_per_entity')!r}")
        outer = self.blocks[at]
        if outer is not None and outer.get("table") != table:
            raise ReceiptError(f"parts {table} inside a block of {outer.get('table')}")
        if node.get("by") == "boxes":
            self._check_boxes(at, parts)
        elif node.get("by") == "centres":
            self._check_centres(node, parts)
        else:
            raise ReceiptError(f"parted by {node.get('by')!r}, neither 'boxes' nor 'centres'")

    def _check_boxes(self, at: int, parts: list[int]) -> None:
        if not all("box" in self.nodes[part] for part in parts):
            raise ReceiptError("a part has no box")
        for part in parts:
            self._check_columns(self.nodes[at]["table"], self.boxes[part])
            if not _within(self.boxes[part], self.boxes[at]):
                raise ReceiptError(f"the box of node {part} reaches outside the block that is parted")
        columns = set.intersection(*(set(self.boxes[part]) for part in parts)) if parts else set()
        if any(_separate([i for part in parts for i in self.boxes[part][column]]) for column in columns):
            return
        for one, other in combinations(parts, 2):
            a, b = self.boxes[one], self.boxes[other]
            if not any(_separate(a[column] + b[column]) for column in a.keys() & b.keys()):
                raise ReceiptError(f"the boxes of nodes {one} and {other} overlap")

    def _check_centres(self, node: Json, parts: list[int]) -> None:
        centres = node.get("centres")
        if not isinstance(centres, list) or not all(isinstance(centre, dict) for centre in centres):
            raise ReceiptError("centres is not a list of centres")
        listed = [centre.get("label") for centre in centres]
        used = [self.nodes[part].get("centre") for part in parts]
        if not all(isinstance(label, str) for label in listed + used):
            raise ReceiptError("a centre or part has no label")
        if len(set(listed)) < len(listed) or len(set(used)) < len(used) or not set(used) <= set(listed):
            raise ReceiptError("parts are not distinct labels of distinct listed centres")
        coordinates = [xs for centre in centres for xs in object_of(centre, "at", "centre").values()]
        if not all(isinstance(xs, list) and all(type(x) is int for x in xs) for xs in coordinates):
            raise ReceiptError("the coordinates of a centre are not lists of integers")
        for centre in centres:
            self._check_columns(node["table"], centre["at"])
        if not all(centre["at"] for centre in centres) and not self.as_printed:
            raise ReceiptError("a centre has no coordinates, so it parts nothing")

    def _add_up(self) -> Fraction:
        """Costs from the leaves to the root: a partition costs its dearest part, all else the sum."""
        costs = [Fraction(0)] * len(self.nodes)
        for at in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[at]
            if node["kind"] == "event":
                costs[at] = positive_of(node, "epsilon", f"node {at}")
            elif rational_of(node, "total", f"node {at}") != costs[at]:
                self.problems.append(f"node {at}: total is {node['total']}, but it adds up to {costs[at]}")
            if at:
                parent = node["parent"]
                parallel = self.nodes[parent]["kind"] == "partition"
                costs[parent] = max(costs[parent], costs[at]) if parallel else costs[parent] + costs[at]
        return costs[0]


def object_of(holder: Json, key: str, where: str) -> Json:
    """Read an object out of a receipt."""
    value = holder.get(key)
    if not isinstance(value, dict):
        raise ReceiptError(f"{where}.{key} is not an object")
    return value


def rational_of(holder: Json, key: str, where: str) -> Fraction:
    """Read a rational, written as p/q."""
    value = holder.get(key)
    if not isinstance(value, str) or not _RATIONAL.fullmatch(value):
        raise ReceiptError(f"{where}: {key} is {value!r}, not a rational written as p/q")
    return Fraction(value)


def positive_of(holder: Json, key: str, where: str) -> Fraction:
    """Read a positive rational."""
    value = rational_of(holder, key, where)
    if value <= 0:
        raise ReceiptError(f"{where}: {key} is {holder[key]}, not positive")
    return value


def _joined(names: object) -> str:
    return ",".join(map(str, names)) if isinstance(names, list) else ""


def _box(part: Json, at: int) -> _Box:
    """Read a box: per column ascending intervals [first, last] of codes with a gap after each."""
    box: _Box = {}
    for column, listed in object_of(part, "box", f"node {at}").items():
        if not isinstance(listed, list) or not listed:
            raise ReceiptError(f"node {at}: the box holds no codes of {column}")
        reached = -2
        box[column] = []
        for pair in listed:
            if not isinstance(pair, list) or len(pair) != 2 or not all(type(code) is int for code in pair):
                raise ReceiptError(f"node {at}: {pair!r} is not an interval of codes of {column}")
            first, last = pair
            if not max(0, reached + 2) <= first <= last:
                raise ReceiptError(f"node {at}: intervals of {column} do not ascend with gaps")
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
