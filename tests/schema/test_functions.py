"""Expressions are made of a closed list of functions, whose values follow from their arguments and are bounded."""

import re
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pydantic import ValidationError

import privbench
from privbench.errors import ModelError, SpecError
from privbench.model.file import load_model
from privbench.rules.evaluate import Evaluator
from privbench.schema.expression import ColumnName, Expression, parse_expression
from privbench.schema.functions import LONGEST_TEXT
from privbench.schema.spec import RuleSpec, Spec, read_spec

from ..forging import forged

REFUSED = [
    "current_setting('home_directory')",
    "version()",
    "current_user",
    "session_user",
    "current_date",
    "now()",
    "today()",
    "localtimestamp",
    "age(d)",
    "random()",
    "uuid()",
    "getenv('HOME')",
    "getvariable('x')",
    "nextval('x')",
    "read_text('/etc/passwd')",
    "query('select 1')",
    "hash(a)",
    "txid_current()",
    "error('x')",
    "pg_sleep(10)",
    "no_such_function(a)",
    "a COLLATE nocase",
    "d AT TIME ZONE 'Europe/Vienna'",
    "repeat('a', 2000000000)",
    "length(repeat('ab', 1000000000))",
    "repeat(repeat(repeat(repeat('a', 100), 100), 100), 100)",
    "repeat(a, id)",
    "lpad(a, 2000000000, 'x')",
    "rpad(a, id, 'x')",
    "replace(replace(a, 'a', 'aaaaaaaaaaaaaaaaaaaa'), 'a', 'aaaaaaaaaaaaaaaaaaaa')",
    "regexp_replace(regexp_replace(a, '.', '\\0\\0\\0\\0\\0\\0', 'g'), '.', '\\0\\0\\0\\0\\0\\0', 'g')",
    "a || " * 120 + "a",
    "a ~ a",
    "format('{:>1000000000}', a)",
    "printf('%1000000000d', id)",
    "bar(id, 1, 2, 1000000)",
    "range(1000000000)",
    "list_transform([1], x -> x)",
    "[1, 2][id]",
    "CAST(a AS INTEGER[])",
    "CAST(a AS STRUCT(b INTEGER))",
    "strftime(d, a)",
    "(" * 150 + "id" + ")" * 150,
    "-" + "(-" * 150 + "id" + ")" * 150,
    "id" + " + id" * 600,
]
TAKEN = [
    "repeat('*', 20)",
    "lpad(a, 10, '0') || '-' || upper(left(a, 3))",
    "replace(a, 'ss', 'sz')",
    "regexp_replace(a, '[0-9]+', '#', 'g')",
    "CASE WHEN a ~ '^x' THEN 'x' ELSE trim(a) END",
    "CAST(id AS VARCHAR) || ' ' || strftime(d, '%Y-%m-%d')",
    "date_diff('day', d, d + INTERVAL 3 DAY)",
    "age(d, DATE '2020-01-01')",
    "extract(year FROM d) + year(d) + date_part('month', d)",
    "id IN (1, 2, 3) AND a NOT LIKE 'x%'",
    " OR ".join(f"id = {n}" for n in range(300)),
]


def _words(column: dict[str, Any] | None = None, **table: Any) -> dict[str, Any]:
    columns = {
        "id": {"type": "BIGINT", "null": False},
        "a": {"type": "VARCHAR", "domain": {"text": [0, 8]}},
        "d": {"type": "DATE", "domain": {"range": ["2020-01-01", "2020-12-31"]}},
        "z": column or {"type": "VARCHAR", "domain": {"text": [0, 8]}},
    }
    return {"unit": "p", "tables": {"p": {"key": ["id"], "columns": columns, **table}}}


@pytest.mark.parametrize("sql", REFUSED, ids=lambda sql: sql[:30])
def test_what_is_not_on_the_list_is_refused_at_load(sql: str, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"tables\.p\.columns\.z\.computed"):
        Spec.model_validate(_words({"type": "VARCHAR", "computed": sql}))
    with pytest.raises(ValidationError, match=r"tables\.p\.rules\.0"):
        Spec.model_validate(_words(rules=[f"({sql}) IS NOT NULL"]))


