"""Sampling speed: 1.7M rows x 16 columns from a product of leaves, from mixtures and from clique trees.

Run: python bench/spn_sample.py [rows]
"""

import sys
import time

import numpy as np

from privbench.spn.clique import CliqueTree, Conditional
from privbench.spn.nodes import Leaf, Node, Product, Sum
from privbench.spn.sample import sample

COLUMNS = [f"c{i}" for i in range(16)]
CODES = [2, 2, 3, 5, 8, 10, 16, 20, 32, 40, 64, 75, 100, 128, 500, 4096]


def independent(rng: np.random.Generator) -> Node:
    leaves = (Leaf(column=c, counts=rng.gamma(0.5, size=k)) for c, k in zip(COLUMNS, CODES, strict=True))
    return Product(children=tuple(leaves))


def mixture(rng: np.random.Generator, *, depth: int) -> Node:
    """A binary tree of sums over 2**depth products of leaves."""
    if depth == 0:
        return independent(rng)
    return Sum(children=(mixture(rng, depth=depth - 1), mixture(rng, depth=depth - 1)), weights=np.array([0.7, 0.3]))


def cliques(rng: np.random.Generator, *, parents: int, bins: int) -> Node:
    """Each column depends on the ones placed just before it, through at most that many bins."""
    columns: list[Conditional] = []
    for name, codes in zip(COLUMNS, CODES, strict=True):
        own = min(codes, bins)
        above = columns[-parents:]
        factors = tuple(rng.gamma(0.5, size=(int(c.bins.max()) + 1, own)) for c in above)
        names = tuple(c.column for c in above)
        places = np.arange(codes) * own // codes
        counts = rng.gamma(0.5, size=codes)
        columns.append(Conditional(column=name, bins=places, counts=counts, parents=names, factors=factors))
    return CliqueTree(columns=tuple(columns))


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_700_000
    rng = np.random.default_rng(1)
    shapes = {"product of 16 leaves": independent(rng)}
    shapes |= {f"sum of {2**depth} products": mixture(rng, depth=depth) for depth in (1, 3, 6)}
    for parents, bins in ((1, 64), (2, 32), (4, 16)):
        shapes[f"{parents} parents, {bins} bins"] = cliques(rng, parents=parents, bins=bins)
    for name, node in shapes.items():
        start = time.process_time()
        out = sample(node, rows, rng)
        seconds = time.process_time() - start
        assert all(codes.size == rows for codes in out.values())
        print(f"{name:24} {rows:,} x {len(out)}: {seconds:.2f} CPU-seconds")


if __name__ == "__main__":
    main()
