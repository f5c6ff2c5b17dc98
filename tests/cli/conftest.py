"""The command line in this process: arguments in, exit code and both streams out."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from privbench.cli.main import main

DRAFT = ("--unit", "person", "--domains", "data")
DDL = """CREATE TABLE person (id INTEGER PRIMARY KEY, city VARCHAR, age SMALLINT);
CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person (id), cost SMALLINT);"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a command did."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]
Refused = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def call(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["privbench", *map(str, arguments)])
        capsys.readouterr()
        code: object = 0
        try:
            main()
        except SystemExit as leaving:
            code = leaving.code
        streams = capsys.readouterr()
        assert "Traceback" not in streams.err
        return Result(code=int(str(code or 0)), out=streams.out, err=streams.err)

    return call


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A small database of CSV files that tests may spoil."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "schema.sql").write_text(DDL)
    (folder / "person.csv").write_text("id,city,age\n" + "".join(f"{i},{'xyz'[i % 3]},{i % 50}\n" for i in range(60)))
    (folder / "visit.csv").write_text("id,person_id,cost\n" + "".join(f"{i},{i % 60},{i % 7}\n" for i in range(150)))
    return folder


@pytest.fixture
def spec(shop: Path, run: Run) -> Path:
    path = shop.parent / "spec.yaml"
    assert run("draft", shop, "--unit", "person", "--domains", "data", "-o", path).code == 0
    return path


@pytest.fixture
def model(spec: Path, run: Run) -> Path:
    path = spec.parent / "shop.model"
    assert run("fit", spec, "--epsilon", "5", "-o", path).code == 0
    return path


@pytest.fixture
def bundle(model: Path, run: Run) -> Path:
    path = model.parent / "bundle"
    assert run("generate", model, "-o", path, "--seed", "1").code == 0
    return path


def everything(folder: Path) -> set[Path]:
    """All that is in a folder."""
    return set(folder.rglob("*"))


@pytest.fixture
def refused(run: Run, tmp_path: Path) -> Refused:
    """Run a command that must be refused and leave nothing; returns its message."""

    def call(*arguments: object) -> str:
        before = everything(tmp_path)
        result = run(*arguments)
        assert result.code == 2, result.out
        assert result.out == ""
        assert everything(tmp_path) == before
        return result.err

    return call
