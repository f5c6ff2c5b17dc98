"""Hidden lists: what one entity moves, in all databases of a small universe and their neighbours.

Players (the entities) bat and pitch; a season is a row of a list that exists in the model alone. Rows may repeat a
season, and lack the year or the player. Databases are read as a fit reads them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privbench.encode.coded import CodedTable
from privbench.errors import SpecError
from privbench.fitting import lists as lists_module
from privbench.fitting.lists import SourceWithLists
from privbench.fitting.reading import read_database
from privbench.io.base import Source
from privbench.methods.method import silent
from privbench.model.facts import link_facts, tables_of_known_size
from privbench.model.model import compile_codecs
from privbench.privacy import features
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.facts import ColumnFacts
from privbench.privacy.noise import TestEntropy
from privbench.privacy.parts import one_part
from privbench.privacy.queries import ENTITY_WEIGHT
from privbench.schema.spec import Spec
from privbench.schema.tables import Schema, Table
from privbench.spn.fanouts import fanout_edges, size_edges

from ..one_part import only_part
from .brute import pair_histograms, worst_moves

NUMBER = {"type": "BIGINT", "null": False, "domain": {"range": [0, 1]}}
PLAIN = {"type": "BIGINT"}
TO_PLAYER = {"columns": ["player"], "table": "player", "references": ["id"]}
SEASON = ["player", "year"]


def words() -> dict[str, Any]:
    """The spec."""
    member = {
        "owner": SEASON,
        "foreign_keys": [{**TO_PLAYER, "inside": True}, {"columns": SEASON, "table": "season", "references": SEASON}],
        "columns": {"player": PLAIN, "year": PLAIN, "team": {"type": "BIGINT", "computed": "season.team"}, "a": NUMBER},
    }
    season = {name: {**NUMBER, "null": name == "team"} for name in ("year", "team")}
    return {
        "unit": "player",
        "tables": {
            "player": {"key": ["id"], "columns": {"id": {"type": "BIGINT", "null": False}, "a": NUMBER}},
            "season": {
                "list_of": ["bat", "pitch"],
                "key": SEASON,
                "owner": ["player"],
                "foreign_keys": [TO_PLAYER],
                "columns": {"player": {"type": "BIGINT", "null": False}, **season},
            },
            "bat": member,
            "pitch": member,
        },
    }


SPEC = Spec.model_validate(words())
PROTECTION = SPEC.protection()
CODECS = compile_codecs(SPEC, PROTECTION)
LINKS = {link.name: link_facts(link, slots=None) for link in PROTECTION.links}
SEASONS, BAT, PITCH = LINKS["season.player"], LINKS["bat.player,year"], LINKS["pitch.player,year"]
EDGES = fanout_edges(2)
OWN = features.own("a", ColumnFacts(size=2, ordered=True))
YEAR = features.own("year", ColumnFacts(size=2, ordered=True))
TEAM = features.own("team", ColumnFacts(size=3, ordered=True, null=True))
FEATURES = {
    "player": (features.fanout(SEASONS, EDGES), features.activity((SEASONS, BAT, PITCH), fanout_edges(6))),
    "season": (
        YEAR,
        TEAM,
        features.fanout(BAT, EDGES),
        features.fanout(PITCH, EDGES),
        features.of_first(features.fanout(PITCH, EDGES), SEASONS),
        features.of_first(TEAM, SEASONS),
        features.rank(SEASONS),
        features.entity_rows(size_edges()),
    ),
    "bat": (
        OWN,
        features.null_key(BAT),
        features.of_owner(TEAM, BAT),
        features.of_owner(features.fanout(PITCH, EDGES), BAT),
        features.of_owner(features.activity((BAT, PITCH), EDGES), BAT),
        features.of_first(OWN, BAT),
        features.rank(BAT),
        features.entity_rows(size_edges()),
    ),
}
QUERIES = pair_histograms(FEATURES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a member."""

    table: str
    player: int | None
    year: int | None
    team: int | None
    a: int = 0