def test_the_place_and_the_remedy_are_named(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(
        "unit: p\ntables:\n  p:\n    columns:\n      z: {type: VARCHAR, computed: current_setting('home_directory')}\n"
    )
    with pytest.raises(SpecError) as error:
        read_spec(tmp_path / "spec.yaml")
    assert "line 5, tables.p.columns.z.computed" in str(error.value)
    assert "CURRENT_SETTING('home_directory') is not among the functions" in str(error.value)
    assert "docs/spec.md" in str(error.value)


@pytest.mark.parametrize("sql", TAKEN, ids=lambda sql: sql[:30])
def test_usual_expressions_are_taken_and_worked_out(sql: str) -> None:
    types = {"id": pa.int64(), "a": pa.string(), "d": pa.date32()}
    expression = parse_expression(sql, where="z")
    with Evaluator([expression], {ColumnName(None, n): t for n, t in types.items()}, where="z"):
        pass


def test_what_is_computed_in_python_is_looked_at_too() -> None:
    with pytest.raises(ValidationError, match="NOW"):
        Spec.model_validate(_words({"type": "VARCHAR", "computed": Expression(sql="NOW()")}))


@pytest.mark.parametrize("place", ["computed", "rules"])
def test_a_forged_model_is_refused(place: str, tmp_path: Path) -> None:
    tables = {"p": pa.table({"id": list(range(50)), "a": ["x"] * 50, "d": pa.nulls(50, pa.date32()), "z": ["x"] * 50})}
    ddl = "CREATE TABLE p (id BIGINT PRIMARY KEY, a VARCHAR, d DATE, z VARCHAR)"
    spec = Spec.model_validate(_words({"type": "VARCHAR", "computed": "upper(a)"}, rules=["id >= 0"]))
    privbench.save_model(
        privbench.fit(spec, source=privbench.io.given.source_of(tables, schema=ddl), epsilon=1), tmp_path / "m"
    )

    def change(header: dict[str, Any]) -> None:
        table = header["spec"]["tables"]["p"]
        if place == "computed":
            table["columns"]["z"]["computed"] = "repeat('a', 2000000000)"
        else:
            table["rules"] = ["current_setting('home_directory') <> 'x'"]

    with pytest.raises(ModelError, match=r"REPEAT|CURRENT_SETTING"):
        load_model(forged(tmp_path / "m", tmp_path / "forged", change))


def test_a_check_that_is_left_out_is_kept_as_text() -> None:
    rule = RuleSpec(check="d < current_date", left_out="it has another value each day")
    spec = Spec.model_validate(_words(rules=[rule.model_dump(by_alias=True)]))
    assert [r.check for r in spec.published().tables["p"].rules] == ["d < CURRENT_DATE"]


def test_a_draft_leaves_out_what_no_expression_may_call() -> None:
    ddl = (
        "CREATE TABLE p (id BIGINT PRIMARY KEY, d DATE CHECK (d < current_date), a VARCHAR CHECK (length(a) < 9), "
        "h HUGEINT GENERATED ALWAYS AS (hash(a)), u VARCHAR GENERATED ALWAYS AS (upper(a)))"
    )
    rows = {"id": [1], "d": pa.nulls(1, pa.date32()), "a": ["x"], "h": [7], "u": ["X"]}
    table = privbench.draft({"p": pa.table(rows)}, schema=ddl).tables["p"]
    assert [(rule.check, bool(rule.left_out)) for rule in table.rules] == [
        ("d < CURRENT_DATE", True),
        ("LENGTH(a) < 9", False),
    ]
    assert (table.columns["h"].computed, str(table.columns["u"].computed)) == (None, "UPPER(a)")


def test_the_docs_list_all_functions() -> None:
    from privbench.schema import functions

    text = Path("docs/spec.md").read_text()
    listed = re.search(r"## Functions.*?```\n(.*?)```", text, re.DOTALL)
    assert listed is not None
    names = set(listed[1].lower().split())
    query = "SELECT function_name FROM duckdb_functions() WHERE stability = 'CONSISTENT' OR function_type <> 'scalar'"
    with duckdb.connect() as base:
        stable = {name for (name,) in base.sql(query).fetchall()}
    assert names <= stable | {"coalesce", "nullif", "extract", "row_number"}
    assert names >= functions._BY_NAME
    tried = ("", "a", "a, 'b'", "a, 2", "'day', a", "a, 'b', 'c'", "'day', a, b", "a, 2, 'c'", "year FROM a")
    found: set[str] = set()
    for name in names:
        for arguments in tried:
            try:
                tree = parse_expression(f"{name}({arguments})", where=name).tree
            except SpecError:
                continue
            found |= {name, *(f"<{type(node).__name__}>" for node in tree.walk())}
    assert names <= found
    assert found >= {f"<{kind}>" for kind in functions._FUNCTIONS}


def test_bounds_are_those_of_the_longest_text() -> None:
    assert parse_expression(f"repeat('a', {LONGEST_TEXT})", where="z")
    with pytest.raises(SpecError, match="could make texts"):
        parse_expression(f"repeat('a', {LONGEST_TEXT + 1})", where="z")
