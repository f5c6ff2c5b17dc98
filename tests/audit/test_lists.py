"""Whole fits of neighbours with a hidden list: seasons in which players bat and pitch."""

import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from privbench.fitting import fit as fit_module
from privbench.fitting import lists as lists_module
from privbench.schema.spec import Spec
from privbench.schema.tables import Table
from privbench.schema.unit import Neighbours

from .replay import compare, replayed
from .worlds import Pair, Rows, write_entities

DDL = """
CREATE TABLE player (id BIGINT PRIMARY KEY, height BIGINT NOT NULL);
CREATE TABLE bat (player BIGINT REFERENCES player (id), year BIGINT, team BIGINT, hits BIGINT NOT NULL);
CREATE TABLE pitch (player BIGINT REFERENCES player (id), year BIGINT, team BIGINT, wins BIGINT NOT NULL);
"""
COLUMNS = {"player": ("id", "height"), "bat": ("player", "year", "team", "hits")}
COLUMNS["pitch"] = ("player", "year", "team", "wins")
SEASON = ["player", "year"]


def spec_of(neighbours: Neighbours, **from_data: str) -> Spec:
    number = {"type": "BIGINT", "null": False, "domain": {"range": [0, 9]}}
    key, held = {"type": "BIGINT", "null": False}, {"type": "BIGINT"}
    to_player = {"columns": ["player"], "table": "player", "references": ["id"]}
    to_season = {"columns": SEASON, "table": "season", "references": SEASON}
    tables = {
        "player": {"key": ["id"], "columns": {"id": key, "height": number}},
        "season": {
            "list_of": ["bat", "pitch"],
            "key": SEASON,
            "owner": ["player"],
            "foreign_keys": [to_player],
            "columns": {"player": key, "year": number, "team": {"type": "BIGINT"}},
        },
    }
    for name, column in (("bat", "hits"), ("pitch", "wins")):
        tables[name] = {
            "owner": SEASON,
            "foreign_keys": [{**to_player, "inside": True, **from_data}, to_season],
            "columns": {
                "player": held,
                "year": held,
                "team": {"type": "BIGINT", "computed": "season.team"},
                column: number,
            },
        }
    return Spec.model_validate({"unit": "player", "neighbours": neighbours.value, "tables": tables})


def _player(rng: random.Random, number: int, *, large: bool = False) -> Rows:
    """A player with seasons; some rows have no year."""
    rows: Rows = {"player": [(number, rng.randrange(10))], "bat": [], "pitch": []}
    for _ in range(rng.randint(30, 50) if large else rng.choice([0, 1, 2, 5])):
        year = rng.choice([None, *range(10)])
        for table, share in (("bat", 0.9), ("pitch", 0.5)):
            if rng.random() < share:
                rows[table].append((number, year, rng.choice([None, number % 7]), rng.randrange(10)))
    return rows


def _nobody(rng: random.Random) -> Rows:
    """A row without a player: an entity of its own."""
    return {"player": [], "bat": [(None, rng.randrange(10), 1, 1)], "pitch": []}


PLAYERS, EPSILON = 40, "400"


def problems(folder: Path, neighbours: Neighbours, seed: int, spec: Spec | None = None) -> list[str]:
    """What two runs on neighbours show that one alone does not."""
    rng = random.Random(seed)
    players, replaced = PLAYERS, neighbours is Neighbours.REPLACE
    others = [*(_player(rng, number) for number in range(1, players)), _nobody(rng)]
    mine = [_player(rng, 0, large=large) for large in (True, False)]
    one = write_entities(folder / f"one{seed}", DDL, COLUMNS, [mine[0], *others])
    other = write_entities(folder / f"other{seed}", DDL, COLUMNS, [mine[1], *others] if replaced else others)
    pair = Pair(one=one, other=other)
    return compare(*replayed(folder, pair, spec or spec_of(neighbours), epsilon=EPSILON), replaced=replaced)


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])
def test_neighbours_cannot_be_told_apart_by_more_than_was_charged(
    neighbours: Neighbours, seed: int, tmp_path: Path
) -> None:
    assert problems(tmp_path, neighbours, seed) == []


def test_replay_catches_a_list_of_all_entities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each year one row, of whichever player had it first."""
    list_rows = lists_module.list_rows

    def of_all(table: Table, rows: pa.Table) -> pa.Table:
        found = list_rows(table, rows)
        _, first = np.unique(found.column("year").to_numpy(), return_index=True)
        return found.take(pa.array(np.sort(first)))

    monkeypatch.setattr(lists_module, "list_rows", of_all)
    monkeypatch.setattr("privbench.fitting.reading.check_orphans", lambda *_, **__: None)
    assert any(problems(tmp_path, Neighbours.REPLACE, seed) for seed in range(1, 4))


# -- lists that were taken from the data, and are used if they pay -----------------------------------------------------


@pytest.fixture
def borderline(monkeypatch: pytest.MonkeyPatch) -> Spec:
    """A list that pays for as many players as there are, and not for one fewer; the number is private."""
    monkeypatch.setattr(lists_module, "LISTS_PAY", PLAYERS * int(EPSILON))
    return spec_of(Neighbours.ADD_REMOVE, **{"from": "data"})


def test_whether_a_list_pays_does_not_tell_a_private_number_of_entities(borderline: Spec, tmp_path: Path) -> None:
    assert borderline.drafted_lists() == ("season",)
    assert problems(tmp_path, Neighbours.ADD_REMOVE, 1, borderline) == []


def test_replay_catches_lists_that_pay_by_an_exact_number(
    borderline: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def paying(spec: Spec, *, entities: int, epsilon: Fraction) -> Spec:
        pays = entities * epsilon >= lists_module.LISTS_PAY
        return spec if pays else spec.without_lists(spec.drafted_lists())

    monkeypatch.setattr(fit_module, "with_lists_that_pay", paying)
    with pytest.raises((AssertionError, ValueError)):  # the neighbour asks for something else than the tape has
        assert problems(tmp_path, Neighbours.ADD_REMOVE, 1, borderline) == []