class Memory(Source):
    """Tables in memory."""

    location = "memory"

    def __init__(self, tables: dict[str, dict[str, list[int | None]]]) -> None:
        self._tables = tables

    def schema(self) -> Schema:
        return PROTECTION.schema.published()

    def read(self, table: Table) -> Iterator[pa.RecordBatch]:
        names = [c.name for c in table.columns]
        yield pa.record_batch([pa.array(self._tables[table.name][n], pa.int64()) for n in names], names=names)

    def rows(self, name: str) -> int:
        return len(next(iter(self._tables[name].values())))

    def close(self) -> None:
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Players by number, and the rows of members."""

    players: Sequence[int]
    rows: Sequence[Row]

    def coded(self) -> dict[str, CodedTable]:
        tables: dict[str, dict[str, list[int | None]]] = {
            "player": {"id": list(self.players), "a": [p % 2 for p in self.players]}
        }
        for name in ("bat", "pitch"):
            mine = [row for row in self.rows if row.table == name]
            tables[name] = {
                column: [getattr(row, column) for row in mine] for column in ("player", "year", "team", "a")
            }
        source = SourceWithLists(Memory(tables), PROTECTION)
        read = read_database(source, PROTECTION, CODECS, orphans_as_null=False, progress=silent)
        return dict(only_part(read).tables)

    def engine(self) -> NumpyEngine:
        return NumpyEngine(one_part(self.coded()), entropy=TestEntropy(0))

    def neighbours(self) -> Iterator["World"]:
        """The world without each of its entities; a row without player is one."""
        for player in self.players:
            rows = [row for row in self.rows if row.player != player]
            yield World(players=[p for p in self.players if p != player], rows=rows)
        for at, row in enumerate(self.rows):
            if row.player is None:
                yield World(players=self.players, rows=[*self.rows[:at], *self.rows[at + 1 :]])


def _worlds() -> Iterator[World]:
    kinds = [
        Row(table=table, player=player, year=year, team=team)
        for table, player, (year, team) in product(
            ("bat", "pitch"), (None, 0, 1), ((None, 0), (0, None), (0, 1), (1, 0))
        )
    ]
    for at, (one, other) in enumerate(combinations_with_replacement(kinds, 2)):
        third, fourth = kinds[(5 * at) % len(kinds)], kinds[(7 * at + 3) % len(kinds)]
        yield World(players=[0, 1], rows=[one, Row(**{**_fields(other), "a": 1}), third, fourth])


def _fields(row: Row) -> dict[str, Any]:
    return {name: getattr(row, name) for name in Row.__dataclass_fields__}


def _families() -> Iterator[list[NumpyEngine]]:
    for world in _worlds():
        yield [world.engine(), *(less.engine() for less in world.neighbours())]


def test_no_entity_moves_more_than_its_weight_and_some_entity_moves_that() -> None:
    worst = worst_moves(_families(), QUERIES)
    assert {query.sensitivity for query in QUERIES.values()} == {ENTITY_WEIGHT}
    assert all(query.additive for query in QUERIES.values())
    attained = [name for name, moved in worst.items() if moved == ENTITY_WEIGHT]
    assert len(attained) == len(worst)


def test_seasons_are_those_of_each_player() -> None:
    rows = [
        Row(table="pitch", player=1, year=1, team=1),
        Row(table="bat", player=1, year=0, team=None),
        Row(table="bat", player=0, year=1, team=0),
        Row(table="bat", player=1, year=None, team=0),
        Row(table="bat", player=None, year=1, team=0),
        Row(table="pitch", player=1, year=0, team=0),
    ]
    coded = World(players=[0, 1], rows=rows).coded()
    season, bat = coded["season"], coded["bat"]
    assert season.entities.tolist() == [0, 1, 1]
    assert season.codes["year"].tolist() == [1, 0, 1]
    assert season.codes["team"].tolist() == [0, 0, 1], "the first value that there is"
    assert bat.entities.tolist() == [1, 0, 1, 2]
    assert bat.keys["bat.player,year"].tolist() == [-1, 0, 1, -1], "rows without a primary key go by a hash"


def _of_all_entities(table: Table, rows: pa.Table) -> pa.Table:
    """Of each year one row, of whichever player had it first."""
    found = LIST_ROWS(table, rows)
    _, first = np.unique(found.column("year").to_numpy(), return_index=True)
    return found.take(pa.array(first))


def _in_order_of_all(table: Table, rows: pa.Table) -> pa.Table:
    """Each player's seasons in the order in which anybody first had them."""
    found = LIST_ROWS(table, rows)
    years = found.column("year").to_pylist()
    seen = list(dict.fromkeys(y for y in rows.column("year").to_pylist() if y is not None))
    return found.take(pa.array(sorted(range(len(years)), key=lambda at: seen.index(years[at])), pa.int64()))


