"""Every rule that is accepted holds in every generated row: DuckDB is asked, with the rule itself."""

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.tree_models import VISITS, made, network

from privbench.errors import SpecError
from privbench.fitting.rules import check_rules_can_hold
from privbench.generation.generate import generate
from privbench.io.files import read_schema
from privbench.methods.method import TableModel
from privbench.model.model import Model, compile_codecs
from privbench.rules.row_rules import check_rules_work
from privbench.schema.spec import Spec
from privbench.spn.fanout_link import FanoutLink
from privbench.spn.feature_names import null_column, owner_column, rows_column
from privbench.spn.reference_link import Rates, ReferenceLink

PERSON: dict[str, Any] = {
    "id": {"type": "INTEGER"},
    "boss_id": {"type": "INTEGER"},
    "a": {"type": "INTEGER", "null": False, "domain": {"range": [-5, 20]}},
    "B c": {"type": "SMALLINT", "domain": {"bins": [-10, 0, 10, 300]}},
    "price": {"type": "DECIMAL(8,2)", "null": False, "domain": {"bins": [-100, 0, 1, 10, 5000], "heavy_hitters": [0]}},
    "share": {"type": "DOUBLE", "domain": {"bins": [-2, 0, 0.5, 3]}},
    "kind": {"type": "VARCHAR", "domain": {"values": ["a", "ab", "b'c", "x"], "other": True}},
    "text": {"type": "VARCHAR(12)", "domain": {"text": [0, 4, 12], "distinct": 50}},
    "began": {"type": "DATE", "null": False, "domain": {"bins": ["2000-01-01", "2010-01-01", "2020-01-01"]}},
    "ended": {"type": "DATE", "domain": {"bins": ["2000-01-01", "2015-01-01", "2030-01-01"]}},
    "flag": {"type": "BOOLEAN"},
}
VISIT: dict[str, Any] = {
    "person_id": {"type": "INTEGER", "null": False},
    "day": {"type": "DATE", "null": False, "domain": {"bins": ["1990-01-01", "2010-01-01", "2030-01-01"]}},
    "cost": {"type": "INTEGER", "domain": {"range": [0, 9]}},
}


def spec_of(person: list[str], visit: list[str]) -> Spec:
    """Persons with a boss, and visits of theirs, with these rules."""
    tables = {
        "person": {
            "key": ["id"],
            "rules": person,
            "foreign_keys": [{"columns": ["boss_id"], "table": "person", "references": ["id"]}],
            "columns": PERSON,
        },
        "visit": {
            "rules": visit,
            "foreign_keys": [{"columns": ["person_id"], "table": "person", "references": ["id"]}],
            "columns": VISIT,
        },
    }
    return Spec.model_validate({"unit": "person", "tables": tables})


def model_of(spec: Spec, *, persons: int = 150) -> Model:
    """A model of that spec in which columns depend on each other."""
    protection = spec.protection()
    codecs = compile_codecs(spec, protection)
    sizes = {column: codec.size for column, codec in codecs["person"].items()}
    columns = [(c, size, None if c == "a" else "a") for c, size in sizes.items()]
    columns += [(rows_column("visit.person_id"), len(VISITS) - 1, "a"), (null_column("person.boss_id"), 2, "a")]
    given = {owner_column("a"): sizes["a"] + 1}
    children = [(c, codec.size, owner_column("a")) for c, codec in codecs["visit"].items()]
    boss = ReferenceLink(
        column=None, edges=VISITS, exponent=1.0, null=null_column("person.boss_id"), uncounted=Rates(more=0.5)
    )
    visits = FanoutLink(column=rows_column("visit.person_id"), edges=VISITS, exponent=1.5, unowned=0.0)
    models = {
        "person": TableModel(network=network(columns), rows=persons, links={"person.boss_id": boss}),
        "visit": TableModel(
            network=network(children, given=given, seed=1), rows=3 * persons, links={"visit.person_id": visits}
        ),
    }
    return made(spec.model_dump(mode="json", by_alias=True, exclude_none=True), models)


