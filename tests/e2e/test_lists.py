"""Hidden lists: tables whose rows are of the same seasons, from the data to synthetic rows."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import privbench
from privbench.cli.model import show_bundle
from privbench.encode.predicate import Between
from privbench.errors import SpecError
from privbench.estimation.estimate import cardinality
from privbench.evaluation.resample import find_ownership
from privbench.fitting.fit import fit as learn
from privbench.fitting.lists import LISTS_PAY, with_lists_that_pay
from privbench.io.open import open_source
from privbench.report.public import read_public
from privbench.schema.computed import ComputedOrigin
from privbench.schema.domain import Origin
from privbench.schema.spec import Orphans, Spec
from privbench.schema.unit import Neighbours

from ..seeded import SeededEntropy
from .test_inside import _write

SEASONS = """
CREATE TABLE player (id INTEGER PRIMARY KEY, height INTEGER NOT NULL);
CREATE TABLE bat (player INTEGER NOT NULL REFERENCES player (id), year INTEGER NOT NULL, team INTEGER, hits INTEGER,
  PRIMARY KEY (player, year));
CREATE TABLE pitch (player INTEGER NOT NULL REFERENCES player (id), year INTEGER NOT NULL, team INTEGER, wins INTEGER,
  PRIMARY KEY (player, year));
"""


@pytest.fixture(scope="module")
def seasons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Players bat in most of their seasons; half of them pitch, nearly always."""
    rng = np.random.default_rng(8)
    rows = [(p, 1990 + n) for p in range(1500) for n in range(int(rng.integers(1, 9)))]
    player, year = np.array(rows).T
    team = player % 7
    bats = rng.random(len(rows)) < 0.95
    pitches = (player % 2 == 0) & (rng.random(len(rows)) < 0.9)
    number = rng.integers(0, 9, len(rows))
    return _write(
        tmp_path_factory.mktemp("inside") / "seasons",
        SEASONS,
        {
            "player": {"id": range(1500), "height": rng.integers(0, 9, 1500)},
            "bat": {"player": player[bats], "year": year[bats], "team": team[bats], "hits": number[bats]},
            "pitch": {"player": player[pitches], "year": year[pitches], "team": team[pitches], "wins": number[pitches]},
        },
    )


def _with_list(source: Path) -> Spec:
    data = privbench.draft(source, unit="player", domains="data", find=False).model_dump(mode="json", by_alias=True)
    tables, key = data["tables"], ["player", "year"]
    tables["season"] = {
        "list_of": ["bat", "pitch"],
        "key": key,
        "owner": ["player"],
        "foreign_keys": [{"columns": ["player"], "table": "player", "references": ["id"]}],
        "columns": {name: tables["bat"]["columns"][name] for name in ("player", "year", "team")},
    }
    for name in ("bat", "pitch"):
        tables[name]["foreign_keys"][0]["inside"] = True
        tables[name]["foreign_keys"].append({"columns": key, "table": "season", "references": key})
        tables[name]["owner"] = key
        tables[name]["columns"]["year"] = {"type": "INTEGER", "null": False}
        tables[name]["columns"]["team"] = {"type": "INTEGER", "computed": "season.team"}
    return Spec.model_validate(data)


def test_rows_of_tables_with_a_common_list_are_of_the_same_seasons(seasons: Path, tmp_path: Path) -> None:
    model = privbench.fit(_with_list(seasons), source=seasons, epsilon="8")
    rows = privbench.generate(model, tmp_path / "b", seed=1).rows
    assert set(rows) == {"player", "bat", "pitch"}, "a list is not published"
    assert "season" not in (tmp_path / "b" / "schema.sql").read_text()
    assert privbench.verify(tmp_path / "b").status == "conditional"
    joined = "SELECT count(*) FROM '{0}/bat.parquet' JOIN '{0}/pitch.parquet' USING (player, year, team)"
    real, made = (duckdb.sql(joined.format(d)).fetchall()[0][0] for d in (seasons, tmp_path / "b" / "data"))
    assert 0.8 < made / real < 1.25


def test_a_list_needs_members_that_it_owns(seasons: Path) -> None:
    data = _with_list(seasons).model_dump(mode="json", by_alias=True)
    data["tables"]["pitch"] |= {"owner": ["player"], "foreign_keys": data["tables"]["pitch"]["foreign_keys"][:1]}
    data["tables"]["pitch"]["columns"]["team"] = {"type": "INTEGER", "domain": {"range": [0, 6]}}
    data["tables"]["pitch"]["columns"]["year"] = {"type": "INTEGER", "null": False, "domain": {"range": [1990, 2000]}}
    with pytest.raises(SpecError, match=r"tables.season.list_of: rows of pitch must be owned by rows of the list"):
        Spec.model_validate(data).protection()


