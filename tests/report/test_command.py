"""`evaluate` as a user types it: the page beside the figures, and the page to publish."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from privbench.cli.main import main

from .conftest import Shop

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `privbench evaluate`: its exit code, and all that it says."""

    def call(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["privbench", "evaluate", *map(str, arguments)])
        code: object = 0
        try:
            main()
        except SystemExit as leaving:
            code = leaving.code
        streams = capsys.readouterr()
        return int(str(code or 0)), streams.out + streams.err

    return call


def test_the_report_stands_beside_the_figures(shop: Shop, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "report"
    given = ("--real", shop.result.real, "--synthetic", shop.bundle, "--model", shop.model_file, "-o", out)
    given = (*given, "--cache", tmp_path / "cache")
    code, told = run(*given)
    assert (code, "report.html" in told) == (0, True), told
    assert {p.name for p in out.iterdir()} == {"report.html", "result.json"}
    assert "not for publishing" in (out / "report.html").read_text("utf-8")
    assert run(*given, "--force")[0] == 0


def test_the_publishable_page_is_alone(shop: Shop, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "page"
    code, told = run("--publishable", "--synthetic", shop.bundle, "--model", shop.model_file, "-o", out)
    assert (code, "may be published" in told) == (0, True), told
    assert [p.name for p in out.iterdir()] == ["report.html"]
    assert "not for publishing" not in (out / "report.html").read_text("utf-8")


def test_a_publishable_page_takes_nothing_real(shop: Shop, run: Run, tmp_path: Path) -> None:
    bundle, model, real = ("--synthetic", shop.bundle), ("--model", shop.model_file), ("--real", shop.result.real)
    for words, named in (
        (("--publishable", *bundle, *model, *real), "--real"),
        (("--publishable", *bundle), "--model"),
        (("--publishable", "--synthetic", shop.result.real, *model), "bundle"),
        (bundle, "--real"),
    ):
        code, told = run(*words, "-o", tmp_path / "out")
        assert (code, named in told, "Traceback" in told) == (2, True, False), told
        assert not (tmp_path / "out").exists()
