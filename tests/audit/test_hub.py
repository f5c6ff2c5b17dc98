"""Differential replay of fits with a hub: activity, clipped numbers of rows, and votes of who has a key."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privbench.fitting.draft import draft
from privbench.methods.tree.weighed import WeighedTable
from privbench.privacy import exact
from privbench.privacy.engine import Exact, NumpyEngine
from privbench.privacy.exact import Integers
from privbench.privacy.facts import LinkFacts
from privbench.privacy.feature_codes import FeatureCodes
from privbench.privacy.queries import Counts, Histogram, Query
from privbench.schema.spec import Orphans
from privbench.schema.unit import Neighbours

from ..opened import bins_of, tables_of
from .forums import CHOICES, write_forums
from .replay import Run, compare, replayed

Asked = dict[str, Any]
USERS = 80
CASES = [(neighbours, delta) for neighbours in Neighbours for delta in ("0", "1e-6")]
FAST = [CASES[0], CASES[-1]]
REFERENCED = {"users": 3, "post": 1}
"""How many keys reference the rows of each table that owns others."""


def check(folder: Path, neighbours: Neighbours, delta: str, *, seed: int, epsilon: str = "60") -> Run:
    replaced = neighbours is Neighbours.REPLACE
    pair = write_forums(folder / f"{seed}", seed=seed, users=USERS, replaced=replaced)
    spec = draft(pair.one, neighbours=neighbours, orphans=Orphans.NULL, **CHOICES)
    first, second = replayed(folder, pair, spec, epsilon=epsilon, delta=delta)
    assert compare(first, second, replaced=replaced) == []
    return first


def histograms(run: Run) -> list[Asked]:
    asked = [question.event.query.to_json() for question in run.asked]
    return [query for query in asked if query["kind"] == "histogram"]


def kinds_of(query: Asked) -> list[str]:
    return [axis["feature"]["kind"] for axis in query["axes"]]


def assert_all_in_play(run: Run) -> None:
    """Activity alone and with each fanout and reference, votes on each key, and numbers of rows up to a limit."""
    asked = histograms(run)
    for table, keys in REFERENCED.items():
        kinds = [kinds_of(query) for query in asked if query["table"] == table]
        assert ["activity"] in kinds
        assert ["activity", "fanout"] in kinds
        assert kinds.count(["activity", "in-degree"]) == keys
    votes = [query for query in asked if query["counts"] == "votes"]
    assert {(query["table"], *kinds_of(query)) for query in votes} == {
        ("users", "null key"),
        ("post", "null key"),
        ("post", "own key"),
        ("comment", "own key"),
    }
    assert ["own key"] in [kinds_of(query) for query in asked if query["table"] == "comment"]
    keys = {(query["table"], *query["axes"][0]["feature"]["link"]["columns"]) for query in votes}
    assert keys == {("users", "friend"), ("post", "editor"), ("comment", "mentions"), ("post", "follows")}
    assert any(not query["axes"] and query.get("full_rows", 1) > 1 for query in asked)


@pytest.mark.parametrize(
    ("neighbours", "delta"), [pytest.param(*case, marks=[] if case in FAST else pytest.mark.slow) for case in CASES]
)
def test_neighbours_cannot_be_told_apart_by_more_than_was_charged(
    neighbours: Neighbours, delta: str, tmp_path: Path
) -> None:
    assert_all_in_play(check(tmp_path, neighbours, delta, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 7))
@pytest.mark.parametrize(("neighbours", "delta"), CASES)
def test_many_neighbours(neighbours: Neighbours, delta: str, seed: int, tmp_path: Path) -> None:
    run = check(tmp_path, neighbours, delta, seed=seed, epsilon=("3", "25", "300")[seed % 3])
    assert any("activity" in kinds_of(query) for query in histograms(run))


@pytest.mark.slow
def test_columns_are_counted_in_proportion_where_there_is_enough_budget(tmp_path: Path) -> None:
    run = check(tmp_path, Neighbours.ADD_REMOVE, "0", seed=1, epsilon="300")
    assert any(query["axes"] and query.get("full_rows", 1) > 1 for query in histograms(run))


# -- leaks built in on purpose -------------------------------------------------------------------------------------

Mutant = Callable[[pytest.MonkeyPatch], None]


def votes_of_rows(patch: pytest.MonkeyPatch) -> None:
    """Every row that has a key counts, not every entity."""
    count = NumpyEngine.count

    def by_rows(self: NumpyEngine, queries: Sequence[Query]) -> list[Exact]:
        return [
            np.array([(bins_of(self, query.table, query.axes[0]) >= 0).sum()], np.int64)
            if isinstance(query, Histogram) and query.counts is Counts.VOTES
            else found
            for query, found in zip(queries, count(self, queries), strict=True)
        ]

    patch.setattr(NumpyEngine, "count", by_rows)


def activity_of_references(patch: pytest.MonkeyPatch) -> None:
    """The posts of a user, and those that the user has edited."""
    rows_below = FeatureCodes._rows_below

    def edited(self: FeatureCodes, table: str, links: Sequence[LinkFacts]) -> Integers:
        editors = self._data["post"].keys["post.editor"]
        more = exact.degrees(editors, self._size(table)) if table == "users" else 0
        return rows_below(self, table, links) + more

    patch.setattr(FeatureCodes, "_rows_below", edited)


def numbers_of_rows_without_limit(patch: pytest.MonkeyPatch) -> None:
    """Where rows are counted in proportion, those beyond the limit count as well."""
    weigh = exact.row_weights

    def unlimited(entities: Integers, units: int, full_rows: int) -> Integers | None:
        return weigh(entities, units, 1) if full_rows == 1 else np.full(len(entities), units // full_rows)

    patch.setattr(exact, "row_weights", unlimited)


def a_limit_that_the_data_say(patch: pytest.MonkeyPatch) -> None:
    """Rows are counted up to those that the largest entity has."""
    measure = WeighedTable.measure

    def measured(self: WeighedTable, axes: Any, amount: Fraction) -> Any:
        if axes or self.full_rows == 1:
            return measure(self, axes, amount)
        engine: Any = self.vault._engine
        largest = int(exact.rows_of_entity(tables_of(engine)[self.table].entities).max())
        return measure(replace(self, full_rows=2 ** largest.bit_length()), axes, amount)

    patch.setattr(WeighedTable, "measure", measured)


def in_degrees_of_all_keys(patch: pytest.MonkeyPatch) -> None:
    """Every key of an entity counts, not one of them."""
    patch.setattr(exact, "one_key_each", lambda targets, _: targets)


def own_keys_are_the_most_common(patch: pytest.MonkeyPatch) -> None:
    """Keys to the row that most keys reference count as those to the row above."""

    def most_common(self: FeatureCodes, link: LinkFacts, _above: Sequence[LinkFacts]) -> Any:
        key = self._key(link)
        return key == np.bincount(key[key >= 0], minlength=1).argmax()

    patch.setattr(FeatureCodes, "_is_own", most_common)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant",
    [
        own_keys_are_the_most_common,
        votes_of_rows,
        activity_of_references,
        numbers_of_rows_without_limit,
        a_limit_that_the_data_say,
        in_degrees_of_all_keys,
    ],
)
def test_replay_catches(mutant: Mutant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match=r"moved|differ"):
        _several(tmp_path)


def _several(folder: Path) -> None:
    for seed in (1, 2, 3):
        check(folder, Neighbours.ADD_REMOVE, "0", seed=seed)


@pytest.mark.slow
def test_without_a_mutant_nothing_is_caught(tmp_path: Path) -> None:
    _several(tmp_path)
