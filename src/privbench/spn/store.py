"""Networks to and from flat arrays and a small JSON-able header, for the model file.

Nodes are listed parents first, so a tree of any depth is read and written without recursion and nothing in a file
can point backwards or be shared. The description of a clique tree lists its columns and their parents, so that the
lengths of all slices follow from it and from the bins. Unpacking trusts nothing: whatever a file holds, the
result is a checked network or a ModelError. Reading costs time and memory in proportion to the file, within the limits
below.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.checks import MAX_CODES, damaged
from privbench.spn.clique import CliqueTree, Conditional, Given, number_of_bins
from privbench.spn.feature_names import shown
from privbench.spn.nodes import Leaf, Node, Product, Sum, children, walk

VERSION, WITH_TREES = 1, 2
"""Formats of a network without and with clique trees."""

MAX_COLUMNS = 4096
"""No common database system takes more columns in a table."""

MAX_SCOPES = 10_000_000
"""Columns summed over all products. Each remembers its own, so nested ones in a small file could fill the memory."""

LEAF, PRODUCT, SUM, TREE = range(4)

_TYPES: Mapping[str, type[np.generic]] = {
    "kind": np.uint8,  # (nodes,) LEAF, PRODUCT, SUM or TREE, parents first
    "children": np.int64,  # (products and sums,) how many
    "column": np.int64,  # (leaves,) index into the header's columns
    "counts": np.float64,  # the histograms of the leaves, one after the other
    "weights": np.float64,  # the weights of the sums, one after the other
}


_TREE_TYPES: Mapping[str, type[np.generic]] = {
    "bins": np.uint16,  # of each tree: bins of the codes of its columns in order, then of its given columns
    "tree_counts": np.float64,  # histograms of the columns in order
    "factors": np.float64,  # row by row
    "contexts": np.uint16,  # row by row
    "context_weights": np.float64,
}


def pack(node: Node) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Flatten the network to a JSON-able header and named arrays.

    >>> header, arrays = pack(Leaf(column="a", counts=np.array([3.0, 1.0])))
    >>> header
    {'version': 1, 'columns': [{'name': 'a', 'codes': 2}]}
    >>> unpack(header, arrays).counts.tolist()
    [3.0, 1.0]
    """
    names = sorted(node.sizes)
    index = {name: i for i, name in enumerate(names)}
    nodes = list(walk(node))
    leaves = [n for n in nodes if isinstance(n, Leaf)]
    sums = [n for n in nodes if isinstance(n, Sum)]
    trees = [n for n in nodes if isinstance(n, CliqueTree)]
    parts: dict[str, list[Any]] = {
        "kind": [[_kind(n) for n in nodes]],
        "children": [[len(children(n)) for n in nodes if isinstance(n, Product | Sum)]],
        "column": [[index[n.column] for n in leaves]],
        "counts": [n.counts for n in leaves] or [[]],
        "weights": [n.weights for n in sums] or [[]],
    }
    header: dict[str, Any] = {
        "version": VERSION,
        "columns": [{"name": name, "codes": node.sizes[name]} for name in names],
    }
    arrays: dict[str, NDArray[Any]] = {name: np.concatenate(part).astype(_TYPES[name]) for name, part in parts.items()}
    if not trees:
        return header, arrays
    described, more = _pack_trees(trees)
    return header | {"version": WITH_TREES, "trees": described}, arrays | more


def unpack(header: object, arrays: Mapping[str, NDArray[Any]]) -> Node:
    """Rebuild the network that `pack` was given; ModelError if anything about it is wrong."""
    version, sizes = _read_header(header)
    trees: tuple[CliqueTree, ...] = ()
    _check_arrays(arrays, _TYPES if version == VERSION else {**_TYPES, **_TREE_TYPES})
    _check_lengths(sizes, arrays, last=SUM if version == VERSION else TREE)
    if version == WITH_TREES:
        # isinstance: mypy does not know that the header was read.
        trees = _unpack_trees(header.get("trees") if isinstance(header, dict) else None, sizes, arrays)
    if len(trees) != (arrays["kind"] == TREE).sum():
        raise damaged("the numbers of clique trees differ")
    return _build(sizes, arrays, list(trees))


def _kind(node: Node) -> int:
    if isinstance(node, Leaf):
        return LEAF
    if isinstance(node, CliqueTree):
        return TREE
    return PRODUCT if isinstance(node, Product) else SUM


