"""A fitted database, and generated ones of it; fitted once."""

from pathlib import Path

import pytest

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.model.model import Model
from privbench.privacy.noise import TestEntropy as FixedEntropy

from .made import write_source


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_source(tmp_path_factory.mktemp("workload") / "source")


@pytest.fixture(scope="session")
def model(source: Path) -> Model:
    """Little noise, so that what is there is learnt; always the same, so that estimates are judged on one model."""
    spec = draft(source, domains="data", unit="person", public=["town"])
    return fit(spec, epsilon=2000, entropy=FixedEntropy(1))


@pytest.fixture(scope="session")
def bundle(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bundle") / "bundle"
    generate(model, out, seed=0)
    return out
