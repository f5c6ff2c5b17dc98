"""`--delta` on the command line, and where it is shown."""

import json
from pathlib import Path

from .conftest import DRAFT, Run

BUDGET = ("--epsilon", "3.2", "--delta", "1e-9", "--method", "independent")


def test_fit_show_and_verify(spec: Path, run: Run, tmp_path: Path) -> None:
    model = tmp_path / "m"
    fitted = run("fit", spec, *BUDGET, "-o", model)
    assert "epsilon 3.2, delta 1e-09 for replacing one entity of person" in fitted.out
    ledger = run("show", model, "--ledger").out
    assert "epsilon 3.2, delta 1e-09: follows from rho 0.136083 (zCDP, replace)" in ledger
    assert "rho  share %" in ledger
    assert "epsilon promised 3.2 with delta 1e-09, spent 3.2" in run("verify", model).out
    assert json.loads(run("verify", model, "--json").out)["delta"] == "1/1000000000"


def test_synth(shop: Path, run: Run, tmp_path: Path) -> None:
    made = run("synth", shop, *DRAFT, *BUDGET, "-o", tmp_path / "out")
    assert made.code == 0
    receipt = json.loads((tmp_path / "out" / "receipt.json").read_text())
    assert (receipt["delta"], receipt["budget"]["measure"]) == ("1/1000000000", "rho")


def test_what_takes_no_delta_is_told(spec: Path, run: Run, tmp_path: Path) -> None:
    paper = run("fit", spec, "--epsilon", "1", "--delta", "1e-9", "--method", "paper", "-o", tmp_path / "m")
    assert (paper.code, "method paper takes no delta" in paper.err) == (2, True)
    large = run("fit", spec, "--epsilon", "1", "--delta", "0.01", "-o", tmp_path / "m")
    assert (large.code, "delta is 0.01" in large.err) == (2, True)
    assert not (tmp_path / "m").exists()


def test_lists_of_texts_are_found_with_a_delta(shop: Path, run: Run, tmp_path: Path) -> None:
    people = "".join(f"{i},{'xyz'[i % 3]},{i % 50}\n" for i in range(2_000))
    (shop / "person.csv").write_text("id,city,age\n" + people)
    spec, model = tmp_path / "private.yaml", tmp_path / "m"
    drafted = run("draft", shop, "--unit", "person", "-o", spec)
    assert "drop: true`: person.city. Or fit with `--delta 1e-9`" in drafted.out
    refused = run("fit", spec, "--epsilon", "8", "-o", model)
    assert (refused.code, "--delta 1e-9" in refused.err) == (2, True)
    found = ("--epsilon", "8", "--delta", "1e-9", "--method", "tree")
    planned = run("fit", spec, *found, "--dry-run", "--rows", "person=2000").out
    assert "Strings that will be listed, and published as they are: those that about" in planned
    fitted = run("fit", spec, *found, "-o", model)
    assert "strings found with budget, published as they are: person.city (3)" in fitted.out
    assert json.loads(run("show", model, "--json").out)["lists_found"] == {"person.city": 3}
    ledger = run("show", model, "--ledger").out
    assert "of delta, thresholds of frequent values spent" in ledger
    assert "of 2.5e-10; rho implies epsilon with the rest" in ledger
    assert "status: verified" in run("verify", model).out
