"""The verifier knows what weights must cost at least: an entity, and two more for each kind of key of others."""

from fractions import Fraction
from typing import Any

import pytest
from privbench.privacy.weighted import WeightedQueries
from privbench_verify.events import check_event

from privbench.privacy.events import UNITS, Currency
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy
from privbench.privacy.vault import Vault
from privbench_verify.tree import Terms

from . import weighted_tiny as tiny
from .weighted_tiny import AXES, FACTS, PAIRS, SINGLES, coded, label

QUESTIONS = [*SINGLES[::3], *(q for q in PAIRS if "#named" in label(q))][::2]


def charged(question: tiny.Question, currency: Currency) -> dict[str, Any]:
    vault = Vault(FACTS, coded([]), ledger=Ledger(Fraction(9), currency), entropy=TestEntropy(1))
    queries = WeightedQueries(vault, question[0], vault.ledger.root)
    queries.histogram([AXES[question[0], f.name] for f in question[1]], amount=Fraction(1))
    event: dict[str, Any] = vault.ledger.to_json()["nodes"][-1]
    return event


def problems(event: dict[str, Any], currency: Currency) -> list[str]:
    tables = {name: {"units_per_entity": UNITS} for name in FACTS.tables}
    replaces = currency is Currency.RHO_REPLACE
    return list(check_event(event, Terms(currency=currency.word, replaces=replaces, units=UNITS, tables=tables), "it"))


@pytest.mark.parametrize("currency", Currency)
@pytest.mark.parametrize("question", QUESTIONS, ids=label)
def test_what_the_vault_charges_passes_and_one_unit_less_does_not(question: tiny.Question, currency: Currency) -> None:
    event = charged(question, currency)
    assert problems(event, currency) == []
    less = {**event, "sensitivity": f"{int(Fraction(event['sensitivity'])) - 1}/1"}
    assert len(problems(less, currency)) == 1


@pytest.mark.parametrize("question", [q for q in QUESTIONS if "#named" in label(q)], ids=label)
def test_keys_of_others_are_never_additive(question: tiny.Question) -> None:
    event = charged(question, Currency.RHO_REPLACE)
    assert event["additive"] is False
    assert any("additive" in said for said in problems({**event, "additive": True}, Currency.RHO_REPLACE))
