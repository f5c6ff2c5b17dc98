"""A network as text, for `privbench show --tree`: one line per node, the likeliest values of each leaf.

Names and labels may come from a stranger's file, so characters that could steer a terminal are escaped.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from privbench.spn.nodes import Leaf, Node, Sum, children, distribution, walk

TOP = 3
"""Values shown of each leaf."""

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
    waiting = [(node, "", "")]  # node, what stands before it on its line, and on the lines of its children
    while waiting and len(lines) < max_lines:
        current, start, indent = waiting.pop()
        lines.append(start + _describe(current, labels or {}))
        waiting.extend(reversed(list(_below(current, indent))))
    if waiting:
        hidden = sum(1 for top, _, _ in waiting for _ in walk(top))
        lines.append(f"... {hidden:,} more nodes")
    return "\n".join(lines)


def _below(node: Node, indent: str) -> Iterator[tuple[Node, str, str]]:
    shares = [f"{weight:.1%} " for weight in node.weights] if isinstance(node, Sum) else [""] * len(children(node))
    for place, (child, share) in enumerate(zip(children(node), shares, strict=True), start=1):
        corner, line = ("└── ", "    ") if place == len(shares) else ("├── ", "│   ")
        yield child, indent + corner + share, indent + line


def _describe(node: Node, labels: Mapping[str, Sequence[str]]) -> str:
    if isinstance(node, Leaf):
        return f"{_printable(node.column)}: {_likeliest(node, labels.get(node.column))}"
    columns = len(node.sizes)
    return f"{'sum' if isinstance(node, Sum) else 'product'} over {columns} column{'s' if columns > 1 else ''}"


def _likeliest(leaf: Leaf, names: Sequence[str] | None) -> str:
    if not leaf.counts.any():
        return f"uniform over {leaf.counts.size} codes"
    shares = distribution(leaf)
    shown = np.argsort(-shares, kind="stable")[:TOP].tolist()
    parts = [f"{_printable(names[code] if names else str(code))} {shares[code]:.1%}" for code in shown]
    if leaf.counts.size > TOP:
        parts.append(f"{leaf.counts.size - TOP} more")
    return ", ".join(parts)


def _printable(text: str) -> str:
    half = (WIDTH - 3) // 2
    short = text if len(text) <= WIDTH else f"{text[:half]}...{text[-half:]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)
