"""A network as text, for `privbench show --tree`: one line per node or column, with its likeliest values.

Names and labels may come from anyone's file, so characters that could steer a terminal are escaped.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.spn.clique import CliqueTree, code_shares
from privbench.spn.feature_names import shown
from privbench.spn.infer import tree_joints
from privbench.spn.nodes import Leaf, Node, Sum, children, distribution, walk

TOP = 3
"""Values shown of each column."""

WIDTH = 64
"""Longest name or label shown in full; of a longer one both ends are, since a bin has two."""


def tree_text(node: Node, *, labels: Mapping[str, Sequence[str]] | None = None, max_lines: int = 400) -> str:
    """Draw the tree; `labels` names the codes of a column (`Codec.labels`), which else show as numbers.

    >>> a, b = (Leaf(column=name, counts=np.array([3.0, 1.0])) for name in "ab")
    >>> print(tree_text(Sum(children=(a, a), weights=np.array([0.9, 0.1])), labels={"a": ["no", "yes"]}))
    sum over 1 column
    ├── 90.0% a: no 75.0%, yes 25.0%
    └── 10.0% a: no 75.0%, yes 25.0%
    """
    lines: list[str] = []
    waiting: list[tuple[_Item, str, str]] = [(node, "", "")]  # and what stands before it, and before its children
    while waiting and len(lines) < max_lines:
        current, start, indent = waiting.pop()
        lines.append(start + (current.text if isinstance(current, _Line) else _describe(current, labels or {})))
        if not isinstance(current, _Line):
            waiting.extend(reversed(list(_below(current, indent, labels or {}))))
    if waiting:
        hidden = sum(_number_of_lines(top) for top, _, _ in waiting)
        lines.append(f"... {hidden:,} more nodes")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Line:
    """A column of a clique tree, ready to print."""

    text: str


_Item = Node | _Line


def _number_of_lines(item: _Item) -> int:
    if isinstance(item, _Line):
        return 1
    return sum(1 + (len(n.columns) if isinstance(n, CliqueTree) else 0) for n in walk(item))


def _below(node: Node, indent: str, labels: Mapping[str, Sequence[str]]) -> Iterator[tuple[_Item, str, str]]:
    items: Sequence[_Item] = _columns(node, labels) if isinstance(node, CliqueTree) else children(node)
    shares = [f"{weight:.1%} " for weight in node.weights] if isinstance(node, Sum) else [""] * len(items)
    for place, (item, share) in enumerate(zip(items, shares, strict=True), start=1):
        corner, line = ("└── ", "    ") if place == len(shares) else ("├── ", "│   ")
        yield item, indent + corner + share, indent + line


def _describe(node: Node, labels: Mapping[str, Sequence[str]]) -> str:
    if isinstance(node, Leaf):
        likeliest = f"uniform over {node.counts.size} codes"
        if node.counts.any():
            likeliest = _likeliest(distribution(node), labels.get(node.column))
        return f"{_printable(shown(node.column))}: {likeliest}"
    kind = "clique tree" if isinstance(node, CliqueTree) else "sum" if isinstance(node, Sum) else "product"
    columns = len(node.sizes)
    text = f"{kind} over {columns} column{'s' if columns > 1 else ''}"
    if isinstance(node, CliqueTree) and node.given:
        text += f", given {', '.join(_printable(shown(g.column)) for g in node.given)}"
    return text


def _columns(tree: CliqueTree, labels: Mapping[str, Sequence[str]]) -> list[_Line]:
    """A line for each column: how closely it depends on each parent, closest first, and its likeliest values."""
    joints = tree_joints(tree)
    lines = []
    for column in tree.columns:
        joint = joints[column.column]
        text = _printable(shown(column.column))
        if (bins := joint.shares.size) < column.bins.size:
            text += f" in {bins} bins"
        bits = {parent: mutual_information(pair) for parent, pair in joint.pairs.items()}
        above = [f"{_printable(shown(p))} ({bits[p]:.2f} bits)" for p in sorted(bits, key=lambda p: -bits[p])]
        text += f" given {', '.join(above)}" if above else ""
        shares = joint.shares[column.bins] * code_shares(column)
        lines.append(_Line(f"{text}: {_likeliest(shares, labels.get(column.column))}"))
    return lines


def mutual_information(pair: NDArray[np.float64]) -> float:
    """Compute how many bits two columns tell about each other, from their joint distribution.

    >>> mutual_information(np.array([[0.5, 0.0], [0.0, 0.5]]))
    1.0
    """
    apart = pair.sum(axis=1, keepdims=True) * pair.sum(axis=0, keepdims=True)
    there = pair > 0
    return max(0.0, float((pair[there] * np.log2(pair[there] / apart[there])).sum()))


def _likeliest(shares: NDArray[np.float64], names: Sequence[str] | None) -> str:
    likeliest = np.argsort(-shares, kind="stable")[:TOP].tolist()
    parts = [f"{_printable(names[code] if names else str(code))} {shares[code]:.1%}" for code in likeliest]
    if shares.size > TOP:
        parts.append(f"{shares.size - TOP} more")
    return ", ".join(parts)


def _printable(text: str) -> str:
    half = (WIDTH - 3) // 2
    short = text if len(text) <= WIDTH else f"{text[:half]}...{text[-half:]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)
