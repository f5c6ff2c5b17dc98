"""What is said of data too small for the budget, of rows that were lost and of a budget that protects little."""

import json
import re
from pathlib import Path

import pytest

import privbench
from privbench.cli.output import shortened
from privbench.fitting.warnings import fit_warnings
from privbench.generation.sizes import lost_rows
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.schema.original import OriginalDdl, Phase, SourceDialect, Statement, TableDefinition
from privbench.schema.spec import Sizes, read_spec

from .conftest import DRAFT, Refused, Run


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("tree", ["warning: visit: its columns are mostly noise: about", "to share a value for it to stand out"]),
        (
            "paper",
            [
                "how its rows are spread over person by the key person_id is in good part noise",
                "`rows_per_entity` (visit)",
            ],
        ),
    ],
)
def test_tables_that_are_mostly_noise(method: str, more: list[str], spec: Path, run: Run, tmp_path: Path) -> None:
    fitted = run("fit", spec, "--epsilon", "0.1", "--method", method, "-o", tmp_path / "m")
    for words in ("warning: person: its columns are mostly noise: about", *more):
        assert words in fitted.err
    assert "Remedies for noise: a larger epsilon, fewer tables and columns" in fitted.err
    assert ("rows_per_entity" in fitted.err) == (method == "paper")
    assert "warning" not in fitted.out
    shown = run("show", tmp_path / "m")
    assert shown.err == fitted.err
    said = json.loads(run("show", tmp_path / "m", "--json").out)["warnings"]
    assert [f"warning: {line}" for line in said] == shown.err.splitlines()


def test_a_budget_too_small_for_anything_is_refused(spec: Path, refused: Refused, tmp_path: Path) -> None:
    message = refused("fit", spec, "--epsilon", "0.001", "-o", tmp_path / "m")
    assert "too little budget: the noise of every count of person would be about" in message
    assert "`privbench fit --dry-run` shows what a budget buys" in message


def test_no_warning_where_noise_is_small(shop: Path, run: Run, tmp_path: Path) -> None:
    (shop / "visit.csv").unlink()
    (shop / "schema.sql").write_text("CREATE TABLE person (id INTEGER PRIMARY KEY, city VARCHAR, age SMALLINT);")
    rows = "".join(f"{i},{'xyz'[i % 3]},{i % 50}\n" for i in range(5000))
    (shop / "person.csv").write_text("id,city,age\n" + rows)
    made = run("synth", shop, "--domains", "data", "--epsilon", "5", "-o", tmp_path / "b")
    assert (made.code, made.err) == (0, "")


def test_how_sure_sizes_are(spec: Path, run: Run, tmp_path: Path) -> None:
    """In the table of fit and show, in their JSON, in the README of a bundle, and as a warning with what helps."""
    fitted = run("fit", spec, "--epsilon", "0.5", "-o", tmp_path / "m")
    assert re.search(r"person +entity +60 +public", fitted.out)
    assert re.search(r"visit +owned +[\d,]+ +90 % range \d+ to [\d,]+", fitted.out)
    (said,) = (line for line in fitted.err.splitlines() if "its size was learnt with much noise" in line)
    assert said.startswith("warning: visit: ")
    assert "`--sizes public` of draft and synth (`sizes: public` in the spec), if the sizes of all" in said
    assert "the noise would be gone; or a larger epsilon" in said
    tables = json.loads(run("show", tmp_path / "m", "--json").out)["tables"]
    assert tables[0]["rows_error"] == 0
    assert (tables[0]["rows_low"], tables[0]["rows_high"]) == (60, 60)
    assert tables[1]["rows_low"] < tables[1]["rows"] < tables[1]["rows_high"]
    assert re.search(r"about [\d,]+ rows; 90 % range [\d,]+ to [\d,]+(: not told from noise)?\. What", said)
    assert "+-" not in said
    assert json.loads(run("fit", spec, "--epsilon", "0.5", "-o", tmp_path / "m2", "--json").out)["tables"][1][
        "rows_high"
    ]
    run("generate", tmp_path / "m", "-o", tmp_path / "b", "--seed", "1")
    readme = (tmp_path / "b" / "README.md").read_text()
    assert "| person | entity | 60 | public |" in readme
    assert re.search(r"\| visit \| owned \| \d+ \| 90 % range [\d,]+ to [\d,]+(: not told from noise)? \|", readme)


