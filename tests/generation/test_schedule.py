"""Rules and formulas whose columns are known late: kept in every row, or refused before anything is spent."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import privbench
from privbench.errors import SpecError
from privbench.model.schedule import Ready, schedule
from privbench.schema.computed import ComputedOrigin
from privbench.schema.expression import parse_expression
from privbench.schema.spec import Spec
from privbench.schema.table_spec import RuleSpec

from ..e2e.checks import loaded

SHOP = """CREATE TABLE cust (id INTEGER PRIMARY KEY);
CREATE TABLE orders (id INTEGER PRIMARY KEY, cust INTEGER NOT NULL REFERENCES cust, total INTEGER NOT NULL {0},
  cap INTEGER NOT NULL);
CREATE TABLE lines (id INTEGER PRIMARY KEY, ord INTEGER NOT NULL REFERENCES orders, amount INTEGER NOT NULL);"""
POSTS = """CREATE TABLE cust (id INTEGER PRIMARY KEY);
CREATE TABLE post (id INTEGER PRIMARY KEY, cust INTEGER NOT NULL REFERENCES cust, day DATE NOT NULL,
  prev INTEGER REFERENCES post, label VARCHAR GENERATED ALWAYS AS ('C' || id || '-' || prev), CHECK (prev < id));
CREATE TABLE vote (post INTEGER NOT NULL REFERENCES post, CHECK (post > 0));"""


def _shop() -> dict[str, pa.Table]:
    rng = np.random.default_rng(0)
    order, amount = rng.integers(1, 201, 600), rng.integers(1, 50, 600)
    total = np.bincount(order, amount, minlength=201)[1:].astype(int)
    ids = np.arange(1, 601)
    return {
        "cust": pa.table({"id": ids[:100]}),
        "orders": pa.table({"id": ids[:200], "cust": ids[:200] % 100 + 1, "total": total, "cap": total + ids[:200]}),
        "lines": pa.table({"id": ids, "ord": order, "amount": amount}),
    }


def _posts() -> dict[str, pa.Table]:
    rng, ids = np.random.default_rng(0), np.arange(1, 501)
    prev = [None if i < 5 or i % 3 == 0 else int(rng.integers(1, i)) for i in ids.tolist()]
    post = {"id": ids, "cust": rng.integers(1, 101, 500), "day": np.sort(rng.integers(0, 900, 500)).astype("M8[D]")}
    label = [f"C{i}-{p}" if p else None for i, p in zip(ids, prev, strict=True)]
    return {
        "cust": pa.table({"id": ids[:100]}),
        "post": pa.table({**post, "prev": pa.array(prev, pa.int64()), "label": label}),
        "vote": pa.table({"post": rng.integers(1, 501, 300)}),
    }


def _ruled(spec: Spec, computed: dict[tuple[str, str], str], **rules: str) -> Spec:
    expressions = {place: parse_expression(sql, where="") for place, sql in computed.items()}
    tables = dict(spec.with_computed(expressions, ComputedOrigin.DECLARED).tables)
    for name, rule in rules.items():
        tables[name] = tables[name].model_copy(update={"rules": (*tables[name].rules, RuleSpec(check=rule))})
    return spec.model_copy(update={"tables": tables})


def _bundle(spec: Spec, source: Any, out: Path, **words: Any) -> duckdb.DuckDBPyConnection:
    privbench.generate(privbench.fit(spec, source=source, epsilon="50"), out, seed=1, **words)
    return loaded(out)


@pytest.mark.parametrize(("check", "kept"), [("total >= 0", True), ("total <= 2000", False)])
def test_a_check_over_a_sum_is_kept_if_it_follows_from_what_is_added_up(check: str, kept: bool, tmp_path: Path) -> None:
    ddl = SHOP.format(f"CHECK ({check})")
    spec = privbench.draft(_shop(), schema=ddl, unit="cust", domains="data")
    assert str(spec.tables["orders"].columns["total"].computed) == "SUM(lines.amount)"
    [rule] = spec.tables["orders"].rules
    assert (rule.left_out is None) == kept
    with _bundle(spec, _shop(), tmp_path / "b") as base:
        assert base.sql("SELECT count(*) FROM orders WHERE total < 0").fetchall() == [(0,)]
        checks = base.sql("SELECT count(*) FROM duckdb_constraints() WHERE constraint_type = 'CHECK'").fetchall()
    assert checks == [(int(kept),)]


@pytest.mark.parametrize(
    ("table", "rule"),
    [("orders", "total <= 2000"), ("lines", "orders.total + amount <= 2000"), ("orders", "total > 0")],
)
def test_rules_over_sums_that_nothing_implies_are_refused_before_anything_is_spent(table: str, rule: str) -> None:
    drafted = privbench.draft(_shop(), schema=SHOP.format(""), unit="cust", domains="data", find=False)
    spec = _ruled(drafted, {("orders", "total"): "SUM(lines.amount)"}, **{table: rule})
    with pytest.raises(SpecError, match=r"cannot be kept: .*total adds up rows below.*Take the rule out"):
        privbench.fit(spec, source=_shop(), epsilon="50")


def test_a_rule_over_the_own_number_and_a_computed_column_is_kept(tmp_path: Path) -> None:
    drafted = privbench.draft(_shop(), schema=SHOP.format(""), unit="cust", domains="data", find=False)
    spec = _ruled(drafted, {("orders", "total"): "cap - 1"}, orders="id > 0 - total")
    with _bundle(spec, _shop(), tmp_path / "b") as base:
        assert base.sql("SELECT count(*) FROM orders WHERE id <= 0 - total OR total <> cap - 1").fetchall() == [(0,)]
    broken = _ruled(drafted, {("orders", "total"): "cap - 1"}, orders="id > total")
    with pytest.raises(SpecError, match="rows are numbered anew"):
        privbench.fit(broken, source=_shop(), epsilon="50")


@pytest.mark.parametrize("words", [{}, {"partitions": 2}, {"scale": 0.3}])
def test_keys_in_the_order_of_a_date_keep_rules_and_what_is_computed_from_them(
    words: dict[str, Any], tmp_path: Path
) -> None:
    spec = privbench.draft(_posts(), schema=POSTS, unit="cust", domains="data")
    assert spec.tables["post"].numbered_by == "day"
    assert spec.tables["post"].columns["label"].computed is not None
    assert [rule.left_out for name in ("post", "vote") for rule in spec.tables[name].rules] == [None, None]
    with _bundle(spec, _posts(), tmp_path / "b", **words) as base:
        wrong = "prev >= id OR label IS DISTINCT FROM 'C' || id || '-' || prev"
        asked = f"SELECT count(*) FILTER ({wrong}), count(prev) > 20, bool_and(day >= before) FROM (SELECT *, "
        asked += "coalesce(lag(day) OVER (ORDER BY id), day) AS before FROM post)"
        [(broken, many, ordered)] = base.sql(asked).fetchall()
    assert (broken, many, ordered or "partitions" in words) == (0, True, True)  # partitions are merged about so


def test_rows_are_numbered_by_a_date_that_rows_below_give(tmp_path: Path) -> None:
    ddl = """CREATE TABLE cust (id INTEGER PRIMARY KEY, seen DATE);
