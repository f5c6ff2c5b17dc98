"""Any tree spends at most its budget, models all columns, and leaves a receipt that adds up."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.methods.capped import Learnt, Size, learn_link
from privbench.methods.method import silent
from privbench.methods.paper.network import learn_network
from privbench.methods.paper.plan import Task
from privbench.methods.paper.settings import PaperSettings
from privbench.privacy.blocks import disjoint
from privbench.privacy.facts import LinkFacts
from privbench.privacy.vault import Vault
from privbench.schema.unit import Neighbours
from privbench.spn.feature_names import COMPONENT
from privbench.spn.nodes import Leaf, Node, walk
from privbench_verify.receipt import verify_receipt

from ...seeded import SeededEntropy
from ..made import COLUMNS, EPSILON, SETTINGS, TOWNS, cap, database, facts, receipt, run, vault_of

any_settings = st.builds(
    PaperSettings,
    min_rows=st.integers(1, 200),
    dependence_threshold=st.sampled_from([Fraction(-5), Fraction(0), Fraction(1, 10), Fraction(5)]),
    network_share=st.sampled_from([Fraction(1, 2), Fraction(9, 10)]),
    as_published=st.booleans(),
)


@settings(max_examples=40)
@given(
    given=any_settings,
    rows=st.sampled_from([0, 1, 60, 400, 2000]),
    most=st.sampled_from([1, 3]),
    columns=st.integers(1, 3),
    amount=st.sampled_from([Fraction(1, 3), Fraction(2)]),
    seed=st.integers(0, 50),
)
def test_any_tree_spends_at_most_its_budget(
    given: PaperSettings, rows: int, most: int, columns: int, amount: Fraction, seed: int
) -> None:
    vault = vault_of(database(seed, visits=500), seed=seed)
    cap(vault, {"person": 1, "visit": most, "note": 1})
    names = tuple(COLUMNS["visit"])[:columns]
    inside = vault.ledger.root.sequential("network")
    task = Task(block=vault.whole("visit", inside), columns=names, rows=rows, budget=amount)
    learnt = learn_network(vault, facts(), task, given, rng=np.random.default_rng(seed), progress=silent)
    assert amount / 2 < inside.total <= amount
    assert set(learnt.network.sizes) == {*names, COMPONENT}
    assert learnt.network.sizes[COMPONENT] == len(learnt.parts)
    assert disjoint(learnt.parts)
    assert all(learnt.network.sizes[c] == COLUMNS["visit"][c].size for c in names)
    assert _parts_of(learnt.network) == list(range(len(learnt.parts)))
    assert verify_receipt(receipt(vault)).problems == ()


def _parts_of(network: Node) -> list[int]:
    """The part that each component leaf stands for."""
    leaves = [n for n in walk(network) if isinstance(n, Leaf) and n.column == COMPONENT]
    return sorted(int(np.argmax(leaf.counts)) for leaf in leaves)


@pytest.mark.parametrize("neighbours", Neighbours)
def test_a_whole_run_spends_its_budget_and_the_verifier_agrees(neighbours: Neighbours) -> None:
    vault = vault_of(database(5), public=facts(neighbours), entropy=SeededEntropy())
    public = facts(neighbours)
    models = run(vault, public=public)
    verdict = verify_receipt(receipt(vault, public=public))
    factor = 2 if neighbours is Neighbours.REPLACE else 1
    assert (verdict.status, verdict.problems) == ("verified", ())
    assert verdict.spent == vault.ledger.total * factor
    assert EPSILON * Fraction(9, 10) < verdict.spent <= EPSILON
    assert set(models) == set(COLUMNS)


def test_the_noise_of_a_test_is_stamped() -> None:
    vault = vault_of(database(5))
    run(vault)
    assert verify_receipt(receipt(vault)).status == "unverified"


def test_as_published_is_charged_stamped_and_not_verified() -> None:
    vault = vault_of(database(5), entropy=SeededEntropy())
    run(vault, replace(SETTINGS, as_published=True, dependence_threshold=Fraction(-(10**9))))
    found = receipt(vault)
    events = [node for node in found["ledger"]["nodes"] if node.get("mechanism") == "as-published"]
    assert events
    assert {node["query"]["kind"] for node in events} == {"published row split"}
    assert found["stamp"].startswith("as published")
    verdict = verify_receipt(found)
    assert (verdict.status, verdict.problems) == ("unverified", ())
    assert verdict.spent is not None
    assert verdict.spent <= EPSILON


def test_the_corrected_run_prints_nothing_as_published() -> None:
    vault = vault_of(database(5), entropy=SeededEntropy())
    run(vault)
    assert not vault.ledger.as_published


@pytest.mark.parametrize("options", [{"visits": 0}, {"visits": 1}, {"extreme": True}], ids=str)
def test_degenerate_data_are_learnt_like_others(options: dict[str, Any]) -> None:
    vault = vault_of(database(5, **options))
    models = run(vault)
    assert set(models) == set(COLUMNS)
    assert all(np.isfinite(model.rows) and model.rows >= 0 for model in models.values())


# -- links ---------------------------------------------------------------------------------------------------------


def linked(name: str, **changes: Any) -> tuple[Vault, Any]:
    """A link measured with next to no noise, as if its facts were changed."""
    vault = vault_of(database(5))
    vault.ledger.budget = Fraction(10**6)
    cap(vault, {"person": 1, "visit": 50, "note": 50})
    link: LinkFacts = replace(next(k for k in facts().links if k.name == name), **changes)
    block = vault.whole(link.table, vault.ledger.root)
    learnt = Learnt(network=Leaf(column=COMPONENT, counts=np.ones(1)), size=Size(rows=700, variance=1), parts=(block,))
    inside = vault.ledger.root.sequential("key")
    found = learn_link(vault, facts(), link, learnt, targets=300.0, scope=inside, amount=Fraction(10**4))
    assert Fraction(9990) < inside.total <= 10**4
    return vault, found


def test_slots_of_a_public_table_are_counted_one_by_one() -> None:
    _, found = linked("visit.town")
    assert found.counts.shape == (1, TOWNS + 1)
    real = database(5)["visit"].keys["visit.town"]
    assert found.counts[0].tolist() == [0, *np.bincount(real, minlength=TOWNS)]


def test_a_key_that_cannot_be_null_has_no_null_count() -> None:
    _, nullable = linked("visit.guest")
    _, strict = linked("visit.guest", nullable=False)
    assert nullable.counts[0, 0] > 0
    assert strict.counts[0, 0] == 0


def test_degrees_and_null_share_of_a_private_table() -> None:
    _, found = linked("visit.previous")
    real = database(5)["visit"].keys["visit.previous"]
    assert found.null_share == pytest.approx((real < 0).mean())
    assert found.counts[:4].tolist() == np.bincount(np.bincount(real[real >= 0], minlength=700))[:4].tolist()


def test_degrees_of_an_owner_go_up_to_the_rows_it_may_have() -> None:
    vault, found = linked("note.visit")
    assert len(found.counts) == vault.cap("note") + 1
    _, unique = linked("note.visit", unique=True)
    assert len(unique.counts) == 2
