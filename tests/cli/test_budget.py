"""`privbench budget`, and limits on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from privbench.evaluation.measured_run import OwnMethod
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


def test_the_sum_is_told_with_every_fit(record: Path, spec: Path, run: Run) -> None:
    flags = ("--epsilon", "3.2", "--method", "independent", "-o", spec.parent / "out", "--force")
    first, second, third = (run("fit", spec, *flags, *more) for more in ((), (), ("--json",)))
    assert "releases" not in first.err
    assert "This source: 2 releases, epsilon 6.4 in sum with this one" in second.err
    assert json.loads(third.out)["source_budget"] == {
        "unit": "person",
        "neighbours": "replace",
        "epsilon": "48/5",
        "delta": "0/1",
        "releases": 3,
    }
    assert record.exists()


@pytest.mark.parametrize("damage", ["damaged", "deleted", "emptied"])
def test_with_a_limit_a_loss_is_refused_until_it_is_accepted(record: Path, spec: Path, run: Run, damage: str) -> None:
    fit = ("fit", spec, "--epsilon", "5", "--method", "independent", "-o", spec.parent / "out", "--force")
    limited = (*fit, "--budget-limit", "9")
    assert run(*limited).code == 0
    if damage == "deleted":
        record.unlink()
    else:
        record.write_text("" if damage == "emptied" else record.read_text().replace('"epsilon"', '"epsilom"'))
    said = "line 1 cannot be read" if damage == "damaged" else "is gone, though its salt is there"
    refused = run(*limited)
    assert (refused.code, said in refused.err, "`privbench budget --accept-loss`" in refused.err) == (2, True, True)
    warned = run(*fit)
    assert (warned.code, said in warned.err) == (0, True)
    assert run(*limited).code == 2, "a fit without a limit must not cover the loss up"
    accepted = run("budget", "--accept-loss")
    assert (accepted.code, "limits are kept without it" in accepted.err) == (0, True)
    beyond = run(*limited)
    assert (beyond.code, "1 releases of this source have spent epsilon 5" in beyond.err) == (2, True)
    assert run(*fit, "--budget-limit", "10").code == 0
    assert run("budget", "--accept-loss").err == ""


@pytest.mark.slow
def test_an_interrupted_comparison_says_what_it_has_spent(record: Path, shop: Path, run: Run) -> None:
    """By a method that raises what Ctrl-C does, after another has run."""
    stops = "privbench.evaluation.measured_run.OwnMethod.__call__"
    whole = OwnMethod.__call__

    def interrupted(method: OwnMethod, *spec: Any, **flags: Any) -> Any:
        if method.name == "tree":
            raise KeyboardInterrupt
        return whole(method, *spec, **flags)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stops, interrupted)
        flags = (
            *DRAFT,
            "--epsilon",
            "1,2",
            "--runs",
            "1",
            "--methods",
            "independent,tree",
            "-o",
            shop.parent / "figures",
        )
        stopped = run("compare", shop, *flags)
    assert stopped.code == 130
    assert "Of 4 runs the budget record has 2 releases, epsilon 3 in sum" in stopped.err
    assert record.read_bytes().count(b"\n") == 2


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
