"""Tables and columns may have any name: those of features, and names with the characters that divide names."""

from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pytest

from privbench.errors import SchemaError
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.io.names import quote_sql
from privbench.io.open import open_source
from privbench.model.file import load_model, save_model
from privbench.schema.tables import Column, ForeignKey, Table
from privbench.schema.types import parse_type
from privbench.schema.unit import key_name
from privbench.spn.feature_names import (
    ACTIVITY,
    COMPONENT,
    RANK,
    STRATUM,
    first_column,
    in_degree_column,
    key_column,
    null_column,
    owner_column,
    public_column,
    rows_column,
    shown,
)

from ..seeded import SeededEntropy

AWKWARD = ["", "a", "a.b", "b", 'a"', '"a"', "a,b", '"', ".", ",", "a x b", "#rank", "two\nlines", '".', '"."']
MAKERS = (rows_column, in_degree_column, null_column, key_column, owner_column, first_column, public_column)
PERSON, VISIT = 'per"son.of', "visit,\n2"
MADE = f"""
CREATE TABLE {quote_sql(PERSON)} (id INTEGER PRIMARY KEY, "#rank" INTEGER NOT NULL, "a x b" INTEGER,
  "city #named after" INTEGER NOT NULL, "#rows visit.person_id" INTEGER NOT NULL);
CREATE TABLE {quote_sql(VISIT)} (id INTEGER PRIMARY KEY, "per.son,id" INTEGER NOT NULL REFERENCES {quote_sql(PERSON)},
  "guest ""id" INTEGER REFERENCES {quote_sql(PERSON)}, "#owner #rank" INTEGER NOT NULL, "#size" INTEGER,
  "#part" INTEGER, "two
lines" INTEGER NOT NULL);
INSERT INTO {quote_sql(PERSON)} SELECT i, i % 3, i % 4, i % 2, i % 5 FROM range(300) AS r(i);
INSERT INTO {quote_sql(VISIT)}
  SELECT i, i % 150, CASE WHEN i % 3 > 0 THEN i % 40 END, i % 3, i % 2, i % 4, i % 7 FROM range(900) AS r(i);
"""


def test_keys_of_any_names_have_names_of_their_own() -> None:
    keys = [(table, columns) for table in AWKWARD for n in (1, 2) for columns in combinations(AWKWARD, n)]
    names = [key_name(t, ForeignKey(columns=c, table="x", references=c)) for t, c in keys]
    assert len(set(names)) == len(names)
    assert key_name("visit", ForeignKey(columns=("a", "b"), table="x", references=("a", "b"))) == "visit.a,b"


def test_features_have_names_that_no_column_has() -> None:
    inner = [*AWKWARD, ACTIVITY, RANK, *(make(name) for make in MAKERS for name in AWKWARD)]
    names = [ACTIVITY, RANK, STRATUM, COMPONENT, *(make(name) for make in MAKERS for name in inner)]
    assert len(set(names)) == len(names)
    assert all("\0" in name and "\0" not in shown(name) for name in names)


@pytest.mark.parametrize(("table", "column"), [("t", "a\0"), ("\0t", "a")])
def test_names_with_the_mark_of_features_are_refused(table: str, column: str) -> None:
    with pytest.raises(SchemaError):
        Table(name=table, columns=(Column(name=column, type=parse_type("INTEGER")),))


@pytest.mark.parametrize("method", ["tree", "independent", "paper"])
def test_awkward_names_from_fit_to_bundle(method: str, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "source.duckdb")) as base:
        base.execute(MADE)
    spec = draft(tmp_path / "source.duckdb", domains="data", find=False, unit=PERSON, owners={VISIT: ("per.son,id",)})
    save_model(fit(spec, epsilon=1000, method=method, entropy=SeededEntropy()), tmp_path / "model")
    model = load_model(tmp_path / "model")
    rows = generate(model, tmp_path / "out", seed=1, format="duckdb")
    assert rows[PERSON] == 300
    with open_source(tmp_path / "out") as source:
        made = {t.name: [row for b in source.read(t) for row in b.to_pylist()] for t in source.schema().tables}
    ids = {row["id"] for row in made[PERSON]}
    assert {row["per.son,id"] for row in made[VISIT]} <= ids
    assert {row['guest "id'] for row in made[VISIT]} <= ids | {None}
    for column, values in (("#rank", 3), ("city #named after", 2), ("#rows visit.person_id", 5)):
        counts = np.bincount([row[column] for row in made[PERSON]], minlength=values)
        assert np.abs(counts - 300 / values).max() < 15
