"""Lists of strings found with budget: what a person would list where entities share them, made-up strings where not."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.encode.codec import compile_codec
from privbench.encode.text import made_up_domain
from privbench.methods.domains.budget import forecast_domains
from privbench.methods.domains.find import Found, find_domains
from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.ledger import Ledger
from privbench.privacy.vault import Vault
from privbench.schema.domain import Bins, Domain, Text, Values
from privbench.schema.types import parse_type

from .made import PLACE, costs, replaying, vault_on

DELTA = Fraction(1, 10**10)
RICH = Fraction(1, 8)
VARCHAR = {PLACE: parse_type("VARCHAR")}


def vault_of(
    values: Sequence[Any], entities: Any = None, *, name: str = "VARCHAR", rho: Fraction = RICH, seed: int = 0
) -> Vault:
    ledger = Ledger(rho, PrivacyMeasure.RHO_REPLACE, thresholds=DELTA)
    return vault_on(parse_type(name), {"a": values}, ledger=ledger, seed=seed, entities=entities)


def found(values: Sequence[Any], entities: Any = None, *, name: str = "VARCHAR", **how: Any) -> Found:
    vault = vault_of(values, entities, name=name, **how)
    answer: Found = find_domains(vault, {PLACE: parse_type(name)}, modelled=1)[PLACE]
    assert vault.ledger.total <= vault.ledger.budget * 4 / 10
    assert vault.ledger.delta <= DELTA
    compile_codec("t.a", parse_type(name), nullable=True, domain=answer.domain)
    return answer


def strings_of(domain: Domain) -> set[Any]:
    assert isinstance(domain, Values)
    return set(domain.values)


def test_a_list_is_found_and_the_rest_is_other() -> None:
    values = ["red"] * 3_000 + ["green"] * 2_000 + ["", "ö 'q\" \n"] * 500 + ["mine alone"] + [None] * 100
    domain = found(values).domain
    assert domain == Values(values=("", "green", "red", "ö 'q\" \n"), other=True)


def test_a_second_look_finds_what_the_first_leaves_out() -> None:
    """Values below the first threshold, and above that of a second look at them alone."""
    values = ["most"] * 20_000 + [f"some {i % 30}" for i in range(30 * 45)]
    vault = vault_of(values)
    listed = strings_of(find_domains(vault, VARCHAR, modelled=1)[PLACE].domain)
    first, second = (n["threshold"] for n in vault.ledger.to_json()["nodes"] if "threshold" in n)
    assert second < first
    assert len(listed) > 1
    alone = vault_of(["most"] * 20_000)
    find_domains(alone, VARCHAR, modelled=1)
    assert len(costs(alone, "heavy hitters", "a")) == 1


@pytest.mark.parametrize("values", [[], [None] * 50, ["x"] * 9, [f"text {i}" for i in range(4_000)]])
def test_where_there_is_no_list_texts_are_made_up(values: list[Any]) -> None:
    answer = found(values)
    assert answer.domain == made_up_domain(parse_type("VARCHAR"))
    assert answer.paid


def test_a_few_frequent_texts_are_no_list() -> None:
    """Free text, of which a tenth is the same: publishing that alone would serve nobody."""
    values = ["n/a"] * 500 + [f"text {i}" for i in range(4_500)]
    vault = vault_of(values)
    assert isinstance(find_domains(vault, VARCHAR, modelled=1)[PLACE].domain, Text)
    assert len(costs(vault, "heavy hitters", "a")) == 1


def test_too_few_entities_are_not_asked() -> None:
    vault = vault_of(["x"] * 9)
    find_domains(vault, VARCHAR, modelled=1)
    (event,) = (node for node in vault.ledger.to_json()["nodes"] if node["kind"] == "event")
    assert (event["query"]["counts"], event["query"]["axes"][0]["feature"]["kind"]) == ("votes", "present")
    assert vault.ledger.delta == 0


def test_an_entity_with_most_of_the_rows_does_not_get_its_text_published() -> None:
    values = ["a", "b"] * 2_000 + ["secret"] * 50_000
    entities = np.concatenate([np.arange(4_000), np.full(50_000, 4_000)])
    assert strings_of(found(values, entities).domain) == {"a", "b"}


def test_texts_that_do_not_fit_the_type_or_are_very_long_are_not_listed() -> None:
    values = ["ok", "too long", "x" * 10_000] * 700 + ["ok"] * 5_000
    assert strings_of(found(values, name="VARCHAR(3)").domain) == {"ok"}
    assert strings_of(found(values).domain) == {"ok", "too long"}


def test_a_type_that_is_full_has_no_other() -> None:
    letters = [*"abcdefghijklmnopqrstuvwxyz0123456789"]
    domain = found(letters * 600, name="VARCHAR(1)").domain
    assert strings_of(domain) == set(letters)


def test_too_little_budget_looks_at_nothing() -> None:
    answer = found(["a"] * 5_000, rho=Fraction(1, 2**60))
    assert (answer.paid, answer.domain) == (False, made_up_domain(parse_type("VARCHAR")))


@given(st.lists(st.text(max_size=6), min_size=1, max_size=5, unique=True), st.integers(0, 20))
@settings(max_examples=25, deadline=None)
def test_any_texts_make_a_domain(texts: list[str], seed: int) -> None:
    domain = found(texts * 400, seed=seed).domain
    assert strings_of(domain) == set(texts)
    codec = compile_codec("t.a", parse_type("VARCHAR"), nullable=True, domain=domain)
    codes = codec.encode(pa.array(texts, pa.string()))
    assert codec.decode(codes, np.random.default_rng(0), first_row=0).to_pylist() == texts


def test_the_search_is_a_function_of_the_noisy_answers() -> None:
    values = ["red"] * 3_000 + ["green"] * 2_000 + [f"{i}" for i in range(900)]
    first = vault_of(values)
    domain = find_domains(first, VARCHAR, modelled=1)[PLACE].domain
    second = replaying(first)
    assert find_domains(second, VARCHAR, modelled=1)[PLACE].domain == domain
    assert len(second.answers) == len(first.answers) == 3


def test_the_forecast_is_what_happens() -> None:
    vault = vault_of(["red"] * 3_000)
    forecast = forecast_domains(VARCHAR, modelled=1, ledger=vault.ledger)
    assert forecast is not None
    assert (forecast.strings, forecast.seen) == (("t.a",), 0.0)
    find_domains(vault, VARCHAR, modelled=1)
    [event] = [n for n in vault.ledger.to_json()["nodes"] if n.get("threshold")]
    assert event["threshold"] == forecast.listed
    assert vault.ledger.total <= forecast.amount


def test_heavy_hitters_of_numbers_are_found_with_a_delta_and_none_by_noise() -> None:
    rng = np.random.default_rng(1)
    gains = [0] * 18_000 + [15_024] * 1_500 + rng.integers(2_000, 40_000, 3_000).tolist()
    domain = found(gains, name="INTEGER").domain
    assert isinstance(domain, Bins)
    assert domain.heavy_hitters == (0, 15_024)
