"""Models of every shape, fitted once: little noise, the same in every run, in receipts that verify."""

from collections.abc import Callable
from functools import cache

import pytest

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.model.file import load_model, save_model
from privbench.model.model import Model

from ..seeded import SeededEntropy
from .shapes import SHAPES

Fitted = Callable[[str, str], Model]
"""The model of a shape by a method."""


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    """The models, written and read again."""

    @cache
    def make(name: str, method: str) -> Model:
        folder = tmp_path_factory.mktemp(name)
        shape = SHAPES[name]
        spec = draft(shape.write(folder / "source"), domains="data", **shape.choices)
        save_model(fit(spec, epsilon=2000, method=method, entropy=SeededEntropy()), folder / "model")
        return load_model(folder / "model")

    return make