LIST_ROWS = lists_module.list_rows


def test_lists_over_all_entities_would_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists_module, "list_rows", _of_all_entities)
    monkeypatch.setattr("privbench.fitting.reading.check_orphans", lambda *_, **__: None)
    with pytest.raises(AssertionError, match=r"not additive|>"):
        worst_moves(_families(), QUERIES)


def test_the_order_of_a_list_is_that_of_its_key_however_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """An order that others have a say in would leak, if the list's rows stayed in it."""
    moves = worst_moves(_families(), QUERIES)
    monkeypatch.setattr(lists_module, "list_rows", _in_order_of_all)
    assert worst_moves(_families(), QUERIES) == moves


def test_the_size_of_a_list_is_never_public() -> None:
    assert tables_of_known_size(PROTECTION, public_sizes=True) == ("player", "bat", "pitch")


def _another_player(words: dict[str, Any]) -> None:
    words["tables"]["bat"]["columns"]["batter"] = PLAIN
    words["tables"]["bat"]["foreign_keys"][0] = {**TO_PLAYER, "columns": ["batter"], "inside": True}


def _owned_by_rows_of_players(words: dict[str, Any]) -> None:
    words["tables"]["season"] |= {"owner": ["player"], "foreign_keys": [{**TO_PLAYER, "table": "house"}]}
    words["tables"]["house"] = {
        "key": ["id"],
        "foreign_keys": [TO_PLAYER],
        "columns": {"id": {"type": "BIGINT", "null": False}, "player": PLAIN},
    }
    words["tables"]["bat"]["foreign_keys"][0]["table"] = "house"
    words["tables"]["pitch"]["foreign_keys"][0]["table"] = "house"


def _referenced(words: dict[str, Any]) -> None:
    words["tables"]["prize"] = {
        "foreign_keys": [
            {**TO_PLAYER, "columns": ["winner"]},
            {"columns": SEASON, "table": "season", "references": SEASON},
        ],
        "owner": ["winner"],
        "columns": {"winner": PLAIN, "player": PLAIN, "year": PLAIN, "a": NUMBER},
    }


def _other_type(words: dict[str, Any]) -> None:
    words["tables"]["bat"]["columns"]["year"] = {"type": "VARCHAR"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_another_player, "a row of bat must be of the entity whose list it is in"),
        (_owned_by_rows_of_players, "a list belongs to the unit"),
        (_referenced, "only rows of its members reference rows of a list"),
        (_other_type, "season.year is BIGINT, but bat.year is VARCHAR"),
        (lambda words: words.update(orphans="null"), "rows that reference a missing row have no list"),
    ],
)
def test_lists_that_would_not_be_of_one_entity_are_refused(change: Any, message: str) -> None:
    changed = Spec.model_validate(words()).model_dump(mode="json", by_alias=True)
    change(changed)
    with pytest.raises(SpecError, match=message):
        Spec.model_validate(changed).protection()
