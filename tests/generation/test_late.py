"""What is done when all rows are there: order over whole tables, keys in the order of a column, sums of rows below."""

import copy
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.errors import ModelError, SpecError
from privbench.generation import blocks, kept, late, rows
from privbench.generation.aggregates import ABOVE, Aggregate, RowsBelow
from privbench.generation.generate import generate
from privbench.generation.kept import in_places, sorted_places
from privbench.model.numbering import check_numbering, declared_order, renumbered_columns
from privbench.schema.expression import parse_expression
from privbench.schema.spec import Spec

from ..tree_models import SPEC, made

TABLES = ("town", "person", "visit", "note", "passport", "season", "game")
NUMBERED = {"person": {"numbered_by": "age"}, "visit": {"numbered_by": "cost"}}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many blocks, rows that are dealt out to files more than once."""
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 97)
    monkeypatch.setattr(rows, "BLOCK_ROWS", 97)
    monkeypatch.setattr(late, "BLOCK_ROWS", 97)
    monkeypatch.setattr(kept, "SORTED_ROWS", 50)
    monkeypatch.setattr(kept, "MOST_FILES", 3)


def with_words(words: dict[str, dict[str, Any]]) -> dict[str, Any]:
    spec = copy.deepcopy(SPEC)
    for table, more in words.items():
        spec["tables"][table] |= more
    return spec


def load(base: duckdb.DuckDBPyConnection, prefix: str, out: Path) -> None:
    for file in (out / "data").iterdir():
        base.execute(f"CREATE TABLE {prefix}{file.stem} AS SELECT *, file_row_number AS place FROM '{file}'")


def both(tmp_path: Path, words: dict[str, dict[str, Any]], *, scale: float = 1) -> duckdb.DuckDBPyConnection:
    """The database as it is made, as `plain_TABLE`, and as it is with some more words in the spec."""
    base = duckdb.connect()
    generate(made(), tmp_path / "plain", scale=scale, seed=1)
    generate(made(with_words(words)), tmp_path / "out", scale=scale, seed=1)
    load(base, "plain_", tmp_path / "plain")
    load(base, "", tmp_path / "out")
    return base


def same_rows(base: duckdb.DuckDBPyConnection, one: str, other: str) -> bool:
    return all(
        base.execute(f"SELECT count(*) FROM (FROM ({a}) EXCEPT ALL FROM ({b}))").fetchall() == [(0,)]
        for a, b in ((one, other), (other, one))
    )


def test_keys_are_numbered_by_a_column_and_all_that_hold_them_follow(tmp_path: Path) -> None:
    base = both(tmp_path, NUMBERED, scale=2)
    for table, column in (("person", "age"), ("visit", "cost")):
        base.execute(
            f"CREATE TABLE {table}_ids AS SELECT id AS old, "
            f"row_number() OVER (ORDER BY {column} NULLS LAST, id)::INT AS id FROM plain_{table}"
        )
    new = {
        "person": "SELECT i.id, town_id, b.id, age FROM plain_person p JOIN person_ids i ON i.old = p.id "
        "LEFT JOIN person_ids b ON b.old = boss_id",
        "visit": "SELECT i.id, o.id, g.id, cost FROM plain_visit v JOIN visit_ids i ON i.old = v.id "
        "JOIN person_ids o ON o.old = person_id LEFT JOIN person_ids g ON g.old = guest_id",
        "note": "SELECT v.id, stars FROM plain_note LEFT JOIN visit_ids v ON v.old = visit_id",
        "passport": "SELECT o.id, valid FROM plain_passport JOIN person_ids o ON o.old = person_id",
        "season": "SELECT o.id, year FROM plain_season JOIN person_ids o ON o.old = person_id",
        "game": "SELECT o.id, year, won FROM plain_game JOIN person_ids o ON o.old = person_id",
        "town": "SELECT id, name FROM plain_town",
    }
    for table, query in new.items():
        assert same_rows(base, query, f"SELECT * EXCLUDE place FROM {table}"), table
    for table in ("person", "visit"):  # which are written in the order of their keys
        assert base.execute(f"SELECT count(*) FROM {table} WHERE id != place + 1").fetchall() == [(0,)]
    for table in ("note", "passport", "season", "game"):  # and these as they were made
        column = {"note": "stars", "passport": "valid", "season": "year", "game": "won"}[table]
        plain = f"SELECT {column} FROM plain_{table} ORDER BY place"
        assert base.execute(plain).fetchall() == base.execute(plain.replace("plain_", "")).fetchall()


def test_the_rank_correlation_of_keys_and_their_column_is_one(tmp_path: Path) -> None:
    base = both(tmp_path, NUMBERED)
    falls = "SELECT count(*) FROM person a JOIN person b ON b.id = a.id + 1 AND b.age < a.age"
    assert base.execute(falls).fetchall() == [(0,)]
    assert base.execute(falls.replace("person", "plain_person")).fetchall() != [(0,)]


def test_order_holds_over_the_whole_table(tmp_path: Path) -> None:
    """With ids that stay as they are; NULLs come last, equal rows stay in the order in which they were made."""
    words = {"visit": {"order": ["cost", "guest_id"]}, "person": {"order": ["age", "id"]}, "game": {"order": ["won"]}}
    base = both(tmp_path, words)
    for table in TABLES:
        assert same_rows(base, f"SELECT * EXCLUDE place FROM plain_{table}", f"SELECT * EXCLUDE place FROM {table}")
    for table, order in (("visit", "cost, guest_id, id"), ("person", "age, id"), ("game", "won, place")):
        columns = "person_id, year, won" if table == "game" else "*"
        wanted = base.execute(f"SELECT {columns} FROM (SELECT * FROM plain_{table} ORDER BY {order})").fetchall()
        found = base.execute(f"SELECT {columns} FROM {table} ORDER BY place").fetchall()
        assert [row[:3] for row in found] == [row[:3] for row in wanted], table


def test_the_order_may_differ_from_the_numbering_and_uses_new_keys(tmp_path: Path) -> None:
    base = both(tmp_path, NUMBERED | {"visit": {"numbered_by": "cost", "order": ["person_id"]}})
    found = base.execute("SELECT person_id, id FROM visit ORDER BY place").fetchall()
    assert [owner for owner, _ in found] == sorted(owner for owner, _ in found)
    assert [number for _, number in found] != sorted(number for _, number in found)


def test_the_same_seed_gives_the_same_bytes_and_other_tables_stay_as_they_were(tmp_path: Path) -> None:
    words = {"visit": {"order": ["cost"]}, "note": {"order": ["stars"]}}
    for out in ("a", "b"):
        generate(made(with_words(words)), tmp_path / out, seed=1)
    generate(made(), tmp_path / "plain", seed=1)
    changed = set()
    for file in (tmp_path / "a" / "data").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / "data" / file.name).read_bytes()
        if file.read_bytes() != (tmp_path / "plain" / "data" / file.name).read_bytes():
            changed.add(file.stem)
    assert changed == {"visit", "note"}


@pytest.mark.parametrize("form", ["duckdb", "sqlite", "csv"])
def test_finished_tables_go_to_every_sink(form: str, tmp_path: Path) -> None:
    steps: set[str] = set()
    model = made(with_words(NUMBERED))
    counts = generate(model, tmp_path / "out", seed=1, format=form, progress=lambda step, *_: steps.add(step))
    assert counts == generate(made(), tmp_path / "plain", seed=1)
    assert {"making visit", "numbering visit", "finishing visit", "writing town"} <= steps


def test_empty_tables_are_finished(tmp_path: Path) -> None:
    base = both(tmp_path, NUMBERED | {"note": {"order": ["stars"]}}, scale=0.01)
    assert base.execute("SELECT count(*) FROM person").fetchall() == [(5,)]
    model = made(with_words(NUMBERED))
    empty = replace(model, tables={n: replace(t, rows=40.0 * (n == "note")) for n, t in model.tables.items()})
    counts = generate(empty, tmp_path / "empty", seed=1)
    assert (counts["person"], counts["visit"], counts["note"]) == (0, 0, 40)  # notes without a visit


def test_an_error_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    def fails(step: str, *_: object) -> None:
        if step.startswith("finishing"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(made(with_words(NUMBERED)), tmp_path / "out", seed=1, progress=fails)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("privbench")] == []


# -- sums of rows below ------------------------------------------------------------------------------------------------


def aggregate(parent: str, column: str, sql: str) -> Aggregate:
    return Aggregate(parent=parent, column=column, expression=parse_expression(sql, where=f"{parent}.{column}"))


@pytest.mark.parametrize("words", [{}, {"note": {"order": ["stars"]}}])
def test_columns_add_up_rows_below(
    words: dict[str, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of children, of their children, and over columns that add up rows themselves."""
    late_columns = (
        aggregate("person", "age", "COUNT(note.*) + 10 * COUNT(passport.*) + COALESCE(100 * MAX(visit.cost), 0)"),
        aggregate("visit", "cost", "SUM(note.stars) + COUNT(DISTINCT note.stars)"),
    )
    monkeypatch.setattr(late, "late_aggregates", lambda *_: late_columns)
    generate(made(with_words(words)), tmp_path / "out", seed=1)
    base = duckdb.connect()
    load(base, "", tmp_path / "out")
    costs = """SELECT v.cost, (SELECT sum(stars) + count(DISTINCT stars) FROM note n WHERE n.visit_id = v.id)
      FROM visit v ORDER BY v.id"""
    found = base.execute(costs).fetchall()
    assert all(cost == wanted for cost, wanted in found)
    assert {cost is None for cost, _ in found} == {True, False}
    ages = """SELECT p.age, (SELECT count(*) FROM note n JOIN visit v ON n.visit_id = v.id WHERE v.person_id = p.id)
      + 10 * (SELECT count(*) FROM passport s WHERE s.person_id = p.id)
      + coalesce(100 * (SELECT max(cost) FROM visit v WHERE v.person_id = p.id), 0) FROM person p"""
    found = base.execute(ages).fetchall()
    assert all(age == wanted for age, wanted in found)
    assert len({age for age, _ in found}) > 20


