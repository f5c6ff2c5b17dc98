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
    made = run("workload", "generate", shop, "-n", "12", "-o", fitted / "q.sql", "--json")
    assert (made.code, json.loads(made.out)["literals"]) == (0, "real")
    assert (fitted / "q.sql").read_text().startswith("-- privbench: literals=real\n")

    translate = ("workload", "translate", fitted / "q.sql", "--model", fitted / "m.model", "-o", fitted / "p.sql")
    told = run(*translate)
    assert (told.code, "`privbench workload generate MODEL`" in told.err) == (2, True)
    (fitted / "q.sql").write_text((fitted / "q.sql").read_text().replace("literals=real", "by hand"))
    told = run(*translate, "--json")
    assert told.code == 0
    result = json.loads(told.out)
    assert {c["outcome"] for c in result["changes"]} == {"translated"}
    assert result["counts"]["translated"] == len(result["changes"]) > 11
    assert sum(map(len, result["published_as_it_is"]["forms"])) == 12
    assert (fitted / "p.sql").read_text().startswith("-- privbench: literals=translated sha256=")

    estimated = run("estimate", fitted / "m.model", fitted / "p.sql", "--json")
    assert estimated.code == 0
    estimates = [e["estimate"] for e in json.loads(estimated.out)["estimates"]]
    assert len(estimates) == 12
    assert any(e is not None and e > 0 for e in estimates)


def test_queries_of_a_model_or_a_bundle_are_not_private(shop: Path, fitted: Path, run: Run) -> None:
    for source, literals in ((fitted / "m.model", "model"), (fitted / "bundle", "model"), (shop, "real")):
        made = run("workload", "generate", source, "-n", "5", "-o", fitted / f"{source.name}.sql")
        assert made.code == 0, made.err
        assert f"literals={literals}" in (fitted / f"{source.name}.sql").read_text()
        assert ("the file is private" in made.err) == (literals == "real")


def test_tables_fit_80_columns_and_list_what_was_left_out(fitted: Path, run: Run) -> None:
    (fitted / "q.sql").write_text(
        "12||SELECT COUNT(*) FROM person, visit WHERE person.id = person_id AND age < 20 AND city = 'x';\n"
        "SELECT city FROM person GROUP BY city HAVING SUM(age) > 31337;\nSELECT COUNT(*) FROM person"
    )
    told = run("workload", "translate", fitted / "q.sql", "--model", fitted / "m.model", "-o", fitted / "p.sql")
    assert told.code == 0
    lines = told.out.splitlines()
    assert all(len(line) <= 80 for line in lines[:-1])
    assert lines[0].split() == ["query", "tables", "real", "before", "after", "what", "happened"]
    assert lines[1].split()[1:4] == ["person,", "visit", "12"]
    assert "2 translated" in lines[1]
    assert "as in the original: 2 statements of 2 forms, 2 conditions, 1 joins" in told.out
    assert "query 2 was left out" in told.err
    assert "31337" not in (fitted / "p.sql").read_text()
    assert "left out: 1 (numbers 2" in (fitted / "p.sql").read_text()

    told = run("estimate", fitted / "m.model", fitted / "q.sql")
    assert told.code == 0
    lines = told.out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].split() == ["query", "tables", "real", "estimate", "what", "happened"]
    assert "cannot tell" in told.out


def test_a_flag_keeps_public_literals_but_never_real_ones(shop: Path, fitted: Path, run: Run) -> None:
    translate = ("workload", "translate", fitted / "q.sql", "--model", fitted / "m.model", "--literals-are-public")
    run("workload", "generate", shop, "-n", "3", "-o", fitted / "q.sql")
    told = run(*translate, "-o", fitted / "p.sql")
    assert (told.code, "literals=real" in told.err, (fitted / "p.sql").exists()) == (2, True, False)
    (fitted / "q.sql").write_text("SELECT COUNT(*) FROM person WHERE age = 12")
    told = run(*translate, "-o", fitted / "p.sql", "--json")
    assert json.loads(told.out)["counts"] == {"kept": 0, "translated": 1, "left out": 0}  # its domain is from the data


def test_an_estimate_that_answers_nothing_is_an_error(fitted: Path, run: Run) -> None:
    (fitted / "q.sql").write_text("SELECT SUM(age) FROM person; SELECT COUNT(*) FROM nobody")
    told = run("estimate", fitted / "m.model", fitted / "q.sql")
    assert (told.code, told.out) == (2, "")
    assert "can answer none of its 2 queries" in told.err


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
