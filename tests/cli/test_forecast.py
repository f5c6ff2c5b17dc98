"""What `fit` and `generate` say before they start."""

import json
import shutil
from pathlib import Path

import pytest

import privbench
from privbench.cli import forecast
from privbench.fitting import memory
from privbench.generation.forecast import forecast_generation, lacking_room
from privbench.model.file import load_model

from .conftest import Run


@pytest.fixture
def fitted(shop: Path, run: Run, tmp_path: Path) -> Path:
    drafted = run("draft", shop, "--unit", "person", "--domains", "data", "-o", tmp_path / "s.yaml")
    assert drafted.code == 0, drafted.err
    assert run("fit", tmp_path / "s.yaml", "--epsilon", "3", "-o", tmp_path / "m.model").code == 0
    return tmp_path


def test_small_ones_say_nothing(fitted: Path, run: Run) -> None:
    again = run("fit", fitted / "s.yaml", "--epsilon", "3", "-o", fitted / "n.model")
    made = run("generate", fitted / "m.model", "-o", fitted / "b")
    assert "roughly" not in again.err + made.err


def test_large_ones_say_how_long_and_how_much_room(fitted: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "LONG", 0.0)
    monkeypatch.setattr(forecast, "MANY_VALUES", 0)
    again = run("fit", fitted / "s.yaml", "--epsilon", "3", "-o", fitted / "n.model")
    made = run("generate", fitted / "m.model", "-o", fitted / "b")
    assert "seconds of processor time" in again.err
    assert "MB of memory" in again.err
    assert "MB on disk" in made.err


def test_a_fit_tells_of_no_more_memory_than_it_may_take(
    fitted: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecast, "LONG", 0.0)
    monkeypatch.setattr(forecast, "MANY_VALUES", 0)
    monkeypatch.setattr(memory, "free_memory", lambda _: 200 * 10**6)
    monkeypatch.setattr(memory, "room_in_container", lambda _: None)
    fit = ("fit", fitted / "s.yaml", "--epsilon", "3", "--force", "-o", fitted / "n.model")
    assert "and 130 MB of memory" in run(*fit, "--memory", "2GB").err
    assert "and 100 MB of memory" in run(*fit).err


def test_programs_are_told_of_no_forecast(fitted: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "LONG", 0.0)
    monkeypatch.setattr(forecast, "MANY_VALUES", 0)
    made = run("generate", fitted / "m.model", "-o", fitted / "b", "--json")
    assert made.err == ""
    assert json.loads(made.out)["bundle"]


def test_a_method_without_a_forecast_is_fitted_all_the_same(
    fitted: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecast, "MANY_VALUES", 0)
    again = run("fit", fitted / "s.yaml", "--epsilon", "3", "--method", "independent", "-o", fitted / "n.model")
    assert again.code == 0
    assert "roughly" not in again.err


def test_a_full_disk_is_told_before_anything_is_written(
    fitted: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 0))
    made = run("generate", fitted / "m.model", "-o", fitted / "b")
    assert "MB free. Choose another disk" in made.err


@pytest.mark.parametrize(("form", "least"), [("parquet", 0.5), ("csv", 2)])
def test_the_forecast_grows_with_the_scale(fitted: Path, form: str, least: float) -> None:
    model = load_model(fitted / "m.model")
    one, ten = (forecast_generation(model, scale=scale, form=form) for scale in (1, 10))
    assert ten.rows == pytest.approx(10 * one.rows, rel=0.01)
    assert 8 * one.megabytes < ten.megabytes < 20 * one.megabytes
    assert one.megabytes * 1e6 / one.rows > least


def test_the_forecast_of_a_disk_is_about_right(fitted: Path) -> None:
    """Keys that count up, and those of owners, take hardly anything in Parquet."""
    model = load_model(fitted / "m.model")
    guess = forecast_generation(model, scale=1000, form="parquet").megabytes
    privbench.generate(model, fitted / "large", scale=1000, seed=1)
    real = sum(file.stat().st_size for file in (fitted / "large/data").iterdir()) / 1e6
    assert real / 1.5 < guess < 1.5 * real


def test_a_disk_with_room_is_fine(tmp_path: Path) -> None:
    assert lacking_room(tmp_path / "new", 0.1) is None
