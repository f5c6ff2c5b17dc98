"""`evaluate` as a user types it: the page beside the figures, and the page to publish."""

import json
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


def test_runtimes_are_told_and_written(shop: Shop, run: Run, tmp_path: Path) -> None:
    queries, out = tmp_path / "q.sql", tmp_path / "report"
    queries.write_text("SELECT COUNT(*) FROM customer WHERE age > 3; SELECT COUNT(*) FROM nowhere;")
    given = ("--real", shop.result.real, "--synthetic", shop.bundle, "--runtime", "duckdb", "--no-floor", "-o", out)
    code, told = run(*given, "--workload", queries)
    assert code == 0, told
    for words in ("runtime, DuckDB", "same plans", "discrepancy of times, mean", "real again", "query 2 failed on"):
        assert words in told, words
    assert "buffers off by" not in told  # DuckDB tells none
    written = json.loads((out / "result.json").read_text("utf-8"))["runtime"]
    assert set(written["comparisons"]) == {"again", "resample", "synthetic"}
    assert (written["clock"], written["failed"], len(written["queries"])) == ("cpu", 1, 2)


def test_runtimes_need_queries(shop: Shop, run: Run, tmp_path: Path) -> None:
    bundle, real = ("--synthetic", shop.bundle), ("--real", shop.result.real)
    code, told = run(*bundle, *real, "--runtime", "auto", "-o", tmp_path / "out")
    assert (code, "--workload" in told) == (2, True), told
    code, told = run("--publishable", *bundle, "--model", shop.model_file, "--runtime", "auto", "-o", tmp_path / "out")
    assert (code, "--runtime" in told) == (2, True), told
