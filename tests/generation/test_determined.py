"""Columns that another one determines: a function in every bundle, whoever knows the map."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from privbench.encode.predicate import In
from privbench.errors import SpecError
from privbench.estimation.estimate import selectivity
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.fitting.plan import plan
from privbench.generation.generate import generate
from privbench.model.file import load_model, save_model
from privbench.model.receipt_check import verify_model
from privbench.schema.computed import ComputedOrigin
from privbench.schema.spec import Spec, read_spec, write_spec

from ..failing import assert_fails
from ..forging import settle, take_out
from ..seeded import SeededEntropy

TEAMS = [f"T{i:02}" for i in range(24)]
LEAGUE = {team: ("NL", "AL", "FL")[i % 3] for i, team in enumerate(TEAMS)}
COUNTRY = {"NL": "us", "AL": "us", "FL": "ca"}


def write_source(path: Path, rows: int = 3000) -> Path:
    rng = np.random.default_rng(1)
    with duckdb.connect(str(path)) as base:
        base.execute(
            "CREATE TABLE player (id INTEGER PRIMARY KEY, team VARCHAR, league VARCHAR, country VARCHAR, age SMALLINT)"
        )
        listed = []
        for i in range(rows):
            team = str(rng.choice(TEAMS)) if i % 50 else None
            league = LEAGUE[team] if team else "FL"
            league = league if i % 400 else "AL"
            listed.append((i, team, league, COUNTRY[league], int(rng.integers(18, 40))))
        base.executemany("INSERT INTO player VALUES (?, ?, ?, ?, ?)", listed)
    return path


def with_words(spec: Spec, columns: dict[str, dict[str, Any]]) -> Spec:
    table = spec.tables["player"]
    changed = {c: words.model_copy(update=columns.get(c, {})) for c, words in table.columns.items()}
    return spec.model_copy(update={"tables": {"player": table.model_copy(update={"columns": changed})}})


@pytest.fixture(scope="module")
def drafted(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    source = write_source(tmp_path_factory.mktemp("teams") / "s.duckdb")
    return draft(source, unit="player", domains="data", find=False)


def test_draft_suggests_maps_of_the_data(drafted: Spec, tmp_path: Path) -> None:
    assert drafted.source is not None
    spec = draft(drafted.source, unit="player", domains="data")
    league, country = spec.column("player", "league"), spec.column("player", "country")
    assert (league.determined_by, country.determined_by) == ("team", "league")
    assert dict(league.map or ()) == {**LEAGUE, None: "FL"}
    assert {c for c, words in spec.tables["player"].columns.items() if words.determined_by} == {"league", "country"}
    model = fit(spec, epsilon="8", entropy=SeededEntropy())
    assert "player.league" in model.receipt["condition"]
    assert verify_model(model).problems == ()
    generate(model, tmp_path / "out", seed=1)
    assert wrong(tmp_path / "out", "team", "league") == []


def test_memory_does_not_grow_with_values_times_values() -> None:
    """Three thousand towns by five thousand codes would be a table of 130 MB."""
    rows = 100_000
    codes = np.where(np.arange(rows) % 10 > 0, np.arange(rows) % 100, np.arange(rows) // 10 % 5_000)
    tables = {
        "place": pa.table(
            {
                "id": pa.array(np.arange(rows)),
                "code": pa.array([f"c{code}" for code in codes]),
                "town": pa.array([f"t{code * 2 // 3}" for code in codes]),
            }
        )
    }
    ddl = "CREATE TABLE place (id BIGINT PRIMARY KEY, code VARCHAR, town VARCHAR)"
    found, peak = _traced(lambda: draft(tables, schema=ddl, unit="place", domains="data"))
    assert found.column("place", "town").determined_by == "code"
    assert len(found.column("place", "town").map or ()) == len(set(codes.tolist()))
    assert peak < 60 * 2**20


def _traced(make: Callable[[], Spec]) -> tuple[Spec, int]:
    tracemalloc.start()
    try:
        return make(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def wrong(bundle: Path, by: str, column: str) -> list[Any]:
    return duckdb.sql(
        f"SELECT {by} FROM '{bundle}/data/player.parquet' GROUP BY {by} "
        f"HAVING COUNT(DISTINCT {column}) + COUNT(*) FILTER ({column} IS NULL) > 1"
    ).fetchall()


@pytest.mark.parametrize("method", ["tree", "independent", "paper"])
def test_a_map_is_learnt_and_holds_in_every_row(drafted: Spec, method: str, tmp_path: Path) -> None:
    spec = with_words(drafted, {"league": {"determined_by": "team"}, "country": {"determined_by": "league"}})
    model = fit(spec, epsilon="8", method=method, entropy=SeededEntropy())
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert verify_model(loaded).problems == ()
    generate(loaded, tmp_path / "out", seed=1)
    assert wrong(tmp_path / "out", "team", "league") == []
    assert wrong(tmp_path / "out", "league", "country") == []
    found = dict(duckdb.sql(f"SELECT DISTINCT team, league FROM '{tmp_path}/out/data/player.parquet'").fetchall())
    assert sum(found.get(team) == league for team, league in LEAGUE.items()) >= 22
    assert model.spec.column("player", "league").map_origin is ComputedOrigin.FOUND
    assert "league" not in model.tables["player"].network.sizes
    share = selectivity(model, "player", {"league": In(values=("NL",))})
    real = duckdb.sql(f"SELECT AVG(CAST(league = 'NL' AS INT)) FROM '{tmp_path}/out/data/player.parquet'").fetchall()
    assert share == pytest.approx(real[0][0], abs=0.05)


def test_a_map_of_numbers_is_made_though_numbers_are_looked_at(tmp_path: Path) -> None:
    """Columns of maps are not candidates for ranks and numbers of rows: maps are made of codes, those of values."""
    with duckdb.connect(str(tmp_path / "s.duckdb")) as base:
        base.execute("CREATE TABLE player (id INTEGER PRIMARY KEY, age SMALLINT NOT NULL)")
        base.execute(
            "CREATE TABLE season (id INTEGER PRIMARY KEY, player INTEGER NOT NULL REFERENCES player (id), "
            "year SMALLINT NOT NULL, era SMALLINT NOT NULL)"
        )
        base.execute("INSERT INTO player SELECT i, i % 30 FROM range(2000) r(i)")
        base.execute("INSERT INTO season SELECT i, i // 2, i % 10, (i % 10) // 5 FROM range(4000) r(i)")
    words = draft(tmp_path / "s.duckdb", unit="player", domains="data", find=False).model_dump(by_alias=True)
    words["method"] = {}
    words["tables"]["season"]["columns"]["era"]["determined_by"] = "year"
    spec = Spec.model_validate(words)
    planned = plan(spec, epsilon="8", rows={"player": 2000, "season": 4000})
    assert planned.maps == planned.budget / 50
    model = fit(spec, epsilon="8", entropy=SeededEntropy())
    assert verify_model(model).problems == ()
    assert dict(model.spec.column("season", "era").map or ()) == {year: year // 5 for year in range(10)}


def test_a_map_without_its_event_is_noticed(drafted: Spec) -> None:
    model = fit(with_words(drafted, {"league": {"determined_by": "team"}}), epsilon="8", entropy=SeededEntropy())
    receipt = model.receipt
    nodes = receipt["ledger"]["nodes"]
    events = [
        n
        for n in nodes
        if n["kind"] == "event"
        and {axis["feature"].get("column") for axis in n["query"].get("axes", ())} == {"team", "league"}
    ]
    assert len(events) == 1
    take_out(receipt["ledger"], events)
    object.__setattr__(model, "receipt", settle(receipt))
    assert_fails(verify_model(model), "player.league: has the origin found")


def test_a_public_map_costs_nothing(drafted: Spec, tmp_path: Path) -> None:
    pairs = (*LEAGUE.items(), (None, "FL"))
    spec = with_words(drafted, {"league": {"determined_by": "team", "map": pairs, "domain": None}})
    write_spec(spec, tmp_path / "spec.yaml")
    assert read_spec(tmp_path / "spec.yaml") == spec
    model = fit(spec, epsilon="2", entropy=SeededEntropy())
    assert not any("league" in str(node.get("query")) for node in model.receipt["ledger"]["nodes"])
    generate(model, tmp_path / "out", seed=1)
    rows = duckdb.sql(f"SELECT DISTINCT team, league FROM '{tmp_path}/out/data/player.parquet'").fetchall()
    assert all(league == dict(pairs)[team] for team, league in rows)
    assert verify_model(model).problems == ()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"league": {"determined_by": "id"}}, r"league\.determined_by: id is no other learnt or computed column"),
        ({"league": {"determined_by": "league"}}, "league is no other learnt"),
        ({"id": {"determined_by": "team"}}, "the column is in a key"),
        (
            {"league": {"determined_by": "team"}, "team": {"determined_by": "league"}},
            "determine each other in a circle",
        ),
        ({"league": {"determined_by": "team"}, "team": {"drop": True}}, "or it is dropped"),
    ],
)
def test_what_cannot_be_is_refused(drafted: Spec, words: dict[str, dict[str, Any]], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        with_words(drafted, words).protection()