OPERATORS = st.sampled_from(["<", "<=", ">", ">=", "=", "<>"])
NUMBERS = ["a", '"b C"', "price", "share", "a + 1", "price * 2", "a % 4", '"B c" - a', "ABS(a)"]
DATES = ["began", "ended", "Began + INTERVAL 30 DAY"]
TEXTS = ["kind", "text"]
LIKES = ["a%", "%b%", "AB-___", "_%", "a_c%d", "%"]


def atoms(numbers: list[str], dates: list[str], texts: list[str]) -> st.SearchStrategy[str]:
    """Rules without AND, OR and NOT."""
    number, date, text = map(st.sampled_from, (numbers, dates, texts))
    literal = st.sampled_from(["-3", "0", "0.5", "1", "7", "12.25", "400"])
    days = st.sampled_from(["DATE '2004-05-06'", "'2012-02-29'", "DATE '2026-01-01'"])
    return st.one_of(
        st.tuples(number, OPERATORS, literal).map(" ".join),
        st.tuples(literal, OPERATORS, number).map(" ".join),
        st.tuples(number, OPERATORS, number).map(" ".join),
        st.tuples(number, literal, literal).map(lambda p: f"{p[0]} BETWEEN {p[1]} AND {p[2]}"),
        st.tuples(number, st.lists(literal, min_size=1, max_size=3)).map(lambda p: f"{p[0]} IN ({', '.join(p[1])})"),
        st.tuples(date, OPERATORS, days).map(" ".join),
        st.tuples(date, OPERATORS, date).map(" ".join),
        st.tuples(text, st.sampled_from(LIKES)).map(lambda p: f"{p[0]} LIKE '{p[1]}'"),
        st.tuples(text, st.sampled_from(["a", "b''c", "zz"])).map(lambda p: f"{p[0]} IN ('{p[1]}', 'ab')"),
        st.tuples(text, OPERATORS, st.integers(0, 9)).map(lambda p: f"LENGTH({p[0]}) {p[1]} {p[2]}"),
        st.sampled_from([*numbers, *dates, *texts]).map(lambda c: f"{c} IS NULL"),
        st.sampled_from([*numbers, *dates, *texts]).map(lambda c: f"{c} IS NOT NULL"),
    )


def rules(numbers: list[str], dates: list[str], texts: list[str]) -> st.SearchStrategy[list[str]]:
    """Some rules, of atoms joined in all ways."""

    def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pair = st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda p: f"({p[0]}) {p[1]} ({p[2]})")
        case = st.tuples(inner, inner).map(lambda p: f"CASE WHEN {p[0]} THEN {p[1]} END")
        return pair | inner.map(lambda sql: f"NOT ({sql})") | case

    return st.lists(st.recursive(atoms(numbers, dates, texts), joined, max_leaves=3), max_size=3)


PERSON_RULES = rules(NUMBERS, DATES, TEXTS)
VISIT_RULES = rules(["cost", "person.a", "PERSON.price"], ["day", "person.began", "person.Ended"], ["person.kind"])


def accepted(person: list[str], visit: list[str]) -> Spec:
    """A spec with these rules, if it is one that a fit would accept."""
    try:
        spec = spec_of(person, visit)
        protection = spec.protection()
        check_rules_work(protection.schema)
        check_rules_can_hold(spec, protection, compile_codecs(spec, protection))
    except SpecError:
        assume(False)
    return spec


