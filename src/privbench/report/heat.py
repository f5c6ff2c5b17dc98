"""The query heat map: for each query the selectivity at every node of the networks.

The model's side is exact inference. A column of a clique tree shows what it and the columns above it leave together.
The real side puts the share of the whole real column at each leaf, multiplies at products and mixes at sums: which
real rows belong below a sum is not known. Between the columns of a clique tree it takes the model's dependence.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.encode.predicate import All, Predicate
from privbench.errors import PrivBenchError
from privbench.evaluation.result import Histogram, QueryResult, Result
from privbench.io.names import find_name
from privbench.model.model import Model
from privbench.report.drawn import Item, Placed, drawn, hung
from privbench.report.share import real_share
from privbench.spn.clique import CliqueTree
from privbench.spn.infer import marginal, tree_probability
from privbench.spn.nodes import Leaf, Node, Product, distribution, fold
from privbench.workload.estimate import estimate_cardinality
from privbench.workload.query import Query, Statement
from privbench.workload.sql import parse_workload

MAX_QUERIES = 50

OfLeaf = Callable[[Leaf], float | None]
OfColumns = Callable[[CliqueTree, tuple[str, ...]], float | None]
"""The share of rows that satisfy the query in some columns of a clique tree."""
Evidence = Mapping[str, NDArray[np.float64]]


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
    items = drawn(root)
    of_columns = lru_cache(partial(_of_columns, evidence=evidence))
    by_model = _shares(root, evidence, lambda leaf: _of_leaf(leaf, evidence), of_columns)
    found: dict[str, Any] = {
        "table": table,
        "asked": sorted(asked),
        "left": sorted(column for column, known in named.items() if known is None),
        "model": [_round(by_model[item]) for item in items],
    }
    if result is not None:
        histograms = _histograms(result, table)
        real = {
            c: real_share(histograms[c], p, codec=codecs[c], shares=marginal(root, c)) if c in histograms else None
            for c, p in asked.items()
        }
        by_real = _shares(root, real, lambda leaf: real.get(leaf.column, 1.0), partial(_real_columns, real, of_columns))
        found["real"] = [_round(by_real[item]) for item in items]
    return found


def _shares(root: Node, asked: Collection[str], of_leaf: OfLeaf, of_columns: OfColumns) -> Mapping[Item, float | None]:
    found: dict[Item, float | None] = {}

    def combine(node: Node, below: list[float | None]) -> float | None:
        known = [b for b in below if b is not None]
        if isinstance(node, Leaf):
            share = of_leaf(node)
        elif isinstance(node, CliqueTree):
            found.update(_along_paths(node, asked, of_columns))
            share = of_columns(node, tuple(c for c in node.sizes if c in asked))
        elif len(known) < len(below):
            share = None
        else:
            share = math.prod(known) if isinstance(node, Product) else float(node.weights @ np.array(known))
        found[node] = share
        return share

    fold(root, combine)
    return found


def _along_paths(
    tree: CliqueTree, asked: Collection[str], of_columns: OfColumns
) -> Iterator[tuple[Item, float | None]]:
    """For each column the share that it and those above it leave."""
    waiting: list[tuple[Placed, tuple[str, ...]]] = [(column, ()) for column in hung(tree)]
    while waiting:
        current, above = waiting.pop()
        path = (*above, current.column) if current.column in asked else above
        yield current, of_columns(tree, path)
        waiting.extend((column, path) for column in current.below)


def _of_leaf(leaf: Leaf, evidence: Evidence) -> float:
    return float(distribution(leaf) @ evidence[leaf.column]) if leaf.column in evidence else 1.0


def _of_columns(tree: CliqueTree, columns: tuple[str, ...], *, evidence: Evidence) -> float:
    return min(1.0, tree_probability(tree, {column: evidence[column] for column in columns}))


def _real_columns(
    real: Mapping[str, float | None],
    of_model: Callable[[CliqueTree, tuple[str, ...]], float],
    tree: CliqueTree,
    columns: tuple[str, ...],
) -> float | None:
    """The shares of the real columns together, as far from their product as the model's are."""
    shares = [share for column in columns if (share := real[column]) is not None]
    if len(shares) < len(columns):
        return None
    apart = math.prod(of_model(tree, (column,)) for column in columns)
    together = of_model(tree, columns) / apart if apart else 1.0
    return min([1.0, *shares, together * math.prod(shares)])


def _histograms(result: Result, table: str) -> dict[str, Histogram]:
    names = {t.name: t for t in result.tables}
    found = find_name(table, names)
    return {} if found is None else {c.name: c.histogram for c in names[found].columns}


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