def test_public_sizes_are_met_and_said_to_be(spec: Path, run: Run, tmp_path: Path) -> None:
    spec.write_text(spec.read_text().replace("sizes: measured", "sizes: public"))
    fitted = run("fit", spec, "--epsilon", "0.5", "-o", tmp_path / "m")
    assert re.search(r"visit +owned +150 +public", fitted.out)
    assert "its size was learnt" not in fitted.err
    run("generate", tmp_path / "m", "-o", tmp_path / "b", "--seed", "1")
    readme = (tmp_path / "b" / "README.md").read_text()
    assert "| visit | owned | 150 | public |" in readme
    assert "learnt with noise" not in readme


def test_the_flag_that_warnings_advise(shop: Path, run: Run, tmp_path: Path) -> None:
    made = run("synth", shop, *DRAFT, "--sizes", "public", "--epsilon", "0.5", "-o", tmp_path / "b")
    assert "its size was learnt" not in made.err
    assert "| visit | owned | 150 | public |" in (tmp_path / "b" / "README.md").read_text()
    run("draft", shop, *DRAFT, "--sizes", "public", "-o", tmp_path / "s.yaml")
    assert read_spec(tmp_path / "s.yaml").sizes is Sizes.PUBLIC


def test_where_sizes_cannot_be_public_that_is_no_remedy(spec: Path, run: Run, tmp_path: Path) -> None:
    spec.write_text(spec.read_text().replace("neighbours: replace", "neighbours: add-remove"))
    fitted = run("fit", spec, "--epsilon", "0.5", "-o", tmp_path / "m")
    said = [line for line in fitted.err.splitlines() if "its size was learnt with much noise" in line]
    assert said
    assert all("sizes: public" not in line and "a larger epsilon" in line for line in said)


def test_synth_warns_like_fit(shop: Path, run: Run, tmp_path: Path) -> None:
    common = ("synth", shop, *DRAFT, "--epsilon", "0.1", "-o", tmp_path / "b")
    assert "warning: person: its columns are mostly noise" in run(*common).err
    assert json.loads(run(*common, "--force", "--json").out)["warnings"]


def test_a_budget_that_protects_little(spec: Path) -> None:
    assert any("epsilon 21 protects little" in line for line in fit_warnings(privbench.fit(spec, epsilon=21)))
    assert not any("protects" in line for line in fit_warnings(privbench.fit(spec, epsilon=20)))


def test_a_share_of_null_within_its_noise(shop: Path, tmp_path: Path) -> None:
    ddl = (shop / "schema.sql").read_text()
    (shop / "schema.sql").write_text(
        ddl + "CREATE TABLE note (id INTEGER PRIMARY KEY, visit_id INTEGER REFERENCES visit (id));"
    )
    (shop / "note.csv").write_text("id,visit_id\n" + "".join(f"{i},{i if i else ''}\n" for i in range(100)))
    spec = privbench.draft(shop, unit="person", domains="data")
    said = fit_warnings(privbench.fit(spec, epsilon=2, method="paper", entropy=FixedEntropy(1)))
    assert any(line.startswith("note: ") and "by the key visit_id" in line for line in said)


