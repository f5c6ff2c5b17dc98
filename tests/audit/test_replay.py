"""Whole fits of neighbours, for every method, relation and kind of question: nothing moves by more than was charged."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from privbench.errors import BudgetError
from privbench.fitting.draft import draft
from privbench.schema.spec import Orphans, Spec
from privbench.schema.unit import Neighbours

from .replay import Run, compare, replayed, run_fit
from .worlds import CHOICES, write_pair

CASES = [
    (method, neighbours, delta)
    for method, neighbours, delta in product(("tree", "paper", "independent"), Neighbours, ("0", "1e-6"))
    if not (method == "paper" and delta != "0")
]
EPSILONS = ("4", "60", "2000")
"""From hardly enough for single columns to enough for pairs, found domains and computed columns of a small database."""


SETTINGS: dict[str, dict[str, Any]] = {"paper": {"name": "paper", "min_rows": 15, "dependence_threshold": 0.01}}
"""So that the paper's method splits rows of small tables."""


def spec_of(source: Path, method: str, neighbours: Neighbours, delta: str) -> Spec:
    """Domains are left to the budget; with a delta also those of strings."""
    spec = draft(source, neighbours=neighbours, orphans=Orphans.NULL, **CHOICES)
    spec = spec.model_copy(update={"method": SETTINGS.get(method, {"name": method})})
    return spec if delta != "0" else _with_lengths(spec)


def _with_lengths(spec: Spec) -> Spec:
    """Without a delta no list of strings can be found: they are made up."""
    data = spec.model_dump(mode="json", by_alias=True)
    for table, column in (("person", "city"), ("address", "street")):
        data["tables"][table]["columns"][column] |= {"domain": {"text": [0, 4, 8]}, "from": "declared"}
    return Spec.model_validate(data)


RELATIVE: dict[tuple[str, str], dict[str, Any]] = {
    ("purchase", "amount"): {"relative_to": "person.age", "domain": "private"},
    ("purchase", "place"): {"relative_to": "amount", "domain": "private"},
    ("item", "quantity"): {"relative_to": "previous", "domain": {"range": [-2, 2]}, "first": {"range": [0, 5]}},
    ("tag", "kind"): {"relative_to": "person.age", "domain": {"range": [-9, 3]}},
}
"""Columns coded against the row itself, a row above, one two levels up, and the row before."""


def with_relative(spec: Spec) -> Spec:
    """The same, with columns coded as differences."""
    data = spec.model_dump(mode="json", by_alias=True)
    for (table, column), words in RELATIVE.items():
        data["tables"][table]["columns"][column] |= {
            **words,
            "from": "private" if words["domain"] == "private" else "declared",
        }
    return Spec.model_validate(data)


def check(folder: Path, method: str, neighbours: Neighbours, delta: str, *, seed: int, relative: bool = False) -> Run:
    replaced = neighbours is Neighbours.REPLACE
    persons = (12, 60, 150)[seed % 3]
    pair = write_pair(folder / f"{seed}", seed=seed, persons=persons, replaced=replaced)
    spec = spec_of(pair.one, method, neighbours, delta)
    spec = with_relative(spec) if relative else spec
    epsilon = EPSILONS[(seed // 3) % 3] if persons > 12 else EPSILONS[-1]
    try:
        first, second = replayed(folder, pair, spec, epsilon=epsilon, delta=delta)
    except BudgetError:  # refused before anything is drawn, by public numbers
        with pytest.raises(BudgetError):
            run_fit(folder / "model", spec, pair.other, epsilon=epsilon, delta=delta)
        return Run()
    assert compare(first, second, replaced=replaced) == []
    return first


@pytest.mark.parametrize(("method", "neighbours", "delta"), CASES)
def test_neighbours_cannot_be_told_apart_by_more_than_was_charged(
    method: str, neighbours: Neighbours, delta: str, tmp_path: Path
) -> None:
    run = check(tmp_path, method, neighbours, delta, seed=7)
    assert "histogram" in {asked.event.query.to_json()["kind"] for asked in run.asked}


@pytest.mark.parametrize(("method", "neighbours", "delta"), [CASES[0], CASES[3], CASES[-1]])
def test_columns_coded_as_differences_move_no_more_than_was_charged(
    method: str, neighbours: Neighbours, delta: str, tmp_path: Path
) -> None:
    assert check(tmp_path, method, neighbours, delta, seed=7, relative=True).asked


@pytest.mark.slow
@pytest.mark.parametrize(("method", "neighbours", "delta"), CASES)
def test_many_neighbours_with_differences(method: str, neighbours: Neighbours, delta: str, tmp_path: Path) -> None:
    for seed in (4, 8, 100, 101):
        check(tmp_path, method, neighbours, delta, seed=seed, relative=True)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "neighbours", "delta"), CASES)
def test_all_kinds_of_queries_are_among_what_is_replayed(
    method: str, neighbours: Neighbours, delta: str, tmp_path: Path
) -> None:
    runs = [check(tmp_path, method, neighbours, delta, seed=seed) for seed in (4, 8, 7)]
    kinds = {asked.event.query.to_json()["kind"] for run in runs for asked in run.asked}
    assert "histogram" in kinds
    assert (method == "tree") == ("choice of pair" in kinds)
    assert (method == "paper") == ("sums" in kinds)


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_votes_and_the_differences_that_they_find_are_replayed(delta: str, tmp_path: Path) -> None:
    """What is paid is then coded as a difference from what was ordered, and its domain is that of differences."""
    run = check(tmp_path, "tree", Neighbours.REPLACE, delta, seed=8)
    asked = [question.event.query.to_json() for question in run.asked]
    (votes,) = [query for query in asked if query["kind"] == "votes on dependencies"]
    near = [c["feature"] for c in votes["candidates"] if c["feature"]["kind"] == "nearness"]
    assert [(feature["column"], feature["base"]) for feature in near] == [("paid", {"column": "ordered", "owners": 0})]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 106))
@pytest.mark.parametrize(("method", "neighbours", "delta"), CASES)
def test_many_neighbours(method: str, neighbours: Neighbours, delta: str, seed: int, tmp_path: Path) -> None:
    check(tmp_path, method, neighbours, delta, seed=seed)
