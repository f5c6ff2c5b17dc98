"""The tree of charges of a receipt: what each node may say, and what the whole costs.

Read by `verify.py` alone, and like it: the standard library, and no code of what wrote the receipt.
"""

from collections.abc import Collection
from fractions import Fraction
from itertools import combinations

from privbench_verify.events import Terms, check_event, is_cap_choice, searched_column
from privbench_verify.read import Json, ReceiptError, flag_of, object_of, positive_of, rational_of
from privbench_verify.thresholds import FREQUENT

_Box = dict[str, list[tuple[int, int]]]


class Tree:
    """The nodes of the ledger: each names its parent, which comes before it, so that one pass each way is enough."""

    def __init__(self, nodes: list[Json], columns: Collection[str], terms: Terms) -> None:
        self.nodes = nodes
        self.terms = terms
        self.tables = terms.tables
        self.columns = columns
        """Every `table.column` with a public domain."""
        self.problems: list[str] = []
        self.as_published = False
        self.chosen: set[str] = set()
        """Tables whose rows per entity were chosen."""
        self.delta = Fraction(0)
        """What thresholds cost."""
        self.searched: set[str] = set()
        """Every `table.column` whose domain was looked for."""
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
        self.problems += check_event(event, self.terms, f"node {at}")
        if (block := self.blocks[at]) is not None:
            self._check_block(at, block, positive_of(event, "sensitivity", f"node {at}"))
        self.as_published |= event["mechanism"] == "as-published"
        if event["mechanism"] == FREQUENT:
            self.delta += positive_of(event, "delta", f"node {at}")
        if (column := searched_column(event)) is not None:
            self.searched.add(column)
        if is_cap_choice(event):
            self.chosen.add(event["table"])

    def _check_columns(self, table: str, columns: Collection[str]) -> None:
        for column in columns:
            if f"{table}.{column}" not in self.columns:
                raise ReceiptError(f"{table} is parted by {column}, which has no public domain")

    def _check_block(self, at: int, block: Json, sensitivity: Fraction) -> None:
        table, rows = self.nodes[at]["table"], block.get("rows_per_entity")
        if flag_of(self.nodes[at], "weighted", f"node {at}", default=False):
            self.problems.append(f"node {at}: weights are counted inside a block of {block.get('table')}")
        if table != block.get("table"):
            self.problems.append(f"node {at}: measures {table} inside a block of {block.get('table')}")
        counted = self.nodes[at].get("mechanism") != "as-published"
        if counted and type(rows) is int and rows > 0 and (sensitivity / rows).denominator != 1:
            self.problems.append(f"node {at}: in a block, sensitivity must be a whole multiple of the {rows} rows")

    def _check_partition(self, at: int, parts: list[int]) -> None:
        if self.terms.currency != "epsilon":
            raise ReceiptError(f"blocks cannot be charged in parallel where {self.terms.currency} is counted")
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
        if not all(centre["at"] for centre in centres) and not self.as_published:
            raise ReceiptError("a centre has no coordinates, so it parts nothing")

    def _add_up(self) -> Fraction:
        """Costs from the leaves to the root: a partition costs its dearest part, all else the sum."""
        costs = [Fraction(0)] * len(self.nodes)
        for at in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[at]
            if node["kind"] == "event":
                costs[at] = positive_of(node, self.terms.currency, f"node {at}")
            elif rational_of(node, "total", f"node {at}") != costs[at]:
                self.problems.append(f"node {at}: total is {node['total']}, but it adds up to {costs[at]}")
            if at:
                parent = node["parent"]
                parallel = self.nodes[parent]["kind"] == "partition"
                costs[parent] = max(costs[parent], costs[at]) if parallel else costs[parent] + costs[at]
        return costs[0]


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
