"""What the terminal shows: progress of any table, what to try next, and how fast help comes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from privbench.cli.commands import cli
from privbench.cli.demo import _look_at
from privbench.cli.model import NODES
from privbench.cli.output import print_table, program
from privbench.io.base import loaded
from privbench.io.sinks import SINKS
from privbench.schema.spec import Orphans, Sizes
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
    assert choices["sizes"] == [s.value for s in Sizes]


TABLES = [
    ("title", "entity", 2_280_000, "public", "1", 2, 1, 7),
    ("movie_companies", "owned", 12_605_413, "+- 1.2 %", "any", 1, 2, 2),
]
HEAD = ("table", "role", "rows", "size", "per entity", "columns", "keys", "in cliques")


@pytest.mark.parametrize(("columns", "lines"), [("120", 3), ("80", 4)])
def test_a_table_that_is_too_wide_folds_its_head_first(
    columns: str, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    print_table(HEAD, TABLES)
    shown = capsys.readouterr().out.splitlines()
    assert max(map(len, shown)) <= int(columns)
    assert len(shown) == lines
    assert shown[-1].split() == ["movie_companies", "owned", "12,605,413", "+-", "1.2", "%", "any", "1", "2", "2"]


def test_texts_fold_at_spaces_before_words_break(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [("movie_keyword_and_more", "a sentence of words that says a bit")]
    monkeypatch.setenv("COLUMNS", "40")
    print_table(("table", "what"), rows)
    assert "movie_keyword_and_more  a sentence of" in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "30")
    print_table(("table", "what"), rows)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 30


def test_show_counts_the_nodes_of_each_network(model: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds of nodes that no table has are not shown."""
    monkeypatch.setenv("COLUMNS", "120")
    tables = json.loads(run("show", model, "--json").out)["tables"]
    kinds = [kind for kind in NODES if any(table[kind] for table in tables)]
    lines = run("show", model).out.splitlines()
    assert 0 < len(kinds) < len(NODES)
    assert any(line.endswith("  ".join(["keys", *(kind.replace("_", " ") for kind in kinds)])) for line in lines)
    for table in tables:
        (line,) = (line for line in lines if line.startswith(f"{table['table']} "))
        assert line.split()[-len(kinds) :] == [str(table[kind]) for kind in kinds]


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