CREATE TABLE visit (id INTEGER PRIMARY KEY, cust INTEGER NOT NULL REFERENCES cust, day DATE NOT NULL);"""
    rng, ids = np.random.default_rng(0), np.arange(1, 301)
    first = np.sort(rng.integers(0, 900, 100)).astype("M8[D]")
    visits = {"id": ids, "cust": (ids - 1) % 100 + 1, "day": np.tile(first, 3) - np.repeat([0, 3, 9], 100)}
    source = {"cust": pa.table({"id": ids[:100], "seen": first}), "visit": pa.table(visits)}
    spec = privbench.draft(source, schema=ddl, unit="cust", domains="data")
    assert str(spec.tables["cust"].columns["seen"].computed) == "MAX(visit.day)"
    assert spec.tables["cust"].numbered_by == "seen"
    with _bundle(spec, source, tmp_path / "b") as base:
        ordered = "SELECT bool_and(seen >= before) FROM (SELECT seen, lag(seen) OVER (ORDER BY id) AS before FROM cust)"
        assert base.sql(ordered).fetchall() == [(True,)]
        late = "SELECT count(*) FROM cust WHERE seen IS DISTINCT FROM (SELECT max(day) FROM visit WHERE cust = cust.id)"
        assert base.sql(late).fetchall() == [(0,)]


def test_a_date_made_of_the_key_does_not_number_it() -> None:
    ddl = """CREATE TABLE cust (id INTEGER PRIMARY KEY, day DATE GENERATED ALWAYS AS (DATE '2020-01-01' + id),
  age INTEGER);"""
    ids = np.arange(1, 101)
    source = {"cust": pa.table({"id": ids, "day": np.datetime64("2020-01-01") + ids, "age": ids % 7})}
    spec = privbench.draft(source, schema=ddl, unit="cust", domains="data")
    assert spec.tables["cust"].numbered_by is None
    privbench.fit(spec, source=source, epsilon="5")
    numbered = spec.tables["cust"].model_copy(update={"numbered_by": "day"})
    with pytest.raises(SpecError, match="numbered_by: day: is computed from keys"):
        privbench.fit(spec.model_copy(update={"tables": {"cust": numbered}}), source=source, epsilon="5")


def test_what_a_row_below_computes_from_a_key_that_is_numbered_again_is_refused() -> None:
    spec = privbench.draft(_posts(), schema=POSTS, unit="cust", domains="data")
    data = spec.model_dump(mode="json", by_alias=True)
    data["tables"]["vote"]["columns"]["said"] = {"type": "VARCHAR", "computed": "post.label || '!'"}
    with pytest.raises(
        SpecError, match=r"vote.columns.said.computed: is known only when .* post.label of another table"
    ):
        privbench.fit(Spec.model_validate(data), source=_posts(), epsilon="5")


def test_the_schedule_says_when_each_column_is_known() -> None:
    spec = privbench.draft(_posts(), schema=POSTS, unit="cust", domains="data")
    known = schedule(spec, spec.protection()).columns
    late = {".".join(place): ready for place, ready in known.items() if ready > Ready.DRAWN}
    again = ("post.id", "post.prev", "post.label", "vote.post")
    assert late == {"cust.id": Ready.NUMBERED, **dict.fromkeys(again, Ready.RENUMBERED)}
