"""Cardinalities from a model: against enumeration of all rows of a tiny one, and against generated databases."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import pytest

from privbench.errors import SpecError
from privbench.generation.generate import generate
from privbench.model.model import Model
from privbench.spn.count_links import SlotLink
from privbench.spn.feature_names import COMPONENT
from privbench.spn.infer import probability
from privbench.workload.estimate import estimate_cardinality
from privbench.workload.generate import Style, generate_workload
from privbench.workload.sql import parse_workload

from .made import tiny_model

Row = dict[str, object]
TOWNS = [{"id": 7, "name": "x"}, {"id": 8, "name": "y"}]


def estimated(model: Model, sql: str) -> float:
    (statement,) = parse_workload(sql, schema=model.protection.schema).statements
    assert statement.query is not None, statement.reason
    return estimate_cardinality(model, statement.query)


def states(model: Model, table: str, column: str, values: list[object]) -> Iterator[tuple[Row, float]]:
    """Every state that one row of a tiny table can be in, key included, and how likely it is."""
    found = model.tables[table]
    sizes = found.network.sizes
    for part, code in product(range(sizes[COMPONENT]), range(sizes[column])):
        evidence = {COMPONENT: np.eye(sizes[COMPONENT])[part], column: np.eye(sizes[column])[code]}
        share = probability(found.network, evidence)
        for target, likely in targets(model, table, part):
            yield {column: values[code], "target": target}, share * likely


def targets(model: Model, table: str, part: int) -> list[tuple[int | None, float]]:
    ((name, link),) = model.tables[table].links.items()
    if not isinstance(link, SlotLink):
        visits = round(model.tables["visit"].rows)
        return [(None, link.null_share), *((v, (1 - link.null_share) / visits) for v in range(visits))]
    counts = link.counts
    if name == "person.town_id":
        return list(zip((None, 0, 1), counts[part] / counts[part].sum(), strict=True))
    null = counts[:, 0].sum() / counts.sum()
    named = counts[part, 1:] / counts[part, 1:].sum()
    return [(None, null), *((s, (1 - null) * share) for s, share in enumerate(named))]


def enumerated(model: Model, *, joined: set[str], keep: dict[str, object]) -> float:
    """The expected count of a join, one combination of rows after the other."""
    columns = {
        "person": ("age", [1, 2]),
        "visit": ("cost", ["0..3", "4..9", None]),
        "pet": ("kind", ["ca", "co", "d"]),
        "note": ("stars", [1, 2]),
    }
    rows: dict[str, list[tuple[int, Row, float]]] = {"town": [(i, t, 1.0) for i, t in enumerate(TOWNS)]}
    for table, (column, values) in columns.items():
        count = round(model.tables[table].rows)
        rows[table] = [(n, row, share) for n in range(count) for row, share in states(model, table, column, values)]
    above = {"person": "town", "visit": "person", "pet": "person", "note": "visit"}
    names = [t for t in ("town", "person", "visit", "pet", "note") if t in joined]
    kept = {t: [r for r in rows[t] if t not in keep or keep[t](r[1])] for t in names}  # type: ignore[operator]

    def extend(done: dict[str, int], left: list[str], weight: float) -> float:
        if not left:
            return weight
        table, found = left[0], 0.0
        for number, row, share in kept[table]:
            parent = above.get(table)
            if share and (parent not in done or row["target"] == done[parent]):
                found += extend({**done, table: number}, left[1:], weight * share)
        return found

    return extend({}, names, 1.0)


@pytest.mark.parametrize(
    ("sql", "joined", "keep"),
    [
        ("SELECT COUNT(*) FROM visit", {"visit"}, {}),
        ("SELECT COUNT(*) FROM visit WHERE cost >= 4", {"visit"}, {"visit": lambda r: r["cost"] == "4..9"}),
        ("SELECT COUNT(*) FROM pet WHERE kind LIKE 'c%'", {"pet"}, {"pet": lambda r: r["kind"] != "d"}),
        ("SELECT COUNT(*) FROM pet WHERE person_id IS NULL", {"pet"}, {"pet": lambda r: r["target"] is None}),
        ("SELECT COUNT(*) FROM pet WHERE person_id = 2", {"pet"}, {"pet": lambda r: r["target"] == 1}),
        ("SELECT COUNT(*) FROM person WHERE town_id = 8", {"person"}, {"person": lambda r: r["target"] == 1}),
        (
            "SELECT COUNT(*) FROM person, visit WHERE person.id = visit.person_id AND age = 2",
            {"person", "visit"},
            {"person": lambda r: r["age"] == 2},
        ),
        (
            "SELECT COUNT(*) FROM person p, visit v, pet WHERE p.id = v.person_id AND pet.person_id = p.id "
            "AND v.cost < 4 AND pet.kind = 'ca'",
            {"person", "visit", "pet"},
            {"visit": lambda r: r["cost"] == "0..3", "pet": lambda r: r["kind"] == "ca"},
        ),
        (
            "SELECT COUNT(*) FROM visit v, pet WHERE pet.person_id = v.person_id AND v.cost IS NULL",
            {"person", "visit", "pet"},
            {"visit": lambda r: r["cost"] is None},
        ),
        (
            "SELECT COUNT(*) FROM visit v JOIN note n ON n.visit_id = v.id WHERE n.stars = 2 AND v.cost >= 4",
            {"visit", "note"},
            {"note": lambda r: r["stars"] == 2, "visit": lambda r: r["cost"] == "4..9"},
        ),
        (
            "SELECT COUNT(*) FROM town, person, pet WHERE town.id = town_id AND pet.person_id = person.id "
            "AND name = 'y' AND kind = 'co' AND age = 1",
            {"town", "person", "pet"},
            {
                "town": lambda r: r["name"] == "y",
                "pet": lambda r: r["kind"] == "co",
                "person": lambda r: r["age"] == 1,
            },
        ),
        ("SELECT COUNT(*) FROM pet, note", {"pet", "note"}, {}),
    ],
)
def test_an_estimate_is_the_enumerated_expectation(sql: str, joined: set[str], keep: dict[str, object]) -> None:
    model = tiny_model()
    expected = enumerated(model, joined=joined, keep=keep)
    assert expected > 0
    assert estimated(model, sql) == pytest.approx(expected, rel=1e-9)


def test_all_five_tables_at_once() -> None:
    """Too many combinations to enumerate, but notes are spread evenly over visits."""
    model = tiny_model()
    few = "person p, visit v, pet, town t WHERE t.id = p.town_id AND v.person_id = p.id AND pet.person_id = p.id"
    without = estimated(model, f"SELECT COUNT(*) FROM {few}")
    whole = estimated(model, f"SELECT COUNT(*) FROM note n, {few} AND n.visit_id = v.id")
    assert whole == pytest.approx(without * 5 * 0.8 / 4)


def test_several_filters_on_one_column_are_intersected() -> None:
    model = tiny_model()
    both = estimated(model, "SELECT COUNT(*) FROM visit WHERE cost > 4 AND cost < 6")
    assert both == pytest.approx(estimated(model, "SELECT COUNT(*) FROM visit WHERE cost = 5"))
    assert estimated(model, "SELECT COUNT(*) FROM visit WHERE cost = 5 AND cost = 6") == 0


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT COUNT(*) FROM visit a, visit b WHERE a.id = b.id", "visit: the query joins it twice"),
        ("SELECT COUNT(*) FROM person, visit WHERE person.id = visit.cost", "not along a foreign key"),
        ("SELECT COUNT(*) FROM person, pet WHERE person.age = pet.kind", "not along a foreign key"),
        ("SELECT COUNT(*) FROM nobody", "nobody: is not in the model"),
        ("SELECT COUNT(*) FROM visit WHERE nothing = 1", r"visit\.nothing: is not in the model"),
        ("SELECT COUNT(*) FROM visit WHERE cost = 'dear'", "does not fit INTEGER"),
    ],
)
def test_what_a_model_cannot_tell_has_a_reason(sql: str, reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        estimated(tiny_model(), sql)


def counts(bundle: Path, queries: list[str]) -> list[int]:
    with duckdb.connect() as con:
        for file in (bundle / "data").glob("*.parquet"):
            con.execute(f"CREATE VIEW \"{file.stem}\" AS FROM '{file}'")
        return [con.execute(sql).fetchone()[0] for sql in queries]  # type: ignore[index]


@pytest.mark.slow
def test_estimates_agree_with_generated_databases(model: Model, bundle: Path, tmp_path: Path) -> None:
    """A query's count varies between databases by about its own size over the root of its rows; the mean less so.

    The count of a large join hangs on a few busy persons: the spread of a dozen such counts is often too small, so a
    single one may be far from its expectation. Joins are judged by their median, which an error of one fifth moves
    out of bounds; counts in one table are close one by one, and an error of 3 % shows.
    """
    statements = generate_workload(bundle, n=60, seed=1, style=Style.MSCN).statements
    free = [s for s in statements if s.query is not None and "mail" not in s.sql]
    found = [counts(bundle, [s.sql for s in free])]
    for seed in range(1, 12):
        generate(model, tmp_path / str(seed), seed=seed)
        found.append(counts(tmp_path / str(seed), [s.sql for s in free]))
    means, spreads = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
    guesses = np.array([estimate_cardinality(model, s.query) for s in free if s.query is not None])
    errors = np.abs(guesses - means) / (np.maximum(spreads, 0.5) / np.sqrt(len(found)) + 0.01 * means)
    assert np.mean(errors < 3) > 0.9
    tables = np.array([len(s.query.tables) for s in free if s.query is not None])
    assert (tables == 1).sum() > 5
    assert errors[tables == 1].max() < 2.5
    joins = (tables > 2) & (means > 20)
    assert joins.sum() > 8
    assert np.median(guesses[joins] / means[joins]) == pytest.approx(1, abs=0.1)
