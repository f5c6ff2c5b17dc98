"""Translation: literals are drawn from the model, with like selectivity; only declared public ones may stay."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from sqlglot import exp, parse_one

from privbench.errors import SpecError
from privbench.model.model import Model
from privbench.schema.domain import Origin, Scalar
from privbench.workload.estimate import estimate_cardinality
from privbench.workload.generate import Style, generate_workload
from privbench.workload.literal import Usage, scalar_of_literal
from privbench.workload.model_columns import ModelColumns
from privbench.workload.model_values import Drawn, ModelColumn
from privbench.workload.query import Literals, Workload
from privbench.workload.sql import parse_workload, workload_text
from privbench.workload.translate import Change, Outcome, Structure, translate


def translated(
    model: Model, *statements: str, seed: int | None = 1, public: bool = False
) -> tuple[list[str], tuple[Change, ...]]:
    workload = parse_workload(";\n".join(statements))
    made = translate(workload, model, seed=seed, literals_are_public=public)
    assert made.workload.literals is Literals.TRANSLATED
    return [s.sql for s in made.workload.statements], made.changes


def literals(sql: str) -> list[object]:
    return [scalar_of_literal(n) for n in parse_one(sql, dialect="duckdb").find_all(exp.Literal, exp.Boolean)]


def cardinalities(model: Model, *statements: str) -> list[float]:
    parsed = parse_workload(";".join(statements), schema=model.protection.schema).statements
    return [estimate_cardinality(model, s.query) for s in parsed if s.query is not None]


@pytest.fixture(scope="module")
def declared(model: Model) -> Model:
    """The same model with domains that the publisher declared, but for the kind of visits, which is from the data."""
    domains = {
        (table, column): (said.domain, Origin.DECLARED)
        for table, content in model.spec.tables.items()
        for column, said in content.columns.items()
        if said.domain is not None and (table, column) != ("visit", "kind")
    }
    return replace(model, spec=model.spec.with_domains(domains))


def test_queries_from_real_rows_are_refused_with_the_way_out(model: Model, source: Path) -> None:
    real = generate_workload(source, n=5, seed=3, style=Style.MSCN)
    edited = parse_workload(workload_text(real) + "SELECT COUNT(*) FROM person;\n")
    for workload in (real, edited):
        with pytest.raises(SpecError, match="`privbench workload generate MODEL`"):
            translate(workload, model)


def test_no_rare_literal_stays_but_by_chance(model: Model, source: Path) -> None:
    """As if somebody had written queries by hand while looking at rows."""
    real = generate_workload(source, n=150, seed=3, style=Style.MSCN)
    made = translate(replace(real, literals=None), model, seed=1)
    rare = [c for c in made.changes if c.column in ("person.wage", "person.born", "person.mail")]
    assert len(rare) > 50
    assert not any(c.before == c.after for c in rare)
    assert len(made.workload.statements) == 150
    assert made.counts["kept"] == 0


def test_which_literals_stand_together_is_not_told(model: Model) -> None:
    """A row with two values that no other has together is not told from others."""
    ages = [20 + at % 12 for at in range(120)]
    together = [f"age = {age} AND id = {1000 + age}" for age in ages]
    by_statement, _ = translated(model, *(f"SELECT COUNT(*) FROM person WHERE {test}" for test in together))
    by_branch, _ = translated(model, f"SELECT COUNT(*) FROM person WHERE {' OR '.join(f'({t})' for t in together)}")
    for found in ([literals(sql) for sql in by_statement], [*batched(literals(by_branch[0]))]):
        assert len(found) == 120
        partners = {first: {b for a, b in found if a == first} for first, _ in found}
        assert max(map(len, partners.values())) > 4
        assert len({tuple(pair) for pair in found}) > 60  # one renaming of each column gives 12


def batched(values: list[object]) -> Iterator[tuple[object, object]]:
    """Pairs of neighbours."""
    return zip(values[::2], values[1::2], strict=True)


@pytest.mark.parametrize("usage", [Usage.EQUAL, Usage.AT_MOST, Usage.ABOVE])
@pytest.mark.parametrize("column", ["age", "born"])
def test_many_draws_for_a_literal_tell_its_class_alone(model: Model, column: str, usage: Usage) -> None:
    """The literal itself is neither missing nor in the middle of what is drawn: others of its class draw the same."""
    of_model = ModelColumns(model).column("person", column)
    if column == "born":  # in cells of many values, of which only the class of the cell may be told
        cells = [of_model.at(cell, 0.3) for cell in range(len(of_model.shares))]
    else:
        cells = [of_model.at(cell, 0.0) for cell in range(5, 60, 3)]
    classes = {tuple(_drawn_from(of_model, literal, usage)) for literal in cells}
    assert 1 <= len(classes) < len(cells) / 2
    if column == "age":
        assert all(a == b or not {*a} & {*b} for a in classes for b in classes)
        assert all(any(literal in values for values in classes) for literal in cells)


def _drawn_from(column: ModelColumn, literal: Scalar, usage: Usage) -> list[Scalar]:
    """All that is drawn for a literal in many statements; of a column of many values, for the same coins."""
    drawn, found = Drawn(column=column, rng=Random(3)), []
    for scope in range(200 if column.values_in.max() == 1 else 20):
        drawn.scope = scope
        found.append(drawn.equal(literal) if usage is Usage.EQUAL else drawn.bound(literal, usage))
    return sorted(set(found)) if column.values_in.max() == 1 else found  # type: ignore[type-var]


def test_even_public_values_do_not_stay_together(model: Model, declared: Model) -> None:
    sql = [f"SELECT COUNT(*) FROM person WHERE age = {age} AND job = 'cook'" for age in range(20, 80)]
    for one in (model, declared):
        made, changes = translated(one, *sql)
        assert {c.outcome for c in changes} == {Outcome.TRANSLATED}
        assert sum(a == b for a, b in zip(sql, made, strict=True)) < 6


def test_only_declared_values_stay_and_only_if_they_are_said_to_be_public(model: Model, declared: Model) -> None:
    sql = (
        "SELECT COUNT(*) FROM person p, town WHERE p.town_id = town.id AND town.name = 'Ab' AND p.age = 33 "
        "AND p.job = 'cook' AND p.wage > 1234.56 AND p.job LIKE '%ook'",
        "SELECT COUNT(*) FROM visit WHERE kind = 'a' AND person_id = 1007",
        "SELECT COUNT(*) FROM person WHERE mail = 'secret.person.3@example.org' AND job = 'unheard of' AND age = 999",
    )
    kept = {(c.column, c.before) for c in translated(declared, *sql, public=True)[1] if c.outcome is Outcome.KEPT}
    of_town = {("town.name", "'Ab'")}
    assert kept == of_town | {
        ("person.age", "33"),
        ("person.job", "'cook'"),
        ("person.wage", "1234.56"),
        ("person.job", "'%ook'"),
    }
    assert {c.outcome for c in translated(declared, *sql)[1]} == {Outcome.TRANSLATED}
    from_data = translated(model, *sql, public=True)[1]
    assert {(c.column, c.before) for c in from_data if c.outcome is Outcome.KEPT} == of_town


def test_real_literals_are_never_public(declared: Model) -> None:
    real = parse_workload("-- privbench: literals=real\nSELECT COUNT(*) FROM person WHERE age = 33")
    with pytest.raises(SpecError, match="literals=real"):
        translate(real, declared, literals_are_public=True)


def test_what_a_model_drew_stays_unless_the_file_was_changed(model: Model, bundle: Path) -> None:
    text = workload_text(generate_workload(bundle, n=40, seed=3, style=Style.SAM))
    kept = translate(parse_workload(text), model, seed=1)
    assert kept.counts["kept"] > 40
    assert {c.column for c in kept.changes if c.outcome is Outcome.TRANSLATED} <= {"person.mail"}
    changed = translate(parse_workload(text + "SELECT COUNT(*) FROM visit WHERE cost = 1234;\n"), model, seed=1)
    assert changed.counts["kept"] == 0


@pytest.mark.parametrize("operator", ["<=", "<", ">", ">="])
@pytest.mark.parametrize("column", ["wage", "born", "age"])
def test_comparisons_keep_their_selectivity(model: Model, column: str, operator: str) -> None:
    values = {
        "wage": [str(w) for w in np.geomspace(200.37, 9000.37, 25).round(2)],
        "born": [f"'19{y}-03-1{y % 10}'" for y in range(54, 98, 2)],
        "age": [str(a) for a in range(22, 88, 3)],
    }[column]
    sql = [f"SELECT COUNT(*) FROM person WHERE {column} {operator} {v}" for v in values]
    made, _ = translated(model, *sql)
    ratios = np.array(cardinalities(model, *made)) / np.array(cardinalities(model, *sql))
    assert np.mean(np.maximum(ratios, 1 / ratios) < 1.7) > 0.8
    assert np.maximum(ratios, 1 / ratios).max() < 4
    assert sum(literals(a) == literals(b) for a, b in zip(sql, made, strict=True)) < 0.2 * len(sql)


@pytest.mark.parametrize("form", ["wage BETWEEN {} AND {}", "wage > {} AND age > 1 AND ({} >= wage)"])
def test_ranges_keep_their_width_and_not_their_place(model: Model, form: str) -> None:
    ends = np.quantile(np.exp(np.random.default_rng(1).normal(7, 1, 4000)), np.linspace(0.05, 0.95, 10)).round(2)
    tests = [form.format(a, b) for a, b in pairwise(ends)]
    sql = [f"SELECT COUNT(*) FROM person WHERE {test}" for test in tests]
    made, _ = translated(model, *sql)
    ratios = np.array(cardinalities(model, *made)) / np.array(cardinalities(model, *sql))
    assert np.median(np.maximum(ratios, 1 / ratios)) < 1.7
    lows = [literals(s)[0] for s in made]
    assert lows != sorted(lows)  # type: ignore[type-var]
    for statement in made:
        low, *_, high = (v for v in literals(statement) if v != 1)
        assert low <= high  # type: ignore[operator]


def test_equality_keeps_its_frequency(model: Model) -> None:
    """Visits by kind are about one to one; costs are rare: neither becomes the other."""
    sql = [f"SELECT COUNT(*) FROM visit WHERE cost = {cost}" for cost in range(100, 4900, 97)]
    made, _ = translated(model, *sql)
    ratios = np.array(cardinalities(model, *made)) / np.array(cardinalities(model, *sql))
    assert np.mean(np.maximum(ratios, 1 / ratios) < 1.7) > 0.8
    assert len(set(made)) > 0.9 * len(sql)


def test_of_a_literal_only_the_cell_counts(model: Model) -> None:
    codec = model.codecs["visit"]["cost"]
    wide = int(np.argmax(codec.last - codec.first))  # type: ignore[attr-defined]
    first, last = int(codec.first[wide]), int(codec.last[wide])  # type: ignore[attr-defined]
    assert last - first > 8
    for test in ("cost = {}", "cost <= {}", "cost BETWEEN {} AND 4900", "cost IN ({})"):
        near, far = (
            translated(model, f"SELECT COUNT(*) FROM visit WHERE {test.format(v)}")[0] for v in (first + 1, last)
        )
        assert near == far


def test_the_same_literal_becomes_the_same_value_where_and_joins_it(model: Model) -> None:
    sql = (
        "SELECT COUNT(*) FROM visit, person WHERE person_id = person.id AND person_id IN (1000, 1014, 1021) "
        "AND person.id = 1014"
    )
    _, changes = translated(model, sql)
    keys = [(c.before, int(str(c.after))) for c in changes]
    assert len(keys) == 4
    assert len(set(keys)) == len(dict(keys)) == 3  # a key and its primary key go together
    assert all(1 <= after <= 400 for _, after in keys)
    for seed in (range(9), [None] * 9):
        one = "SELECT COUNT(*) FROM person WHERE id = 1014"
        assert len({translated(model, one, seed=s)[0][0] for s in seed}) > 3


def test_a_value_of_a_short_list_may_come_back_by_chance(model: Model) -> None:
    """If it never did, what was published would tell what it was not."""
    sql = "SELECT COUNT(*) FROM visit WHERE kind = 'a'"
    drawn = [literals(translated(model, sql, seed=seed)[0][0])[0] for seed in range(40)]
    assert set(drawn) == {"a", "b"}


@pytest.mark.parametrize(("pattern", "wanted"), [("co%", "_%"), ("%se", "%_"), ("%ler%", "%_%")])
def test_patterns_ask_for_a_piece_of_another_value(model: Model, pattern: str, wanted: str) -> None:
    found = set()
    for seed in range(5):
        made, (change,) = translated(model, f"SELECT COUNT(*) FROM person WHERE job LIKE '{pattern}'", seed=seed)
        (new,) = literals(made[0])
        found.add(new)
        assert change.outcome is Outcome.TRANSLATED
        assert str(new).startswith("%") == wanted.startswith("%")
        assert str(new).endswith("%") == wanted.endswith("%")
        assert any(str(new).strip("%") in job for job in ("clerk", "cook", "nurse", "pilot"))
    assert len(found - {pattern}) > 1


OUTSIDE = """SELECT job, SUM(wage * (1 - 0)) AS total FROM (SELECT job, wage, age AS years FROM person
  WHERE mail <> 'secret.person.9@example.org') AS s WHERE s.years > 30 AND EXISTS (SELECT 1 FROM visit v
  WHERE v.cost > 1234 AND v.kind = 'a') GROUP BY job ORDER BY total LIMIT 13"""


def test_queries_outside_the_class_are_translated_where_columns_resolve(model: Model) -> None:
    made, changes = translated(model, OUTSIDE)
    assert {c.column for c in changes} == {None, "person.mail", "person.age", "visit.cost", "visit.kind"}
    assert "secret" not in made[0]
    assert made[0].endswith("LIMIT 10")
    (statement,) = parse_workload(made[0]).statements
    assert statement.reason == "has a LIMIT"


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT job FROM person GROUP BY job HAVING SUM(wage) > 31337", "not compared with a column"),
        ("SELECT COUNT(*) FROM person WHERE lower(mail) = 'secret'", "not compared with a column"),
        ("SELECT COUNT(*) FROM person WHERE mail LIKE 's_cret%'", "neither the start, the end nor an inner piece"),
        ("SELECT s.n FROM (SELECT COUNT(*) AS n FROM pet) AS s WHERE s.n = 31337", "which the query computes"),
        ("SELECT COUNT(*) FROM hidden WHERE a = 1", "selects from hidden"),
        ('SELECT COUNT(*) FROM person WHERE mail = "secret"', "names a column"),
        ("SELECT COUNT(*) FROM person WHERE age = 'old'", "does not fit"),
        ("SELECT COUNT(*) FROM person WHERE age LIKE 'old%'", "with text"),
        ("SELECT * FROM person WHERE born > CURRENT_DATE - INTERVAL '31337 days'", "not compared with a column"),
        ("UPDATE person SET age = 3", "is not a query"),
    ],
)
def test_what_cannot_be_traced_is_left_out(model: Model, sql: str, reason: str) -> None:
    made, changes = translated(model, sql, "SELECT COUNT(*) FROM pet")
    assert made == ["SELECT COUNT(*) FROM pet"]
    (change,) = changes
    assert (change.statement, change.outcome) == (1, Outcome.LEFT_OUT)
    assert reason in str(change.reason)


def test_equal_structure_is_told(model: Model) -> None:
    by_age = [f"SELECT COUNT(*) FROM person WHERE age = {age}" for age in (30, 40)]
    joined = "SELECT COUNT(*) FROM person p, visit v WHERE p.id = v.person_id AND v.cost > 9 AND p.job IS NOT NULL"
    made = translate(parse_workload(";".join([by_age[0], joined, by_age[1]])), model, seed=1)
    assert made.structure == Structure(forms=((1, 3), (2,)), conditions=4, joins=1)


def test_the_file_reads_back_and_says_what_was_done(declared: Model) -> None:
    workload: Workload = parse_workload(
        "SELECT 1 FROM secret; 9||SELECT COUNT(*) FROM person WHERE wage > 1234.56 AND age = 33 AND mail = 'x'"
    )
    made = translate(workload, declared, seed=1, literals_are_public=True)
    assert made.counts == {"kept": 2, "translated": 1, "left out": 1}
    assert made.numbers == (2,)
    text = workload_text(made.workload)
    again = parse_workload(text)
    assert again == made.workload
    assert again.statements[0].cardinality is None
    header = [line for line in text.splitlines() if line.startswith("--")]
    assert "1 statements of 1 forms, 3 conditions, 0 joins" in header[3]
    assert "1 translated" in header[1]
    assert "2 kept" in header[1]
    assert "left out: 1 (numbers 1 of the original" in header[2]
    assert "no epsilon covers them" in header[3]
    assert "secret" not in text
    assert "may be published" not in text
