"""Method `tree` on every schema, promise and budget: links and columns are there, the budget holds, models work."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privbench.errors import BudgetError
from privbench.methods.tree import method
from privbench.methods.tree.columns import MOST_BLOCKS, MOST_ROWS, constant_features, own_features
from privbench.methods.tree.hub import is_reference
from privbench.methods.tree.reference_rates import RATE_EDGES
from privbench.methods.tree.settings import TreeSettings
from privbench.privacy.facts import Facts
from privbench.privacy.queries import ENTITY_WEIGHT
from privbench.schema.unit import LinkKind, Neighbours
from privbench.spn.block_link import BlockLink
from privbench.spn.clique import CliqueTree
from privbench.spn.fanout_link import FanoutLink
from privbench.spn.fanouts import bin_of, fanout_edges, size_edges
from privbench.spn.feature_names import ACTIVITY, COMPONENT, RANK, STRATUM, owner_column, rows_column
from privbench.spn.infer import marginal
from privbench.spn.nodes import walk
from privbench.spn.reference_link import ReferenceLink
from privbench.spn.sample import sample

from .runs import DELTA, TableModel, released, run, vault_of
from .schemas import OWNER, REFERENCE, SCHEMAS, Schema

BUDGETS = [Fraction(1, 100), Fraction(3), Fraction(1000)]


def check(models: dict[str, TableModel], public: Facts) -> None:
    """Every table has the columns and links that its keys need, and numbers that can be drawn from."""
    assert list(models) == list(public.tables)
    for table, model in models.items():
        learnt = {feature.name: feature.size for feature in own_features(public, table)}
        wanted = learnt | {feature.name: 1 for feature in constant_features(public, table)}
        if ACTIVITY in model.network.sizes:
            rates = [feature.name for feature in own_features(public, table) if is_reference(feature)]
            wanted |= dict.fromkeys(rates, len(RATE_EDGES) - 1)
        else:
            wanted.pop(ACTIVITY, None)  # it did not pay
        assert {name: n for name, n in model.network.sizes.items() if learnt or name != COMPONENT} == wanted
        assert np.isfinite(model.rows)
        assert model.rows >= 0
        assert set(model.links) == {link.name for link in public.links_of(table)}
        kinds = {LinkKind.OWNER: FanoutLink, LinkKind.REFERENCE: ReferenceLink, LinkKind.CATEGORY: BlockLink}
        for link in public.links_of(table):
            found = model.links[link.name]
            assert isinstance(found, kinds[link.kind])
            held = models[table if isinstance(found, BlockLink) else link.target].network.sizes
            if not (isinstance(found, ReferenceLink) and found.column is None):
                assert found.column in held
            if isinstance(found, FanoutLink | ReferenceLink) and found.column is not None:
                assert held[found.column] == len(found.edges) - 1
        for column, size in model.network.sizes.items():
            shares = marginal(model.network, column)
            assert shares.shape == (size,)
            assert shares.sum() == pytest.approx(1)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("delta", [Fraction(0), DELTA], ids=["pure", "delta"])
@pytest.mark.parametrize("epsilon", BUDGETS, ids=str)
@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_is_learnt_for_any_budget(name: str, epsilon: Fraction, delta: Fraction) -> None:
    schema = SCHEMAS[name]()
    if epsilon < 1:  # enough entities for anything to be learnt
        private = {table: rows * 120 for table, rows in schema.rows.items() if table in schema.columns}
        schema = replace(schema, rows={**schema.rows, **private})
    public = schema.facts(list(Neighbours)[len(name) % 2])
    vault = vault_of(schema.data(), public=public, epsilon=epsilon, delta=delta)
    models = run(vault, public=public)
    check(models, public)
    assert vault.ledger.total <= vault.ledger.budget
    again = vault_of(None, public=public, epsilon=epsilon, delta=delta, tape=vault.answers)
    assert released(run(again, public=public)) == released(models)


def test_a_column_of_one_code_is_not_measured_and_others_get_its_part() -> None:
    schema = SCHEMAS["one table"]()
    fewer = Schema(columns={"home": {"kind": 4, "rooms": 9}}, keys={}, rows=schema.rows)
    both = [(s, s.facts(Neighbours.REPLACE)) for s in (schema, fewer)]
    vaults = [vault_of(s.data(), public=public, epsilon=Fraction(3)) for s, public in both]
    with_it, without = (run(v, public=public)["home"] for v, (_, public) in zip(vaults, both, strict=True))
    asked, wanted = (vault.ledger.to_json()["nodes"] for vault in vaults)
    assert asked == wanted
    assert with_it.network.sizes == {**without.network.sizes, "one": 1}
    assert sample(with_it.network, 5, np.random.default_rng(0))["one"].tolist() == [0] * 5


@pytest.mark.parametrize("neighbours", Neighbours)
def test_too_little_budget_is_refused_by_public_and_noisy_numbers(neighbours: Neighbours) -> None:
    schema = SCHEMAS["two levels"]()
    public, epsilon = schema.facts(neighbours), Fraction(1, 1000)
    vault = vault_of(schema.data(), public=public, epsilon=epsilon)
    with pytest.raises(BudgetError, match="too little budget") as refused:
        run(vault, public=public)
    with pytest.raises(BudgetError) as again:
        run(vault_of(None, public=public, epsilon=epsilon, tape=vault.answers), public=public)
    assert str(again.value) == str(refused.value)
    assert len(vault.answers) == (neighbours is Neighbours.ADD_REMOVE)


@pytest.mark.parametrize("name", [n for n in SCHEMAS if "level" in n])
def test_public_sizes_give_the_means_of_fanouts(name: str) -> None:
    schema = SCHEMAS[name]()
    public = schema.facts(Neighbours.REPLACE, sizes=True)
    models = run(vault_of(schema.data(), public=public, epsilon=Fraction(50)), public=public)
    check(models, public)
    for table, rows in schema.rows.items():
        if any(kind is OWNER for _, kind, *_ in schema.keys.get(table, {}).values()):
            assert models[table].rows == pytest.approx(rows, rel=0.35)


def test_sizes_follow_from_fanouts() -> None:
    schema = SCHEMAS["unowned rows"]()
    public = schema.facts(Neighbours.REPLACE)
    models = run(vault_of(schema.data(), public=public, epsilon=Fraction(1000)), public=public)
    link = models["person"].links["person.home"]
    assert isinstance(link, FanoutLink)
    assert models["home"].rows == 300
    assert link.unowned == pytest.approx(140, rel=0.2)
    assert models["person"].rows == pytest.approx(700, rel=0.1)


def test_large_public_tables_are_named_by_blocks() -> None:
    schema = SCHEMAS["public tables"]()
    public = schema.facts(Neighbours.REPLACE)
    models = run(vault_of(schema.data(), public=public), public=public)
    link = models["home"].links["home.town"]
    assert isinstance(link, BlockLink)
    assert (link.blocks, link.slots) == (MOST_BLOCKS, 1500)


def counted(query: dict[str, Any]) -> int:
    """How many axes of a query are in-degrees."""
    return sum(axis["feature"]["kind"] == "in-degree" for axis in query.get("axes", ()))


def test_two_counts_of_keys_in_one_table_are_charged_for_both() -> None:
    """Rows that are named by two keys at once: the table of the two moves by five entities' weights."""
    rng = np.random.default_rng(1)
    schema = Schema(
        columns={"home": {"kind": 2}, "pet": {"kind": 2}, "person": {"sex": 2}},
        keys={
            "pet": {"home": ("home", OWNER, False, False)},
            "person": {
                "home": ("home", OWNER, False, False),
                "walks": ("pet", REFERENCE, False, False),
                "feeds": ("pet", REFERENCE, False, False),
            },
        },
        rows={"home": 2000, "pet": 2000, "person": 2000},
    )
    data = schema.data()
    for table in ("pet", "person"):
        data[table].keys[f"{table}.home"][:] = rng.permutation(2000)
        data[table].entities[:] = data[table].keys[f"{table}.home"]
    for key in ("person.walks", "person.feeds"):
        data["person"].keys[key][:] = np.minimum(data["person"].entities // 2, 400)
    public = schema.facts(Neighbours.REPLACE)
    vault = vault_of(data, public=public, epsilon=Fraction(4000))
    run(vault, public=public)
    events = [node for node in vault.ledger.to_json()["nodes"] if node["kind"] == "event"]
    both = [e for e in events if counted(e["query"]) == 2]
    assert both
    assert all(Fraction(e["sensitivity"]) == 5 * ENTITY_WEIGHT for e in both)
    one = [e for e in events if counted(e["query"]) == 1]
    assert one
    assert all(Fraction(e["sensitivity"]) == 3 * ENTITY_WEIGHT for e in one)


def test_dependence_on_the_owner_is_found_and_drawn() -> None:
    schema = SCHEMAS["two levels"]()
    schema.rows.update(home=4000, person=9000)
    data = schema.data()
    homes = data["home"].codes["kind"][data["person"].keys["person.home"]]
    data["person"].codes["sex"] = (homes % 2).astype(np.uint16)
    public = schema.facts(Neighbours.REPLACE)
    models = run(vault_of(data, public=public, epsilon=Fraction(20)), public=public)
    network = models["person"].network
    trees = [node for node in walk(network) if isinstance(node, CliqueTree)]
    given = {g.column: len(g.bins) for tree in trees for g in tree.given}
    assert owner_column("kind") in given
    kinds = np.repeat(np.arange(4, dtype=np.uint16), 500)
    known = {name: np.zeros(2000, np.uint16) for name in given} | {owner_column("kind"): kinds}
    drawn = sample(network, 2000, np.random.default_rng(0), given=known)["sex"]
    assert (drawn == kinds % 2).mean() > 0.9


@pytest.mark.parametrize("strata", [True, False])
def test_strata_undo_the_weights(strata: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Homes of one person and homes of ten, which weigh the same; the persons of large homes are of the other sex."""
    monkeypatch.setattr(method, "best_full_rows", lambda *_args, **_named: 1)
    schema = replace(SCHEMAS["two levels"](), rows={"home": 3000, "person": 1500 + 15_000})
    data = schema.data()
    owners = np.append(np.arange(1500), np.repeat(np.arange(1500, 3000), 10))
    data["person"].keys["person.home"][:] = owners
    data["person"].entities[:] = owners
    chances = np.where(owners >= 1500, 0.95, 0.05)
    data["person"].codes["sex"] = (np.random.default_rng(2).random(len(owners)) < chances).astype(np.uint16)
    public, settings = schema.facts(Neighbours.REPLACE), TreeSettings(strata=strata)
    vault = vault_of(data, public=public, epsilon=Fraction(100))
    models = run(vault, settings, public=public)
    nodes = vault.ledger.to_json()["nodes"]
    asked = [n["query"] for n in nodes if n["kind"] == "event" and n["query"]["table"] == "person"]
    assert any("'entity rows'" in str(query) for query in asked) == strata
    again = run(vault_of(None, public=public, epsilon=Fraction(100), tape=vault.answers), settings, public=public)
    assert released(again) == released(models)
    if strata:
        numbers = np.repeat([1, 10], 1000)
        given = {
            STRATUM: bin_of(numbers, size_edges()),
            owner_column(rows_column("person.home")): bin_of(numbers, fanout_edges(MOST_ROWS)),
            RANK: np.repeat(np.array([0, 5], np.uint16), 1000),
        }
        tree = next(node for node in walk(models["person"].network) if isinstance(node, CliqueTree))
        given |= {g.column: np.zeros(2000, np.uint16) for g in tree.given if g.column not in given}
        drawn = sample(models["person"].network, 2000, np.random.default_rng(0), given=given)["sex"]
        assert drawn[:1000].mean() < 0.15
        assert drawn[1000:].mean() > 0.85
