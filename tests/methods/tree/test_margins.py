"""Masses of bins from counts of columns, also where no row was counted at all."""

from pathlib import Path

import numpy as np
import pytest

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.methods.tree.pairs import margins_of
from privbench.methods.tree.single import Singles
from privbench.methods.tree.structure import Candidates
from privbench.privacy.features import Axis, Feature, Own

from ...forging import write_shop
from ...seeded import SeededEntropy

BINS = (np.array([0, 0, 1]), np.array([0, 1]), np.array([0, 1, 1, 2]))
"""Of two own columns and a given one."""


def margins(first: list[float], second: list[float], *, entities: float) -> list[list[float]]:
    features = [
        Feature(name=f"c{at}", size=len(bins), ordered=False, source=Own(f"c{at}")) for at, bins in enumerate(BINS)
    ]
    axes = tuple(Axis(feature, bins) for feature, bins in zip(features, BINS, strict=True))
    masses = tuple(np.full(axis.size, 5.0) for axis in axes)
    candidates = Candidates(axes=axes, masses=masses, own=2, strata=1, deviation=1.0)
    counts = (np.array(first), np.array(second))
    singles = Singles(strata=np.array([entities]), error=0.0, counts=counts, exponents={}, deviations={}, clear={})
    return [found.tolist() for found in margins_of(candidates, singles)]


def test_counts_are_added_up_by_bin_and_given_masses_scaled_to_the_same_total() -> None:
    assert margins([1, 2, 3], [0, 6], entities=6) == [[3, 3], [0, 6], [2, 2, 2]]


@pytest.mark.parametrize("entities", [0.0, 6.0])
def test_without_a_row_all_bins_are_alike(entities: float) -> None:
    total = max(entities, 1e-9)
    halves, thirds = [total / 2] * 2, [total / 3] * 3
    assert margins([0, 0, 0], [0, 0], entities=entities) == [pytest.approx(m) for m in (halves, halves, thirds)]


def test_one_column_without_counts_leaves_the_others_as_they_are() -> None:
    assert margins([0, 0, 0], [2, 4], entities=6)[:2] == [[3, 3], [2, 4]]


DDL = """CREATE TABLE client (id INTEGER PRIMARY KEY, age INTEGER NOT NULL CHECK (age BETWEEN 0 AND 3));
CREATE TABLE visit (id INTEGER PRIMARY KEY, client INTEGER NOT NULL REFERENCES client (id),
  cost INTEGER NOT NULL CHECK (cost BETWEEN 0 AND 3), paid INTEGER NOT NULL CHECK (paid BETWEEN 0 AND 3));"""


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("clients", [0, 60])
def test_empty_tables_are_learnt_with_hardly_any_noise(clients: int, delta: str, tmp_path: Path) -> None:
    rows = "".join(f"{at},{at % 4}\n" for at in range(clients))
    source = write_shop(tmp_path / "source", DDL, client=f"id,age\n{rows}", visit="id,client,cost,paid\n")
    spec = draft(source, unit="client", neighbours="add-remove")
    model = fit(spec, epsilon="100000", delta=delta, entropy=SeededEntropy(1))
    assert model.tables["visit"].rows < 1
    generate(model, tmp_path / "bundle", seed=1)
