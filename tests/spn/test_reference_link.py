"""In-degrees: rows of a kind are referenced as often as they should be, and as unevenly."""

import numpy as np
import pytest
from numpy.typing import NDArray

from privbench.spn.clique import CliqueTree, Conditional
from privbench.spn.nodes import Leaf, Product
from privbench.spn.reference_link import EVEN, Rates, ReferenceLink, columns_near
from privbench.spn.sample import sample

ROWS = 40_000
EDGES = np.arange(5)
COUNTED = np.array([[0.97, 0.03, 0.0, 0.0], [0.5, 0.3, 0.15, 0.05]])
"""Counted keys of quiet and of famous rows."""


def _column(
    name: str, size: int, parents: tuple[str, ...] = (), factor: NDArray[np.float64] | None = None
) -> Conditional:
    factors = () if factor is None else (factor,)
    return Conditional(column=name, bins=np.arange(size), counts=np.ones(size), parents=parents, factors=factors)


NETWORK = Product(
    children=(
        CliqueTree(
            columns=(
                _column("kind", 2),
                _column("number", 4, ("kind",), COUNTED),
                _column("mood", 3, ("number",), np.ones((4, 3))),
                _column("far", 2, ("kind",), np.ones((2, 2))),
            )
        ),
        Leaf(column="alone", counts=np.ones(2)),
    )
)


def _link(rates: Rates) -> ReferenceLink:
    return ReferenceLink(column="number", edges=EDGES, exponent=0.0, null=None, uncounted=rates)


def test_near_are_parents_and_children() -> None:
    assert columns_near(NETWORK, "number") == ("kind", "mood")
    assert columns_near(NETWORK, "alone") == ()


@pytest.mark.parametrize("rates", [Rates(), Rates(shape=EVEN, more=4.0), Rates(shape=0.3, more=4.0)])
def test_rows_of_a_kind_keep_their_part(rates: Rates) -> None:
    codes = sample(NETWORK, ROWS, np.random.default_rng(1))
    found = _link(rates).in_degrees(NETWORK, codes, rng=np.random.default_rng(2))
    assert found.min() >= 0
    for kind in (0, 1):
        rows = codes["kind"] == kind
        assert found[rows].sum() == pytest.approx((1 + rates.more) * codes["number"][rows].sum(), rel=0.05)


def test_rates_are_as_uneven_as_their_shape() -> None:
    """Keys are thinned to one in five; what is drawn from the rest is distributed as all were, shape for shape."""
    shape, mean, part = 0.4, 1.5, 0.2
    rng = np.random.default_rng(3)
    keys = rng.poisson(rng.gamma(shape, mean / shape, ROWS))
    counted = np.minimum(rng.binomial(keys, part), 3)
    leaf = Leaf(column="number", counts=np.ones(4))
    found = _link(Rates(shape=shape, more=1 / part - 1)).in_degrees(leaf, {"number": counted}, rng=rng)
    size = int(max(found.max(), keys.max())) + 1
    drawn, real, seen = (np.bincount(x.astype(np.int64), minlength=size) / ROWS for x in (found, keys, counted))
    assert np.abs(drawn - real).sum() / 2 < 0.05
    assert np.abs(seen - real).sum() / 2 > 0.2


def test_few_rows_are_all_alike() -> None:
    codes = {"number": np.array([0, 2]), "kind": np.array([0, 1]), "mood": np.array([0, 1])}
    found = _link(Rates(shape=EVEN, more=2.0)).in_degrees(NETWORK, codes, rng=np.random.default_rng(0))
    assert found.tolist() == [2.0, 4.0]
