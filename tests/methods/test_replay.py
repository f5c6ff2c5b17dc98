"""Non-interference: what a method makes is a function of the measured answers, public facts and coins alone."""

from fractions import Fraction

import pytest

from privbench.encode.coded import CodedTable
from privbench.methods.paper.settings import PaperSettings
from privbench.privacy.facts import Facts
from privbench.schema.unit import Neighbours

from .made import SETTINGS, database, facts, receipt, released, run, vault_of

COINS = 1
"""Coins are recorded like answers, but cost nothing."""
PRINTED = PaperSettings(min_rows=60, dependence_threshold=Fraction(1, 20), as_published=True)


def neighbour(data: dict[str, CodedTable]) -> dict[str, CodedTable]:
    """One person's codes changed, and all keys of their visits moved."""
    for coded in data.values():
        mine = coded.entities == 17
        for codes in coded.codes.values():
            codes[mine] = 0
    visit = data["visit"]
    visit.keys["visit.guest"][visit.entities == 17] = 3
    return data


OTHERS = {
    "neighbour": lambda: neighbour(database(5)),
    "unrelated": lambda: database(99, visits=1200),
    "no visits": lambda: database(7, visits=0),
    "one entity has it all": lambda: database(8, visits=500, extreme=True),
}


@pytest.mark.parametrize("settings", [SETTINGS, PRINTED], ids=["corrected", "as published"])
@pytest.mark.parametrize(
    "public",
    [facts(), facts(Neighbours.ADD_REMOVE), facts(caps={"visit": 3, "note": 2})],
    ids=["replace", "add-remove", "declared caps"],
)
def test_a_run_is_repeated_from_its_answers_without_data(public: Facts, settings: PaperSettings) -> None:
    first = vault_of(database(5), public=public)
    models = released(run(first, settings, public=public))
    again = vault_of(None, public=public, tape=first.answers)
    assert released(run(again, settings, public=public)) == models
    assert receipt(again, public=public) == receipt(first, public=public)
    assert len(again.answers) == len(first.answers)


@pytest.mark.parametrize("settings", [SETTINGS, PRINTED], ids=["corrected", "as published"])
@pytest.mark.parametrize("other", OTHERS)
def test_other_data_behind_the_same_answers_change_nothing(other: str, settings: PaperSettings) -> None:
    first = vault_of(database(5))
    models = released(run(first, settings))
    again = vault_of(OTHERS[other](), tape=first.answers)
    assert released(run(again, settings)) == models
    assert receipt(again) == receipt(first)


@pytest.mark.parametrize("other", OTHERS)
def test_extreme_data_are_learnt_and_replayed(other: str) -> None:
    first = vault_of(OTHERS[other](), seed=3)
    models = released(run(first))
    assert released(run(vault_of(None, seed=3, tape=first.answers))) == models


def test_runs_differ_where_the_answers_do() -> None:
    """The comparison can fail: other noise, or other data, make other models."""
    models = released(run(vault_of(database(5))))
    assert released(run(vault_of(database(5), seed=2))) != models
    assert released(run(vault_of(database(6)))) != models


@pytest.mark.parametrize("settings", [SETTINGS, PRINTED], ids=["corrected", "as published"])
def test_every_answer_was_charged_and_rows_were_split(settings: PaperSettings) -> None:
    vault = vault_of(database(5))
    run(vault, settings)
    nodes = vault.ledger.to_json()["nodes"]
    assert sum(node["kind"] == "event" for node in nodes) + COINS == len(vault.answers)
    assert any(node["kind"] == "partition" for node in nodes)
