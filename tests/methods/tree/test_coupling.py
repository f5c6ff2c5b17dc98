"""A fanout given the activity of its row: what is known of both is kept, and tails depend on each other as they do."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.methods.tree import coupling
from privbench.methods.tree.coupling import couple, edges_of, met, middles, normal
from privbench.methods.tree.pairs import NoisyTable
from privbench.privacy.features import Axis, Feature, Own

from .tails import ACTIVITY, FANOUT, Floats, Made, apart, code_of, coupled, doubling, edges, noisy_table, numbers, short

AXES = (doubling(ACTIVITY), doubling(FANOUT))
LAWS = {"steep": coupled(), "flat": coupled(slope=0.5, level=0.0)}


def fitted(made: Made, *, scale: float, seed: int = 0, axes: tuple[Axis, Axis] = AXES, within: bool = True) -> Floats:
    rng, cells = np.random.default_rng(seed), made.cells(FANOUT)
    activity = numbers(ACTIVITY, cells.sum(axis=1), rng, scale=scale)
    fanout = numbers(FANOUT, cells.sum(axis=0), rng, scale=scale, within=within)
    return couple(activity, fanout, axes, noisy_table(cells, axes, rng, scale=scale))


def lift(masses: Floats, active: int, number: int) -> float:
    """How many times as often as others rows with so much activity have so large a number."""
    a, b = code_of(ACTIVITY, active), code_of(FANOUT, number)
    return float(masses[a:, b:].sum() * masses.sum() / (masses[a:].sum() * masses[:, b:].sum()))


def slope(masses: Floats) -> float:
    """By how many doublings a number grows with each of the activity, from 16 on."""
    active, number = middles(edges(ACTIVITY)), middles(edges(FANOUT))
    rows = masses.sum(axis=1)
    there = (edges(ACTIVITY)[:-1] >= 16) & (rows > 1e-6)
    means = (masses @ number)[there] / rows[there]
    return float(np.polyfit(active[there], means, 1, w=np.sqrt(rows[there]))[0])


@pytest.mark.parametrize("scale", [0.0, 5.0, 40.0])
@pytest.mark.parametrize("law", LAWS)
def test_a_law_is_found_again_through_noise(law: str, scale: float) -> None:
    made = LAWS[law]
    masses, truth = fitted(made, scale=scale), made.cells(FANOUT)
    assert slope(masses) == pytest.approx(slope(truth), abs=0.1)
    for active, number in ((8, 2), (64, 16), (256, 64)):
        assert lift(masses, active, number) == pytest.approx(lift(truth, active, number), rel=0.3)


@pytest.mark.parametrize("scale", [0.0, 5.0, 40.0])
def test_numbers_that_do_not_depend_on_activity_stay_so(scale: float) -> None:
    masses = fitted(apart(), scale=scale, within=False)
    assert slope(masses) == pytest.approx(0, abs=0.05)
    assert lift(masses, 8, 2) == pytest.approx(1, abs=0.1)
    assert lift(masses, 64, 16) == pytest.approx(1, abs=0.4)


def test_tails_inside_the_last_bins_depend_on_each_other() -> None:
    """The table ends at 8 rows, as if all beyond were alike; the law goes on beyond it."""
    axes = short(AXES[0], ACTIVITY, 16), short(AXES[1], FANOUT, 8)
    made = LAWS["steep"]
    found = lift(fitted(made, scale=20.0, axes=axes, within=False), 256, 64)
    truth = lift(made.cells(FANOUT), 256, 64)
    assert truth / 2 < found < truth * 2
    a, b = code_of(ACTIVITY, 16), code_of(FANOUT, 8)
    alike = (made.cells(FANOUT)[a:, b:].sum() * made.cells(FANOUT).sum()) / (
        made.cells(FANOUT)[a:].sum() * made.cells(FANOUT)[:, b:].sum()
    )
    assert alike < truth / 3, "the tails must depend on each other by more than the bins say"


@pytest.mark.parametrize("scale", [0.0, 40.0])
def test_margins_are_those_of_the_single_columns(scale: float) -> None:
    rng, cells = np.random.default_rng(3), LAWS["steep"].cells(FANOUT)
    activity = numbers(ACTIVITY, cells.sum(axis=1), rng, scale=scale)
    fanout = numbers(FANOUT, cells.sum(axis=0), rng, scale=scale)
    masses = couple(activity, fanout, AXES, noisy_table(cells, AXES, rng, scale=scale))
    assert masses.shape == (ACTIVITY.size, FANOUT.size)
    assert masses.sum(axis=1) == pytest.approx(activity.counts, abs=1e-6)
    clear = fanout.groups[-1]
    assert masses.sum(axis=0)[:clear] == pytest.approx(fanout.counts[:clear], rel=0.02, abs=2 + scale / 4)
    assert masses[:, clear:].sum() == pytest.approx(fanout.counts[clear:].sum(), rel=0.02, abs=2 + scale / 4)


def test_a_part_of_the_activity_is_hardly_ever_larger_than_it() -> None:
    rng, cells = np.random.default_rng(3), LAWS["steep"].cells(FANOUT)
    activity = numbers(ACTIVITY, cells.sum(axis=1), rng, scale=5.0)
    fanout = numbers(FANOUT, cells.sum(axis=0), rng, scale=5.0)
    beyond = edges(FANOUT)[:-1] > (edges(ACTIVITY)[1:] - 1)[:, None]
    table = noisy_table(cells, AXES, rng, scale=40.0)
    for within in (True, False):
        masses = couple(activity, replace(fanout, within=within), AXES, table)
        assert (masses[beyond].sum() < 1e-4 * masses.sum()) == within


def test_hidden_codes_follow_from_the_activity() -> None:
    """Noise hides all numbers from a few on; that 2% of rows are very active says how long the tail is."""
    made = LAWS["steep"]
    rng, cells = np.random.default_rng(5), made.cells(FANOUT)
    activity = numbers(ACTIVITY, cells.sum(axis=1), rng, scale=10.0)
    fanout = replace(numbers(FANOUT, cells.sum(axis=0), rng, scale=10.0, within=False), clear=6)
    wrong = replace(fanout, counts=np.append(fanout.counts[:6], [fanout.counts[6:].sum(), *np.zeros(FANOUT.size - 7)]))
    masses = couple(activity, wrong, AXES, noisy_table(cells, AXES, rng, scale=10.0))
    tail = code_of(FANOUT, 64)
    assert masses[:, tail:].sum() == pytest.approx(cells[:, tail:].sum(), rel=0.3)


def one_cell(active: int, number: int, rows: float) -> Floats:
    """Rows that are all alike."""
    cells = np.zeros((ACTIVITY.size, FANOUT.size))
    cells[active, number] = rows
    return cells


ODD: dict[str, Floats] = {
    "nobody": one_cell(0, 0, 0.0),
    "one entity": one_cell(3, 2, 1.0),
    "all have none": one_cell(0, 0, 1000.0),
    "all have the most": one_cell(-1, -1, 1000.0),
}


@pytest.mark.parametrize("scale", [1e-3, 3.0, 1e6])
@pytest.mark.parametrize("name", ODD)
def test_any_table_gives_masses(name: str, scale: float) -> None:
    rng, cells = np.random.default_rng(1), ODD[name]
    both = [
        numbers(ACTIVITY, cells.sum(axis=1), rng, scale=scale),
        numbers(FANOUT, cells.sum(axis=0), rng, scale=scale),
    ]
    some = [replace(n, counts=np.maximum(n.counts, 1e-6)) for n in both]  # as a fit has it: counts have a total
    masses = couple(*some, AXES, noisy_table(cells, AXES, rng, scale=scale))
    assert masses.shape == cells.shape
    assert np.isfinite(masses).all()
    assert (masses >= 0).all()
    assert masses.sum() == pytest.approx(some[1].counts.sum(), rel=1e-3, abs=1e-6)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(0.01, 1e5), st.integers(0, 30), st.integers(0, 30), st.booleans())
def test_whatever_noise_says_masses_are_finite_and_keep_the_activity(
    seed: int, scale: float, clear_activity: int, clear: int, within: bool
) -> None:
    rng = np.random.default_rng(seed)
    activity = numbers(ACTIVITY, rng.pareto(0.5, ACTIVITY.size) * 10, rng, scale=scale)
    fanout = numbers(FANOUT, rng.pareto(0.5, FANOUT.size) * 10, rng, scale=scale, within=within)
    activity = replace(activity, clear=min(clear_activity, ACTIVITY.size))
    fanout = replace(fanout, clear=min(clear, FANOUT.size))
    table = NoisyTable(cells=rng.normal(0, scale, (AXES[0].size, AXES[1].size)), variance=scale**2)
    masses = couple(activity, fanout, AXES, table)
    assert np.isfinite(masses).all()
    assert (masses >= 0).all()
    total = fanout.counts.sum()
    assert masses.sum(axis=1) == pytest.approx(
        activity.counts * (total / activity.counts.sum()), rel=1e-6, abs=1e-6 * total
    )


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 12))
def test_margins_are_met(seed: int, rows: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    wanted = rng.random((rows, columns)) + 0.05
    masses = met(rng.random((rows, columns)) + 0.1, wanted.sum(axis=1), wanted.sum(axis=0))
    assert masses.sum(axis=1) == pytest.approx(wanted.sum(axis=1), rel=1e-6)
    assert masses.sum(axis=0) == pytest.approx(wanted.sum(axis=0), rel=1e-3)


def test_a_margin_of_nothing_leaves_nothing() -> None:
    masses = met(np.ones((2, 3)), np.array([2.0, 1.0]), np.array([3.0, 0.0, 0.0]))
    assert masses[:, 0] == pytest.approx([2, 1])
    assert masses[:, 1:].sum() == 0


def test_the_normal_distribution_function() -> None:
    assert normal(np.array([-1.96, 0.0, 1.0])) == pytest.approx([0.025, 0.5, 0.8413], abs=1e-3)
    assert normal(np.array([-1e9, 1e9])) == pytest.approx([0, 1], abs=1e-20)


def test_the_middle_of_none_is_below_that_of_one() -> None:
    found = middles(np.array([0, 1, 2, 4, 8]))
    assert found[:2].tolist() == [-1, 0]
    assert found[3] == pytest.approx(np.log2(np.sqrt(4 * 7)))


def test_only_numbers_of_rows_have_edges() -> None:
    with pytest.raises(ValueError, match="age: has no numbers of rows"):
        edges_of(Feature(name="age", size=3, ordered=True, source=Own("age")))


def test_independence_is_one_of_the_laws() -> None:
    fanout = numbers(FANOUT, np.ones(FANOUT.size), np.random.default_rng(0), scale=0.0, within=False)
    activity = numbers(ACTIVITY, np.ones(ACTIVITY.size), np.random.default_rng(0), scale=0.0)
    alone = coupling._laws(activity, fanout)[0]
    assert alone == pytest.approx(np.broadcast_to(alone[0], alone.shape))
