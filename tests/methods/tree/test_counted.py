"""FanoutLink that a computed column says: numbers one by one, as they are, not as fanouts usually fall."""

from dataclasses import replace

import numpy as np
import pytest

from privbench.methods.tree.columns import ALONE, rows_edges
from privbench.methods.tree.single import Single, estimate
from privbench.privacy.calibrate import Noise
from privbench.privacy.facts import Facts, LinkFacts, TableFacts
from privbench.privacy.features import fanout
from privbench.schema.unit import LinkKind, Neighbours
from privbench.spn.fanouts import fanout_edges

LINK = LinkFacts(
    name="person.home_id",
    table="person",
    columns=("home_id",),
    target="home",
    kind=LinkKind.OWNER,
    slots=None,
    nullable=False,
    unique=False,
    counted=True,
)
COUNTS = [0, 9000, 8000, 5000, 4000, 2500, 1200, 100, 700, 200]


def facts(cap: int | None) -> Facts:
    tables = {t: TableFacts(name=t, columns={}, rows=None, cap=cap) for t in ("home", "person")}
    return Facts(entity="home", neighbours=Neighbours.REPLACE, tables=tables, links=(LINK,))


@pytest.mark.parametrize("cap", [3, ALONE - 1, ALONE, 500])
def test_small_numbers_have_a_bin_of_their_own(cap: int) -> None:
    edges = rows_edges(facts(cap), LINK)
    alone = min(cap + 1, ALONE)
    assert edges[: alone + 1].tolist() == list(range(alone + 1))
    assert edges[-1] == cap + 1
    assert (np.diff(edges) > 0).all()
    assert rows_edges(facts(cap), replace(LINK, counted=False)).tolist() == fanout_edges(cap).tolist()


@pytest.mark.parametrize("counted", [True, False])
def test_numbers_that_clearly_do_not_fall_stay(counted: bool) -> None:
    link = replace(LINK, counted=counted)
    feature = fanout(link, rows_edges(facts(None), LINK))
    noisy = np.zeros(feature.size)
    noisy[: len(COUNTS)] = COUNTS
    single = Single(feature=feature, noisy=noisy[None], noise=Noise(gaussian=False, scale=4.0))
    [found] = estimate([single], entities=float(noisy.sum()), means={}).counts
    assert found.sum() == pytest.approx(noisy.sum())
    assert found[1:6] == pytest.approx(COUNTS[1:6], rel=0.02)
    assert found[7] < found[8] / 3


def test_numbers_fall_where_noise_may_have_made_them_rise() -> None:
    feature = fanout(replace(LINK, counted=False), rows_edges(facts(None), LINK))
    noisy = np.zeros(feature.size)
    noisy[: len(COUNTS)] = COUNTS
    single = Single(feature=feature, noisy=noisy[None], noise=Noise(gaussian=False, scale=float(max(COUNTS))))
    [found] = estimate([single], entities=float(noisy.sum()), means={}).counts
    assert found[7] >= found[8]
