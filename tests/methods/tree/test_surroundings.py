"""Entities of few rows in proportion: from how many rows on they count fully, and what that does to shares of rows."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.methods.tree import method
from privbench.methods.tree.sampled import SampledRows
from privbench.methods.tree.surroundings import MOST_DOUBLINGS, best_full_rows, strata_axis
from privbench.privacy.features import Feature, Own
from privbench.schema.spec import Spec
from privbench.spn.infer import marginal

from ...forging import write_shop
from ...seeded import SeededEntropy


def sample(by_entity: np.ndarray) -> SampledRows:
    """Rows of entities that have so many each."""
    entities = np.repeat(np.arange(len(by_entity)), by_entity)
    return SampledRows(owners=entities, entities=entities, given={}, per_owner=1.0)


COLUMNS = [Feature(name="kind", size=5, ordered=False, source=Own("kind"))]


def full_rows(by_entity: np.ndarray, noise: float, *, scale: float, strata: bool = False, codes: int = 5) -> int:
    columns = [replace(column, size=codes) for column in COLUMNS]
    return best_full_rows(sample(by_entity), columns, noise, scale=scale, strata=strata)


PARETO = np.clip(np.floor(np.random.default_rng(0).pareto(1.0, 5000) + 1), 1, 2000).astype(np.int64)


@pytest.mark.parametrize("noise", [1e-3, 1.0, 1e3])
def test_entities_of_as_many_rows_count_fully_from_one_on(noise: float) -> None:
    """Their rows have the shares of entities; anything more wastes budget."""
    assert full_rows(np.ones(5000, np.int64), noise, scale=1.0) == 1
    assert full_rows(np.full(5000, 8), noise, scale=1.0) == 1


def test_the_more_budget_the_nearer_to_shares_of_rows() -> None:
    found = [full_rows(PARETO, noise, scale=1.0) for noise in (1000.0, 10.0, 1.0, 0.01)]
    assert found[0] == 1
    assert found[0] < found[1] < found[2] < found[3] == 2**MOST_DOUBLINGS


def test_a_sample_stands_for_more_entities() -> None:
    assert full_rows(PARETO, 10.0, scale=10.0) == full_rows(PARETO, 1.0, scale=1.0)
    assert full_rows(PARETO, 10.0, scale=10.0) > full_rows(PARETO, 10.0, scale=1.0)


def test_the_more_codes_the_more_noise_costs() -> None:
    assert full_rows(PARETO, 1.0, scale=1.0, codes=64) < full_rows(PARETO, 1.0, scale=1.0, codes=2)


def test_strata_take_the_place_of_rows_in_proportion() -> None:
    """Entities of one to four rows: a stratum each, so that weights distort nothing that is not undone."""
    few = np.random.default_rng(0).integers(1, 5, 5000)
    assert full_rows(few, 0.1, scale=1.0) == 4
    assert full_rows(few, 0.1, scale=1.0, strata=True) == 1


@settings(max_examples=50)
@given(st.lists(st.integers(1, 10**5), min_size=1, max_size=20), st.floats(1e-9, 1e9), st.floats(1e-6, 1e6))
def test_it_is_a_power_of_two_that_queries_take(rows: list[int], noise: float, scale: float) -> None:
    found = full_rows(np.array(rows), noise, scale=scale)
    assert 1 <= found <= 2**MOST_DOUBLINGS
    assert found & (found - 1) == 0


def test_weights_of_a_sample_are_those_of_the_query() -> None:
    rows = sample(np.array([1, 2, 8]))
    assert rows.weights(1) == pytest.approx([1, *[1 / 2] * 2, *[1 / 8] * 8])
    assert rows.weights(4) == pytest.approx([*[1 / 4] * 3, *[1 / 8] * 8])


def test_entities_in_proportion_make_lighter_strata() -> None:
    rows = sample(np.repeat([1, 30], 500))
    assert strata_axis(rows, 1.0, full_rows=1) is not None
    assert strata_axis(rows, 1.0, full_rows=32) is None, "entities of one row weigh too little to be told apart"


DDL = """CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER NOT NULL CHECK (age BETWEEN 0 AND 4));
CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person (id),
  kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 1), cost INTEGER NOT NULL CHECK (cost BETWEEN 0 AND 3));"""


@pytest.fixture(scope="module")
def visits() -> tuple[np.ndarray, np.ndarray]:
    """Whose visits are, and their kind, which depends on how many their person has: more by the hundred."""
    by_person = np.clip(np.floor(np.random.default_rng(3).pareto(0.9, 2000)), 0, 700).astype(np.int64)
    persons = np.repeat(np.arange(2000), by_person)
    many = np.log2(by_person[persons] + 1) / 10
    return persons, (np.random.default_rng(4).random(len(persons)) < many).astype(np.int64)


@pytest.fixture(scope="module")
def spec(visits: tuple[np.ndarray, np.ndarray], tmp_path_factory: pytest.TempPathFactory) -> Spec:
    source: Path = tmp_path_factory.mktemp("shares") / "source"
    person = "\n".join(["id,age", *(f"{i},{i % 5}" for i in range(2000))])
    rows = (f"{i},{p},{k},{i % 4}" for i, (p, k) in enumerate(zip(*visits, strict=True)))
    visit = "\n".join(["id,person_id,kind,cost", *rows])
    spec = draft(write_shop(source, DDL, person=person, visit=visit), unit="person")
    return spec.model_copy(update={"method": {"name": "tree", "strata": False, "single_share": 1}})  # no pairs


def share_of(spec: Spec, seed: int) -> float:
    """The share of a kind of visits that a model says."""
    model = fit(spec, epsilon="60", entropy=SeededEntropy(seed))
    return float(marginal(model.tables["visit"].network, "kind")[1])


def test_shares_of_rows_are_right_where_heavy_entities_differ(
    spec: Spec, visits: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = float(visits[1].mean())
    assert [share_of(spec, seed) for seed in (1, 2)] == pytest.approx([truth] * 2, abs=0.05)
    monkeypatch.setattr(method, "best_full_rows", lambda *_, **__: 1)
    assert share_of(spec, 1) < truth - 0.1, "without rows in proportion, entities of one row outvote the others"
