"""Networks to and from flat arrays and a small JSON-able header, for the model file.

Nodes are listed parents first, so a tree of any depth is read and written without recursion and nothing in a file
can point backwards or be shared. Unpacking trusts nothing: whatever a stranger's file holds, the result is a checked
network or a ModelError. Reading costs time and memory in proportion to the file, within the limits below.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.nodes import MAX_CODES, Leaf, Node, Product, Sum, children, walk

VERSION = 1

MAX_COLUMNS = 4096
"""No common database system takes more columns in a table."""

MAX_SCOPES = 10_000_000
"""Columns summed over all products. Each remembers its own, so nested ones in a small file could fill the memory."""

LEAF, PRODUCT, SUM = range(3)

_TYPES: Mapping[str, type[np.generic]] = {
    "kind": np.uint8,  # (nodes,) LEAF, PRODUCT or SUM, parents first
    "children": np.int64,  # (products and sums,) how many
    "column": np.int64,  # (leaves,) index into the header's columns
    "counts": np.float64,  # the histograms of the leaves, one after the other
    "weights": np.float64,  # the weights of the sums, one after the other
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
    parts: dict[str, list[Any]] = {
        "kind": [[_kind(n) for n in nodes]],
        "children": [[len(children(n)) for n in nodes if not isinstance(n, Leaf)]],
        "column": [[index[n.column] for n in leaves]],
        "counts": [n.counts for n in leaves],
        "weights": [n.weights for n in sums] or [[]],
    }
    header = {"version": VERSION, "columns": [{"name": name, "codes": node.sizes[name]} for name in names]}
    return header, {name: np.concatenate(part).astype(_TYPES[name]) for name, part in parts.items()}


def unpack(header: object, arrays: Mapping[str, NDArray[Any]]) -> Node:
    """Rebuild the network that `pack` was given; ModelError if anything about it is wrong."""
    sizes = _read_header(header)
    _check_arrays(arrays)
    _check_lengths(sizes, arrays)
    return _build(sizes, arrays)


def _kind(node: Node) -> int:
    if isinstance(node, Leaf):
        return LEAF
    return PRODUCT if isinstance(node, Product) else SUM


def _damaged(found: str) -> ModelError:
    return ModelError(f"the model is damaged: {found}. Get the file again from where it was published, or fit again.")


def _read_header(header: object) -> dict[str, int]:
    if not isinstance(header, dict) or "version" not in header:
        raise _damaged("a network has no version")
    if type(header["version"]) is not int or header["version"] != VERSION:
        found = repr(header["version"])[:40]
        raise ModelError(
            f"the network has format {found}, this privbench reads {VERSION}: use the release that wrote it."
        )
    columns = header.get("columns")
    if not isinstance(columns, list) or not 1 <= len(columns) <= MAX_COLUMNS:
        raise _damaged(f"a network needs a list of 1 to {MAX_COLUMNS} columns")
    sizes: dict[str, int] = {}
    for column in columns:
        name, codes = (column.get("name"), column.get("codes")) if isinstance(column, dict) else (None, None)
        if not isinstance(name, str) or name in sizes or type(codes) is not int or not 1 <= codes <= MAX_CODES:
            raise _damaged(f"a column needs a name of its own and 1 to {MAX_CODES} codes, found {repr(column)[:80]}")
        sizes[name] = codes
    return sizes


def _check_arrays(arrays: Mapping[str, NDArray[Any]]) -> None:
    if set(arrays) != set(_TYPES):
        raise _damaged(f"a network consists of the arrays {', '.join(_TYPES)}, found {', '.join(arrays)[:200]}")
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype != _TYPES[name] or array.ndim != 1:
            raise _damaged(f"the array {name!r} is not a list of {_TYPES[name].__name__}")


def _check_lengths(sizes: Mapping[str, int], arrays: Mapping[str, NDArray[Any]]) -> None:
    """See that every slice `_build` takes lies inside its array."""
    kind, arity, column = arrays["kind"], arrays["children"], arrays["column"]
    if kind.size == 0 or kind.max() > SUM:
        raise _damaged("a network needs nodes, each a leaf, product or sum")
    inner = kind[kind != LEAF]
    if arity.size != inner.size or column.size != kind.size - inner.size:
        raise _damaged("the numbers of nodes differ between its arrays")
    # Each is bounded before they are added up, so that nothing overflows.
    if ((arity < 1) | (arity >= kind.size)).any() or arity.sum() != kind.size - 1:
        raise _damaged("the nodes do not form one tree")
    if ((column < 0) | (column >= len(sizes))).any():
        raise _damaged("a leaf names a column that is not there")
    if arrays["weights"].size != arity[inner == SUM].sum():
        raise _damaged("there is not one weight for each child of a sum")
    if arrays["counts"].size != np.array(list(sizes.values()))[column].sum():
        raise _damaged("there is not one count for each code of each leaf")


def _build(sizes: Mapping[str, int], arrays: Mapping[str, NDArray[Any]]) -> Node:
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
        arity = arities.pop()
        if arity > len(done):
            raise _damaged("a node has more children than follow it")
        below = tuple(done.pop() for _ in range(arity))
        if kind == SUM:
            weights, own = np.split(weights, [-arity])
            done.append(Sum(children=below, weights=own))
            continue
        scopes += sum(len(child.sizes) for child in below)
        if scopes > MAX_SCOPES:
            raise _damaged("its products are nested too deeply over too many columns")
        done.append(Product(children=below))
    if done[0].sizes != sizes:
        raise _damaged("the columns of the nodes are not those of the header")
    return done[0]