@pytest.mark.parametrize("method", ["paper", "independent"])
def test_other_methods_do_without_lists(seasons: Path, method: str) -> None:
    model = privbench.fit(_with_list(seasons), source=seasons, epsilon="8", method=method)
    assert set(model.tables) == {"player", "bat", "pitch"}
    assert model.receipt["unit"]["lists"] == []


def test_a_list_is_drafted_where_keys_are_shared(seasons: Path, tmp_path: Path) -> None:
    spec = privbench.draft(seasons, unit="player", domains="data")
    found = spec.tables["player_year"]
    assert found.list_of == ("bat", "pitch")
    assert (found.key, found.owner) == (("player", "year"), ("player",))
    assert set(found.columns) == {"player", "year", "team"}, "hits and wins are not shared"
    for member in (spec.tables["bat"], spec.tables["pitch"]):
        assert member.owner == ("player", "year")
        assert [(k.inside, k.origin) for k in member.foreign_keys] == [(True, Origin.DATA), (False, Origin.DECLARED)]
        assert str(member.columns["team"].computed) == "player_year.team"
        assert member.columns["team"].computed_origin is ComputedOrigin.DATA
    privbench.write_spec(spec, tmp_path / "spec.yaml")
    assert privbench.read_spec(tmp_path / "spec.yaml") == spec
    protection = spec.protection()
    assert {("bat", "player"), ("player_year", "year")} <= {
        place for place, origin in spec.origins(protection).items() if origin is Origin.DATA
    }


@pytest.fixture(scope="module")
def paid_later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Players bat in all of their seasons, from 1990 to 2009; nearly all are paid in those of 1998 to 2005."""
    rng = np.random.default_rng(9)
    first = rng.integers(1990, 2005, 3000)
    rows = [(p, y) for p in range(3000) for y in range(first[p], min(first[p] + int(rng.integers(1, 9)), 2010))]
    player, year = np.array(rows).T
    paid = (year >= 1998) & (year <= 2005) & (rng.random(len(rows)) < 0.9)
    return _write(
        tmp_path_factory.mktemp("inside") / "paid",
        SEASONS.replace("team INTEGER, ", ""),
        {
            "player": {"id": range(3000), "height": rng.integers(0, 9, 3000)},
            "bat": {"player": player, "year": year, "hits": rng.integers(0, 9, len(rows))},
            "pitch": {"player": player[paid], "year": year[paid], "wins": rng.integers(0, 9, int(paid.sum()))},
        },
    )


def test_a_member_keeps_to_its_own_years_and_loses_no_rows(paid_later: Path, tmp_path: Path) -> None:
    spec = privbench.draft(paid_later, unit="player", domains="data")
    assert spec.tables["player_year"].list_of == ("bat", "pitch")
    rule = "year BETWEEN 1998 AND 2005"
    assert [(r.check, r.origin) for r in spec.tables["pitch"].rules] == [(rule, Origin.DATA)]
    assert spec.tables["bat"].rules == (), "it has all years of the list"
    model = learn(spec, source=paid_later, epsilon="4", entropy=SeededEntropy(2))
    assert "player_year" in model.tables
    rows = privbench.generate(model, tmp_path / "b", seed=1).rows
    ends = "SELECT min(year), max(year), count(*) FROM '{0}/pitch.parquet'"
    (low, high, real), (made_low, made_high, made) = (
        duckdb.sql(ends.format(d)).fetchall()[0] for d in (paid_later, tmp_path / "b" / "data")
    )
    assert (made_low, made_high) == (low, high) == (1998, 2005)
    assert 0.85 < made / real < 1.15
    assert made == rows["pitch"] > 0.95 * model.tables["pitch"].rows
    asked = ("SELECT COUNT(*) FROM pitch WHERE year < 1998", "SELECT COUNT(*) FROM pitch WHERE year > 1900")
    before, all_rows = (privbench.estimate(model, sql)[0].rows for sql in asked)
    assert before < 1
    assert all_rows == pytest.approx(made, rel=0.02)


def test_a_rule_of_a_member_may_name_rows_above_the_list(paid_later: Path, tmp_path: Path) -> None:
    data = privbench.draft(paid_later, unit="player", domains="data").model_dump(mode="json", by_alias=True)
    data["tables"]["pitch"]["rules"] = [
        "year >= 1998 AND player.height >= 0",
        {"check": "player.height < 7", "from": "data"},
    ]
    model = learn(Spec.model_validate(data), source=paid_later, epsilon="4", entropy=SeededEntropy())
    made = privbench.generate(model, tmp_path / "b", seed=1).rows
    kept = "SELECT max(height) FROM '{0}/pitch.parquet' JOIN '{0}/player.parquet' ON player = id"
    assert duckdb.sql(kept.format(tmp_path / "b" / "data")).fetchall() == [(6,)]
    assert made["pitch"] > 0.95 * model.tables["pitch"].rows


EVENTS = """
CREATE TABLE patient (id INTEGER PRIMARY KEY, sex SMALLINT NOT NULL);
CREATE TABLE lab (id INTEGER PRIMARY KEY, patient INTEGER NOT NULL REFERENCES patient (id), taken DATE,
  ward SMALLINT NOT NULL, test SMALLINT NOT NULL);
