"""Independent marginals: a function of the answers, within the budget, a leaf per column, receipts that verify."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privbench.cli.flags import METHODS as FLAG
from privbench.errors import SpecError
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.methods.independent import IndependentSettings, independent_settings, learn
from privbench.methods.method import TableModel, silent
from privbench.methods.registry import BUILT_IN
from privbench.model.chosen import method_settings, with_method
from privbench.model.file import save_model
from privbench.model.verify import verify
from privbench.privacy.facts import Facts
from privbench.privacy.vault import Vault
from privbench.schema.spec import Spec
from privbench.schema.unit import Neighbours
from privbench.spn.feature_names import COMPONENT
from privbench.spn.infer import marginal
from privbench.spn.nodes import Leaf, walk
from privbench_verify.receipt import verify_receipt

from ..e2e.shapes import SHAPES
from ..seeded import SeededEntropy
from .made import COLUMNS, EPSILON, database, facts, receipt, released, vault_of


def run(vault: Vault, public: Facts | None = None) -> dict[str, TableModel]:
    return learn(vault, public or facts(), IndependentSettings(), silent)


@pytest.mark.parametrize(
    "public",
    [facts(), facts(Neighbours.ADD_REMOVE), facts(caps={"visit": 3, "note": 2})],
    ids=["replace", "add-remove", "declared caps"],
)
def test_a_run_is_repeated_from_its_answers_without_data(public: Facts) -> None:
    first = vault_of(database(5), public=public)
    models = released(run(first, public))
    again = vault_of(None, public=public, tape=first.answers)
    assert released(run(again, public)) == models
    assert receipt(again, public=public) == receipt(first, public=public)
    other = vault_of(database(99, visits=1200), public=public, tape=first.answers)
    assert released(run(other, public)) == models
    assert released(run(vault_of(database(6), public=public), public)) != models


@pytest.mark.parametrize("neighbours", Neighbours)
def test_a_whole_run_spends_its_budget_and_the_verifier_agrees(neighbours: Neighbours) -> None:
    vault = vault_of(database(5), public=facts(neighbours), entropy=SeededEntropy())
    run(vault, facts(neighbours))
    verdict = verify_receipt(receipt(vault, public=facts(neighbours)))
    assert (verdict.status, verdict.problems) == ("verified", ())
    assert verdict.spent is not None
    assert EPSILON * Fraction(9, 10) < verdict.spent <= EPSILON
    nodes = vault.ledger.to_json()["nodes"]
    assert sum(node["kind"] == "event" for node in nodes) == len(vault.answers)


def test_a_table_is_a_product_of_its_columns_with_equal_noise() -> None:
    vault = vault_of(database(5))
    models = run(vault)
    for table, columns in COLUMNS.items():
        leaves = [n.column for n in walk(models[table].network) if isinstance(n, Leaf)]
        assert sorted(leaves) == sorted([*columns, COMPONENT])
        assert set(models[table].network.sizes) == {*columns, COMPONENT}
    asked: dict[str, dict[str, str]] = {"person": {}, "visit": {}}
    for node in vault.ledger.to_json()["nodes"]:
        for axis in node.get("query", {}).get("axes", ()):
            if axis["feature"]["kind"] == "column":
                asked[node["query"]["table"]][axis["feature"]["column"]] = node["epsilon"]
    assert all(len(set(amounts.values())) == 1 for amounts in asked.values())
    assert asked["person"].keys() == COLUMNS["person"].keys()
    assert asked["visit"].keys() == {"cost", "kind"}, "a column of one code needs no histogram"


def test_marginals_are_those_of_the_data_with_a_large_budget() -> None:
    vault = vault_of(database(5))
    vault.ledger.budget = Fraction(10**4)
    models = run(vault)
    real = np.bincount(database(5)["person"].codes["city"], minlength=300) / 300
    assert marginal(models["person"].network, "city") == pytest.approx(real, abs=1e-3)
    assert models["person"].rows == pytest.approx(300, abs=1e-3)


@pytest.mark.parametrize("options", [{"visits": 0}, {"visits": 1}, {"extreme": True}], ids=str)
def test_degenerate_data_are_learnt_like_others(options: dict[str, Any]) -> None:
    models = run(vault_of(database(5, **options)))
    assert all(np.isfinite(model.rows) and model.rows >= 0 for model in models.values())


# -- by name -------------------------------------------------------------------------------------------------------


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    shape = SHAPES["parent_child"]
    return draft(shape.write(tmp_path / "source"), domains="data", **shape.choices)


@pytest.mark.parametrize("method", BUILT_IN)
def test_the_receipt_names_the_method_and_verifies(method: str, spec: Spec, tmp_path: Path) -> None:
    model = fit(spec, epsilon="3.2", method=method)
    assert model.receipt["public"]["parameters"]["method"] == method
    save_model(model, tmp_path / "model")
    generate(model, tmp_path / "bundle", seed=1)
    for path in ("model", "bundle"):
        verdict = verify(tmp_path / path)
        assert (verdict.status, verdict.problems) == ("conditional", ())


def test_a_model_of_another_method_than_its_spec_says_fails(spec: Spec, tmp_path: Path) -> None:
    model = fit(spec, epsilon="3.2", method="independent")
    model.receipt["public"]["parameters"]["method"] = "paper"
    save_model(model, tmp_path / "model")
    verdict = verify(tmp_path / "model")
    assert (verdict.status, verdict.problems) == ("failed", ("public.parameters is not what the model's spec says",))


def test_the_flag_offers_all_methods() -> None:
    assert tuple(BUILT_IN) == FLAG


def test_a_method_that_the_caller_names_leaves_the_settings_of_another(spec: Spec) -> None:
    declared = spec.model_copy(update={"method": {"name": "paper", "min_rows": 5}})
    assert with_method(declared, "paper") == declared
    assert with_method(declared, None) == declared
    assert method_settings(with_method(declared, "independent")).settings == IndependentSettings()


def test_wrong_settings_are_refused(spec: Spec) -> None:
    with pytest.raises(SpecError, match="method independent has no such setting"):
        independent_settings({"min_rows": 5})
    with pytest.raises(SpecError, match="between 0 and 1"):
        independent_settings({"network_share": 1})
    with pytest.raises(SpecError, match="must be of type float"):
        independent_settings({"network_share": "half"})
    with pytest.raises(SpecError, match="Methods: tree, paper, independent"):
        method_settings(with_method(spec, "magic"))
