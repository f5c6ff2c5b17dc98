"""Tables of pairs in two stages: all that there is gets spent, no more, and two measurements count as one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.methods.tree.pairs import HEAVIEST, LIGHTEST, MOST_FIRST, measure_again, measure_first
from privbench.methods.tree.plan import plan_table
from privbench.methods.tree.structure import Candidates
from privbench.methods.tree.weighed import WeighedTable
from privbench.privacy.calibrate import Noise
from privbench.privacy.features import Axis, Feature, Own
from privbench.privacy.vault import Measured


@dataclass
class Purse:
    """A table that adds up what is spent; the noise of a measurement has variance 1 over its amount."""

    spent: list[Fraction] = field(default_factory=list)

    def measure_all(self, requests: Sequence[tuple[Sequence[Axis], Fraction]]) -> list[Measured]:
        self.spent += [amount for _, amount in requests]
        assert all(amount > 0 for amount in self.spent)
        return [
            Measured(
                values=np.full([axis.size for axis in axes], 7),
                noise=Noise(gaussian=True, scale=float(1 / amount) ** 0.5),
                unit=1,
            )
            for axes, amount in requests
        ]


def candidates(sizes: Sequence[int]) -> Candidates:
    features = [Feature(name=f"c{at}", size=size, ordered=False, source=Own(f"c{at}")) for at, size in enumerate(sizes)]
    axes = tuple(Axis(feature, np.arange(feature.size)) for feature in features)
    return Candidates(axes=axes, masses=tuple(np.ones(s) for s in sizes), own=len(sizes), strata=1, deviation=1.0)


@given(st.lists(st.integers(2, 60), min_size=3, max_size=7), st.integers(0, 6), st.integers(1, 30))
def test_all_is_spent_and_every_pair_has_one_table(sizes: list[int], further: int, most: int) -> None:
    purse, found = Purse(), candidates(sizes)
    table = cast(WeighedTable, purse)
    firsts = [(0, column) for column in range(1, len(sizes))]
    pairs = [*firsts, *[(1, column) for column in range(2, len(sizes))][:further]]
    first = measure_first(table, found, firsts, most=max(most, len(firsts)), amount=Fraction(1))
    assert first.total == sum(purse.spent)
    assert float(first.total) <= MOST_FIRST + 1e-9
    tables = measure_again(table, found, pairs, first, amount=1 - first.total)
    assert set(tables) == set(pairs)
    assert 1 - 1e-6 < float(sum(purse.spent)) <= 1
    precision = np.array([1 / tables[pair].variance for pair in pairs])
    assert precision.sum() == pytest.approx(1, rel=1e-5)  # with Gaussian noise two measurements add up to one
    assert all(np.allclose(tables[pair].cells, 7) for pair in pairs)


def test_pairs_of_one_size_end_up_alike_whenever_they_were_measured() -> None:
    purse, found = Purse(), candidates([4] * 6)
    table = cast(WeighedTable, purse)
    firsts, further = [(0, c) for c in range(1, 6)], [(1, 2), (1, 3)]
    first = measure_first(table, found, firsts, most=20, amount=Fraction(1))
    tables = measure_again(table, found, [*firsts, *further], first, amount=1 - first.total)
    variances = [table.variance for table in tables.values()]
    assert variances == pytest.approx([7.0] * 7, rel=1e-5)


def test_large_tables_get_more_within_limits() -> None:
    purse, found = Purse(), candidates([2, 2, 90, 90])
    first = measure_first(cast(WeighedTable, purse), found, [(0, 1), (0, 2), (2, 3)], most=9, amount=Fraction(1))
    small, middle, large = (float(first.spent[pair]) for pair in ((0, 1), (0, 2), (2, 3)))
    assert small < middle < large
    assert large / small == pytest.approx(min(HEAVIEST, 90 / ((2 + 180**0.5 + 90) / 3)) / LIGHTEST, rel=1e-5)


def test_no_pairs_cost_nothing() -> None:
    purse = Purse()
    first = measure_first(cast(WeighedTable, purse), candidates([2, 2]), [], most=3, amount=Fraction(1))
    assert measure_again(cast(WeighedTable, purse), candidates([2, 2]), [], first, amount=Fraction(1)) == {}
    assert not purse.spent


def test_with_a_delta_more_pairs_are_chosen_in_two_stages() -> None:
    pure, gaussian = (plan_table(24_000, 100, columns=20, given=0, gaussian=g) for g in (False, True))
    assert (pure.pairs, gaussian.pairs) == (6, 30)
    assert (pure.staged, gaussian.staged) == (False, True)
    assert gaussian.single_share < pure.single_share
    assert not plan_table(24_000, 1000, columns=20, given=0, gaussian=True).staged  # nothing to choose
