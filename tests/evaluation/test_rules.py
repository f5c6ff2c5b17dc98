"""Rules are asked of both sides: the shares of rows that keep them, where a rule is from, and what cannot be asked."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from privbench.evaluation.evaluate import evaluate
from privbench.evaluation.result import RuleResult
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.report.rules import grade_rule, rules_section
from privbench.report.summary import Grade
from privbench.schema.domain import Origin
from privbench.schema.spec import RuleSpec

from .conftest import Make

SCHEMA = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, since INTEGER NOT NULL);
CREATE TABLE sale (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer (id), year INTEGER, amount INTEGER
  {check});
INSERT INTO customer SELECT i, 2000 + i % 10 FROM range(50) t(i);
INSERT INTO sale SELECT i, i % 50, CASE WHEN i % 4 = 0 THEN NULL ELSE {year} END, {amount} FROM range(200) t(i);
"""
REAL = SCHEMA.format(check="", year="2000 + i % 10 + 1", amount="i % 20")
SYNTHETIC = SCHEMA.format(check="CHECK (amount >= 0)", year="2005", amount="i % 10")


def of_rule(results: tuple[RuleResult, ...]) -> dict[str, RuleResult]:
    return {result.rule: result for result in results}


def test_a_check_of_one_schema_is_asked_of_both_sides(make: Make) -> None:
    synthetic = make("synthetic", SYNTHETIC.replace("amount >= 0", "amount < 10 OR amount IS NULL"))
    (rule,) = evaluate(make("real", REAL), synthetic, floor=False).rules
    assert (rule.table, rule.origin, rule.real, rule.synthetic) == ("sale", "declared", 0.5, 1.0)


def test_rules_of_the_model_look_at_rows_above_and_say_that_they_are_from_the_data(make: Make) -> None:
    real, synthetic = make("real", REAL), make("synthetic", SYNTHETIC)
    spec = draft(real, unit="customer", domains="data", find=False)
    above = RuleSpec(check="YEAR > Customer.Since", origin=Origin.DATA)  # the case of names does not matter
    plain = RuleSpec(check="amount < 100")
    sale = spec.tables["sale"].model_copy(update={"rules": (above, plain)})
    spec = spec.model_copy(update={"tables": {**spec.tables, "sale": sale}})
    rules = of_rule(evaluate(real, synthetic, model=fit(spec, epsilon=50), floor=False).rules)
    found = rules["year > customer.since"]
    assert (found.origin, found.real) == ("data", 1.0), "a rule that is NULL is kept"
    assert found.synthetic == pytest.approx(1 - 0.75 * 0.5, abs=0.1), "customers since 2005 to 2009 break it"
    assert rules["amount < 100"].origin == "declared"


def test_a_rule_that_one_side_cannot_work_out_has_no_share_there(make: Make) -> None:
    real = make("real", REAL.replace("amount INTEGER", "total INTEGER"))
    result = evaluate(real, make("synthetic", SYNTHETIC), floor=False)
    (rule,) = result.rules
    assert (rule.real, rule.synthetic) == (None, 1.0)
    assert any("amount >= 0" in skip.what and "cannot be worked out" in skip.reason for skip in result.skips)


@pytest.mark.parametrize(
    ("real", "synthetic", "grade"),
    [
        (1.0, 1.0, Grade.FLOOR),
        (0.9, 1.0, Grade.FLOOR),
        (0.9, 0.895, Grade.CLOSE),
        (0.9, 0.8, Grade.FAR),
        (1.0, 0.995, Grade.FAR),
        (None, 0.995, Grade.FAR),
        (1.0, None, Grade.UNKNOWN),
    ],
)
def test_grades(real: float | None, synthetic: float | None, grade: Grade) -> None:
    rule = RuleResult(table="t", rule="a > b", origin=Origin.DATA.value, real=real, synthetic=synthetic)
    assert grade_rule(rule) is grade


def test_the_panel_shows_broken_rules_first_and_as_text() -> None:
    kept = RuleResult(table="a", rule="x > 0", origin="declared", real=1.0, synthetic=1.0)
    broken = RuleResult(table="b", rule="x < 1 OR y <> '<b>'", origin="data", real=0.5, synthetic=0.25)
    page = rules_section(cast(Any, SimpleNamespace(rules=(kept, broken))))
    assert page.index("x &lt; 1") < page.index("x &gt; 0")
    assert "<b>" not in page
    assert "2 rules" in page
    assert "1 of them" in page
