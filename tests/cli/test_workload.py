"""Commands about queries and evaluation, as a user types them."""

import json
from pathlib import Path

import pytest

from .conftest import Run


@pytest.fixture
def fitted(shop: Path, run: Run, tmp_path: Path) -> Path:
    assert run("draft", shop, "--unit", "person", "--domains", "data", "-o", tmp_path / "s.yaml").code == 0
    assert run("fit", tmp_path / "s.yaml", "--epsilon", "5", "-o", tmp_path / "m.model").code == 0
    assert run("generate", tmp_path / "m.model", "-o", tmp_path / "bundle", "--seed", "1").code == 0
    return tmp_path


def test_queries_are_made_translated_and_estimated(shop: Path, fitted: Path, run: Run) -> None:
    made = run("workload", "generate", shop, "-n", "12", "-o", fitted / "q.sql")
    assert (made.code, "12 queries, literals: real" in made.out) == (0, True)
    assert "not for publishing" in (fitted / "q.sql").read_text()

    told = run(
        "workload", "translate", fitted / "q.sql", "--model", fitted / "m.model", "-o", fitted / "p.sql", "--json"
    )
    assert told.code == 0
    assert {c["outcome"] for c in json.loads(told.out)["changes"]} <= {"kept: it is public", "mapped", "left out"}
    assert "literals: synthetic" in (fitted / "p.sql").read_text()

    found = run("estimate", fitted / "m.model", fitted / "p.sql", "--json")
    assert found.code == 0
    estimates = [e["estimate"] for e in json.loads(found.out)["estimates"]]
    assert all(e is None or e >= 0 for e in estimates)
    assert any(e is not None for e in estimates)


def test_evaluate_writes_the_figures_with_their_floors(shop: Path, fitted: Path, run: Run) -> None:
    run("workload", "generate", shop, "-n", "6", "-o", fitted / "q.sql")
    told = run(
        "evaluate",
        "--real",
        shop,
        "--synthetic",
        fitted / "bundle",
        "--workload",
        fitted / "q.sql",
        "--cache",
        fitted / "cache",
        "-o",
        fitted / "report",
    )
    assert told.code == 0, told.err
    assert [p.name.startswith("floor-") for p in (fitted / "cache").iterdir()] == [True]
    assert "not for publishing" in told.out
    result = json.loads((fitted / "report" / "result.json").read_text())
    assert {"kld", "tvd", "cross_kld", "fanout_tvd", "q_error"} <= result.keys()
    assert result["fanout_tvd"]["floor"] is not None
    assert len(result["queries"]) == 6
    again = run("evaluate", "--real", shop, "--synthetic", fitted / "bundle", "-o", fitted / "report")
    assert (again.code, "--force" in again.err) == (2, True)


def test_wrong_paths_are_told(fitted: Path, run: Run) -> None:
    for words in (
        ("estimate", fitted / "m.model", fitted / "none.sql"),
        ("workload", "translate", fitted / "none.sql", "--model", fitted / "m.model", "-o", fitted / "x.sql"),
        ("evaluate", "--real", fitted / "none", "--synthetic", fitted / "bundle", "-o", fitted / "r"),
    ):
        told = run(*words)
        assert told.code == 2
        assert "none" in told.err
        assert "Traceback" not in told.err
