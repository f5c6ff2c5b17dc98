"""`privbench compare` from the command line."""

import json
from pathlib import Path

import pytest

from .conftest import DRAFT, Refused, Run


@pytest.mark.slow
def test_compare_prints_and_writes_the_table(run: Run, shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "compare"
    found = run("compare", shop, *DRAFT, "--methods", "independent", "--epsilon", "5, 50", "--runs", 1, "-o", out)
    assert found.code == 0, found.err
    assert "not for publishing" in found.out
    assert "its own epsilon" in " ".join(found.out.split())
    assert "failed" not in found.out
    written = json.loads((out / "compare.json").read_text())
    assert [(s["method"], s["epsilon"], s["runs"]) for s in written["settings"]] == [
        ("independent", "5", 1),
        ("independent", "50", 1),
    ]
    assert len((out / "compare.csv").read_text().splitlines()) == 4
    drawn = (out / "compare.html").read_text()
    assert "not for publishing" in drawn
    assert drawn.count("independent, epsilon 5: ") == 6


def test_wrong_use_is_refused(refused: Refused, shop: Path, tmp_path: Path) -> None:
    common = ("compare", shop, *DRAFT, "-o", tmp_path / "out")
    assert "no such method" in refused(*common, "--epsilon", "1", "--methods", "magic")
    assert "above 0" in refused(*common, "--epsilon", "1,x")
    assert "at least one" in refused(*common, "--epsilon", ",")
    assert "at least 1" in refused(*common, "--epsilon", "1", "--runs", "0")
