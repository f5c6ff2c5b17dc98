"""Translation lets no word of the publisher through: literals, names and comments anywhere in a statement."""

import re

import pytest

from privbench.errors import SpecError
from privbench.model.model import Model
from privbench.workload.sql import parse_workload, workload_text
from privbench.workload.translate import Change, Outcome, translate

PLAIN = "SELECT COUNT(*) FROM pet"


def published(model: Model, *statements: str, seed: int = 1) -> tuple[str, tuple[Change, ...]]:
    workload, changes = translate(parse_workload("\n;\n".join([*statements, PLAIN])), model, seed=seed)
    return workload_text(workload), changes


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT job, COUNT(*) FROM person GROUP BY job, 'MARY SMITH'",
        "SELECT job FROM person ORDER BY 'MARY2'",
        "SELECT job FROM person ORDER BY CAST('MARY2' AS VARCHAR)",
        "SELECT job FROM person LIMIT '31337'",
        "SELECT job FROM person OFFSET '31337'",
        "SELECT job FROM person ORDER BY 31337",
        "SELECT job, COUNT(*) FROM person GROUP BY 31337",
        "SELECT ROW_NUMBER() OVER (ORDER BY 31337) FROM person",
        "SELECT {'SECRETK': wage} FROM person",
        "SELECT STRUCT_PACK(SECRETK := wage) FROM person",
        "SELECT MAP {'SECRETK': wage} FROM person",
        "SELECT JSON_OBJECT('SECRETK', wage) FROM person",
        "SELECT SECRETFN(wage) FROM person",
        "SELECT secretdb.SECRETFN(wage) FROM person",
        "SELECT CAST(wage AS SECRETTYPE) FROM person",
        "SELECT CAST(wage AS STRUCT(SECRETF INTEGER)) FROM person",
        "SELECT CAST(wage AS DECIMAL(31, 7)) FROM person",
        "SELECT SUM(wage) OVER SECRETW FROM person WINDOW SECRETW AS (PARTITION BY job)",
        "SELECT SECRETX FROM (SELECT * FROM person) AS s",
        "SELECT * EXCLUDE (SECRETX) FROM person",
        "SELECT * FROM person TABLESAMPLE 31337 ROWS",
        "SELECT job FROM person WHERE job LIKE 'c%' ESCAPE 'M'",
        "SELECT $SECRETP FROM person",
        "SELECT wage COLLATE SECRETCOLL FROM person",
        "SELECT * FROM person JOIN visit USING (SECRETU)",
        "WITH person AS (SELECT * FROM visit) SELECT COUNT(*) FROM secretdb.person",
    ],
)
def test_what_could_carry_words_is_left_out(model: Model, sql: str) -> None:
    text, (change,) = published(model, sql)
    assert (change.statement, change.outcome) == (1, Outcome.LEFT_OUT)
    assert text.splitlines()[-1] == f"{PLAIN};"
    assert not re.search("SECRET|MARY|3133?7", text, re.IGNORECASE)


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT COUNT(*) FROM secretcat.secretdb.person", "SELECT COUNT(*) FROM person"),
        ("SELECT COUNT(*) FROM secretdb.person WHERE secretdb.person.age > 30", "FROM person WHERE person.age > 30"),
        ("SELECT /* SECRETC */ COUNT(*) FROM person -- SECRETC2", "SELECT COUNT(*) FROM person"),
        ("SELECT COUNT(*) AS SECRETA FROM person AS SECRETB WHERE SECRETB.AGE > 30", "AS c1 FROM person AS t1"),
        (
            'SELECT SUM(wage) AS "SECRETA", job FROM person GROUP BY job ORDER BY "SECRETA" LIMIT 3',
            "SELECT SUM(wage) AS c1, job FROM person GROUP BY job ORDER BY c1 LIMIT 3",
        ),
        (
            "WITH SECRETCTE AS (SELECT age AS SECRETA FROM person) SELECT secretcte.secreta FROM SECRETCTE",
            "WITH t1 AS (SELECT age AS c1 FROM person) SELECT t1.c1 FROM t1",
        ),
        (
            "SELECT SECRETA FROM (SELECT age FROM person) AS SECRETB(SECRETA) ORDER BY 1",
            "SELECT c1 FROM (SELECT age FROM person) AS t1(c1) ORDER BY 1",
        ),
    ],
)
def test_names_are_numbered_anew(model: Model, sql: str, wanted: str) -> None:
    text, changes = published(model, sql)
    assert wanted in text.splitlines()[-2]
    assert not re.search("SECRET", text, re.IGNORECASE)
    assert all(c.outcome is Outcome.KEPT for c in changes)


def test_a_bad_literal_leaves_out_its_own_statement_alone(model: Model) -> None:
    good = "SELECT COUNT(*) FROM visit WHERE cost > 1234"
    text, changes = published(model, good, "SELECT COUNT(*) FROM visit WHERE cost = 'notanumber'")
    assert text.count("cost") == 1
    assert [(c.statement, c.outcome) for c in changes] == [(1, Outcome.MAPPED), (2, Outcome.LEFT_OUT)]


@pytest.mark.slow
def test_a_value_that_is_not_public_never_stays_by_chance(model: Model) -> None:
    keys = [f"SELECT COUNT(*) FROM visit WHERE id = {key}" for key in range(1, 400)]
    costs = [f"SELECT COUNT(*) FROM visit WHERE cost <= {cost}" for cost in range(1, 5000, 13)]
    mails = [f"SELECT COUNT(*) FROM person WHERE mail LIKE '{c}%'" for c in "abcdefghijklmnopqrstuvwxyz"]
    _, changes = published(model, *keys, *costs, *mails)
    assert all(c.before != c.after for c in changes if c.outcome is Outcome.MAPPED)
    assert {c.outcome for c in changes if c.column in ("visit.id", "person.mail")} == {Outcome.MAPPED}


def test_nothing_left_is_an_error_with_reasons(model: Model) -> None:
    with pytest.raises(SpecError, match=r"no query is left to publish: 2 left out \(statement 1 selects from hidden"):
        translate(parse_workload("SELECT 1 FROM hidden; UPDATE person SET age = 3"), model)
