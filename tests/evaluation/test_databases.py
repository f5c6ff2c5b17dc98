from pathlib import Path

import numpy as np
import pytest

from privbench.evaluation import coding
from privbench.evaluation.databases import draw_rows, places
from privbench.evaluation.evaluate import evaluate
from privbench.evaluation.marginals import Sample
from privbench.evaluation.result import result_json

from .conftest import REAL, SCHEMA, SYNTHETIC, Make

ROWS = """
INSERT INTO customer SELECT i, ['Ulm', 'Bern', NULL][1 + i % 3], hash(i) % {ages} FROM range(3000) t(i);
INSERT INTO sale SELECT i, hash(i + 1) % 3000, hash(i + 2) % 40, ['a', 'b', 'c'][1 + (hash(i + 3) % {kinds})::INTEGER]
  FROM range(20000) t(i);
"""


def test_drawn_rows_are_distinct_ascending_by_seed_and_spread_evenly() -> None:
    assert draw_rows(5000, most=5000, seed=0) is None
    drawn, again, other = (draw_rows(20000, most=5000, seed=seed) for seed in (0, 0, 1))
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
    monkeypatch.setattr(coding, "MAX_SAMPLED_ROWS", 2500)
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
    monkeypatch.setattr(coding, "MAX_SAMPLED_ROWS", 2500)
    real = make("real", SCHEMA + ROWS.format(ages=8, kinds=2))
    result = evaluate(real, real, floor=False)
    assert [d["kld"].values.value for ways, d in result.marginals.items() if ways < 3] == [0, 0]
    assert result.cross["kld"].values.value == 0


LARGE = """
CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER, d VARCHAR);
INSERT INTO t SELECT hash(i) % 3, hash(i + 1) % {b}, (hash(i + 2) % 5)::INTEGER - 2, ['x', 'y', NULL][1 + i % 3]
  FROM range({rows}) t(i);
"""


def test_wide_marginals_of_a_large_table_are_of_drawn_rows_and_say_so(make: Make) -> None:
    real = make("real", LARGE.format(b=4, rows=9000))
    synthetic = make("synthetic", LARGE.format(b=3, rows=8000))
    exact = evaluate(real, synthetic)
    found = evaluate(real, synthetic, sample=Sample(wide_rows=4000))
    assert [m.sampled_rows for m in exact.tables[0].marginals] == [(None, None)] * 4
    assert not exact.skips
    for ways, (whole, some) in enumerate(zip(exact.tables[0].marginals, found.tables[0].marginals, strict=True), 1):
        if ways < 3:
            assert some == whole
            continue
        sizes = [rows for rows in some.sampled_rows if rows is not None]
        assert len(sizes) == 2
        assert all(2500 < rows < 4000 for rows in sizes)
        measures = [m.distances["tvd"].codes for m in (whole, some)]
        assert measures[1].value == pytest.approx(measures[0].value, abs=0.03)
        assert measures[1].value != measures[0].value
        assert measures[1].floor > measures[0].floor > 0
        stated = f"real: marginals of 3 columns and more are counted on {sizes[0]:,} of 9,000 rows, by seed"
        assert ("t", stated) in {(s.what, s.reason) for s in found.skips}
        assert result_json(found)["tables"][0]["marginals"][str(ways)]["sampled_rows"] == some.sampled_rows
    itself = evaluate(real, real, sample=Sample(wide_rows=4000), floor=False)
    assert [d["kld"].values.value for d in itself.marginals.values()] == [0] * 4


def test_a_sampled_table_gets_fewer_wide_marginals(make: Make) -> None:
    real = make("real", LARGE.format(b=4, rows=9000))
    sample = Sample(wide_rows=4000, wide_visits=0)  # the least is 10 of 4
    assert [m.counted for m in evaluate(real, real, sample=sample, floor=False).tables[0].marginals] == [4, 6, 4, 1]
    assert (sample.wide_limit(3, 7000), Sample().wide_limit(3, 400_000), Sample().wide_limit(4, 1000)) == (10, 100, 300)


def test_integers_looked_up_in_an_array_get_the_codes_of_a_join(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    real = make("real", REAL + "INSERT INTO customer VALUES (-7, 'Rom', -300), (900, NULL, NULL);")
    synthetic = make("synthetic", SYNTHETIC + "INSERT INTO customer VALUES (-9, NULL, 4000), (90, 'Rom', NULL);")
    by_array = evaluate(real, synthetic)
    monkeypatch.setattr(coding, "_SPAN", 0)
    by_join = evaluate(real, synthetic)
    assert by_array.keys[0].real_unlinked == 19
    assert (by_array.tables, by_array.keys) == (by_join.tables, by_join.keys)
