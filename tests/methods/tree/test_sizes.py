"""How far off sizes are said to be: 0 where they are public, more with noise and along a chain, and about right."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.methods.tree.sizes import FALLING_ERROR, HIDDEN_ERROR, NoisyFanouts, Size, size_error, together
from privbench.schema.spec import Sizes, Spec
from privbench.schema.unit import Neighbours

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
    assert together(Size(0.0, 0.5), Size(0.0, 0.0)) == Size(0.0, 0.5)  # an error of 0 is that of a public size


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
