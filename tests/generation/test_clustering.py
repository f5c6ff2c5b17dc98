"""Rows that lie together by columns: in order, a share of them, in runs; keys and other tables follow."""

import copy
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.errors import SpecError
from privbench.generation import blocks, rows
from privbench.generation.carried import Spools
from privbench.generation.generate import generate
from privbench.model.clustering import check_clustering, clustered_order, value_ranks
from privbench.schema.spec import Spec
from privbench.schema.table_spec import ClusterSpec

from ..tree_models import SPEC, made

ROWS = 20_000


def clustered(*levels: str | dict[str, Any], rules: list[str] | None = None) -> dict[str, Any]:
    spec = copy.deepcopy(SPEC)
    spec["tables"]["person"] |= {"clustered_by": list(levels), "rules": rules or []}
    return spec


def laid_out(levels: list[ClusterSpec], *columns: np.ndarray) -> list[np.ndarray]:
    order = clustered_order(list(columns), levels, np.random.default_rng(3))
    return [column[order] for column in columns]


def drawn(values: int) -> np.ndarray:
    return np.random.default_rng(values).integers(0, values, ROWS)


def same(values: np.ndarray) -> float:
    return float(np.mean(values[1:] == values[:-1]))


# -- the order ---------------------------------------------------------------------------------------------------------


def test_rows_lie_in_the_order_of_a_column_and_then_of_the_next() -> None:
    a, b = laid_out([ClusterSpec(column="a"), ClusterSpec(column="b")], drawn(5), drawn(7))
    assert list(zip(a, b, strict=True)) == sorted(zip(drawn(5), drawn(7), strict=True))


def test_rows_that_are_alike_stay_as_they_were_made() -> None:
    order = clustered_order([np.array([1, 0, 1, 0, 1])], [ClusterSpec(column="a")], np.random.default_rng(0))
    assert order.tolist() == [1, 3, 0, 2, 4]


def test_only_a_share_of_rows_is_in_order_and_the_others_come_after_it() -> None:
    [a] = laid_out([ClusterSpec(column="a", share=0.4)], drawn(50))
    edge = int(0.38 * ROWS)
    assert (np.diff(a[:edge]) >= 0).all()
    assert same(a[int(0.42 * ROWS) :]) < 0.04


def test_runs_hold_neighbouring_values_and_lie_anyhow() -> None:
    [a] = laid_out([ClusterSpec(column="a", run=100)], drawn(400))  # of 50 rows each
    runs = a.reshape(-1, 100)
    assert (runs.max(1) - runs.min(1) <= 5).all()
    assert 0.2 < same(a) < 0.5  # inside a run rows lie anyhow, too
    assert abs(np.corrcoef(a, np.arange(ROWS))[0, 1]) < 0.2


def test_the_next_column_orders_rows_inside_a_run() -> None:
    a, b = laid_out([ClusterSpec(column="a", run=500), ClusterSpec(column="b")], drawn(10), drawn(4))
    assert same(b) > 0.98
    assert abs(np.corrcoef(b, np.arange(ROWS))[0, 1]) < 0.1
    assert len(np.unique(a[:500])) <= 2


@given(
    values=st.lists(st.integers(0, 4) | st.none(), max_size=60),
    share=st.sampled_from([0.01, 0.5, 1.0]),
    run=st.none() | st.integers(2, 9),
)
def test_no_row_is_lost_or_made(values: list[int | None], share: float, run: int | None) -> None:
    level = ClusterSpec(column="a", share=share, run=run)
    order = clustered_order([value_ranks(pa.array(values, pa.int64()))], [level], np.random.default_rng(0))
    assert sorted(order.tolist()) == list(range(len(values)))


