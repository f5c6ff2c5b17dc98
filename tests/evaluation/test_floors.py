"""What an evaluation writes of private data on the way is for its owner alone, and goes away."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from privbench.evaluation.evaluate import evaluate

from .conftest import REAL, SYNTHETIC, Make


@pytest.fixture
def open_umask() -> Iterator[None]:
    """Whatever is created without a mode of its own can be read by all."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_a_floor_file_is_its_owners_alone_from_the_start(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    renamed = Path.replace

    def watched(path: Path, target: Path) -> Path:
        modes.append(path.stat().st_mode & 0o777)
        return renamed(path, target)

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a file that is created private needs no change of mode")

    monkeypatch.setattr(Path, "replace", watched)
    monkeypatch.setattr(Path, "chmod", refused)
    monkeypatch.setattr(os, "chmod", refused)
    evaluate(make("real", REAL), make("synthetic", SYNTHETIC), lambdas=(1,), cache=tmp_path / "cache")
    [kept] = (tmp_path / "cache").iterdir()
    assert modes == [0o600]
    assert kept.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("open_umask")
def test_copies_of_rows_lie_in_a_private_folder_and_go_away(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    modes: set[int] = set()

    def look(*_: object) -> None:
        modes.update(path.stat().st_mode & 0o777 for path in temporary.iterdir())

    evaluate(make("real", REAL), make("synthetic", SYNTHETIC), lambdas=(1,), progress=look)
    assert modes == {0o700}
    assert list(temporary.iterdir()) == []
