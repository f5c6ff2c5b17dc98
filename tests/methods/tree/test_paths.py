"""What first parents say of other pairs: the same as a dense table of all columns."""

import numpy as np
import pytest
from numpy.typing import NDArray

from privbench.methods.tree.paths import IMPLIED, Paths
from privbench.methods.tree.structure import Candidates
from privbench.methods.tree.surroundings import NOTHING, Surroundings
from privbench.privacy.features import Axis, Feature, Own

Floats = NDArray[np.float64]
SIZES = (3, 2, 4, 3)


def made_candidates(own: int) -> Candidates:
    features = [Feature(name=f"c{at}", size=size, ordered=False, source=Own(f"c{at}")) for at, size in enumerate(SIZES)]
    axes = tuple(Axis(feature, np.arange(feature.size)) for feature in features)
    return Candidates(axes=axes, masses=tuple(np.ones(s) for s in SIZES), own=own, strata=1, deviation=1.0)


def tree_of(arcs: list[tuple[int, int]], seed: int) -> Floats:
    """A dense table of all columns in which those of arcs depend on each other, 1,000 entities in all."""
    rng = np.random.default_rng(seed)
    dense = np.ones(SIZES)
    for a, b in arcs:
        shape = [SIZES[at] if at in (a, b) else 1 for at in range(len(SIZES))]
        dense = dense * rng.uniform(0.1, 1, (SIZES[a], SIZES[b])).reshape(shape)
    return 1000 * dense / dense.sum()


def table_of(dense: Floats, a: int, b: int) -> Floats:
    table: Floats = dense.sum(axis=tuple(at for at in range(dense.ndim) if at not in (a, b)))
    return table if a < b else table.T


def margins_of(dense: Floats) -> list[Floats]:
    return [dense.sum(axis=tuple(at for at in range(dense.ndim) if at != place)) for place in range(dense.ndim)]


def softened(table: Floats) -> Floats:
    return IMPLIED * table + (1 - IMPLIED) * np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()


@pytest.mark.parametrize("seed", range(3))
def test_any_two_columns_are_as_in_the_dense_table(seed: int) -> None:
    arcs = [(0, 2), (2, 1), (2, 3)]
    dense = tree_of([(min(arc), max(arc)) for arc in arcs], seed)
    firsts = {arc: table_of(dense, *arc) for arc in arcs}
    paths = Paths(made_candidates(4), NOTHING, margins_of(dense), firsts)
    for a, b in [(0, 1), (1, 0), (0, 3), (3, 1), (2, 0)]:
        assert paths.expected(a, b) == pytest.approx(softened(table_of(dense, a, b)), rel=1e-6)


def test_without_a_path_nothing_is_known() -> None:
    dense = tree_of([(0, 1)], 0)
    paths = Paths(made_candidates(4), NOTHING, margins_of(dense), {(0, 1): table_of(dense, 0, 1)})
    assert paths.expected(0, 1) is not None
    assert paths.expected(0, 2) is None
    assert paths.expected(3, 1) is None


def test_given_columns_depend_on_each_other_as_in_the_sample() -> None:
    dense = tree_of([(0, 2), (1, 3), (2, 3)], 4)
    codes = np.indices((SIZES[2], SIZES[3])).reshape(2, -1)
    found = made_candidates(2)
    features = tuple(axis.feature for axis in found.axes[2:])
    weights = table_of(dense, 2, 3).ravel()
    given = Surroundings(features=features, codes=tuple(codes), weights=weights)
    firsts = {(2, 0): table_of(dense, 2, 0), (3, 1): table_of(dense, 3, 1)}
    paths = Paths(found, given, margins_of(dense), firsts)
    for a, b in [(0, 1), (1, 0), (2, 1), (3, 0)]:
        assert paths.expected(a, b) == pytest.approx(softened(table_of(dense, a, b)), rel=1e-6)
