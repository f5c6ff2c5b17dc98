"""What the terminal shows: progress of any table, what to try next, and how fast help comes."""

import subprocess
import sys
from pathlib import Path

import pytest

from privbench.cli.commands import cli
from privbench.cli.demo import _look_at
from privbench.cli.output import program
from privbench.io.base import loaded
from privbench.io.sinks import SINKS
from privbench.schema.spec import Orphans
from privbench.schema.unit import Neighbours

from .conftest import DDL, DRAFT, Run


def test_the_walk_with_such_a_table(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    folder = tmp_path / "db"
    folder.mkdir()
    (folder / "schema.sql").write_text('CREATE TABLE "a[/b]" (id INTEGER PRIMARY KEY, x SMALLINT);')
    (folder / "a%5B%2Fb%5D.csv").write_text("id,x\n1,2\n2,3\n")
    made = run("synth", folder, "--domains", "data", "--epsilon", "3", "-o", tmp_path / "b")
    assert made.code == 0, made.err
    assert "a[/b]" in made.out


def test_flags_offer_what_there_is() -> None:
    choices = {p.name: list(p.type.choices) for p in cli.commands["synth"].params if hasattr(p.type, "choices")}
    (to,) = (p for p in cli.commands["synth"].params if p.name == "format_")
    assert to.metavar == f"[{'|'.join(kind.name for kind in loaded(SINKS))}]"
    assert choices["orphans"] == [o.value for o in Orphans]
    assert choices["neighbours"] == [n.value for n in Neighbours]


def test_what_to_try_next_works_from_here(tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [".venv/bin/privbench", "demo"])
    assert program() == ".venv/bin/privbench"
    (tmp_path / "privbench").write_text("#!/bin/sh\n")
    (tmp_path / "privbench").chmod(0o755)
    assert program() == "privbench"
    line = _look_at(bundle / "data" / "person.parquet")
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=True)  # noqa: S602
    assert "city" in done.stdout


def test_draft_names_columns_that_go_with_a_dropped_table(shop: Path, run: Run, tmp_path: Path) -> None:
    (shop / "schema.sql").write_text(
        DDL.replace("age SMALLINT", "age SMALLINT REFERENCES kind (id)")
        + "CREATE TABLE kind (id SMALLINT PRIMARY KEY); CREATE TABLE log (x INTEGER); CREATE TABLE news (x INTEGER);"
    )
    for name, column in (("kind", "id"), ("log", "x"), ("news", "x")):
        (shop / f"{name}.csv").write_text(f"{column}\n1\n")
    drafted = run("draft", shop, *DRAFT, "--drop", "kind", "--public", "log,news", "-o", tmp_path / "s")
    assert drafted.code == 0
    assert "Left out, since their key points at what is dropped: person.age." in drafted.out
