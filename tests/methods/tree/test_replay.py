"""Non-interference of method `tree`: its models are a function of the measured answers and public facts alone."""

import ast
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from privbench.errors import BudgetError
from privbench.methods.tree import method
from privbench.methods.tree.settings import TreeSettings
from privbench.methods.tree.sizes import Size, sized
from privbench.privacy.facts import Facts, PossiblePairs, PublicCounts
from privbench.privacy.queries import ENTITY_WEIGHT, Histogram
from privbench.privacy.vault import Vault
from privbench.schema.unit import Neighbours
from privbench.spn.feature_names import own_column, owner_column, public_column

from ..made import PERSONS, database, facts
from .runs import DELTA, WEIRD, facts_for, released, run, vault_of

ORDERED = tuple(
    PossiblePairs(
        table=table, column=column, base=base, of_owner=table != "person", possible=np.tri(*sizes, dtype=bool).T
    )
    for table, column, base, sizes in (
        ("person", "income", "age", (40, 20)),
        ("visit", "cost", "age", (30, 20)),
    )
)
"""As if rules said that an income is not below the age, nor a visit's cost below its owner's."""
NAMED = {"person": (("age", "income"),), "visit": (("kind", own_column("visit.guest")), ("cost", owner_column("age")))}
"""Pairs of columns that a spec may name."""


def named(public: Facts) -> Facts:
    tables = {name: replace(table, pairs=NAMED.get(name, ())) for name, table in public.tables.items()}
    return replace(public, tables=tables)


PUBLIC = {
    "named pairs": named(facts()),
    "replace": facts(),
    "rules": replace(facts(), possible=ORDERED),
    "add-remove": facts(Neighbours.ADD_REMOVE),
    "orphans": replace(facts(), orphans=True),
    "declared caps": facts(caps={"visit": 3, "note": 2}),
    "public counts": replace(
        facts(),
        public_ids=True,
        public_counts=(
            PublicCounts(
                name=public_column("rating.person"),
                link={"table": "rating", "columns": ["person"], "target": "person"},
                codes=(np.arange(PERSONS) % 5).astype(np.uint16),
            ),
        ),
    ),
}


@pytest.mark.mostly_slow
@pytest.mark.parametrize("delta", [Fraction(0), DELTA], ids=["pure", "delta"])
@pytest.mark.parametrize("public", PUBLIC.values(), ids=PUBLIC)
def test_a_run_is_repeated_from_its_answers_without_data(public: Facts, delta: Fraction) -> None:
    first = vault_of(database(5), public=public, delta=delta)
    models = released(run(first, public=public))
    again = vault_of(None, public=public, delta=delta, tape=first.answers)
    assert released(run(again, public=public)) == models
    assert again.ledger.to_json() == first.ledger.to_json()
    assert len(again.answers) == len(first.answers)


@pytest.mark.parametrize("delta", [Fraction(0), DELTA], ids=["pure", "delta"])
def test_named_pairs_without_any_choice_are_replayed(delta: Fraction) -> None:
    public, epsilon = named(facts()), Fraction(1, 2) if delta else Fraction(4)  # choices need less with a delta
    first = vault_of(database(5), public=public, epsilon=epsilon, delta=delta)
    models = released(run(first, public=public))
    events = [node["query"] for node in first.ledger.to_json()["nodes"] if node["kind"] == "event"]
    assert not any(query["kind"] == "choice of pair" for query in events)
    assert sum(len(query["axes"]) == 2 for query in events) >= 3
    again = vault_of(None, public=public, epsilon=epsilon, delta=delta, tape=first.answers)
    assert released(run(again, public=public)) == models
    assert again.ledger.to_json() == first.ledger.to_json()


@pytest.mark.mostly_slow
@pytest.mark.parametrize("delta", [Fraction(0), DELTA], ids=["pure", "delta"])
@pytest.mark.parametrize("other", WEIRD)
def test_other_data_behind_the_same_answers_change_nothing(other: str, delta: Fraction) -> None:
    first = vault_of(database(5), delta=delta)
    models = released(run(first))
    again = vault_of(WEIRD[other](), delta=delta, tape=first.answers)
    assert released(run(again)) == models
    assert again.ledger.to_json() == first.ledger.to_json()


