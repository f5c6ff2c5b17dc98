"""The query heat map: the networks of the model's tables, and for each query the selectivity at every node.

The model's side is exact inference. A column of a clique tree shows what it and the columns above it leave together.
The real side puts the share of the whole real column at each leaf, multiplies at products and mixes at sums: which
real rows belong below a sum is not known. Between the columns of a clique tree it takes the model's dependence. The
share of a real column comes from the bounds and counts of its histogram: how many rows are in each bin is real, where
they lie inside a bin is taken from the model.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.encode.codec import Codec
from privbench.encode.predicate import All, Between, In, IsNull, Predicate, Prefix
from privbench.errors import PrivBenchError
from privbench.evaluation.metrics import query_metrics
from privbench.evaluation.result import Bin, BinKind, Histogram, QueryResult, Result
from privbench.io.names import find_name
from privbench.model.model import Model
from privbench.report.page import rounded
from privbench.report.summary import worst_first
from privbench.spn.clique import CliqueTree, own_parents
from privbench.spn.feature_names import shown
from privbench.spn.infer import marginal, tree_probability
from privbench.spn.nodes import Leaf, Node, Product, Sum, children, distribution, fold, walk
from privbench.workload.estimate import estimate_cardinality
from privbench.workload.query import Query, Statement
from privbench.workload.sql import parse_workload

MAX_NODES = 400
"""A larger network is drawn down to the depth at which it has at most this many nodes."""
MAX_QUERIES = 50
_FAINT = 1e-12
"""Added to the model's shares: in a bin where it has no rows, they count as spread evenly."""
_UNBOUNDED = ("NaN", "Infinity", "-Infinity")
"""Bounds of floats that are no end of a range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A column of a clique tree, and those that have it as the last placed of their parents in the tree."""

    tree: CliqueTree
    column: str
    parents: tuple[str, ...] = field(compare=False)
    below: tuple["Placed", ...] = field(compare=False)


Item = Node | Placed
"""What is drawn as a node."""
OfLeaf = Callable[[Leaf], float | None]
OfColumns = Callable[[CliqueTree, tuple[str, ...]], float | None]
"""The share of rows that satisfy the query in some columns of a clique tree."""
Evidence = Mapping[str, NDArray[np.float64]]


def heat_data(model: Model, statements: Iterable[Statement], result: Result | None) -> dict[str, Any]:
    """The networks, and queries to colour them by."""
    return {
        "networks": {name: network(table.network) for name, table in model.tables.items()},
        "rows": {name: round(table.rows) for name, table in model.tables.items()},
        "heat": [heat for s in statements if (heat := query_heat(model, s, result)) is not None],
    }


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
    return {"n": statement.number, "sql": statement.sql, "estimate": rounded(estimate), "trees": trees}


