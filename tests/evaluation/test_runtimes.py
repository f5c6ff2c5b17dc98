"""The resample that runtimes are measured on: the same entities, rows where the real ones lie."""

import numpy as np
import pytest

from privbench.evaluation.resample import Owner, Ownership, Resample, resample
from privbench.evaluation.runtimes import in_real_order, spread_copies
from privbench.schema.tables import ForeignKey, Schema

KEY = ForeignKey(columns=("parent_id",), table="parent", references=("id",))
OWNERSHIP = Ownership(schema=Schema(), owners={"parent": None, "child": Owner(table="parent", key=KEY)})
SIZES = {"parent": 20_000, "child": 50_000}


def pairs(of: Resample) -> list[tuple[int, int]]:
    """The real child row and the real parent row of each row."""
    own, at = of.rows["child"], of.links["child", KEY]
    return sorted((int(row), int(of.rows["parent"][p]) if p >= 0 else -1) for row, p in zip(own, at, strict=True))


def correlation(rows: np.ndarray) -> float:
    return float(np.corrcoef(rows, np.arange(len(rows)))[0, 1])


@pytest.mark.parametrize("clustered", [True, False])
def test_rows_lie_as_the_real_ones_and_keep_their_parents(clustered: bool) -> None:
    rng = np.random.default_rng(3)
    parents = rng.integers(0 if clustered else -1, SIZES["parent"], SIZES["child"])
    links = {("child", KEY): np.sort(parents) if clustered else parents}
    drawn = resample(OWNERSHIP, SIZES, links, seed=5)
    ordered = in_real_order(drawn, OWNERSHIP, SIZES, links)
    assert pairs(ordered) == pairs(drawn)
    for table in SIZES:
        assert sorted(ordered.rows[table]) == sorted(drawn.rows[table])
        assert abs(correlation(drawn.rows[table])) < 0.3
        assert correlation(ordered.rows[table]) > 0.95
    assert bool((np.diff(ordered.links["child", KEY]) >= 0).all()) is clustered


def test_copies_do_not_lie_side_by_side() -> None:
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 10_000, 10_000)
    places = spread_copies(rows, 10_000)
    sorted_rows = rows[np.argsort(places, kind="stable")]
    assert np.mean(np.diff(np.sort(rows)) == 0) > 0.3
    assert np.mean(np.diff(sorted_rows) == 0) < 0.001
    assert np.median(np.abs(places - rows)[places != rows]) < 500
    assert spread_copies(np.zeros(0, np.int64), 0).tolist() == []
