"""`privbench fit --dry-run`: the plan in words and as JSON, and its refusals."""

import json
from pathlib import Path

import pytest

from .conftest import Refused, Run


def test_the_plan_in_words(spec: Path, shop: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.rename(shop.parent / "away")
    monkeypatch.setenv("COLUMNS", "100")
    shown = run("fit", spec, "--epsilon", "3.2", "--dry-run", "--rows", "person=50_000")
    assert (shown.code, shown.err) == (0, "")
    assert "No data were read and nothing was spent. To spend: epsilon 1.6 (half of epsilon: replacing an" in shown.out
    assert "Assumed rows: visit=50000. Say better with --rows visit=N." in shown.out
    assert "pairs of columns will be learnt" in shown.out
    assert "#rows visit.person_id" in shown.out
    assert "CPU-seconds" in shown.out


def test_the_plan_as_json(spec: Path, run: Run) -> None:
    shown = run(
        "fit",
        spec,
        "--epsilon",
        "1",
        "--delta",
        "1e-9",
        "--dry-run",
        "--rows",
        "person=9",
        "--rows",
        "visit=7",
        "--json",
    )
    plan = json.loads(shown.out)
    assert (plan["epsilon"], plan["measure"], plan["assumed"], plan["rows"]) == (
        "1",
        "rho",
        [],
        {"person": 9, "visit": 7},
    )
    assert plan["tables"][1]["entities"] == 7
    assert plan["tables"][0]["outlook"] == "mostly noise"
    assert [c["column"] for c in plan["tables"][0]["columns"]] == ["city", "age", "#rows visit.person_id"]
    assert "Remedies for noise" in plan["warnings"][-1]


def test_a_plan_that_will_be_refused(spec: Path, run: Run) -> None:
    shown = run("fit", spec, "--epsilon", "0.001", "--dry-run", "--rows", "person=60")
    assert shown.code == 2
    assert "mostly noise" in shown.out
    refusal = shown.err.splitlines()[-1]
    assert refusal.startswith("error: too little budget: the noise of every count of person would be about")
    assert run("fit", spec, "--epsilon", "0.001", "-o", spec.parent / "m").err.splitlines()[-1] == refusal
    assert not (spec.parent / "m").exists()


def test_a_fit_warns_as_the_plan_does(spec: Path, run: Run) -> None:
    planned = run("fit", spec, "--epsilon", "0.1", "--dry-run", "--rows", "person=60", "--rows", "visit=150")
    fitted = run("fit", spec, "--epsilon", "0.1", "-o", spec.parent / "m")
    assert planned.code == fitted.code == 0
    assert fitted.err.splitlines()[0] == planned.err.splitlines()[0]
    assert "warning: person: its columns are mostly noise: about" in fitted.err
    assert "warning: Remedies for noise: a larger epsilon, fewer tables and columns" in fitted.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--dry-run", "--rows", "person"), "--rows person: write T=N"),
        (("--dry-run", "--rows", "person=many"), "write T=N"),
        (("--dry-run", "--rows", "nobody=3"), "rows of 'nobody': the spec has no such table"),
        (("--dry-run", "--method", "paper"), "method paper cannot show a plan"),
        (("--rows", "person=3", "-o", "m"), "--rows is a guess for --dry-run"),
        ((), "Missing option '-o' / '--out'"),
    ],
)
def test_wrong_use(spec: Path, refused: Refused, flags: tuple[str, ...], said: str) -> None:
    assert said in refused("fit", spec, "--epsilon", "1", *flags)