def read_queries(model: Model, queries: Sequence[QueryResult]) -> list[Statement]:
    """At most 50 queries to choose from: the worst half by the first metric, and others from all over the workload."""
    metric = query_metrics()[0]
    worst = worst_first(queries, metric)[: MAX_QUERIES // 2]
    rest = [q for q in queries if q not in worst]
    chosen = [*worst, *rest[:: max(1, math.ceil(len(rest) / (MAX_QUERIES - len(worst))))]]
    statements = []
    for query in chosen:
        try:
            [read] = parse_workload(query.sql, schema=model.protection.schema).statements
        except (PrivBenchError, ValueError):
            continue
        statements.append(Statement(number=query.number, sql=query.sql, query=read.query, reason=read.reason))
    return statements


def network(node: Node) -> list[dict[str, Any]]:
    """The items that are drawn: kind, children by position, row shares of a sum, names of columns and parents."""
    items = drawn(node)
    place = {item: at for at, item in enumerate(items)}
    nodes: list[dict[str, Any]] = []
    for item in items:
        under = [place[child] for child in below(item) if child in place]
        if isinstance(item, Leaf):
            nodes.append({"k": "leaf", "t": shown(item.column)})
        elif isinstance(item, Placed):
            nodes.append({"k": "column", "t": shown(item.column), "p": list(map(shown, item.parents)), "c": under})
        elif not under:
            nodes.append({"k": "cut", "t": f"{_hidden(item)} more nodes"})
        elif isinstance(item, Sum):
            nodes.append({"k": "sum", "c": under, "w": [round(w, 4) for w in item.weights.tolist()]})
        else:
            nodes.append({"k": "clique" if isinstance(item, CliqueTree) else "product", "c": under})
    return nodes


def _hidden(node: Node) -> int:
    return sum(1 + (len(n.columns) if isinstance(n, CliqueTree) else 0) for n in walk(node)) - 1


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
    items: list[Item] = []
    while level and (not items or len(items) + len(level) <= MAX_NODES):
        items += level
        level = [child for item in level for child in below(item)]
    return items


def _modelled(model: Model, query: Query) -> list[tuple[str, str]]:
    tables = [(t.alias, find_name(t.table, model.tables)) for t in query.tables]
    return [(alias, table) for alias, table in tables if table is not None]


def _predicates(query: Query, alias: str) -> dict[str, tuple[Predicate, ...]]:
    predicates: dict[str, tuple[Predicate, ...]] = {}
    for part in query.filters:
        if part.column.alias == alias:
            predicates[part.column.column] = (*predicates.get(part.column.column, ()), part.predicate)
    return predicates


def _tree(
    model: Model, table: str, predicates: Mapping[str, tuple[Predicate, ...]], result: Result | None
) -> dict[str, Any]:
    codecs, root = model.codecs[table], model.tables[table].network
    told = [c for c in codecs if model.protection.schema.table(table).column(c).relative_to is None]
    spelled = {column: find_name(column, told) for column in predicates}
    asked = {name: predicates[column] for column, name in spelled.items() if name is not None}
    evidence = {column: codecs[column].coverage(All(parts=parts)) for column, parts in asked.items()}
    items = drawn(root)
    of_columns = lru_cache(partial(_of_columns, evidence=evidence))
    by_model = _shares(root, evidence, lambda leaf: _of_leaf(leaf, evidence), of_columns)
    tree: dict[str, Any] = {
        "table": table,
        "asked": sorted(asked),
        "left": sorted(column for column, known in spelled.items() if known is None),
        "model": [rounded(by_model[item]) for item in items],
    }
    if result is not None:
        histograms = _histograms(result, table)
        real = {
            c: real_share(histograms[c], p, codec=codecs[c], shares=marginal(root, c)) if c in histograms else None
            for c, p in asked.items()
        }
        by_real = _shares(root, real, lambda leaf: real.get(leaf.column, 1.0), partial(_real_columns, real, of_columns))
        tree["real"] = [rounded(by_real[item]) for item in items]
    return tree


def _shares(root: Node, asked: Collection[str], of_leaf: OfLeaf, of_columns: OfColumns) -> Mapping[Item, float | None]:
    shares: dict[Item, float | None] = {}

    def combine(node: Node, below: list[float | None]) -> float | None:
        known = [b for b in below if b is not None]
        if isinstance(node, Leaf):
            share = of_leaf(node)
        elif isinstance(node, CliqueTree):
            shares.update(_along_paths(node, asked, of_columns))
            share = of_columns(node, tuple(c for c in node.sizes if c in asked))
        elif len(known) < len(below):
            share = None
        else:
            share = math.prod(known) if isinstance(node, Product) else float(node.weights @ np.array(known))
        shares[node] = share
        return share

    fold(root, combine)
    return shares


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
    spelled = find_name(table, names)
    return {} if spelled is None else {c.name: c.histogram for c in names[spelled].columns}


def real_share(
    histogram: Histogram, predicates: Sequence[Predicate], *, codec: Codec, shares: NDArray[np.float64]
) -> float | None:
    """The share of the real rows that satisfy all predicates; None if it is not known.

    `shares` is the model's probability of each code.
    """
    total = sum(histogram.real)
    try:
        inside = [
            count * _covered(each, histogram.bins, predicates, codec, shares + _FAINT)
            for each, count in zip(histogram.bins, histogram.real, strict=True)
            if count
        ]
    except (PrivBenchError, _UnreadableError):
        return None
    return min(1.0, sum(inside) / total) if total else None


class _UnreadableError(Exception):
    """A bin whose values cannot be told by a predicate: lengths of strings, values that are no numbers."""


def _covered(
    within: Bin,
    bins: Sequence[Bin],
    predicates: Sequence[Predicate],
    codec: Codec,
    shares: NDArray[np.float64],
) -> float:
    """The share of one bin that satisfies the predicates, by the model."""
    inside = shares * (_rest(bins, codec) if within.kind is BinKind.REST else codec.coverage(_predicate(within, codec)))
    if within.kind is BinKind.REST:
        both = float(inside @ codec.coverage(All(parts=tuple(predicates))))
    else:
        both = float(shares @ codec.coverage(All(parts=(_predicate(within, codec), *predicates))))
    return both / max(float(inside.sum()), _FAINT)


def _rest(bins: Sequence[Bin], codec: Codec) -> NDArray[np.float64]:
    """The share of each code's values that no other bin holds."""
    listed = [codec.coverage(_predicate(b, codec)) for b in bins if b.kind not in (BinKind.REST, BinKind.UNKNOWN)]
    return np.clip(1 - sum(listed, np.zeros(codec.size)), 0, 1) * codec.coverage(IsNull(negated=True))


def _predicate(values: Bin, codec: Codec) -> Predicate:
    """Which values are in a bin."""
    low, high = (None if codec.ordered and bound in _UNBOUNDED else bound for bound in (values.low, values.high))
    match values.kind:
        case BinKind.NULL:
            return IsNull()
        case BinKind.VALUE if low is not None:
            return In(values=(low,))
        case BinKind.PREFIX:
            return Prefix(text=str(low))
        case BinKind.RANGE:
            return Between(low=low, high=high)
        case _:
            raise _UnreadableError
