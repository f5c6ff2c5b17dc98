"""The resample that runtimes are measured on: the same entities, in the order of the real rows."""

import numpy as np

from privbench.evaluation.resample import Resample
from privbench.evaluation.runtimes import in_real_order
from privbench.schema.tables import ForeignKey

KEY = ForeignKey(columns=("parent_id",), table="parent", references=("id",))


def test_rows_lie_as_the_real_ones_and_keep_their_parents() -> None:
    rng = np.random.default_rng(3)
    parents, children = rng.integers(0, 50, 60), rng.integers(0, 90, 200)
    links = rng.integers(-1, 60, 200)
    sample = Resample(rows={"parent": parents, "child": children}, links={("child", KEY): links})
    ordered = in_real_order(sample)

    def pairs(of: Resample) -> list[tuple[int, int]]:
        own, at = of.rows["child"], of.links["child", KEY]
        return sorted((int(row), int(of.rows["parent"][p]) if p >= 0 else -1) for row, p in zip(own, at, strict=True))

    assert pairs(ordered) == pairs(sample)
    for table in ("parent", "child"):
        assert (np.diff(ordered.rows[table]) >= 0).all()
        assert sorted(ordered.rows[table]) == sorted(sample.rows[table])
