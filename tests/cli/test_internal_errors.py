"""A mistake of ours: one message without a word of the data, a file of details, and no model is lost."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import privbench
from privbench.errors import TargetError
from privbench.evaluation import measured_run
from privbench.model.file import save_model

from .conftest import DRAFT, Run

VALUE = "born 4711"


def _broken(*_args: Any, **_options: Any) -> Any:
    table, column = "visit", "cost"
    raise ValueError(f"cannot convert {VALUE!r} of {len(table + column)}")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


SYNTH = (*DRAFT, "--epsilon", "9", "--no-rehearsal")


def test_only_its_place_is_shown_and_details_are_kept(
    shop: Path, run: Run, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privbench.methods.tree.method.learn_table", _broken)
    result = run("synth", shop, *SYNTH, "-o", shop.parent / "bundle")
    assert (result.code, result.out) == (70, "")
    assert re.match(r"internal error: visit\.cost: ValueError in tree/method\.py:\d+, ", result.err)
    assert VALUE not in result.err
    assert "no bundle was written" in result.err
    [details] = temporary.glob("privbench-error-*.txt")
    assert f"details for that are in {details}." in result.err
    assert VALUE in details.read_text()
    assert "Traceback" in details.read_text()
    assert details.stat().st_mode & 0o777 == 0o600


def test_as_json(shop: Path, run: Run, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privbench.methods.tree.method.learn_table", _broken)
    result = run("synth", shop, *SYNTH, "-o", shop.parent / "bundle", "--json")
    told = json.loads(result.out)["error"]
    assert (told["class"], told["exit"], result.code) == ("InternalError", 70, 70)
    assert told["message"].startswith("visit.cost: ValueError in ")
    assert VALUE not in result.out + result.err
    assert len(list(temporary.glob("privbench-error-*.txt"))) == 1


def test_details_that_cannot_be_kept(shop: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privbench.schema.spec.parse_yaml", _broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    (tmp_path / "spec.yaml").write_text("version: 1")
    result = run("fit", tmp_path / "spec.yaml", "--epsilon", "9", "-o", tmp_path / "model")
    assert result.code == 70
    assert "details could not be kept (No such file or directory)" in result.err


@pytest.mark.parametrize("error", [_broken, TargetError("bundle: the disk is full.")])
def test_synth_that_fails_after_the_fit_keeps_the_model(
    error: Any, shop: Path, run: Run, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: Any, **_options: Any) -> None:
        raise error

    monkeypatch.setattr("privbench.synthesis.write_bundle", _broken if error is _broken else fail)
    result = run("synth", shop, *SYNTH, "-o", shop.parent / "bundle")
    assert result.code == (70 if error is _broken else 2)
    kept = shop.parent / "bundle.model"
    assert f"kept in {kept}: `privbench generate {kept} -o OUT`" in result.err
    assert privbench.verify(kept).status == "conditional"
    assert not (shop.parent / "bundle").exists()


def test_a_model_without_a_place_is_kept_when_generation_fails(
    shop: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privbench.synthesis.write_bundle", _broken)
    with pytest.raises(ValueError, match=VALUE) as failed:
        privbench.synth(shop, unit="person", domains="data", epsilon=9, rehearse=False)
    [path] = temporary.glob("privbench-kept-*/kept.model")
    assert any(str(path) in note for note in failed.value.__notes__)
    assert set(privbench.load_model(path).tables) == {"person", "visit"}


def test_a_model_that_cannot_be_written_is_kept_elsewhere(
    shop: Path, run: Run, spec: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = shop.parent / "model"

    def save(model: privbench.Model, path: Path, *, force: bool = False) -> None:
        if path == target:
            raise TargetError(f"{path}: cannot be written: No space left on device.")
        save_model(model, path, force=force)

    monkeypatch.setattr("privbench.synthesis.save_model", save)
    result = run("fit", spec, "--epsilon", "9", "-o", target)
    [path] = temporary.glob("privbench-kept-*/kept.model")
    assert result.code == 2
    assert re.search(f"No space left on device. The model is paid for, and kept in {path}", result.err)
    assert privbench.verify(path).status == "conditional"


def test_a_run_of_compare_tells_no_value(
    spec: Path, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "place").mkdir()
    monkeypatch.setattr(measured_run, "fit", _broken)
    monkeypatch.setattr(measured_run, "_taken_over", lambda _: str(shop))
    with pytest.raises(SystemExit) as left:
        measured_run.main(str(spec), str(shop), "tree", "9", "0", str(tmp_path / "out"), "1")
    assert "visit.cost: ValueError in " in str(left.value.code)
    assert VALUE not in str(left.value.code)
