"""Columns that the spec says depend on each other: which can be named, and what becomes of them."""

import copy
from pathlib import Path
from typing import Any

import pytest

from privbench.errors import SpecError
from privbench.schema.computed import ComputedOrigin
from privbench.schema.expression import parse_expression
from privbench.schema.pairs import learnt_pairs
from privbench.schema.spec import Spec, read_spec, write_spec

from ..tree_models import SPEC


def with_pairs(table: str, *pairs: list[str], **words: dict[str, Any]) -> dict[str, Any]:
    """The made spec with pairs of one table, and with other words of some tables' columns."""
    spec = copy.deepcopy(SPEC)
    spec["tables"][table]["pairs"] = [*pairs]
    for name, columns in words.items():
        for column, more in columns.items():
            spec["tables"][name]["columns"].setdefault(column, {}).update(more)
    return spec


def pairs_of(spec: Spec, table: str) -> list[tuple[str, ...]]:
    """The pairs of a table as they are understood, keys by their names."""
    found = learnt_pairs(spec.tables, spec.protection(), table)
    return [tuple(f"{s.table}.{s.column}" if s.key is None else f"key {s.key.name}" for s in pair) for pair in found]


def test_columns_keys_and_columns_of_the_owner_can_be_named() -> None:
    spec = Spec.model_validate(
        with_pairs("visit", ["cost", "guest_id"], ["cost", "person.age"], ["person.town_id", "cost"])
    )
    assert pairs_of(spec, "visit") == [
        ("visit.cost", "key visit.guest_id"),
        ("visit.cost", "person.age"),
        ("visit.cost", "key person.town_id"),
    ]


def test_a_name_with_a_point_can_be_quoted() -> None:
    words = with_pairs("visit", ['"visit"."cost"', '"person"."age"'], ["cost", "person.age"])
    words["tables"]["visit"]["columns"]["person.age"] = {"type": "BOOLEAN"}
    assert pairs_of(Spec.model_validate(words), "visit") == [
        ("visit.cost", "person.age"),
        ("visit.cost", "visit.person.age"),
    ]


def test_part_of_a_key_that_is_learnt_can_be_named() -> None:
    spec = Spec.model_validate(with_pairs("game", ["won", "season.year"]))
    assert pairs_of(spec, "game") == [("game.won", "season.year")]


@pytest.mark.parametrize(
    ("table", "pair", "message"),
    [
        ("visit", ["cost", "id"], r"visit\.id is a key of which nothing is learnt"),
        ("visit", ["cost", "person_id"], r"visit\.person_id is a key of which nothing is learnt"),
        ("visit", ["cost", "person.id"], r"person\.id is a key of which nothing is learnt"),
        ("visit", ["cost", "note.stars"], r"note\.stars is dropped, or neither a column of visit, whose owner is per"),
        ("note", ["stars", "person.age"], r"person\.age is dropped, or neither a column of note, whose owner is visit"),
        ("person", ["age", "visit.cost"], r"a column of person, which has no owner, nor of its owner\. Write the name"),
        ("visit", ["person.age", "person.town_id"], r"both are columns of person\. Say so there"),
        ("visit", ["cost", "cost"], r"both are the same column or key of visit\. Name two"),
    ],
)
def test_pairs_that_cannot_be(table: str, pair: list[str], message: str) -> None:
    with pytest.raises(SpecError, match=rf"tables\.{table}\.pairs\.0: .*{message}"):
        Spec.model_validate(with_pairs(table, pair)).protection()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"drop": True}, r"visit\.pairs\.0: mood is dropped, or neither"),
        ({"computed": "cost + 1"}, r"visit\.pairs\.0: visit\.mood follows from other columns"),
        ({"determined_by": "cost", "domain": {"range": [0, 1]}}, r"visit\.mood follows from other columns"),
    ],
)
def test_columns_that_are_not_learnt(words: dict[str, Any], message: str) -> None:
    spec = with_pairs("visit", ["cost", "mood"], visit={"mood": {"type": "INTEGER", **words}})
    with pytest.raises(SpecError, match=message):
        Spec.model_validate(spec).protection()


def test_a_column_that_a_fit_finds_to_be_computed_needs_no_pair() -> None:
    mood = {"type": "INTEGER", "domain": {"range": [0, 1]}}
    spec = Spec.model_validate(with_pairs("visit", ["cost", "mood"], visit={"mood": mood}))
    computed = spec.with_computed({("visit", "mood"): parse_expression("person.age", where="")})
    assert computed.column("visit", "mood").computed_origin is ComputedOrigin.FOUND
    assert pairs_of(computed, "visit") == []
    assert pairs_of(spec, "visit") == [("visit.cost", "visit.mood")]


def test_pairs_are_written_and_read_again_and_published(tmp_path: Path) -> None:
    spec = Spec.model_validate(with_pairs("visit", ["cost", "guest_id"], ["cost", "person.age"]))
    write_spec(spec, tmp_path / "spec.yaml")
    assert "pairs: [[cost, guest_id], [cost, person.age]]" in (tmp_path / "spec.yaml").read_text()
    assert read_spec(tmp_path / "spec.yaml") == spec
    assert spec.published().tables["visit"].pairs == spec.tables["visit"].pairs


SEASONS: dict[str, Any] = {
    "unit": "player",
    "tables": {
        "player": {"key": ["id"], "columns": {"id": {"type": "INTEGER"}, "tall": {"type": "BOOLEAN", "null": False}}},
        "season": {
            "list_of": ["bat"],
            "key": ["player", "year"],
            "owner": ["player"],
            "foreign_keys": [{"columns": ["player"], "table": "player", "references": ["id"]}],
            "pairs": [["year", "player.tall"], ["team", "year"]],
            "columns": {
                "player": {"type": "INTEGER"},
                "year": {"type": "INTEGER", "domain": {"range": [1990, 1999]}},
                "team": {"type": "INTEGER", "domain": {"range": [0, 9]}},
            },
        },
        "bat": {
            "key": ["player", "born"],
            "owner": ["player", "born"],
            "foreign_keys": [
                {"columns": ["player"], "table": "player", "references": ["id"], "inside": True},
                {"columns": ["player", "born"], "table": "season", "references": ["player", "year"]},
            ],
            "pairs": [["hits", "season.year"], ['"season"."team"', "hits"]],
            "columns": {
                "player": {"type": "INTEGER"},
                "born": {"type": "INTEGER", "null": False},
                "team": {"type": "INTEGER", "computed": "season.team"},
                "hits": {"type": "INTEGER", "domain": {"range": [0, 9]}},
            },
        },
    },
}


def test_members_take_over_the_pairs_of_their_list() -> None:
    spec = Spec.model_validate(SEASONS)
    assert pairs_of(spec, "bat") == [("bat.hits", "season.year"), ("bat.hits", "season.team")]
    without = spec.without_lists()
    assert without.tables["bat"].pairs == (
        ("hits", "born"),
        ("team", "hits"),
        ("born", "player.tall"),
        ("team", "born"),
    )
    assert len(pairs_of(without, "bat")) == 4


def test_methods_that_own_rows_by_other_keys_have_no_pairs() -> None:
    assert Spec.model_validate(SEASONS).without_inside().tables["bat"].pairs == ()
