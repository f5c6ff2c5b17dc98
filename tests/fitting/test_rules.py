"""What is said of rules before anything is spent: which are read, which cannot be kept, which the data break."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.seeded import SeededEntropy

import privbench
from privbench.errors import DataError, SpecError
from privbench.fitting.draft import draft
from privbench.schema.domain import Bins
from privbench.schema.spec import RuleSpec, Spec

SHOP = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, joined DATE NOT NULL, code VARCHAR NOT NULL CHECK (CODE LIKE 'C%'));
CREATE TABLE purchase (
  customer_id INTEGER NOT NULL REFERENCES customer (id), day DATE NOT NULL,
  price DECIMAL(8,2) NOT NULL CHECK (Price > 0), discount DOUBLE CHECK (discount BETWEEN 0 AND 1),
  seen TIMESTAMP CHECK (seen <= now()::TIMESTAMP), secret INTEGER, CHECK (secret > price)
);
INSERT INTO customer SELECT i, DATE '2020-01-01' + (i % 300)::INT, 'C' || i FROM range(200) t(i);
INSERT INTO purchase SELECT i % 200, DATE '2020-01-01' + (i % 200 % 300 + i % 50)::INT, 1 + i % 90 + 0.25, (i % 5) / 10,
  TIMESTAMP '2020-01-01', 1000 FROM range(900) t(i);
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as database:
        database.execute(SHOP)
    return tmp_path / "shop.duckdb"


def drafted(shop: Path, **choices: Any) -> Spec:
    return draft(shop, unit="customer", domains="data", find=False, drop_columns=[("purchase", "secret")], **choices)


def with_rules(spec: Spec, table: str, *rules: str) -> Spec:
    words = spec.tables[table]
    more = words.model_copy(update={"rules": (*words.rules, *(RuleSpec(check=rule) for rule in rules))})
    return Spec.model_validate(
        spec.model_copy(update={"tables": {**spec.tables, table: more}}).model_dump(by_alias=True)
    )


def test_checks_become_rules_of_the_spec_spelled_as_the_columns_are(shop: Path) -> None:
    rules = drafted(shop).tables["purchase"].rules
    assert [rule.check for rule in rules if rule.left_out is None] == ["price > 0", "discount BETWEEN 0 AND 1"]
    left_out = {rule.check: rule.left_out for rule in rules if rule.left_out is not None}
    assert "not among the functions" in next(why for check, why in left_out.items() if "seen" in check)
    assert left_out["secret > price"] == "it names a column that is left out"
    published = drafted(shop).published().tables["purchase"].rules
    assert not any("secret" in rule.check for rule in published)


def test_suggested_domains_lie_inside_the_checks(shop: Path) -> None:
    with duckdb.connect(str(shop)) as database:
        database.execute(
            "INSERT INTO purchase SELECT 1, DATE '2021-01-01', i / 100 + 0.01, 0, NULL, 9999 FROM range(900) t(i)"
        )
    domain = drafted(shop).column("purchase", "price").domain
    assert isinstance(domain, Bins)
    assert float(domain.bins[0]) > 0


@pytest.mark.parametrize("domains", ["data", "private"])
def test_every_row_keeps_the_checks(shop: Path, tmp_path: Path, domains: str) -> None:
    spec = draft(shop, unit="customer", domains=domains, drop_columns=[("purchase", "secret"), ("purchase", "seen")])
    spec = with_rules(spec, "purchase", "day >= customer.joined")
    model = privbench.fit(spec, epsilon=1, delta="1e-6", entropy=SeededEntropy())
    privbench.generate(model, tmp_path / "bundle", seed=1, format="sqlite")
    privbench.generate(model, tmp_path / "bundle2", seed=1, format="duckdb")
    with duckdb.connect(str(tmp_path / "bundle2" / "data" / "database.duckdb"), read_only=True) as database:
        joined = "FROM purchase JOIN customer ON customer.id = customer_id"
        broken = database.sql(
            "SELECT count(*) FILTER (NOT price > 0), count(*) FILTER (discount NOT BETWEEN 0 AND 1), "
            f"count(*) FILTER (day < joined), count(*) FILTER (code NOT LIKE 'C%') {joined}"
        ).fetchall()
    assert broken == [(0, 0, 0, 0)]
    assert privbench.verify(tmp_path / "bundle").status != "failed"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("strlen(price) > 0", "cannot be worked out"),
        ("price < 0", "no value of its domain"),
        ("code ~ '^[0-9]{9}$'", "no row keeps it"),
        ("price > 95 AND discount < -2", "no row keeps it"),
        ("customer_id > 1000", "no row keeps it"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_is_read(shop: Path, rule: str, message: str) -> None:
    table = "customer" if "code" in rule else "purchase"
    spec = with_rules(drafted(shop), table, rule)
    with pytest.raises(SpecError, match=message) as refused:
        privbench.fit(spec, source="no such place", epsilon=1)
    assert rule.split(maxsplit=1)[0].split("(", maxsplit=1)[0].upper() in str(refused.value).upper()


def test_rules_that_contradict_each_other_are_refused(shop: Path) -> None:
    spec = with_rules(drafted(shop), "purchase", "price > discount + 50", "price * 2 < discount + 60")
    with pytest.raises(SpecError, match="no row keeps all of these"):
        privbench.fit(spec, source="no such place", epsilon=1)


@pytest.mark.parametrize(
    ("table", "rule", "message"),
    [
        ("purchase", "nothing > 1", "has no column 'nothing'"),
        ("purchase", "basket.price > 1", "there is no table 'basket'"),
        ("purchase", "price >", "cannot be read"),
        ("purchase", "SUM(price) > 1", "aggregate"),
        ("customer", "purchase.price > 1", "belongs to no row of purchase"),
    ],
)
def test_names_that_are_not_there_are_refused(shop: Path, table: str, rule: str, message: str) -> None:
    with (
        pytest.raises(ValueError, match=message)
        if "belongs" not in message
        else pytest.raises(SpecError, match=message)
    ):
        with_rules(drafted(shop), table, rule).protection()


@pytest.mark.parametrize("rule", ["price < 90", "day < customer.joined + 49"])
def test_real_rows_that_break_a_rule_are_counted_for_the_publisher(shop: Path, rule: str) -> None:
    spec = with_rules(drafted(shop), "purchase", rule)
    with duckdb.connect(str(shop), read_only=True) as database:
        [(count,)] = database.sql(
            f"SELECT count(*) FROM purchase JOIN customer ON customer.id = customer_id WHERE NOT ({rule})"
        ).fetchall()
    assert count > 0
    with pytest.raises(DataError, match=f"purchase: {count} rows break the rule {rule.split(maxsplit=1)[0]}"):
        privbench.fit(spec, epsilon=1)


def test_rules_from_the_data_enter_the_condition(shop: Path, tmp_path: Path) -> None:
    spec = drafted(shop)
    words = spec.tables["purchase"]
    suggested = RuleSpec.model_validate({"check": "Price < 1000", "from": "data"})
    tables = {**spec.tables, "purchase": words.model_copy(update={"rules": (*words.rules, suggested)})}
    model = privbench.fit(spec.model_copy(update={"tables": tables}), epsilon=1, entropy=SeededEntropy())
    assert 'rules are public: purchase."price < 1000"' in model.receipt["condition"]
    privbench.save_model(model, tmp_path / "shop.model")
    verdict = privbench.verify(tmp_path / "shop.model")
    assert verdict.status == "conditional"
    assert "price < 1000" in (verdict.condition or "")


def test_rules_beside_booleans_that_two_tables_have(tmp_path: Path) -> None:
    """Whether a flag is a copy is found with budget, so that it has no codes yet when rules are looked at."""
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as database:
        database.execute(
            "CREATE TABLE customer (id INTEGER PRIMARY KEY, gone BOOLEAN, age SMALLINT CHECK (age > 0));"
            "CREATE TABLE visit (customer INTEGER NOT NULL REFERENCES customer (id), gone BOOLEAN);"
            "INSERT INTO customer SELECT i, i % 2 = 0, 1 + i % 9 FROM range(60) t(i);"
            "INSERT INTO visit SELECT i % 60, i % 2 = 0 FROM range(90) t(i);"
        )
    spec = draft(tmp_path / "shop.duckdb", unit="customer")
    assert set(privbench.fit(spec, epsilon=50).tables) == {"customer", "visit"}
