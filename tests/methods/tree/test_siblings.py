"""Method `tree` with `siblings`: what rows of one owner share is learnt and drawn, and nothing changes without it."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privbench.encode.coded import CodedTable
from privbench.methods.method import TableModel
from privbench.methods.tree.settings import TreeSettings, tree_settings
from privbench.privacy.vault import Vault
from privbench.schema.unit import Neighbours
from privbench.spn.clique import CliqueTree
from privbench.spn.fanouts import rank_codes
from privbench.spn.feature_names import FIRST, RANK, first_column
from privbench.spn.nodes import given_columns, walk
from privbench.spn.sample import first_rows, sample_siblings

from ..made import database
from .runs import DELTA, released, run, vault_of
from .schemas import SCHEMAS, Schema

ON = TreeSettings(siblings=True)
HOMES, EACH, TRAITS = 3000, 4, 5


def queries(vault: Vault) -> list[dict[str, Any]]:
    return [node["query"] for node in vault.ledger.to_json()["nodes"] if node["kind"] == "event"]


def alike() -> tuple[Schema, dict[str, CodedTable]]:
    """Homes of four persons each, all with the same trait, which nothing else says."""
    schema = Schema(
        columns={"home": {"kind": 4}, "person": {"age": 20, "trait": TRAITS}},
        keys=SCHEMAS["two levels"]().keys,
        rows={"home": HOMES, "person": HOMES * EACH},
    )
    data = schema.data()
    rng = np.random.default_rng(4)
    homes = np.repeat(np.arange(HOMES), EACH)
    traits = rng.integers(0, TRAITS, HOMES)[homes]
    data["person"] = CodedTable(
        codes={"age": rng.integers(0, 20, len(homes)).astype(np.uint16), "trait": traits.astype(np.uint16)},
        keys={"person.home": homes},
        entities=homes,
    )
    return schema, data


def drawn_alike(model: TableModel) -> float:
    """The share of later rows that have the trait of their first row, in homes drawn anew."""
    owners, rows = np.repeat(np.arange(1000), EACH), 1000 * EACH
    given = {column.column: np.zeros(rows, np.uint16) for column in given_columns(model.network)}
    given[RANK] = rank_codes(np.full(1000, EACH))
    firsts = first_rows(owners)
    codes = sample_siblings(model.network, rows, np.random.default_rng(0), given=given, firsts=firsts)["trait"]
    later = firsts >= 0
    return float((codes[later] == codes[firsts[later]]).mean())


@pytest.mark.parametrize("siblings", [True, False])
@pytest.mark.parametrize("delta", [Fraction(0), DELTA], ids=["pure", "delta"])
def test_siblings_are_alike_only_with_the_setting(siblings: bool, delta: Fraction) -> None:
    schema, data = alike()
    public = schema.facts(Neighbours.REPLACE)
    vault = vault_of(data, public=public, epsilon=Fraction(20), delta=delta)
    models = run(vault, TreeSettings(siblings=siblings), public=public)
    share = drawn_alike(models["person"])
    assert share > 0.95 if siblings else share < 0.35
    marginals = np.bincount(data["person"].codes["trait"], minlength=TRAITS) / (HOMES * EACH)
    tree = next((node for node in walk(models["person"].network) if isinstance(node, CliqueTree)), None)
    if siblings:
        assert tree is not None
        counts = next(c.counts for c in tree.columns if c.column == "trait")
        assert counts / counts.sum() == pytest.approx(marginals, abs=0.02)
        assert [g.column for g in tree.given if g.column.startswith(FIRST)] == [first_column("trait")]


@pytest.mark.mostly_slow
@pytest.mark.parametrize("delta", [Fraction(0), DELTA], ids=["pure", "delta"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_is_learnt_and_replayed(name: str, delta: Fraction) -> None:
    schema = SCHEMAS[name]()
    for neighbours in Neighbours:
        public = schema.facts(neighbours)
        vault = vault_of(schema.data(), public=public, delta=delta)
        models = run(vault, ON, public=public)
        assert vault.ledger.total <= vault.ledger.budget
        again = vault_of(None, public=public, delta=delta, tape=vault.answers)
        assert released(run(again, ON, public=public)) == released(models)


def test_a_first_row_is_a_parent_of_its_own_column_alone() -> None:
    vault = vault_of(database(6), epsilon=Fraction(4000))
    models = run(vault, ON)
    trees = [node for model in models.values() for node in walk(model.network) if isinstance(node, CliqueTree)]
    pairs = [(p, c.column) for tree in trees for c in tree.columns for p in c.parents if p.startswith(FIRST)]
    assert pairs
    assert all(parent == first_column(column) for parent, column in pairs)
    asked = [[axis["feature"] for axis in query.get("axes", ())] for query in queries(vault)]
    for _, column in pairs:
        own = {"kind": "column", "column": column}
        assert [{"kind": "first", "feature": own}, own] in asked


@pytest.mark.parametrize("name", ["one table", "at most one row each", "public tables"])
def test_tables_without_siblings_are_learnt_as_before(name: str) -> None:
    schema = SCHEMAS[name]()
    public = schema.facts(Neighbours.REPLACE)
    before, after = (vault_of(schema.data(), public=public) for _ in range(2))
    assert released(run(before, public=public)) == released(run(after, ON, public=public))
    assert before.ledger.to_json() == after.ledger.to_json()


def test_nothing_is_asked_of_first_rows_by_default() -> None:
    vault = vault_of(database(5))
    run(vault)
    assert not any("'first'" in str(query) for query in queries(vault))
    asked = vault_of(database(5))
    run(asked, ON)
    assert any("'first'" in str(query) for query in queries(asked))


def test_owners_who_all_have_one_row() -> None:
    """The key may repeat and never does: there is nothing to learn, and nothing to fail at."""
    schema = SCHEMAS["two levels"]()
    schema = replace(schema, rows={"home": 2000, "person": 2000})
    data = schema.data()
    data["person"].keys["person.home"][:] = np.arange(2000)
    data["person"].entities[:] = np.arange(2000)
    public = schema.facts(Neighbours.REPLACE)
    models = run(vault_of(data, public=public), ON, public=public)
    assert models["person"].rows == pytest.approx(2000, rel=0.05)


def test_the_setting_is_read_from_the_spec() -> None:
    assert tree_settings({"siblings": True}).siblings
    assert not tree_settings({}).siblings