"""
_DAYS = "SELECT COUNT(*) / COUNT(DISTINCT (patient, taken)) FROM '{0}/lab.parquet'"


def _events(folder: Path, *, same_day: bool, patients: int = 2000, in_time: bool = False) -> Path:
    """Tests of patients, three on a day on one ward, or each on a day of its own; numbered by patient or in time."""
    tests = np.arange(9 * patients)
    visit = tests // 3 if same_day else tests
    day = pa.array((18000 + visit * 7919 % 900).astype(np.int32), pa.date32())
    place = np.argsort(np.argsort(day.cast(pa.int32()).to_numpy(), kind="stable")) if in_time else tests
    values = {"id": place, "patient": tests // 9, "taken": day, "ward": visit % 5, "test": tests % 3}
    return _write(folder, EVENTS, {"patient": {"id": range(patients), "sex": np.arange(patients) % 2}, "lab": values})


def test_events_of_one_day_have_a_list_of_days(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = privbench.draft(_events(tmp_path / "one", same_day=True), unit="patient", domains="data")
    days = spec.tables["patient_taken"]
    assert days.list_of == ("lab",)
    assert set(days.columns) == {"patient", "taken", "ward"}, "the ward is that of the day"
    model = privbench.fit(spec, epsilon="8")
    rows = privbench.generate(model, tmp_path / "b", seed=1).rows
    real, made = (duckdb.sql(_DAYS.format(f)).fetchall()[0][0] for f in (tmp_path / "one", tmp_path / "b" / "data"))
    assert real == 3
    assert made == pytest.approx(3, rel=0.15)
    wards = f"SELECT COUNT(*) FROM (SELECT 1 FROM '{tmp_path}/b/data/lab.parquet' GROUP BY patient, taken HAVING {{}})"
    assert duckdb.sql(wards.format("COUNT(DISTINCT ward) > 1")).fetchall() == [(0,)]
    show_bundle(tmp_path / "b", model, rows, scale=1, as_json=False)
    assert "patient_taken" not in capsys.readouterr().out


def test_events_with_a_list_of_days_are_numbered_by_them(tmp_path: Path) -> None:
    spec = privbench.draft(_events(tmp_path / "one", same_day=True, in_time=True), unit="patient", domains="data")
    assert (spec.tables["patient_taken"].list_of, spec.tables["lab"].numbered_by) == (("lab",), "taken")
    privbench.generate(privbench.fit(spec, epsilon="8"), tmp_path / "b", seed=1)
    inverted = "SELECT COUNT(*) FROM (SELECT taken < LAG(taken) OVER (ORDER BY id) AS before FROM '{}') WHERE before"
    assert duckdb.sql(inverted.format(tmp_path / "b" / "data" / "lab.parquet")).fetchall() == [(0,)]


@pytest.mark.parametrize("patients", [0, 20])
def test_of_few_events_nothing_is_said(tmp_path: Path, patients: int) -> None:
    source = _events(tmp_path / "one", same_day=True, patients=patients)
    assert set(privbench.draft(source, unit="patient", domains="data").tables) == {"patient", "lab"}


def test_events_on_days_of_their_own_have_none(tmp_path: Path) -> None:
    spec = privbench.draft(_events(tmp_path / "one", same_day=False), unit="patient", domains="data")
    assert set(spec.tables) == {"patient", "lab"}


def test_a_rule_of_a_list_may_have_a_few_more_exceptions(tmp_path: Path) -> None:
    """Three of a thousand seasons come after the last year, all of them of pitchers: too many for a table alone."""
    rng = np.random.default_rng(4)
    rows = np.array([(p, n) for p in range(1000) for n in range(int(rng.integers(2, 9)))])
    player, number = rows.T
    first = rng.integers(1950, 2000, 1000)
    last = first + rng.integers(8, 12, 1000)
    year = first[player] + number
    late = np.flatnonzero(rng.random(len(rows)) < 0.003)
    year[late] = last[player[late]] + 1 + np.arange(len(late))
    bats = np.setdiff1d(np.arange(len(rows)), late)
    ddl = SEASONS.replace("height INTEGER NOT NULL", "last_year INTEGER NOT NULL")
    zeros = np.zeros(len(rows), np.int64)
    source = _write(
        tmp_path / "s",
        ddl,
        {
            "player": {"id": range(1000), "last_year": last},
            "bat": {"player": player[bats], "year": year[bats], "team": zeros[bats], "hits": zeros[bats]},
            "pitch": {"player": player, "year": year, "team": zeros, "wins": zeros},
        },
    )
    spec = privbench.draft(source, unit="player", domains="data")
    assert spec.tables["player_year"].list_of == ("bat", "pitch")
    assert "year < player.last_year" in [rule.check for rule in spec.tables["player_year"].rules]


def test_values_that_do_not_agree_are_no_columns_of_the_list(seasons: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "schema.sql").write_text(SEASONS)
    for name in ("player", "bat"):
        (folder / f"{name}.parquet").write_bytes((seasons / f"{name}.parquet").read_bytes())
    other = "CASE WHEN year % 4 = 0 THEN 9 ELSE team END"
    changed = f"SELECT player, year, {other} AS team, wins FROM '{seasons}/pitch.parquet'"
    duckdb.sql(f"COPY ({changed}) TO '{folder}/pitch.parquet'")
    spec = privbench.draft(folder, unit="player", domains="data")
    assert set(spec.tables["player_year"].columns) == {"player", "year"}
    assert spec.tables["bat"].columns["team"].computed is None


def test_tables_with_few_keys_in_common_have_none(seasons: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "schema.sql").write_text(SEASONS)
    for name in ("player", "bat"):
        (folder / f"{name}.parquet").write_bytes((seasons / f"{name}.parquet").read_bytes())
    shifted = f"SELECT * REPLACE (CAST(year + 5 AS INTEGER) AS year) FROM '{seasons}/pitch.parquet'"
    duckdb.sql(f"COPY ({shifted}) TO '{folder}/pitch.parquet'")
    assert set(privbench.draft(folder, unit="player", domains="data").tables) == {"player", "bat", "pitch"}


@pytest.mark.parametrize(
    "options",
    [
        {"find": False},
        {"domains": "private"},
        {"neighbours": Neighbours.ADD_REMOVE},
        {"orphans": Orphans.NULL},
        {"owners": {"bat": ("player",)}},
    ],
)
def test_no_list_is_drafted_otherwise(seasons: Path, options: dict[str, Any]) -> None:
    spec = privbench.draft(seasons, unit="player", **{"domains": "data", **options})
    assert set(spec.tables) == {"player", "bat", "pitch"}


def test_a_drafted_list_is_used_where_there_is_budget_for_it(seasons: Path) -> None:
    spec = privbench.draft(seasons, unit="player", domains="data")
    least = LISTS_PAY / 1500
    large = privbench.fit(spec, source=seasons, epsilon=str(least))
    small = privbench.fit(spec, source=seasons, epsilon=str(least / 2))
    assert large.receipt["unit"]["lists"] == ["player_year"]
    assert small.receipt["unit"]["lists"] == []
    assert small.protection.owners["bat"].columns == ("player",)
    assert {"year", "team"} <= set(small.protection.attributes("bat"))
    for epsilon, tables in ((least, 4), (least / 2, 3)):
        assert len(privbench.plan(spec, epsilon=str(epsilon), rows={"player": 1500}).tables) == tables


def test_without_its_list_a_spec_is_as_if_none_had_been_found(seasons: Path) -> None:
    with_list = privbench.draft(seasons, unit="player", domains="data")
    plain = privbench.draft(seasons, unit="player", domains="data", find=False)
    without = with_list.without_lists()
    assert list(without.tables) == list(plain.tables)
    for name, table in plain.tables.items():
        assert without.tables[name].foreign_keys == table.foreign_keys
        assert without.tables[name].owner == table.owner
        assert set(without.tables[name].columns) == set(table.columns)
    assert without.protection() == plain.protection()


def test_declared_rules_of_a_list_are_those_of_its_members_without_it(seasons: Path) -> None:
    words = privbench.draft(seasons, unit="player", domains="data").model_dump(mode="json", by_alias=True)
    words["tables"]["player_year"]["rules"] = [
        "year <= 1990 + player.height",
        {"check": "team < 9", "from": "data"},
        "team < 7",
    ]
    without = Spec.model_validate(words).without_lists()
    for member in ("bat", "pitch"):
        rules = [rule.check for rule in without.tables[member].rules]
        assert rules == ["year <= 1990 + player.height", "team < 7"]


def test_a_declared_list_is_used_whatever_the_budget(seasons: Path) -> None:
    assert not _with_list(seasons).drafted_lists()
    assert privbench.fit(_with_list(seasons), source=seasons, epsilon="1").receipt["unit"]["lists"] == ["season"]


def test_a_declared_list_stays_where_a_drafted_one_does_not_pay(seasons: Path) -> None:
    words = _with_list(seasons).model_dump(mode="json", by_alias=True)
    days = privbench.draft(seasons, unit="player", domains="data").model_dump(mode="json", by_alias=True)["tables"]
    words["tables"] |= {name: days[name] for name in ("player_year", "pitch")}
    words["tables"]["season"]["list_of"], words["tables"]["player_year"]["list_of"] = ["bat"], ["pitch"]
    both = Spec.model_validate(words)
    assert both.drafted_lists() == ("player_year",)
    kept = with_lists_that_pay(both, entities=10, epsilon=Fraction(1))
    assert set(kept.tables) == {"player", "season", "bat", "pitch"}


def test_a_list_may_own_a_list(seasons: Path, tmp_path: Path) -> None:
    data = _with_list(seasons).model_dump(mode="json", by_alias=True)
    tables, outer, inner = data["tables"], ["player", "team"], ["player", "team", "year"]
    to_player = {"columns": ["player"], "table": "player", "references": ["id"]}
    team = {**tables["season"]["columns"]["team"], "null": False}
    plain = {"type": "INTEGER", "null": False}
    tables["stay"] = {
        "list_of": ["season"],
        "key": outer,
        "owner": ["player"],
        "foreign_keys": [to_player],
        "columns": {"player": plain, "team": team},
    }
    tables["season"] |= {
        "key": inner,
        "owner": outer,
        "foreign_keys": [{**to_player, "inside": True}, {"columns": outer, "table": "stay", "references": outer}],
    }
    tables["season"]["columns"]["team"] = plain
    for name in ("bat", "pitch"):
        tables[name]["owner"] = inner
        tables[name]["foreign_keys"][1] = {"columns": inner, "table": "season", "references": inner}
        tables[name]["columns"]["team"] = {"type": "INTEGER"}
    spec = Spec.model_validate(data)
    model = privbench.fit(spec, source=seasons, epsilon="8")
    assert model.receipt["unit"]["lists"] == ["stay", "season"]
    assert set(privbench.generate(model, tmp_path / "b", seed=1).rows) == {"player", "bat", "pitch"}
    assert privbench.verify(tmp_path / "b").status == "conditional"
    joined = "SELECT count(*) FROM '{0}/bat.parquet' JOIN '{0}/pitch.parquet' USING (player, year, team)"
    real, made = (duckdb.sql(joined.format(d)).fetchall()[0][0] for d in (seasons, tmp_path / "b" / "data"))
    assert 0.7 < made / real < 1.4
    without = spec.without_lists()
    assert set(without.tables) == {"player", "bat", "pitch"}
    assert set(without.protection().attributes("bat")) == {"year", "team", "hits"}


def test_lists_are_not_seen_in_estimates_and_reports(seasons: Path, tmp_path: Path) -> None:
    model = privbench.fit(_with_list(seasons), source=seasons, epsilon="8")
    privbench.generate(model, tmp_path / "b", seed=1)
    late = [(("b", "year"), Between(low=1995))]
    rows = duckdb.sql(f"SELECT count(*) FROM '{seasons}/bat.parquet' WHERE year >= 1995").fetchall()[0][0]
    assert cardinality(model, tables={"b": "bat"}, filters=late) == pytest.approx(rows, rel=0.2)
    real, synthetic = open_source(seasons).schema(), open_source(tmp_path / "b").schema()
    for known in (model, None):
        found = find_ownership(real, synthetic, tmp_path / "b", known)
        owners = {name: owner and (owner.table, owner.key.columns) for name, owner in found.owners.items()}
        assert owners == {"player": None, "bat": ("player", ("player",)), "pitch": ("player", ("player",))}
    assert set(read_public(tmp_path / "b", model=model).rows) == {"player", "bat", "pitch"}
