"""The query heat map: networks as lists of nodes, and for each query the selectivity at every node.

The model's side is exact inference. The real side puts the share of the whole real column at each leaf, multiplies at
products and mixes at sums: which real rows belong below a sum is not known.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.encode.predicate import All, Predicate
from privbench.errors import PrivBenchError
from privbench.evaluate.result import Histogram, QueryResult, Result
from privbench.io.names import find_name
from privbench.pipeline.model import Model
from privbench.report.share import real_share
from privbench.spn.infer import marginal
from privbench.spn.nodes import Leaf, Node, Product, Sum, children, distribution, fold, walk
from privbench.workload.estimate import estimate_cardinality
from privbench.workload.query import Query, Statement
from privbench.workload.sql import parse_workload

MAX_NODES = 400
"""A larger network is drawn down to the depth at which it has at most this many nodes."""
MAX_QUERIES = 50

OfLeaf = Callable[[Leaf], float | None]
Shares = Mapping[int, float | None]
"""By the id of a node."""


def network(node: Node) -> list[dict[str, Any]]:
    """The nodes that are drawn, breadth first: kind, children by position, row shares of a sum, column of a leaf."""
    drawn = _drawn(node)
    place = {id(n): at for at, n in enumerate(drawn)}
    found: list[dict[str, Any]] = []
    for current in drawn:
        below = [place[id(c)] for c in children(current) if id(c) in place]
        if isinstance(current, Leaf):
            found.append({"k": "leaf", "t": current.column})
        elif not below:
            found.append({"k": "cut", "t": f"{sum(1 for _ in walk(current)) - 1} more nodes"})
        elif isinstance(current, Sum):
            found.append({"k": "sum", "c": below, "w": [round(w, 4) for w in current.weights.tolist()]})
        else:
            found.append({"k": "product", "c": below})
    return found


def query_heat(model: Model, statement: Statement, result: Result | None) -> dict[str, Any] | None:
    """Selectivities of a query at the nodes of its tables; None if the model cannot tell them."""
    query = statement.query
    if query is None:
        return None
    try:
        trees = [_tree(model, table, _predicates(query, alias), result) for alias, table in _modelled(model, query)]
    except PrivBenchError:  # it compares a column with what its type cannot be
        return None
    if not trees:
        return None
    try:
        estimate: float | None = estimate_cardinality(model, query)
    except PrivBenchError:
        estimate = None
    return {"n": statement.number, "sql": statement.sql, "estimate": _round(estimate), "trees": trees}


def read_queries(model: Model, queries: Sequence[QueryResult]) -> list[Statement]:
    """At most 50 queries to choose from: the worst half, and others from all over the workload."""
    worst = sorted((q for q in queries if q.q_error is not None), key=lambda q: -(q.q_error or 0))[: MAX_QUERIES // 2]
    rest = [q for q in queries if q not in worst]
    chosen = [*worst, *rest[:: max(1, math.ceil(len(rest) / (MAX_QUERIES - len(worst))))]]
    found = []
    for query in chosen:
        try:
            [read] = parse_workload(query.sql, schema=model.protection.schema).statements
        except (PrivBenchError, ValueError):
            continue
        found.append(Statement(number=query.number, sql=query.sql, query=read.query, reason=read.reason))
    return found


def _modelled(model: Model, query: Query) -> list[tuple[str, str]]:
    named = [(t.alias, find_name(t.table, model.tables)) for t in query.tables]
    return [(alias, table) for alias, table in named if table is not None]


def _predicates(query: Query, alias: str) -> dict[str, tuple[Predicate, ...]]:
    found: dict[str, tuple[Predicate, ...]] = {}
    for part in query.filters:
        if part.column.alias == alias:
            found[part.column.column] = (*found.get(part.column.column, ()), part.predicate)
    return found


def _tree(
    model: Model, table: str, predicates: Mapping[str, tuple[Predicate, ...]], result: Result | None
) -> dict[str, Any]:
    codecs, root = model.codecs[table], model.tables[table].network
    named = {column: find_name(column, codecs) for column in predicates}
    asked = {found: predicates[column] for column, found in named.items() if found is not None}
    evidence = {column: codecs[column].coverage(All(parts=parts)) for column, parts in asked.items()}
    drawn = _drawn(root)
    by_model = _shares(root, lambda leaf: _of_leaf(leaf, evidence))
    found: dict[str, Any] = {
        "table": table,
        "asked": sorted(asked),
        "left": sorted(column for column, known in named.items() if known is None),
        "model": [_round(by_model[id(n)]) for n in drawn],
    }
    if result is not None:
        histograms = _histograms(result, table)
        real = {
            c: real_share(histograms[c], p, codec=codecs[c], shares=marginal(root, c)) if c in histograms else None
            for c, p in asked.items()
        }
        by_real = _shares(root, lambda leaf: real.get(leaf.column, 1.0))
        found["real"] = [_round(by_real[id(n)]) for n in drawn]
    return found


def _shares(root: Node, of_leaf: OfLeaf) -> Shares:
    found: dict[int, float | None] = {}

    def combine(node: Node, below: list[float | None]) -> float | None:
        known = [b for b in below if b is not None]
        if isinstance(node, Leaf):
            share = of_leaf(node)
        elif len(known) < len(below):
            share = None
        else:
            share = math.prod(known) if isinstance(node, Product) else float(node.weights @ np.array(known))
        found[id(node)] = share
        return share

    fold(root, combine)
    return found


def _of_leaf(leaf: Leaf, evidence: Mapping[str, NDArray[np.float64]]) -> float:
    return float(distribution(leaf) @ evidence[leaf.column]) if leaf.column in evidence else 1.0


def _histograms(result: Result, table: str) -> dict[str, Histogram]:
    names = {t.name: t for t in result.tables}
    found = find_name(table, names)
    return {} if found is None else {c.name: c.histogram for c in names[found].columns}


def _drawn(root: Node) -> list[Node]:
    level: list[Node] = [root]
    found: list[Node] = []
    while level and (not found or len(found) + len(level) <= MAX_NODES):
        found += level
        level = [child for node in level for child in children(node)]
    return found


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
