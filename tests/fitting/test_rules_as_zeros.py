"""Rules that compare two columns, from fit to rows: they hold in every row, and the columns keep their margins."""

from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from tests.seeded import SeededEntropy

import privbench
from privbench.fitting.draft import draft
from privbench.model.model import Model
from privbench.model.receipt_check import verify_model
from privbench.schema.spec import RuleSpec, Spec
from privbench.spn.clique import CliqueTree, Conditional
from privbench.spn.feature_names import owner_column
from privbench.spn.nodes import Product

PERSONS, VISITS = 6000, 3
FIFTHS = np.array([0.2, 0.4, 0.6, 0.8])
SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, joined DATE NOT NULL, sex INTEGER NOT NULL);
CREATE TABLE visit (person_id INTEGER NOT NULL REFERENCES person (id), day DATE NOT NULL, paid DATE,
  cost DECIMAL(8,2) NOT NULL, covered DECIMAL(8,2) NOT NULL);
"""
RULES = ("person.joined <= day", "paid IS NULL OR paid >= day", "covered <= cost")


def write(folder: Path) -> None:
    """Persons who join at any time, and their visits since then, some paid later, of which a part is covered."""
    rng = np.random.default_rng(1)
    joined = 15_000 + (3000 * np.sqrt(rng.random(PERSONS))).astype(np.int64)
    day = np.repeat(joined, VISITS)
    day += (rng.random(len(day)) * (18_400 - day)).astype(np.int64)
    paid = day + (rng.random(len(day)) * (19_000 - day)).astype(np.int64)
    cost = rng.integers(500, 10_000, len(day))
    cents = [
        pa.array([Decimal(int(c)) / 100 for c in of], pa.decimal128(8, 2)) for of in (cost, rng.random(len(day)) * cost)
    ]
    people = {"id": np.arange(PERSONS), "joined": joined.astype("datetime64[D]"), "sex": rng.integers(0, 2, PERSONS)}
    visits = {
        "person_id": np.repeat(np.arange(PERSONS), VISITS),
        "day": day.astype("datetime64[D]"),
        "paid": pa.array(paid.astype("datetime64[D]"), mask=rng.random(len(day)) < 0.2),
        "cost": cents[0],
        "covered": cents[1],
    }
    pq.write_table(pa.table(people), folder / "person.parquet")
    pq.write_table(pa.table(visits), folder / "visit.parquet")
    (folder / "schema.sql").write_text(SCHEMA)


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clinic")
    write(folder)
    return folder


def ruled(clinic: Path) -> Spec:
    spec = draft(clinic, unit="person", domains="data", find=False)
    visit = spec.tables["visit"]
    assert all(column.relative_to is None for column in visit.columns.values())  # else no rule would be needed
    visit = visit.model_copy(update={"rules": tuple(RuleSpec(check=rule) for rule in RULES)})
    return Spec.model_validate(spec.model_copy(update={"tables": {**spec.tables, "visit": visit}}).model_dump())


@cache
def fitted(clinic: Path, epsilon: str) -> Model:
    return privbench.fit(ruled(clinic), epsilon=epsilon, entropy=SeededEntropy(2))


NUMBERS = {"day": pa.int32(), "paid": pa.int32()}
EPSILONS = ["0.3", "2", "20"]
"""Nothing is learnt of pairs, some pairs are, all are."""


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_columns_keep_their_margins(epsilon: str, clinic: Path, tmp_path: Path) -> None:
    privbench.generate(fitted(clinic, epsilon), tmp_path / "bundle", seed=1)
    made = tmp_path / "bundle" / "data"
    broken = " OR ".join(f"NOT ({rule})" for rule in RULES)
    joined = f"FROM '{made}/visit.parquet' visit JOIN '{made}/person.parquet' person ON person.id = person_id"
    assert duckdb.sql(f"SELECT COUNT(*) FILTER ({broken}) {joined}").fetchall() == [(0,)]
    for column in ("day", "paid", "cost", "covered"):
        assert np.abs(shares(clinic, made, column) - FIFTHS).max() < 0.06, column  # without zeros .10 to .15


def shares(real: Path, made: Path, column: str) -> NDArray[np.float64]:
    """Which part of the values lies below the fifths of the real ones."""
    values, ours = (
        pq.read_table(folder / "visit.parquet")[column].drop_null().cast(NUMBERS.get(column, pa.float64()))
        for folder in (real, made)
    )
    cuts = np.quantile(values.to_numpy(), FIFTHS)
    return np.asarray([(ours.to_numpy() <= cut).mean() for cut in cuts])


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_what_follows_from_a_rule_costs_nothing(epsilon: str, clinic: Path) -> None:
    model = fitted(clinic, epsilon)
    assert verify_model(model).problems == ()
    nodes = model.receipt["ledger"]["nodes"]
    events = [node["query"] for node in nodes if node["kind"] == "event" and node["query"]["table"] == "visit"]
    measured = sum(len(event.get("axes", ())) == 2 for event in events)
    assert sum(len(column.parents) for column in tree_of(model).columns) > measured
    assert not (epsilon == EPSILONS[0] and any(event["kind"] == "choice of pair" for event in events))


def tree_of(model: Model) -> CliqueTree:
    network = model.tables["visit"].network
    assert isinstance(network, Product)
    return next(child for child in network.children if isinstance(child, CliqueTree))


def test_what_says_more_than_a_rule_was_paid_for(clinic: Path) -> None:
    """A factor that tells more of two columns than which codes go together needs a charge."""
    model, tree = fitted(clinic, EPSILONS[0]), tree_of(fitted(clinic, EPSILONS[0]))
    day = next(column for column in tree.columns if column.column == "day")
    base = day.parents.index(owner_column("joined"))
    for cell, times in (((0, -1), 1.5), ((-2, 0), None), ((2, -3), 0.9)):
        factors = [factor.copy() for factor in day.factors]
        factors[base][cell] = 0.5 if times is None else factors[base][cell] * times
        forged = with_column(model, replace(day, factors=tuple(factors)))
        assert any("charges are missing" in problem for problem in verify_model(forged).problems)


def with_column(model: Model, column: Conditional) -> Model:
    """The model with another column in the network of visits."""
    table, tree = model.tables["visit"], tree_of(model)
    columns = tuple(column if c.column == column.column else c for c in tree.columns)
    network = table.network
    assert isinstance(network, Product)
    children = tuple(replace(tree, columns=columns) if child is tree else child for child in network.children)
    return replace(model, tables={**model.tables, "visit": replace(table, network=Product(children=children))})


@pytest.mark.parametrize("bins", [None, [0, 7, 31, 60, 101]])
@pytest.mark.parametrize(
    ("rules", "apart"),
    [
        (("a <= b", "b <= a"), 0),
        (("b BETWEEN a AND a",), 0),
        (("a < b", "a <> b"), 1),
        (("a <= b", "a < b"), 1),
        (("a <= b", "b >= a", "a <= b"), 1),
    ],
)
def test_several_rules_over_the_same_columns(
    rules: tuple[str, ...], apart: int, bins: list[int] | None, tmp_path: Path
) -> None:
    """Two opposite rules mean that both columns are equal, also where their bins are not."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 90, 300)
    rows = pa.table({"id": np.arange(300), "a": a, "b": a + apart, "c": a + apart})
    plain = {"type": "INTEGER", "null": False, "domain": {"range": [0, 100]}}
    columns = {"id": {"type": "INTEGER", "null": False}, "a": plain, "b": plain, "c": plain}
    if bins is not None:
        columns["b"] = plain | {"domain": {"bins": bins}}
    table = {"key": ["id"], "rules": list(rules), "columns": columns}
    model = privbench.fit(Spec.model_validate({"unit": "t", "tables": {"t": table}}), source={"t": rows}, epsilon="20")
    assert verify_model(model).status == "verified"
    assert privbench.generate(model, tmp_path / "b", seed=1).rows == {"t": 300}
    broken = " OR ".join(f"NOT ({rule})" for rule in rules)
    assert duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/b/data/t.parquet' WHERE {broken}").fetchall() == [(0,)]
