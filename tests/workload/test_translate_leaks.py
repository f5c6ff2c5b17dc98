"""Translation lets no word of the publisher through: literals, names and comments anywhere in a statement."""

import re

import pytest

from privbench.errors import SpecError
from privbench.model.model import Model
from privbench.workload.sql import parse_workload, workload_text
from privbench.workload.translate import Change, Outcome, translate

PLAIN = "SELECT COUNT(*) FROM pet"


def published(model: Model, *statements: str, seed: int = 1) -> tuple[str, tuple[Change, ...]]:
    made = translate(parse_workload("\n;\n".join([*statements, PLAIN])), model, seed=seed)
    return workload_text(made.workload), made.changes


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM person WHERE wage = 31337.42",
        "SELECT COUNT(*) FROM person WHERE 31337.42 = wage AND (wage) <= (31337.42)",
        "SELECT COUNT(*) FROM person WHERE wage IN (1, 31337.42, -31337.42)",
        "SELECT COUNT(*) FROM person WHERE wage BETWEEN -31337 AND 31337.42",
        "SELECT COUNT(*) FROM person WHERE NOT wage > 31337.42 OR wage <> 31337",
        "SELECT COUNT(*) FROM person WHERE wage = '31337.42' OR wage > CAST('31337.42' AS DOUBLE)",
        "SELECT COUNT(*) FROM person WHERE wage > CAST(31337.42 AS DECIMAL)",
        "SELECT COUNT(*) FROM person WHERE wage > 3.133742e4",
        "SELECT COUNT(*) FROM visit WHERE cost = 31337",
        "SELECT COUNT(*) FROM person WHERE born = DATE '1977-05-13' OR born > CAST('1977-05-13' AS DATE)",
        "SELECT COUNT(*) FROM person WHERE born BETWEEN '1977-05-13' AND '1977-05-13'",
        "SELECT COUNT(*) FROM person WHERE mail = 'Mary.Smith@example.org' OR job = 'MARY'",
        "SELECT COUNT(*) FROM person WHERE mail > 'Mary' AND mail LIKE 'Mary%' AND mail LIKE '%smith%'",
        "SELECT COUNT(*) FROM person WHERE job LIKE '%mary' OR job LIKE 'mary' OR job NOT LIKE 'smi!_th%' ESCAPE '!'",
        "SELECT COUNT(*) FROM person WHERE mail LIKE '%mary%smith_%'",
        "SELECT job, COUNT(*) FROM person GROUP BY job HAVING job = 'Mary Smith'",
        "SELECT job, COUNT(*) AS n FROM person GROUP BY job HAVING COUNT(*) > 31337 AND MAX(mail) = 'Mary'",
        "SELECT job FROM person ORDER BY 1 LIMIT 31337 OFFSET 31337",
        "SELECT age FROM (SELECT age FROM person LIMIT 31337) AS mary",
        "SELECT COUNT(*) AS mary_smith FROM person AS smith31337 -- Mary 31337",
        "31337||SELECT /* Mary 31337 */ COUNT(*) FROM person WHERE id = 31337 AND town_id = 31337",
        "WITH mary AS (SELECT wage AS smith FROM person WHERE wage > 31337) SELECT 1 FROM mary WHERE smith < 31337.42",
        "SELECT COUNT(*) FROM person WHERE EXISTS (SELECT 1 FROM visit WHERE cost > 31337 AND kind = 'Mary')",
        "SELECT CASE WHEN job = 'Mary' THEN 31337 ELSE 0 END FROM person",
        "SELECT 'Mary' || job, wage + 31337 FROM person",
        "SELECT SUM(wage) OVER (ORDER BY age ROWS BETWEEN 31337 PRECEDING AND CURRENT ROW) FROM person",
        "SELECT NTILE(31337) OVER (ORDER BY age), POWER(age, 31337) FROM person FETCH FIRST 31337 ROWS ONLY",
        "SELECT /*+ mary(31337) */ COUNT(*) FILTER (WHERE job = $$Mary$$) FROM person",
        "SELECT COUNT(*) FROM (VALUES (31337)) AS t(x) WHERE (x, 'Mary') IN ((31337, 'Mary'))",
        "SELECT * FROM person PIVOT (COUNT(*) FOR job IN ('Mary'))",
        "SELECT COUNT(*) FROM person WHERE job ILIKE 'Mary%' OR job SIMILAR TO 'Mary' OR REGEXP_MATCHES(job, 'Mary')",
    ],
)
@pytest.mark.parametrize("public", [False, True])
def test_a_rare_literal_is_in_no_form_in_the_output(model: Model, sql: str, public: bool) -> None:
    """All domains of this model are from the data, so that nothing may stay, whatever the publisher says."""
    workload = parse_workload(f"{sql}\n;\n{PLAIN}")
    for seed in range(3):
        made = translate(workload, model, seed=seed, literals_are_public=public)
        text = workload_text(made.workload)
        assert not re.search(r"31337|3\.1337|mary|smith|smi|1977-05-13", text, re.IGNORECASE), text
        assert all(c.outcome is not Outcome.KEPT for c in made.changes)


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
        ("SELECT COUNT(*) FROM secretdb.person WHERE secretdb.person.age > 30", "FROM person WHERE person.age > "),
        ("SELECT /* SECRETC */ COUNT(*) FROM person -- SECRETC2", "SELECT COUNT(*) FROM person"),
        ("SELECT COUNT(*) AS SECRETA FROM person AS SECRETB WHERE SECRETB.AGE > 30", "AS c1 FROM person AS t1"),
        (
            'SELECT SUM(wage) AS "SECRETA", job FROM person GROUP BY job ORDER BY "SECRETA" LIMIT 10',
            "SELECT SUM(wage) AS c1, job FROM person GROUP BY job ORDER BY c1 LIMIT 10",
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
    assert all(c.outcome is Outcome.TRANSLATED for c in changes)


def test_a_bad_literal_leaves_out_its_own_statement_alone(model: Model) -> None:
    good = "SELECT COUNT(*) FROM visit WHERE cost > 1234"
    text, changes = published(model, good, "SELECT COUNT(*) FROM visit WHERE cost = 'notanumber'")
    assert text.count("cost") == 1
    assert [(c.statement, c.outcome) for c in changes] == [(1, Outcome.TRANSLATED), (2, Outcome.LEFT_OUT)]


def test_literals_come_back_by_chance_alone_where_values_are_many(model: Model) -> None:
    keys = [f"SELECT COUNT(*) FROM visit WHERE id = {key}" for key in range(1, 400)]
    wages = [f"SELECT COUNT(*) FROM person WHERE wage <= {wage}.5" for wage in range(100, 5000, 13)]
    mails = [f"SELECT COUNT(*) FROM person WHERE mail LIKE '{c}%'" for c in "abcdefghijklmnopqrstuvwxyz"]
    text, changes = published(model, *keys, *wages, *mails)
    assert {c.outcome for c in changes} == {Outcome.TRANSLATED}
    assert sum(c.before == c.after for c in changes) < 8
    assert text.count("LIKE") == 26


def test_nothing_left_is_an_error_with_reasons(model: Model) -> None:
    with pytest.raises(SpecError, match=r"no query is left to publish: 2 left out \(statement 1 selects from hidden"):
        translate(parse_workload("SELECT 1 FROM hidden; UPDATE person SET age = 3"), model)
