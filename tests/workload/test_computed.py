"""Queries on computed columns: translated like those on what they are derived from, and estimated."""

from pathlib import Path

import pytest

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.model.model import Model
from privbench.schema.computed import ComputedOrigin
from privbench.schema.expression import Expression
from privbench.workload.estimate import estimate_cardinality
from privbench.workload.sql import parse_workload
from privbench.workload.translate import Outcome, translate

from ..computed_shop import COMPUTED, write_source
from ..seeded import SeededEntropy


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    source: Path = write_source(tmp_path_factory.mktemp("derived") / "source")
    found = {place: Expression(sql=sql) for place, sql in COMPUTED.items()}
    spec = draft(source, unit="shop", domains="data").with_computed(found, ComputedOrigin.DECLARED)
    return fit(spec, epsilon="50", entropy=SeededEntropy())


@pytest.mark.parametrize(
    ("column", "literal", "operator"),
    [
        ("shop.sales", "3", "="),
        ("shop.sales", "3", "<="),
        ("line.region", "'north'", "="),
        ("sale.number", "2", ">="),
        ("line.lines", "2", "="),
        ("sale.region", "'secret'", "="),
    ],
)
def test_literals_are_drawn_from_what_is_copied_or_counted(
    model: Model, column: str, literal: str, operator: str
) -> None:
    table, name = column.split(".")
    workload = parse_workload(f"SELECT COUNT(*) FROM {table} WHERE {name} {operator} {literal}")
    made = translate(workload, model, seed=1)
    assert [change.outcome for change in made.changes] == [Outcome.TRANSLATED]
    assert "secret" not in made.workload.statements[0].sql
    query = made.workload.statements[0].query
    assert query is not None
    assert estimate_cardinality(model, query) > 0