@pytest.mark.parametrize(
    ("values", "ranks"),
    [
        (pa.array([True, False, None]), [1, 0, 2]),
        (pa.array([3.5, None, -1.0, 3.5]), [1, 2, 0, 1]),
        (pa.array(["b", "a"]), [1, 0]),
        (pa.array([2, 1], pa.date32()), [1, 0]),
        (pa.array([2, 1], pa.timestamp("us")), [1, 0]),
        (pa.array(["2.5", "1.25"]).cast(pa.decimal128(9, 2)), [1, 0]),
        (pa.array([], pa.int16()), []),
    ],
)
def test_values_of_every_type_have_ranks(values: pa.Array, ranks: list[int]) -> None:
    assert value_ranks(values).tolist() == ranks


# -- generated tables --------------------------------------------------------------------------------------------------


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 97)
    monkeypatch.setattr(rows, "BLOCK_ROWS", 97)


def tables(out: Path) -> duckdb.DuckDBPyConnection:
    base = duckdb.connect()
    for file in (out / "data").iterdir():
        base.execute(f"CREATE TABLE {file.stem} AS SELECT *, file_row_number AS place FROM '{file}'")
    return base


def test_keys_are_numbered_as_rows_lie_and_children_lie_with_their_owners(tmp_path: Path) -> None:
    generate(made(clustered("age")), tmp_path / "out", seed=1)
    base = tables(tmp_path / "out")
    people = base.execute("SELECT id, age FROM person ORDER BY place").fetchall()
    assert [age for _, age in people] == sorted(age for _, age in people)
    assert [id_ for id_, _ in people] == list(range(1, len(people) + 1))
    owners = [row[0] for row in base.execute("SELECT person_id FROM visit ORDER BY place").fetchall()]
    assert owners == sorted(owners)


@pytest.mark.usefixtures("small_blocks")
def test_only_the_order_of_rows_changes(tmp_path: Path) -> None:
    generate(made(), tmp_path / "plain", seed=1)
    generate(made(clustered("age")), tmp_path / "out", seed=1)
    plain, base = tables(tmp_path / "plain"), tables(tmp_path / "out")
    counted = "SELECT age, town_id, count(*) FROM person GROUP BY ALL ORDER BY ALL"
    assert base.execute(counted).fetchall() == plain.execute(counted).fetchall()
    for key, table in (("boss_id", "person"), ("guest_id", "visit"), ("person_id", "visit")):
        orphans = f"SELECT count(*) FROM {table} WHERE {key} NOT IN (SELECT id FROM person)"
        assert base.execute(orphans).fetchall() == [(0,)]
    nulls = "SELECT count(boss_id) FROM person"
    assert base.execute(nulls).fetchall() == plain.execute(nulls).fetchall()
    ages = [row[0] for row in base.execute("SELECT age FROM person ORDER BY place").fetchall()]
    starts = np.arange(0, len(ages), 97)
    assert len(starts) > 3
    assert all(ages[i : i + 97] == sorted(ages[i : i + 97]) for i in starts)


def test_children_keep_to_what_their_owner_is_like(tmp_path: Path) -> None:
    """The rows of a table below are drawn given their owner's columns, which must be those of the moved row."""
    by_age = "SELECT age, avg(n) FROM (SELECT p.age, count(v.id) AS n FROM person p LEFT JOIN visit v ON v.person_id = "
    by_age += "p.id GROUP BY p.id, p.age) GROUP BY age ORDER BY age"
    generate(made(), tmp_path / "plain", scale=4, seed=1)
    generate(made(clustered({"column": "age", "run": 30})), tmp_path / "out", scale=4, seed=1)
    plain, moved = (dict(tables(tmp_path / name).execute(by_age).fetchall()) for name in ("plain", "out"))
    assert moved == pytest.approx(plain, abs=0.25)


