"""A model or a bundle from anyone: nothing of it runs that was not checked, nothing is in it that was not verified."""

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import privbench
from privbench.errors import ModelError, SpecError
from privbench.model.file import load_model, save_model
from privbench.model.verify import verify
from privbench_verify.bundle import verify_bundle
from privbench_verify.checksums import CHECKSUMS, sha256

from ..forging import Header, forged, write_shop

DUMP = """-- PostgreSQL database dump
CREATE SCHEMA app;
CREATE FUNCTION public.f(x integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT x * 424242 $$;
CREATE TABLE public.person (id integer NOT NULL, age smallint DEFAULT 61 NOT NULL,
  CONSTRAINT grown CHECK ((age >= 0)));
CREATE VIEW public.old AS SELECT person.id FROM public.person WHERE (person.age > 77);
CREATE VIEW public.odd AS SELECT public.f(person.id) AS f FROM public.person;
ALTER TABLE ONLY public.person ADD CONSTRAINT person_pkey PRIMARY KEY (id);
COMMENT ON TABLE public.person IS 'Jane Roe is the oldest';
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of one table with the DDL of its dump, and a bundle of CSV."""
    folder = tmp_path_factory.mktemp("ddl")
    rows = "id,age\n" + "".join(f"{i},{i % 80}\n" for i in range(60))
    source = write_shop(folder / "source", DUMP, person=rows)
    model = privbench.fit(privbench.draft(source, unit="person", domains="data"), epsilon="5")
    save_model(model, folder / "model")
    privbench.generate(model, folder / "bundle", format="csv", seed=1)
    return folder


@pytest.fixture
def bundle(folder: Path, tmp_path: Path) -> Path:
    """A copy of the bundle to spoil."""
    return Path(shutil.copytree(folder / "bundle", tmp_path / "bundle"))


def _seal(bundle: Path) -> None:
    """Write checksums of all that is there, as a forger does."""
    names = sorted(p.relative_to(bundle).as_posix() for p in bundle.rglob("*") if p.is_file())
    lines = [f"{sha256(bundle / name)}  {name}\n" for name in names if name != CHECKSUMS]
    (bundle / CHECKSUMS).write_text("".join(lines))


def _of_view(change: Callable[[dict[str, Any]], Any]) -> Callable[[Header], None]:
    def apply(header: Header) -> None:
        [view] = [s for s in header["spec"]["original"]["statements"] if s["name"] == "old"]
        change(view)

    return apply


FORGERIES: dict[str, Callable[[Header], Any]] = {
    "three statements": _of_view(
        lambda view: view.update(sql=view["sql"] + "; COPY (SELECT 1) TO PROGRAM $$touch x$$; CREATE ROLE y SUPERUSER")
    ),
    "a program": _of_view(lambda view: view.update(sql="COPY (SELECT 1) TO PROGRAM 'touch pwned'")),
    "a role": _of_view(lambda view: view.update(sql="CREATE ROLE backdoor SUPERUSER LOGIN")),
    "a meta-command": _of_view(lambda view: view.update(sql=view["sql"] + "\n\\! touch pwned\n")),
    "a trigger": _of_view(lambda view: view.update(kind="trigger")),
    "a column": lambda header: header["spec"]["original"]["tables"]["person"]["columns"].update(
        age="int); SELECT 1; --"
    ),
    "options": lambda header: header["spec"]["original"]["tables"]["person"].update(after="; \\! touch pwned"),
    "a name": lambda header: header["spec"]["original"]["tables"]["person"].update(name="x; \\! touch pwned"),
    "a sequence": lambda header: header["spec"]["original"]["tables"]["person"].update(sequences={"id": "x')); --"}),
    "more words": lambda header: header.update(real_rows=["Jane Roe"]),
    "more words of a table": lambda header: header["tables"]["person"].update(real_rows=["Jane Roe"]),
}


@pytest.mark.parametrize("change", FORGERIES.values(), ids=FORGERIES)
def test_a_model_that_says_more_is_refused(change: Callable[[Header], Any], folder: Path, tmp_path: Path) -> None:
    evil = forged(folder / "model", tmp_path / "evil", change)
    for read in (verify, load_model):
        with pytest.raises(ModelError):
            read(evil)


def test_a_model_that_holds_more_is_refused(folder: Path, tmp_path: Path) -> None:
    for name, content in (("real_rows.csv", "id\n1\n"), ("arrays/more.npy", "x")):
        evil = Path(shutil.copy(folder / "model", tmp_path / "evil"))
        with zipfile.ZipFile(evil, "a") as file:
            file.writestr(name, content)
        with pytest.raises(ModelError, match=name):
            verify(evil)
    evil = Path(shutil.copy(folder / "model", tmp_path / "evil"))
    with zipfile.ZipFile(evil, "a") as file:
        file.comment = b"Jane Roe"
    with pytest.raises(ModelError, match="comment"):
        load_model(evil)


def test_verify_tells_of_a_model_what_runs_what_is_held_back_and_what_holds_literals(folder: Path) -> None:
    verdict = verify(folder / "model")
    told = "\n".join(verdict.assumptions)
    assert "statements of the source's own DDL run with it: schema 1, primary key 1, check 1, view 1, comment 1" in told
    assert "Code of the source is held back: function 1, view 1" in told
    assert "hold literals and are published word by word" in told
    assert "comment 1" in told.partition("hold literals")[2]


