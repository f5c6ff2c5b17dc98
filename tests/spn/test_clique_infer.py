"""Inference with given columns against full enumeration, and that neither blocks nor kept tables change it."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn import clique_table, infer
from privbench.spn.clique import CliqueTree, Conditional, Given
from privbench.spn.infer import marginal, probability
from privbench.spn.nodes import Node

Cells = Callable[[Node], NDArray[np.float64]]


@given(data=st.data())
def test_given_columns_are_summed_out(
    data: st.DataObject, given_networks: st.SearchStrategy[Node], enumerate_cells: Cells
) -> None:
    node = data.draw(given_networks)
    cells = enumerate_cells(node)
    names = sorted(node.sizes)
    assert cells.sum() == pytest.approx(1)
    for axis, name in enumerate(names):
        others = tuple(i for i in range(cells.ndim) if i != axis)
        assert marginal(node, name) == pytest.approx(cells.sum(axis=others), abs=1e-12)
    shares = st.sampled_from([0.0, 0.1, 0.5, 1.0])
    named = data.draw(st.sets(st.sampled_from(names)))
    evidence = {n: np.array(data.draw(st.lists(shares, min_size=k, max_size=k))) for n, k in node.sizes.items()}
    weighted = cells
    for axis, name in enumerate(names):
        if name in named:
            weighted = weighted * np.expand_dims(evidence[name], [i for i in range(len(names)) if i != axis])
    assert probability(node, {n: evidence[n] for n in named}) == pytest.approx(weighted.sum(), abs=1e-12)


def large(seed: int) -> CliqueTree:
    """Twelve columns, three parents each, and two given columns in 300 contexts: too many cells to enumerate."""
    rng = np.random.default_rng(seed)
    columns: list[Conditional] = []
    for place in range(12):
        above = [c.column for c in columns[-2:]] + (["g"] if place % 3 == 0 else ["h"] if place % 3 == 1 else [])
        factors = tuple(rng.gamma(0.3, size=(5 if name in "gh" else 4, 4)) for name in above)
        columns.append(
            Conditional(
                column=f"c{place}",
                bins=np.arange(8) // 2,
                counts=rng.gamma(0.3, size=8),
                parents=tuple(above),
                factors=factors,
            )
        )
    known = tuple(Given(column=name, bins=np.arange(5)) for name in "gh")
    weights = rng.dirichlet(np.ones(300))
    return CliqueTree(columns=tuple(columns), given=known, contexts=rng.integers(0, 5, (300, 2)), weights=weights)


def test_small_blocks_and_no_kept_norms_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = {f"c{i}": np.random.default_rng(i).random(8) for i in (2, 5, 11)}
    expected = probability(large(1), evidence), marginal(large(1), "c10")
    monkeypatch.setattr(infer, "MAX_CELLS", 200)
    in_blocks = probability(large(1), evidence), marginal(large(1), "c10")
    monkeypatch.setattr(clique_table, "MAX_NORM", 0)
    anew = probability(large(1), evidence), marginal(large(1), "c10")
    for found in (in_blocks, anew):
        assert found[0] == pytest.approx(expected[0], rel=1e-12)
        assert found[1] == pytest.approx(expected[1], rel=1e-12)


def test_kept_tables_do_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clique_table, "_KEPT", kept := {})
    monkeypatch.setattr(clique_table, "KEPT_CELLS", 5000)
    trees = [large(seed) for seed in range(4)]
    first = [marginal(tree, "c11") for tree in trees]
    assert sum(clique_table._held(table) for table in kept.values()) <= 5000
    for tree, expected in zip(trees, first, strict=True):
        assert (marginal(tree, "c11") == expected).all()


def test_joints_of_pairs_are_those_of_evidence() -> None:
    tree = large(5)
    joints = infer.tree_joints(tree)
    for column, parent in (("c5", "c3"), ("c5", "c4"), ("c11", "c9")):
        pair = joints[column].pairs[parent]
        for cell in np.ndindex(4, 4):
            halves = ((np.arange(8) // 2 == own).astype(float) for own in cell)
            evidence = dict(zip((parent, column), halves, strict=True))
            assert pair[cell] == pytest.approx(probability(tree, evidence), abs=1e-12)
    for place, column in ((0, "c3"), (1, "c4")):
        by_context = np.bincount(tree.contexts[:, place], weights=tree.weights)
        assert joints[column].pairs["gh"[place]].sum(axis=1) == pytest.approx(by_context)
        assert joints[column].pairs["gh"[place]].sum(axis=0) == pytest.approx(joints[column].shares)


def test_evidence_and_marginals_agree_where_enumeration_cannot() -> None:
    tree = large(7)
    for column in ("c0", "c6", "c11"):
        singles = [probability(tree, {column: np.eye(8)[code]}) for code in range(8)]
        assert singles == pytest.approx(marginal(tree, column), abs=1e-12)
    rest = probability(tree, {"c3": np.arange(8) / 8, "c9": np.arange(8) / 8})
    parts = [probability(tree, {"c3": np.arange(8) / 8, "c9": np.eye(8)[code] * code / 8}) for code in range(8)]
    assert sum(parts) == pytest.approx(rest, rel=1e-12)


def test_given_columns_take_no_evidence() -> None:
    with pytest.raises(ModelError, match="g: no such column"):
        probability(large(1), {"g": np.ones(5)})
