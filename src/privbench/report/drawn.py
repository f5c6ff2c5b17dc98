"""A network as a list of nodes to draw; the columns of a clique tree too, each below the last of its parents."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from privbench.spn.clique import CliqueTree, own_parents
from privbench.spn.nodes import Leaf, Node, Sum, children, walk

MAX_NODES = 400
"""A larger network is drawn down to the depth at which it has at most this many nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A column of a clique tree, and those that have it as the last placed of their parents in the tree."""

    tree: CliqueTree
    column: str
    parents: tuple[str, ...] = field(compare=False)
    below: tuple["Placed", ...] = field(compare=False)


Item = Node | Placed


def hung(tree: CliqueTree) -> tuple[Placed, ...]:
    """Hang each column below the last placed of its parents; return those without one."""
    hanging: dict[str | None, list[Placed]] = defaultdict(list)
    for column in reversed(tree.columns):
        below = tuple(reversed(hanging.pop(column.column, [])))
        last = (None, *own_parents(tree, column))[-1]
        hanging[last].append(Placed(tree=tree, column=column.column, parents=column.parents, below=below))
    return tuple(reversed(hanging[None]))


def below(item: Item) -> Sequence[Item]:
    """List what is drawn right below an item."""
    if isinstance(item, Placed):
        return item.below
    return hung(item) if isinstance(item, CliqueTree) else children(item)


def drawn(root: Node) -> list[Item]:
    """List the items that are drawn, breadth first."""
    level: list[Item] = [root]
    found: list[Item] = []
    while level and (not found or len(found) + len(level) <= MAX_NODES):
        found += level
        level = [child for item in level for child in below(item)]
    return found


def network(node: Node) -> list[dict[str, Any]]:
    """The items that are drawn: kind, children by position, row shares of a sum, names of columns and parents."""
    items = drawn(node)
    place = {item: at for at, item in enumerate(items)}
    found: list[dict[str, Any]] = []
    for item in items:
        under = [place[child] for child in below(item) if child in place]
        if isinstance(item, Leaf):
            found.append({"k": "leaf", "t": item.column})
        elif isinstance(item, Placed):
            found.append({"k": "column", "t": item.column, "p": list(item.parents), "c": under})
        elif not under:
            found.append({"k": "cut", "t": f"{_hidden(item)} more nodes"})
        elif isinstance(item, Sum):
            found.append({"k": "sum", "c": under, "w": [round(w, 4) for w in item.weights.tolist()]})
        else:
            found.append({"k": "clique" if isinstance(item, CliqueTree) else "product", "c": under})
    return found


def _hidden(node: Node) -> int:
    return sum(1 + (len(n.columns) if isinstance(n, CliqueTree) else 0) for n in walk(node)) - 1
