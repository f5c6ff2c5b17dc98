from pathlib import Path

import numpy as np
import pytest

from privbench.evaluation import databases
from privbench.evaluation.databases import draw_rows, places
from privbench.evaluation.evaluate import evaluate
from privbench.evaluation.result import result_json

from .conftest import SCHEMA, Make

ROWS = """
INSERT INTO customer SELECT i, ['Ulm', 'Bern', NULL][1 + i % 3], hash(i) % {ages} FROM range(3000) t(i);
INSERT INTO sale SELECT i, hash(i + 1) % 3000, hash(i + 2) % 40, ['a', 'b', 'c'][1 + (hash(i + 3) % {kinds})::INTEGER]
  FROM range(20000) t(i);
"""


def test_drawn_rows_are_distinct_ascending_by_seed_and_spread_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "MAX_SAMPLED_ROWS", 5000)
    assert draw_rows(5000, seed=0) is None
    drawn, again, other = (draw_rows(20000, seed=seed) for seed in (0, 0, 1))
    assert drawn is not None
    assert again is not None
    assert other is not None
    assert (np.diff(drawn) > 0).all()
    assert 4000 < len(drawn) < 5000
    assert drawn.mean() == pytest.approx(10000, rel=0.03)
    assert np.array_equal(drawn, again)
    assert not np.array_equal(drawn, other)


def test_places_are_found_among_the_drawn_rows_only() -> None:
    positions = np.array([4, -1, 9, 0, 4])
    assert places(positions, None) is positions
    assert places(positions, np.array([0, 4, 8])).tolist() == [1, -1, -1, 0, 1]
    assert places(positions, np.zeros(0, np.int64)).tolist() == [-1] * 5


@pytest.mark.slow
def test_a_sample_of_rows_scores_about_the_same_and_is_stated(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = make("real", SCHEMA + ROWS.format(ages=8, kinds=2))
    synthetic = make("synthetic", SCHEMA + ROWS.format(ages=5, kinds=3))
    workload = tmp_path / "queries.sql"
    workload.write_text("SELECT COUNT(*) FROM sale s, customer c WHERE s.customer_id = c.id AND c.age < 3;")
    exact = evaluate(real, synthetic, workload=workload, floor=False)
    monkeypatch.setattr(databases, "MAX_SAMPLED_ROWS", 2500)
    found = evaluate(real, synthetic, workload=workload)
    assert [t.sampled_rows for t in exact.tables] == [(None, None)] * 2
    assert not exact.skips
    for table in found.tables:
        sizes = [rows for rows in table.sampled_rows if rows is not None]
        assert len(sizes) == 2
        assert all(1500 < rows < 2500 for rows in sizes)
        for rows, side in zip(sizes, ("real", "synthetic"), strict=True):
            whole = f"{table.real_rows:,}"
            reason = f"{side}: columns are compared on {rows:,} of {whole} rows, by seed"
            assert (table.name, reason) in {(s.what, s.reason) for s in found.skips}
    assert "no resample is scored" in {s.what: s.reason for s in found.skips}["floor"]
    assert all(sum(c.histogram.real) == t.sampled_rows[0] for t in found.tables for c in t.columns)
    for ways in (1, 2):
        wanted, got = exact.marginals[ways]["tvd"].codes.value, found.marginals[ways]["tvd"].codes.value
        assert got == pytest.approx(wanted, abs=0.08)
        assert got != wanted
    assert found.cross["tvd"].codes.value == pytest.approx(exact.cross["tvd"].codes.value, abs=0.15)
    assert [t.real_rows for t in found.tables] == [t.real_rows for t in exact.tables]
    assert found.fanouts == exact.fanouts
    assert found.keys[0].fanout == exact.keys[0].fanout
    assert (found.queries[0].real, found.queries[0].synthetic) == (exact.queries[0].real, exact.queries[0].synthetic)
    assert result_json(found)["tables"][0]["sampled_rows"] == found.tables[0].sampled_rows


def test_a_sampled_database_is_no_distance_from_itself(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "MAX_SAMPLED_ROWS", 2500)
    real = make("real", SCHEMA + ROWS.format(ages=8, kinds=2))
    result = evaluate(real, real, floor=False)
    assert [d["kld"].values.value for ways, d in result.marginals.items() if ways < 3] == [0, 0]
    assert result.cross["kld"].values.value == 0
