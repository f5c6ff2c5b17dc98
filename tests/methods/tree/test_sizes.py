"""How far off sizes are said to be: 0 where they are public, more with noise and along a chain, and about right."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.methods.tree.sizes import (
    FALLING_ERROR,
    FEW_ROWS,
    HIDDEN_ERROR,
    MOST_DOUBLINGS,
    MOST_POWER,
    NoisyFanouts,
    best_limit,
    pooled,
    size_error,
    sized,
    tilt,
    tilted,
    together,
)
from privbench.schema.spec import Sizes, Spec
from privbench.schema.unit import Neighbours
from privbench.spn.clique import CliqueTree, Conditional
from privbench.spn.infer import marginal
from privbench.spn.nodes import Leaf, Node, Product

from ...forging import write_shop
from ...seeded import SeededEntropy

PERSONS = 1500
DDL = """CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER NOT NULL);
CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER REFERENCES person (id), cost INTEGER NOT NULL);
CREATE TABLE note (id INTEGER PRIMARY KEY, visit_id INTEGER NOT NULL REFERENCES visit (id), stars INTEGER NOT NULL);"""
FANOUTS = NoisyFanouts(shares=np.array([0.4, 0.3, 0.2, 0.1]), means=np.array([0.0, 1.0, 2.0, 9.0]), deviation=0.01)


def fanouts() -> tuple[np.ndarray, np.ndarray]:
    """Visits of each person, and notes of each visit."""
    rng = np.random.default_rng(3)
    visits = np.floor(rng.lognormal(0.5, 0.9, PERSONS)).astype(int)
    return visits, rng.poisson(1.5, visits.sum())


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    visits, notes = fanouts()
    owners = {"visit": np.repeat(np.arange(PERSONS), visits), "note": np.repeat(np.arange(visits.sum()), notes)}
    person = "\n".join(["id,age", *(f"{i},{i % 60}" for i in range(PERSONS))])
    visit = "\n".join(["id,person_id,cost", *(f"{i},{p},{i % 9}" for i, p in enumerate(owners["visit"]))])
    note = "\n".join(["id,visit_id,stars", *(f"{i},{v},{i % 5}" for i, v in enumerate(owners["note"]))])
    folder = tmp_path_factory.mktemp("sizes") / "source"
    return draft(write_shop(folder, DDL, person=person, visit=visit, note=note), unit="person", domains="data")


def test_noise_of_bins_that_stand_out() -> None:
    few = replace(FANOUTS, means=np.array([0.0, 1.0, 2.0, 6.0]))
    assert size_error(few, owners=0.0) == pytest.approx(0.01 * np.sqrt(1 + 4 + 36) / 1.3)
    assert size_error(few, owners=0.3) == pytest.approx(np.hypot(0.3, 0.01 * np.sqrt(41) / 1.3))
    assert size_error(replace(few, deviation=0.0), owners=0.0) == 0


def test_wide_bins_may_have_another_shape() -> None:
    assert size_error(replace(FANOUTS, deviation=0.0), owners=0.0) == pytest.approx(FALLING_ERROR * 0.9 / 1.6)


def test_rows_in_bins_that_do_not_stand_out_count_by_themselves() -> None:
    """0.9 of 1.6 rows are in a bin of a tenth of the owners."""
    noisy = replace(FANOUTS, deviation=0.03)
    hidden = 0.9 / 1.6
    noise, shape = 0.03 * np.sqrt(5) / 1.6, FALLING_ERROR * hidden
    expected = np.sqrt(noise**2 + shape**2 + (hidden * max(HIDDEN_ERROR, hidden)) ** 2)
    assert size_error(noisy, owners=0.0) == pytest.approx(expected)
    assert size_error(replace(FANOUTS, deviation=1.0), owners=0.0) == pytest.approx(np.hypot(1, shape))


def test_tables_without_rows() -> None:
    nothing = replace(FANOUTS, shares=np.array([1.0, 0.0, 0.0, 0.0]))
    assert size_error(nothing, owners=0.2) == 0.2
    assert together(sized(0.0, 0.5), sized(0.0, 0.0)) == sized(0.0, 0.5)  # an error of 0 is that of a public size


def test_errors_add_up_along_owners(spec: Spec) -> None:
    sizes = [fit(spec, epsilon=epsilon, entropy=SeededEntropy()).tables for epsilon in ("1", "20")]
    errors = [[tables[name].rows_error or 0.0 for name in ("person", "visit", "note")] for tables in sizes]
    for person, visit, note in errors:
        assert 0 == person < visit < note
    assert all(more > less for more, less in zip(errors[0][1:], errors[1][1:], strict=True))


def test_sizes_that_are_public_have_no_error(spec: Spec) -> None:
    tables = fit(spec.model_copy(update={"sizes": Sizes.PUBLIC}), epsilon="1", entropy=SeededEntropy()).tables
    assert {table.rows_error for table in tables.values()} == {0.0}


@pytest.mark.parametrize("method", ["tree", "independent", "paper"])
def test_where_entities_come_and_go_no_size_is_exact(method: str, spec: Spec) -> None:
    free = spec.model_copy(update={"neighbours": Neighbours.ADD_REMOVE})
    tables = fit(free, epsilon="5", method=method, entropy=SeededEntropy()).tables
    assert all(table.rows_error is not None and 0 < table.rows_error < 1 for table in tables.values())
    assert (tables["person"].rows_error or 0) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1", "5"])
def test_sizes_are_off_by_about_what_is_said(epsilon: str, spec: Spec) -> None:
    visits, notes = fanouts()
    real = {"visit": int(visits.sum()), "note": int(notes.sum())}
    runs = [fit(spec, epsilon=epsilon, entropy=SeededEntropy(seed)).tables for seed in range(12)]
    for name, rows in real.items():
        off = np.sqrt(np.mean([(tables[name].rows / rows - 1) ** 2 for tables in runs]))
        said = np.sqrt(np.mean([(tables[name].rows_error or 0) ** 2 for tables in runs]))
        assert said / 3 < off < said * 2, name


def test_a_lookup_is_as_sure_as_the_rows_that_reference_it(tmp_path: Path) -> None:
    ddl = """CREATE TABLE address (id INTEGER PRIMARY KEY, zone INTEGER NOT NULL);
    CREATE TABLE client (id INTEGER PRIMARY KEY, address_id INTEGER NOT NULL REFERENCES address (id), age INTEGER);"""
    rows = [f"{i},{i},{i % 50}" for i in range(300)]
    source = write_shop(
        tmp_path / "source",
        ddl,
        address="\n".join(["id,zone", *(f"{i},{i % 4}" for i in range(300))]),
        client="\n".join(["id,address_id,age", *rows]),
    )
    spec = draft(source, unit="client", lookups={"address": "client"}, domains="data")
    tables = fit(spec, epsilon="3", entropy=SeededEntropy()).tables
    assert (tables["client"].rows_error, tables["address"].rows_error) == (0.0, 0.0)


# -- direct counts -------------------------------------------------------------------------------------------------

PARETO = np.floor(np.random.default_rng(1).pareto(1.1, 20_000) + 1).astype(np.int64)
"""The rows of entities, of which the largest have most."""


def test_rows_are_counted_up_to_one_where_entities_have_one() -> None:
    found = best_limit(np.ones(1000, np.int64), scale=1.0, deviation=5.0)
    assert found.rows == 1
    assert found.error == pytest.approx(5 / 1000)


def test_the_less_noise_the_higher_the_limit() -> None:
    limits = [best_limit(PARETO, scale=1.0, deviation=deviation) for deviation in (1000.0, 100.0, 10.0, 0.01)]
    rows = [limit.rows for limit in limits]
    assert rows[0] < rows[1] < rows[2] < rows[3] <= 2**MOST_DOUBLINGS
    errors = [limit.error for limit in limits]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.15  # the tail may go on beyond the highest limit


def test_a_short_tail_is_not_taken_for_sure() -> None:
    """The sample ends at the limit because the model made it end there; real entities need not."""
    short = np.minimum(PARETO, 32)
    found = best_limit(short, scale=1.0, deviation=10.0)
    counted, half = (np.minimum(short, limit).sum() / short.sum() for limit in (found.rows, found.rows // 2))
    assert found.rows >= 32
    assert found.error >= (counted - half)


def test_no_more_is_spent_than_the_noise_that_is_asked_for_takes() -> None:
    limit = best_limit(PARETO, scale=1.0, deviation=10.0)
    same, part = limit.relaxed(limit.noise / 2)
    assert (same, part) == (limit, 1)
    relaxed, part = limit.relaxed(limit.noise * 4)
    assert part == Fraction(1, 4)
    assert relaxed.error**2 - limit.error**2 == pytest.approx(15 * limit.noise**2)


@pytest.mark.parametrize(("ratio", "some"), [(0.5, 0.2), (2.0, 0.8), (9.0, 0.999)])
def test_more_owners_have_the_one_row_that_they_may_have(ratio: float, some: float) -> None:
    shares = np.array([0.6, 0.4])
    factors = tilt(shares, np.array([0.0, 1.0]), ratio)
    assert shares * factors == pytest.approx([1 - some, some])


def test_a_sample_stands_for_as_many_as_it_is_said_to() -> None:
    assert best_limit(PARETO, scale=10.0, deviation=100.0) == best_limit(PARETO, scale=1.0, deviation=10.0)


@settings(max_examples=100)
@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=50), st.floats(1e-6, 1e9), st.floats(1e-6, 1e9))
def test_no_other_limit_is_better(rows: list[int], scale: float, deviation: float) -> None:
    by_entity = np.array(rows)
    found = best_limit(by_entity, scale=scale, deviation=deviation)
    assert found.rows & (found.rows - 1) == 0
    assert 0 <= found.error < np.inf
    counted = np.minimum(by_entity, found.rows).sum()
    assert found.error >= deviation * found.rows / (counted * scale) * (1 - 1e-9)


def test_a_measured_ratio_counts_by_how_sure_it_is() -> None:
    assert pooled(0.5, 1e-9, 0.3) == (pytest.approx(np.exp(0.5)), pytest.approx(0, abs=1e-8))
    ratio, error = pooled(0.5, 100.0, 0.3)
    assert ratio == pytest.approx(1, abs=1e-4)
    assert error == pytest.approx(0.3, rel=1e-3)


@settings(max_examples=50)
@given(st.floats(-3, 3), st.floats(1e-3, 2), st.floats(1e-3, 2))
def test_a_pooled_ratio_lies_between_and_is_surer_than_both(log_ratio: float, measured: float, expected: float) -> None:
    ratio, error = pooled(log_ratio, measured, expected)
    assert 0 <= np.log(ratio) * np.sign(log_ratio) <= abs(log_ratio) + 1e-12
    assert error <= min(measured, expected) * (1 + 1e-9)


# -- fanouts that meet them ----------------------------------------------------------------------------------------

MEANS = np.array([0.0, 1.0, 2.0, 5.0, 20.0, 90.0])
SHARES = np.array([0.4, 0.3, 0.2, 0.06, 0.03, 0.01])


@pytest.mark.parametrize("ratio", [0.5, 0.8, 1.0, 1.2, 3.0])
def test_a_tilt_gives_so_many_times_the_rows_and_as_many_without(ratio: float) -> None:
    after = SHARES * tilt(SHARES, MEANS, ratio)
    assert after.sum() == pytest.approx(1)
    assert after[0] == pytest.approx(SHARES[0])
    assert after @ MEANS == pytest.approx(ratio * SHARES @ MEANS, rel=1e-6)
    factors = (after / SHARES)[MEANS > FEW_ROWS]
    assert (np.diff(factors) * np.log(ratio) >= -1e-9).all(), "owners of many rows change the most"


@pytest.mark.parametrize(("ratio", "alone"), [(0.8, True), (1.2, True), (0.5, False), (3.0, False)])
def test_owners_of_few_rows_are_tilted_only_if_those_of_many_cannot_make_up_for_the_rest(
    ratio: float, alone: bool
) -> None:
    few = MEANS <= FEW_ROWS
    assert np.allclose(tilt(SHARES, MEANS, ratio)[few], 1) == alone


def test_where_owners_of_few_rows_have_nearly_all_they_are_tilted() -> None:
    shares = np.array([0.4, 0.3, 0.2, 0.0999, 0.0001, 0.0])
    factors = tilt(shares, MEANS, 1.1)
    assert shares * factors @ MEANS == pytest.approx(1.1 * shares @ MEANS, rel=1e-6)
    assert not np.allclose(factors[1:4], 1)


def test_a_tilt_goes_only_so_far() -> None:
    for ratio, power in ((1e9, MOST_POWER), (1e-9, -MOST_POWER)):
        after = SHARES * tilt(SHARES, MEANS, ratio)
        assert after[0] == pytest.approx(SHARES[0])
        steepest = SHARES[1:] * MEANS[1:] ** power
        assert after[1:] == pytest.approx(steepest * SHARES[1:].sum() / steepest.sum(), rel=1e-6)


@settings(max_examples=100)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=20), st.floats(1e-6, 1e6))
def test_any_tilt_is_finite(shares: list[float], ratio: float) -> None:
    assume(sum(shares) > 0)
    before = np.array(shares) / sum(shares)
    means = np.append([0.0], 2.0 ** np.arange(len(shares) - 1))
    factors = tilt(before, means, ratio)
    assert np.isfinite(factors).all()
    assert (factors >= 0).all()
    assert (before * factors).sum() == pytest.approx(1, abs=1e-6)


def conditional(column: str, bins: list[int], *parents: str, seed: int = 0) -> Conditional:
    rng = np.random.default_rng(seed)
    size = max(bins) + 1
    return Conditional(
        column=column,
        bins=np.array(bins),
        counts=rng.random(len(bins)) + 0.1,
        parents=parents,
        factors=tuple(rng.random((3, size)) + 0.1 for _ in parents),
    )


COARSE = [0, 1, 2, 3, 3, 3]
NETWORKS: dict[str, Node] = {
    "leaf": Leaf(column="rows", counts=SHARES * 500),
    "product": Product(children=(Leaf(column="age", counts=np.ones(3)), Leaf(column="rows", counts=SHARES * 7))),
    "alone in a clique tree": CliqueTree(columns=(conditional("rows", COARSE), conditional("age", [0, 1, 2]))),
    "single codes": CliqueTree(columns=(conditional("age", [0, 1, 2]), conditional("rows", list(range(6)), "age"))),
    "coarse bins": CliqueTree(columns=(conditional("age", [0, 1, 2]), conditional("rows", COARSE, "age", seed=1))),
    "two parents": CliqueTree(
        columns=(
            conditional("age", [0, 1, 2]),
            conditional("sex", [0, 1, 2], "age", seed=2),
            conditional("rows", COARSE, "age", "sex", seed=3),
        )
    ),
    "a parent of others": CliqueTree(
        columns=(conditional("rows", [0, 1, 2, 2, 2, 2]), conditional("age", [0, 1, 2], "rows", seed=4))
    ),
    "a clique tree in a product": Product(
        children=(
            Leaf(column="one", counts=np.ones(1)),
            CliqueTree(columns=(conditional("age", [0, 1, 2]), conditional("rows", COARSE, "age", seed=5))),
        )
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("ratio", [0.7, 1.5])
def test_a_tilted_network_has_about_so_many_times_the_rows(name: str, ratio: float) -> None:
    network = NETWORKS[name]
    shares = marginal(network, "rows")
    factors = tilt(shares, MEANS, ratio)
    after = tilted(network, "rows", factors)
    found = marginal(after, "rows")
    exact = shares * factors
    dependent = name in ("single codes", "coarse bins", "two parents", "a clique tree in a product")
    assert found == pytest.approx(exact, rel=0.25 if dependent else 1e-9)
    assert found @ MEANS == pytest.approx(ratio * shares @ MEANS, rel=0.1 if dependent else 1e-9)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_tilt_leaves_other_columns_and_how_they_depend_alone(name: str) -> None:
    network = NETWORKS[name]
    same = tilted(network, "rows", np.ones(6))
    for column in network.sizes:
        assert marginal(same, column) == pytest.approx(marginal(network, column))
    after = tilted(network, "rows", np.linspace(0.5, 2, 6))
    if "age" in network.sizes and name != "a parent of others":
        assert marginal(after, "age") == pytest.approx(marginal(network, "age"))
    assert tilted(network, "other", np.ones(1)).sizes == network.sizes


def test_codes_inside_a_coarse_bin_are_tilted_too() -> None:
    network = NETWORKS["coarse bins"]
    assert isinstance(network, CliqueTree)
    before = network.columns[1].counts[3:]
    after = tilted(network, "rows", np.array([1.0, 1, 1, 1, 2, 4]))
    assert isinstance(after, CliqueTree)
    assert after.columns[1].counts[3:] / before == pytest.approx([1, 2, 4])


def test_bins_without_mass_stay_empty() -> None:
    network = CliqueTree(
        columns=(
            conditional("age", [0, 1, 2]),
            replace(conditional("rows", [0, 1, 2], "age"), counts=np.array([3.0, 1.0, 0.0])),
        )
    )
    found = marginal(tilted(network, "rows", np.array([1.0, 2.0, 5.0])), "rows")
    assert np.isfinite(found).all()
    assert found.sum() == pytest.approx(1)