def test_code_is_in_scripts_only_if_it_is_asked_for(folder: Path, bundle: Path, tmp_path: Path) -> None:
    texts = {name: (bundle / name).read_text() for name in ("pre-data.sql", "post-data.sql", "README.md")}
    assert "FUNCTION" not in texts["pre-data.sql"]
    assert "public.old" in texts["post-data.sql"]
    assert "public.odd" not in texts["post-data.sql"]
    assert "5 statements of the source's own DDL run" in texts["README.md"]
    code = tmp_path / "code"
    privbench.generate(folder / "model", code, format="csv", seed=1, original_code=True)
    assert "CREATE FUNCTION public.f" in (code / "pre-data.sql").read_text()
    assert "CODE of the source" in (code / "README.md").read_text()
    assert "This runs CODE of the source: 2 definitions." in (code / "load/postgres.sh").read_text()
    assert any(line.startswith("CODE of the source is among what runs") for line in verify(code).assumptions)
    plain = tmp_path / "plain"
    privbench.generate(folder / "model", plain, format="csv", seed=1, original=False)
    assert "VIEW" not in (plain / "post-data.sql").read_text()
    assert {verify(each).status for each in (bundle, code, plain)} == {"conditional"}
    with pytest.raises(SpecError):
        privbench.generate(folder / "model", tmp_path / "no", original=False, original_code=True)


@pytest.mark.parametrize(
    "name", ["load/postgres.sh", "load/sqlite.sql", "pre-data.sql", "post-data.sql", "schema.sql", "schema.duckdb.sql"]
)
def test_an_edited_script_is_found(name: str, bundle: Path) -> None:
    with (bundle / name).open("a") as file:
        file.write("touch pwned\n")
    _seal(bundle)
    verdict = verify(bundle)
    assert verdict.status == "failed"
    assert verdict.problems[0].startswith(f"{name}: is not what the schema of the bundle gives")


def test_a_bundle_with_more_or_less_than_it_has_is_not_verified(bundle: Path) -> None:
    (bundle / "load" / "more.sh").write_text("touch pwned\n")
    _seal(bundle)
    assert verify(bundle).problems == ('"load/more.sh": is no file of a bundle',)
    (bundle / "load" / "more.sh").unlink()
    (bundle / "load" / "postgres.sh").unlink()
    _seal(bundle)
    assert verify(bundle).status == "failed"


def test_scripts_that_cannot_be_made_again_are_not_verified(bundle: Path) -> None:
    (bundle / "schema.json").unlink()
    _seal(bundle)
    assert verify(bundle).status == "unverified"


def test_a_schema_with_code_does_not_verify_as_one_without(bundle: Path, folder: Path, tmp_path: Path) -> None:
    privbench.generate(folder / "model", tmp_path / "code", format="csv", seed=1, original_code=True)
    for name in ("schema.json", "pre-data.sql", "post-data.sql"):
        shutil.copy(tmp_path / "code" / name, bundle / name)
    words = json.loads((bundle / "schema.json").read_text())
    del words["original_code"]
    (bundle / "schema.json").write_text(json.dumps(words))
    _seal(bundle)
    assert "pre-data.sql" in " ".join(verify(bundle).problems)
    words["original"]["statements"][0]["sql"] += "; SELECT 1"
    (bundle / "schema.json").write_text(json.dumps(words))
    _seal(bundle)
    assert "schema.json" in verify(bundle).problems[0]


def test_a_file_of_data_cannot_have_a_name_that_a_script_runs(bundle: Path) -> None:
    name = "data/x'; \\! touch pwned '.csv"
    os.rename(bundle / "data/person.csv", bundle / name)
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["tables"]["person"]["files"] = [name]
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    for script in (bundle / "load").iterdir():
        script.write_text(script.read_text().replace("data/person.csv", name))
    _seal(bundle)
    assert "is no path of a file in a bundle" in verify(bundle).problems[0]


def test_the_verifier_alone_says_that_it_did_not_compare_scripts(bundle: Path) -> None:
    verdict = verify_bundle(bundle)
    assert verdict.status == "conditional"
    assert any("they were not compared" in line for line in verdict.assumptions)
    assert any("run with it: schema 1" in line for line in verdict.assumptions)
    assert not any("not compared" in line for line in verify(bundle).assumptions)


def test_left_out_words_of_a_model_add_no_line_to_a_script(folder: Path, tmp_path: Path) -> None:
    reason = "it is code of the source, which only `--original-code` runs"
    evil = {"kind": "a\ntouch pwned\n", "name": "b\n\\! touch pwned\n", "reason": reason}

    def change(header: Header) -> None:
        header["spec"]["original"]["left_out"] = [evil]

    privbench.generate(forged(folder / "model", tmp_path / "evil", change), tmp_path / "bundle", format="csv", seed=1)
    for path in (tmp_path / "bundle").rglob("*.s*"):
        assert not [line for line in path.read_text().splitlines() if line.startswith(("touch", "\\!"))], path


def test_psql_runs_nothing_of_a_model_but_statements(folder: Path, postgres: str, tmp_path: Path) -> None:
    """With texts that look like commands in every place where a literal may be."""
    if shutil.which("psql") is None:
        pytest.skip("psql is not installed")
    canary = tmp_path / "canary"
    evil = f"x'';\n\\! touch {canary}\n\\.\n$$ -- /* `touch {canary}` :USER"

    def change(header: Header) -> None:
        for statement in header["spec"]["original"]["statements"]:
            if statement["kind"] == "comment":
                statement["sql"] = f"COMMENT ON TABLE public.person IS '{evil}'"
        columns = header["spec"]["original"]["tables"]["person"]["columns"]
        columns["age"] = f"smallint DEFAULT length('{evil}')"

    model = forged(folder / "model", tmp_path / "evil", change)
    privbench.generate(model, tmp_path / "bundle", format="csv", seed=1)
    command = ["sh", str(tmp_path / "bundle/load/postgres.sh"), "-d", postgres]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)  # noqa: S603
    assert ran.returncode == 0, ran.stderr
    assert not canary.exists()
    assert verify(tmp_path / "bundle").status == "conditional"