@pytest.mark.mostly_slow
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("other", WEIRD)
def test_weird_data_are_learnt_and_replayed(other: str, neighbours: Neighbours) -> None:
    data = WEIRD[other]()
    public = facts_for(len(data["person"].entities), neighbours)
    first = vault_of(data, public=public, seed=3)
    models = run(first, public=public)
    assert set(models) == set(public.tables)
    assert all(set(m.links) == {k.name for k in public.links_of(t)} for t, m in models.items())
    assert all(m.rows >= 0 for m in models.values())
    again = run(vault_of(None, public=public, seed=9, tape=first.answers), public=public)
    assert released(again) == released(models)


@pytest.mark.parametrize(
    "settings",
    [TreeSettings(parents=3, bins=5), TreeSettings(single_share=Fraction(1))],
    ids=["more parents", "independent"],
)
def test_settings_are_replayed_too(settings: TreeSettings) -> None:
    first = vault_of(database(5))
    models = released(run(first, settings))
    assert models != released(run(vault_of(database(5))))
    assert released(run(vault_of(None, tape=first.answers), settings)) == models


@pytest.mark.slow
def test_runs_differ_where_the_answers_do() -> None:
    """The comparison can fail: other noise, other data, or one answer that differs, make other models."""
    first = vault_of(database(5))
    models = released(run(first))
    assert released(run(vault_of(database(5), seed=2))) != models
    assert released(run(vault_of(database(6)))) != models
    changed = [*first.answers[:-1], first.answers[-1] + 2**20]
    assert released(run(vault_of(None, tape=changed))) != models


def test_a_learner_that_looks_at_the_data_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leak built in on purpose: the plan reads how many entities have visits."""

    def leaky(vault: Vault, _: Facts) -> Size:
        assert vault._engine is not None
        (total,) = vault._engine.count([Histogram(table="visit", axes=())])
        return sized(float(np.asarray(total)[0]) / ENTITY_WEIGHT, 0.0)

    monkeypatch.setattr(method, "count_entities", leaky)
    first = vault_of(database(5))
    models = released(run(first))
    again = vault_of(WEIRD["no visits"](), tape=first.answers)
    try:
        assert released(run(again)) != models
    except (BudgetError, IndexError, ValueError):
        assert len(again.answers) < len(first.answers)  # it asked for something else than the tape holds


@pytest.mark.parametrize("delta", [Fraction(0), DELTA], ids=["pure", "delta"])
def test_every_answer_was_charged_and_nearly_all_is_spent(delta: Fraction) -> None:
    vault = vault_of(database(5), delta=delta)
    run(vault)
    nodes = vault.ledger.to_json()["nodes"]
    events = [node for node in nodes if node["kind"] == "event"]
    assert len(events) == len(vault.answers)
    assert {event["query"].get("counts", "weights") for event in events} == {"weights", "votes"}
    assert {node["kind"] for node in nodes} == {"sequence", "event"}
    assert any(event["query"]["kind"] == "choice of pair" for event in events)
    assert any("'in-degree'" in str(event["query"]) for event in events)
    assert Fraction(9, 10) < vault.ledger.total / vault.ledger.budget <= 1


# -- the code itself -----------------------------------------------------------------------------------------------

FORBIDDEN = ("engine", "exact", "feature_codes", "rows", "coded", "agreement")
"""Modules whose values are exact; only privacy/ opens them."""


@pytest.mark.parametrize("path", sorted(Path(method.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_the_learner_reaches_behind_no_door(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.module.rsplit(".", 1)[-1] not in FORBIDDEN, node.module
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            assert isinstance(node.value, ast.Name), f"{path.name}: {node.attr}"
            assert node.value.id in ("self", "grower"), f"{path.name}: {node.value.id}.{node.attr}"
