"""Estimates where links stand in networks: against generated databases, and against exact inference."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privbench.encode.predicate import Between, In, IsNull, Predicate
from privbench.errors import SpecError
from privbench.estimation.estimate import cardinality, selectivity
from privbench.estimation.sample import sampled
from privbench.methods.method import TableModel
from privbench.spn.block_link import BlockLink
from privbench.spn.fanout_link import FanoutLink
from privbench.spn.fanouts import bin_means
from privbench.spn.feature_names import key_column, owner_column, rows_column
from privbench.spn.infer import marginal

from ..generation.test_tree_keys import table
from ..generation.test_tree_rows import number, opened
from ..tree_models import INTEGER, SPEC, TOWNS, VISITS, made, network, tables

JOINS = {
    "vp": (("v", "person_id"), ("p", "id")),
    "vg": (("v", "guest_id"), ("p", "id")),
    "nv": (("n", "visit_id"), ("v", "id")),
    "pt": (("p", "town_id"), ("t", "id")),
    "sp": (("s", "person_id"), ("p", "id")),
    "gs": (("g", "person_id"), ("s", "person_id")),
    "gy": (("g", "year"), ("s", "year")),
    "xp": (("x", "person_id"), ("p", "id")),
}
NAMES = {"p": "person", "v": "visit", "n": "note", "t": "town", "s": "season", "g": "game", "x": "passport"}
OLD: dict[tuple[str, str], Predicate] = {("p", "age"): Between(low=4)}
QUERIES: list[tuple[str, list[str], dict[tuple[str, str], Predicate], str]] = [
    ("v", [], {("v", "cost"): Between(low=2)}, "v.cost >= 2"),
    ("v", [], {("v", "cost"): IsNull()}, "v.cost IS NULL"),
    ("vp", ["vp"], OLD, "p.age >= 4"),
    ("vp", ["vg"], OLD, "p.age >= 4"),
    ("nvp", ["nv", "vp"], OLD | {("n", "stars"): In(values=(1,))}, "p.age >= 4 AND n.stars = 1"),
    ("nv", ["nv"], {("v", "cost"): Between(high=3)}, "v.cost <= 3"),
    ("vps", ["vp", "sp"], OLD, "p.age >= 4"),
    ("pt", ["pt"], {("t", "id"): In(values=(12,))}, "t.id = 12"),
    ("vpt", ["vp", "pt"], {("t", "id"): Between(high=11)}, "t.id <= 11"),
    ("gs", ["gs", "gy"], {("g", "won"): In(values=(True,))}, "g.won"),
    ("gsp", ["gs", "gy", "sp"], OLD, "p.age >= 4"),
    ("px", ["xp"], OLD, "p.age >= 4"),
    ("n", [], {("n", "visit_id"): IsNull()}, "n.visit_id IS NULL"),
    ("v", [], {("v", "person_id"): Between(high=250)}, "v.person_id <= 250"),
    ("p", [], {("p", "id"): Between(low=101, high=200)}, "p.id BETWEEN 101 AND 200"),
    ("p", [], {("p", "town_id"): In(values=(10,))}, "p.town_id = 10"),
    ("vt", [], {}, "TRUE"),
]


def estimate(model: object, aliases: str, joins: list[str], filters: dict[tuple[str, str], Predicate]) -> float:
    return cardinality(
        model,  # type: ignore[arg-type]
        tables={a: NAMES[a] for a in aliases},
        joins=[JOINS[j] for j in joins],
        filters=list(filters.items()),
    )


@pytest.mark.slow
def test_estimates_are_the_counts_of_generated_databases(tmp_path: Path) -> None:
    """Means over a few databases; each query within its own spread over them."""
    model = made(models=tables(1000))
    bases = [opened(model, tmp_path / f"{seed}", seed=seed) for seed in range(8)]
    for aliases, joins, filters, condition in QUERIES:
        on = [f"{a[0]}.{a[1]} = {b[0]}.{b[1]}" for a, b in (JOINS[j] for j in joins)]
        tables_ = ", ".join(f"{NAMES[a]} {a}" for a in aliases)
        query = f"SELECT count(*) FROM {tables_} WHERE {' AND '.join([*on, condition])}"
        counts = np.array([number(base, query) for base in bases])
        spread = 4 * counts.std() / np.sqrt(len(counts)) + 0.04 * counts.mean()
        assert estimate(model, aliases, joins, filters) == pytest.approx(counts.mean(), abs=spread), query


def test_entities_are_answered_by_inference_alone() -> None:
    model = made(models=tables(1000))
    share = selectivity(model, "person", {"age": Between(low=4)})
    assert estimate(model, "p", [], OLD) == pytest.approx(1000 * share, rel=1e-12)


def test_the_rows_of_a_table_are_those_of_its_fanouts() -> None:
    model = made(models=tables(1000))
    mean = marginal(model.tables["person"].network, rows_column("visit.person_id")) @ bin_means(VISITS, 1.5)
    assert estimate(model, "v", [], {}) == pytest.approx(1000 * mean, rel=0.01)


def test_a_sample_is_of_the_same_size_for_any_model() -> None:
    """And small entities are not lost: joins through a public table grow with both of its sides."""
    for persons in (100, 1e7):
        model = made(models=tables(persons))
        assert sum(t.rows for t in sampled(model).tables.values()) == pytest.approx(300_000, rel=0.05)
        assert sampled(model).tables["person"].rows == pytest.approx(18_000, rel=0.05)
        pairs = cardinality(
            model, tables={"p": "person", "v": "visit"}, joins=[], filters=[(("p", "age"), Between(low=4))]
        )
        visits = estimate(model, "v", [], {})
        assert pairs == pytest.approx(estimate(model, "p", [], OLD) * visits, rel=1e-9)


def test_the_same_estimate_every_time() -> None:
    model = made(models=tables(1000))
    again = replace(model)
    first, second = (estimate(m, "nvp", ["nv", "vp"], OLD) for m in (model, again))
    assert first == second


def test_one_column_of_a_composite_key_is_refused() -> None:
    with pytest.raises(SpecError, match=r"game\.year"):
        estimate(made(), "g", [], {("g", "year"): In(values=(1991,))})


def test_private_tables_that_meet_in_a_public_one(tmp_path: Path) -> None:
    """Both sides grow with the sample, so that their product must be scaled down twice."""
    foreign = [("person_id", "person"), ("town_id", "town")]
    spec = {
        "unit": "person",
        "tables": {
            "town": SPEC["tables"]["town"],
            "person": table(["id"], [("town_id", "town")], id=INTEGER, town_id=INTEGER),
            "visit": table(["id"], foreign, id=INTEGER, person_id=INTEGER, town_id=INTEGER) | {"owner": ["person_id"]},
        },
    }
    fanouts = FanoutLink(column=rows_column("visit.person_id"), edges=VISITS, exponent=1.0, unowned=0.0)
    towns = {
        name: BlockLink(column=key_column(f"{name}.town_id"), blocks=3, slots=TOWNS) for name in ("person", "visit")
    }
    people = network([(key_column("person.town_id"), 4, None), (fanouts.column, len(VISITS) - 1, None)], seed=5)
    visits = network(
        [(key_column("visit.town_id"), 4, owner_column(key_column("person.town_id")))],
        given={owner_column(key_column("person.town_id")): 5},
    )
    models = {
        "person": TableModel(network=people, rows=400, links={"person.town_id": towns["person"]}),
        "visit": TableModel(
            network=visits, rows=1500, links={"visit.person_id": fanouts, "visit.town_id": towns["visit"]}
        ),
    }
    model = made(spec, models)
    bases = [opened(model, tmp_path / f"{seed}", seed=seed) for seed in range(6)]
    for on in (
        "p.town_id = t.id AND v.town_id = t.id",
        "p.town_id = v.town_id",
        "p.town_id = t.id AND v.person_id = p.id",
    ):
        pairs = [tuple(tuple(side.split(".")) for side in test.split(" = ")) for test in on.split(" AND ")]
        aliases = {a: NAMES[a] for pair in pairs for a, _ in pair}
        counts = [
            number(b, f"SELECT count(*) FROM {', '.join(f'{n} {a}' for a, n in aliases.items())} WHERE {on}")
            for b in bases
        ]
        found = cardinality(model, tables=aliases, joins=pairs)  # type: ignore[arg-type]
        assert found == pytest.approx(np.mean(counts), rel=0.05), on
