"""Sampling speed: 1.7M rows x 16 columns from a product of leaves and from mixtures.

Run: python bench/spn_sample.py [rows]
"""

import sys
import time

import numpy as np

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


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_700_000
    rng = np.random.default_rng(1)
    shapes = {"product of 16 leaves": independent(rng)}
    shapes |= {f"sum of {2**depth} products": mixture(rng, depth=depth) for depth in (1, 3, 6)}
    for name, node in shapes.items():
        start = time.process_time()
        out = sample(node, rows, rng)
        seconds = time.process_time() - start
        assert all(codes.size == rows for codes in out.values())
        print(f"{name:24} {rows:,} x {len(out)}: {seconds:.2f} CPU-seconds")


if __name__ == "__main__":
    main()
