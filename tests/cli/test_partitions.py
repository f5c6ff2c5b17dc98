"""`generate --partitions`: some partitions here, others there, then the bundle."""

import json
import shutil
from pathlib import Path

from .conftest import DDL, Run


def test_some_here_some_there_then_the_bundle(model: Path, run: Run, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    request = ("--seed", "7", "--scale", "2", "--partitions", "5")
    first = run("generate", model, "-o", here, *request, "--only", "0,2-3", "--json")
    assert json.loads(first.out)["there"] == [0, 2, 3]
    second = run("generate", model, "-o", there, *request, "--only", "1", "--only", "4")
    assert second.code == 0
    assert "Wrote 2 of 5 partitions" in second.out
    assert "Still to be made: 3." in second.out
    for folder in (there / "partitions").iterdir():
        shutil.copytree(folder, here / "partitions" / folder.name)
    done = json.loads(run("generate", model, "-o", here, *request, "--resume", "--json").out)
    assert done["rows"]["person"] == 120
    assert sorted(p.name for p in (here / "data" / "visit").iterdir()) == [f"part-0000{i}.parquet" for i in range(5)]
    assert run("verify", here).code == 0
    at_once = run("generate", model, "-o", tmp_path / "at_once", *request)
    assert at_once.code == 0
    assert (tmp_path / "at_once" / "SHA256SUMS").read_text() == (here / "SHA256SUMS").read_text()


def test_evaluate_and_draft_read_a_bundle_in_partitions(model: Path, shop: Path, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("generate", model, "-o", out, "--seed", "7", "--partitions", "3").code == 0
    assert run("evaluate", "--real", shop, "--synthetic", out, "-o", tmp_path / "result").code == 0
    assert run("draft", out, "--unit", "person", "--domains", "data", "-o", tmp_path / "new.yaml").code == 0


def test_what_is_refused(model: Path, run: Run, tmp_path: Path) -> None:
    for arguments, words in (
        (("--only", "x", "--partitions", "2"), "such as 3,7-9"),
        (("--only", "1-0", "--partitions", "2", "--seed", "1"), "from the smaller number"),
        (("--only", "2", "--partitions", "2", "--seed", "1"), "0..1"),
        (("--only", "0-99999999999", "--partitions", "2", "--seed", "1"), "there are at most"),
        (("--only", "1", "--seed", "1"), "--partitions"),
        (("--resume",), "--partitions"),
        (("--partitions", "2", "--force"), "--force"),
        (("--partitions", "2", "--to", "sqlite"), "parquet or csv"),
        (("--partitions", "2", "--to", "postgresql://nowhere/x"), "server"),
    ):
        result = run("generate", model, "-o", tmp_path / "out", *arguments)
        assert result.code != 0
        assert words in " ".join(result.err.split())
        assert not (tmp_path / "out").exists()


def test_why_partitions_are_made_together_is_told(shop: Path, run: Run, tmp_path: Path) -> None:
    (shop / "schema.sql").write_text(DDL.replace("age SMALLINT)", "age SMALLINT, UNIQUE (city, age))"))
    spec, model = tmp_path / "new.yaml", tmp_path / "new.model"
    assert run("draft", shop, "--unit", "person", "--domains", "data", "-o", spec).code == 0
    assert run("fit", spec, "--epsilon", "5", "-o", model).code == 0
    request = ("--partitions", "2", "--seed", "1", "--only")
    told = run("generate", model, "-o", tmp_path / "out", *request, "1").out
    assert "person.city, age: its values are drawn" in " ".join(told.split())
    told = run("generate", model, "-o", tmp_path / "out", *request, "0", "--json").out
    assert json.loads(told)["made_together"] == [
        "person.city, age: its values are drawn, and none may be in two partitions"
    ]