@given(person=PERSON_RULES, visit=VISIT_RULES, seed=st.integers(0, 99))
@example(person=["price > 0", "share BETWEEN 0 AND 1", "ended >= began"], visit=["day >= person.began"], seed=1)
@example(person=["boss_id <> id", "id > 0"], visit=["cost > 2 OR day > DATE '2020-01-01'"], seed=2)
@example(person=["NOT flag OR text IS NOT NULL", "text LIKE 'AB-%'", "LENGTH(text) > 6"], visit=[], seed=3)
def test_accepted_rules_hold_in_every_row(
    tmp_path_factory: pytest.TempPathFactory, person: list[str], visit: list[str], seed: int
) -> None:
    model = model_of(accepted(person, visit))
    out = tmp_path_factory.mktemp("rules") / "bundle"
    generate(model, out, seed=seed, format="duckdb")  # DuckDB has the CHECKs, and takes every row
    with duckdb.connect(str(out / "data" / "database.duckdb"), read_only=True) as database:
        for rule in person:
            [(broken,)] = database.sql(f"SELECT count(*) FROM person WHERE NOT ({rule})").fetchall()
            assert broken == 0, rule
        for rule in visit:
            joined = f"SELECT count(*) FROM visit JOIN person ON person.id = visit.person_id WHERE NOT ({rule})"
            assert database.sql(joined).fetchall() == [(0,)], rule
        constraints = database.sql("SELECT count(*) FROM duckdb_constraints() WHERE constraint_type = 'CHECK'")
        own = [check for table in model.protection.schema.tables for check in table.own_checks]
        assert constraints.fetchall() == [(len(own),)]


def test_rows_that_are_drawn_again_are_counted_and_shown(tmp_path: Path) -> None:
    model = model_of(spec_of(["ended >= began"], []), persons=3000)
    generate(model, tmp_path / "bundle", seed=1)
    counts = json.loads((tmp_path / "bundle" / "manifest.json").read_text())["tables"]["person"]["rules"]
    assert 0 < counts["drawn_again"] < 3000
    assert counts["left_out"] == 0
    readme = (tmp_path / "bundle" / "README.md").read_text()
    assert f"{counts['drawn_again']:,} rows broke a rule" in readme
    published = read_schema(tmp_path / "bundle" / "schema.sql").table("person")
    assert [check.sql for check in published.checks] == ["ended >= began"]


def test_without_rules_nothing_is_drawn_that_was_not(tmp_path: Path) -> None:
    plain, ruled = model_of(spec_of([], [])), model_of(spec_of(["a > -100"], []))
    generate(plain, tmp_path / "plain", seed=1)
    generate(ruled, tmp_path / "ruled", seed=1)
    for table in ("person", "visit"):
        assert _bytes(tmp_path / "plain", table) == _bytes(tmp_path / "ruled", table)
    manifest = json.loads((tmp_path / "plain" / "manifest.json").read_text())
    assert "rules" not in manifest["tables"]["person"]


def _bytes(bundle: Path, table: str) -> bytes:
    return (bundle / "data" / f"{table}.parquet").read_bytes()


def test_children_and_carried_features_see_the_row_as_it_came_out(tmp_path: Path) -> None:
    """Visits depend on the person's `a`: if it is drawn again, they go by the new one."""
    model = model_of(spec_of(["a = 3 OR share > 2.9"], []), persons=2000)
    generate(model, tmp_path / "bundle", seed=1, format="duckdb")
    with duckdb.connect(str(tmp_path / "bundle" / "data" / "database.duckdb"), read_only=True) as database:
        shares = database.sql(
            "SELECT cost, count(*) / sum(count(*)) OVER () FROM visit JOIN person ON person.id = person_id "
            "WHERE a = 3 AND cost IS NOT NULL GROUP BY cost ORDER BY cost"
        ).fetchall()
    cost = next(c for c in model.tables["visit"].network.columns if c.column == "cost")
    code = int(model.codecs["person"]["a"].encode(pa.array([3], pa.int32()))[0])
    wanted = (cost.factors[0][code] if cost.factors else cost.counts)[:10]
    assert np.abs(np.array([share for _, share in shares]) - wanted / wanted.sum()).max() < 0.1
