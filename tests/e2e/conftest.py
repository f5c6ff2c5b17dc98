"""Models of every shape, fitted once: noise from the operating system, little of it."""

from collections.abc import Callable
from functools import cache

import pytest

from privbench.pipeline.draft import draft
from privbench.pipeline.fit import fit
from privbench.pipeline.model import Model
from privbench.pipeline.model_file import load_model, save_model

from .shapes import SHAPES


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Model]:
    """The model of a shape, written and read again."""

    @cache
    def make(name: str) -> Model:
        folder = tmp_path_factory.mktemp(name)
        shape = SHAPES[name]
        spec = draft(shape.write(folder / "source"), domains="data", **shape.choices)
        save_model(fit(spec, epsilon=2000), folder / "model")
        return load_model(folder / "model")

    return make
