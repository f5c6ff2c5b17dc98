"""Whole fits of neighbours whose keys stay inside the entity, or do not: payments of visits, payers and calls."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privbench.encode.keys import MISSING, NULL
from privbench.fitting import part_rows
from privbench.schema.spec import Spec
from privbench.schema.unit import Neighbours

from .replay import compare, replayed
from .worlds import Pair, Rows, write_entities

DDL = """
CREATE TABLE person (id BIGINT PRIMARY KEY, age BIGINT NOT NULL);
CREATE TABLE visit (id BIGINT PRIMARY KEY, person BIGINT NOT NULL REFERENCES person (id), cost BIGINT NOT NULL);
CREATE TABLE call (id BIGINT PRIMARY KEY, person BIGINT NOT NULL REFERENCES person (id), minutes BIGINT NOT NULL);
CREATE TABLE payment (id BIGINT PRIMARY KEY, visit BIGINT REFERENCES visit (id), payer BIGINT REFERENCES person (id),
  call BIGINT REFERENCES call (id), amount BIGINT NOT NULL, kind BIGINT NOT NULL);
"""
COLUMNS = {
    "person": ("id", "age"),
    "visit": ("id", "person", "cost"),
    "call": ("id", "person", "minutes"),
    "payment": ("id", "visit", "payer", "call", "amount", "kind"),
}


CODINGS: dict[str, dict[str, Any]] = {
    "values": {},
    "values that determine others": {},
    "after the owner's": {"relative_to": "visit.cost", "domain": {"range": [-9, 9]}},
    "after a value further above": {"relative_to": "person.age", "domain": {"range": [-9, 9]}},
    "step by step": {"relative_to": "previous", "domain": {"range": [0, 9]}, "first": {"range": [0, 9]}},
    "step by step from the owner's": {
        "relative_to": "previous",
        "domain": {"range": [0, 9]},
        "start": "visit.cost",
        "first": {"range": [-9, 9]},
    },
}
"""How the amounts of payments are coded."""


def spec_of(neighbours: Neighbours, coding: str = "values") -> Spec:
    number = {"type": "BIGINT", "null": False, "domain": {"range": [0, 9]}}
    key, held = {"type": "BIGINT", "null": False}, {"type": "BIGINT"}

    def owned(table: str, inside: bool = False) -> dict[str, Any]:
        column = {"person": "person", "visit": "visit", "call": "call"}[table]
        return {"columns": [column], "table": table, "references": ["id"], "inside": inside}

    mapped = coding == "values that determine others"
    kind = {**number, "determined_by": "amount"} if mapped else {"type": "BIGINT", "drop": True}
    payer = {"columns": ["payer"], "table": "person", "references": ["id"], "inside": True}
    return Spec.model_validate(
        {
            "unit": "person",
            "neighbours": neighbours.value,
            "orphans": "null",
            "tables": {
                "person": {"key": ["id"], "columns": {"id": key, "age": number}},
                "visit": {
                    "key": ["id"],
                    "foreign_keys": [owned("person")],
                    "columns": {"id": key, "person": held, "cost": number},
                },
                "call": {
                    "key": ["id"],
                    "foreign_keys": [owned("person")],
                    "columns": {"id": key, "person": held, "minutes": number},
                },
                "payment": {
                    "key": ["id"],
                    "foreign_keys": [owned("visit"), payer, owned("call", inside=True)],
                    "columns": {
                        "id": key,
                        "visit": held,
                        "payer": held,
                        "call": held,
                        "amount": {**number, **CODINGS[coding]},
                        "kind": kind,
                    },
                },
            },
        }
    )


def _person(rng: random.Random, number: int, persons: int, *, large: bool = False) -> Rows:
    """A person with visits, calls and payments, whose keys mostly name the person's own rows."""
    rows: Rows = {table: [] for table in COLUMNS}
    rows["person"].append((number, rng.randrange(10)))
    visits, calls = rng.randint(1, 3), rng.randint(0, 2)
    rows["visit"] = [(number * 100 + at, number, rng.randrange(10)) for at in range(visits)]
    rows["call"] = [(number * 100 + at, number, rng.randrange(10)) for at in range(calls)]
    for at in range(rng.randint(30, 50) if large else rng.choice([0, 1, 2, 5])):
        other = rng.randrange(persons) if rng.random() < 0.2 else number
        visit = rng.choice([None, other * 100, number * 100])
        call = rng.choice([None, number * 100, other * 100])
        amount = rng.randrange(10)
        rows["payment"].append((number * 1000 + at, visit, number, call, amount, amount // 3))
    return rows


def problems(folder: Path, neighbours: Neighbours, seed: int, coding: str = "values") -> list[str]:
    """What two runs on neighbours show that one alone does not."""
    rng = random.Random(seed)
    persons, replaced = 40, neighbours is Neighbours.REPLACE
    others = [_person(rng, number, persons) for number in range(persons - 1)]
    mine = [_person(rng, persons - 1, persons, large=large) for large in (True, False)]
    one = write_entities(folder / f"one{seed}", DDL, COLUMNS, [*others, mine[0]])
    other = write_entities(folder / f"other{seed}", DDL, COLUMNS, [*others, mine[1]] if replaced else others)
    pair = Pair(one=one, other=other)
    return compare(*replayed(folder, pair, spec_of(neighbours, coding), epsilon="400"), replaced=replaced)


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])
def test_neighbours_cannot_be_told_apart_by_more_than_was_charged(
    neighbours: Neighbours, seed: int, tmp_path: Path
) -> None:
    assert problems(tmp_path, neighbours, seed) == []


@pytest.mark.parametrize("coding", [c for c in CODINGS if c != "values"])
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 5))])
def test_nor_by_differences_from_rows_that_keys_lead_to(
    neighbours: Neighbours, seed: int, coding: str, tmp_path: Path
) -> None:
    assert problems(tmp_path, neighbours, seed, coding) == []


@pytest.mark.parametrize("coding", CODINGS)
def test_replay_catches_keys_that_lead_out_of_the_entity(
    coding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_rows, "inside_keys", lambda rows, *_: np.where(rows == MISSING, NULL, rows))
    assert any(problems(tmp_path, Neighbours.REPLACE, seed, coding) for seed in range(1, 6))