def test_rows_below_are_added_up_where_their_keys_are_numbered_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The aggregates see the keys that are written."""
    monkeypatch.setattr(
        late, "late_aggregates", lambda *_: (aggregate("person", "age", "COALESCE(MIN(visit.id), -1)"),)
    )
    generate(made(with_words({"visit": {"numbered_by": "cost"}})), tmp_path / "out", seed=1)
    base = duckdb.connect()
    load(base, "", tmp_path / "out")
    found = base.execute(
        "SELECT age, coalesce((SELECT min(id) FROM visit v WHERE v.person_id = p.id), -1) FROM person p"
    ).fetchall()
    assert all(age == wanted for age, wanted in found)


def test_rows_below_must_come_in_the_order_of_rows_above() -> None:
    schema = pa.schema([pa.field(ABOVE, pa.int64())])
    batches = [pa.record_batch([pa.array(numbers)], schema=schema) for numbers in ([-1, 0, 0, 4], [4, 4, 9, -1], [8])]
    below = RowsBelow(iter(batches), schema, name="visit")
    assert below.until(2).column(ABOVE).to_pylist() == [0, 0]
    assert below.until(4).num_rows == 0
    assert below.until(9).column(ABOVE).to_pylist() == [4, 4, 4]
    with pytest.raises(ModelError, match="visit"):
        below.until(20)


# -- sorting on disk ---------------------------------------------------------------------------------------------------

values = st.one_of(st.none(), st.integers(-3, 3))
texts = st.one_of(st.none(), st.text(max_size=2))


@given(st.lists(st.lists(st.tuples(values, texts), min_size=1, max_size=80), max_size=9))
def test_rows_are_sorted_on_disk_as_in_memory(parts: list[list[tuple[int | None, str | None]]]) -> None:
    schema = pa.schema([("a", pa.timestamp("s")), ("b", pa.string())])
    batches = [
        pa.record_batch(
            [pa.array([a for a, _ in part], schema[0].type), pa.array([b for _, b in part], schema[1].type)], schema
        )
        for part in parts
    ]
    table = pa.Table.from_batches(batches, schema=schema)
    with tempfile.TemporaryDirectory() as folder:
        places = sorted_places(iter(batches), table.num_rows, folder=Path(folder) / "sorted")
        order = pc.sort_indices(table, [("a", "ascending"), ("b", "ascending")])
        assert np.argsort(places).tolist() == order.to_pylist()
        moved = list(in_places(iter(batches), places, folder=Path(folder) / "moved", block_rows=7))
        assert pa.Table.from_batches(moved, schema=schema).equals(table.take(order))
        assert list((Path(folder) / "moved").iterdir()) == []


# -- what is refused ---------------------------------------------------------------------------------------------------


def checked(words: dict[str, dict[str, Any]], spec: dict[str, Any] | None = None) -> None:
    parsed = Spec.model_validate(spec or with_words(words))
    check_numbering(parsed, parsed.protection())


@pytest.mark.parametrize(
    ("table", "column", "message"),
    [
        ("note", "stars", r"note: numbered_by: stars: only a primary key of one column"),
        ("season", "year", r"season: numbered_by: year: only a primary key"),
        ("passport", "valid", r"passport: numbered_by: valid: only a primary key"),
        ("visit", "guest_id", r"visit: numbered_by: guest_id: is a key"),
        ("visit", "id", r"visit: numbered_by: id: is a key"),
    ],
)
def test_keys_that_cannot_be_numbered_are_refused(table: str, column: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        checked({table: {"numbered_by": column}})


def test_ids_that_public_tables_reference_stay() -> None:
    spec = with_words({"person": {"numbered_by": "age"}})
    spec["tables"]["prize"] = {
        "public": True,
        "foreign_keys": [{"columns": ["person_id"], "table": "person", "references": ["id"]}],
        "columns": {"person_id": {"type": "INTEGER"}},
    }
    with pytest.raises(SpecError, match="person: numbered_by: age: public tables reference these ids"):
        checked({}, spec)


def test_a_column_that_is_dropped_numbers_nothing() -> None:
    spec = with_words({"visit": {"numbered_by": "cost"}})
    spec["tables"]["visit"]["columns"]["cost"] = {"type": "INTEGER", "drop": True}
    with pytest.raises(SpecError, match="visit: numbered_by: cost: this column is dropped"):
        checked({}, spec)


@pytest.mark.parametrize("role", [{"public": True}, {"drop": True}])
def test_only_private_tables_are_numbered(role: dict[str, bool]) -> None:
    with pytest.raises(ValueError, match="numbered_by has no meaning beside"):
        Spec.model_validate(with_words({"town": {"public": False, **role, "numbered_by": "name"}}))


def test_keys_of_keys_are_renumbered() -> None:
    spec = Spec.model_validate(with_words({"person": {"numbered_by": "age"}}))
    assert set(renumbered_columns(spec, spec.protection())) == {
        ("person", "id"),
        ("person", "boss_id"),
        ("visit", "person_id"),
        ("visit", "guest_id"),
        ("passport", "person_id"),
        ("season", "person_id"),
        ("game", "person_id"),
    }


def test_the_declared_order_ends_at_the_own_key() -> None:
    spec = Spec.model_validate(
        with_words({"visit": {"order": ["cost", "id", "guest_id"]}, "person": {"order": ["id"]}})
    )
    assert declared_order(spec, spec.schema().table("visit")) == ("cost", "id")
    assert declared_order(spec, spec.schema().table("person")) == ()
