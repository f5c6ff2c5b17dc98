"""`privbench budget`, and limits on the command line."""

import json
from pathlib import Path

import pytest

from privbench.fitting.budget_record import VARIABLE
from privbench.schema.spec import read_spec

from .conftest import DRAFT, Run


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "state" / "budget.jsonl"
    monkeypatch.setenv(VARIABLE, str(path))
    return path


def test_the_sum_over_releases(record: Path, spec: Path, shop: Path, run: Run) -> None:
    assert "No release is recorded" in run("budget").out
    for epsilon in ("5", "2.5"):
        out = spec.parent / f"{epsilon}.model"
        assert run("fit", spec, "--epsilon", epsilon, "--method", "independent", "-o", out).code == 0
    read = json.loads(run("budget", shop, "--json").out)
    [source] = read["sources"]
    assert source["totals"] == [
        {"unit": "person", "neighbours": "replace", "epsilon": "15/2", "delta": "0/1", "releases": 2}
    ]
    assert [Path(entry["out"]).name for entry in source["releases"]] == ["5.model", "2.5.model"]
    assert (read["record"], read["damaged_lines"]) == (str(record), [])
    assert "7.5" in run("budget", shop).out
    assert "7.5" in run("budget").out
    assert "No release of this source is recorded" in run("budget", shop.parent).out


def test_a_limit_refuses_a_fit_and_a_bundle(record: Path, spec: Path, shop: Path, run: Run) -> None:
    out = spec.parent / "out"
    fit = ("fit", spec, "--epsilon", "5", "--method", "independent", "--budget-limit", "9", "-o", out)
    assert run(*fit).code == 0
    synth = ("synth", shop, *DRAFT, "--epsilon", "5", "--budget-limit", "9", "-o", out.with_name("bundle"))
    compare = ("compare", shop, *DRAFT, "--epsilon", "1,2", "--runs", "1", "--methods", "independent,tree")
    for command in ((*fit, "--force"), synth, (*compare, "--budget-limit", "9", "-o", out.with_name("figures"))):
        result = run(*command)
        assert result.code == 2
        assert "beyond the limit of 9" in result.err
    assert record.read_bytes().count(b"\n") == 1
    assert not out.with_name("bundle").exists()


def test_a_damaged_line_is_told_where_a_sum_is_shown_or_relied_on(record: Path, spec: Path, run: Run) -> None:
    record.parent.mkdir()
    record.write_text("{}\n")
    result = run("budget")
    assert (result.code, "line 1 cannot be read" in result.err) == (0, True)
    (record.parent / "budget.jsonl.salt").write_bytes(bytes(32))
    flags = ("--epsilon", "5", "--method", "independent", "--budget-limit", "9")
    result = run("fit", spec, *flags, "-o", spec.parent / "out")
    assert (result.code, "line 1 cannot be read" in result.err) == (0, True)


def test_copies_of_a_source_are_pointed_at(record: Path, shop: Path, run: Run) -> None:
    copy = shop.with_name("copy")
    copy.mkdir()
    for file in shop.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    for source in (shop, copy):
        flags = (*DRAFT, "--epsilon", "5", "--method", "independent", "-o", source.with_suffix(".bundle"))
        assert run("synth", source, *flags).code == 0
    assert "have the same tables" in run("budget").out
    assert "have the same tables" not in run("budget", shop).out
    assert record.exists()


def test_the_spec_of_a_model_can_be_fitted_again(model: Path, shop: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "next.yaml").write_text(run("show", model, "--spec").out)
    assert read_spec(tmp_path / "next.yaml").unit == "person"
    assert json.loads(run("show", model, "--spec", "--json").out)["unit"] == "person"
    flags = ("--source", shop, "--epsilon", "5", "--method", "independent", "-o", tmp_path / "next.model")
    assert run("fit", tmp_path / "next.yaml", *flags).code == 0
    assert run("show", model, "--spec", "--ledger").code == 2