def test_lost_rows_are_told(shop: Path, run: Run, tmp_path: Path) -> None:
    """A composite key of an owner and a column of two values has room for two rows of each owner."""
    (shop / "schema.sql").write_text(
        "CREATE TABLE person (id INTEGER PRIMARY KEY, city VARCHAR, age SMALLINT);"
        "CREATE TABLE visit (person_id INTEGER NOT NULL REFERENCES person (id), kind VARCHAR NOT NULL,"
        " PRIMARY KEY (person_id, kind));"
    )
    (shop / "visit.csv").write_text("person_id,kind\n" + "".join(f"{i // 2},{'ab'[i % 2]}\n" for i in range(120)))
    spec = privbench.draft(shop, unit="person", domains="data")
    model = privbench.fit(spec, epsilon=900, method="paper")
    wanted = round(model.tables["visit"].rows)
    said = lost_rows(model, {"person": 60, "visit": wanted}, {"person": 60, "visit": wanted - 5})
    assert len(said) == 1
    assert said[0].startswith(f"visit: {wanted - 5} of {wanted} rows were made: ")
    assert "person_id" in said[0]
    assert "came out empty" in lost_rows(model, {"person": 0, "visit": 0}, {"person": 0, "visit": 0})[-1]
    assert (
        "60 rows of person, each at most 2 times"
        in lost_rows(model, {"person": 60, "visit": 500}, {"person": 60, "visit": 120})[0]
    )
    assert lost_rows(model, {"person": 60, "visit": wanted}, {"person": 60, "visit": wanted}) == []


def test_lost_rows_are_told_by_generate_and_in_its_readme(
    model: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(*_: object) -> list[str]:
        return ["visit: 3 of 4 rows were made: a test."]

    monkeypatch.setattr("privbench.generation.run.lost_rows", told)
    monkeypatch.setattr("privbench.generation.sizes.lost_rows", told)
    assert "warning: visit: 3 of 4" in run("generate", model, "-o", tmp_path / "b").err
    assert "- visit: 3 of 4 rows were made: a test." in (tmp_path / "b" / "README.md").read_text()
    assert json.loads(run("generate", model, "-o", tmp_path / "c", "--json").out)["warnings"] == told()


def test_a_long_condition_is_shortened(spec: Path, model: Path, run: Run, tmp_path: Path) -> None:
    assert shortened("given: a, b, c") == "given: a, b, c"
    columns = ", ".join(f"c{i} SMALLINT" for i in range(9))
    folder = tmp_path / "wide"
    folder.mkdir()
    (folder / "schema.sql").write_text(f"CREATE TABLE t ({columns});")
    (folder / "t.csv").write_text(",".join(f"c{i}" for i in range(9)) + "\n" + ",".join("123456789") + "\n")
    assert run("synth", folder, "--domains", "data", "--epsilon", "3", "-o", tmp_path / "b").code == 0
    assert "t.c0, t.c1, t.c2, t.c3 and 5 more, which `--json` lists" in run("verify", tmp_path / "b").out
    assert json.loads(run("verify", tmp_path / "b", "--json").out)["condition"].endswith("t.c8")


def test_problems_come_first(bundle: Path, run: Run) -> None:
    (bundle / "extra.txt").write_text("x")
    lines = run("verify", bundle).out.splitlines()
    assert lines[0] == "status: failed"
    assert lines[1].startswith("problem: extra.txt")
    assert re.match("epsilon promised 5, spent", lines[2])


def test_words_of_the_source_that_are_published(spec: Path) -> None:
    comment = Statement(kind="comment", name="table person", sql="COMMENT ON TABLE person IS 'x'", phase=Phase.AFTER)
    plain = read_spec(spec)
    tables = {"person": TableDefinition(name="person", columns={})}
    original = OriginalDdl(dialect=SourceDialect.POSTGRES, tables=tables, statements=(comment,))
    spoken = plain.model_copy(update={"original": original})
    found = [
        [line for line in fit_warnings(privbench.fit(one, epsilon=9)) if "word by word: comment 1" in line]
        for one in (plain, spoken)
    ]
    assert list(map(len, found)) == [0, 1]
