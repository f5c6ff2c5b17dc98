"""What a system says of one query: the shape of its plan, what it expected, what it met, and which pages it touched."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_BUFFERS = ("Shared Hit Blocks", "Shared Read Blocks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One step of a plan: the rows that were expected of it, and those that it gave, each time that it ran."""

    estimated: float
    actual: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of one query. What a system does not tell is None, and `nodes` is empty."""

    shape: str
    """Steps, join types, tables and indexes as text, without any number: equal for equal plans."""
    cost: float | None = None
    buffers: int | None = None
    """Pages of tables and indexes that were touched, in memory or not."""
    nodes: tuple[Node, ...] = ()


def postgres_plan(explained: Mapping[str, Any]) -> Plan:
    """Read one element of EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)."""
    root = explained["Plan"]
    return Plan(
        shape=_shape(root),
        cost=float(root["Total Cost"]),
        buffers=sum(int(root[name]) for name in _BUFFERS),
        nodes=tuple(
            Node(estimated=float(node["Plan Rows"]), actual=float(node["Actual Rows"]))
            for node in _nodes(root)
            if node["Actual Loops"]  # a step that never ran met no rows
        ),
    )


def duckdb_plan(explained: Mapping[str, Any]) -> Plan:
    """Read one element of DuckDB's EXPLAIN (FORMAT JSON): operators and tables."""
    return Plan(shape=_operators(explained))


def _shape(node: Mapping[str, Any]) -> str:
    """A step and those below it.

    >>> scan = {"Node Type": "Index Scan", "Relation Name": "person", "Index Name": "by_age"}
    >>> _shape({"Node Type": "Aggregate", "Strategy": "Plain", "Plans": [scan]})
    'Aggregate Plain (Index Scan person using by_age)'
    """
    words = [node[name] for name in ("Node Type", "Join Type", "Strategy", "Relation Name") if node.get(name)]
    words += [f"using {node['Index Name']}"] if node.get("Index Name") else []
    below = ", ".join(map(_shape, node.get("Plans", ())))
    return " ".join(words) + (f" ({below})" if below else "")


def _operators(node: Mapping[str, Any]) -> str:
    about = node.get("extra_info", {})
    words = [str(node["name"]).strip(), *(str(about[name]) for name in ("Join Type", "Table") if about.get(name))]
    below = ", ".join(map(_operators, node.get("children", ())))
    return " ".join(words) + (f" ({below})" if below else "")


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)
