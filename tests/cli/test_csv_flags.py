"""`--null` and `--delimiter`: kept in the spec, repeated by `fit`, and in nothing that is published."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest

import privbench

from .conftest import DDL, Refused, Run

FLAGS = ("--null", "NA", "--null", "?", "--delimiter", ";")


@pytest.fixture
def semicolons(tmp_path: Path) -> Path:
    """The shop as some program exports it."""
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "schema.sql").write_text(DDL)
    persons = "".join(f"{i};{'xyz'[i % 3]};{'NA' if i % 7 == 0 else i % 50}\n" for i in range(60))
    (folder / "person.csv.gz").write_bytes(gzip.compress(f"id;city;age\n{persons}".encode()))
    visits = "".join(f"{i};{i % 60};{'?' if i % 11 == 0 else i % 7}\n" for i in range(150))
    with zipfile.ZipFile(folder / "visit.csv.zip", "w") as archive:
        archive.writestr("visit.csv", f"id;person_id;cost\n{visits}")
    return folder


def test_fit_repeats_what_draft_was_told(run: Run, semicolons: Path, tmp_path: Path) -> None:
    spec, model = tmp_path / "spec.yaml", tmp_path / "model"
    words = ("--unit", "person", "--domains", "data")
    assert run("draft", semicolons, *words, *FLAGS, "-o", spec).code == 0
    assert 'csv: {null: [NA, "?"], delimiter: ";"}' in spec.read_text()
    assert run("fit", spec, "--epsilon", "9", "-o", model).code == 0
    assert run("fit", spec, "--source", semicolons, "--epsilon", "9", "-o", tmp_path / "again").code == 0
    assert privbench.fit(spec, epsilon=9).spec.csv is None
    loaded = privbench.load_model(model)
    assert loaded.spec.csv is None
    assert loaded.spec.column("person", "age").null
    with zipfile.ZipFile(model) as archive:
        assert "csv" not in json.loads(archive.read("model.json"))["spec"]
    reused = tmp_path / "reused.yaml"
    reused.write_text(run("show", model, "--spec").out)
    assert "delimiter" not in reused.read_text()


def test_every_command_that_reads_takes_them(run: Run, semicolons: Path, tmp_path: Path) -> None:
    draft = ("--unit", "person", "--domains", "data")
    out = tmp_path / "bundle"
    assert run("synth", semicolons, *draft, *FLAGS, "--epsilon", "9", "--seed", "1", "-o", out).code == 0
    queries = tmp_path / "q.sql"
    assert run("workload", "generate", semicolons, *FLAGS, "-n", "5", "-o", queries).code == 0
    report = run(
        "evaluate", "--real", semicolons, "--synthetic", out, "--workload", queries, *FLAGS, "--no-floor", "-o",
        tmp_path / "report",
    )  # fmt: skip
    assert report.code == 0, report.err
    result = json.loads((tmp_path / "report" / "result.json").read_text())
    ages = next(c for t in result["tables"] if t["name"] == "person" for c in t["columns"] if c["name"] == "age")
    assert ages["real_nulls"] == 9
    assert all(query["real"] is not None for query in result["queries"])


@pytest.mark.slow
def test_compare_takes_them(run: Run, semicolons: Path, tmp_path: Path) -> None:
    words = ("--unit", "person", "--domains", "data", "--methods", "independent", "--runs", "1", "--epsilon", "9")
    compared = run("compare", semicolons, *words, *FLAGS, "-o", tmp_path / "compare", "--json")
    assert compared.code == 0
    assert [r["error"] for r in json.loads(compared.out)["runs"]] == [None]


def test_a_wrong_delimiter(refused: Refused, semicolons: Path, tmp_path: Path) -> None:
    message = refused("draft", semicolons, "--unit", "person", "-o", tmp_path / "s")
    assert "person.csv.gz: its first line is one column, 'id;city;age'" in message
    assert "say `--delimiter ';'`" in message
    message = refused("draft", semicolons, "--unit", "person", "--delimiter", "ab", "-o", tmp_path / "s")
    assert "delimiter: 'ab' is not one character" in message


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("csv: {null: [1]}", "csv.null.0: text is wanted; put it in quotes"),
        ("csv: {delimiter: ab}", "csv.delimiter: 'ab' is not one character"),
        ("csv: {quote: x}", "csv.quote"),
        ("csv: NA", "csv: a mapping is wanted"),
    ],
)
def test_mistakes_in_the_spec(word: str, message: str, refused: Refused, spec: Path, tmp_path: Path) -> None:
    spec.write_text(spec.read_text().replace("unit:", f"{word}\nunit:", 1))
    assert message in refused("fit", spec, "--epsilon", "3", "-o", tmp_path / "m")


def test_short_rows_are_padded_by_every_command(run: Run, refused: Refused, tmp_path: Path) -> None:
    source, spec, out = tmp_path / "source", tmp_path / "spec.yaml", tmp_path / "bundle"
    source.mkdir()
    rows = "".join(f"{n},{n % 5}\n" if n % 3 else f"{n}\n" for n in range(300))
    (source / "t.csv").write_text(f"id,n\n{rows}")
    draft = ("draft", source, "--unit", "t", "--domains", "data", "-o", spec)
    assert "say `--ragged pad`" in refused(*draft)
    assert run(*draft, "--ragged", "pad").code == 0
    assert "csv: {ragged: pad}" in spec.read_text()
    assert run("fit", spec, "--epsilon", "9", "-o", tmp_path / "m.model").code == 0
    assert run("synth", source, *draft[2:6], "--ragged", "pad", "--epsilon", "9", "-o", out).code == 0
    words = ("--real", source, "--synthetic", out, "--ragged", "pad", "--no-floor", "-o", tmp_path / "report")
    assert run("evaluate", *words).code == 0
    result = json.loads((tmp_path / "report" / "result.json").read_text())
    assert next(c for c in result["tables"][0]["columns"] if c["name"] == "n")["real_nulls"] == 100
