"""The same fit by both engines, and what the vault was told."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privbench
from privbench.model.model import Model
from privbench.privacy.part_counter import ValueCounts
from privbench.privacy.vault import Vault

from ..seeded import SeededEntropy

Exact = list[Any]


@contextmanager
def exact_answers() -> Iterator[Exact]:
    """All exact answers before their noise, as they can be compared."""
    told: Exact = []
    release = Vault._release

    def listening(vault: Vault, event: Any, exact: Any) -> Any:
        told.append(_plain(exact))
        return release(vault, event, exact)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Vault, "_release", listening)
        yield told


def _plain(exact: Any) -> Any:
    if isinstance(exact, ValueCounts):
        values = exact.values if isinstance(exact.values, np.ndarray) else exact.values.to_pylist()
        return [list(values), exact.counts.tolist()]
    return exact.tolist()


def fitted(spec: Any, folder: Path, *, engine: str, **words: Any) -> tuple[Exact, Model]:
    """A fit with the same noise in every engine."""
    with exact_answers() as told, warnings.catch_warnings():
        warnings.simplefilter("ignore", category=ResourceWarning)
        model = privbench.fit(
            spec, source=folder, engine=engine, entropy=SeededEntropy(1), **({"epsilon": "3"} | words)
        )
    return told, model


def content(model: Model, folder: Path) -> bytes:
    """The bytes of a model file."""
    privbench.save_model(model, folder / "it.model", force=True)
    return (folder / "it.model").read_bytes()