def _read_header(header: object) -> tuple[int, dict[str, int]]:
    if not isinstance(header, dict) or "version" not in header:
        raise damaged("a network has no version")
    if type(header["version"]) is not int or header["version"] not in (VERSION, WITH_TREES):
        version = repr(header["version"])[:40]
        raise ModelError(
            f"the network has format {version}, this privbench reads {VERSION} and {WITH_TREES}: use the release that "
            "wrote it."
        )
    columns = header.get("columns")
    if not isinstance(columns, list) or not 1 <= len(columns) <= MAX_COLUMNS:
        raise damaged(f"a network needs a list of 1 to {MAX_COLUMNS} columns")
    sizes: dict[str, int] = {}
    for column in columns:
        name, codes = (column.get("name"), column.get("codes")) if isinstance(column, dict) else (None, None)
        if not isinstance(name, str) or name in sizes or type(codes) is not int or not 1 <= codes <= MAX_CODES:
            raise damaged(f"a column needs a name of its own and 1 to {MAX_CODES} codes, found {repr(column)[:80]}")
        sizes[name] = codes
    return header["version"], sizes


def _check_arrays(arrays: Mapping[str, NDArray[Any]], types: Mapping[str, type[np.generic]]) -> None:
    if set(arrays) != set(types):
        raise damaged(f"a network consists of the arrays {', '.join(types)}, found {', '.join(arrays)[:200]}")
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype != types[name] or array.ndim != 1:
            raise damaged(f"the array {name!r} is not a list of {types[name].__name__}")


def _check_lengths(sizes: Mapping[str, int], arrays: Mapping[str, NDArray[Any]], *, last: int) -> None:
    """See that every slice `_build` takes lies inside its array."""
    kind, arity, column = arrays["kind"], arrays["children"], arrays["column"]
    if kind.size == 0 or kind.max() > last:
        raise damaged("a network needs nodes of known kinds")
    inner = kind[(kind == PRODUCT) | (kind == SUM)]
    if arity.size != inner.size or column.size != (kind == LEAF).sum():
        raise damaged("the numbers of nodes differ between its arrays")
    # Each is bounded before they are added up, so that nothing overflows.
    if ((arity < 1) | (arity >= kind.size)).any() or arity.sum() != kind.size - 1:
        raise damaged("the nodes do not form one tree")
    if ((column < 0) | (column >= len(sizes))).any():
        raise damaged("a leaf names a column that is not there")
    if arrays["weights"].size != arity[inner == SUM].sum():
        raise damaged("there is not one weight for each child of a sum")
    if arrays["counts"].size != np.array(list(sizes.values()))[column].sum():
        raise damaged("there is not one count for each code of each leaf")


def _build(sizes: Mapping[str, int], arrays: Mapping[str, NDArray[Any]], trees: list[CliqueTree]) -> Node:
    """Build from the last node to the first, taking the parts of each from the ends of the arrays."""
    names = list(sizes)
    arities, columns = arrays["children"].tolist(), arrays["column"].tolist()
    counts, weights = arrays["counts"], arrays["weights"]
    done: list[Node] = []
    scopes = 0
    for kind in reversed(arrays["kind"].tolist()):
        if kind == LEAF:
            name = names[columns.pop()]
            counts, own = np.split(counts, [-sizes[name]])
            done.append(Leaf(column=name, counts=own))
            continue
        if kind == TREE:
            done.append(trees.pop())
            continue
        arity = arities.pop()
        if arity > len(done):
            raise damaged("a node has more children than follow it")
        below = tuple(done.pop() for _ in range(arity))
        if kind == SUM:
            weights, own = np.split(weights, [-arity])
            done.append(Sum(children=below, weights=own))
            continue
        scopes += sum(len(child.sizes) for child in below)
        if scopes > MAX_SCOPES:
            raise damaged("its products are nested too deeply over too many columns")
        done.append(Product(children=below))
    if done[0].sizes != sizes:
        raise damaged("the columns of the nodes are not those of the header")
    return done[0]


def _pack_trees(trees: Sequence[CliqueTree]) -> tuple[list[dict[str, Any]], dict[str, NDArray[Any]]]:
    """Describe trees and flatten their numbers."""
    columns = [column for tree in trees for column in tree.columns]
    parts: dict[str, list[NDArray[Any]]] = {
        "bins": [bins for tree in trees for bins in _bins(tree)],
        "tree_counts": [column.counts for column in columns],
        "factors": [factor.ravel() for column in columns for factor in column.factors] or [np.empty(0)],
        "contexts": [tree.contexts.ravel() for tree in trees],
        "context_weights": [tree.weights for tree in trees],
    }
    return [_description(tree) for tree in trees], {
        name: np.concatenate(part).astype(_TREE_TYPES[name]) for name, part in parts.items()
    }


