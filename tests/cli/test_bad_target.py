"""Targets that cannot be written, full disks, interrupts: exit 2 or 130, and nothing half-written is left."""

import errno
import os
import zipfile
from pathlib import Path

import pytest

from privbench.io.files import FileSink

from .conftest import DRAFT, Refused, Run, everything


def test_a_target_that_exists(
    model: Path, bundle: Path, spec: Path, shop: Path, run: Run, refused: Refused, tmp_path: Path
) -> None:
    commands: list[tuple[object, ...]] = [
        ("draft", shop, *DRAFT, "-o", spec),
        ("fit", spec, "--epsilon", "3", "-o", model),
        ("generate", model, "-o", bundle),
        ("synth", shop, *DRAFT, "--epsilon", "3", "-o", bundle),
    ]
    for command in commands:
        assert "--force" in refused(*command)
        assert run(*command, "--force").code == 0
    assert "not replaced even with `--force`" in refused("generate", model, "-o", shop, "--force")


def test_a_target_without_folder(model: Path, spec: Path, shop: Path, refused: Refused, tmp_path: Path) -> None:
    for command in (("draft", shop, *DRAFT), ("fit", spec, "--epsilon", "3"), ("generate", model)):
        message = refused(*command, "-o", tmp_path / "no" / "target")
        assert "does not exist" in message or "No such file" in message


def test_the_target_is_looked_at_first(shop: Path, refused: Refused, tmp_path: Path) -> None:
    """A model and a source that are not there would be the second thing to say."""
    for command in (("generate", tmp_path / "no"), ("draft", tmp_path / "no", *DRAFT), ("fit", "no", "--epsilon", "1")):
        assert "does not exist. Make it first." in refused(*command, "-o", tmp_path / "new" / "target")


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_full_disk(form: str, model: Path, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(FileSink, "write", full)
    assert "the disk is full" in refused("generate", model, "-o", tmp_path / "b", "--to", form)


def test_a_full_disk_for_the_model(
    spec: Path, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    assert "the disk is full" in refused("fit", spec, "--epsilon", "3", "-o", tmp_path / "m")


def test_an_interrupt_in_the_middle(model: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    before = everything(tmp_path)
    monkeypatch.setattr(FileSink, "write", interrupted)
    result = run("generate", model, "-o", tmp_path / "b")
    assert (result.code, result.out) == (130, "")
    assert "interrupted" in result.err
    assert everything(tmp_path) == before
