"""The verifier knows how the search for domains is charged: in weights, with the noise that fits, column by column."""

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privbench.privacy.domain_vault import DomainVault
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.raw import RawColumn
from privbench.privacy.receipt import open_ledger
from privbench.schema.types import parse_type
from privbench.schema.unit import Neighbours
from privbench_verify.receipt import verify_receipt

from ..failing import assert_fails
from ..privacy.trees import DELTA, EPSILON, receipt

KIND = parse_type("INTEGER")
AGE = ("person", "age")


def searched(delta: Fraction = Fraction(0)) -> dict[str, Any]:
    """A receipt of a fit that looked for the domain of one column of the entity table, and did nothing else."""
    ledger = open_ledger(EPSILON, delta, Neighbours.REPLACE)
    data = {AGE: RawColumn(KIND, pa.array([7] * 50, KIND.arrow), np.arange(50))}
    vault = DomainVault({AGE: KIND}, data, ledger=ledger, entropy=FixedEntropy(1))
    vault.magnitudes(AGE, amount=ledger.budget / 4)
    vault.steps(AGE, amount=ledger.budget / 4)
    paper: dict[str, Any] = json.loads(json.dumps(receipt(ledger, epsilon=EPSILON, delta=delta)))
    domains = paper["public"]["domains"]
    for names in domains.values():
        names[:] = [name for name in names if name != "person.age"]
    domains["private"].append("person.age")
    return paper


def first(paper: dict[str, Any]) -> dict[str, Any]:
    """The event that begins the search."""
    return next(node for node in paper["ledger"]["nodes"] if node.get("query") == "magnitudes of age")


def without_units(paper: dict[str, Any]) -> None:
    """Let counts of weights pass for counts of rows, of which an entity has one: a millionth of the noise is enough."""
    scale = Fraction(first(paper)["scale"]) / 2**20
    first(paper).update(weighted=False, sensitivity="1/1", scale=f"{scale.numerator}/{scale.denominator}")


MUTANTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "weights said to be rows": (without_units, "counts weights, but it is not weighted"),
    "no search": (lambda r: first(r).update(query="weights of age"), "person.age: its domain is found with budget if"),
    "a search of another table": (lambda r: first(r).update(table="visit"), "visit.age: its domain is found"),
    "a search that nothing came of": (lambda r: r["public"]["domains"].update(private=[]), "person.age: its domain"),
    "a column with two origins": (
        lambda r: r["public"]["domains"]["declared"].append("person.age"),
        "lists a column twice",
    ),
}


@pytest.mark.parametrize("delta", [Fraction(0), DELTA])
def test_an_honest_search_is_verified(delta: Fraction) -> None:
    assert verify_receipt(searched(delta)).problems == ()


@pytest.mark.parametrize("delta", [Fraction(0), DELTA])
@pytest.mark.parametrize("name", MUTANTS)
def test_a_changed_receipt_fails(name: str, delta: Fraction) -> None:
    change, message = MUTANTS[name]
    paper = searched(delta)
    change(paper)
    assert_fails(verify_receipt(paper), message)


def test_spikes_have_laplace_noise_alone() -> None:
    for delta, problems in ((Fraction(0), 0), (DELTA, 1)):
        paper = searched(delta)
        next(n for n in paper["ledger"]["nodes"] if n.get("query") == "steps of age").update(
            query="heavy_hitters of age"
        )
        assert len(verify_receipt(paper).problems) == problems