def test_rows_stand_in_the_order_of_entities_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys inside the entity look for its rows by bisection."""
    carried, carry = [], Spools.carry

    def noted(spools: Spools, table: str, **parts: Any) -> None:
        carried.append(parts["entities"])
        carry(spools, table, **parts)

    monkeypatch.setattr(Spools, "carry", noted)
    generate(made(clustered("age")), tmp_path / "out", seed=1)
    assert len(carried) >= 3
    assert all((np.diff(entities) >= 0).all() for entities in carried)


def test_the_same_seed_gives_the_same_rows(tmp_path: Path) -> None:
    model = made(clustered({"column": "age", "share": 0.5, "run": 20}, "town_id"))
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        generate(model, tmp_path / name, seed=seed)
    files = {name: (tmp_path / name / "data" / "person.parquet").read_bytes() for name in "abc"}
    assert files["a"] == files["b"] != files["c"]


# -- what is refused ---------------------------------------------------------------------------------------------------


def checked(spec: dict[str, Any]) -> None:
    parsed = Spec.model_validate(spec)
    check_clustering(parsed, parsed.protection())


@pytest.mark.parametrize(
    ("table", "column", "message"),
    [
        ("visit", "cost", r"visit\.cost: clustered_by: only rows of person lie by columns, those of visit lie with"),
        ("person", "id", r"person\.id: clustered_by: holds keys"),
        ("person", "boss_id", r"person\.boss_id: clustered_by: holds keys"),
    ],
)
def test_rows_that_cannot_lie_by_a_column_are_refused(table: str, column: str, message: str) -> None:
    spec = copy.deepcopy(SPEC)
    spec["tables"][table]["clustered_by"] = [column]
    with pytest.raises(SpecError, match=message):
        checked(spec)


def test_columns_that_are_known_before_rows_lie_are_taken() -> None:
    checked(clustered("age", "town_id"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"computed": "2 * id"}, "computed from them"),
        ({"computed": "SUM(visit.cost)"}, "adds up rows below"),
        ({"drop": True}, "this column is dropped"),
    ],
)
def test_columns_that_come_later_are_refused(words: dict[str, Any], message: str) -> None:
    spec = clustered("twice")
    spec["tables"]["person"]["columns"]["twice"] = {"type": "INTEGER", **words}
    with pytest.raises(SpecError, match=rf"person\.twice: clustered_by: .*{message}"):
        checked(spec)


def test_rows_lie_by_columns_that_follow_from_others(tmp_path: Path) -> None:
    spec = clustered("less", {"column": "even", "run": 10})
    computed = {"even": "age % 2 = 0", "less": "-later", "later": "age + 10", "own": "10 * id"}
    types = {"even": "BOOLEAN"}
    spec["tables"]["person"]["columns"] |= {
        name: {"type": types.get(name, "INTEGER"), "computed": sql} for name, sql in computed.items()
    }
    checked(spec)
    generate(made(spec), tmp_path / "out", seed=1)
    people = tables(tmp_path / "out").execute("SELECT id, age, less, own FROM person ORDER BY place").fetchall()
    assert [less for _, _, less, _ in people] == sorted(-age - 10 for _, age, _, _ in people)
    assert all(own == 10 * id_ and less == -age - 10 for id_, age, less, own in people)


def test_rows_whose_ids_public_tables_reference_stay() -> None:
    spec = clustered("age")
    spec["tables"]["prize"] = {
        "public": True,
        "foreign_keys": [{"columns": ["person_id"], "table": "person", "references": ["id"]}],
        "columns": {"person_id": {"type": "INTEGER"}},
    }
    with pytest.raises(SpecError, match="public tables reference the ids of person"):
        checked(spec)


def test_what_is_read_from_the_data_and_what_is_found_with_budget_do_not_mix() -> None:
    """Else the receipt would call a domain both: a condition, and paid for."""
    words = clustered({"column": "age", "from": "data"})
    words["tables"]["person"]["columns"]["age"] = {"type": "SMALLINT"}
    spec = Spec.model_validate(words)
    with pytest.raises(SpecError, match=r"person\.age: clustered_by is from the data"):
        spec.origins(spec.protection())