def _unpack_trees(
    described: object, sizes: Mapping[str, int], arrays: Mapping[str, NDArray[Any]]
) -> tuple[CliqueTree, ...]:
    """Rebuild trees over columns of these sizes; the arrays have the right names and types."""
    if not isinstance(described, list):
        raise damaged("a network has no list of clique trees")
    reader = _Reader({name: arrays[name] for name in _TREE_TYPES})
    trees = tuple(_tree(one, sizes, reader) for one in described)
    reader.finish()
    return trees


def _bins(tree: CliqueTree) -> list[NDArray[np.int64]]:
    return [column.bins for column in tree.columns] + [column.bins for column in tree.given]


def _description(tree: CliqueTree) -> dict[str, Any]:
    return {
        "columns": [{"name": column.column, "parents": list(column.parents)} for column in tree.columns],
        "given": [{"name": column.column, "codes": column.bins.size} for column in tree.given],
        "contexts": len(tree.contexts),
    }


class _Reader:
    """Takes slices from the arrays, from left to right."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._at = dict.fromkeys(arrays, 0)

    def take(self, name: str, length: int) -> NDArray[Any]:
        start = self._at[name]
        if length > self._arrays[name].size - start:
            raise damaged(f"the array {name!r} is too short for its clique trees")
        self._at[name] += length
        return self._arrays[name][start : start + length]

    def finish(self) -> None:
        for name, array in self._arrays.items():
            if self._at[name] != array.size:
                raise damaged(f"the array {name!r} is too long for its clique trees")


def _tree(described: object, sizes: Mapping[str, int], reader: _Reader) -> CliqueTree:
    columns, given, contexts = _fields(described, ("columns", list), ("given", list), ("contexts", int))
    names: list[tuple[str, list[str]]] = []
    for one in columns:
        name, parents = _fields(one, ("name", str), ("parents", list))
        if name not in sizes or not all(isinstance(parent, str) for parent in parents):
            raise damaged(f"a clique tree has an unknown column or parent, found {repr(one)[:80]}")
        names.append((name, parents))
    bins = [reader.take("bins", sizes[name]) for name, _ in names]
    known = tuple(_given(one, reader) for one in given)
    if contexts < 0:
        raise damaged("a clique tree has less than no contexts")
    rows = {name: int(own.max()) + 1 for (name, _), own in zip(names, bins, strict=True)}
    rows |= {g.column: number_of_bins(g) for g in known}
    weights = reader.take("context_weights", contexts)  # before anything of that length is made
    return CliqueTree(
        columns=tuple(
            _column(name, parents, own, rows, reader) for (name, parents), own in zip(names, bins, strict=True)
        ),
        given=known,
        contexts=reader.take("contexts", contexts * len(known)).reshape(contexts, len(known)),
        weights=weights,
    )


def _column(name: str, parents: list[str], bins: NDArray[Any], rows: Mapping[str, int], reader: _Reader) -> Conditional:
    if unknown := [parent for parent in parents if parent not in rows]:
        raise damaged(f"{shown(name)}: its parent {unknown[0][:80]} is not in the tree")
    own = rows[name]
    factors = tuple(reader.take("factors", rows[parent] * own).reshape(-1, own) for parent in parents)
    counts = reader.take("tree_counts", bins.size)
    return Conditional(column=name, bins=bins, counts=counts, parents=tuple(parents), factors=factors)


def _given(described: object, reader: _Reader) -> Given:
    name, codes = _fields(described, ("name", str), ("codes", int))
    if not 1 <= codes <= MAX_CODES:
        raise damaged(f"a given column needs 1 to {MAX_CODES} codes, found {repr(described)[:80]}")
    return Given(column=name, bins=reader.take("bins", codes))


def _fields(described: object, *fields: tuple[str, type]) -> list[Any]:
    if not isinstance(described, dict) or any(type(described.get(name)) is not kind for name, kind in fields):
        wanted = ", ".join(name for name, _ in fields)
        raise damaged(f"a clique tree needs {wanted}, found {repr(described)[:80]}")
    return [described[name] for name, _ in fields]
