"""Where the noise of a fit comes from when the caller passes none."""

import os
from pathlib import Path

import pytest

from privbench.fitting import fit as module
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.model.file import save_model
from privbench.privacy.noise import OsEntropy
from privbench.schema.spec import Spec

from ..seeded import SeededEntropy


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    (tmp_path / "t.csv").write_text("flag\n" + "true\nfalse\n" * 40)
    return draft(tmp_path, domains="data")


def test_without_a_source_of_its_own_a_fit_asks_the_operating_system(
    spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, urandom = [], os.urandom

    def watched(count: int) -> bytes:
        asked.append(count)
        return urandom(count)

    monkeypatch.setattr(module, "OsEntropy", OsEntropy)
    monkeypatch.setattr(os, "urandom", watched)
    assert fit(spec, epsilon=1).receipt["stamp"] is None
    assert sum(asked) > 0


def test_in_tests_it_draws_the_same_noise_every_time(spec: Spec, tmp_path: Path) -> None:
    for name, entropy in (("first", None), ("again", None), ("other", SeededEntropy(2))):
        save_model(fit(spec, epsilon=1, entropy=entropy), tmp_path / name)
    first, again, other = ((tmp_path / name).read_bytes() for name in ("first", "again", "other"))
    assert first == again != other
