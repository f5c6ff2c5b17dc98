"""How often rows are referenced: rates found again from counts of one key per entity, and even ones stay even."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.methods.tree.pairs import NoisyTable
from privbench.methods.tree.reference_rates import ONE, RATE_EDGES, MeanKeys, rates_given_activity
from privbench.spn.fanouts import fanout_edges

from .tails import ACTIVITY, IN_DEGREE, ROWS, Floats, Made, doubling, edges, in_degree_up_to, noisy_table, pareto

AXES = (doubling(ACTIVITY), doubling(IN_DEGREE))
RATES: Floats = np.sqrt(RATE_EDGES[:-1] * RATE_EDGES[1:].astype(np.float64)) / ONE
ACTIVE = edges(ACTIVITY)[:-1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Referenced:
    """The rate of each row, and what was counted."""

    rates: Floats
    made: Made


def referenced(*, slope: float, level: float, spread: float, seed: int = 1) -> Referenced:
    """log2 of a rate is normal around a line in log2 of the activity, counts are Poisson draws."""
    rng = np.random.default_rng(seed)
    active = pareto(rng)
    rates = 2 ** (level + slope * np.log2(np.maximum(active, 0.5)) + spread * rng.normal(size=ROWS))
    return Referenced(rates=rates, made=Made(activity=active, number=rng.poisson(rates)))


def fitted(truth: Referenced, *, scale: float, error: float = 0.05, seed: int = 0) -> Floats:
    rng, cells = np.random.default_rng(seed), truth.made.cells(IN_DEGREE)
    table = noisy_table(cells, AXES, rng, scale=scale)
    keys = MeanKeys(mean=float(truth.made.number.mean()), error=error)
    counts = cells.sum(axis=1)
    return rates_given_activity(edges(ACTIVITY), counts, AXES, table, edges(IN_DEGREE), keys=keys)


def mean_rate(masses: Floats) -> float:
    return float(masses.sum(axis=0) @ RATES / masses.sum())


def slope_of(masses: Floats) -> float:
    """By how many doublings the rate grows with each of the activity, from 2 on."""
    rows = masses.sum(axis=1)
    there = (ACTIVE >= 2) & (rows > 3)
    means = (masses @ np.log2(RATES))[there] / rows[there]
    return float(np.polyfit(np.log2(ACTIVE[there]), means, 1, w=np.sqrt(rows[there]))[0])


def top_share(masses: Floats) -> float:
    """Which part of all keys reference the 1 % of rows with the highest rates."""
    rows = masses.sum(axis=0)[::-1]
    kept = np.minimum(rows, np.maximum(0.01 * rows.sum() - (np.cumsum(rows) - rows), 0.0))
    return float(kept @ RATES[::-1] / (rows @ RATES[::-1]))


UNEVEN = {
    "by chance": referenced(slope=0.0, level=-2.0, spread=1.8),
    "by activity": referenced(slope=0.7, level=-3.0, spread=0.7),
    "by activity alone": referenced(slope=1.0, level=-5.0, spread=0.7),
}
EVEN = referenced(slope=0.0, level=-2.0, spread=0.0)


@pytest.mark.parametrize("scale", [0.0, 2.0, 20.0])
@pytest.mark.parametrize("name", UNEVEN)
def test_rates_are_found_again_through_noise(name: str, scale: float) -> None:
    truth = UNEVEN[name]
    masses = fitted(truth, scale=scale)
    assert mean_rate(masses) == pytest.approx(truth.rates.mean(), rel=0.1)
    largest = np.sort(truth.rates)[::-1]
    assert top_share(masses) == pytest.approx(largest[: ROWS // 100].sum() / largest.sum(), rel=0.2)
    slope = {"by chance": 0.0, "by activity": 0.7, "by activity alone": 1.0}[name]
    assert slope_of(masses) == pytest.approx(slope, abs=0.1)


@pytest.mark.parametrize("scale", [0.0, 2.0, 20.0])
def test_even_references_come_out_even(scale: float) -> None:
    masses = fitted(EVEN, scale=scale)
    assert mean_rate(masses) == pytest.approx(0.25, rel=0.05)
    assert top_share(masses) < 0.03
    assert slope_of(masses) == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("scale", [100.0, 300.0])
def test_what_noise_may_have_made_is_not_uneven(scale: float) -> None:
    """All that stands out of such noise is how many keys there are."""
    shares = [top_share(fitted(EVEN, scale=scale, seed=seed)) for seed in range(5)]
    assert np.median(shares) < 0.15


def test_the_number_of_keys_is_met_where_the_table_says_little() -> None:
    """The table does not tell; who has a key does."""
    truth = UNEVEN["by activity"]
    for wanted in (0.05, 0.45, 2.0):
        cells = truth.made.cells(IN_DEGREE)
        table = NoisyTable(cells=np.zeros((AXES[0].size, AXES[1].size)), variance=1e12)
        masses = rates_given_activity(
            edges(ACTIVITY),
            cells.sum(axis=1),
            AXES,
            table,
            edges(IN_DEGREE),
            keys=MeanKeys(mean=wanted, error=0.02),
        )
        assert mean_rate(masses) == pytest.approx(wanted, rel=0.15)


def test_rows_that_own_little_are_corrected_by_how_many_show_no_count() -> None:
    """A law of a line does not hold for rows that own nothing: they are referenced ten times as often."""
    truth = UNEVEN["by activity alone"]
    rates = np.where(truth.made.activity == 0, 0.3, truth.rates)
    counts = np.random.default_rng(2).poisson(rates)
    masses = fitted(Referenced(rates=rates, made=Made(activity=truth.made.activity, number=counts)), scale=2.0)
    assert masses[0] @ RATES / masses[0].sum() == pytest.approx(0.3, rel=0.25)


@pytest.mark.parametrize("scale", [0.0, 20.0])
def test_masses_are_those_of_the_activity(scale: float) -> None:
    truth = UNEVEN["by activity"]
    masses = fitted(truth, scale=scale)
    assert masses.shape == (ACTIVITY.size, len(RATE_EDGES) - 1)
    assert masses.sum(axis=1) == pytest.approx(truth.made.cells(IN_DEGREE).sum(axis=1))


def test_bins_of_rates_are_whole_weights_that_ascend() -> None:
    assert RATE_EDGES.dtype == np.int64
    assert (np.diff(RATE_EDGES) > 0).all()
    assert RATE_EDGES[0] >= 1


ODD = {
    "nobody is referenced": (np.full(ACTIVITY.size, 10.0), np.zeros(IN_DEGREE.size)),
    "one row": (np.eye(ACTIVITY.size)[2], np.eye(IN_DEGREE.size)[1]),
    "all own nothing": (np.eye(ACTIVITY.size)[0] * 1000, np.eye(IN_DEGREE.size)[0] * 1000),
    "one row has all keys": (np.eye(ACTIVITY.size)[-1], np.eye(IN_DEGREE.size)[-1]),
}


@pytest.mark.parametrize("variance", [0.0, 1e-12, 4.0, 1e16])
@pytest.mark.parametrize("name", ODD)
def test_any_table_gives_rates(name: str, variance: float) -> None:
    counts, keys = ODD[name]
    cells = np.outer(counts, keys) / max(keys.sum(), 1.0)
    table = NoisyTable(cells=noisy_table(cells, AXES, np.random.default_rng(0), scale=0.0).cells, variance=variance)
    masses = rates_given_activity(
        edges(ACTIVITY), counts, AXES, table, edges(IN_DEGREE), keys=MeanKeys(mean=1.0, error=0.1)
    )
    assert np.isfinite(masses).all()
    assert (masses >= 0).all()
    assert masses.sum(axis=1) == pytest.approx(counts)


@settings(max_examples=20)
@given(
    st.integers(0, 10**6),
    st.floats(1e-3, 1e5),
    st.floats(1e-6, 1e4),
    st.floats(1e-3, 2.0),
    st.sampled_from([3, 60, 9000]),
)
def test_whatever_noise_says_rates_are_finite(seed: int, scale: float, mean: float, error: float, most: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.pareto(0.5, ACTIVITY.size) * (rng.random(ACTIVITY.size) < 0.7)
    counts[0] += 1
    in_degrees = fanout_edges(most)
    feature = doubling(in_degree_up_to(most))
    table = NoisyTable(cells=rng.normal(0, scale, (AXES[0].size, feature.size)), variance=scale**2)
    keys = MeanKeys(mean=mean, error=error)
    masses = rates_given_activity(edges(ACTIVITY), counts, (AXES[0], feature), table, in_degrees, keys=keys)
    assert np.isfinite(masses).all()
    assert (masses >= 0).all()
    assert masses.sum(axis=1) == pytest.approx(counts)
